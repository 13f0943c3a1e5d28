//! Who holds how much memory, for INFO, MEMORY STATS and MEMORY DOCTOR.

use crate::process::{allocator, usage};
use crate::session::Session;
use crate::shared::{DatabaseSurvey, Shared};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the allocator's figures are used before they are taken anew: merging them costs it tens of microseconds.
const ALLOCATOR_FIGURES_LAST: Duration = Duration::from_millis(100);

/// What the loop keeps for a connection beside its session: descriptor, flags, place in the slab.
const CONNECTION_BYTES: usize = 24;

/// The process as the allocator and the kernel see it, in bytes, all taken at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllocatorFigures {
    /// `used_memory` at that moment.
    pub used: usize,
    /// Handed out.
    pub allocated: usize,
    /// In pages that hold something.
    pub active: usize,
    /// In pages that are mapped.
    pub resident: usize,
    /// Of the process, in memory.
    pub rss: usize,
}

impl AllocatorFigures {
    fn take() -> AllocatorFigures {
        let used = keyspace::memory::used_bytes();
        let allocator::Figures { allocated, active, resident } = allocator::figures(used);
        AllocatorFigures { used, allocated, active, resident, rss: usage::resident_bytes() }
    }
}

/// A part set against a whole: by how much it exceeds it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Excess {
    /// Part by whole.
    pub ratio: f64,
    /// Part minus whole.
    pub bytes: i64,
}

impl Excess {
    fn of(part: usize, whole: usize) -> Excess {
        #[allow(clippy::cast_precision_loss)]
        let ratio = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        Excess { ratio, bytes: signed(part) - signed(whole) }
    }
}

/// See the module. All in bytes unless the name says otherwise.
#[derive(Clone, Debug, Default)]
pub struct MemoryReport {
    /// In use.
    pub used: usize,
    /// Most that ever was.
    pub peak: usize,
    /// In use when the server was ready.
    pub startup: usize,
    /// Of sessions and their buffers.
    pub clients: usize,
    /// Of everything that is no data.
    pub overhead: usize,
    /// The rest.
    pub dataset: usize,
    /// The data's part of what was taken since the start, in percent.
    pub dataset_percent: f64,
    /// What is in use of the peak, in percent.
    pub peak_percent: f64,
    /// Keys of all databases.
    pub keys: u64,
    /// Mean bytes a key, all included.
    pub bytes_per_key: u64,
    /// Databases with keys: number and bytes of its tables.
    pub databases: Vec<(u32, u64)>,
    /// The allocator's figures.
    pub allocator: AllocatorFigures,
    /// Pages against what is handed out.
    pub allocator_fragmentation: Excess,
    /// Mapped pages against those in use.
    pub allocator_rss: Excess,
    /// The process against the allocator.
    pub rss_overhead: Excess,
    /// The process against what is in use.
    pub fragmentation: Excess,
}

impl Shared {
    /// The allocator's figures, at most a tenth of a second old.
    pub fn allocator_figures(&self) -> AllocatorFigures {
        let mut cached = self.allocator.lock();
        match *cached {
            Some((taken, figures)) if taken.elapsed() < ALLOCATOR_FIGURES_LAST => figures,
            _ => {
                let figures = AllocatorFigures::take();
                *cached = Some((Instant::now(), figures));
                figures
            }
        }
    }

    /// What the workers' last walks over the slots found, by database.
    pub fn survey(&self) -> Vec<DatabaseSurvey> {
        let mut sum: Vec<DatabaseSurvey> = Vec::new();
        for survey in &self.surveys {
            let survey = survey.lock();
            if sum.len() < survey.databases.len() {
                sum.resize(survey.databases.len(), DatabaseSurvey::default());
            }
            for (sum, found) in sum.iter_mut().zip(&survey.databases) {
                sum.keys += found.keys;
                sum.expiring += found.expiring;
                sum.table_bytes += found.table_bytes;
                sum.ttl_ms = sum.ttl_ms.saturating_add(found.ttl_ms);
                sum.ttl_samples += found.ttl_samples;
            }
        }
        sum
    }

    /// Keys of a database and how many have an expiry; of the first sixteen exact, of the others about a second old.
    pub fn key_counts(&self, db: u32, survey: &[DatabaseSurvey]) -> (u64, u64) {
        self.keyspace
            .counted(keyspace::DbIndex(db))
            .or_else(|| survey.get(db as usize).map(|found| (found.keys, found.expiring)))
            .unwrap_or_default()
    }

    /// Who holds how much now.
    pub fn memory_report(&self) -> MemoryReport {
        let used = keyspace::memory::used_bytes();
        let peak = self.peak_memory.fetch_max(used, Ordering::Relaxed).max(used);
        let startup = self.startup_memory.load(Ordering::Relaxed);
        let clients = self.clients.load(Ordering::Relaxed);
        let swept = usize::try_from(self.sum(|stats| stats.clients_memory.get())).unwrap_or(0);
        // Clients that came since the last sweep count as idle ones.
        let clients = swept.max(clients * size_of::<Session>()) + clients * CONNECTION_BYTES;
        let survey = self.survey();
        let mut databases = Vec::new();
        let mut keys = 0;
        for db in 0..self.keyspace.databases() {
            let (of_db, _) = self.key_counts(db, &survey);
            keys += of_db;
            if of_db > 0 {
                databases.push((db, survey.get(db as usize).map_or(0, |found| found.table_bytes)));
            }
        }
        let tables: u64 = databases.iter().map(|(_, bytes)| *bytes).sum();
        let overhead = (startup + clients + usize::try_from(tables).unwrap_or(0)).min(used);
        let dataset = used - overhead;
        let net = used.saturating_sub(startup).max(1);
        let allocator = self.allocator_figures();
        #[allow(clippy::cast_precision_loss)]
        let percent = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
        MemoryReport {
            used,
            peak,
            startup,
            clients,
            overhead,
            dataset,
            dataset_percent: percent(dataset, net),
            peak_percent: percent(used, peak),
            keys,
            bytes_per_key: (net as u64).checked_div(keys).unwrap_or(0),
            databases,
            allocator,
            allocator_fragmentation: Excess::of(allocator.active, allocator.allocated),
            allocator_rss: Excess::of(allocator.resident, allocator.active),
            rss_overhead: Excess::of(allocator.rss, allocator.resident),
            fragmentation: Excess::of(allocator.rss, allocator.used),
        }
    }
}

/// Bytes with a unit, as Redis' `*_human` fields.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    #[allow(clippy::cast_precision_loss)]
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    while unit + 1 < UNITS.len() && bytes >> (10 * (unit + 2)) > 0 {
        amount /= 1024.0;
        unit += 1;
    }
    if amount >= 1024.0 { format!("{bytes}B") } else { format!("{amount:.2}{}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_amounts_are_redis() {
        assert_eq!(human(0), "0B");
        assert_eq!(human(1023), "1023B");
        assert_eq!(human(1024), "1.00K");
        assert_eq!(human(1_670_916_880), "1.56G");
        assert_eq!(human(776_372_224), "740.41M");
        assert_eq!(human(66_312_105_984), "61.76G");
        assert_eq!(human(u64::MAX), format!("{}B", u64::MAX));
    }

    #[test]
    fn excess_is_signed() {
        assert_eq!(Excess::of(150, 100), Excess { ratio: 1.5, bytes: 50 });
        assert_eq!(Excess::of(50, 100).bytes, -50);
        assert_eq!(Excess::of(1, 0).ratio, 0.0);
    }
}
