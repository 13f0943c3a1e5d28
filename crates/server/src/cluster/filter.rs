//! What of the journal a move's target is to see.
//!
//! The journal holds what all slots did. A slot's changes matter from the offset at which it was copied; before that they
//! are part of the copy, or will be. What touches several slots (MSET and DEL of proxies, FLUSHALL) is cut to those of the
//! move. Brackets of transactions are left out: nobody looks at the slots before all of a transaction has arrived.

use super::copy::Stream;
use crate::shared::Shared;
use ::commands::CommandId;
use ::commands::table::{self, keys};
use keyspace::slot::SlotSpace;
use keyspace::{DbIndex, Slot};
use resp::{Args, Limits, Parse, ParseState, Request, parse_request};
use std::fmt;
use std::sync::Arc;
use topology::SlotSet;

/// The journal holds something that cannot be told to the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Untold(pub(crate) String);

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// See the module.
pub(crate) struct Filter {
    shared: Option<Arc<Shared>>,
    space: SlotSpace,
    slots: SlotSet,
    /// By slot: from which offset on its changes are told; `u64::MAX`: not at all (yet).
    from: Vec<u64>,
    /// Read and not parsed.
    buffer: Vec<u8>,
    /// Where the first byte of `buffer` that is not parsed lies in it.
    start: usize,
    /// Its offset in the journal.
    at: u64,
    db: DbIndex,
    parse: ParseState,
    request: Request,
}

/// The largest argument: the journal is our own, so there is no limit but sense.
pub(crate) const BULK_MAX: usize = 1 << 40;
/// Capacity kept for what is read next.
const KEPT_CAPACITY: usize = 256 << 10;

impl Filter {
    /// A filter for the journal from the offset `at` on, at which the database is told.
    pub(crate) fn new(shared: Option<Arc<Shared>>, space: SlotSpace, slots: SlotSet, at: u64) -> Filter {
        Filter {
            shared,
            space,
            slots,
            from: vec![u64::MAX; space.count()],
            buffer: Vec::new(),
            start: 0,
            at,
            db: DbIndex(0),
            parse: ParseState::default(),
            request: Request::new(),
        }
    }

    /// A slot was copied when the journal ended at `offset`.
    pub(crate) fn copied(&mut self, slot: Slot, offset: u64) {
        if let Some(from) = self.from.get_mut(slot.index()) {
            *from = offset;
        }
    }

    /// Where the next bytes of the journal are to be appended.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Tells what has been read. Returns whether a part of a command is left.
    ///
    /// # Errors
    /// What is in the way; the target cannot follow.
    pub(crate) fn pass(&mut self, out: &mut Stream) -> Result<(), Untold> {
        let limits = Limits::new(BULK_MAX);
        let mut request = std::mem::take(&mut self.request);
        let mut result = Ok(());
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match parse_request(rest, &mut self.parse, &limits, &mut request) {
                Parse::Request => {
                    let used = request.consumed();
                    let frame = rest.get(..used).unwrap_or_default();
                    result = tell(
                        self.shared.as_deref(),
                        self.space,
                        &self.slots,
                        &self.from,
                        &mut self.db,
                        self.at,
                        request.args(frame),
                        frame,
                        out,
                    );
                    self.start += used;
                    self.at += used as u64;
                    if result.is_err() {
                        break;
                    }
                }
                Parse::Empty => {
                    self.start += request.consumed();
                    self.at += request.consumed() as u64;
                }
                Parse::Incomplete { .. } => break,
                Parse::Error(error) => {
                    result = Err(Untold(format!("the journal is broken: {error}")));
                    break;
                }
            }
        }
        self.request = request;
        if self.start >= self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_CAPACITY);
            self.start = 0;
        } else if self.start > KEPT_CAPACITY {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        result
    }
}

#[allow(clippy::too_many_arguments)]
fn tell(
    shared: Option<&Shared>,
    space: SlotSpace,
    slots: &SlotSet,
    from: &[u64],
    db: &mut DbIndex,
    at: u64,
    args: Args<'_>,
    frame: &[u8],
    out: &mut Stream,
) -> Result<(), Untold> {
    use CommandId as C;
    let name = args.get(0).unwrap_or_default();
    let renamed = shared.and_then(|shared| shared.renamed(name));
    let Some(mut spec) = renamed.unwrap_or_else(|| table::lookup(name)) else {
        return Err(Untold(format!("the journal holds an unknown command '{}'", String::from_utf8_lossy(name))));
    };
    if spec.is_container()
        && let Some(sub) = args.get(1).and_then(|sub| table::lookup_sub(spec, sub))
    {
        spec = sub;
    }
    let is_told = |slot: Slot| from.get(slot.index()).is_some_and(|from| at >= *from);
    let dropped = |only: &SlotSet| -> SlotSet {
        slots.intersection(only).iter().filter(|slot| is_told(Slot::new(usize::from(*slot)))).collect()
    };
    match spec.id {
        C::Select => {
            let number = args.get(1).and_then(resp::num::parse_i64).and_then(|number| u32::try_from(number).ok());
            *db = DbIndex(number.ok_or_else(|| Untold("the journal selects no database".to_owned()))?);
            return Ok(());
        }
        C::Flushall => {
            drop_all(out, *db, &dropped(slots), None);
            return Ok(());
        }
        C::Flushdb => {
            drop_all(out, *db, &dropped(slots), Some(*db));
            return Ok(());
        }
        C::OxidisSlots => {
            let ranges = args.get(3).and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse().ok());
            let only = args.get(4).and_then(resp::num::parse_i64).and_then(|db| u32::try_from(db).ok()).map(DbIndex);
            drop_all(out, *db, &dropped(&ranges.unwrap_or_default()), only);
            return Ok(());
        }
        C::Swapdb => return Err(Untold("SWAPDB while slots move".to_owned())),
        _ if !spec.has_keys() => return Ok(()),
        _ => {}
    }
    let Ok(keys) = keys::touched_keys(spec, &args) else { return Ok(()) };
    let positions: Vec<usize> = keys.iter().map(|key| key.position as usize).collect();
    let told = |position: &usize| args.get(*position).is_some_and(|key| is_told(space.slot(key)));
    let count = positions.iter().filter(|position| told(position)).count();
    if count == 0 {
        return Ok(());
    }
    if count == positions.len() {
        out.raw(*db, frame);
        return Ok(());
    }
    let per_key = match spec.id {
        C::Mset => 2,
        C::Del | C::Unlink | C::Touch => 1,
        _ => return Err(Untold(format!("'{}' on keys of several slots while one of them moves", spec.name))),
    };
    let mut words: Vec<&[u8]> = vec![name];
    for position in positions.iter().filter(|position| told(position)) {
        words.extend((*position..position + per_key).filter_map(|at| args.get(at)));
    }
    out.command(*db, words.into_iter());
    Ok(())
}

fn drop_all(out: &mut Stream, db: DbIndex, slots: &SlotSet, only: Option<DbIndex>) {
    if slots.is_empty() {
        return;
    }
    let ranges = slots.to_string();
    let number = only.map(|db| db.0.to_string());
    let mut words: Vec<&[u8]> = vec![b"OXIDIS", b"SLOTS", b"DROP", ranges.as_bytes()];
    words.extend(number.as_ref().map(|number| number.as_bytes()));
    out.command(db, words.into_iter());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use keyspace::journal::effects::push_command;

    fn journal(commands: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for command in commands {
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            push_command(&mut bytes, words.into_iter());
        }
        bytes
    }

    fn told(slots: &[&str], copied_at: impl Fn(&str) -> u64, commands: &[&str]) -> Result<String, Untold> {
        let space = SlotSpace::Redis;
        let slot = |key: &str| space.slot(key.as_bytes());
        let set: SlotSet = slots.iter().map(|key| u16::try_from(slot(key).index()).unwrap()).collect();
        let mut filter = Filter::new(None, space, set, 100);
        for key in slots {
            filter.copied(slot(key), copied_at(key));
        }
        let mut out = Stream::default();
        // In pieces, as it may come.
        for piece in journal(commands).chunks(7) {
            filter.room().extend_from_slice(piece);
            filter.pass(&mut out)?;
        }
        let mut words = Vec::new();
        let mut request = Request::new();
        let mut at = 0;
        while at < out.bytes.len() {
            let rest = &out.bytes[at..];
            let parsed = parse_request(rest, &mut ParseState::default(), &Limits::new(1 << 20), &mut request);
            assert_eq!(parsed, Parse::Request);
            let args = request.args(rest);
            words
                .push(args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" "));
            at += request.consumed();
        }
        Ok(words.join("; "))
    }

    #[test]
    fn what_other_slots_do_is_left_out() {
        let commands = ["SELECT 0", "SET a 1", "SET b 2", "MULTI", "INCR a", "INCR b", "EXEC", "SELECT 3", "DEL a"];
        assert_eq!(told(&["a"], |_| 0, &commands).unwrap(), "SELECT 0; SET a 1; INCR a; SELECT 3; DEL a");
    }

    #[test]
    fn what_is_part_of_the_copy_is_left_out() {
        let first = 100 + journal(&["SELECT 0", "INCR a"]).len() as u64;
        assert_eq!(told(&["a"], |_| first, &["SELECT 0", "INCR a", "INCR a"]).unwrap(), "SELECT 0; INCR a");
        assert_eq!(told(&["a"], |_| u64::MAX, &["SELECT 0", "INCR a"]).unwrap(), "");
    }

    #[test]
    fn what_touches_several_slots_is_cut() {
        let commands = ["SELECT 0", "MSET a 1 b 2 c 3", "DEL b a", "UNLINK b", "FLUSHALL", "FLUSHDB ASYNC"];
        let slot = |key: &str| SlotSpace::Redis.slot(key.as_bytes()).index();
        let mut both = [slot("a"), slot("c")];
        both.sort_unstable();
        let both = both.map(|slot| slot.to_string()).join(",");
        assert_eq!(
            told(&["a", "c"], |_| 0, &commands).unwrap(),
            format!("SELECT 0; MSET a 1 c 3; DEL a; OXIDIS SLOTS DROP {both}; OXIDIS SLOTS DROP {both} 0")
        );
        let drop = format!("OXIDIS SLOTS DROP {}-16383", slot("a"));
        assert_eq!(
            told(&["a"], |_| 0, &["SELECT 0", &drop]).unwrap(),
            format!("SELECT 0; OXIDIS SLOTS DROP {}", slot("a"))
        );
        assert!(told(&["a"], |_| 0, &["SELECT 0", "RENAME a b"]).is_err());
        assert!(told(&["a"], |_| 0, &["SELECT 0", "SWAPDB 0 1"]).is_err());
    }
}
