//! OXIDIS SLOTS STATS: what slots hold and how much they are used, for plans.
//!
//! Keys are counted, bytes estimated from a few entries of each slot, and commands from the samples that are taken of all
//! commands anyway.

use super::{discard, slots_of};
use crate::durability::save::Asker;
use crate::key_stats::SAMPLE_EVERY;
use crate::shared::Shared;
use ::commands::CmdError;
use keyspace::LockSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use topology::SlotSet;
use topology::wire::SlotStats;

/// Entries of a slot that are looked at.
const SAMPLES: usize = 8;
/// Elements of a large value that are looked at.
const ELEMENTS: usize = 5;
/// Over how long commands are counted at least.
const WINDOW: Duration = Duration::from_secs(10);

/// What the counts of uses were, and when.
pub(crate) struct Before {
    at: Instant,
    uses: Vec<u32>,
}

/// Answers on a thread of its own.
///
/// # Errors
/// There is no thread.
pub(crate) fn start(shared: &Arc<Shared>, wanted: Option<SlotSet>, asker: Asker) -> Result<(), CmdError> {
    let shared = shared.clone();
    let spawned = std::thread::Builder::new().name("slots-stats".into()).spawn(move || {
        let last = u16::try_from(shared.keyspace.space().count() - 1).unwrap_or(u16::MAX);
        let wanted = wanted.unwrap_or_else(|| SlotSet::range(0, last));
        let stats = measure(&shared, &wanted);
        let text = serde_json::to_string(&stats);
        asker.answer(&shared, |reply| match text {
            Ok(text) => reply.bulk(text),
            Err(error) => reply.error(format!("ERR the figures cannot be shown: {error}")),
        });
    });
    spawned.map(drop).map_err(|_| CmdError::new("ERR there is no thread to count on"))
}

fn measure(shared: &Arc<Shared>, wanted: &SlotSet) -> Vec<SlotStats> {
    let mut locks = LockSet::new(shared.keyspace.clone());
    let ops = rates(shared);
    let mut all = Vec::new();
    for slot in slots_of(wanted) {
        discard::lock(&mut locks, slot);
        let is_visible = locks.tenure(slot).is_visible();
        let data = locks.slot(slot);
        let keys = data.key_count() as u64;
        let mut bytes = 0;
        for (_, part) in data.dbs() {
            let sampled = part.table().iter().take(SAMPLES).map(|entry| entry.memory_bytes(ELEMENTS) as u64);
            let (mut sum, mut count) = (0, 0);
            for one in sampled {
                sum += one;
                count += 1;
            }
            bytes += sum.checked_div(count).unwrap_or(0) * part.len() as u64;
        }
        locks.unlock_all();
        locks.leave();
        let number = u16::try_from(slot.index()).unwrap_or(u16::MAX);
        let ops = ops.get(slot.index()).copied().unwrap_or(0);
        if is_visible && (keys > 0 || ops > 0) {
            all.push(SlotStats { slot: number, keys, bytes, ops });
        }
    }
    all
}

/// Commands a second of each slot, since the counts were looked at some time ago.
fn rates(shared: &Shared) -> Vec<u64> {
    let Some(uses) = shared.cluster.uses.get() else { return Vec::new() };
    let now: Vec<u32> = uses.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let mut before = shared.cluster.uses_before.lock();
    let known = before.get_or_insert_with(|| Before { at: shared.started, uses: vec![0; now.len()] });
    let seconds = known.at.elapsed().as_secs_f64().max(0.001);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rates = now
        .iter()
        .zip(&known.uses)
        .map(|(now, then)| (f64::from(now.wrapping_sub(*then)) * f64::from(SAMPLE_EVERY) / seconds) as u64)
        .collect();
    if known.at.elapsed() >= WINDOW {
        *known = Before { at: Instant::now(), uses: now };
    }
    rates
}
