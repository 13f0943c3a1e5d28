//! Commands that took long: SLOWLOG.
//!
//! Arguments are cut as Redis cuts them (32 arguments, 128 bytes each), and secrets are never kept.

use crate::config::Config;
use crate::session::Session;
use crate::shared::Shared;
use commands::table::{CommandSpec, Flags};
use parking_lot::Mutex;
use resp::Args;
use std::collections::VecDeque;

const ARGUMENTS_KEPT: usize = 32;
const ARGUMENT_BYTES_KEPT: usize = 128;

/// One slow command.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Its number.
    pub id: u64,
    /// Unix seconds when it ended.
    pub time_s: i64,
    /// How long it ran.
    pub microseconds: u64,
    /// Its arguments, cut.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
}

struct Log<E> {
    next_id: u64,
    entries: VecDeque<E>,
}

/// See the module. The entries are the server's or another tool's.
pub struct SlowLog<E = SlowEntry>(Mutex<Log<E>>);

impl<E> Default for SlowLog<E> {
    fn default() -> Self {
        SlowLog(Mutex::new(Log { next_id: 0, entries: VecDeque::new() }))
    }
}

impl<E: Clone> SlowLog<E> {
    /// Adds the entry that `made` gives for its number, and drops the oldest beyond `max_len`.
    pub fn add(&self, max_len: usize, made: impl FnOnce(u64) -> E) {
        let mut log = self.0.lock();
        let entry = made(log.next_id);
        log.next_id += 1;
        log.entries.push_front(entry);
        log.entries.truncate(max_len);
    }

    /// The newest `count` entries.
    pub fn newest(&self, count: usize) -> Vec<E> {
        self.0.lock().entries.iter().take(count).cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.lock().entries.clear();
    }
}

/// Arguments as the log keeps them.
pub fn kept_arguments(args: Args<'_>) -> Vec<Vec<u8>> {
    let count = args.len();
    let mut kept = Vec::with_capacity(count.min(ARGUMENTS_KEPT));
    for (index, argument) in args.iter().enumerate().take(ARGUMENTS_KEPT) {
        if index == ARGUMENTS_KEPT - 1 && count > ARGUMENTS_KEPT {
            kept.push(format!("... ({} more arguments)", count - ARGUMENTS_KEPT + 1).into_bytes());
        } else if argument.len() > ARGUMENT_BYTES_KEPT {
            let mut cut = argument[..ARGUMENT_BYTES_KEPT].to_vec();
            cut.extend_from_slice(format!("... ({} more bytes)", argument.len() - ARGUMENT_BYTES_KEPT).as_bytes());
            kept.push(cut);
        } else {
            kept.push(argument.to_vec());
        }
    }
    kept
}

/// The arguments of a command for the log.
pub(crate) enum Kept<'a> {
    /// As they came.
    Whole(Args<'a>),
    /// Already cut by [`kept_arguments`].
    Cut(Vec<Vec<u8>>),
}

impl Shared {
    /// Notes a command for SLOWLOG and the latency monitor if it passed their thresholds.
    pub(crate) fn note_slow_command(
        &self,
        config: &Config,
        now_ms: i64,
        session: &Session,
        spec: &CommandSpec,
        kept: Kept<'_>,
        microseconds: u64,
    ) {
        let monitor_ms = u64::try_from(config.latency_monitor_threshold).unwrap_or(0);
        if monitor_ms > 0 && microseconds / 1000 >= monitor_ms {
            let event = if spec.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
            self.latency.note(event, now_ms / 1000, microseconds / 1000);
        }
        let Ok(threshold) = u64::try_from(config.slowlog_log_slower_than) else { return };
        let max_len = usize::try_from(config.slowlog_max_len).unwrap_or(0);
        if microseconds < threshold || spec.flags.contains(Flags::SKIP_SLOWLOG) || max_len == 0 {
            return;
        }
        let entry = SlowEntry {
            id: 0,
            time_s: now_ms / 1000,
            microseconds,
            args: crate::redact::arguments(
                spec,
                match kept {
                    Kept::Whole(args) => kept_arguments(args),
                    Kept::Cut(args) => args,
                },
            ),
            address: crate::session::address_text(session.address, &String::from_utf8_lossy(&config.unixsocket)),
            name: session.extra.as_ref().map(|extra| extra.name.clone()).unwrap_or_default(),
        };
        self.slowlog.add(max_len, |id| SlowEntry { id, ..entry });
    }
}
