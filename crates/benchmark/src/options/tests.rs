#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;

fn options(line: &str) -> Options {
    match parse_line(line) {
        Parsed::Run(options, _) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn parse_line(line: &str) -> Parsed {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse(&words)
}

#[test]
fn defaults_are_those_of_7_2() {
    let options = options("");
    assert_eq!((options.host.as_str(), options.port), ("127.0.0.1", 6379));
    assert_eq!((options.clients, options.requests, options.value_bytes), (50, 100_000, 3));
    assert_eq!((options.pipeline, options.keep_alive, options.precision), (1, 1, 3));
    assert_eq!((options.threads, options.keyspace, options.tests.is_none()), (0, None, true));
}

#[test]
fn numbers_are_read_as_by_atoi() {
    assert_eq!(options("-c 12abc").clients, 12);
    assert_eq!(options("-c x").clients, 0);
    assert_eq!(options("-c -4").client_count(), 1);
    assert_eq!(options("-P 0").pipeline, 1);
    assert_eq!(options("-P -3").pipeline, 1);
    assert_eq!(options("-d 0").value_bytes, 1);
    assert_eq!(options("-d 99999999999").value_bytes, 1 << 30);
    assert_eq!(options("-r -5").keyspace, Some(0));
    assert_eq!(options("--threads -2").threads, 0);
    assert_eq!(options("--precision -1").precision, 3);
    assert_eq!(options("--precision 9").precision, 4);
    assert_eq!(options("--precision 0").precision, 1);
    assert_eq!(options("-n 5000000000").requests, 5_000_000_000);
}

#[test]
fn the_command_is_taken_raw() {
    let options = options("-n 5 -q set key -x --csv");
    assert_eq!(options.command, [&b"set"[..], b"key", b"-x", b"--csv"]);
    assert!(options.quiet && !options.csv);
    let with_dashes = match parse_line("-q -- --odd") {
        Parsed::Run(options, _) => options.command,
        other => panic!("{other:?}"),
    };
    assert_eq!(with_dashes, [b"--odd"]);
}

#[test]
fn invalid_options_are_named() {
    for (line, named) in [("-h", "-h"), ("--nope", "--nope"), ("-n", "-n"), ("-r -q", "-q"), ("-u", "-u"), ("-", "-")] {
        match parse_line(line) {
            Parsed::Invalid(option) => assert_eq!(option, named),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn tests_are_chosen_by_exact_name() {
    let options = options("-t SET,lrange_100");
    assert!(options.test_is_selected("set") && options.test_is_selected("lrange_100"));
    assert!(!options.test_is_selected("lrange") && !options.test_is_selected("mset"));
}

#[test]
fn mistakes_end_the_run() {
    let fatal = |line: &str| match parse_line(line) {
        Parsed::Fatal(text) => text,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(fatal("-p 70000"), "Invalid server port.");
    assert_eq!(fatal("-p -1"), "Invalid server port.");
    assert_eq!(fatal("-u http://x"), "Invalid URI scheme");
    assert!(fatal("--tls --cacert /nothing").contains("Invalid CA Certificate File/Directory"));
    assert!(fatal("-u rediss://x -s /socket").contains("exclude each other"));
    assert_eq!(fatal("--rdma"), "--rdma is not supported");
    assert!(fatal("--keys zipf").contains("-r"));
}

#[test]
fn uri_sets_server_and_database() {
    let options = options("-u redis://bob:pw@box:7000/4");
    assert_eq!((options.host.as_str(), options.port, options.database), ("box", 7000, 4));
    assert_eq!(options.user.as_deref(), Some(&b"bob"[..]));
    assert_eq!(options.password.as_deref(), Some(&b"pw"[..]));
}

#[test]
fn warnings_are_those_of_7_2() {
    match parse_line("-e --threads 501") {
        Parsed::Run(options, warnings) => {
            assert_eq!(options.threads, 500);
            assert_eq!(
                warnings,
                [
                    "WARNING: -e option has no effect. We now immediately exit on error to avoid \
                     false results.",
                    "WARNING: Too many threads, limiting threads to 500."
                ]
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn times_are_read() {
    assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
    assert_eq!(duration("1.5"), Some(Duration::from_millis(1_500)));
    assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
    assert_eq!(duration("5x"), None);
    assert_eq!(duration(""), None);
}
