//! What SHUTDOWN, SIGTERM and SIGINT do before the process ends.
//!
//! A thread of its own ends what is being saved, holds writes back (reads go on), saves if that is asked for or there are
//! save points, and stops the workers. No write that was answered is missing from the file: those before the snapshot's
//! instant are in it, and after it none is run until the server is gone, or goes on because saving failed.

use super::claim::{Claim, Purpose};
use super::save::{Asker, write_file};
use crate::config::ShutdownFlags;
use crate::log;
use crate::process::log::Level;
use crate::shared::Shared;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a shutdown that saves nothing waits for a snapshot that it gave up, so that its file is removed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The options of a shutdown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Save even without save points.
    pub saves: bool,
    /// Do not save even with save points.
    pub saves_not: bool,
    /// Do not wait for replicas.
    pub now: bool,
    /// End even if saving fails.
    pub force: bool,
}

impl From<ShutdownFlags> for Options {
    fn from(flags: ShutdownFlags) -> Options {
        Options { saves: flags.save(), saves_not: flags.nosave(), now: flags.now(), force: flags.force() }
    }
}

/// The shutdown that is under way.
#[derive(Default)]
pub struct Shutdown {
    /// Writes wait until it is over, one way or the other.
    pub(crate) holds_writes: AtomicBool,
    under_way: Mutex<Option<UnderWay>>,
}

struct UnderWay {
    askers: Vec<Asker>,
    is_aborted: Arc<AtomicBool>,
}

impl Shared {
    /// Begins a shutdown; `asker` is answered only if it does not come about. With one under way already, the asker waits
    /// for that.
    pub(crate) fn shut_down(self: &Arc<Self>, options: Options, asker: Option<Asker>) {
        let mut under_way = self.durability.shutdown.under_way.lock();
        if let Some(under_way) = under_way.as_mut() {
            under_way.askers.extend(asker);
            return;
        }
        let is_aborted = Arc::new(AtomicBool::new(false));
        *under_way = Some(UnderWay { askers: asker.into_iter().collect(), is_aborted: is_aborted.clone() });
        drop(under_way);
        let shared = self.clone();
        let spawned = std::thread::Builder::new().name("shutdown".into()).spawn(move || {
            if prepare(&shared, options, &is_aborted) {
                shared.stop(0);
            } else {
                shared.call_off();
            }
        });
        if spawned.is_err() {
            log!(Level::Warning, "There is no thread to shut down on");
            self.call_off();
        }
    }

    /// SHUTDOWN ABORT. False: there is none under way.
    pub(crate) fn abort_shutdown(&self) -> bool {
        let under_way = self.durability.shutdown.under_way.lock();
        let Some(under_way) = under_way.as_ref() else { return false };
        under_way.is_aborted.store(true, Ordering::SeqCst);
        self.durability.claims.give_up(Purpose::File);
        true
    }

    fn call_off(&self) {
        log!(Level::Warning, "Errors trying to shut down the server. Check the logs for more information.");
        self.durability.shutdown.holds_writes.store(false, Ordering::SeqCst);
        self.durability.renew_restriction();
        if let Some(request) = self.durability.signal_request.get() {
            request.store(false, Ordering::SeqCst);
        }
        let under_way = self.durability.shutdown.under_way.lock().take();
        for asker in under_way.into_iter().flat_map(|under_way| under_way.askers) {
            asker.answer(self, |reply| reply.error("ERR Errors trying to SHUTDOWN. Check logs."));
        }
    }
}

/// All that comes before the end. False: the server is to go on.
fn prepare(shared: &Arc<Shared>, mut options: Options, is_aborted: &AtomicBool) -> bool {
    crate::process::banner::log_shutdown_requested();
    let durability = &shared.durability;
    if durability.loading.is_on() {
        // What was loaded in part must not take the place of the file.
        options.saves_not = true;
        options.saves = false;
        durability.loading.progress().stop.store(true, Ordering::SeqCst);
    }
    if durability.claims.give_up(Purpose::File) {
        log!(Level::Warning, "There is a child saving an .rdb. Killing it!");
    }
    if shared.aof.state() == crate::aof::State::Waiting && !options.force {
        log!(Level::Warning, "Writing initial AOF. Can't exit.");
        return false;
    }
    shared.end_rewrite();
    let config = shared.config.snapshot();
    if !options.now && !wait_for_replicas(shared, config.shutdown_timeout, is_aborted) {
        return false;
    }
    let saves = options.saves || (!config.save.is_empty() && !options.saves_not);
    if !saves {
        let until = Instant::now() + PATIENCE;
        while durability.claims.purpose() == Some(Purpose::File) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        return !is_aborted.load(Ordering::SeqCst);
    }
    durability.shutdown.holds_writes.store(true, Ordering::SeqCst);
    durability.renew_restriction();
    durability.claims.give_up(Purpose::AofRewrite);
    durability.claims.give_up(Purpose::FullSync);
    log!(Level::Notice, "Saving the final RDB snapshot before exiting.");
    let begun = Claim::wait(shared, Purpose::File).begin_here(&config);
    if write_file(shared, begun, &config) && !is_aborted.load(Ordering::SeqCst) {
        return true;
    }
    if is_aborted.load(Ordering::SeqCst) {
        log!(Level::Notice, "Shutdown manually aborted.");
        return false;
    }
    if options.force {
        log!(Level::Warning, "Error trying to save the DB. Exit anyway.");
        return true;
    }
    log!(Level::Warning, "Error trying to save the DB, can't exit.");
    false
}

/// Holds writes back until all replicas have everything, for a while. False: the shutdown was called off meanwhile.
fn wait_for_replicas(shared: &Shared, timeout_s: i32, is_aborted: &AtomicBool) -> bool {
    let replication = &shared.replication;
    if replication.is_replica() || replication.replicas().is_empty() {
        return true;
    }
    let lagging = || {
        let end = shared.keyspace.journal.end();
        let replicas = replication.replicas();
        replicas.into_iter().filter(|replica| replica.acked.load(Ordering::SeqCst) < end).collect::<Vec<_>>()
    };
    let timeout = Duration::from_secs(u64::try_from(timeout_s).unwrap_or(0));
    if !timeout.is_zero() && !lagging().is_empty() {
        shared.durability.shutdown.holds_writes.store(true, Ordering::SeqCst);
        shared.durability.renew_restriction();
        shared.ask_acknowledgements();
        log!(Level::Notice, "Waiting for replicas before shutting down.");
        let until = Instant::now() + timeout;
        while !lagging().is_empty() && Instant::now() < until {
            if is_aborted.load(Ordering::SeqCst) {
                log!(Level::Notice, "Shutdown manually aborted.");
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let late = lagging();
    let end = shared.keyspace.journal.end();
    for replica in &late {
        log!(
            Level::Warning,
            "Lagging replica {} reported offset {} behind master, lag={}, state={}.",
            replica.name(),
            end.saturating_sub(replica.acked.load(Ordering::SeqCst)),
            replica.lag_s(),
            replica.stage().name()
        );
    }
    let all = replication.replicas().len();
    log!(Level::Notice, "{} of {all} replicas are in sync when shutting down.", all.saturating_sub(late.len()));
    true
}
