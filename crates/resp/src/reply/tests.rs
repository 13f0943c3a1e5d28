#![allow(clippy::unwrap_used, clippy::expect_used)]
use proptest::prelude::*;

use super::*;

/// What `write` leaves in each protocol version.
fn both(write: impl Fn(&mut Reply)) -> (String, String) {
    let text = |proto| {
        let mut reply = Reply::with_buffer(Vec::new(), proto);
        write(&mut reply);
        reply.as_slice().escape_ascii().to_string().replace("\\r\\n", "|")
    };
    (text(Proto::Resp2), text(Proto::Resp3))
}

fn check(write: impl Fn(&mut Reply), resp2: &str, resp3: &str) {
    assert_eq!(both(write), (resp2.to_string(), resp3.to_string()));
}

#[test]
fn every_type_in_both_versions() {
    check(|r| r.ok(), "+OK|", "+OK|");
    check(|r| r.simple("PONG"), "+PONG|", "+PONG|");
    check(|r| r.error("WRONGTYPE x"), "-WRONGTYPE x|", "-WRONGTYPE x|");
    check(|r| r.err("a\r\nb\n"), "-ERR a  b|", "-ERR a  b|");
    check(|r| r.bulk(b""), "$0||", "$0||");
    check(|r| r.bulk("hello world"), "$11|hello world|", "$11|hello world|");
    check(|r| r.bulk_int(-42), "$3|-42|", "$3|-42|");
    check(|r| r.bulk_fmt(format_args!("{}-{}", 1526919030474_u64, 0)), "$15|1526919030474-0|", "$15|1526919030474-0|");
    check(|r| r.null(), "$-1|", "_|");
    check(|r| r.null_array(), "*-1|", "_|");
    check(|r| r.empty_array(), "*0|", "*0|");
    check(|r| r.array(120), "*120|", "*120|");
    check(|r| r.map(3), "*6|", "%3|");
    check(|r| r.set(3), "*3|", "~3|");
    check(|r| r.push(3), ">3|".replace('>', "*").as_str(), ">3|");
    check(|r| assert_eq!(r.attribute(1), r.is_resp3()), "", "|1|");
    check(|r| r.bool(true), ":1|", "#t|");
    check(|r| r.bool(false), ":0|", "#f|");
    check(|r| r.double(1.5), "$3|1.5|", ",1.5|");
    check(|r| r.double(f64::INFINITY), "$3|inf|", ",inf|");
    check(|r| r.double_text("3.0"), "$3|3.0|", ",3.0|");
    check(
        |r| r.big_number("1234567999999999999999999999999999999"),
        "$37|1234567999999999999999999999999999999|",
        "(1234567999999999999999999999999999999|",
    );
    check(|r| r.verbatim("Some", "txt"), "$4|Some|", "=8|txt:Some|");
    check(|r| r.count(1000), ":1000|", ":1000|");
}

#[test]
fn ints() {
    for value in [0, 1, 9, 10, 11, 99, 100, 12345, -1, -10, i64::MAX, i64::MIN] {
        let want = format!(":{value}|");
        check(|r| r.int(value), &want, &want);
    }
}

#[test]
fn deferred_headers_are_exact() {
    for len in [0, 1, 9, 10, 99, 100, 12345] {
        let mut reply = Reply::new();
        reply.raw(b"before");
        let outer = reply.defer();
        let inner = reply.defer();
        for _ in 0..len {
            reply.int(7);
        }
        reply.finish_array(inner, len);
        reply.finish_map(outer, 1);
        let want = format!("before*2\r\n*{len}\r\n{}", ":7\r\n".repeat(len));
        assert_eq!(String::from_utf8(reply.buf).unwrap(), want);
    }
    let mut reply = Reply::with_buffer(Vec::new(), Proto::Resp3);
    let (set, map) = (reply.defer(), reply.defer());
    reply.finish_map(map, 11);
    reply.finish_set(set, 12);
    assert_eq!(reply.as_slice(), b"~12\r\n%11\r\n");
    let dropped = reply.defer();
    reply.ok();
    reply.undo(dropped);
    assert_eq!(reply.len(), 10);
}

#[test]
fn clear_gives_back_a_big_buffer() {
    let mut reply = Reply::new();
    reply.bulk(vec![b'x'; 1 << 20]);
    reply.clear();
    assert!(reply.is_empty() && reply.buf.capacity() <= KEPT_CAPACITY);
}

proptest! {
    #[test]
    fn headers_are_the_formatted_number(number in any::<usize>(), shift in 0_u32..64) {
        let number = number >> shift;
        let mut buf = Vec::new();
        header(&mut buf, b'$', number);
        prop_assert_eq!(buf, format!("${number}\r\n").into_bytes());
    }
}
