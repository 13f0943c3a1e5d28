//! What is due from time to time: pings, timeouts, waiting full synchronizations, flags that follow from all of it.

use super::primary::Stage;
use super::{Phase, write_log};
use crate::config::Config;
use crate::exec::transaction;
use crate::log;
use crate::process::log::Level;
use crate::process::steady_ms;
use crate::session::Session;
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use ::replication::Severity;
use commands::table::{CommandSpec, Flags};
use commands::{CmdError, CommandId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A write on a replica.
const READ_ONLY: CmdError = CmdError::new("READONLY You can't write against a read only replica.");
/// A write without enough replicas.
const NO_REPLICAS: CmdError = CmdError::new("NOREPLICAS Not enough good replicas to write.");
/// Anything on a replica that lost its primary.
const MASTER_DOWN: CmdError =
    CmdError::new("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
/// Sent to replicas that wait, so that they know that somebody is there.
const NEWLINE: &[u8] = b"\n";
/// Between two of them.
const NEWLINE_MS: i64 = 1000;

/// When things were done, on the steady clock; 0: never.
#[derive(Default)]
pub struct Times {
    pinged: i64,
    newline: i64,
    /// Since when there is no replica; 0: there is one.
    alone_since: i64,
}

impl Worker {
    /// Refuses what the role does not allow.
    pub(crate) fn check_replication(&mut self, session: &Session, spec: &'static CommandSpec) -> Result<(), CmdError> {
        let replication = &self.shared.replication;
        if !replication.keeps_writes() || self.is_replaying {
            return Ok(());
        }
        let reject = |error: CmdError| {
            self.stats.commands[spec.id.index()].rejected.add(1);
            Err(error)
        };
        let is_such = |flags: Flags| {
            spec.flags.contains(flags)
                || (spec.id == CommandId::Exec && transaction::queues(session, |spec| spec.flags.contains(flags)))
        };
        if is_such(Flags::WRITE) {
            if !replication.is_replica() && self.shared.lacks_replicas(&self.config) {
                return reject(NO_REPLICAS);
            }
            if replication.is_replica() && self.config.replica_read_only {
                return reject(READ_ONLY);
            }
        }
        let may_be_stale = |spec: &CommandSpec| spec.flags.contains(Flags::STALE);
        if replication.is_replica()
            && !self.config.replica_serve_stale_data
            && replication.phase() != Phase::Connected
            && (!may_be_stale(spec)
                || (spec.id == CommandId::Exec && transaction::queues(session, |spec| !may_be_stale(spec))))
        {
            return reject(MASTER_DOWN);
        }
        Ok(())
    }

    /// About ten times a second, on one worker.
    pub(crate) fn tend_replication(&mut self) {
        let shared = self.shared.clone();
        let config = self.config.clone();
        self.tend_hiding(&config);
        self.tend_backlog(&config);
        shared.renew_replicas(&config);
        shared.begin_full_sync_if_due(&config);
        self.tend_failover();
        let replication = &shared.replication;
        let replicas = replication.replicas();
        if replicas.is_empty() {
            return;
        }
        let now_ms = steady_ms();
        let mut times = replication.tended.lock();
        if !replication.is_replica()
            && now_ms - times.pinged >= i64::from(config.repl_ping_replica_period) * 1000
            && replicas.iter().any(|replica| replica.stage() == Stage::Online)
        {
            times.pinged = now_ms;
            if !replication.holds_writes() {
                shared.keyspace.journal.append_for_replicas(b"*1\r\n$4\r\nPING\r\n");
            }
        }
        if now_ms - times.newline >= NEWLINE_MS {
            times.newline = now_ms;
            for replica in
                replicas.iter().filter(|replica| matches!(replica.stage(), Stage::WaitStart | Stage::WaitEnd))
            {
                let conn = replica.conn;
                let write = move |_: &mut Worker, conns: &mut net::Conns<Worker>| {
                    conns.write(conn, NEWLINE);
                };
                shared.post(replica.worker, Message::Call(Box::new(write)));
            }
        }
        drop(times);
        for replica in &replicas {
            let is_late = replica.lag_s() > i64::from(config.repl_timeout);
            if replica.is_modern && is_late && matches!(replica.stage(), Stage::Online | Stage::Sent) {
                log!(Level::Warning, "Disconnecting timedout replica (streaming sync): {}", replica.name());
                replica.cut(&shared);
            }
        }
    }

    /// Keys whose time is over are hidden on replicas that nobody writes to.
    fn tend_hiding(&mut self, config: &Config) {
        let hides = self.shared.replication.is_replica() && config.replica_read_only;
        if self.shared.keyspace.hides_expired() != hides {
            self.locks.enter();
            self.alone(|worker| worker.shared.keyspace.set_hides_expired(&worker.locks, hides));
            self.locks.leave();
        }
    }

    /// The backlog follows its directives.
    fn tend_backlog(&mut self, config: &Config) {
        let shared = self.shared.clone();
        let Some(present) = shared.keyspace.journal.backlog() else { return };
        let wanted = u64::try_from(config.repl_backlog_size).unwrap_or(present);
        let replication = &shared.replication;
        let has_none = replication.replicas.lock().is_empty();
        let mut times = replication.tended.lock();
        if !has_none || replication.is_replica() {
            times.alone_since = 0;
        } else if times.alone_since == 0 {
            times.alone_since = steady_ms();
        }
        let alone_s = if times.alone_since == 0 { 0 } else { (steady_ms() - times.alone_since) / 1000 };
        let is_over = config.repl_backlog_ttl > 0 && alone_s > config.repl_backlog_ttl;
        drop(times);
        if present == wanted && !is_over {
            return;
        }
        self.locks.enter();
        self.alone(|worker| {
            let wanted = (!is_over).then_some(wanted);
            shared.keyspace.journal.set_backlog(&mut worker.locks, wanted);
            if is_over {
                // What is recorded from here on is no longer kept: the history is another one.
                replication.change_id();
                let line = format!(
                    "Replication backlog freed after {} seconds without connected replicas.",
                    config.repl_backlog_ttl
                );
                write_log(vec![(Severity::Notice, line)]);
            }
        });
        self.locks.leave();
    }
}

impl Shared {
    /// Whether `min-replicas-to-write` forbids writes.
    pub(crate) fn lacks_replicas(&self, config: &Config) -> bool {
        let wanted = usize::try_from(config.min_replicas_to_write).unwrap_or(0);
        wanted > 0 && config.min_replicas_max_lag > 0 && self.replication.good.load(Ordering::Relaxed) < wanted
    }

    /// Counts the replicas that are well, and has workers heed what follows from the role.
    pub(crate) fn renew_replicas(&self, config: &Config) {
        let replication = &self.replication;
        let is_good = |replica: &&Arc<super::Replica>| {
            replica.stage() == Stage::Online && replica.lag_s() <= i64::from(config.min_replicas_max_lag)
        };
        let good = replication.replicas.lock().iter().filter(is_good).count();
        replication.good.store(good, Ordering::SeqCst);
        let is_stale =
            replication.is_replica() && !config.replica_serve_stale_data && replication.phase() != Phase::Connected;
        if self.durability.stale_restricts.swap(is_stale, Ordering::SeqCst) != is_stale {
            self.durability.renew_restriction();
        }
        let keeps = replication.is_replica() || replication.holds_writes() || self.lacks_replicas(config);
        replication.keeps_writes.store(keeps, Ordering::SeqCst);
    }
}
