//! What a script reaches through `redis.*`: commands on the slots that its run holds.

use super::run::{INLINE_US, Place, Target, Why};
use super::running::{Details, Running};
use crate::acl::log::Context;
use crate::clients::Caller;
use crate::cluster::admit::{DOWN_FOR_SCRIPT, NOT_LOCAL, NOT_SAME_SLOT, Verdict, allowed};
use crate::exec::{Step, single, whole};
use crate::process::log::Level;
use crate::session::Session;
use crate::session_commands;
use crate::slowlog::kept_arguments;
use crate::ticks;
use crate::worker::Worker;
use commands::CmdError;
use commands::table::{self, CommandId, CommandSpec, Flags};
use keyspace::Slot;
use keyspace::journal::effects::{Audience, Verbatim};
use net::ConnId;
use resp::{Args, Proto, Reply};
use script::{Host, Kind, LogLevel, Refused, ScriptFlags, Tick};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Microseconds after which a script shows on the board of running ones.
const SHOWN_US: u64 = 20_000;
/// How long a script that has written waits for a slot that it did not declare.
const WAIT_MAX: Duration = Duration::from_secs(10);
const WAIT_PAUSE: Duration = Duration::from_micros(50);

const UNKNOWN: &str = "Unknown Redis command called from script";
const WRONG_ARITY: &str = "Wrong number of args calling Redis command from script";
const NOT_ALLOWED: &str = "This Redis command is not allowed from script";
const READ_ONLY: &str = "Write commands are not allowed from read-only scripts.";
const OUT_OF_MEMORY: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
const UNDECLARED: &str = "Script attempted to access a key that it did not declare, and script-undeclared-keys is no";
const DEADLOCK: &str =
    "Script needs a key that it did not declare and that another such script holds: declare all keys";

/// The host of one run.
pub(crate) struct ScriptHost<'a> {
    worker: &'a mut Worker,
    conn: ConnId,
    /// Stands for the client: database and protocol of the commands that the script calls.
    inner: &'a mut Session,
    args: Args<'a>,
    target: &'a Target,
    place: Place,
    started: u64,
    running: Arc<Running>,
    read_only: bool,
    allows_oom: bool,
    oom: bool,
    /// It has changed keys.
    wrote: bool,
    /// It has done something else that cannot be taken back.
    acted: bool,
    has_ticked: bool,
    is_shown: bool,
    is_busy: bool,
    why: Why,
    /// In a cluster: the slot of its keys.
    first_slot: Option<Slot>,
}

impl<'a> ScriptHost<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        worker: &'a mut Worker,
        conn: ConnId,
        inner: &'a mut Session,
        spec: &'static CommandSpec,
        args: Args<'a>,
        target: &'a Target,
        place: Place,
        started: u64,
    ) -> ScriptHost<'a> {
        use CommandId as C;
        let flags = target.flags();
        let is_ro = matches!(spec.id, C::EvalRo | C::EvalshaRo | C::FcallRo);
        let (Place::Worker { oom } | Place::Exec { oom } | Place::Thread { oom }) = place;
        let running = worker.scripting.running.clone();
        let is_managed = worker.shared.cluster.is_managed();
        let declared = if is_managed { single::slots_of(worker, spec, args).ok() } else { None };
        let declared = declared.and_then(|slots| slots.first().copied());
        ScriptHost {
            conn,
            inner,
            args,
            target,
            place,
            started,
            running,
            read_only: is_ro || flags.has(ScriptFlags::NO_WRITES),
            allows_oom: flags.has(ScriptFlags::ALLOW_OOM),
            oom,
            wrote: false,
            acted: false,
            has_ticked: false,
            is_shown: false,
            is_busy: false,
            why: Why::Wide,
            first_slot: declared,
            worker,
        }
    }

    /// Why it is to be run anew, if it is.
    pub(crate) fn why(&self) -> Why {
        self.why
    }

    /// Whether it has run more than a few thousand instructions.
    pub(crate) fn has_ticked(&self) -> bool {
        self.has_ticked
    }

    /// Whether it can be ended without a trace.
    fn can_restart(&self) -> bool {
        !self.wrote && !self.acted && !matches!(self.place, Place::Exec { .. })
    }

    fn elapsed_us(&self) -> u64 {
        ticks::to_microseconds(ticks::now().wrapping_sub(self.started))
    }

    // ---- slots ---------------------------------------------------------------------------------------------------

    fn note_undeclared(&self) -> Result<(), Refused> {
        if !self.worker.config.script_undeclared_keys {
            return Err(Refused::Error(UNDECLARED.into()));
        }
        self.target.traits().note_wide();
        Ok(())
    }

    fn acquire(&mut self, slots: &[Slot]) -> Result<(), Refused> {
        let mut more = false;
        for slot in slots {
            if self.worker.locks.holds(*slot) {
                continue;
            }
            self.note_undeclared()?;
            if !self.worker.locks.try_lock(*slot) {
                self.restart_or_wait(*slot)?;
            }
            more = true;
        }
        if more && self.is_shown {
            self.show_slots();
        }
        Ok(())
    }

    /// In a cluster: whether the slots are those of the keys before, unless the script may use several.
    fn check_same_slot(&mut self, slots: &[Slot]) -> Result<(), Refused> {
        if !self.worker.shared.cluster.is_managed() || self.worker.is_replaying {
            return Ok(());
        }
        if slots.len() > 1 {
            return Err(Refused::Error(NOT_LOCAL.into()));
        }
        let flags = self.target.flags();
        let (Some(slot), false) = (
            slots.first().copied(),
            flags.has(ScriptFlags::ALLOW_CROSS_SLOT_KEYS) || flags.has(ScriptFlags::COMPATIBLE),
        ) else {
            return Ok(());
        };
        let first = *self.first_slot.get_or_insert(slot);
        if first == slot { Ok(()) } else { Err(Refused::Error(NOT_SAME_SLOT.into())) }
    }

    /// In a cluster: whether slots, which are locked, are served here.
    fn check_local(&mut self, spec: &'static CommandSpec, slots: &[Slot]) -> Result<(), Refused> {
        if !self.worker.shared.cluster.is_managed() || self.worker.is_replaying {
            return Ok(());
        }
        let allowed = allowed(self.inner, spec.flags.contains(Flags::WRITE));
        match self.worker.shared.judge(&self.worker.locks, slots, allowed) {
            Verdict::Runs => Ok(()),
            // A slot that it did not declare is held for a cut-over: the script begins anew when that is decided.
            Verdict::Waits if self.can_restart() => {
                self.why = Why::Held;
                if matches!(self.place, Place::Worker { .. }) {
                    // Here, while the slot is locked. A thread keeps its job, see there.
                    self.worker.shared.cluster.wait(self.worker.index, self.conn.as_u64());
                }
                Err(Refused::Restart)
            }
            // It has written and cannot begin anew, or the slot is another's.
            Verdict::Waits | Verdict::Again | Verdict::Refused(_) => Err(Refused::Error(NOT_LOCAL.into())),
        }
    }

    fn acquire_every(&mut self) -> Result<(), Refused> {
        if self.worker.locks.is_alone() {
            return Ok(());
        }
        self.note_undeclared()?;
        let all: Vec<Slot> = self.worker.locks.keyspace().slots().collect();
        self.acquire(&all)
    }

    /// A slot is busy: the script is run anew behind the gate, or if that cannot be any more, waits. See the module
    /// [`super`] for why nobody waits for ever.
    fn restart_or_wait(&mut self, slot: Slot) -> Result<(), Refused> {
        if self.can_restart() {
            self.why = Why::Wide;
            return Err(Refused::Restart);
        }
        let shared = self.worker.shared.clone();
        let waits = &shared.scripts.waits;
        let Some(wait) = waits.begin(self.worker.locks.held_slots(), slot) else {
            return Err(Refused::Error(DEADLOCK.into()));
        };
        let until = Instant::now() + WAIT_MAX;
        let got = loop {
            if self.worker.locks.try_lock(slot) {
                break true;
            }
            if Instant::now() >= until || shared.stopping.load(Ordering::Relaxed) {
                break false;
            }
            std::thread::sleep(WAIT_PAUSE);
        };
        waits.end(wait);
        if got { Ok(()) } else { Err(Refused::Error(DEADLOCK.into())) }
    }

    fn show_slots(&self) {
        let locks = &self.worker.locks;
        self.worker.shared.scripts.board.note_slots(&self.running, locks.held_slots(), locks.is_alone());
    }

    // ---- commands ------------------------------------------------------------------------------------------------

    fn resolve(&self, args: Args<'_>) -> Result<&'static CommandSpec, &'static str> {
        let Some(mut spec) = self.worker.lookup(args.get(0).unwrap_or_default()) else { return Err(UNKNOWN) };
        if spec.is_container() && args.len() > 1 {
            spec = table::lookup_sub(spec, &args[1]).ok_or(UNKNOWN)?;
        }
        if !table::arity_ok(spec, args.len()) {
            return Err(WRONG_ARITY);
        }
        if self.worker.routes[spec.id.index()].handler.is_none() && !session_commands::is_served(spec.id) {
            return Err(UNKNOWN);
        }
        Ok(spec)
    }

    /// All checks before a command may run, in Redis' order.
    fn check(&mut self, args: Args<'_>) -> Result<&'static CommandSpec, Cow<'static, str>> {
        let spec = self.resolve(args)?;
        if spec.flags.contains(Flags::NOSCRIPT) {
            return Err(NOT_ALLOWED.into());
        }
        if let Err(denied) = self.worker.check_rights(self.inner, spec, &args) {
            let sentence = self.worker.refuse(self.conn, self.inner, spec, &args, denied, Context::Lua);
            return Err(format!("-NOPERM ACL failure in script: {sentence}").into());
        }
        if self.read_only && spec.flags.intersects(Flags::WRITE.with(Flags::MAY_REPLICATE)) {
            return Err(READ_ONLY.into());
        }
        // A disk that fails, or a replica that is lost, in the middle of a script that has written does not end it: half of
        // it would stay.
        if !self.wrote {
            if spec.flags.contains(Flags::WRITE)
                && !self.worker.is_replaying
                && let Some(error) = self.worker.write_refusal()
            {
                return Err(format!("-{}", error.0).into());
            }
            if let Err(error) = self.worker.check_replication(self.inner, spec) {
                return Err(format!("-{}", error.0).into());
            }
        }
        let cluster = &self.worker.shared.cluster;
        let looks = spec.has_keys() && !self.worker.config.cluster_allow_reads_when_down;
        if cluster.is_limited() && !self.worker.is_replaying && (looks || spec.flags.contains(Flags::WRITE)) {
            return Err(DOWN_FOR_SCRIPT.into());
        }
        if self.oom && !self.allows_oom && !self.wrote && spec.flags.contains(Flags::DENYOOM) {
            return Err(OUT_OF_MEMORY.into());
        }
        Ok(spec)
    }

    fn lock_keys(&mut self, spec: &'static CommandSpec, args: Args<'_>) -> Result<(), Refused> {
        if whole::handles(spec.id) {
            return self.acquire_every();
        }
        if !spec.has_keys() {
            return Ok(());
        }
        let slots = single::slots_of(self.worker, spec, args).unwrap_or_default();
        self.check_same_slot(&slots)?;
        self.acquire(&slots)?;
        self.check_local(spec, &slots)?;
        if single::names_other_keys(spec.id, args) {
            for _ in 0..single::EXTRA_KEY_ROUNDS {
                let missing = self.worker.with_ctx(self.inner, false, |ctx| single::missing_slots(ctx, args, &slots));
                match missing {
                    Some(all) => self.acquire(&all)?,
                    None => break,
                }
            }
        }
        Ok(())
    }

    fn execute(&mut self, spec: &'static CommandSpec, args: Args<'_>) {
        let before = self.worker.reply.len();
        self.worker.last_tick = ticks::now();
        self.worker.feed_monitors_from(self.inner, spec, args, Caller::Script);
        let (db, dirty) = (self.inner.db, self.worker.events.dirty);
        let result = if let Some(error) = self.worker.sort_refusal(self.inner, spec, args) {
            Err(error)
        } else if self.worker.routes[spec.id.index()].handler.is_some() {
            let result = self.worker.call(self.inner, spec.id, args, false).0;
            self.worker.track_reads_of(self.conn, self.inner, spec, args);
            self.worker.note_keys(self.inner, spec, args);
            result
        } else {
            match session_commands::run(self.worker, self.conn, self.inner, spec, args) {
                Ok(Step::Done | Step::Close | Step::CloseNow) => Ok(()),
                Ok(_) => Err(CmdError::new("ERR This Redis command is not allowed from script")),
                Err(error) => Err(error),
            }
        };
        if let Err(error) = result {
            self.worker.answer_error(before, spec.id, &error);
        }
        self.worker.record(db, Verbatim::Args(args), dirty);
        self.worker.note_call(self.inner, spec.id, args);
    }
}

impl Host for ScriptHost<'_> {
    fn call(&mut self, args: &[&[u8]], resp3: bool, reply: &mut Vec<u8>) -> Result<(), Refused> {
        let args = Args::from_slices(args);
        let spec = match self.check(args) {
            Ok(spec) => spec,
            Err(text) => {
                if let Ok(spec) = self.resolve(args) {
                    self.worker.stats.commands[spec.id.index()].rejected.add(1);
                }
                self.worker.stats.errors.add(1);
                self.worker.shared.note_error(text.strip_prefix('-').unwrap_or("ERR"));
                return Err(Refused::Error(text));
            }
        };
        self.lock_keys(spec, args)?;
        if spec.flags.contains(Flags::WRITE) {
            if !self.wrote {
                self.wrote = true;
                self.running.wrote.store(true, Ordering::SeqCst);
            }
        } else if spec.flags.contains(Flags::MAY_REPLICATE) {
            self.acted = true;
        }
        let proto = if resp3 { Proto::Resp3 } else { Proto::Resp2 };
        self.inner.proto = proto;
        let kept = std::mem::replace(&mut self.worker.reply, Reply::with_buffer(std::mem::take(reply), proto));
        self.execute(spec, args);
        *reply = std::mem::replace(&mut self.worker.reply, kept).take();
        Ok(())
    }

    fn tick(&mut self) -> Tick {
        self.has_ticked = true;
        let shared = self.worker.shared.clone();
        if shared.stopping.load(Ordering::Relaxed) || self.running.killed.load(Ordering::SeqCst) {
            if self.running.killed.load(Ordering::SeqCst) {
                crate::log!(Level::Notice, "Lua script killed by user with SCRIPT KILL.");
            }
            return Tick::Kill;
        }
        let elapsed_us = self.elapsed_us();
        if elapsed_us > INLINE_US {
            if matches!(self.place, Place::Worker { .. }) && self.can_restart() {
                self.why = Why::Slow;
                return Tick::Restart;
            }
            // If somebody wants the gate just now, the next tick tries again.
            self.worker.locks.go_long();
        }
        if elapsed_us > SHOWN_US && !self.is_shown {
            self.is_shown = true;
            let details = Details {
                name: self.target.name().to_owned(),
                command: kept_arguments(self.args),
                is_eval: self.target.kind() == Kind::Eval,
                since: Some(Instant::now() - Duration::from_micros(elapsed_us)),
                slots: self.worker.locks.held_slots().to_vec(),
                holds_all: self.worker.locks.is_alone(),
            };
            shared.scripts.board.note_long(&self.running, details);
        }
        let threshold_ms = u64::try_from(self.worker.config.busy_reply_threshold).unwrap_or(0);
        if self.is_shown && !self.is_busy && threshold_ms > 0 && elapsed_us / 1000 >= threshold_ms {
            self.is_busy = true;
            let command = if self.target.kind() == Kind::Eval { "SCRIPT KILL" } else { "FUNCTION KILL" };
            crate::log!(
                Level::Warning,
                "Slow script detected: still in execution after {} milliseconds. You can try killing the script using the {command} command. Script name is: {}.",
                elapsed_us / 1000,
                self.target.name()
            );
            self.show_slots();
            // Who waits for one of its slots looks again and is told.
            for slot in shared.scripts.board.note_busy(&self.running) {
                shared.keyspace.parking.wake(slot);
            }
        }
        Tick::Continue
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        self.acted = true;
        let level = match level {
            LogLevel::Debug => Level::Debug,
            LogLevel::Verbose => Level::Verbose,
            LogLevel::Notice => Level::Notice,
            LogLevel::Warning => Level::Warning,
        };
        crate::log!(level, "{}", String::from_utf8_lossy(message));
    }

    fn log_level(&self) -> LogLevel {
        use crate::config::LogLevel as Wanted;
        match self.worker.config.loglevel {
            Wanted::Debug => LogLevel::Debug,
            Wanted::Verbose => LogLevel::Verbose,
            Wanted::Notice => LogLevel::Notice,
            _ => LogLevel::Warning,
        }
    }

    fn acl_allows(&mut self, args: &[&[u8]]) -> Option<bool> {
        let args = Args::from_slices(args);
        let mut spec = self.worker.lookup(args.get(0)?)?;
        if spec.is_container() && args.len() > 1 {
            spec = table::lookup_sub(spec, &args[1])?;
        }
        Some(self.worker.check_rights(self.inner, spec, &args).is_ok())
    }

    fn set_replication(&mut self, to_aof: bool, to_replicas: bool) {
        self.acted = true;
        // The stream of the replicas is the log: what the log has, they have.
        self.worker.locks.effects.address(match (to_aof, to_replicas) {
            (true, _) => Audience::All,
            (false, true) => Audience::Replicas,
            (false, false) => Audience::Nobody,
        });
    }
}
