//! What a server says when it is not the one to ask.

/// An error that tells to ask elsewhere or later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redirect {
    /// The slot belongs to another server for good.
    Moved {
        /// The slot.
        slot: u16,
        /// The owner's host; empty: that of the server that said so.
        host: String,
        /// The owner's port.
        port: u16,
    },
    /// The slot is moving: this command's keys are, or would be made, at another server, which wants ASKING first.
    Ask {
        /// The slot.
        slot: u16,
        /// The host; empty: that of the server that said so.
        host: String,
        /// The port.
        port: u16,
    },
    /// The slot is moving, and the command's keys are on both sides: ask again.
    TryAgain,
    /// The cluster does not serve this slot at the moment.
    ClusterDown,
}

/// Reads the text of an error, with its code; `None` for all others.
#[inline]
pub fn parse_redirect(error: &[u8]) -> Option<Redirect> {
    match error {
        [b'M', b'O', b'V', b'E', b'D', b' ', rest @ ..] => {
            place(rest).map(|(slot, host, port)| Redirect::Moved { slot, host, port })
        }
        [b'A', b'S', b'K', b' ', rest @ ..] => place(rest).map(|(slot, host, port)| Redirect::Ask { slot, host, port }),
        _ if error.starts_with(b"TRYAGAIN") => Some(Redirect::TryAgain),
        _ if error.starts_with(b"CLUSTERDOWN") => Some(Redirect::ClusterDown),
        _ => None,
    }
}

/// `slot host:port`. The last colon counts: an IPv6 address has others.
fn place(text: &[u8]) -> Option<(u16, String, u16)> {
    let (slot, address) = std::str::from_utf8(text).ok()?.trim_end().split_once(' ')?;
    let (host, port) = address.rsplit_once(':')?;
    let slot = slot.parse().ok().filter(|slot| usize::from(*slot) < super::SLOTS)?;
    // A server that has no name for the other writes `?`.
    let host = if host == "?" { "" } else { host };
    Some((slot, host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_read() {
        let moved = |slot, host: &str, port| Some(Redirect::Moved { slot, host: host.to_owned(), port });
        assert_eq!(parse_redirect(b"MOVED 3999 127.0.0.1:6381"), moved(3999, "127.0.0.1", 6381));
        assert_eq!(parse_redirect(b"MOVED 0 ::1:6381"), moved(0, "::1", 6381));
        assert_eq!(parse_redirect(b"MOVED 0 :6381"), moved(0, "", 6381));
        assert_eq!(parse_redirect(b"MOVED 0 ?:6381"), moved(0, "", 6381));
        assert_eq!(parse_redirect(b"MOVED 7 host-endpoint.example.com:80"), moved(7, "host-endpoint.example.com", 80));
        let ask = Redirect::Ask { slot: 12, host: "10.0.0.1".to_owned(), port: 7000 };
        assert_eq!(parse_redirect(b"ASK 12 10.0.0.1:7000"), Some(ask));
        assert_eq!(
            parse_redirect(b"TRYAGAIN Multiple keys request during rehashing of slot"),
            Some(Redirect::TryAgain)
        );
        assert_eq!(parse_redirect(b"CLUSTERDOWN Hash slot not served"), Some(Redirect::ClusterDown));
    }

    #[test]
    fn other_texts_are_none() {
        for text in
            [&b"ERR MOVED 1 a:1"[..], b"MOVED", b"MOVED 16384 a:1", b"MOVED x a:1", b"ASK 1 a", b"MOVED 1 a:99999", b""]
        {
            assert_eq!(parse_redirect(text), None, "{}", text.escape_ascii());
        }
    }
}
