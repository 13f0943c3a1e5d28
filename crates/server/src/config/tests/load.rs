//! Command lines, files and the messages about bad ones.

use std::io::Cursor;

use super::text;
use crate::config::{Config, Invocation, LoadFailure, Startup, load};
use crate::process::log::Level;

fn load_with(arguments: &[&str], stdin: &str) -> Result<Invocation, LoadFailure> {
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
    load(&arguments, &mut Cursor::new(stdin.as_bytes()), &|name| matches!(name, b"get" | b"set" | b"config"))
}

#[track_caller]
fn start(arguments: &[&str], stdin: &str) -> Startup {
    match load_with(arguments, stdin) {
        Ok(Invocation::Run(startup)) => *startup,
        other => panic!("{other:?}"),
    }
}

/// A configuration read from standard input.
#[track_caller]
fn config(stdin: &str) -> Config {
    start(&["-"], stdin).config
}

/// The line number, the line and the error of a configuration that is refused.
#[track_caller]
fn refusal(stdin: &str) -> (String, String) {
    match load_with(&["-"], stdin) {
        Err(LoadFailure::Fatal(message)) => {
            let message = text(&message);
            let mut lines = message.lines().skip(1);
            assert_eq!(lines.next(), Some("*** FATAL CONFIG FILE ERROR (Redis 7.2.5) ***"));
            let place = lines.next().unwrap().strip_prefix("Reading the configuration file, at line ").unwrap();
            let line = lines.next().unwrap().strip_prefix(">>> ").unwrap();
            (format!("{place} {line}"), lines.next().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_gives_the_defaults() {
    let startup = start(&[], "");
    assert!(!startup.had_arguments);
    assert!(startup.notices.is_empty(), "{:?}", startup.notices);
    assert_eq!(startup.config.port, 6379);
    assert_eq!(startup.config.save.len(), 3);
}

#[test]
fn lines_of_all_shapes() {
    let config = config(
        "# comment\n\n  PORT 7000 \r\nmaxmemory 2gb\nrequirepass \"a b\\x41\"\nbind 127.0.0.1   -::1\n\
         save 900 1\nsave 300 10\nclient-output-buffer-limit normal 1mb 2mb 3\nslave-read-only no\n\
         oom-score-adj-values 1 2 3\nnotify-keyspace-events \"\"\nslot-space codis\nreplicaof 10.0.0.1 6380\n",
    );
    assert_eq!(config.port, 7000);
    assert_eq!(config.maxmemory, 2 << 30);
    assert_eq!(text(&config.requirepass), "a bA");
    assert_eq!(config.bind, [b"127.0.0.1".to_vec(), b"-::1".to_vec()]);
    assert_eq!(config.save.iter().map(|point| point.seconds).collect::<Vec<_>>(), [900, 300]);
    assert_eq!(config.client_output_buffer_limit.normal.soft_bytes, 2 << 20);
    assert!(!config.replica_read_only);
    assert_eq!(config.replicaof.unwrap().port, 6380);
}

#[test]
fn save_lines_add_up_until_an_empty_one() {
    assert!(config("save 900 1\nsave \"\"").save.is_empty());
    assert_eq!(config("save \"\"\nsave 900 1").save.len(), 1);
    assert_eq!(config("save 900 1 300 2").save.len(), 2);
    assert_eq!(config("save \"900 1 300 2\"\nsave 1 1").save.len(), 3);
}

#[test]
fn options_follow_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    std::fs::write(&file, "port 7000\ntimeout 5\n").unwrap();
    let file = file.to_str().unwrap();

    let startup = start(&[file, "--port", "7001", "--bind", "127.0.0.1", "::1", "-"], "timeout 7\nhz 20\n");
    assert_eq!(startup.config_file.unwrap().to_str(), Some(file));
    assert_eq!(startup.config.port, 7001);
    assert_eq!(startup.config.bind.len(), 2);
    assert_eq!(startup.config.hz, 20);

    assert_eq!(start(&["--port 7002", "--timeout", "3"], "").config.port, 7002);
    assert_eq!(start(&["--loglevel", "verbose", "--port", "7003"], "").config.port, 7003);
    assert!(start(&["--save", "", "--port", "7004"], "").config.save.is_empty());
    assert!(start(&["--save", "--port", "7004"], "").config.save.is_empty());
    assert!(start(&["--port", "7004", "--save"], "").config.save.is_empty());
    assert_eq!(start(&["--save", "60 1", "--port", "7004"], "").config.save.len(), 1);
    assert_eq!(start(&["--requirepass", "--x"], "").config.requirepass, b"--x");
    assert_eq!(start(&["--bind", "127.0.0.1 ::1"], "").config.bind.len(), 2);
}

#[test]
fn special_options() {
    for (option, wanted_stdout, wanted_code) in [("-v", true, 0), ("--version", true, 0)] {
        match load_with(&[option], "") {
            Ok(Invocation::Print { text, to_stdout, code }) => {
                assert_eq!((to_stdout, code), (wanted_stdout, wanted_code), "{option}");
                assert!(!text.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(load_with(&["--help"], ""), Ok(Invocation::Help)));
    assert!(matches!(load_with(&["-h"], ""), Ok(Invocation::Help)));
    assert!(matches!(load_with(&["--check-system"], ""), Ok(Invocation::CheckSystem)));
    assert!(matches!(load_with(&["--test-memory", "8"], ""), Ok(Invocation::TestMemory { mebibytes: 8 })));
    assert!(matches!(load_with(&["--test-memory"], ""), Ok(Invocation::Print { code: 1, .. })));
}

#[test]
fn bad_lines_are_named() {
    for (line, error) in [
        ("bogus 1", "Bad directive or wrong number of arguments"),
        ("include", "Bad directive or wrong number of arguments"),
        ("foo.bar 1", "Bad directive or wrong number of arguments"),
        ("foo.bar", "Module config specified without value"),
        ("port", "wrong number of arguments"),
        ("port 1 2", "wrong number of arguments"),
        ("port x", "argument couldn't be parsed into an integer"),
        ("port 70000", "argument must be between 0 and 65535 inclusive"),
        ("daemonize maybe", "argument must be 'yes' or 'no'"),
        ("maxmemory 1x", "argument must be a memory value"),
        ("maxmemory-clients 1x", "argument must be a memory or percent value"),
        ("unixsocketperm 9", "argument couldn't be parsed as an octal number"),
        ("unixsocketperm 1000", "argument must be between 0 and 777 inclusive"),
        ("requirepass \"x", "Unbalanced quotes in configuration line"),
        ("appendfilename a/b", "appendfilename can't be a path, just a filename"),
        ("replicaof a b", "Invalid master port"),
        ("rename-command nope x", "No such command in rename-command"),
        ("rename-command get set", "Target command name already exists"),
        ("sentinel monitor x", "sentinel directive while not in sentinel mode"),
        ("proc-title-template {x}", "template format is invalid or contains unknown variables"),
        ("shutdown-on-sigint save nosave", "shutdown options SAVE and NOSAVE can't be used simultaneously"),
    ] {
        let stdin = format!("# first\n  {line}  \nport 1\n");
        assert_eq!(refusal(&stdin), (format!("2 '{line}'"), error.to_owned()), "{line}");
    }
}

#[test]
fn faults_of_the_whole_have_no_line() {
    let failure = load_with(&["-"], "cluster-enabled yes\nreplicaof 127.0.0.1 1").unwrap_err();
    let LoadFailure::Fatal(message) = failure else { panic!("{failure:?}") };
    assert_eq!(
        text(&message),
        "\n*** FATAL CONFIG FILE ERROR (Redis 7.2.5) ***\nreplicaof directive not allowed in cluster mode\n"
    );
    let failure = load_with(&["-"], "logfile /does/not/exist").unwrap_err();
    let LoadFailure::Fatal(message) = failure else { panic!("{failure:?}") };
    assert!(text(&message).ends_with("***\nCan't open the log file: No such file or directory\n"));
    let failure = load_with(&["/does/not/exist"], "").unwrap_err();
    assert_eq!(
        failure,
        LoadFailure::Log("Fatal error, can't open config file '/does/not/exist': No such file or directory".into())
    );
}

#[test]
fn includes_nest_and_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("1.conf"), "port 7001\ntimeout 1\n").unwrap();
    std::fs::write(path("2.conf"), "port 7002\n").unwrap();
    std::fs::write(path(".3.conf"), "port 7003\n").unwrap();
    std::fs::write(path("bad"), "\n\nbogus 1\n").unwrap();
    std::fs::write(path("self"), format!("include {}\n", path("self"))).unwrap();

    let read = config(&format!("include {}\nhz 20\n", path("*.conf")));
    assert_eq!((read.port, read.timeout, read.hz), (7002, 1, 20));
    assert_eq!(config(&format!("include {}\n", path("none*"))).port, 6379);
    assert_eq!(refusal(&format!("port 1\ninclude {}\n", path("bad"))).0, "3 'bogus 1'");
    assert_eq!(refusal(&format!("include {}", path("self"))).1, "Too many nested include directives");
    assert!(matches!(load_with(&["-"], "include /does/not/exist"), Err(LoadFailure::Log(_))));
}

#[test]
fn renamed_commands_and_users_are_handed_on() {
    let startup = start(&["-"], "rename-command CONFIG \"\"\nrename-command get config\nuser a on >b\n");
    assert_eq!(startup.renamed_commands, [(b"config".to_vec(), Vec::new()), (b"get".to_vec(), b"config".to_vec())]);
    assert_eq!(startup.users, [[b"a".to_vec(), b"on".to_vec(), b">b".to_vec()].to_vec()]);
    assert!(matches!(load_with(&["-"], "loadmodule x.so"), Err(LoadFailure::Log(_))));
}

#[test]
fn what_does_not_act_is_told() {
    let startup = start(
        &["--appendonly", "yes", "--cluster-port", "17000", "--activedefrag", "yes", "--lua-replicate-commands", "yes"],
        "",
    );
    let lines: Vec<&str> = startup.notices.iter().map(|(_, line)| line.as_str()).collect();
    assert!(startup.notices.iter().all(|(level, _)| *level == Level::Warning));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("'cluster-port'") && line.contains("cluster")));
    assert!(lines.iter().any(|line| line.contains("'activedefrag'")));
    assert!(lines.iter().any(|line| line.contains("'lua-replicate-commands'")));
}

#[test]
fn cluster_mode_has_one_database() {
    let startup = start(&["--cluster-enabled", "yes"], "");
    assert_eq!(startup.config.databases, 1);
    assert!(startup.notices.iter().any(|(_, line)| line.contains("Changing databases number from 16 to 1")));
}
