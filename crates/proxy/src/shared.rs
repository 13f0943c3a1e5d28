//! What the workers of a proxy share. Nothing of it is written on the way of a request.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use commands::CommandId;
use net::Mailbox;
use parking_lot::Mutex;
use server::acl::Acl;

use crate::config::{Config, ConfigStore};
use crate::measure::{Histogram, SlowLog};
use crate::pubsub::board::Board;
use crate::service::Message;
use crate::slots::MapHandle;

/// See the module.
pub struct Shared {
    /// The configuration.
    pub config: ConfigStore,
    /// The users.
    pub acl: Acl,
    /// Who owns which slot.
    pub map: MapHandle,
    /// Who listens to what, over all workers.
    pub board: Board,
    /// The workers' counters, by their numbers.
    pub stats: Vec<Arc<WorkerStats>>,
    /// The workers' mailboxes, by their numbers.
    pub mailboxes: OnceLock<Vec<Mailbox<Message>>>,
    /// The number of the last client.
    pub client_ids: AtomicU64,
    /// Clients that are there now.
    pub clients: AtomicUsize,
    /// Requests that took long.
    pub slowlog: SlowLog,
    /// The proxy ends: what is under way is finished, nobody is let in.
    pub is_draining: AtomicBool,
    /// When the process began to serve.
    pub started: Instant,
    /// This process among all there ever were: 40 hexadecimal digits.
    pub run_id: String,
}

/// Counters of one worker, written by it alone.
pub struct WorkerStats {
    /// Clients let in.
    pub connections: Counter,
    /// Clients refused.
    pub rejected: Counter,
    /// Clients now.
    pub clients: Counter,
    /// Clients that wait for a blocking command.
    pub blocked: Counter,
    /// Requests of clients.
    pub requests: Counter,
    /// Errors that the proxy answered itself.
    pub errors: Counter,
    /// Requests that went elsewhere by MOVED or ASK.
    pub redirects: Counter,
    /// Requests tried again after a passing refusal.
    pub retries: Counter,
    /// Connections to backends that failed.
    pub backend_failures: Counter,
    /// Clients cut off for their output.
    pub output_limit_disconnections: Counter,
    /// Clients cut off for their input.
    pub query_limit_disconnections: Counter,
    /// Bytes received and sent, with backends and clients.
    pub bytes_in: Counter,
    /// See [`WorkerStats::bytes_in`].
    pub bytes_out: Counter,
    /// Calls by command.
    pub calls: Vec<Counter>,
    /// How long requests took, by command; made when the first one came.
    pub latencies: Vec<OnceLock<Box<Histogram>>>,
    /// How long requests took, by backend.
    pub backends: Mutex<Vec<(String, Arc<Histogram>)>>,
}

impl Default for WorkerStats {
    fn default() -> Self {
        WorkerStats {
            connections: Counter::default(),
            rejected: Counter::default(),
            clients: Counter::default(),
            blocked: Counter::default(),
            requests: Counter::default(),
            errors: Counter::default(),
            redirects: Counter::default(),
            retries: Counter::default(),
            backend_failures: Counter::default(),
            output_limit_disconnections: Counter::default(),
            query_limit_disconnections: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            calls: (0..CommandId::COUNT).map(|_| Counter::default()).collect(),
            latencies: (0..CommandId::COUNT).map(|_| OnceLock::new()).collect(),
            backends: Mutex::default(),
        }
    }
}

impl WorkerStats {
    /// Forgets what CONFIG RESETSTAT forgets: all but the figures of what there is now. Only the owner may.
    pub fn reset(&self) {
        let totals = [
            &self.connections,
            &self.rejected,
            &self.requests,
            &self.errors,
            &self.redirects,
            &self.retries,
            &self.backend_failures,
            &self.output_limit_disconnections,
            &self.query_limit_disconnections,
            &self.bytes_in,
            &self.bytes_out,
        ];
        totals.into_iter().chain(&self.calls).for_each(|counter| counter.set(0));
    }
}

/// A number that one thread counts and others read.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds, which only the owning thread may do.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    /// Takes away, not below zero, which only the owning thread may do.
    pub fn subtract(&self, less: u64) {
        self.set(self.get().saturating_sub(less));
    }

    /// Sets the number, which only the owning thread may do.
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl WorkerStats {
    /// A request took so long.
    #[inline]
    pub(crate) fn took(&self, command: u16, us: u32, count: u32) {
        if let Some(of_command) = self.latencies.get(usize::from(command)) {
            of_command.get_or_init(Box::default).add(us, count);
        }
    }
}

impl Shared {
    /// What workers share at the start. `run_id` has 40 hexadecimal digits.
    pub fn new(config: Config, file: Option<std::path::PathBuf>, map: MapHandle, run_id: String) -> Shared {
        let workers = config.base.io_threads.max(1);
        Shared {
            acl: Acl::new(&config.base.requirepass),
            config: ConfigStore::new(config, file),
            map,
            board: Board::default(),
            stats: (0..workers).map(|_| Arc::default()).collect(),
            mailboxes: OnceLock::new(),
            client_ids: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
            slowlog: SlowLog::default(),
            is_draining: AtomicBool::new(false),
            started: Instant::now(),
            run_id,
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.stats.len()
    }

    /// Sends a message to a worker.
    pub fn post(&self, worker: usize, message: Message) {
        if let Some(mailbox) = self.mailboxes.get().and_then(|mailboxes| mailboxes.get(worker)) {
            mailbox.send(message);
        }
    }

    /// Has all workers finish what is under way and end.
    pub fn drain(&self) {
        if !self.is_draining.swap(true, Ordering::SeqCst) {
            self.map.close();
            for worker in 0..self.workers() {
                self.post(worker, Message::Drain);
            }
        }
    }

    /// The sum of a counter over all workers.
    pub fn sum(&self, counter: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| counter(stats)).sum()
    }
}
