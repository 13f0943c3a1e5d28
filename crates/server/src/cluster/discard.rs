//! Emptying slots that are no longer (or have not become) ours.
//!
//! A slot's tables are taken out whole, which takes no time, and freed in the background. It is recorded as
//! `OXIDIS SLOTS DROP`, so that the append only file and replicas follow.

use crate::log;
use crate::process::log::Level;
use crate::process::now_ms;
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use keyspace::lock::Wake;
use keyspace::slot::{Db, Tenure};
use keyspace::{DbIndex, Events, LockSet, Slot};
use std::sync::Arc;
use std::time::Duration;
use topology::SlotSet;

/// How long the thread sleeps for a busy slot before it looks again by itself.
const SLOT_PATIENCE: Duration = Duration::from_millis(1);

/// Empties slots on a thread of its own, then tells the control thread.
pub(crate) fn start(shared: &Arc<Shared>, slots: SlotSet) {
    let of_thread = shared.clone();
    let spawned = std::thread::Builder::new().name("slots-drop".into()).spawn(move || {
        let mut locks = LockSet::new(of_thread.keyspace.clone());
        let keys = empty(&of_thread, &mut locks, &slots);
        if keys > 0 {
            log!(Level::Notice, "Dropped {keys} keys of slots {slots}, which another server has");
        }
        of_thread.control(move |control| control.discarded(&slots));
    });
    if let Err(error) = spawned {
        log!(Level::Warning, "There is no thread to drop slots on; a restart will: {error}");
    }
}

/// Empties those of the slots that are another's. Returns how many keys went.
fn empty(shared: &Arc<Shared>, locks: &mut LockSet, slots: &SlotSet) -> u64 {
    let mut keys = 0;
    for slot in super::slots_of(slots) {
        lock(locks, slot);
        let tenure = locks.tenure(slot);
        // A replica's keys go when its primary says so.
        let may_go = tenure.has(Tenure::FOREIGN) && !tenure.has(Tenure::IMPORTED) && !shared.replication.is_replica();
        if may_go {
            keys += take_out(shared, locks, slot, None);
        }
        locks.unlock_all();
        locks.leave();
    }
    keys
}

/// Takes a slot, sleeping while it is busy. The gate is entered with it.
pub(crate) fn lock(locks: &mut LockSet, slot: Slot) {
    loop {
        locks.enter();
        if locks.try_lock(slot) {
            return;
        }
        let is_parked = locks.park(slot, Wake::Thread(std::thread::current()));
        locks.leave();
        if is_parked {
            std::thread::park_timeout(SLOT_PATIENCE);
        }
    }
}

/// Takes the keys of a held slot out, of one database or all, and records it. Returns how many.
pub(crate) fn take_out(shared: &Arc<Shared>, locks: &mut LockSet, slot: Slot, only: Option<DbIndex>) -> u64 {
    if locks.slot(slot).key_count() == 0 {
        return 0;
    }
    let mut garbage: Vec<Db> = Vec::new();
    let mut events = Events::default();
    locks.invalidate_slot(slot, &mut events);
    let keys = locks.empty_slot(slot, only, now_ms(), &mut garbage);
    record_drop(locks, &slot.index().to_string(), only);
    shared.keyspace.reclaimer.free(garbage);
    if !events.invalidations.is_empty() {
        let tell = move |worker: &mut Worker, _: &mut net::Conns<Worker>| {
            worker.events.invalidations.append(&mut events.invalidations);
            worker.tell_invalidations(None);
        };
        shared.post(0, Message::Call(Box::new(tell)));
    }
    keys
}

/// Records that slots were emptied, of one database or all.
pub(crate) fn record_drop(locks: &mut LockSet, ranges: &str, only: Option<DbIndex>) {
    let number = only.map(|db| db.0.to_string());
    let mut words: Vec<&[u8]> = vec![b"OXIDIS", b"SLOTS", b"DROP", ranges.as_bytes()];
    words.extend(number.as_ref().map(|number| number.as_bytes()));
    locks.record(only.unwrap_or_default(), &words);
}
