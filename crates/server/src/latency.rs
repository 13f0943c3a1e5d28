//! Events that took long: LATENCY LATEST, HISTORY, RESET, DOCTOR.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};

/// Samples kept for one event, as in Redis.
pub const HISTORY: usize = 160;

/// What is known of one event.
#[derive(Clone, Debug, Default)]
pub struct EventSeries {
    /// Unix seconds and milliseconds, oldest first.
    pub samples: VecDeque<(i64, u64)>,
    /// Highest ever.
    pub max_ms: u64,
}

/// See the module.
#[derive(Default)]
pub struct LatencyMonitor(Mutex<BTreeMap<&'static str, EventSeries>>);

impl LatencyMonitor {
    /// Notes that `event` took `milliseconds`. Two in the same second are one sample, the longer.
    pub fn note(&self, event: &'static str, now_s: i64, milliseconds: u64) {
        let mut events = self.0.lock();
        let series = events.entry(event).or_default();
        series.max_ms = series.max_ms.max(milliseconds);
        if let Some((time_s, latest)) = series.samples.back_mut()
            && *time_s == now_s
        {
            *latest = (*latest).max(milliseconds);
            return;
        }
        if series.samples.len() == HISTORY {
            series.samples.pop_front();
        }
        series.samples.push_back((now_s, milliseconds));
    }

    /// All events.
    pub fn all(&self) -> Vec<(&'static str, EventSeries)> {
        self.0.lock().iter().map(|(event, series)| (*event, series.clone())).collect()
    }

    /// One event.
    pub fn of(&self, event: &[u8]) -> Option<EventSeries> {
        let events = self.0.lock();
        events.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(event)).map(|(_, series)| series.clone())
    }

    /// Forgets the named events, or all if none is named. Returns how many were there.
    pub fn reset(&self, names: &[&[u8]]) -> usize {
        let mut events = self.0.lock();
        let before = events.len();
        events.retain(|name, _| {
            !names.is_empty() && !names.iter().any(|wanted| name.as_bytes().eq_ignore_ascii_case(wanted))
        });
        before - events.len()
    }
}
