#![allow(clippy::unwrap_used, clippy::expect_used)]
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::write_command;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Request(Vec<Vec<u8>>),
    Error(ProtocolError),
}

/// Feeds `pieces` one after the other, as a connection would, and lists what came out.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Vec<Seen> {
    let (mut buf, mut state, mut request) = (Vec::new(), ParseState::new(), Request::new());
    let mut seen = Vec::new();
    let mut needed = 0;
    for piece in pieces {
        buf.extend_from_slice(piece);
        while buf.len() >= needed {
            let used = match parse_request(&buf, &mut state, limits, &mut request) {
                Parse::Request => {
                    seen.push(Seen::Request(request.args(&buf).iter().map(<[u8]>::to_vec).collect()));
                    request.consumed()
                }
                Parse::Empty => request.consumed(),
                Parse::Incomplete { need } => {
                    assert!(need > buf.len());
                    needed = need;
                    continue;
                }
                Parse::Error(error) => {
                    seen.push(Seen::Error(error));
                    return seen;
                }
            };
            assert!(used > 0 && used <= buf.len());
            buf.drain(..used);
            needed = 0;
        }
    }
    seen
}

fn parse(bytes: &[u8]) -> Vec<Seen> {
    feed([bytes], &Limits::default())
}

fn request(args: &[&str]) -> Seen {
    Seen::Request(args.iter().map(|arg| arg.as_bytes().to_vec()).collect())
}

#[test]
fn requests() {
    let set = request(&["SET", "k", "a value of 20 bytes!"]);
    assert_eq!(parse(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20\r\na value of 20 bytes!\r\n"), [set]);
    assert_eq!(
        parse(b"*1\r\n$4\r\nPING\r\nPING\r\nPING \"a b\"\n*1\r\n$0\r\n\r\n"),
        [request(&["PING"]), request(&["PING"]), request(&["PING", "a b"]), request(&[""]),]
    );
    let long = "x".repeat(300);
    assert_eq!(parse(format!("*2\r\n$4\r\nECHO\r\n$300\r\n{long}\r\n").as_bytes()), [request(&["ECHO", &long])]);
    // Neither the byte after CR nor the end of a bulk is checked.
    assert_eq!(parse(b"*1\rx$4\ryPINGzz"), [request(&["PING"])]);
}

#[test]
fn empty_requests_are_skipped() {
    assert_eq!(parse(b"\r\n\n  \r\n*0\r\n*-1\r\n*-5\r\nPING\r\n\r\n"), [request(&["PING"])]);
    let mut request = Request::new();
    let mut state = ParseState::new();
    let got = parse_request(b"\r\n*0\r\n*1\r\n$4\r\nPI", &mut state, &Limits::default(), &mut request);
    assert_eq!((got, request.consumed(), state.is_partial()), (Parse::Empty, 6, false));
}

#[test]
fn incomplete_says_what_it_needs() {
    let needs = |bytes: &[u8]| parse_request(bytes, &mut ParseState::new(), &Limits::default(), &mut Request::new());
    assert_eq!(needs(b""), Parse::Incomplete { need: 1 });
    assert_eq!(needs(b"*1"), Parse::Incomplete { need: 3 });
    assert_eq!(needs(b"*1\r"), Parse::Incomplete { need: 4 });
    assert_eq!(needs(b"*1\r\n$1000\r\nab"), Parse::Incomplete { need: 4 + 7 + 1000 + 2 });
    assert_eq!(needs(b"*1\r\nxyz"), Parse::Incomplete { need: 8 });
}

#[test]
fn error_texts() {
    let big = vec![b'1'; 70_000];
    let line = |start: &[u8]| [start, &big].concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"*a\r\n".to_vec(), "invalid multibulk length"),
        (b"*\r\n".to_vec(), "invalid multibulk length"),
        (b"*01\r\n".to_vec(), "invalid multibulk length"),
        (b"*+1\r\n".to_vec(), "invalid multibulk length"),
        (b"*-0\r\n".to_vec(), "invalid multibulk length"),
        (b"*2147483648\r\n".to_vec(), "invalid multibulk length"),
        (b"*99999999999999999999\r\n".to_vec(), "invalid multibulk length"),
        (b"*1\r\nx1\r\n".to_vec(), "expected '$', got 'x'"),
        (b"*1\r\n\r\n".to_vec(), "expected '$', got '\r'"),
        (b"*1\r\n$\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$-1\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$536870913\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$1a\r\n".to_vec(), "invalid bulk length"),
        (line(b"*"), "too big mbulk count string"),
        (line(b"*1\r\n$"), "too big bulk count string"),
        (line(b"SET "), "too big inline request"),
        (line(b"SET \0\r\n"), "too big inline request"),
        (line(b"*\0\r\n"), "too big mbulk count string"),
        (b"SET \"a\r\n".to_vec(), "unbalanced quotes in request"),
        (b"SET 'a'b\r\n".to_vec(), "unbalanced quotes in request"),
    ];
    for (bytes, text) in cases {
        match parse(&bytes).as_slice() {
            [Seen::Error(error)] => {
                assert_eq!(error.text(), format!("Protocol error: {text}").into_bytes());
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn unauthenticated_limits() {
    let limits = Limits::unauthenticated(512 << 20);
    let strict = Limits { max_multibulk: 10, max_bulk: 16384, ..limits };
    for limits in [limits, strict] {
        let check = |bytes: &[u8]| match feed([bytes], &limits).as_slice() {
            [Seen::Error(error)] => error.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(check(b"*11\r\n"), "Protocol error: unauthenticated multibulk length");
        assert_eq!(check(b"*10\r\n"), "[]");
        assert_eq!(check(b"*2147483648\r\n"), "Protocol error: invalid multibulk length");
        assert_eq!(check(b"*1\r\n$16385\r\n"), "Protocol error: unauthenticated bulk length");
        assert_eq!(check(b"*1\r\n$16384\r\n"), "[]");
    }
    assert_eq!(feed([&b"*1\r\n$536870913\r\n"[..]], &limits), [Seen::Error(ProtocolError::InvalidBulkLength)]);
}

#[test]
fn small_max_bulk_holds_for_short_headers() {
    let limits = Limits::new(5);
    assert_eq!(feed([&b"*1\r\n$6\r\nabcdef\r\n"[..]], &limits), [Seen::Error(ProtocolError::InvalidBulkLength)]);
    let limits = Limits { max_multibulk: 2, ..Limits::default() };
    assert_eq!(feed([&b"*3\r\n"[..]], &limits), [Seen::Error(ProtocolError::InvalidMultibulkLength)]);
}

#[test]
fn a_million_arguments_in_pieces_are_not_read_again_and_again() {
    let args: Vec<Vec<u8>> = (0..200_000).map(|i| i.to_string().into_bytes()).collect();
    let mut bytes = Vec::new();
    write_command(&mut bytes, &args);
    let (mut state, mut request) = (ParseState::new(), Request::new());
    // Quadratic work would be 25,000 passes over 2 MB: minutes.
    for end in (0..bytes.len()).step_by(97) {
        let got = parse_request(&bytes[..end], &mut state, &Limits::default(), &mut request);
        assert!(matches!(got, Parse::Incomplete { .. }));
    }
    assert_eq!(parse_request(&bytes, &mut state, &Limits::default(), &mut request), Parse::Request);
    assert!(request.args(&bytes).iter().eq(args.iter().map(Vec::as_slice)));
    request.clear();
    assert!(request.ranges.capacity() <= KEPT_RANGES);
}

/// Bytes that look like the protocol more often than chance would have it.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"*2\r\n".to_vec()),
        Just(b"$3\r\nfoo\r\n".to_vec()),
        Just(b"$12\r\nfoofoofoofoo\r\n".to_vec()),
        Just(b"*0\r\n".to_vec()),
        Just(b"PING \"x\\x41\"\r\n".to_vec()),
        vec(any::<u8>(), 0..4),
    ];
    vec(word, 0..12).prop_map(|words| words.concat())
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let command = vec(vec(any::<u8>(), 0..130), 1..14).prop_map(|args| {
        let mut bytes = Vec::new();
        write_command(&mut bytes, &args);
        bytes
    });
    vec(prop_oneof![4 => command, 1 => Just(b"SET a \"b c\"\r\n".to_vec()), 1 => Just(b"\r\n".to_vec())], 1..6)
        .prop_map(|requests| requests.concat())
}

proptest! {
    #[test]
    fn round_trip(args in vec(vec(any::<u8>(), 0..150), 1..40)) {
        let mut bytes = Vec::new();
        write_command(&mut bytes, &args);
        prop_assert_eq!(parse(&bytes), [Seen::Request(args)]);
    }

    #[test]
    fn every_split_gives_the_same(bytes in prop_oneof![stream(), noise()], size in 1_usize..9) {
        for limits in [Limits::default(), Limits { max_inline: 30, ..Limits::unauthenticated(100) }] {
            let whole = feed([bytes.as_slice()], &limits);
            // Where an unfinished line is refused depends on when it is looked at, as in Redis.
            let is_early = |seen: &[Seen]| matches!(seen.last(), Some(Seen::Error(
                ProtocolError::TooBigInline | ProtocolError::TooBigBulkCount | ProtocolError::TooBigMultibulkCount)));
            let pieces = feed(bytes.chunks(size), &limits);
            if !is_early(&whole) && !is_early(&pieces) {
                prop_assert_eq!(&pieces, &whole);
            }
            for cut in 0..bytes.len().min(80) {
                let halves = feed([&bytes[..cut], &bytes[cut..]], &limits);
                if !is_early(&whole) && !is_early(&halves) {
                    prop_assert_eq!(&halves, &whole);
                }
            }
        }
    }

    #[test]
    fn lengths_are_strict_decimals(number in any::<i64>()) {
        prop_assert_eq!(parse_length(number.to_string().as_bytes()), Some(number));
    }
}

#[test]
fn only_the_exact_form_is_canonical() {
    let check = |bytes: &[u8]| {
        let mut request = Request::new();
        let parsed = parse_request(bytes, &mut ParseState::new(), &Limits::default(), &mut request);
        assert_eq!(parsed, Parse::Request, "{}", bytes.escape_ascii());
        request.is_canonical(bytes)
    };
    assert!(check(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n"));
    let mut long = Vec::new();
    let words: Vec<Vec<u8>> = (0..120).map(|len| vec![b'x'; len * 7]).collect();
    crate::write_command(&mut long, &words);
    assert!(check(&long));
    for other in [
        &b"GET k\r\n"[..],
        b"\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"*2\rX$3\r\nGET\r\n$1\r\nk\r\n",
        b"*2\r\n$3\rXGET\r\n$1\r\nk\r\n",
        b"*2\r\n$3\r\nGETXX$1\r\nk\r\n",
        b"*2\r\n$3\r\nGET\r\n$1\r\nkXX",
    ] {
        assert!(!check(other), "{}", other.escape_ascii());
    }
}
