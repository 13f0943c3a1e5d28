//! Output and exit code beside those of Debian's redis-cli 7.0, against the same redis-server.
//!
//! Differences from 7.0 that are meant, and therefore not compared: a failed AUTH or SELECT ends the program
//! (`legacy_connect` below compares the old way); big numbers and attributes are shown where 7.0 ends with an error;
//! `--latency` on a terminal shows fractions of milliseconds; `--cluster` colours on terminals only; `--help`,
//! `--version`. From 7.2: subscribed mode at the prompt, `--count`, the check of `-p`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{REDIS_CLI, Server, our_cli, run};

const FORMATS: [&[&str]; 7] =
    [&[], &["--no-raw"], &["--raw"], &["--csv"], &["--json"], &["--quoted-json"], &["-d", ", ", "-D", ";\n"]];
const PROTOCOLS: [&[&str]; 3] = [&[], &["-2"], &["-3"]];

/// Compares one call of both programs.
fn same(server: &Server, arguments: &[&str], input: &str, environment: &[(&str, &str)]) {
    let socket = server.socket();
    let theirs = run(REDIS_CLI, &socket, arguments, input, environment);
    let ours = run(our_cli(), &socket, arguments, input, environment);
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(show(&ours.stdout), show(&theirs.stdout), "output of {arguments:?} with {input:?}");
    assert_eq!(show(&ours.stderr), show(&theirs.stderr), "messages of {arguments:?} with {input:?}");
    assert_eq!(ours.status.code(), theirs.status.code(), "exit code of {arguments:?} with {input:?}");
    assert_eq!(ours.stdout, theirs.stdout, "bytes of {arguments:?}");
}

/// A server with a key of each type.
fn filled() -> Server {
    let server = Server::start(&[]);
    for number in 1..=12 {
        server.redis(&["rpush", "list", &format!("element {number}")]);
    }
    server.redis(&["set", "string", "va\"l\\ue\t\u{7}\u{8}\r\n\u{1}"]);
    server.redis(&["hset", "hash", "a", "1", "b c", "x\ny", "é", "ü"]);
    server.redis(&["zadd", "zset", "1", "a", "2.5", "b"]);
    server.redis(&["sadd", "set", "x"]);
    server.redis(&["xadd", "stream", "1-1", "a", "1", "b", "2"]);
    server.redis(&["xgroup", "create", "stream", "group", "0"]);
    server
}

#[test]
fn replies_of_all_types_in_all_formats() {
    let server = filled();
    let mut calls: Vec<Vec<&str>> =
        ["string", "integer", "double", "null", "array", "set", "map", "verbatim", "true", "false"]
            .iter()
            .map(|kind| vec!["debug", "protocol", kind])
            .collect();
    let lines = [
        "set k v",
        "get string",
        "get nothing",
        "lrange list 0 -1",
        "lrange nothing 0 -1",
        "hgetall hash",
        "hgetall nothing",
        "zrange zset 0 -1 withscores",
        "smembers set",
        "smembers nothing",
        "xrange stream - +",
        "xinfo stream stream full",
        "lpush string x",
        "nosuch command",
        "exec",
        "command info get",
        "config get max*",
        "object help",
        "cluster info",
        "memory doctor",
        "client list id 99999",
        "eval return{1,{2,{3,'a'}},{err='x'},false} 0",
        "-e get string",
        "-e lpush string x",
    ];
    calls.extend(lines.iter().map(|line| line.split(' ').collect()));
    for format in FORMATS {
        for protocol in PROTOCOLS {
            for call in &calls {
                // Of each format, one protocol also as on a terminal.
                let arguments: Vec<&str> = [format, protocol, call].concat();
                same(&server, &arguments, "", &[]);
                if format.is_empty() {
                    same(&server, &arguments, "", &[("FAKETTY", "1")]);
                }
            }
        }
    }
}

#[test]
fn scripts_on_standard_input() {
    let server = filled();
    let script = "set a 1\nget \"a\n\n   \n3 incr a\n0 incr a\nlpush a\nmulti\nincr a\nexec\nselect 3\nget a\n\
                  :set foo\n:bar\nhgetall hash\nselect 99\nrestart\nreset\nget a\nquit\nget a\n";
    same(&server, &[], script, &[]);
    same(&server, &[], script, &[("FAKETTY", "1")]);
    same(&server, &["-3"], script, &[("FAKETTY", "1")]);
    same(&server, &["-n", "2"], "get a\nmulti\nselect 1\ndiscard\nget a", &[]);
    same(&server, &["--csv"], "lrange list 0 -1\nget nothing\n", &[]);
    same(&server, &["-e"], "lpush a\nget a\n", &[]);
}

#[test]
fn arguments_from_standard_input_and_quoted() {
    let server = filled();
    same(&server, &["-x", "set", "a"], "line\nline\n", &[]);
    same(&server, &["get", "a"], "", &[]);
    same(&server, &["-X", "tag", "set", "a", "tag", "xx"], "other", &[]);
    same(&server, &["get", "a"], "", &[]);
    same(&server, &["-X", "tag", "get", "a"], "other", &[]);
    same(&server, &["-x", "-X", "tag", "get", "a"], "", &[]);
    same(&server, &["--quoted-input", "set", "\"a\\x00b\"", "'c d'"], "", &[]);
    same(&server, &["--quoted-input", "get", "\"a"], "", &[]);
    same(&server, &["-r", "3", "-i", "0.01", "lindex", "list", "0"], "", &[]);
    let script = server.folder.path().join("script.lua");
    std::fs::write(&script, "return {KEYS[1],ARGV[1],#KEYS,#ARGV}").unwrap();
    let script = script.display().to_string();
    same(&server, &["--eval", &script, "a", "b", ",", "c"], "", &[]);
    same(&server, &["--eval", &script, "a", "b"], "", &[]);
    same(&server, &["--eval", "/nothing"], "", &[]);
}

#[test]
fn wrong_options_and_no_server() {
    let server = filled();
    for arguments in [&["--nothing"][..], &["-p"], &["-c", "get", "a"], &["-2", "-3", "get", "a"]] {
        same(&server, arguments, "", &[]);
    }
    for arguments in [&["get", "a"][..], &["--scan"], &["--bigkeys"], &[]] {
        let theirs = run(REDIS_CLI, "/nothing", arguments, "get a\n", &[]);
        let ours = run(our_cli(), "/nothing", arguments, "get a\n", &[]);
        assert_eq!(String::from_utf8_lossy(&ours.stderr), String::from_utf8_lossy(&theirs.stderr), "{arguments:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{arguments:?}");
    }
}

#[test]
fn passwords() {
    let server = Server::start(&["--requirepass", "secret"]);
    same(&server, &["-a", "secret", "ping"], "", &[]);
    same(&server, &["--no-auth-warning", "--user", "default", "--pass", "secret", "ping"], "", &[]);
    same(&server, &["ping"], "", &[("REDISCLI_AUTH", "secret")]);
    same(&server, &["-a", "secret", "ping"], "", &[("REDISCLI_AUTH", "wrong")]);
    same(&server, &["ping"], "", &[]);
    let file = server.folder.path().join("password");
    std::fs::write(&file, "secret\n").unwrap();
    let ours = run(our_cli(), &server.socket(), &["--pass-file", file.to_str().unwrap(), "ping"], "", &[]);
    assert_eq!(String::from_utf8_lossy(&ours.stdout), "PONG\n");
}

/// Redis: goes on after a failed AUTH or SELECT. Ours ends, unless it is told to be like that.
#[test]
fn legacy_connect() {
    let server = Server::start(&["--requirepass", "secret"]);
    let socket = server.socket();
    let wrong = [("REDISCLI_AUTH", "wrong")];
    let right = [("REDISCLI_AUTH", "secret")];
    for (arguments, environment) in [(&["ping"][..], &wrong), (&["-n", "99", "set", "a", "b"], &right)] {
        let theirs = run(REDIS_CLI, &socket, arguments, "", environment);
        let ours = run(our_cli(), &socket, arguments, "", environment);
        assert_eq!((ours.stdout.as_slice(), ours.status.code()), (&b""[..], Some(1)), "{arguments:?}");
        assert_eq!(ours.stderr, theirs.stderr, "{arguments:?}");
        let legacy: Vec<&str> = [&["--legacy-connect"], arguments].concat();
        let legacy = run(our_cli(), &socket, &legacy, "", environment);
        assert_eq!((legacy.stdout, legacy.status.code()), (theirs.stdout, theirs.status.code()), "{arguments:?}");
    }
    let script = run(our_cli(), &socket, &["-n", "99"], "set a b\n", &right);
    assert_eq!((script.stdout.as_slice(), script.status.code()), (&b""[..], Some(1)));
}

#[test]
fn walks_through_the_key_space() {
    let server = filled();
    server.redis(&["debug", "populate", "300", "key", "20"]);
    server.redis(&["set", "with space", "x"]);
    for arguments in [
        &["--scan"][..],
        &["--scan", "--pattern", "key:1*"],
        &["--scan", "--quoted-pattern", "\"with*\""],
        &["--no-raw", "--scan", "--pattern", "with*"],
        &["--bigkeys"],
        &["--memkeys"],
        &["--memkeys-samples", "3"],
        &["--hotkeys"],
    ] {
        same(&server, arguments, "", &[]);
    }
    server.redis(&["config", "set", "maxmemory-policy", "allkeys-lfu"]);
    for _ in 0..20 {
        server.redis(&["get", "key:7"]);
    }
    same(&server, &["--hotkeys"], "", &[]);
    let top = run(our_cli(), &server.socket(), &["--bigkeys", "--top", "2"], "", &[]);
    let top = String::from_utf8_lossy(&top.stdout).into_owned();
    assert!(top.contains("\nBiggest hashes:\n           3 fields \"hash\"\n"), "{top}");
}

#[test]
fn pipe_counts_errors_and_replies() {
    let server = filled();
    let input: String = (0..20_000).map(|number| format!("SET p{number} x\r\n")).collect();
    same(&server, &["--pipe"], &input, &[]);
    same(&server, &["--pipe"], &format!("{input}LPUSH p1 x\r\n"), &[]);
    same(&server, &["--pipe"], "", &[]);
    same(&server, &["dbsize"], "", &[]);
}

/// `--stat` must not wait for a full buffer: a pipe sees each line at once.
#[test]
fn stat_and_latency_reach_pipes() {
    let server = filled();
    let socket = server.socket();
    let latency = run(our_cli(), &socket, &["--latency", "-i", "0.1"], "", &[]);
    assert_eq!(String::from_utf8_lossy(&latency.stdout).split_whitespace().count(), 4);
    let latency = run(our_cli(), &socket, &["--latency", "-i", "0.1", "--csv", "--latency-percentiles"], "", &[]);
    assert_eq!(String::from_utf8_lossy(&latency.stdout).split(',').count(), 7);
    let mut child = std::process::Command::new(our_cli())
        .args(["-s", &socket, "--stat", "-i", "0.05"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let first: Vec<String> = lines.by_ref().take(4).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first[0].starts_with("------- data") && first[1].starts_with("keys "), "{first:?}");
    assert!(first[2].starts_with("6 ") && first[2].contains("(+0)"), "{first:?}");
}

#[test]
fn types_that_redis_cli_does_not_know() {
    let server = filled();
    let show =
        |arguments: &[&str]| String::from_utf8(run(our_cli(), &server.socket(), arguments, "", &[]).stdout).unwrap();
    assert_eq!(show(&["-3", "debug", "protocol", "bignum"]), "1234567999999999999999999999999999999\n");
    assert_eq!(show(&["-3", "debug", "protocol", "attrib"]), "Some real reply following the attribute\n");
    assert_eq!(
        show(&["--json-strict", "lpush", "string", "x"]),
        "{\"error\":\"WRONGTYPE Operation against a key holding the wrong kind of value\"}\n"
    );
    for command in [&["set", "a", "b"][..], &["eval", "return 1", "0"], &["json.set", "a", ".", "1"]] {
        assert_eq!(show(&[&["--readonly"], command].concat()), "", "{command:?}");
    }
    assert_eq!(show(&["--readonly", "llen", "list"]), "12\n");
}

/// Walks as one JSON document, and of all primaries of a cluster.
#[test]
fn walks_as_documents() {
    let server = filled();
    server.redis(&["config", "set", "maxmemory-policy", "allkeys-lfu"]);
    let show = |arguments: &[&str]| {
        let ran = run(our_cli(), &server.socket(), arguments, "", &[]);
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    let big = show(&["--bigkeys", "--json-strict", "--top", "1"]);
    assert_eq!(big.lines().count(), 1, "one document and nothing else: {big}");
    assert!(big.starts_with("{\"sampled\":6,\"complete\":true,\"key_name_bytes\":"), "{big}");
    let list = "{\"type\":\"list\",\"keys\":1,\"unit\":\"items\",\"total\":12,\"average\":12.00,\
                \"biggest\":{\"key\":\"list\",\"size\":12},\"top\":[{\"key\":\"list\",\"size\":12}]}";
    assert!(big.contains(list), "{big}");
    assert!(show(&["--memkeys", "--json"]).contains("\"unit\":\"bytes\""));
    let hot = show(&["--hotkeys", "--json"]);
    assert!(hot.starts_with("{\"sampled\":6,\"complete\":true,\"hottest\":[{\"key\":"), "{hot}");
    let statistics = show(&["--keystats", "--json-strict"]);
    assert!(statistics.contains("\"longest\":{\"key\":\"list\",\"size\":12}"), "{statistics}");
    assert!(statistics.contains("\"sizes\":{\"min\":") && statistics.contains("\"key_name_lengths\":"), "{statistics}");
    let text = show(&["--keystats", "--top", "2"]);
    for part in [
        "Keys sampled: 6\n",
        "--- Top 2 key sizes ---\n",
        "list       \"list\" has 12 items\n",
        "Type       Total keys",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// Options of redis-cli that are still to come say so; nothing is ignored.
#[test]
fn what_is_not_there_yet_says_so() {
    let server = filled();
    let socket = server.socket();
    for (arguments, sentence) in [
        (
            &["--ldb", "--eval", "file"][..],
            "--ldb is not available in this version yet: it follows with the script debugger.",
        ),
        (&["--tls", "--cacert", "/nothing", "ping"], "Invalid CA Certificate File/Directory"),
        (&["--cluster", "create", "a:1"], "--cluster create is not available in this version yet"),
        (&["--vset-recall", "k"], "it follows with vector sets"),
    ] {
        let ran = run(our_cli(), &socket, arguments, "", &[]);
        let message = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(1), &b""[..]), "{arguments:?}");
        assert!(message.contains(sentence), "{arguments:?}: {message}");
    }
    let idle = run(our_cli(), &socket, &["--cluster-replicas", "1", "ping"], "", &[]);
    assert_eq!(String::from_utf8_lossy(&idle.stdout), "PONG\n");
    assert!(String::from_utf8_lossy(&idle.stderr).contains("--cluster-replicas changes nothing"), "{idle:?}");
    let near = run(our_cli(), &socket, &["--latancy"], "", &[]);
    assert!(String::from_utf8_lossy(&near.stderr).ends_with("Did you mean '--latency'?\n"), "{near:?}");
}

/// A port without TLS where it is asked for, and the other way round.
#[test]
fn ports_of_the_other_kind_are_told() {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let ask = |options: &[&str]| {
        let output =
            std::process::Command::new(our_cli()).args(["-p", &port]).args(options).arg("ping").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = ask(&["-t", "1", "--tls", "--insecure"]);
    assert!(code == Some(1) && message.contains("does that port speak TLS?"), "{message}");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // What a TLS server answers to a command.
            stream.unwrap().write_all(b"\x15\x03\x03\x00\x02\x02\x46").unwrap();
        }
    });
    let (code, message) = ask(&[]);
    assert_eq!(code, Some(1));
    assert!(message.contains("Protocol error, got \"\\x15\" as reply type byte (a port for TLS?"), "{message}");
}

/// A password of Valkey's variable, which the one of Redis precedes.
#[test]
fn variables_of_valkey() {
    let server = Server::start(&["--requirepass", "secret"]);
    let ask = |environment: &[(&str, &str)]| {
        String::from_utf8(run(our_cli(), &server.socket(), &["ping"], "", environment).stdout).unwrap()
    };
    assert_eq!(ask(&[("VALKEYCLI_AUTH", "secret")]), "PONG\n");
    assert_eq!(ask(&[("VALKEYCLI_AUTH", "wrong"), ("REDISCLI_AUTH", "secret")]), "PONG\n");
}

/// Help on commands, without colours in a pipe.
#[test]
fn help_on_commands() {
    let ask = |words: &[&str]| {
        let ran = run(our_cli(), "/nothing", &[&["help"], words].concat(), "", &[]);
        assert_eq!(ran.status.code(), Some(0));
        String::from_utf8(ran.stdout).unwrap()
    };
    let get = ask(&["get"]);
    assert!(get.starts_with("\n  GET key\n  summary: ") && get.contains("\n  group: string\n"), "{get:?}");
    assert!(ask(&["config", "set"]).contains("CONFIG SET parameter value [parameter value ...]\n"));
    assert!(ask(&["@list"]).contains("\n  BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout\n"));
    assert_eq!(ask(&["gett"]), "There is no help on 'gett'. Did you mean 'GET'?\n\n");
    assert_eq!(ask(&["@lists"]), "There is no help on '@lists'. Did you mean '@list'?\n\n");
}
