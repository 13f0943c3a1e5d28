#![allow(clippy::unwrap_used, clippy::expect_used)]
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{SkipState, skip_reply, write_command};

fn value() -> impl Strategy<Value = Value> {
    let line = "[ -~]{0,20}".prop_map(String::into_bytes);
    let leaf = prop_oneof![
        line.clone().prop_map(Value::Simple),
        vec(any::<u8>(), 0..20).prop_map(Value::Error),
        any::<i64>().prop_map(Value::Int),
        vec(any::<u8>(), 0..200).prop_map(Value::Bulk),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        "-?[1-9][0-9]{0,3}(\\.[0-9]{1,5})?".prop_map(Value::Double),
        "-?[1-9][0-9]{0,60}".prop_map(Value::BigNumber),
        ("[a-z]{3}", vec(any::<u8>(), 0..40)).prop_map(|(format, text)| Value::Verbatim { format, text }),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        let pairs = vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::Array),
            vec(inner.clone(), 0..8).prop_map(Value::Set),
            vec(inner.clone(), 0..8).prop_map(Value::Push),
            pairs.clone().prop_map(Value::Map),
            (pairs, inner).prop_map(|(attributes, value)| Value::Attribute { attributes, value: Box::new(value) }),
        ]
    })
}

fn encode(value: &Value, proto: Proto) -> Vec<u8> {
    let mut reply = Reply::with_buffer(Vec::new(), proto);
    value.write(&mut reply);
    reply.buf
}

/// The error that RESP's `-` form can hold of a text.
fn is_top_error(value: &Value) -> bool {
    match value {
        Value::Attribute { value, .. } => is_top_error(value),
        other => other.is_error(),
    }
}

#[test]
fn table() {
    type Parsed = Result<Option<Value>, ReplyError>;
    let cases: [(&[u8], Parsed); 18] = [
        (b"+OK\r\n", Ok(Some(Value::Simple(b"OK".to_vec())))),
        (b"-ERR x\r\n", Ok(Some(Value::Error(b"ERR x".to_vec())))),
        (b"!5\r\nERR\r\n\r\n", Ok(Some(Value::Error(b"ERR\r\n".to_vec())))),
        (b":-12\r\n", Ok(Some(Value::Int(-12)))),
        (b"$-1\r\n", Ok(Some(Value::Null))),
        (b"*-1\r\n", Ok(Some(Value::NullArray))),
        (b"_\r\n", Ok(Some(Value::Null))),
        (b"$0\r\n\r\n", Ok(Some(Value::Bulk(Vec::new())))),
        (b"=7\r\ntxt:abc\r\n", Ok(Some(Value::Verbatim { format: "txt".into(), text: b"abc".to_vec() }))),
        (b"#x\r\n", Err(ReplyError::Line)),
        (b"$-2\r\n", Err(ReplyError::Length)),
        (b"%-1\r\n", Err(ReplyError::Length)),
        (b"$01\r\n", Err(ReplyError::Length)),
        (b"$1\r\nabc", Err(ReplyError::Line)),
        (b"?\r\n", Err(ReplyError::Type(b'?'))),
        (b"+a\rb", Err(ReplyError::Line)),
        (b"*9223372036854775807\r\n:1\r\n", Ok(None)),
        (b"$9223372036854775807\r\n", Ok(None)),
    ];
    for (bytes, want) in cases {
        let got = parse_reply(bytes).map(|found| found.map(|(value, _)| value));
        assert_eq!(got, want, "{}", bytes.escape_ascii());
    }
}

#[test]
fn deep_nesting_is_an_error() {
    assert_eq!(parse_reply(&b"*1\r\n".repeat(100_000)), Err(ReplyError::Depth));
    let mut deepest = b"*1\r\n".repeat(MAX_DEPTH);
    deepest.extend_from_slice(b":1\r\n");
    assert!(matches!(parse_reply(&deepest), Ok(Some((_, used))) if used == deepest.len()));
}

#[test]
fn skip_counts_overflow_is_an_error() {
    let mut state = SkipState::new();
    assert_eq!(skip_reply(b"%9223372036854775807\r\n%9223372036854775807\r\n", &mut state), Err(ReplyError::Length));
}

proptest! {
    #[test]
    fn resp3_round_trip_in_every_split(value in value(), tail in vec(any::<u8>(), 0..5)) {
        let mut bytes = encode(&value, Proto::Resp3);
        let whole = bytes.len();
        bytes.extend_from_slice(&tail);
        let (read, used) = parse_reply(&bytes).unwrap().unwrap();
        prop_assert_eq!(used, whole);
        // An error loses line ends at its borders only in the `-` form, which is not used then.
        prop_assert_eq!(encode(&read, Proto::Resp3), encode(&value, Proto::Resp3));

        let mut state = SkipState::new();
        let skipped = skip_reply(&bytes, &mut state).unwrap().unwrap();
        prop_assert_eq!((skipped.consumed, skipped.is_error), (whole, is_top_error(&value)));
        let step = (whole / 50).max(1);
        let mut state = SkipState::new();
        for cut in (0..whole).step_by(step) {
            prop_assert_eq!(parse_reply(&bytes[..cut]), Ok(None));
            prop_assert_eq!(skip_reply(&bytes[..cut], &mut state), Ok(None));
            prop_assert!(state.need() > cut && state.need() <= whole);
        }
        prop_assert_eq!(skip_reply(&bytes, &mut state), Ok(Some(skipped)));
        prop_assert_eq!(state, SkipState::new());
    }

    #[test]
    fn resp2_is_readable(value in value()) {
        let bytes = encode(&value, Proto::Resp2);
        let (read, used) = parse_reply(&bytes).unwrap().unwrap();
        prop_assert_eq!(used, bytes.len());
        prop_assert_eq!(encode(&read, Proto::Resp2), bytes);
    }

    #[test]
    fn garbage_never_panics(bytes in vec(prop_oneof![any::<u8>(), proptest::sample::select(b"*$\r\n+-:0123456789%|~>=!".to_vec())], 0..100)) {
        let parsed = parse_reply(&bytes);
        let skipped = skip_reply(&bytes, &mut SkipState::new());
        // The skipper checks less, so it may only accept more.
        if let Ok(Some((_, used))) = parsed {
            prop_assert_eq!(skipped.unwrap().unwrap().consumed, used);
        }
    }

    #[test]
    fn commands_are_arrays_of_bulks(args in vec(vec(any::<u8>(), 0..150), 0..12)) {
        let mut bytes = Vec::new();
        write_command(&mut bytes, &args);
        let want = Value::Array(args.into_iter().map(Value::Bulk).collect());
        prop_assert_eq!(parse_reply(&bytes), Ok(Some((want, bytes.len()))));
    }
}
