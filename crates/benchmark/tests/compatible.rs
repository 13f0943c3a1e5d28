//! Debian's redis-benchmark 7.0 beside ours, on Debian's redis-server: the same commands, the
//! same output once numbers are masked, the same errors and exit codes.
//!
//! Differences of 7.2 (which ours follows) from 7.0: the test XADD and the option `--seed`.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Redis, ours, ours_with, shape, theirs, words};

#[test]
fn reports_have_the_same_shape() {
    let redis = Redis::start(&[]);
    for options in [
        "-n 2000 -t set",
        "-n 2000 -t set,get -q",
        "-n 2000 -t set,get --csv",
        "-n 2000 -t set --csv -q",
        "-n 2000 -t set --threads 2",
        "-n 200 -t get -k 0",
        "-n 2000 -t get -P 4 -c 10 -d 100 -r 50",
        "-n 1000 -c 5 set a b",
        "-n 1000 -c 5 -q set a b",
        "-n 1000 -t set --precision 1",
        "-t nonsense",
        "-t nonsense -q",
        "-t nonsense --csv",
    ] {
        let (mut mine, mut theirs) = (shape(&ours(redis.port, options)), shape(&theirs(redis.port, options)));
        // How many rows a distribution has before its masked copies depends on the samples.
        mine.dedup();
        theirs.dedup();
        assert_eq!(mine, theirs, "{options}");
    }
}

#[test]
fn the_server_sees_the_same_commands() {
    let redis = Redis::start(&[]);
    let suite = "ping_inline,ping_mbulk,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,\
                 zpopmin,lrange,mset";
    for options in [
        format!("-n 1 -c 1 -q -t {suite}"),
        "-n 1 -c 1 -q -t lrange_300".to_owned(),
        "-n 4 -c 1 -q -P 2 -d 20 -t set,mset".to_owned(),
        "-n 1 -c 1 -q -r 1 -t zadd,set,sadd".to_owned(),
        "-n 2 -c 1 -q --dbnum 3 set some:__rand_int__ value".to_owned(),
        "-n 1 -c 1 -q -3 --enable-tracking --dbnum 2 get x".to_owned(),
        "-n 1 -c 1 -q -u redis://127.0.0.1/4 ping".replace("ping", "echo hi"),
    ] {
        let mut seen = Vec::new();
        for is_ours in [true, false] {
            let monitor = redis.monitor();
            let uri_fixed = options.replace("127.0.0.1/", &format!("127.0.0.1:{}/", redis.port));
            let output = if is_ours { ours(redis.port, &uri_fixed) } else { theirs(redis.port, &uri_fixed) };
            assert!(output.status.success(), "{options}: {output:?}");
            seen.push(monitor.commands(&redis));
        }
        assert_eq!(seen[0], seen[1], "{options}");
    }
}

#[test]
fn xadd_is_that_of_7_2() {
    let redis = Redis::start(&[]);
    let monitor = redis.monitor();
    ours(redis.port, "-n 1 -c 1 -q -t xadd");
    let commands = monitor.commands(&redis);
    assert_eq!(commands.last().map(String::as_str), Some(r#"0 "XADD" "mystream" "*" "myfield" "VXK""#));
}

#[test]
fn counts_are_exact() {
    let redis = Redis::start(&[]);
    for (options, calls) in [
        ("-n 100 -P 16 -t set", 100),
        ("-n 10010 -P 20 -c 5 -t set", 10_010),
        ("-n 1000 -c 5 --threads 3 -t set", 1_000),
        ("-n 7 -c 50 -t set", 7),
        ("-n 123 -k 0 -c 5 -t set", 123),
        ("-c 7 --per-client 11 -t set", 77),
        ("--rate 5000 -n 777 -t set", 777),
        ("--rate 5000 -P 4 -c 3 -n 777 -t set", 777),
    ] {
        redis.ask(&["CONFIG", "RESETSTAT"]);
        let output = ours(redis.port, &format!("-q {options}"));
        assert!(output.status.success(), "{options}: {output:?}");
        assert_eq!(redis.calls("set"), calls, "{options}");
    }
}

#[test]
fn the_keyspace_is_filled_as_asked() {
    let redis = Redis::start(&[]);
    ours(redis.port, "-q -n 2000 -r 50 -t set");
    assert_eq!(redis.ask(&["DBSIZE"]), ":50");
    redis.ask(&["FLUSHALL"]);
    ours(redis.port, "-q -n 500 -r 500 --keys seq --threads 2 -t set");
    assert_eq!(redis.ask(&["DBSIZE"]), ":500");
    redis.ask(&["FLUSHALL"]);
    ours(redis.port, "-q -n 500 --key-min 100 --key-max 599 --keys unique -t set");
    assert_eq!(redis.ask(&["DBSIZE"]), ":500");
    assert_eq!(redis.ask(&["EXISTS", "key:000000000599"]), ":1");
}

#[test]
fn the_last_argument_comes_from_standard_input() {
    let redis = Redis::start(&[]);
    let output = ours_with(redis.port, &words("-n 1 -c 1 -q -x set k"), "from stdin\r\n");
    assert!(output.status.success());
    assert_eq!(redis.ask(&["GET", "k"]), "from stdin\r\n");
}

#[test]
fn errors_and_exit_codes_are_the_same() {
    let redis = Redis::start(&["--requirepass", "secret"]);
    for options in ["-n 10 -q set a b", "-a wrong -n 10 -q set a b", "-a secret -n 10 -c 1 -q foo bar"] {
        let (mine, theirs) = (ours(redis.port, options), theirs(redis.port, options));
        assert_eq!(mine.status.code(), theirs.status.code(), "{options}");
        assert_eq!(String::from_utf8_lossy(&mine.stderr), String::from_utf8_lossy(&theirs.stderr), "{options}");
    }
    let good = ours(redis.port, "-a secret -n 10 -q set a b");
    assert!(good.status.success(), "{good:?}");
    let user = ours(redis.port, "--user default -a secret -n 10 -q set a b");
    assert!(user.status.success(), "{user:?}");
}

#[test]
fn a_server_that_is_not_there() {
    let output = ours(support::free_port(), "-q");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("Could not connect to Redis at 127.0.0.1:"), "{text}");
    assert!(text.ends_with(": Connection refused\n"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn invalid_options_say_the_same_first_line() {
    for options in ["--nope", "-n", "-r -q"] {
        let (mine, theirs) = (ours(1, options), theirs(1, options));
        let first = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().unwrap().to_owned();
        assert_eq!(first(&mine.stdout), first(&theirs.stdout));
        assert_eq!(mine.status.code(), theirs.status.code());
    }
    let version = ours(1, "--version");
    assert!(version.stdout.starts_with(b"redis-benchmark 7.2.5"));
    assert!(ours(1, "--help").status.success());
}

#[test]
fn a_unix_socket() {
    let redis = Redis::start(&["--unixsocket", "redis.sock"]);
    let path = redis.directory.path().join("redis.sock");
    redis.ask(&["CONFIG", "RESETSTAT"]);
    let output = ours(1, &format!("-s {} -n 200 -P 3 -q -t set", path.display()));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(redis.calls("set"), 200);
}
