#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::*;

fn parse(line: &str) -> Outcome<Options> {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    Options::parse("cli", &words)
}

#[test]
fn options_stop_at_the_command() {
    let options = parse("-h host -p 7000 -n 3 -r -1 -i 0.5 -c -e get -p x").unwrap();
    assert_eq!(options.server.host, "host");
    assert_eq!((options.server.port, options.server.database, options.repeat), (7000, 3, -1));
    assert_eq!(options.interval, Some(Duration::from_millis(500)));
    assert!(options.follow_redirects && options.error_code);
    assert_eq!(options.words, [b"get".to_vec(), b"-p".to_vec(), b"x".to_vec()]);
}

#[test]
fn a_missing_value_is_an_unknown_option() {
    for line in [
        "-p",
        "--eval",
        "--nothing",
        "-2 -3 get",
        "-c -s /socket get",
        "-p 70000 get",
        "-n x get",
        "--tls --cert /nothing get",
    ] {
        assert_eq!(parse(line).map(|_| ()), Err(Exit(1)), "{line}");
    }
}

#[test]
fn json_wants_resp3_unless_told_otherwise() {
    assert_eq!(parse("--json get").unwrap().protocol, Protocol::Resp3IfPossible);
    assert_eq!(parse("-3 --json get").unwrap().protocol, Protocol::Resp3);
    assert_eq!(parse("--json -2 get").unwrap().protocol, Protocol::Resp2);
}

#[test]
fn cluster_takes_words_between_options() {
    let options = parse("--cluster call a:1 ping --cluster-only-masters").unwrap();
    assert_eq!(options.mode, Mode::Cluster(vec![b"call".to_vec(), b"a:1".to_vec(), b"ping".to_vec()]));
    assert_eq!(options.cluster_scope, ClusterScope::Primaries);
}

#[test]
fn latency_history_refines_latency() {
    assert_eq!(parse("--latency --latency-history").unwrap().mode, Mode::LatencyHistory);
    assert_eq!(parse("--memkeys --memkeys-samples 5").unwrap().mode, Mode::MemoryKeys(Some(5)));
}

/// Each row is read, and each name that code reads has a row.
#[test]
fn table_and_code_agree() {
    let values = ["1", "a:1", "h", "no", "redis://h"];
    for row in CLIENT.rows() {
        let mut parser = Parser::new("cli");
        let read = match row.needs_value() {
            // `-u` and `--decode` take no number.
            true => values.iter().any(|value| parser.valued(row.key(), row.key(), value.as_bytes().to_vec()).is_ok()),
            false => parser.switch(row.key(), row.key()) != Err(Exit(1)),
        };
        let wants_more = ["--decode", "--pass-file", "--quoted-pattern"].contains(&row.key());
        assert!(read || wants_more || row.key() == "--profile", "{} is in the table, but not read", row.key());
    }
    let code = include_str!("../options.rs");
    let is_name = |text: &&str| text.starts_with('-') && text.len() > 1 && !text.contains([' ', '{']);
    for name in code.split('"').skip(1).step_by(2).filter(is_name) {
        let row = CLIENT.find(name).unwrap_or_else(|| panic!("{name} is read, but not in the table"));
        assert_eq!(row.key(), name, "code knows an option by its first name");
    }
}
