//! Rules of users, patterns, and configuration files.

use keyspace::glob as pattern;
use server::acl::rules::{Rules, merge_selectors};
use server::config::load;

pub(crate) const ACL_WORDS: &[&[u8]] = &[
    b" ",
    b"+",
    b"-",
    b"@",
    b"+@all",
    b"-@all",
    b"+@read",
    b"~*",
    b"%R~",
    b"%W~",
    b"%RW~k",
    b"&*",
    b">pass",
    b"(",
    b")",
    b"+get|x",
    b"+config|get",
    b"reset",
    b"allkeys",
    b"nocommands",
    b"clearselectors",
    b"\"",
    b"\\x",
    b"#",
    b"!",
];

/// Rules of a user; those that are taken describe themselves in words that give the same rules.
pub(crate) fn acl(data: &[u8]) {
    let words: Vec<Vec<u8>> = data.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    let Ok(words) = merge_selectors(&words) else { return };
    let mut rules = Rules::new(false);
    for word in &words {
        // A rule that is refused leaves all as it was.
        let _ = rules.apply(word, false);
    }
    let described = rules.describe();
    let described_words: Vec<Vec<u8>> = described.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    let Ok(described_words) = merge_selectors(&described_words) else { return };
    let mut again = Rules::new(false);
    for word in &described_words {
        if again.apply(word, false).is_err() {
            // Names of keys may hold what a line of rules cannot.
            return;
        }
    }
    if !data.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'\\' | b'(' | b')') || !byte.is_ascii_graphic()) {
        assert_eq!(again.describe(), described, "the description gives other rules");
    }
}

pub(crate) fn acl_seeds() -> Vec<Vec<u8>> {
    [
        "on >secret ~key:* &chan.* +@all -debug",
        "off nopass %R~a* %W~b* +@read +set|x -@dangerous",
        "+@all (~x* +get) (+@write %RW~y -del)",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(crate) const GLOB_WORDS: &[&[u8]] =
    &[b"*", b"?", b"[a-z]", b"[^a]", b"\\*", b"[", b"]", b"a*a*a*", b"**", b"[\\]-]"];

/// A pattern and a text, parted by a zero byte.
pub(crate) fn glob(data: &[u8]) {
    let (wanted, text) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (data.get(..at).unwrap_or_default(), data.get(at + 1..).unwrap_or_default()),
        None => (data, b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab".as_slice()),
    };
    let exact = pattern::matches(wanted, text, false);
    let folded = pattern::matches(wanted, text, true);
    let plain = !wanted.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    if plain {
        assert_eq!(exact, wanted == text);
        assert_eq!(folded, wanted.eq_ignore_ascii_case(text));
    }
    // As in Redis, an empty text matches the empty pattern alone.
    assert!(text.is_empty() || pattern::matches(b"*", text, false));
}

pub(crate) fn glob_seeds() -> Vec<Vec<u8>> {
    [b"key:*:[0-9]?\0key:abc:5x".as_slice(), b"a*a*a*a*b\0aaaaaaaaaaaaaaaa", b"[^a-c]\\*\0d*", b"h[a-]llo\0h-llo"]
        .map(<[u8]>::to_vec)
        .to_vec()
}

pub(crate) const CONFIG_WORDS: &[&[u8]] = &[
    b"\n",
    b" ",
    b"\"",
    b"'",
    b"\\x41",
    b"#",
    b"save",
    b"maxmemory",
    b"1gb",
    b"yes",
    b"no",
    b"bind",
    b"port",
    b"user",
    b"rename-command",
    b"client-output-buffer-limit",
    b"notify-keyspace-events",
    b"oom-score-adj-values",
];

/// A configuration file, without what opens other files.
pub(crate) fn config(data: &[u8]) {
    let lower = data.to_ascii_lowercase();
    let opens = [b"include".as_slice(), b"dir", b"file", b"module", b"path"];
    if opens.iter().any(|word| lower.windows(word.len()).any(|window| window == *word)) {
        return;
    }
    let mut input = data;
    // Either answer is right; what matters is that there is one.
    let _ = load(&[b"-".to_vec()], &mut input, &|name| name == b"get" || name == b"config");
}

pub(crate) fn config_seeds() -> Vec<Vec<u8>> {
    [
        "port 7000\nbind 127.0.0.1 -::1\nmaxmemory 1gb\nmaxmemory-policy allkeys-lru\nsave 900 1 300 10\n",
        "user alice on >pw ~* +@all\nclient-output-buffer-limit normal 0 0 0\nnotify-keyspace-events KEA\n",
        "# comment\nrename-command CONFIG \"\"\nappendonly yes\nappendfsync everysec\n\"port\" '1234'\n",
        "oom-score-adj-values 0 200 800\nlatency-tracking-info-percentiles 50 99 99.9\nloglevel notice\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
