#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn values_are_read() {
    let mut extended = Extended::default();
    apply(&mut extended, "--rate", "2.5k/s").unwrap();
    apply(&mut extended, "--arrival", "poisson").unwrap();
    let rate = extended.rate.unwrap();
    assert!((rate.per_second - 2_500.0).abs() < 1e-9 && rate.open_loop);
    assert_eq!(rate.arrival, Arrival::Poisson);
    apply(&mut extended, "--size", "10-12").unwrap();
    assert_eq!(extended.sizes, [10, 11, 12]);
    apply(&mut extended, "--size", "1,2,300").unwrap();
    assert_eq!(extended.sizes, [1, 2, 300]);
    apply(&mut extended, "--value", "compressible:25%").unwrap();
    assert_eq!(extended.value, ValueKind::Compressible(0.25));
    apply(&mut extended, "--max-errors", "0.5%").unwrap();
    assert_eq!(extended.max_errors, Some(ErrorBudget::Percent(0.5)));
    apply(&mut extended, "--pin", "0-2,5").unwrap();
    assert_eq!(extended.cpus, [0, 1, 2, 5]);
    apply(&mut extended, "--target", "a:1,[::1]:2").unwrap();
    assert_eq!(extended.targets, [("a".to_owned(), 1), ("::1".to_owned(), 2)]);
}

#[test]
fn mistakes_name_option_and_value() {
    let mut extended = Extended::default();
    for (name, value) in [
        ("--cooldown", "soon"),
        ("--ramp-clients", "1:2:3"),
        ("--ramp-clients", "5:1:1:1s"),
        ("--ttl", "5-1"),
        ("--hash-tag", "all"),
        ("--op", "x=1"),
        ("--op", "get weight=much"),
        ("--speed", "-1"),
        ("--agents", "host"),
        ("--agents", "a:1=0"),
        ("--allow-target", "10.0.0.0/40"),
        ("--target-policy", "random"),
        ("--rfr", "maybe"),
        ("--num-functions", "0"),
        ("--output", "pdf"),
        ("--rate", "x"),
        ("--keys", "y"),
        ("--size", "9-1"),
        ("--warmup", ""),
    ] {
        let error = apply(&mut extended, name, value).unwrap_err();
        assert!(error.contains(name) && error.contains(value), "{error}");
    }
    assert_eq!(apply(&mut extended, "--rdma", ""), Err("--rdma is not supported".to_owned()));
}

#[test]
fn every_definition_is_applied() {
    for definition in DEFINITIONS.iter().filter(|d| !d.help.starts_with("Not supported")) {
        let result = apply(&mut Extended::default(), definition.name, "\u{0}");
        if let Err(error) = result {
            assert!(!error.ends_with("is not supported"), "{error}");
        }
    }
}

#[test]
fn steps_lives_and_operations_are_read() {
    let mut extended = Extended::default();
    apply(&mut extended, "--ramp-clients", "10:35:10:2s").unwrap();
    assert_eq!((extended.ramp_clients.as_slice(), extended.ramp_step), (&[10, 20, 30, 35][..], Duration::from_secs(2)));
    apply(&mut extended, "--ttl", "1-3").unwrap();
    let words: Vec<String> = extended.ttls.iter().map(|ttl| ttl.words().join(" ")).collect();
    assert_eq!(words, ["EX 1", "EX 2", "EX 3"]);
    apply(&mut extended, "--ttl", "1500ms").unwrap();
    assert_eq!(extended.ttls[0].words(), ["PX", "1500"]);
    apply(&mut extended, "--ttl", "1h-10h").unwrap();
    assert_eq!((extended.ttls.len(), extended.ttls[0].ms, extended.ttls[63].ms), (64, 3_600_000, 36_000_000));
    apply(&mut extended, "--op", "read weight=9 keys=zipf:1.1 size=5,50 ttl=60 command=GET user:__rand_int__").unwrap();
    let read = &extended.operations[0];
    assert_eq!((read.name.as_str(), read.weight, read.command.len()), ("read", 9, 2));
    assert_eq!((read.sizes.as_slice(), read.ttls[0].ms), (&[5, 50][..], 60_000));
}

#[test]
fn contradictions_come_with_a_hint() {
    let fatal = |words: &str| {
        let arguments: Vec<std::ffi::OsString> = words.split(' ').map(Into::into).collect();
        match crate::options::parse(&arguments) {
            crate::options::Parsed::Fatal(text) => text,
            other => panic!("{words}: {other:?}"),
        }
    };
    for (words, hint) in [
        ("-n 5 --duration 1s", "leave one"),
        ("--cooldown 1s", "needs --duration"),
        ("--ramp-clients 1:2:1:1s -n 5", "leave out -n"),
        ("--verify", "add -d"),
        ("--keys zipf", "-r or --key-max"),
        ("--hash-tag none --cluster", "proxy"),
        ("--record x", "--duration"),
        ("--replay x --rate 5", "--speed"),
        ("--agents a:1 -I", "one machine"),
        ("--agents a:1,b:2 --tolerate-agents 2", "less than"),
        ("--max-errors 5", "--on-error"),
        ("--rfr yes", "--cluster"),
    ] {
        assert!(fatal(words).contains(hint), "{words}: {}", fatal(words));
    }
}
