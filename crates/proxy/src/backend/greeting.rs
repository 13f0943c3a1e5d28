//! What a lane says before the first request, and what must be answered to it.
//!
//! Requests are sent only after all of it succeeded: a request that overtook a failed SELECT would run in another database.

use resp::{Proto, write_command};

use super::LaneKind;

/// How to log in at backends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// `backend-user`; empty: the default user.
    pub user: Vec<u8>,
    /// `backend-password`; empty: no AUTH.
    pub password: Vec<u8>,
}

/// Writes the greeting of a lane to `out`; gives the number of replies to wait for. `reads`: the backend may be a replica,
/// which then is to answer reads itself.
pub fn write(
    out: &mut Vec<u8>,
    kind: LaneKind,
    credentials: &Credentials,
    native_name: Option<&str>,
    reads: bool,
) -> u32 {
    let mut count = 0;
    let mut say = |words: &[&[u8]]| {
        write_command(out, words);
        count += 1;
    };
    if !credentials.password.is_empty() {
        if credentials.user.is_empty() {
            say(&[b"AUTH", &credentials.password]);
        } else {
            say(&[b"AUTH", &credentials.user, &credentials.password]);
        }
    }
    if kind.proto() == Proto::Resp3 {
        say(&[b"HELLO", b"3"]);
    }
    if kind.db() != 0 {
        say(&[b"SELECT", kind.db().to_string().as_bytes()]);
    }
    if let Some(name) = native_name {
        say(&[b"OXIDIS", b"PROXY", name.as_bytes()]);
    }
    if reads {
        say(&[b"READONLY"]);
    }
    // One that does not answer is noticed before a client's request waits for it.
    say(&[b"PING"]);
    count
}

/// Whether a reply to the greeting lets the lane open: success, or an error that concerns each command by itself.
pub fn is_fine(reply: &[u8]) -> bool {
    let passing = [&b"-LOADING"[..], b"-MASTERDOWN", b"-BUSY", b"-MISCONF", b"-CLUSTERDOWN"];
    reply.first() != Some(&b'-') && reply.first() != Some(&b'!') || passing.iter().any(|text| reply.starts_with(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_says_no_more_than_is_needed() {
        let mut out = Vec::new();
        assert_eq!(write(&mut out, LaneKind::PLAIN, &Credentials::default(), None, false), 1);
        assert_eq!(out, b"*1\r\n$4\r\nPING\r\n");
        out.clear();
        let credentials = Credentials { user: b"u".to_vec(), password: b"p".to_vec() };
        assert_eq!(write(&mut out, LaneKind::new(Proto::Resp3, 5), &credentials, Some("a"), false), 5);
        let text = String::from_utf8_lossy(&out).replace("\r\n", " ");
        assert_eq!(
            text,
            "*3 $4 AUTH $1 u $1 p *2 $5 HELLO $1 3 *2 $6 SELECT $1 5 *3 $6 OXIDIS $5 PROXY $1 a *1 $4 PING "
        );
    }

    #[test]
    fn a_wrong_database_keeps_a_lane_shut_and_loading_does_not() {
        assert!(is_fine(b"+PONG\r\n") && is_fine(b"-LOADING Redis is loading\r\n"));
        assert!(!is_fine(b"-ERR DB index is out of range\r\n") && !is_fine(b"-NOAUTH Authentication required.\r\n"));
    }
}
