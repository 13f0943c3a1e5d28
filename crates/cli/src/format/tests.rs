#![allow(clippy::unwrap_used, clippy::expect_used)]
use resp::parse_reply;

use super::*;

/// The reply in RESP, shown in a format.
fn show(format: Format, reply: &str) -> String {
    let wire = reply.replace('\n', "\r\n");
    let (value, length) = parse_reply(wire.as_bytes()).unwrap().unwrap();
    assert_eq!(length, wire.len());
    let style = Style {
        format,
        element_delimiter: b"\n".to_vec(),
        reply_delimiter: b"\n".to_vec(),
        decoder: Default::default(),
    };
    String::from_utf8(render(&value, &style)).unwrap()
}

/// One reply in standard, raw, CSV and JSON.
fn check(reply: &str, standard: &str, raw: &str, csv: &str, json: &str) {
    assert_eq!(show(Format::Standard, reply), standard, "standard of {reply:?}");
    assert_eq!(show(Format::Raw, reply), raw, "raw of {reply:?}");
    assert_eq!(show(Format::Csv, reply), csv, "csv of {reply:?}");
    assert_eq!(show(Format::Json, reply), json, "json of {reply:?}");
}

#[test]
fn single_values() {
    check("+OK\n", "OK\n", "OK\n", "\"OK\"\n", "\"OK\"\n");
    check(
        "-ERR a \"b\"\n",
        "(error) ERR a \"b\"\n",
        "ERR a \"b\"\n\n",
        "ERROR,\"ERR a \\\"b\\\"\"\n",
        "error:\"ERR a \\\"b\\\"\"\n",
    );
    check(":-5\n", "(integer) -5\n", "-5\n", "-5\n", "-5\n");
    check("$3\na\tb\n", "\"a\\tb\"\n", "a\tb\n", "\"a\\tb\"\n", "\"a\\tb\"\n");
    check("$2\né\n", "\"\\xc3\\xa9\"\n", "é\n", "\"\\xc3\\xa9\"\n", "\"é\"\n");
    check("$-1\n", "(nil)\n", "\n", "NULL\n", "null\n");
    check("_\n", "(nil)\n", "\n", "NULL\n", "null\n");
    check(",2.5\n", "(double) 2.5\n", "2.5\n", "2.5\n", "2.5\n");
    check("#t\n", "(true)\n", "(true)\n", "true\n", "true\n");
    check(
        "(12345678901234567890\n",
        "12345678901234567890\n",
        "12345678901234567890\n",
        "12345678901234567890\n",
        "12345678901234567890\n",
    );
    check("=6\ntxt:hi\n", "hi\n", "hi\n", "\"hi\"\n", "\"hi\"\n");
}

#[test]
fn lists_and_maps() {
    check("*0\n", "(empty array)\n", "\n", "\n", "[]\n");
    check("~0\n", "(empty set)\n", "\n", "\n", "[]\n");
    check("%0\n", "(empty hash)\n", "\n", "\n", "{}\n");
    check(
        "*2\n:1\n*2\n+a\n+b\n",
        "1) (integer) 1\n2) 1) a\n   2) b\n",
        "1\na\nb\n",
        "1,\"a\",\"b\"\n",
        "[1,[\"a\",\"b\"]]\n",
    );
    check("~1\n+a\n", "1~ a\n", "a\n", "\"a\"\n", "[\"a\"]\n");
    check("%1\n+k\n:1\n", "1# k => (integer) 1\n", "k 1\n", "\"k\",1\n", "{\"k\":1}\n");
    check(
        "%1\n:7\n*2\n:1\n:2\n",
        "1# (integer) 7 => \n   1) (integer) 1\n   2) (integer) 2\n",
        "7 1\n2\n",
        "7,1,2\n",
        "{\"7\":[1,2]}\n",
    );
    check("|1\n+a\n+b\n:5\n", "(integer) 5\n", "5\n", "5\n", "5\n");
}

#[test]
fn numbers_of_long_lists_are_aligned() {
    let reply = format!("*10\n{}", "+x\n".repeat(10));
    let shown = show(Format::Standard, &reply);
    assert!(shown.starts_with(" 1) x\n 2) x\n") && shown.ends_with("10) x\n"), "{shown}");
}

#[test]
fn strict_forms_are_what_they_say() {
    assert_eq!(
        show(Format::JsonStrict, "*3\n-ERR x\n,inf\n%1\n:1\n$1\n\"\n"),
        "[{\"error\":\"ERR x\"},\"inf\",{\"1\":\"\\\"\"}]\n"
    );
    assert_eq!(show(Format::Ndjson, "*2\n:1\n*1\n+a\n"), "1\n[\"a\"]\n");
    assert_eq!(show(Format::CsvStrict, "*4\n$3\na,b\n$1\n\"\n$-1\n$0\n\n"), "\"a,b\",\"\"\"\",,\"\"\n");
    assert_eq!(show(Format::QuotedJson, "$2\né\n"), "\"\\\\xc3\\\\xa9\"\n");
}

#[test]
fn invalidations_name_their_keys() {
    let (value, _) = parse_reply(b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n").unwrap().unwrap();
    assert_eq!(invalidation(&value).unwrap(), b"-> invalidate: 'a', 'b'\n");
}
