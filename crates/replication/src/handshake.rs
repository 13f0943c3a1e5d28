//! The replica's handshake, as a state machine over lines: what to send, what is expected, what to log.
//!
//! Order as in Redis 7.2: PING; then AUTH, REPLCONF listening-port, ip-address and capa in one go; then PSYNC. A primary
//! that knows no PSYNC is asked for SYNC.

use crate::Severity;
use crate::history::ID_LEN;

/// Longest line of an answer.
pub const LINE_MAX: usize = 256;

/// What a replica says of itself and asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// User, if any, and password.
    pub auth: Option<(Option<Vec<u8>>, Vec<u8>)>,
    /// The port it is to be shown with.
    pub port: u16,
    /// The address it is to be shown with, if not that of its connection.
    pub address: Option<Vec<u8>>,
    /// The history it has and how many bytes of it.
    pub has: Option<(String, u64)>,
    /// The other side is to take over as primary (FAILOVER).
    pub hands_over: bool,
}

/// What the primary answered to PSYNC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The stream goes on where the replica left it. The name of the history, if it was told.
    Continue(Option<String>),
    /// A snapshot follows, which holds so many bytes of this history.
    Full {
        /// The history; `None`: the primary named none that could be understood.
        history: Option<(String, u64)>,
    },
    /// A snapshot follows, of a server that knows no PSYNC.
    Old,
}

/// What comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Wait for the next line.
    Wait,
    /// Send these bytes and wait.
    Send(Vec<u8>),
    /// The handshake is over.
    Done(Answer),
    /// It has failed; try again later.
    Fail,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ping,
    Auth,
    Port,
    Address,
    Capabilities,
    Psync,
    Over,
}

/// See the module.
#[derive(Debug)]
pub struct Handshake {
    introduction: Introduction,
    state: State,
    log: Vec<(Severity, String)>,
}

/// Appends a command as a RESP array.
fn push_command(bytes: &mut Vec<u8>, words: &[&[u8]]) {
    bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}

/// A command as a RESP array.
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_command(&mut bytes, words);
    bytes
}

impl Handshake {
    /// Begins: gives what is to be sent when the connection stands.
    pub fn begin(introduction: Introduction) -> (Handshake, Vec<u8>) {
        (Handshake { introduction, state: State::Ping, log: Vec::new() }, command(&[b"PING"]))
    }

    /// Lines for the log since the last call.
    pub fn take_log(&mut self) -> Vec<(Severity, String)> {
        std::mem::take(&mut self.log)
    }

    fn note(&mut self, severity: Severity, text: String) {
        self.log.push((severity, text));
    }

    fn fail(&mut self, text: String) -> Next {
        self.state = State::Over;
        self.note(Severity::Warning, text);
        Next::Fail
    }

    /// Takes one line of the primary, without its end.
    pub fn line(&mut self, line: &[u8]) -> Next {
        let text = String::from_utf8_lossy(line).into_owned();
        let is_error = line.first() == Some(&b'-');
        match self.state {
            State::Ping => {
                let may_go_on = line.first() == Some(&b'+')
                    || ["-NOAUTH", "-NOPERM", "-ERR operation not permitted"]
                        .iter()
                        .any(|known| text.starts_with(known));
                if !may_go_on {
                    return self.fail(format!("Error reply to PING from master: '{text}'"));
                }
                self.note(Severity::Notice, "Master replied to PING, replication can continue...".into());
                self.state = if self.introduction.auth.is_some() { State::Auth } else { State::Port };
                Next::Send(self.introduce())
            }
            State::Auth if is_error => self.fail(format!("Unable to AUTH to MASTER: {text}")),
            State::Auth => {
                self.state = State::Port;
                Next::Wait
            }
            State::Port => {
                self.note_refusal(is_error, "listening-port", &text);
                self.state = if self.introduction.address.is_some() { State::Address } else { State::Capabilities };
                Next::Wait
            }
            State::Address => {
                self.note_refusal(is_error, "ip-address", &text);
                self.state = State::Capabilities;
                Next::Wait
            }
            State::Capabilities => {
                self.note_refusal(is_error, "capa", &text);
                self.state = State::Psync;
                Next::Send(self.ask())
            }
            // The primary keeps the connection alive while it gets ready.
            State::Psync if line.is_empty() => Next::Wait,
            State::Psync => self.answer(&text),
            State::Over => Next::Fail,
        }
    }

    fn note_refusal(&mut self, is_error: bool, option: &str, text: &str) {
        if is_error {
            let line = format!("(Non critical) Master does not understand REPLCONF {option}: {text}");
            self.note(Severity::Notice, line);
        }
    }

    fn introduce(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match &self.introduction.auth {
            Some((Some(user), password)) => push_command(&mut bytes, &[b"AUTH", user, password]),
            Some((None, password)) => push_command(&mut bytes, &[b"AUTH", password]),
            None => {}
        }
        let port = self.introduction.port.to_string();
        push_command(&mut bytes, &[b"REPLCONF", b"listening-port", port.as_bytes()]);
        if let Some(address) = &self.introduction.address {
            push_command(&mut bytes, &[b"REPLCONF", b"ip-address", address]);
        }
        push_command(&mut bytes, &[b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"]);
        bytes
    }

    fn ask(&mut self) -> Vec<u8> {
        let (id, offset) = match &self.introduction.has {
            Some((id, has)) => {
                let from = has.saturating_add(1).to_string();
                let line = format!("Trying a partial resynchronization (request {id}:{from}).");
                let asked = (id.clone(), from);
                self.note(Severity::Notice, line);
                asked
            }
            None => {
                self.note(Severity::Notice, "Partial resynchronization not possible (no cached master)".into());
                ("?".to_owned(), "-1".to_owned())
            }
        };
        let (id, offset) = (id.as_bytes(), offset.as_bytes());
        if self.introduction.hands_over {
            command(&[b"PSYNC", id, offset, b"FAILOVER"])
        } else {
            command(&[b"PSYNC", id, offset])
        }
    }

    fn answer(&mut self, text: &str) -> Next {
        self.state = State::Over;
        if let Some(rest) = text.strip_prefix("+FULLRESYNC") {
            let mut words = rest.split_ascii_whitespace();
            let id = words.next().filter(|id| id.len() == ID_LEN && id.bytes().all(|byte| byte.is_ascii_graphic()));
            let offset = words.next().and_then(|offset| offset.parse::<u64>().ok()).filter(|at| *at <= i64::MAX as u64);
            let history = id.zip(offset).map(|(id, offset)| (id.to_owned(), offset));
            match &history {
                Some((id, offset)) => self.note(Severity::Notice, format!("Full resync from master: {id}:{offset}")),
                None => self.note(Severity::Warning, "Master replied with wrong +FULLRESYNC syntax.".into()),
            }
            return Next::Done(Answer::Full { history });
        }
        if let Some(rest) = text.strip_prefix("+CONTINUE") {
            if self.introduction.has.is_none() {
                return self.fail(format!("Unexpected reply to PSYNC from master: {text}"));
            }
            self.note(Severity::Notice, "Successful partial resynchronization with master.".into());
            let id = rest.trim();
            let is_id = id.len() == ID_LEN && id.bytes().all(|byte| byte.is_ascii_graphic());
            return Next::Done(Answer::Continue(is_id.then(|| id.to_owned())));
        }
        if text.starts_with("-NOMASTERLINK") || text.starts_with("-LOADING") {
            let line = format!("Master is currently unable to PSYNC but should be in the future: {text}");
            self.note(Severity::Notice, line);
            return Next::Fail;
        }
        if text.starts_with("-ERR") {
            let line = format!("Master does not support PSYNC or is in error state (reply: {text})");
            self.note(Severity::Notice, line);
            if self.introduction.hands_over {
                return Next::Fail;
            }
        } else {
            self.note(Severity::Warning, format!("Unexpected reply to PSYNC from master: {text}"));
            return Next::Fail;
        }
        self.note(Severity::Notice, "Retrying with SYNC...".into());
        Next::Done(Answer::Old)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use proptest::prelude::*;

    fn text(next: Next) -> String {
        match next {
            Next::Send(bytes) => String::from_utf8(bytes).unwrap().replace("\r\n", " "),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_whole_course() {
        let introduction = Introduction {
            auth: Some((Some(b"u".to_vec()), b"p".to_vec())),
            port: 7,
            address: Some(b"h".to_vec()),
            has: Some(("a".repeat(ID_LEN), 41)),
            hands_over: false,
        };
        let (mut handshake, first) = Handshake::begin(introduction);
        assert_eq!(first, b"*1\r\n$4\r\nPING\r\n");
        let sent = text(handshake.line(b"-NOAUTH Authentication required."));
        assert_eq!(
            sent,
            "*3 $4 AUTH $1 u $1 p *3 $8 REPLCONF $14 listening-port $1 7 *3 $8 REPLCONF $10 ip-address $1 h *5 $8 REPLCONF $4 capa $3 eof $4 capa $6 psync2 "
        );
        assert_eq!(handshake.line(b"+OK"), Next::Wait);
        assert_eq!(handshake.line(b"+OK"), Next::Wait);
        assert_eq!(handshake.line(b"-ERR what"), Next::Wait);
        assert_eq!(text(handshake.line(b"+OK")), format!("*3 $5 PSYNC $40 {} $2 42 ", "a".repeat(ID_LEN)));
        assert_eq!(handshake.line(b""), Next::Wait);
        let id = "b".repeat(ID_LEN);
        assert_eq!(handshake.line(format!("+CONTINUE {id}").as_bytes()), Next::Done(Answer::Continue(Some(id))));
        let log: Vec<String> = handshake.take_log().into_iter().map(|(_, line)| line).collect();
        assert_eq!(log[0], "Master replied to PING, replication can continue...");
        assert_eq!(log[1], "(Non critical) Master does not understand REPLCONF ip-address: -ERR what");
        assert_eq!(log.last().unwrap(), "Successful partial resynchronization with master.");
    }

    fn at_psync() -> Handshake {
        let (mut handshake, _) = Handshake::begin(Introduction::default());
        for line in ["+PONG", "+OK", "+OK"] {
            handshake.line(line.as_bytes());
        }
        handshake
    }

    #[test]
    fn answers_to_psync() {
        let id = "c".repeat(ID_LEN);
        let full = |history| Next::Done(Answer::Full { history });
        assert_eq!(at_psync().line(format!("+FULLRESYNC {id} 12").as_bytes()), full(Some((id.clone(), 12))));
        assert_eq!(at_psync().line(b"+FULLRESYNC x 12"), full(None));
        assert_eq!(at_psync().line(format!("+FULLRESYNC {id} -3").as_bytes()), full(None));
        assert_eq!(at_psync().line(format!("+FULLRESYNC {id} 99999999999999999999").as_bytes()), full(None));
        // Who asked for everything cannot go on with something.
        assert_eq!(at_psync().line(b"+CONTINUE"), Next::Fail);
        assert_eq!(at_psync().line(b"-LOADING Redis is loading the dataset in memory"), Next::Fail);
        assert_eq!(at_psync().line(b"-NOMASTERLINK Can't SYNC"), Next::Fail);
        assert_eq!(at_psync().line(b"-ERR unknown command"), Next::Done(Answer::Old));
        assert_eq!(at_psync().line(b"hello"), Next::Fail);
    }

    #[test]
    fn refusals_end_it() {
        let (mut handshake, _) = Handshake::begin(Introduction::default());
        assert_eq!(handshake.line(b"-DENIED no"), Next::Fail);
        assert_eq!(handshake.take_log()[0].1, "Error reply to PING from master: '-DENIED no'");
        let auth = Introduction { auth: Some((None, b"p".to_vec())), ..Introduction::default() };
        let (mut handshake, _) = Handshake::begin(auth);
        handshake.line(b"+PONG");
        assert_eq!(handshake.line(b"-WRONGPASS x"), Next::Fail);
    }

    proptest! {
        #[test]
        fn no_lines_panic(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..12)) {
            let (mut handshake, _) = Handshake::begin(Introduction::default());
            for line in lines {
                let _ = handshake.line(&line);
            }
        }
    }
}
