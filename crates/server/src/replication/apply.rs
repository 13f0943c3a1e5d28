//! Running the commands of a primary, in their order, on the link's thread.
//!
//! Time stands still at 1970 here: no key ends while the primary has not said so. Commands that count an expiry from now,
//! which only old primaries send, see the real time. The bytes of each command, or of a whole transaction, go to the
//! journal under the command's locks or gate, so that a snapshot has both or neither.

use super::link::Ended;
use crate::config::{Config, PropagationErrorBehavior};
use crate::exec::{Step, single};
use crate::log;
use crate::process::log::Level;
use crate::session::{ClientId, Session, State};
use crate::shared::Shared;
use crate::worker::Worker;
use commands::{CommandId, options};
use keyspace::DbIndex;
use keyspace::eviction::AccessClock;
use keyspace::lock::Wake;
use net::ConnId;
use resp::{Args, Limits, Parse, ParseState, Proto, Request, parse_request};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a command that must wait for a slot waits at most before it tries again.
const SLOT_WAIT: Duration = Duration::from_millis(100);
/// Between two tries of a command that must wait for the gate or for room.
const RETRY_EVERY: Duration = Duration::from_micros(200);

/// See the module.
pub(super) struct Applier {
    shared: Arc<Shared>,
    generation: u64,
    worker: Worker,
    session: Session,
    parse: ParseState,
    request: Request,
    /// Bytes of the transaction that is being read.
    unit: Vec<u8>,
    config_version: u64,
    /// The primary asked how far we are.
    pub(super) is_asked: bool,
}

impl Worker {
    /// One that runs what another server sends, on a thread of its own.
    pub(crate) fn for_stream(shared: &Arc<Shared>) -> Worker {
        let mut worker = Worker::new(0, shared.clone());
        // No worker has this number: what others would do for it, it does itself.
        worker.index = u16::MAX;
        worker.stats = shared.link_stats.clone();
        worker.is_replaying = true;
        worker.locks.is_primary = true;
        worker.reply.set_proto(Proto::Resp2);
        worker
    }

    /// Takes the configuration over but for what limits clients: the other server has judged these commands. Time stands
    /// still, as keys end when that server says so. Returns the configuration's version.
    pub(crate) fn adopt_config_for_stream(&mut self) -> u64 {
        self.adopt_config();
        let version = self.config.version;
        let mut own = Config::clone(&self.config);
        own.maxmemory = 0;
        own.requirepass = Vec::new();
        self.config = Arc::new(own);
        self.slow_ticks = u64::MAX;
        self.now_ms = 0;
        version
    }
}

impl Applier {
    pub(super) fn new(shared: &Arc<Shared>, generation: u64) -> Applier {
        let worker = Worker::for_stream(shared);
        let mut applier = Applier {
            shared: shared.clone(),
            generation,
            worker,
            session: Session::new(ClientId(0), 0, true, None),
            parse: ParseState::default(),
            request: Request::new(),
            unit: Vec::new(),
            config_version: 0,
            is_asked: false,
        };
        applier.adopt();
        applier
    }

    fn adopt(&mut self) {
        self.config_version = self.worker.adopt_config_for_stream();
    }

    /// A stream begins whose database is `db`.
    pub(super) fn begin(&mut self, db: u32) {
        self.session = Session::new(ClientId(0), 0, true, None);
        self.session.db = DbIndex(db.min(self.shared.keyspace.databases().saturating_sub(1)));
        self.parse = ParseState::default();
        self.unit.clear();
        self.is_asked = false;
        if self.config_version != self.shared.config.version() {
            self.adopt();
        }
    }

    fn is_current(&self) -> bool {
        self.shared.replication.generation() == self.generation && !self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Runs the commands that `input` begins with. Returns how many bytes were used: up to the last whole command.
    pub(super) fn apply(&mut self, input: &[u8]) -> Result<usize, Ended> {
        if self.config_version != self.shared.config.version() {
            self.adopt();
        }
        let policy = self.worker.settings.policy;
        let (factor, decay) = (self.worker.config.lfu_log_factor, self.worker.config.lfu_decay_time);
        let positive = |number: i32| u32::try_from(number).unwrap_or(0);
        let now_ms = crate::process::now_ms();
        self.worker.clock = AccessClock::at(now_ms, policy.is_lfu(), positive(factor), positive(decay));
        let mut request = std::mem::take(&mut self.request);
        self.worker.locks.enter();
        let applied = self.apply_inside(input, &mut request);
        self.worker.locks.leave();
        self.request = request;
        if !self.worker.ready.is_empty() {
            self.worker.serve_ready();
        }
        self.worker.broadcast_changes();
        self.worker.flush_counts();
        applied
    }

    fn apply_inside(&mut self, input: &[u8], request: &mut Request) -> Result<usize, Ended> {
        let max_bulk = usize::try_from(self.worker.config.proto_max_bulk_len).unwrap_or(usize::MAX);
        let limits = Limits::new(max_bulk);
        let mut at = 0;
        loop {
            if !self.is_current() {
                return Err(Ended::Stopped);
            }
            let rest = input.get(at..).unwrap_or_default();
            match rest.first() {
                None => return Ok(at),
                Some(b'*' | b'\r' | b'\n') => {}
                Some(_) => {
                    return Err(Ended::Corrupt(
                        "WARNING: Receiving inline protocol from master, master stream corruption? Closing the master connection and discarding the cached master.".to_owned(),
                    ));
                }
            }
            match parse_request(rest, &mut self.parse, &limits, request) {
                Parse::Request => {
                    let used = request.consumed();
                    let args = request.args(rest);
                    self.run(args, rest.get(..used).unwrap_or_default())?;
                    at += used;
                }
                Parse::Empty => {
                    let used = request.consumed();
                    self.unit.extend_from_slice(rest.get(..used).unwrap_or_default());
                    if !self.session.state.has(State::IN_MULTI) {
                        self.end_unit(true);
                    }
                    return Ok(at + used);
                }
                Parse::Incomplete { .. } => return Ok(at),
                Parse::Error(error) => {
                    return Err(Ended::Corrupt(format!("Protocol error ({error}) from client: the master")));
                }
            }
            if self.worker.locks.keyspace().gate.is_closing() {
                self.worker.locks.leave();
                self.worker.locks.enter();
            }
        }
    }

    /// What has been read so far goes to the journal as it stands.
    fn end_unit(&mut self, replicas_only: bool) {
        self.worker.locks.effects.follow(&self.unit, replicas_only);
        self.worker.locks.flush_effects();
        self.unit.clear();
    }

    fn run(&mut self, args: Args<'_>, frame: &[u8]) -> Result<(), Ended> {
        self.unit.extend_from_slice(frame);
        let spec = args.get(0).and_then(|name| self.worker.lookup(name));
        let id = spec.map(|spec| spec.id);
        let in_multi = self.session.state.has(State::IN_MULTI);
        if !in_multi && matches!(id, Some(CommandId::Ping | CommandId::Replconf)) {
            self.is_asked |= args.get(1).is_some_and(|word| options::is_word(word, "getack"));
            self.end_unit(true);
            return Ok(());
        }
        let ends = match id {
            Some(CommandId::Multi) => false,
            Some(CommandId::Exec | CommandId::Discard) => true,
            _ => !in_multi,
        };
        if ends {
            self.worker.locks.effects.follow(&self.unit, false);
        }
        self.check_disk()?;
        let relative = id.is_some_and(|id| crate::aof::load::is_relative(id, args));
        if relative {
            self.worker.now_ms = crate::process::now_ms();
        }
        let ran = self.run_to_its_end(args);
        self.worker.now_ms = 0;
        ran?;
        if self.worker.reply.as_slice().first() == Some(&b'-') {
            let text = String::from_utf8_lossy(&self.worker.reply.as_slice()[1..]).trim_end().to_owned();
            let name = String::from_utf8_lossy(args.get(0).unwrap_or_default()).to_ascii_lowercase();
            log!(
                Level::Warning,
                "== CRITICAL == This replica is sending an error to its master: '{text}' after processing the command '{name}'"
            );
        }
        if self.worker.reply.as_slice().first() == Some(&b'-') {
            self.answer_failure();
        }
        self.worker.reply.clear();
        if ends {
            self.shared.replication.link.stream_db.store(self.session.db.0, Ordering::SeqCst);
            self.worker.locks.flush_effects();
            self.unit.clear();
        }
        Ok(())
    }

    /// `propagation-error-behavior`.
    fn answer_failure(&self) {
        if self.worker.config.propagation_error_behavior != PropagationErrorBehavior::Ignore {
            log!(
                Level::Warning,
                "This panic was caused by 'propagation-error-behavior': a command of the master failed"
            );
            self.shared.stop(1);
        }
    }

    /// `replica-ignore-disk-write-errors`.
    fn check_disk(&mut self) -> Result<(), Ended> {
        if self.shared.durability.restricts.load(Ordering::Relaxed)
            && !self.worker.config.replica_ignore_disk_write_errors
            && self.worker.write_refusal().is_some()
        {
            log!(Level::Warning, "Replica was unable to write command to disk.");
            self.shared.stop(1);
            return Err(Ended::Stopped);
        }
        Ok(())
    }

    fn run_to_its_end(&mut self, args: Args<'_>) -> Result<(), Ended> {
        loop {
            let step = single::run(&mut self.worker, ConnId::from_u64(0), &mut self.session, args);
            match step {
                Step::Done | Step::Close | Step::CloseNow | Step::Parked => return Ok(()),
                Step::Busy(slot) => {
                    self.worker.locks.leave();
                    if self.worker.locks.park(slot, Wake::Thread(std::thread::current())) {
                        std::thread::park_timeout(SLOT_WAIT);
                    }
                    self.worker.locks.enter();
                }
                Step::Retry | Step::Again => {
                    self.worker.locks.leave();
                    std::thread::sleep(RETRY_EVERY);
                    self.worker.locks.enter();
                }
            }
            if !self.is_current() {
                self.worker.locks.effects.follow(&[], false);
                return Err(Ended::Stopped);
            }
        }
    }
}
