//! What is sent, beyond redis-benchmark: checked values, lives, tags, tables, functions, recorded traffic, and cleaning up.
#![allow(clippy::unwrap_used)]

mod support;

use std::{thread, time::Duration};

use serde_json::Value;
use support::{Redis, ours, ours_with, spawn_ours, words};

fn json(redis: &Redis, options: &str) -> Value {
    let output = ours(redis.port, &format!("--output json {options}"));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn values_are_verified() {
    let redis = Redis::start(&[]);
    for kind in ["fixed", "random"] {
        redis.ask(&["FLUSHALL"]);
        let options = format!("--verify -d 40 --value {kind} -r 100 -P 4 -n 2000");
        assert!(ours(redis.port, &format!("-q {options} --mix set=1,get=1")).status.success(), "{kind}");
        assert!(ours(redis.port, &format!("-q {options} -t set,get")).status.success(), "{kind}");
        let rated = format!("-q --verify -d 40 --value {kind} -r 100 -n 500 --rate 5000 -t get");
        assert!(ours(redis.port, &rated).status.success(), "{kind}");
    }
    // Another key's value, a changed byte, and something short.
    let other = redis.ask(&["GET", "key:000000000001"]);
    redis.ask(&["SET", "key:000000000002", &other]);
    redis.ask(&["SETRANGE", "key:000000000003", "30", "!"]);
    redis.ask(&["SET", "key:000000000004", "short"]);
    redis.ask(&["DEL", "key:000000000005"]);
    let output = ours(redis.port, "--verify -d 40 -r 100 --keys seq -n 100 -t get --on-error count --output json");
    assert_eq!(output.status.code(), Some(4));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let test = &report["tests"][0];
    assert_eq!(test["errors"]["corrupt"]["count"], 3, "{test:#}");
    assert_eq!((&test["misses"], &test["hits"]), (&Value::from(1), &Value::from(96)), "{test:#}");
    let stopped = ours(redis.port, "--verify -d 40 -r 100 --keys seq -n 100 -c 1 -t get -q");
    assert_eq!(stopped.status.code(), Some(1));
    let text = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(text.contains("key number 000000000002 is corrupt: it is the value of key number 000000000001"), "{text}");
    assert!(String::from_utf8_lossy(&stopped.stdout).contains("GET: "), "what was measured is reported: {stopped:?}");
}

#[test]
fn keys_live_as_long_as_asked() {
    let redis = Redis::start(&[]);
    assert!(ours(redis.port, "-q -n 200 -r 200 --keys seq --ttl 100s-300s -t set").status.success());
    let lives: Vec<i64> =
        (0..200).map(|key| redis.ask(&["TTL", &format!("key:{key:012}")])[1..].parse().unwrap()).collect();
    assert!(lives.iter().all(|life| (90..=300).contains(life)), "{lives:?}");
    assert!(lives.iter().max().unwrap() - lives.iter().min().unwrap() > 100, "{lives:?}");
    redis.ask(&["SET", "k", "v"]);
    assert!(ours_with(redis.port, &words("-q -n 1 -c 1 --ttl 50 expire k __ttl__"), "").status.success());
    assert!((45..=50).contains(&redis.ask(&["TTL", "k"])[1..].parse::<i64>().unwrap()));
}

#[test]
fn tags_spread_and_clients_have_ranges() {
    let redis = Redis::start(&[]);
    assert!(ours(redis.port, "-q -n 300 -r 5 --hash-tag spread -t set").status.success());
    let keys: u64 = redis.ask(&["DBSIZE"])[1..].parse().unwrap();
    assert!(keys > 250, "{keys} keys of 5 numbers");
    redis.ask(&["FLUSHALL"]);
    assert!(ours(redis.port, "-q -c 7 --per-client 30 --keys seq-per-client -t set --threads 2").status.success());
    assert_eq!(redis.ask(&["DBSIZE"]), ":210");
    redis.ask(&["FLUSHALL"]);
    assert!(ours(redis.port, "-q -c 3 -n 600 -r 300 -P 5 --keys seq-per-client -t mset").status.success());
    assert_eq!(redis.ask(&["DBSIZE"]), ":300");
}

#[test]
fn operations_of_a_mix_have_settings_of_their_own() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("mix.toml");
    let text = "clients = 4\n[run]\nrequests = 1000\n[run.set]\nkeys = \"seq\"\nkey-max = 49\nsize = 7\n\
                [run.read]\nweight = 3\nkey-max = 99\ncommand = \"GET key:__rand_int__\"\n";
    std::fs::write(&file, text).unwrap();
    let report = json(&redis, &format!("--script {}", file.display()));
    let test = &report["tests"][0];
    assert_eq!(test["name"], "run: MIX set=1,read=3");
    let rows = test["per_op"].as_array().unwrap();
    assert_eq!((&rows[0]["name"], &rows[1]["name"]), (&"SET".into(), &"READ".into()));
    assert_eq!(redis.ask(&["DBSIZE"]), ":50");
    assert_eq!(redis.ask(&["STRLEN", "key:000000000049"]), ":7");
    assert!(test["misses"].as_u64().unwrap() > 100, "half of the reads are past the writes: {test:#}");
}

#[test]
fn a_table_and_functions() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("rows.csv");
    std::fs::write(&file, "id,name\n1,Ada\n2,\"Grace, H.\"\n3,Alan\n").unwrap();
    let options =
        format!("-q -n 60 -c 2 --dataset {} --maxdocs 2 set user:__field:id__ __field:name__", file.display());
    assert!(ours(redis.port, &options).status.success());
    assert_eq!(redis.ask(&["GET", "user:2"]), "Grace, H.");
    assert_eq!(redis.ask(&["DBSIZE"]), ":2");
    let wrong = ours(redis.port, &format!("--dataset {} set a __field:age__", file.display()));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("it has id, name"), "{wrong:?}");
    let output = ours(redis.port, "-q -n 20 -c 2 -t fcall --num-keys-in-fcall 2");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(redis.calls("fcall"), 20);
    let output = ours(redis.port, "-q -n 3 -c 1 -t function_load --num-functions 3");
    assert!(String::from_utf8_lossy(&output.stdout).contains("FUNCTION LOAD: "), "{output:?}");
}

#[test]
fn recorded_traffic_is_sent_again() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("traffic");
    let path = file.display();
    let recorder = spawn_ours(redis.port, &format!("--record {path} --duration 1500ms"));
    while redis.ask(&["CLIENT", "LIST"]).matches("cmd=monitor").count() == 0 {
        thread::sleep(Duration::from_millis(20));
    }
    ours(redis.port, "-q -n 300 -c 3 -r 50 --dbnum 2 -t set,incr");
    let output = recorder.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("commands recorded"), "{output:?}");
    let other = Redis::start(&[]);
    let report = json(&other, &format!("--replay {path} --speed max"));
    let test = &report["tests"][0];
    assert_eq!((other.calls("set"), other.calls("incr")), (300, 300), "{test:#}");
    assert_eq!(other.ask(&["DBSIZE"]), ":0");
    assert!(other.ask(&["INFO", "keyspace"]).contains("db2:keys="), "{}", other.ask(&["INFO", "keyspace"]));
    // With its own pace it is an open loop.
    let paced = json(&other, &format!("--replay {path} --speed 2"));
    let test = &paced["tests"][0];
    assert_eq!(test["response"]["count"], test["requests"]);
    assert_eq!(other.calls("incr"), 600);
}

#[test]
fn monitor_logs_and_append_only_files_are_replayed() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("log");
    let log = "1700000000.000000 [0 1.1.1.1:1] \"rpush\" \"l\" \"a\"\n1700000000.300000 [0 2.2.2.2:2] \"rpush\" \"m\" \"x\"\n\
               1700000000.600000 [0 1.1.1.1:1] \"rpush\" \"l\" \"b\"\n1700000000.600000 [0 1.1.1.1:1] \"auth\" \"x\"\n";
    std::fs::write(&file, log).unwrap();
    let output = ours(redis.port, &format!("--replay {} --output json", file.display()));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let seconds = report["tests"][0]["seconds"].as_f64().unwrap();
    assert!((0.55..2.0).contains(&seconds), "{seconds}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 recorded commands are left out"), "{output:?}");
    assert_eq!((redis.ask(&["LINDEX", "l", "1"]), redis.ask(&["LLEN", "m"])), ("b".to_owned(), ":1".to_owned()));
    std::fs::write(
        &file,
        "*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n",
    )
    .unwrap();
    assert!(ours(redis.port, &format!("-q --replay {}", file.display())).status.success());
    assert!(redis.ask(&["INFO", "keyspace"]).contains("db1:keys=1"));
}

#[test]
fn only_what_was_made_is_deleted() {
    let redis = Redis::start(&[]);
    redis.ask(&["MSET", "key:000000000500", "x", "key:__rand_int__", "x", "mine", "x"]);
    let output = ours(redis.port, "-q -n 500 -r 100 -t set,lpush,zadd,mset --cleanup --spread");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("keys deleted"), "{output:?}");
    assert_eq!(redis.ask(&["DBSIZE"]), ":3");
    // So many numbers that they are looked for, with tags, in another database.
    let output = ours(redis.port, "-q -n 300 -r 100000000 --hash-tag spread --dbnum 3 -t set --cleanup");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cleanup: 300 keys deleted"), "{output:?}");
    let output = ours_with(redis.port, &words("-q -n 10 --cleanup set mine2 y"), "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cleanup: 1 keys deleted"), "{output:?}");
    assert_eq!(redis.ask(&["DBSIZE"]), ":3");
}

#[test]
fn emptying_needs_a_yes() {
    let redis = Redis::start(&[]);
    redis.ask(&["SET", "a", "b"]);
    let refused = ours_with(redis.port, &words("-n 1 -c 1 --rate 10 flushall"), "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("add --yes"), "{refused:?}");
    assert_eq!(redis.ask(&["DBSIZE"]), ":1");
    assert!(ours_with(redis.port, &words("-n 1 -c 1 -q --rate 10 --yes flushall"), "").status.success());
    assert_eq!(redis.ask(&["DBSIZE"]), ":0");
    redis.ask(&["SET", "a", "b"]);
    // As redis-benchmark: no questions.
    assert!(ours_with(redis.port, &words("-n 1 -c 1 -q flushall"), "").status.success());
    assert_eq!(redis.ask(&["DBSIZE"]), ":0");
}
