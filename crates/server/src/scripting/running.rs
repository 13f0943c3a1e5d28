//! The board of running scripts.
//!
//! Each thread that runs scripts has one place on it for good. A short script writes two words there; only one that runs
//! for a while says what it is and what it holds.

use keyspace::Slot;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

/// What a long script is.
#[derive(Default)]
pub(crate) struct Details {
    /// Its SHA-1, or the function's name.
    pub(crate) name: String,
    /// The command that started it.
    pub(crate) command: Vec<Vec<u8>>,
    pub(crate) is_eval: bool,
    pub(crate) since: Option<Instant>,
    /// The slots it holds.
    pub(crate) slots: Vec<Slot>,
    /// It holds all of them.
    pub(crate) holds_all: bool,
}

/// One thread's place.
#[derive(Default)]
pub(crate) struct Running {
    /// Details are there: it runs, and has done so for a while.
    is_long: AtomicBool,
    /// It runs for longer than others are to wait in silence.
    is_busy: AtomicBool,
    /// It has written.
    pub(crate) wrote: AtomicBool,
    /// It is to end.
    pub(crate) killed: AtomicBool,
    details: Mutex<Details>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Board {
    places: Mutex<Vec<Arc<Running>>>,
    long: AtomicUsize,
    busy: AtomicUsize,
}

/// What came of SCRIPT KILL or FUNCTION KILL.
pub(crate) enum Killed {
    Some,
    Nobody,
    /// It has written.
    Unkillable,
    /// Only scripts of the other kind run.
    OtherKind,
}

impl Board {
    pub(crate) fn join(&self) -> Arc<Running> {
        let place = Arc::new(Running::default());
        self.places.lock().push(place.clone());
        place
    }

    /// A script has run for a while.
    pub(crate) fn note_long(&self, place: &Running, details: Details) {
        *place.details.lock() = details;
        if !place.is_long.swap(true, Ordering::SeqCst) {
            self.long.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Others are to be told that it runs. Returns the slots whose waiters should look again.
    pub(crate) fn note_busy(&self, place: &Running) -> Vec<Slot> {
        if !place.is_busy.swap(true, Ordering::SeqCst) {
            self.busy.fetch_add(1, Ordering::SeqCst);
        }
        place.details.lock().slots.clone()
    }

    /// What it holds has changed.
    pub(crate) fn note_slots(&self, place: &Running, slots: &[Slot], holds_all: bool) {
        let mut details = place.details.lock();
        details.slots = slots.to_vec();
        details.holds_all = holds_all;
    }

    /// It has ended.
    pub(crate) fn note_end(&self, place: &Running) {
        // Only this thread sets it.
        if !place.is_long.load(Ordering::Relaxed) {
            return;
        }
        if place.is_long.swap(false, Ordering::SeqCst) {
            self.long.fetch_sub(1, Ordering::SeqCst);
            *place.details.lock() = Details::default();
        }
        if place.is_busy.swap(false, Ordering::SeqCst) {
            self.busy.fetch_sub(1, Ordering::SeqCst);
        }
        place.killed.store(false, Ordering::SeqCst);
    }

    /// Whether any script is busy.
    #[inline]
    pub(crate) fn any_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    /// Whether a busy script holds this slot (`None`: any slot), and whether it is one of EVAL.
    pub(crate) fn busy_holder(&self, slot: Option<Slot>) -> Option<bool> {
        if !self.any_busy() {
            return None;
        }
        let places = self.places.lock();
        places.iter().filter(|place| place.is_busy.load(Ordering::SeqCst)).find_map(|place| {
            let details = place.details.lock();
            let holds = details.holds_all || slot.is_none_or(|slot| details.slots.contains(&slot));
            holds.then_some(details.is_eval)
        })
    }

    /// SCRIPT KILL (`eval`) or FUNCTION KILL.
    pub(crate) fn kill(&self, eval: bool) -> Killed {
        if self.long.load(Ordering::SeqCst) == 0 {
            return Killed::Nobody;
        }
        let places = self.places.lock();
        let (mut others, mut unkillable, mut killed) = (false, false, false);
        for place in places.iter().filter(|place| place.is_long.load(Ordering::SeqCst)) {
            if place.wrote.load(Ordering::SeqCst) {
                unkillable = true;
            } else if place.details.lock().is_eval != eval {
                others = true;
            } else {
                place.killed.store(true, Ordering::SeqCst);
                killed = true;
            }
        }
        match (killed, unkillable, others) {
            (true, ..) => Killed::Some,
            (_, true, _) => Killed::Unkillable,
            (_, _, true) => Killed::OtherKind,
            _ => Killed::Nobody,
        }
    }

    /// Looks at the script that has run longest.
    pub(crate) fn longest<R>(&self, look: impl FnOnce(&Details) -> R) -> Option<R> {
        if self.long.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let places = self.places.lock();
        let since = |place: &Arc<Running>| place.details.lock().since;
        let oldest = places
            .iter()
            .filter(|place| place.is_long.load(Ordering::SeqCst))
            .min_by_key(|place| since(place).unwrap_or_else(Instant::now))?;
        let details = oldest.details.lock();
        details.since.is_some().then(|| look(&details))
    }
}

/// Scripts that have written and wait for a slot, with what they hold.
#[derive(Default)]
pub(crate) struct Waits {
    waiting: Mutex<Vec<Wait>>,
    next: AtomicU32,
}

struct Wait {
    id: u32,
    holds: Vec<Slot>,
    wants: Slot,
}

impl Waits {
    /// Announces a wait. `None`: it would close a circle.
    pub(crate) fn begin(&self, holds: &[Slot], wants: Slot) -> Option<u32> {
        let mut waiting = self.waiting.lock();
        // From the slot wanted to who holds it and waits himself, and so on: back to us?
        let mut slot = wants;
        for _ in 0..=waiting.len() {
            let Some(holder) = waiting.iter().find(|wait| wait.holds.contains(&slot)) else { break };
            if holds.contains(&holder.wants) {
                return None;
            }
            slot = holder.wants;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        waiting.push(Wait { id, holds: holds.to_vec(), wants });
        Some(id)
    }

    /// It has got the slot, or given up.
    pub(crate) fn end(&self, id: u32) {
        self.waiting.lock().retain(|wait| wait.id != id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn circles_are_refused() {
        let waits = Waits::default();
        let slot = Slot::new;
        let first = waits.begin(&[slot(1)], slot(2)).unwrap();
        let second = waits.begin(&[slot(2), slot(5)], slot(3)).unwrap();
        assert!(waits.begin(&[slot(3)], slot(1)).is_none(), "1 waits for 2, 2 for 3, 3 for 1");
        assert!(waits.begin(&[slot(4)], slot(1)).is_some());
        waits.end(second);
        assert!(waits.begin(&[slot(3)], slot(1)).is_some());
        waits.end(first);
    }

    #[test]
    fn kills_find_their_kind() {
        let board = Board::default();
        let place = board.join();
        assert!(matches!(board.kill(true), Killed::Nobody));
        board.note_long(&place, Details { is_eval: true, since: Some(Instant::now()), ..Details::default() });
        assert!(matches!(board.kill(false), Killed::OtherKind));
        assert!(matches!(board.kill(true), Killed::Some));
        assert!(place.killed.load(Ordering::SeqCst));
        place.wrote.store(true, Ordering::SeqCst);
        assert!(matches!(board.kill(true), Killed::Unkillable));
        board.note_end(&place);
        assert!(matches!(board.kill(true), Killed::Nobody));
    }

    #[test]
    fn busy_slots() {
        let board = Board::default();
        let place = board.join();
        let details = Details { is_eval: true, slots: vec![Slot::new(7)], ..Details::default() };
        board.note_long(&place, details);
        assert_eq!(board.busy_holder(Some(Slot::new(7))), None);
        assert_eq!(board.note_busy(&place), [Slot::new(7)]);
        assert_eq!(board.busy_holder(Some(Slot::new(7))), Some(true));
        assert_eq!(board.busy_holder(Some(Slot::new(8))), None);
        board.note_end(&place);
        assert!(!board.any_busy());
    }
}
