//! Commands worth a question before they are sent.

/// The question before a call that may lose data or stop the server; only the prompt asks.
pub(super) fn question(words: &[Vec<u8>]) -> Option<String> {
    let word = |index: usize| words.get(index).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    let what = match (word(0).as_slice(), word(1).as_slice()) {
        (b"flushall", _) => "This deletes all keys of all databases",
        (b"flushdb", _) => "This deletes all keys of the database",
        (b"keys", b"*") => "This lists every key and makes other clients wait",
        (b"shutdown", option) if option != b"abort" => "This stops the server",
        (b"config", b"set") => "This changes the running server",
        (b"debug", command) if !matches!(command, b"help" | b"object" | b"sleep") => "DEBUG can stop the server",
        _ => return None,
    };
    Some(format!("{what}. Go on?"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::question;

    #[test]
    fn asks_before_danger_only() {
        let asks = |line: &str| question(&resp::split_args(line.as_bytes()).unwrap()).is_some();
        for line in
            ["FLUSHALL", "flushdb async", "KEYS *", "shutdown nosave", "CONFIG SET maxmemory 1", "debug segfault"]
        {
            assert!(asks(line), "{line}");
        }
        for line in ["get flushall", "keys user:*", "shutdown abort", "config get *", "debug object k"] {
            assert!(!asks(line), "{line}");
        }
    }
}
