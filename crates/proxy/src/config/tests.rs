#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split_ascii_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

fn started(text: &str) -> Startup {
    match load(&words(text)) {
        Ok(Invocation::Run(startup)) => *startup,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_tables_are_read_from_options() {
    let startup =
        started("--port 7001 --topology server 127.0.0.1:6379 --backend-timeout 250 --backend-queue-limit 1mb");
    assert_eq!(startup.config.base.port, 7001);
    assert_eq!(startup.config.topology, b"server 127.0.0.1:6379");
    assert_eq!((startup.config.backend_timeout, startup.config.backend_queue_limit), (250, 1 << 20));
}

#[test]
fn a_file_is_read_and_options_win() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text =
        "# a proxy\nport 7002\ntopology static 0-100@a:1\n\nuser joe on >secret ~* +@all\nbackend-connections 2\n";
    std::fs::write(file.path(), text).unwrap();
    let startup = started(&format!("{} --port 7003", file.path().display()));
    assert_eq!((startup.config.base.port, startup.config.backend_connections), (7003, 2));
    assert_eq!(startup.users.len(), 1);
    assert!(startup.config_file.is_some());
}

#[test]
fn mistakes_are_told_with_their_line() {
    for (text, wanted) in [
        ("--backend-timeout 0", "must be between"),
        ("--maxmemory 1gb", "a proxy does not have"),
        ("--backend-timeuot 5", "Did you mean 'backend-timeout'?"),
        ("--backend-timeout 1 2", "wrong number of arguments"),
    ] {
        let error = load(&words(text)).unwrap_err();
        assert!(error.contains(wanted) && error.contains("line 2"), "{text}: {error}");
    }
}

#[test]
fn config_set_is_all_or_nothing() {
    let store = ConfigStore::new(Config::default(), None);
    let mut seen = Vec::new();
    store
        .set(&[b"backend-timeout", b"77", b"MAXCLIENTS", b"5"], |config, changed| {
            assert_eq!(config.backend_timeout, 77);
            seen = changed.to_vec();
        })
        .unwrap();
    assert_eq!(seen, ["backend-timeout", "maxclients"]);
    assert_eq!(store.version(), 1);
    let error = store.set(&[b"timeout", b"3", b"backend-timeout", b"x"], |_, _| panic!("must not act")).unwrap_err();
    assert!(error.starts_with("ERR CONFIG SET failed (possibly related to argument 'backend-timeout')"), "{error}");
    assert!(store.set(&[b"topology", b"server a:1"], |_, _| ()).unwrap_err().contains("can't set immutable config"));
    assert!(store.set(&[b"appendonly", b"yes"], |_, _| ()).unwrap_err().contains("Unknown option"));
    assert_eq!(
        store.get(&[b"backend-t*", b"timeout"]),
        [("backend-timeout".to_owned(), b"77".to_vec()), ("timeout".to_owned(), b"0".to_vec())]
    );
}

#[test]
fn every_shared_directive_is_one_of_the_servers() {
    for name in SHARED {
        let found = server::config::find(name.as_bytes()).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(found.directive.name, *name);
        assert!(Own::find(name.as_bytes()).is_none(), "{name} is in both tables");
    }
}
