//! `--cleanup`: deleting what the tests have written, and nothing else.
//!
//! The server is asked which words of a writing command are keys. Names without a number are deleted as they are. Names
//! with one are numbered through when there are not too many, otherwise looked for with SCAN, and deleted when they fit
//! to the character: a number of twelve digits within the range of the test.

use std::collections::BTreeSet;

use resp::Value;

use crate::{
    preflight::{Connection, reason},
    run::tell,
    safety,
    session::Session,
    suite::{Form, Test},
    template::write_twelve_digits,
};

/// Names of keys that tests have written.
#[derive(Debug, Default)]
pub(crate) struct Made {
    names: BTreeSet<Name>,
}

/// A key as it stands in a command, with the range of its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    text: Vec<u8>,
    low: u64,
    /// 0: placeholders are not replaced.
    span: u64,
    has_tags: bool,
}

impl Made {
    /// Notes what a test is about to write.
    pub(crate) fn note(&mut self, session: &Session, test: &Test) {
        let Some(server) = session.servers().first() else { return };
        let mut connection = Connection::to(&session.options, server).ok();
        for operation in &test.operations {
            let Some(form) = operation.forms.first() else { continue };
            if safety::is_reading(&safety::command_word(form)) {
                continue;
            }
            let (low, span) = match operation.keys {
                Some(keys) => (keys.low, keys.span),
                None => (session.options.extended.key_min, session.key_span(test).unwrap_or(0)),
            };
            let has_tags = session.options.cluster || session.options.extended.hash_tag.is_some();
            for text in keys_of(form, connection.as_mut()) {
                self.names.insert(Name { text, low, span, has_tags });
            }
        }
    }

    /// Deletes it from all servers and says how much it was. The error is a sentence for stderr.
    pub(crate) fn delete(&self, session: &Session) -> Result<(), String> {
        let mut deleted = 0;
        for server in session.servers() {
            let failed = |error: std::io::Error| format!("Error: cleanup of {}: {}", server.name, reason(&error));
            let mut connection = Connection::to(&session.options, server).map_err(|failure| failure.0)?;
            if session.options.database != 0 && !session.options.cluster {
                connection.ask(&["SELECT", &session.options.database.to_string()]).map_err(failed)?;
            }
            for name in &self.names {
                deleted += name.delete(&mut connection).map_err(failed)?;
            }
        }
        tell(format_args!("cleanup: {deleted} keys deleted"));
        Ok(())
    }
}

impl Name {
    fn delete(&self, connection: &mut Connection) -> std::io::Result<u64> {
        let numbers = if self.span == 0 { 0 } else { count(&self.text, NUMBER) };
        let tags = if self.has_tags { count(&self.text, TAG) } else { 0 };
        if tags == 0 && numbers == 0 {
            return unlink(connection, std::slice::from_ref(&self.text));
        }
        if tags == 0 && numbers == 1 && self.span <= NUMBERED_MAX {
            return self.delete_numbered(connection);
        }
        self.delete_found(connection)
    }

    fn delete_numbered(&self, connection: &mut Connection) -> std::io::Result<u64> {
        let Some(at) = position(&self.text, NUMBER) else { return Ok(0) };
        let (mut deleted, mut batch) = (0, Vec::with_capacity(BATCH));
        for number in self.low..self.low.saturating_add(self.span) {
            let mut key = self.text.clone();
            write_twelve_digits(&mut key[at..at + NUMBER.len()], number);
            batch.push(key);
            if batch.len() == BATCH {
                deleted += unlink(connection, &batch)?;
                batch.clear();
            }
        }
        Ok(deleted + unlink(connection, &batch)?)
    }

    fn delete_found(&self, connection: &mut Connection) -> std::io::Result<u64> {
        let pattern = self.pattern();
        let (mut deleted, mut cursor) = (0, b"0".to_vec());
        loop {
            let reply = connection.ask(&[b"SCAN".as_slice(), &cursor, b"MATCH", &pattern, b"COUNT", b"1000"])?;
            let Some([next, keys]) = reply.as_elements() else {
                let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
                return Err(std::io::Error::other(format!("SCAN: {text}")));
            };
            let keys = keys.as_elements().unwrap_or_default().iter().filter_map(Value::as_bytes);
            let ours: Vec<Vec<u8>> = keys.filter(|key| self.fits(key)).map(<[u8]>::to_vec).collect();
            if self.has_tags {
                // Keys of several slots cannot go together in a cluster.
                for key in &ours {
                    deleted += unlink(connection, std::slice::from_ref(key))?;
                }
            } else {
                deleted += unlink(connection, &ours)?;
            }
            cursor = next.as_bytes().unwrap_or(b"0").to_vec();
            if cursor == b"0" {
                return Ok(deleted);
            }
        }
    }

    /// A glob that all of the keys match.
    fn pattern(&self) -> Vec<u8> {
        let mut pattern = Vec::new();
        let mut rest = self.text.as_slice();
        while let Some(byte) = rest.first() {
            if self.span > 0 && rest.starts_with(NUMBER) {
                pattern.extend_from_slice(&[b'?'; NUMBER.len()]);
                rest = &rest[NUMBER.len()..];
            } else if self.has_tags && rest.starts_with(TAG) {
                pattern.extend_from_slice(b"{???}");
                rest = &rest[TAG.len()..];
            } else {
                if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^') {
                    pattern.push(b'\\');
                }
                pattern.push(*byte);
                rest = &rest[1..];
            }
        }
        pattern
    }

    /// Whether a key can have come from here.
    fn fits(&self, key: &[u8]) -> bool {
        if key.len() != self.text.len() {
            return false;
        }
        let mut at = 0;
        while at < key.len() {
            let (ours, theirs) = (&self.text[at..], &key[at..]);
            if self.span > 0 && ours.starts_with(NUMBER) {
                let digits = theirs.get(..NUMBER.len()).and_then(|digits| std::str::from_utf8(digits).ok());
                let is_digits = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
                let number = digits.and_then(|digits| digits.parse::<u64>().ok());
                let range = self.low..self.low.saturating_add(self.span);
                if !is_digits || !number.is_some_and(|number| range.contains(&number)) {
                    return false;
                }
                at += NUMBER.len();
            } else if self.has_tags && ours.starts_with(TAG) {
                let tag = theirs.get(1..4).unwrap_or_default();
                let is_tag = theirs[0] == b'{' && theirs.get(4) == Some(&b'}');
                if !is_tag || !tag.iter().all(u8::is_ascii_alphanumeric) {
                    return false;
                }
                at += TAG.len();
            } else {
                if ours[0] != theirs[0] {
                    return false;
                }
                at += 1;
            }
        }
        true
    }
}

/// The keys of a request as the server sees them; one that does not say gets the first word behind the command.
fn keys_of(form: &Form, connection: Option<&mut Connection>) -> Vec<Vec<u8>> {
    let Ok(Some((request, _))) = resp::parse_reply(&form.command) else { return Vec::new() };
    let words: Vec<&[u8]> = request.as_elements().unwrap_or_default().iter().filter_map(Value::as_bytes).collect();
    let mut question: Vec<&[u8]> = vec![b"COMMAND", b"GETKEYS"];
    question.extend(&words);
    let reply = connection.and_then(|connection| connection.ask(&question).ok());
    match reply.as_ref().and_then(Value::as_elements) {
        Some(keys) => keys.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec).collect(),
        None if is_keyless(reply.as_ref()) => Vec::new(),
        None => words.get(1).map(|word| word.to_vec()).into_iter().collect(),
    }
}

/// Whether the server has said that the command has no keys.
fn is_keyless(reply: Option<&Value>) -> bool {
    matches!(reply, Some(Value::Error(text)) if text.windows(16).any(|part| part == b"no key arguments"))
}

fn unlink(connection: &mut Connection, keys: &[Vec<u8>]) -> std::io::Result<u64> {
    if keys.is_empty() {
        return Ok(0);
    }
    for command in [b"UNLINK".as_slice(), b"DEL"] {
        let mut words: Vec<&[u8]> = vec![command];
        words.extend(keys.iter().map(Vec::as_slice));
        match connection.ask(&words)? {
            Value::Int(count) => return Ok(u64::try_from(count).unwrap_or(0)),
            // Servers before 4.0 have no UNLINK.
            Value::Error(text) if command == b"DEL" => {
                let text = String::from_utf8_lossy(&text).into_owned();
                if text.starts_with("MOVED") {
                    return Ok(0);
                }
                return Err(std::io::Error::other(text));
            }
            _ => {}
        }
    }
    Ok(0)
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn count(text: &[u8], part: &[u8]) -> usize {
    text.windows(part.len()).filter(|window| *window == part).count()
}

const NUMBER: &[u8] = b"__rand_int__";
const TAG: &[u8] = b"{tag}";
const BATCH: usize = 500;
/// Keys up to which they are numbered through instead of looked for.
const NUMBERED_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fitting_names_are_taken() {
        let name = Name { text: b"key:{tag}:__rand_int__*".to_vec(), low: 10, span: 5, has_tags: true };
        assert_eq!(name.pattern(), b"key:{???}:????????????\\*");
        assert!(name.fits(b"key:{abc}:000000000014*"));
        for other in [
            "key:{abc}:000000000015*",
            "key:{abc}:000000000009*",
            "key:{abc}:00000000001x*",
            "key:{a-c}:000000000011*",
            "key:(abc):000000000011*",
            "key:{abc}:000000000011",
            "kex:{abc}:000000000011*",
        ] {
            assert!(!name.fits(other.as_bytes()), "{other}");
        }
        let literal = Name { text: b"k__rand_int__".to_vec(), low: 0, span: 0, has_tags: false };
        assert!(literal.fits(b"k__rand_int__") && !literal.fits(b"k000000000001"));
    }
}
