//! Debian's tools against our server, and our tools against Debian's server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Ran, oxidis, peer, run};
use testkit::Server;

/// Tests of `redis-benchmark` that need nothing but what this server serves.
const TESTS: &str = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,lrange_300,lrange_500,lrange_600,mset";

fn rates(ran: &Ran) -> Vec<(String, f64)> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut rates = Vec::new();
    for line in ran.out.split(['\r', '\n']) {
        let Some((title, rest)) = line.rsplit_once(": ") else { continue };
        let Some(rate) = rest.split_once(" requests per second").map(|(rate, _)| rate) else { continue };
        rates.push((title.to_owned(), rate.parse().unwrap()));
    }
    rates
}

fn check_benchmark(server: &Server, extra: &[&str]) {
    let port = server.port().to_string();
    let mut args = vec!["-p", &port, "-q", "-t", TESTS];
    args.extend(extra);
    let ran = run(&peer("redis-benchmark"), &args, "");
    let rates = rates(&ran);
    assert_eq!(rates.len(), 20, "a rate for each test: {ran:?}");
    for (title, rate) in rates {
        assert!(rate > 50.0, "{title}: {rate}");
    }
    assert!(!ran.out.contains("Error") && !ran.err.contains("Error"), "{ran:?}");
}

#[test]
fn their_benchmark_runs_on_our_server() {
    let server = Server::oxidis(&["--io-threads", "2"]);
    check_benchmark(&server, &["-n", "5000"]);
    check_benchmark(&server, &["-n", "20000", "-P", "64", "-r", "10000"]);
    check_benchmark(&server, &["-n", "5000", "-c", "200", "-r", "1000"]);
    check_benchmark(&server, &["-n", "5000", "-3", "-d", "300"]);
    check_benchmark(&server, &["-n", "2000", "-k", "0", "-c", "20", "-t", TESTS]);
    check_benchmark(&server, &["-n", "10000", "--threads", "2", "-P", "16"]);
    let mut client = server.client();
    client.check("PING", "+PONG");
    assert_eq!(client.info("total_error_replies").as_deref(), Some("0"), "{:?}", client.run("INFO errorstats"));
}

#[test]
fn their_benchmark_sends_any_command() {
    let server = Server::oxidis(&["--io-threads", "4"]);
    let port = server.port().to_string();
    for command in [
        vec!["ZADD", "z", "1", "__rand_int__"],
        vec!["SET", "k:__rand_int__", "v", "EX", "100"],
        vec!["EVAL_IS_NOT_HERE"],
        vec!["LPUSH", "l", "x"],
    ] {
        let mut args = vec!["-p", &port, "-q", "-n", "3000", "-r", "1000", "-P", "8"];
        args.extend(&command);
        let ran = run(&peer("redis-benchmark"), &args, "");
        if command[0].starts_with("EVAL") {
            assert!(format!("{}{}", ran.out, ran.err).contains("unknown command"), "{ran:?}");
        } else {
            assert_eq!(rates(&ran).len(), 1, "{ran:?}");
        }
    }
    let mut client = server.client();
    client.check("LLEN l; ZCARD z", ":3000; :...");
}

#[test]
fn their_client_works_with_our_server() {
    let server = Server::oxidis(&["--io-threads", "2"]);
    let port = server.port().to_string();
    let cli = peer("redis-cli");
    let ask = |args: &[&str], input: &str| {
        let mut all = vec!["-p", &port];
        all.extend(args);
        let ran = run(&cli, &all, input);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.out
    };
    assert_eq!(ask(&["SET", "a", "1"], ""), "OK\n");
    assert_eq!(ask(&["--no-raw", "INCR", "a"], ""), "(integer) 2\n");
    assert_eq!(ask(&["--no-raw", "GET", "none"], ""), "(nil)\n");
    assert_eq!(ask(&["--no-raw", "RPUSH", "l", "x", "y z"], ""), "(integer) 2\n");
    assert_eq!(ask(&["--no-raw", "LRANGE", "l", "0", "-1"], ""), "1) \"x\"\n2) \"y z\"\n");
    assert_eq!(ask(&["-3", "--no-raw", "HGETALL", "none"], ""), "(empty hash)\n");
    assert_eq!(ask(&["-n", "3", "DBSIZE"], ""), "0\n");
    assert_eq!(ask(&["-x", "SET", "piped"], "from a pipe"), "OK\n");
    assert_eq!(ask(&["GET", "piped"], ""), "from a pipe\n");
    assert_eq!(ask(&[], "SET b 5\nINCRBY b 5\nGET b\n"), "OK\n10\n10\n");
    assert!(ask(&["INFO", "server"], "").contains("redis_version:7.2."));
    assert_eq!(ask(&["-r", "3", "INCR", "counter"], ""), "1\n2\n3\n");
    let mut protocol = String::new();
    for index in 0..5_000 {
        let (key, value) = (format!("pipe:{index}"), index.to_string());
        protocol.push_str(&format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len()));
    }
    let report = ask(&["--pipe"], &protocol);
    assert!(report.contains("errors: 0, replies: 5000"), "{report}");
    assert_eq!(ask(&["GET", "pipe:4999"], ""), "4999\n");
    let keys = ask(&["--scan", "--pattern", "pipe:1*"], "");
    assert_eq!(keys.lines().count(), 1111);
    let big = ask(&["--bigkeys", "-i", "0"], "");
    assert!(big.contains("Biggest string"), "{big}");
    let sizes = ask(&["--memkeys", "-i", "0"], "");
    assert!(sizes.contains("Sampled 5005 keys"), "{sizes}");
    let latency = run(&cli, &["-p", &port, "--raw", "-i", "1", "PING"], "");
    assert_eq!(latency.out, "PONG\n");
}

#[test]
fn our_benchmark_runs_on_their_server() {
    let server = Server::redis(&[]);
    let port = server.port().to_string();
    for extra in [&["-n", "5000"][..], &["-n", "20000", "-P", "64", "-r", "1000", "-c", "200"], &["-n", "5000", "-3"]] {
        let mut args = vec!["benchmark", "-p", &port, "-q", "-t", TESTS];
        args.extend(extra);
        let ran = oxidis(&args, "");
        assert_eq!(rates(&ran).len(), 20, "{ran:?}");
    }
    let mut client = server.client();
    let before = common::info_number(&mut client, "total_commands_processed");
    let ran = oxidis(&["benchmark", "-p", &port, "-q", "-n", "12345", "-P", "7", "-c", "33", "INCR", "exact"], "");
    assert_eq!(rates(&ran).len(), 1, "{ran:?}");
    client.check("GET exact", "12345");
    assert!(common::info_number(&mut client, "total_commands_processed") >= before + 12_345);
}

#[test]
fn our_client_works_with_their_server() {
    let server = Server::redis(&[]);
    let port = server.port().to_string();
    let cli = peer("redis-cli");
    // One after the other on one server, so each writes keys of its own.
    for (index, words) in [
        &["--no-raw", "SET", "k", "1"][..],
        &["--no-raw", "LRANGE", "nothing", "0", "-1"],
        &["--no-raw", "GET", "k"],
        &["-3", "--no-raw", "HGETALL", "h"],
        &["--no-raw", "INCR", "h"],
        &["NOSUCH"],
        &["--csv", "LRANGE", "l", "0", "-1"],
        &["-n", "2", "DBSIZE"],
        &["--no-raw", "COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"],
        &["-e", "INCR", "h"],
    ]
    .iter()
    .enumerate()
    {
        server.client().run("FLUSHALL");
        server.client().check("HSET h f 1 g 2; RPUSH l a \"b c\" \"d\\n\"", ":2; :3");
        let mut args = vec!["-p", port.as_str()];
        args.extend(*words);
        let theirs = run(&cli, &args, "");
        server.client().run("FLUSHALL");
        server.client().check("HSET h f 1 g 2; RPUSH l a \"b c\" \"d\\n\"", ":2; :3");
        args.insert(0, "cli");
        let ours = oxidis(&args, "");
        assert_eq!((ours.code, &ours.out), (theirs.code, &theirs.out), "case {index}: {words:?}\n{ours:?}\n{theirs:?}");
    }
    let input = "SET a 1\nINCR a\nGET nothing\nLPUSH a x\nMULTI\nGET a\nEXEC\n";
    let theirs = run(&cli, &["-p", &port], input);
    let ours = oxidis(&["cli", "-p", &port], input);
    assert_eq!(ours.out, theirs.out);
}
