//! Tests of the configuration: the table, GET and SET, the documentation. Loading, rewriting and the
//! comparison with redis-server have files of their own.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod differential;
mod load;
mod rewrite;

use std::collections::HashSet;

use super::*;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn store() -> ConfigStore {
    ConfigStore::new(Config::default(), None)
}

/// Sets on a store whose server agrees with everything; returns the error line or `OK`.
fn set(store: &ConfigStore, words: &str) -> String {
    let words: Vec<String> = split_arguments(words.as_bytes()).unwrap().iter().map(|word| text(word)).collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    match store.set(&words, SetContext::default(), &mut |_, _| Ok(())) {
        Ok(_) => "OK".into(),
        Err(error) => text(&error),
    }
}

fn get(store: &ConfigStore, name: &str) -> String {
    let found = store.get(&[name.as_bytes()]);
    assert_eq!(found.len(), 1, "{name}");
    text(&found[0].1)
}

#[test]
fn table_is_sound() {
    let default = Config::default();
    let mut names = HashSet::new();
    for Named { name, directive } in all_names() {
        assert!(names.insert(name), "{name} is there twice");
        let mut config = default.clone();
        let value = (directive.read)(&config);
        // What is printed parses back to the same value, and fits the field.
        if !matches!(directive.kind, Kind::Directory | Kind::Primary) {
            let printed = directive.print(&default);
            let arguments: Vec<Vec<u8>> = if directive.kind.is_multi_argument() {
                printed.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect()
            } else {
                vec![printed]
            };
            assert_eq!(directive.kind.parse(&arguments, &value), Ok(value.clone()), "{name}");
        }
        assert!((directive.write)(&mut config, value), "{name}");
        // The bounds of a number fit its field.
        if let Kind::Number { min, max, .. } = directive.kind {
            for bound in [min, max] {
                assert!((directive.write)(&mut config, Value::Number(bound)), "{name} cannot hold {bound}");
            }
        }
    }
    assert!(names.len() >= 200, "{}", names.len());
}

#[test]
fn get_finds_names_and_patterns() {
    let store = store();
    assert_eq!(get(&store, "port"), "6379");
    assert_eq!(get(&store, "save"), "3600 1 300 100 60 10000");
    assert_eq!(get(&store, "bind"), "* -::*");
    assert_eq!(get(&store, "unixsocketperm"), "0");
    assert_eq!(get(&store, "latency-tracking-info-percentiles"), "50 99 99.9");
    assert_eq!(get(&store, "hash-max-ziplist-entries"), "512");
    assert_eq!(
        get(&store, "client-output-buffer-limit"),
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
    );
    // A name is answered as it was asked for, once; hidden ones only to their name.
    assert_eq!(store.get(&[b"PORT", b"port", b"port"]).first().map(|(name, _)| text(name)), Some("PORT".into()));
    assert_eq!(store.get(&[b"PORT", b"por*", b"nothing"]).len(), 1);
    assert_eq!(store.get(&[b"MAXMEMORY*"]).len(), 5);
    assert!(store.get(&[b"*"]).iter().all(|(name, _)| name != b"watchdog-period"));
    assert_eq!(get(&store, "watchdog-period"), "0");
    assert!(store.get(&[b"*slave*"]).iter().any(|(name, _)| name == b"slave-read-only"));
}

#[test]
fn set_changes_and_tells_which() {
    let store = store();
    let mut seen = Vec::new();
    let version = store.version();
    let new = store
        .set(
            &[b"maxmemory", b"100mb", b"TIMEOUT", b"0", b"maxmemory-policy", b"ALLKEYS-lru"],
            SetContext::default(),
            &mut |config, changed| {
                assert_eq!(config.maxmemory, 100 << 20);
                seen.extend(changed.iter().map(|directive| directive.name));
                Ok(())
            },
        )
        .unwrap();
    assert_eq!(seen, ["maxmemory", "maxmemory-policy"]);
    assert_eq!(new.maxmemory_policy, MaxmemoryPolicy::AllkeysLru);
    assert_eq!(store.version(), version + 1);
    assert_eq!(store.snapshot().version, version + 1);
    assert_eq!(get(&store, "maxmemory"), "104857600");
    assert_eq!(get(&store, "maxmemory-policy"), "allkeys-lru");
}

#[test]
fn set_is_all_or_nothing() {
    let store = store();
    assert_eq!(
        set(&store, "maxmemory 1gb timeout nonsense"),
        "ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer"
    );
    assert_eq!(get(&store, "maxmemory"), "0");
    // The server refuses: the old values are applied again.
    let mut applied = Vec::new();
    let error = store
        .set(&[b"port", b"7000", b"timeout", b"5"], SetContext::default(), &mut |config, _| {
            applied.push(config.port);
            if config.port == 7000 {
                return Err(ApplyError {
                    directive: "port",
                    message: "Unable to listen on this port. Check server logs.".into(),
                });
            }
            Ok(())
        })
        .unwrap_err();
    assert_eq!(
        text(&error),
        "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs."
    );
    assert_eq!(applied, [7000, 6379]);
    assert_eq!(get(&store, "timeout"), "0");
}

#[test]
fn set_refuses() {
    let store = store();
    let failed =
        |name: &str, why: &str| format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
    assert_eq!(set(&store, "maxmemory"), "ERR syntax error");
    assert_eq!(
        set(&store, "maxmemory 1 bogus 2"),
        "ERR Unknown option or number of arguments for CONFIG SET - 'bogus'"
    );
    assert_eq!(set(&store, "daemonize yes"), failed("daemonize", "can't set immutable config"));
    assert_eq!(set(&store, "DIR /tmp"), failed("DIR", "can't set protected config"));
    assert_eq!(set(&store, "timeout 1 TIMEOUT 2"), failed("TIMEOUT", "duplicate parameter"));
    assert_eq!(set(&store, "save '1 a'"), failed("save", "Invalid save parameters"));
    assert_eq!(set(&store, "port 65536"), failed("port", "argument must be between 0 and 65535 inclusive"));
    assert_eq!(
        set(&store, "maxmemory-clients 101%"),
        failed("maxmemory-clients", "percentage argument must be less or equal to 100")
    );
    assert_eq!(
        set(&store, "loglevel loud"),
        failed("loglevel", "argument(s) must be one of the following: debug, verbose, notice, warning, nothing")
    );
    let loading = SetContext { is_loading: true, ..SetContext::default() };
    let error = store.set(&[b"appendonly", b"yes"], loading, &mut |_, _| Ok(())).unwrap_err();
    assert_eq!(text(&error), "LOADING Redis is loading the dataset in memory");
    assert_eq!(set(&store, r#""a\r\nb" 1"#), "ERR Unknown option or number of arguments for CONFIG SET - 'a  b'");
}

#[test]
fn set_takes_the_special_ones() {
    let store = store();
    for (words, name, printed) in [
        ("save ''", "save", ""),
        ("save '60 1 5 10'", "save", "60 1 5 10"),
        ("bind '127.0.0.1 -::1'", "bind", "127.0.0.1 -::1"),
        ("bind ''", "bind", ""),
        ("notify-keyspace-events KEA", "notify-keyspace-events", "AKE"),
        ("notify-keyspace-events g$lshzxetdKmn", "notify-keyspace-events", "AKm"),
        ("notify-keyspace-events Elg", "notify-keyspace-events", "glE"),
        ("latency-tracking-info-percentiles '0.5 100'", "latency-tracking-info-percentiles", "0.5 100"),
        ("latency-tracking-info-percentiles ''", "latency-tracking-info-percentiles", ""),
        ("oom-score-adj-values '1 2 3'", "oom-score-adj-values", "1 2 3"),
        ("oom-score-adj relative", "oom-score-adj", "yes"),
        ("shutdown-on-sigint 'FORCE nosave'", "shutdown-on-sigint", "nosave force"),
        ("maxmemory-clients 5%", "maxmemory-clients", "5%"),
        ("hz 10000", "hz", "500"),
        (
            "client-output-buffer-limit 'replica 1k 1kb 3'",
            "client-output-buffer-limit",
            "normal 0 0 0 slave 1000 1024 3 pubsub 33554432 8388608 60",
        ),
    ] {
        assert_eq!(set(&store, words), "OK", "{words}");
        assert_eq!(get(&store, name), printed, "{words}");
    }
}

#[test]
fn protected_directives_follow_their_switch() {
    let local = SetContext { client_is_local: true, is_loading: false };
    for (action, from_afar, from_here) in
        [(ProtectedAction::No, false, false), (ProtectedAction::Local, false, true), (ProtectedAction::Yes, true, true)]
    {
        let config = Config { enable_protected_configs: action, ..Config::default() };
        let store = ConfigStore::new(config, None);
        let try_from = |context| store.set(&[b"dbfilename", b"x.rdb"], context, &mut |_, _| Ok(())).is_ok();
        assert_eq!(try_from(SetContext::default()), from_afar);
        assert_eq!(try_from(local), from_here);
    }
}

#[test]
fn directory_comes_back_when_another_value_fails() {
    let config = Config { enable_protected_configs: ProtectedAction::Yes, ..Config::default() };
    let store = ConfigStore::new(config, None);
    let before = std::env::current_dir().unwrap();
    assert_eq!(
        set(&store, "dir / timeout x"),
        "ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer"
    );
    assert_eq!(std::env::current_dir().unwrap(), before);
    assert_eq!(
        set(&store, "dir /does/not/exist"),
        "ERR CONFIG SET failed (possibly related to argument 'dir') - No such file or directory"
    );
}

#[test]
fn secrets_are_known() {
    assert!(is_secret(b"REQUIREPASS"));
    assert!(is_secret(b"masterauth"));
    assert!(!is_secret(b"port"));
    assert!(!is_secret(b"bogus"));
}

#[test]
fn memory_units() {
    for (amount, bytes) in [
        ("0", Some(0)),
        ("1b", Some(1)),
        ("1k", Some(1000)),
        ("1Kb", Some(1024)),
        ("2M", Some(2_000_000)),
        ("2mb", Some(2 << 20)),
        ("3g", Some(3_000_000_000)),
        ("3GB", Some(3 << 30)),
        ("-1", None),
        ("1t", None),
        ("1 k", None),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("18446744073709551615gb", None),
    ] {
        assert_eq!(parse_memory(amount.as_bytes()), bytes, "{amount}");
    }
}

#[test]
fn splitting_and_quoting() {
    let split = |line: &str| {
        split_arguments(line.as_bytes()).map(|words| words.iter().map(|word| text(word)).collect::<Vec<_>>())
    };
    assert_eq!(split("  a  'b c' \"d\\n\\x41\\\"\" ").unwrap(), ["a", "b c", "d\nA\""]);
    assert_eq!(split("a '' \"\"").unwrap(), ["a", "", ""]);
    assert_eq!(split("'it\\'s'").unwrap(), ["it's"]);
    assert_eq!(split("a\"b c\"").unwrap(), ["ab c"]);
    assert_eq!(split("\"a\"b"), None);
    assert_eq!(split("'a"), None);
    assert_eq!(split("\"a\\"), None);
    assert_eq!(split("").unwrap(), Vec::<String>::new());
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut quoted = Vec::new();
    push_quoted(&mut quoted, &every_byte);
    assert_eq!(split_arguments(&quoted).unwrap(), [every_byte]);
}

#[test]
fn document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
    if std::env::var_os("OXIDIS_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, document()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, document(), "run: OXIDIS_WRITE_DOCS=1 cargo test -p server document");
}

/// Prints all defaults, to be compared with those of a redis-server.
#[test]
#[ignore = "for people who compare: cargo test -p server print_defaults -- --ignored --nocapture"]
fn print_defaults() {
    for (name, value) in store().get(&[b"*"]) {
        println!("{}\t{}", text(&name), text(&value));
    }
}
