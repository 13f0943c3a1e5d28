//! FAILOVER: a primary hands its role to a replica that has all it has.
//!
//! ```text
//!  writes wait ─▶ a replica has everything ─▶ follow it, saying PSYNC … FAILOVER ─▶ it goes on as the primary
//!       └─ time is over: give up, or with FORCE do it all the same
//! ```

use super::role::{behind_gate, who};
use super::{Phase, Replica, Target};
use crate::exec::Step;
use crate::log;
use crate::process::log::Level;
use crate::replication::primary::Stage;
use crate::session::Session;
use crate::shared::Shared;
use crate::worker::Worker;
use commands::{CmdError, options};
use resp::Args;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A planned failover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Failover {
    /// None.
    #[default]
    None,
    /// Waiting for a replica to have everything.
    WaitForSync {
        /// The one that is wanted; `None`: any.
        target: Option<Target>,
        /// It is to take over when time is over.
        is_forced: bool,
        /// Unix ms; `None`: no limit.
        deadline_ms: Option<i64>,
    },
    /// The replica is being told.
    InProgress,
}

impl Failover {
    pub(crate) fn is_under_way(&self) -> bool {
        *self != Failover::None
    }

    /// As INFO tells it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Failover::None => "no-failover",
            Failover::WaitForSync { .. } => "waiting-for-sync",
            Failover::InProgress => "failover-in-progress",
        }
    }
}

/// FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds].
pub(crate) fn failover(worker: &mut Worker, args: Args<'_>) -> Result<Step, CmdError> {
    if worker.config.cluster_enabled {
        return Err(CmdError::new("ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead."));
    }
    let shared = worker.shared.clone();
    let replication = &shared.replication;
    if args.len() == 2 && options::is_word(&args[1], "abort") {
        return abort_by_user(worker);
    }
    let (mut target, mut is_forced, mut timeout) = (None, false, None);
    let mut index = 1;
    while let Some(word) = args.get(index) {
        match (args.get(index + 1), args.get(index + 2)) {
            (Some(value), _) if timeout.is_none() && options::is_word(word, "timeout") => {
                let value = options::int(value)?;
                if value <= 0 {
                    return Err(CmdError::new("ERR FAILOVER timeout must be greater than 0"));
                }
                timeout = Some(value);
                index += 2;
            }
            (Some(host), Some(port)) if target.is_none() && options::is_word(word, "to") => {
                let port = u16::try_from(options::int(port)?).unwrap_or(0);
                target = Some(Target { host: String::from_utf8_lossy(host).into_owned(), port });
                index += 3;
            }
            _ if !is_forced && options::is_word(word, "force") => {
                is_forced = true;
                index += 1;
            }
            _ => return Err(commands::error::SYNTAX),
        }
    }
    let refuse = |text: &'static str| Err(CmdError::new(text));
    if replication.state.lock().failover.is_under_way() {
        return refuse("ERR FAILOVER already in progress.");
    }
    if replication.is_replica() {
        return refuse("ERR FAILOVER is not valid when server is a replica.");
    }
    let replicas = replication.replicas();
    if replicas.is_empty() {
        return refuse("ERR FAILOVER requires connected replicas.");
    }
    if is_forced && (timeout.is_none() || target.is_none()) {
        return refuse("ERR FAILOVER with force option requires both a timeout and target HOST and IP.");
    }
    match &target {
        Some(target) => {
            let Some(replica) = replicas.iter().find(|replica| is_it(replica, target)) else {
                return refuse("ERR FAILOVER target HOST and PORT is not a replica.");
            };
            if replica.stage() != Stage::Online {
                return refuse("ERR FAILOVER target replica is not online.");
            }
            log!(Level::Notice, "FAILOVER requested to {}:{}.", target.host, target.port);
        }
        None => log!(Level::Notice, "FAILOVER requested to any replica."),
    }
    let deadline_ms = timeout.map(|timeout| worker.now_ms.saturating_add(timeout));
    replication.state.lock().failover = Failover::WaitForSync { target, is_forced, deadline_ms };
    replication.hold_writes(true);
    shared.ask_acknowledgements();
    worker.reply.ok();
    Ok(Step::Done)
}

fn is_it(replica: &Replica, target: &Target) -> bool {
    replica.host.eq_ignore_ascii_case(&target.host) && replica.port() == target.port
}

fn abort_by_user(worker: &mut Worker) -> Result<Step, CmdError> {
    let shared = worker.shared.clone();
    let present = shared.replication.state.lock().failover.clone();
    match present {
        Failover::None => return Err(CmdError::new("ERR No failover in progress.")),
        Failover::InProgress if shared.replication.is_replica() => {
            if !behind_gate(worker, |shared, locks, _| shared.promote(locks)) {
                return Ok(Step::Retry);
            }
            shared.end_failover(Some("Failover manually aborted"));
            shared.role_changed();
        }
        _ => shared.end_failover(Some("Failover manually aborted")),
    }
    worker.reply.ok();
    Ok(Step::Done)
}

impl Shared {
    /// Ends a failover: `failure` says why it came to nothing.
    pub(crate) fn end_failover(&self, failure: Option<&str>) {
        let replication = &self.replication;
        let mut state = replication.state.lock();
        if !state.failover.is_under_way() {
            return;
        }
        let ended = std::mem::take(&mut state.failover);
        drop(state);
        if let Some(why) = failure {
            match ended {
                Failover::WaitForSync { target: Some(target), .. } => {
                    log!(Level::Notice, "FAILOVER to {}:{} aborted: {why}", target.host, target.port);
                }
                _ => log!(Level::Notice, "FAILOVER to any replica aborted: {why}"),
            }
        }
        replication.hold_writes(false);
        self.renew_replicas(&self.config.snapshot());
    }

    /// The replica refused to take over: this server goes on as the primary. From a thread that is no worker.
    pub(crate) fn fail_failover(self: &Arc<Self>, why: &str) {
        let mut locks = keyspace::LockSet::new(self.keyspace.clone());
        locks.alone(|locks| self.promote(locks));
        drop(locks);
        self.end_failover(Some(why));
        self.role_changed();
    }
}

impl Worker {
    /// Looks whether a replica can take over; about ten times a second.
    pub(crate) fn tend_failover(&mut self) {
        let shared = self.shared.clone();
        let replication = &shared.replication;
        let present = replication.state.lock().failover.clone();
        let Failover::WaitForSync { target, is_forced, deadline_ms } = present else { return };
        let end = shared.keyspace.journal.end();
        let has_all = |replica: &&Arc<Replica>| {
            replica.stage() == Stage::Online
                && replica.acked.load(Ordering::SeqCst) >= end
                && target.as_ref().is_none_or(|target| is_it(replica, target))
        };
        let replicas = replication.replicas();
        let found =
            replicas.iter().find(has_all).map(|replica| Target { host: replica.host.clone(), port: replica.port() });
        let is_late = deadline_ms.is_some_and(|deadline_ms| self.now_ms >= deadline_ms);
        let successor = match (found, target) {
            (Some(found), _) => {
                log!(Level::Notice, "Failover target {}:{} is synced, failing over.", found.host, found.port);
                found
            }
            (None, Some(target)) if is_late && is_forced => {
                log!(Level::Notice, "FAILOVER to {}:{} time out exceeded, failing over.", target.host, target.port);
                target
            }
            (None, _) if is_late => {
                shared.end_failover(Some("Replica never caught up before timeout"));
                return;
            }
            (None, _) => {
                // The question is part of the stream, so it is asked only while the last answer is outstanding for long.
                return;
            }
        };
        self.locks.enter();
        let mut is_done = false;
        behind_gate(self, |shared, locks, config| {
            // A write that had passed all checks may have run since; then the replica is to get it first.
            if is_late || shared.keyspace.journal.end() == end {
                shared.replication.state.lock().failover = Failover::InProgress;
                shared.begin_to_follow(locks, config, successor);
                is_done = true;
            }
        });
        self.locks.leave();
        if is_done {
            shared.role_changed();
        }
    }
}

/// PSYNC … FAILOVER: our primary asks us to take over.
pub(crate) fn take_over(worker: &mut Worker, session: &Session, id: &[u8]) -> Result<Step, CmdError> {
    log!(Level::Notice, "Failover request received for replid {}.", String::from_utf8_lossy(id));
    let shared = worker.shared.clone();
    let replication = &shared.replication;
    if !replication.is_replica() {
        return Err(CmdError::new("ERR PSYNC FAILOVER can't be sent to a master."));
    }
    if !id.eq_ignore_ascii_case(replication.history().id.as_bytes()) || replication.phase() == Phase::Transfer {
        return Err(CmdError::new("ERR PSYNC FAILOVER replid must match my replid."));
    }
    if !behind_gate(worker, |shared, locks, _| shared.promote(locks)) {
        return Ok(Step::Retry);
    }
    shared.role_changed();
    log!(Level::Notice, "MASTER MODE enabled (failover request from '{}')", who(session));
    Ok(Step::Done)
}
