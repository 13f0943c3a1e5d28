//! `--scan`: the names of keys, one a line.

use std::thread::sleep;

use resp::{Value, quote_repr};

use super::cluster::ranges::{self, Place};
use crate::format::Format;
use crate::output::{Outcome, fail, print, text};
use crate::session::Session;
use crate::signals;

/// A walk through the key space; with `-c`, through those of all primaries.
pub(super) struct Scan {
    /// Where SCAN goes on; `None` at the end.
    cursor: Option<u64>,
    /// Servers that are still to be walked through, the next one last.
    rest: Vec<Place>,
    /// Keys of all of them, as far as DBSIZE tells.
    all: u64,
}

impl Scan {
    /// A walk from the cursor of the options. The session is then at the first server.
    pub(super) fn new(session: &mut Session) -> Outcome<Self> {
        let mut rest = if session.options.follow_redirects { ranges::primaries(session)? } else { Vec::new() };
        let mut all = 0_u64;
        if rest.is_empty() {
            all = database_size(session)?;
        }
        for place in &rest {
            session.go_to(place)?;
            all = all.saturating_add(database_size(session)?);
        }
        rest.reverse();
        if let Some(first) = rest.pop() {
            session.go_to(&first)?;
        }
        Ok(Scan { cursor: Some(session.options.cursor), rest, all })
    }

    /// A walk that does not ask for the number of keys first.
    fn of_names(session: &mut Session) -> Outcome<Self> {
        if session.options.follow_redirects {
            return Scan::new(session);
        }
        Ok(Scan { cursor: Some(session.options.cursor), rest: Vec::new(), all: 0 })
    }

    /// Keys that there were at the start.
    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// The next keys, maybe none; `None` at the end.
    pub(super) fn next(&mut self, session: &mut Session) -> Outcome<Option<Vec<Vec<u8>>>> {
        let cursor = match (self.cursor, self.rest.pop()) {
            (Some(cursor), next) => {
                self.rest.extend(next);
                cursor
            }
            (None, Some(next)) => {
                session.go_to(&next)?;
                0
            }
            (None, None) => return Ok(None),
        };
        let options = &session.options;
        let mut call = vec![b"SCAN".to_vec(), cursor.to_string().into_bytes()];
        if let Some(pattern) = &options.pattern {
            call.extend([b"MATCH".to_vec(), pattern.clone()]);
        }
        call.extend([b"COUNT".to_vec(), options.count.to_string().into_bytes()]);
        let reply = session.call(&call)?;
        let (cursor, keys) = match &reply {
            Value::Error(reason) => return fail(format_args!("SCAN error: {}", text(reason))),
            Value::Array(parts) => match parts.as_slice() {
                [cursor, Value::Array(keys)] => (cursor, keys),
                _ => return fail(format_args!("Invalid element count from SCAN!")),
            },
            _ => return fail(format_args!("Non ARRAY response from SCAN!")),
        };
        let cursor = cursor.as_bytes().and_then(|bytes| text(bytes).parse::<u64>().ok());
        self.cursor = cursor.filter(|cursor| *cursor != 0);
        Ok(Some(keys.iter().filter_map(|key| key.as_bytes().map(<[u8]>::to_vec)).collect()))
    }
}

fn database_size(session: &mut Session) -> Outcome<u64> {
    match session.call(&["DBSIZE"])? {
        Value::Int(size) => Ok(u64::try_from(size).unwrap_or(0)),
        Value::Error(reason) => fail(format_args!("Couldn't determine DBSIZE: {}", text(&reason))),
        _ => fail(format_args!("Non INTEGER response from DBSIZE!")),
    }
}

/// Lists keys until the end or Ctrl-C.
pub(super) fn run(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let stop = signals::stop_flag();
    let quoted = session.options.style.format == Format::Standard;
    let mut scan = Scan::of_names(session)?;
    while let Some(keys) = scan.next(session)? {
        let mut lines = Vec::new();
        for key in keys {
            lines.extend_from_slice(&if quoted { quote_repr(&key) } else { key });
            lines.push(b'\n');
        }
        print(lines)?;
        if let Some(interval) = session.options.interval {
            sleep(interval);
        }
        if signals::stopped(&stop) {
            break;
        }
    }
    Ok(())
}
