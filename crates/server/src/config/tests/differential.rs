//! The same lines and commands given to a real redis-server, with equal answers. Skipped, with a note,
//! where none is installed. Only what 7.0 and 7.2 have in common is compared.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{set, split_arguments, text};
use crate::config::{Config, ConfigStore, Invocation, LoadFailure, load};

const SERVER: &str = "/usr/bin/redis-server";
const CLIENT: &str = "/usr/bin/redis-cli";

fn is_missing() -> bool {
    let is_missing = !Path::new(SERVER).exists() || !Path::new(CLIENT).exists();
    if is_missing {
        eprintln!("skipped: {SERVER} is not installed");
    }
    is_missing
}

/// What redis-server says about a configuration on standard error; empty if it accepts it. With port
/// 0 it then exits by itself.
fn redis_says(arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(SERVER).args(arguments).current_dir(folder).output().unwrap();
    without_version(&text(&output.stderr))
}

fn we_say(arguments: &[&str]) -> String {
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
    match load(&arguments, &mut Cursor::new(b""), &|name| matches!(name, b"get" | b"set")) {
        Ok(Invocation::Run(_)) => String::new(),
        Err(LoadFailure::Fatal(message)) => without_version(&without_suggestion(&text(&message))),
        other => panic!("{other:?}"),
    }
}

/// What may have been meant is ours alone.
fn without_suggestion(message: &str) -> String {
    message.split_inclusive('\n').filter(|line| !line.starts_with("Did you mean '")).collect()
}

fn without_version(message: &str) -> String {
    match (message.find("(Redis "), message.find(") ***")) {
        (Some(start), Some(end)) => format!("{}{}", &message[..start], &message[end..]),
        _ => message.to_owned(),
    }
}

/// All differences are collected, so that one run shows them all.
fn note(differences: &mut Vec<String>, what: &str, ours: String, theirs: String) {
    if ours != theirs {
        differences.push(format!("{what}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
    }
}

#[test]
fn config_files_are_judged_alike() {
    if is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    let mut differences = Vec::new();
    for line in LINES.lines().map(str::trim).filter(|line| !line.is_empty()) {
        std::fs::write(&file, format!("# first line\n\n  {line}\nport 0\nunixsocket \"\"\n")).unwrap();
        let arguments = [file.to_str().unwrap()];
        note(&mut differences, line, we_say(&arguments), redis_says(&arguments, folder.path()));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Lines of every kind, good and bad.
const LINES: &str = r#"
    bogus
    bogus 1 2 3
    port
    port ""
    port 1 2
    port -1
    port 65536
    port +1
    port 01
    port 1x
    port " 1"
    timeout 2147483648
    timeout 99999999999999999999
    databases 0
    hz 100000
    hz -1
    daemonize NO
    daemonize 1
    protected-mode yes no
    maxmemory 1kb
    maxmemory 1 kb
    maxmemory kb
    maxmemory ""
    maxmemory -1
    maxmemory 1.5gb
    maxmemory-clients 10%
    maxmemory-clients %
    maxmemory-clients -1%
    maxmemory-clients 101%
    maxmemory-clients 1q
    maxmemory-policy LRU
    maxmemory-policy allkeys-lru volatile-lru
    maxclients 0
    maxclients -1
    maxclients 4294967296
    unixsocketperm 700
    unixsocketperm 8
    unixsocketperm 1777
    proto-max-bulk-len 1
    client-query-buffer-limit 1mb
    client-query-buffer-limit 1k
    loglevel Verbose
    syslog-facility local8
    supervised maybe
    appendfsync sometimes
    oom-score-adj absolute
    oom-score-adj maybe
    oom-score-adj-values 1 2
    oom-score-adj-values 1 2 3
    oom-score-adj-values 1 2 x
    oom-score-adj-values 1 2 5000
    oom-score-adj-values "0 200 800"
    save
    save 1
    save 0 1
    save 1 -1
    save 1 x
    save 900 1 300 10
    save "900 1 300 10"
    save ""
    save "x
    save 'x'y
    client-output-buffer-limit normal 0 0
    client-output-buffer-limit bogus 0 0 0
    client-output-buffer-limit master 0 0 0
    client-output-buffer-limit slave 1x 0 0
    client-output-buffer-limit slave 1kb 2mb -1
    client-output-buffer-limit slave 1kb 2mb 60 pubsub 1 2 3
    notify-keyspace-events KEA
    notify-keyspace-events K E
    notify-keyspace-events
    bind
    bind ""
    bind 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
    replicaof localhost
    replicaof localhost 70000
    replicaof localhost x
    replicaof no one
    slaveof no one
    latency-tracking-info-percentiles 50 x
    latency-tracking-info-percentiles 50 101
    latency-tracking-info-percentiles -1
    latency-tracking-info-percentiles 0 100 99.99
    latency-tracking-info-percentiles ""
    dbfilename a/b
    appendfilename a\b
    appendfilename ""
    appenddirname ""
    appenddirname a/b
    cluster-announce-hostname a_b
    cluster-announce-hostname a.b-c
    proc-title-template {title} {bogus}
    proc-title-template {title
    proc-title-template ""
    proc-title-template {{x}
    shutdown-on-sigint save nosave
    shutdown-on-sigint now force
    shutdown-on-sigint bogus
    shutdown-on-sigterm
    shutdown-on-sigterm ""
    rename-command
    rename-command bogus x
    rename-command get set
    include
    loadmodule
    foo.bar
    sentinel monitor a
    list-max-ziplist-entries 5
    list-max-ziplist-entries
    lua-replicate-commands no
    list-max-ziplist-size -3
    slave-read-only x
    enable-debug-command local
    enable-debug-command maybe
    dir
    dir /does/not/exist
    dir /
    requirepass "a\x41\n"
    requirepass foo"bar"
    requirepass "foo"bar
    requirepass 'a\'b'
    logfile /does/not/exist
    tcp-keepalive 10 # comment
    slowlog-log-slower-than -2
    lua-time-limit 100
    sanitize-dump-payload clients
    tls-auth-clients optional
    PORT 0
    "port" 0
"#;

#[test]
fn options_are_judged_alike() {
    if is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for options in [
        &["--port", "x"][..],
        &["--port"],
        &["--port", "--daemonize", "no"],
        &["--bogus", "1", "--port", "0"],
        &["--save", "--port", "x"],
        &["--save", "60", "--port", "0"],
        &["--save", "60 1", "--port", "x"],
        &["--port x"],
        &["--port 0", "--timeout", "x y"],
        &["--timeout", "1", "2"],
        &["--loglevel", "verbose", "loud"],
        &["--requirepass", "--timeout", "--port", "x"],
        &["--bind", "127.0.0.1", "::1", "--port", "-1"],
        &["--port", "0", "--save"],
        &["--port", "0", "--save", ""],
        &["--sentinelx"],
        &["-port", "0"],
        &["--port", "0", "trailing"],
    ] {
        assert_eq!(we_say(options), redis_says(options, folder.path()), "{options:?}");
    }
}

/// A redis-server on a Unix socket of its own.
struct Redis {
    child: Child,
    socket: PathBuf,
    folder: tempfile::TempDir,
}

impl Redis {
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let file = folder.path().join("redis.conf");
        std::fs::write(&file, config.replace("SOCKET", socket.to_str().unwrap())).unwrap();
        let child = Command::new(SERVER)
            .arg(&file)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let redis = Self { child, socket, folder };
        for _ in 0..200 {
            if redis.ask(&[b"PING".to_vec()]).trim() == "PONG" {
                return redis;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("redis-server does not answer");
    }

    fn ask(&self, words: &[Vec<u8>]) -> String {
        let words = words.iter().map(|word| text(word));
        let output = Command::new(CLIENT).arg("-s").arg(&self.socket).args(words).output().unwrap();
        text(&output.stdout)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Asked rather than killed: it then leaves at once, without threads that linger.
        self.ask(&[b"SHUTDOWN".to_vec(), b"NOSAVE".to_vec(), b"NOW".to_vec()]);
        for _ in 0..200 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        drop(self.child.kill());
    }
}

#[test]
fn config_set_answers_alike() {
    if is_missing() {
        return;
    }
    let redis = Redis::start("port 0\nunixsocket SOCKET\nsave \"\"\n");
    let store = ConfigStore::new(Config { port: 0, save: Vec::new(), ..Config::default() }, None);
    let mut differences = Vec::new();
    for words in SETS.lines().map(str::trim).filter(|words| !words.is_empty()) {
        let pairs = split_arguments(words.as_bytes()).unwrap();
        let mut command = vec![b"CONFIG".to_vec(), b"SET".to_vec()];
        command.extend(pairs.iter().cloned());
        note(&mut differences, words, set(&store, words), redis.ask(&command).trim_end().to_owned());
        // What it holds afterwards.
        for name in pairs.iter().step_by(2).filter(|name| *name != b"dir") {
            let theirs = redis.ask(&[b"CONFIG".to_vec(), b"GET".to_vec(), name.clone()]);
            let ours = store.get(&[name]);
            let ours = match ours.first() {
                Some((name, value)) => format!("{}\n{}", text(name), text(value)),
                None => String::new(),
            };
            note(&mut differences, words, ours.trim_end().to_owned(), theirs.trim_end().to_owned());
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Arguments of CONFIG SET that change nothing a test server needs.
const SETS: &str = r#"
    maxmemory 100mb
    MaxMemory 1g timeout 10
    timeout 5 bogus 1
    bogus 1 timeout x
    timeout x bogus 1
    timeout 5 TIMEOUT 6
    timeout ""
    slave-priority x
    slave-priority 5 replica-priority 6
    daemonize yes
    daemonize yes bogus 1
    dir /tmp
    dbfilename x
    save ""
    save "1 2 3"
    save "100 1 200 2"
    save "100  1"
    notify-keyspace-events KEA
    notify-keyspace-events glsE
    notify-keyspace-events Kg$lshzxetd
    client-output-buffer-limit "normal 1mb 2mb 3"
    client-output-buffer-limit "normal 1mb 2mb"
    client-output-buffer-limit "nobody 1mb 2mb 3"
    client-output-buffer-limit "replica 1mb 2mb 3 pubsub 1k 1kb 1"
    client-output-buffer-limit ""
    oom-score-adj-values "1 2"
    oom-score-adj-values "1 2 3"
    latency-tracking-info-percentiles "1 2.5 x"
    latency-tracking-info-percentiles "1 2.50 33.333333"
    latency-tracking-info-percentiles ""
    shutdown-on-sigint "nosave force"
    shutdown-on-sigint "nosave save"
    shutdown-on-sigint ""
    shutdown-on-sigterm "now bogus"
    maxmemory-policy allkeys-random
    maxmemory-policy random
    maxmemory-clients 20%
    maxmemory-clients 200%
    maxmemory-clients 1mb
    hash-max-ziplist-entries 100
    hash-max-listpack-value 1kb
    list-max-listpack-size -5
    loglevel VERBOSE
    hz 0
    hz 1000
    appendfsync never
    replica-read-only maybe
    requirepass ""
    slowlog-log-slower-than -5
    proto-max-bulk-len 5
    cluster-announce-hostname "a b"
    proc-title-template "{nothing}"
    repl-backlog-size 0
    acl-pubsub-default all
    lua-time-limit 50
    enable-debug-command yes
    unixsocketperm 7
    port 70000
"#;

#[test]
fn config_rewrite_writes_alike() {
    if is_missing() {
        return;
    }
    let file = "# a comment\nport 0\n\n\nunixsocket SOCKET\nsave \"\"\ntimeout 5\ntimeout 6\n# another\n\
                maxmemory 100mb\nslave-priority 50\nbind 127.0.0.1 ::1\nclient-output-buffer-limit normal 1kb 2 3\n\
                rename-command debug \"\"\nrequirepass \"\"\n   hz    20   \n";
    let redis = Redis::start(file);
    let folder = redis.folder.path();
    let old = std::fs::read(folder.join("redis.conf")).unwrap();
    let arguments = vec![folder.join("redis.conf").to_str().unwrap().as_bytes().to_vec()];
    let Ok(Invocation::Run(startup)) = load(&arguments, &mut Cursor::new(b""), &|_| true) else { panic!() };
    let store = ConfigStore::new(startup.config, None);

    for words in [
        "maxmemory 3mb",
        "save '100 5 200 6'",
        "notify-keyspace-events KEA",
        "client-output-buffer-limit 'pubsub 1mb 1000 5'",
        "latency-tracking-info-percentiles '1 2.5'",
        "list-max-listpack-size -3",
        "maxmemory-clients 5%",
        "masterauth 'a\"b c'",
        "oom-score-adj-values '1 2 3'",
        "shutdown-on-sigint 'save force'",
        "replica-announce-ip 1.2.3.4",
        "lua-time-limit 77",
        "appendfsync always",
        "slave-read-only no",
        "bind '127.0.0.1'",
    ] {
        assert_eq!(set(&store, words), "OK");
        let mut command = vec![b"CONFIG".to_vec(), b"SET".to_vec()];
        command.extend(split_arguments(words.as_bytes()).unwrap());
        assert_eq!(redis.ask(&command).trim(), "OK", "{words}");
    }
    assert_eq!(redis.ask(&[b"CONFIG".to_vec(), b"REWRITE".to_vec()]).trim(), "OK");
    let theirs = std::fs::read_to_string(folder.join("redis.conf")).unwrap();

    let mut config = Config::clone(&store.snapshot());
    config.dir = folder.canonicalize().unwrap().to_str().unwrap().as_bytes().to_vec();
    let ours = text(&crate::config::rewrite::rewrite_text(&old, &config, &Config::default(), &[]));
    // What comes below the signature has no order; the list of users is not ours yet.
    let parts = |text: &str| {
        let (kept, added) = text.split_once("# Generated by CONFIG REWRITE\n").unwrap();
        let mut added: Vec<String> =
            added.lines().filter(|line| !line.starts_with("user ")).map(str::to_owned).collect();
        added.sort();
        (kept.to_owned(), added)
    };
    assert_eq!(parts(&ours), parts(&theirs));
}
