//! Requests, replies, what primaries say, and the texts of numbers.

use replication::handshake::{Handshake, Introduction, Next};
use replication::payload::Payload;
use resp::{Limits, Parse, ParseState, Request, SkipState, num, parse_reply, parse_request, skip_reply, split_args};

pub(crate) const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"*1\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"$0\r\n\r\n",
    b"$-1\r\n",
    b"+OK\r\n",
    b"-ERR x\r\n",
    b":1\r\n",
    b"_\r\n",
    b"#t\r\n",
    b",1.5\r\n",
    b"%1\r\n",
    b"~1\r\n",
    b">1\r\n",
    b"|1\r\n",
    b"=7\r\ntxt:abc\r\n",
    b"(123\r\n",
    b"MULTI",
    b"EXEC",
    b"SELECT",
    b"#TS:1700000000\r\n",
];

const BULK_MAX: usize = 512 << 20;

/// Reads all requests of a buffer; gives them and how much of it was understood, and the error that ended it.
fn read_all(data: &[u8], limits: &Limits) -> (Vec<Vec<Vec<u8>>>, usize, bool) {
    let (mut all, mut at) = (Vec::new(), 0);
    let mut request = Request::new();
    loop {
        let rest = data.get(at..).unwrap_or_default();
        match parse_request(rest, &mut ParseState::new(), limits, &mut request) {
            Parse::Request => {
                assert!(request.consumed() > 0 && request.consumed() <= rest.len());
                all.push(request.args(rest).iter().map(<[u8]>::to_vec).collect());
                at += request.consumed();
            }
            Parse::Empty => {
                assert!(request.consumed() > 0 && request.consumed() <= rest.len());
                at += request.consumed();
                return (all, at, false);
            }
            Parse::Incomplete { need } => {
                assert!(need > rest.len(), "{need} bytes are needed, {} are there", rest.len());
                return (all, at, false);
            }
            Parse::Error(_) => return (all, at, true),
        }
    }
}

/// Requests in one buffer, and the same byte by byte: they are the same requests.
pub(crate) fn requests(data: &[u8]) {
    for limits in [Limits::new(BULK_MAX), Limits::unauthenticated(BULK_MAX)] {
        let (whole, _, _) = read_all(data, &limits);
        // The first one again, from a buffer that grows by pieces.
        let (mut state, mut request) = (ParseState::new(), Request::new());
        let step = data.len() / 7 + 1;
        for end in (step..data.len() + step).step_by(step) {
            let seen = data.get(..end.min(data.len())).unwrap_or_default();
            match parse_request(seen, &mut state, &limits, &mut request) {
                Parse::Incomplete { .. } => {}
                Parse::Request => {
                    let args: Vec<Vec<u8>> = request.args(seen).iter().map(<[u8]>::to_vec).collect();
                    assert_eq!(Some(&args), whole.first(), "pieces give another request than the whole");
                    break;
                }
                Parse::Empty | Parse::Error(_) => break,
            }
        }
    }
    if let Some(words) = split_args(data) {
        assert!(words.iter().map(Vec::len).sum::<usize>() <= data.len() * 2);
    }
}

pub(crate) fn request_seeds() -> Vec<Vec<u8>> {
    [
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhello\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n".as_slice(),
        b"SET a \"quoted \\x41\\n\" 'single'\r\nPING\r\n",
        b"*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// A reply built and the same reply passed over: both end at one place.
pub(crate) fn replies(data: &[u8]) {
    let mut rest = data;
    for _ in 0..1000 {
        let built = parse_reply(rest);
        let skipped = skip_reply(rest, &mut SkipState::new());
        match (&built, &skipped) {
            (Ok(Some((_, taken))), Ok(Some(skipped))) => {
                assert_eq!(*taken, skipped.consumed, "reading and passing over end at different places");
                assert!(*taken > 0 && *taken <= rest.len());
                rest = rest.get(*taken..).unwrap_or_default();
            }
            // What is built is looked at more closely.
            (Err(_), _) | (Ok(None), Ok(None)) => return,
            (built, skipped) => panic!("{built:?}, passed over {skipped:?}"),
        }
        if rest.is_empty() {
            return;
        }
    }
}

pub(crate) fn reply_seeds() -> Vec<Vec<u8>> {
    [
        b"+OK\r\n-ERR no\r\n:12\r\n$5\r\nhello\r\n$-1\r\n*-1\r\n".as_slice(),
        b"*3\r\n:1\r\n*2\r\n+a\r\n$1\r\nb\r\n_\r\n",
        b"%2\r\n+a\r\n:1\r\n+b\r\n,1.5\r\n~1\r\n#t\r\n",
        b"|1\r\n+ttl\r\n:1\r\n>2\r\n+message\r\n(12345678901234567890\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

pub(crate) const SYNC_WORDS: &[&[u8]] = &[
    b"+FULLRESYNC ",
    b"+CONTINUE",
    b"+PONG\r\n",
    b"+OK\r\n",
    b"-NOAUTH",
    b"-NOMASTERLINK",
    b"-LOADING",
    b"-ERR ",
    b"$EOF:",
    b"\r\n",
    b"\n",
    b"0123456789abcdef0123456789abcdef01234567",
    b" 100",
];

/// What a primary says before its snapshot.
pub(crate) fn handshake(data: &[u8]) {
    let flags = data.first().copied().unwrap_or(0);
    let introduction = Introduction {
        auth: (flags & 1 != 0).then(|| ((flags & 2 != 0).then(|| b"user".to_vec()), b"password".to_vec())),
        port: 6379,
        address: (flags & 4 != 0).then(|| b"host".to_vec()),
        has: (flags & 8 != 0).then(|| ("a".repeat(40), 5)),
        hands_over: flags & 16 != 0,
    };
    let (mut handshake, sent) = Handshake::begin(introduction);
    assert!(!sent.is_empty());
    for line in data.get(1..).unwrap_or_default().split(|byte| *byte == b'\n').take(64) {
        match handshake.line(line.strip_suffix(b"\r").unwrap_or(line)) {
            Next::Wait => {}
            Next::Send(bytes) => assert!(!bytes.is_empty()),
            Next::Done(_) | Next::Fail => break,
        }
    }
    assert!(handshake.take_log().iter().map(|(_, line)| line.len()).sum::<usize>() < data.len() * 8 + 4096);
}

pub(crate) fn handshake_seeds() -> Vec<Vec<u8>> {
    let id = "0123456789abcdef0123456789abcdef01234567";
    [
        format!("\0+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC {id} 100\r\n"),
        format!("\u{8}+PONG\r\n+OK\r\n+OK\r\n+CONTINUE {id}\r\n"),
        "\u{1f}-NOAUTH no\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n-ERR unknown command 'PSYNC'\r\n".to_owned(),
        "\u{8}+PONG\r\n+OK\r\n+OK\r\n+CONTINUE\r\n".to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// A snapshot within a full synchronization, whole and in pieces: the same bytes come out.
pub(crate) fn payload(data: &[u8]) {
    let feed = |step: usize| {
        let (mut payload, mut out) = (Payload::default(), Vec::new());
        let mut used = 0;
        for piece in data.chunks(step.max(1)) {
            match payload.feed(piece, &mut out) {
                Ok(taken) => used += taken,
                Err(_) => return None,
            }
            if payload.is_done() {
                break;
            }
        }
        assert!(out.len() <= data.len());
        Some((out, used, payload.is_done()))
    };
    let whole = feed(data.len());
    for step in [1, 3, 41] {
        let pieces = feed(step);
        // A line that is too long may be found out a little later in one piece than in several.
        if let (Some(whole), Some(pieces)) = (&whole, &pieces)
            && whole.2
            && pieces.2
        {
            assert_eq!((&whole.0, whole.1), (&pieces.0, pieces.1), "pieces of {step}");
        }
    }
}

pub(crate) fn payload_seeds() -> Vec<Vec<u8>> {
    let mark = "0123456789abcdef0123456789abcdef01234567";
    [
        "\n\n$10\r\nREDIS0011x*1\r\n".to_owned(),
        format!("$EOF:{mark}\r\nREDIS0011 and more 0123456789 {mark}*1\r\n$4\r\nPING\r\n"),
        "-ERR no\r\n".to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

pub(crate) const NUMBER_WORDS: &[&[u8]] =
    &[b"e", b"E+", b"-", b"+", b".", b"inf", b"nan", b"0x", b"0", b"999999999", b"1e308", b"5e-324", b"(", b" "];

/// Texts of numbers: what is read is the same as the standard library reads, where that reads it.
pub(crate) fn numbers(data: &[u8]) {
    if let Some(number) = num::parse_i64(data) {
        assert_eq!(number.to_string().as_bytes(), data, "an integer has one text");
    }
    // It reads what C's strtoull does, blanks and signs before the digits included.
    if let (Some(number), true) = (num::parse_u64(data), data.iter().all(u8::is_ascii_digit)) {
        assert!(std::str::from_utf8(data).is_ok_and(|text| text.parse() == Ok(number)));
    }
    let _ = num::parse_wrapping_u64(data);
    if let (Some(number), Some(known)) =
        (num::parse_f64(data), std::str::from_utf8(data).ok().and_then(|text| text.parse::<f64>().ok()))
    {
        assert!(number.to_bits() == known.to_bits() || number.is_nan() && known.is_nan(), "{number:?} for {known:?}");
    }
    let _ = num::parse_score_bound(data);
    let _ = num::LongDouble::parse(data);
}

pub(crate) fn number_seeds() -> Vec<Vec<u8>> {
    ["0", "-9223372036854775808", "18446744073709551615", "1.7976931348623157e308", "-inf", "(3.5", "1e-320", "0x1p3"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}
