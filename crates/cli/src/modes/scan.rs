//! `--scan`: the names of keys, one a line.

use std::thread::sleep;

use resp::{Value, quote_repr};

use crate::format::Format;
use crate::output::{Outcome, fail, print, text};
use crate::session::Session;
use crate::signals;

/// A walk through the key space.
pub(super) struct Scan {
    /// Where SCAN goes on; `None` at the end.
    cursor: Option<u64>,
}

impl Scan {
    /// A walk from the cursor of the options.
    pub(super) fn new(session: &Session) -> Self {
        Scan { cursor: Some(session.options.cursor) }
    }

    /// The next keys, maybe none; `None` at the end.
    pub(super) fn next(&mut self, session: &mut Session) -> Outcome<Option<Vec<Vec<u8>>>> {
        let Some(cursor) = self.cursor else {
            return Ok(None);
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

/// Lists keys until the end or Ctrl-C.
pub(super) fn run(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let stop = signals::stop_flag();
    let quoted = session.options.style.format == Format::Standard;
    let mut scan = Scan::new(session);
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
