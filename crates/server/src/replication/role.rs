//! Changes of the role: REPLICAOF and promotion; ROLE.

use super::primary::Stage;
use super::{Phase, Target, full_sync, link};
use crate::config::{Config, PrimaryAddress};
use crate::exec::Step;
use crate::log;
use crate::process::log::{Level, Role, set_role};
use crate::process::now_ms;
use crate::session::{Session, State};
use crate::shared::{Shared, random_id};
use crate::worker::{Message, Worker};
use commands::{CmdError, options};
use keyspace::LockSet;
use resp::Args;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What blocked clients are told when a primary becomes a replica.
const UNBLOCKED: &str = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

/// REPLICAOF host port, REPLICAOF NO ONE.
pub(crate) fn replica_of(worker: &mut Worker, session: &Session, args: Args<'_>) -> Result<Step, CmdError> {
    if worker.config.cluster_enabled {
        return Err(CmdError::new("ERR REPLICAOF not allowed in cluster mode."));
    }
    let replication = &worker.shared.replication;
    if replication.state.lock().failover.is_under_way() {
        return Err(CmdError::new("ERR REPLICAOF not allowed while failing over."));
    }
    if options::is_word(&args[1], "no") && options::is_word(&args[2], "one") {
        if replication.is_replica() {
            if !behind_gate(worker, |shared, locks, _| shared.promote(locks)) {
                return Ok(Step::Retry);
            }
            worker.shared.role_changed();
            log!(Level::Notice, "MASTER MODE enabled (user request from '{}')", who(session));
        }
        worker.reply.ok();
        return Ok(Step::Done);
    }
    if session.state.has(State::REPLICA) {
        return Err(CmdError::new("ERR Command is not valid when client is a replica."));
    }
    let port = resp::num::parse_i64(&args[2]).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or(CmdError::new("ERR Invalid master port"))?;
    let target = Target { host: String::from_utf8_lossy(&args[1]).into_owned(), port };
    let present = replication.target();
    if present.is_some_and(|present| present.host.eq_ignore_ascii_case(&target.host) && present.port == port) {
        log!(
            Level::Notice,
            "REPLICAOF would result into synchronization with the master we are already connected with. No operation performed."
        );
        worker.reply.simple("OK Already connected to specified master");
        return Ok(Step::Done);
    }
    let becoming = target.clone();
    if !behind_gate(worker, |shared, locks, config| shared.begin_to_follow(locks, config, becoming)) {
        return Ok(Step::Retry);
    }
    worker.shared.role_changed();
    log!(Level::Notice, "REPLICAOF {}:{} enabled (user request from '{}')", target.host, target.port, who(session));
    worker.reply.ok();
    Ok(Step::Done)
}

/// A client for the log.
pub(crate) fn who(session: &Session) -> String {
    let name = session.extra.as_ref().map_or(&[][..], |extra| &extra.name);
    let address = crate::session::address_text(session.address, "");
    format!("id={} addr={address} name={}", session.id.0, String::from_utf8_lossy(name))
}

/// Runs `change` with the gate closed. False: it is busy.
pub(crate) fn behind_gate(worker: &mut Worker, change: impl FnOnce(&Shared, &mut LockSet, &Config)) -> bool {
    let (shared, config) = (worker.shared.clone(), worker.config.clone());
    if worker.locks.is_alone() {
        change(&shared, &mut worker.locks, &config);
        return true;
    }
    worker.alone(|worker| change(&shared, &mut worker.locks, &config)).is_some()
}

impl Shared {
    /// Becomes a primary. The gate is closed by `locks`; [`Shared::role_changed`] follows.
    pub(crate) fn promote(&self, locks: &mut LockSet) {
        let replication = &self.replication;
        let journal = &self.keyspace.journal;
        {
            let mut state = replication.state.lock();
            state.target = None;
            let next = i64::try_from(journal.end()).unwrap_or(i64::MAX).saturating_add(1);
            if state.is_resumable {
                state.history.promote(random_id(), next);
                log!(
                    Level::Notice,
                    "Setting secondary replication ID to {}, valid up to offset: {next}. New replication ID is {}",
                    state.history.second_id,
                    state.history.id
                );
            } else {
                state.history = ::replication::history::History::new(random_id());
            }
        }
        journal.set_following(locks, false);
        self.keyspace.set_hides_expired(locks, false);
        replication.generation.fetch_add(1, Ordering::SeqCst);
        replication.is_replica.store(false, Ordering::SeqCst);
        replication.set_phase(Phase::None);
    }

    /// Becomes the replica of another primary. The gate is closed by `locks`; [`Shared::role_changed`] follows.
    pub(crate) fn begin_to_follow(&self, locks: &mut LockSet, config: &Config, target: Target) {
        let replication = &self.replication;
        let was_primary = !replication.is_replica();
        if was_primary {
            // What this server has under its own name may be what the new primary has under its second one.
            log!(
                Level::Notice,
                "Before turning into a replica, using my own master parameters to synthesize a cached master: I may be able to synchronize with the new master with just a partial transfer."
            );
            full_sync::keep_backlog(self, locks, config);
        }
        {
            let mut state = replication.state.lock();
            state.target = Some(target);
            state.is_resumable |= was_primary;
        }
        self.keyspace.journal.set_following(locks, true);
        self.keyspace.set_hides_expired(locks, config.replica_read_only);
        replication.generation.fetch_add(1, Ordering::SeqCst);
        replication.is_replica.store(true, Ordering::SeqCst);
        replication.keeps_writes.store(true, Ordering::SeqCst);
        if was_primary {
            replication.link.stream_db.store(0, Ordering::SeqCst);
        }
        replication.link.down_since_s.store(now_ms() / 1000, Ordering::SeqCst);
        replication.set_phase(Phase::Connect);
    }

    /// Does what a change of the role entails, once the gate is open or about to be.
    pub(crate) fn role_changed(self: &Arc<Self>) {
        let replication = &self.replication;
        let target = replication.target();
        if let Some(socket) = replication.link.socket.lock().take() {
            // The link sees that its time is over.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        self.config.update(|config| {
            config.replicaof = target
                .as_ref()
                .map(|target| PrimaryAddress { host: target.host.clone().into_bytes(), port: target.port });
        });
        set_role(if target.is_some() { Role::Replica } else { Role::Primary });
        if target.is_some() {
            self.unblock_all();
            link::start(self);
        } else {
            // They are to learn the new name.
            self.cut_replicas();
            replication.hold_writes(false);
        }
        self.renew_replicas(&self.config.snapshot());
        replication.wake_waiters(self);
        if self.cluster.is_managed() {
            self.control(crate::cluster::control::Control::role_changed);
        }
    }

    /// Closes the connections of all replicas.
    pub(crate) fn cut_replicas(&self) {
        for replica in self.replication.replicas() {
            replica.cut(self);
        }
    }

    /// Blocked clients go on with an error: what they wait for may never come from here.
    fn unblock_all(&self) {
        for worker in 0..self.workers() {
            let call = |worker: &mut Worker, conns: &mut net::Conns<Worker>| {
                let blocked: Vec<net::ConnId> = conns
                    .iter()
                    .filter(|(_, session)| session.state.has(State::BLOCKED))
                    .map(|(conn, _)| conn)
                    .collect();
                for conn in blocked {
                    worker.end_wait(conns, conn, Some(UNBLOCKED));
                }
            };
            #[allow(clippy::cast_possible_truncation)]
            self.post(worker as u16, Message::Call(Box::new(call)));
        }
    }

    /// At start, when all is loaded: begins to follow if `replicaof` says so, from where the loaded file stands.
    pub(crate) fn follow_at_start(self: &Arc<Self>) {
        let replication = &self.replication;
        let config = self.config.snapshot();
        let history = self.durability.file_history.lock().clone();
        let place = history.and_then(|history| {
            let id = history.id?;
            let offset = u64::try_from(history.offset?).ok()?;
            Some((id, offset, u32::try_from(history.stream_db.unwrap_or(0)).unwrap_or(0)))
        });
        let target = replication.target();
        if target.is_none() && (place.is_none() || config.appendonly) {
            return;
        }
        let mut locks = LockSet::new(self.keyspace.clone());
        locks.alone(|locks| {
            if let Some((id, offset, db)) = place.filter(|_| !config.appendonly) {
                self.keyspace.journal.restart_at(offset);
                let mut state = replication.state.lock();
                if target.is_some() {
                    state.history.id = id;
                    state.is_resumable = true;
                    replication.link.stream_db.store(db, Ordering::SeqCst);
                } else {
                    // Replicas of before may go on: nothing was written since.
                    state.history.second_id = id;
                    state.history.second_offset = i64::try_from(offset).unwrap_or(i64::MAX).saturating_add(1);
                    drop(state);
                    let bytes = u64::try_from(config.repl_backlog_size).unwrap_or(1 << 20);
                    self.keyspace.journal.set_backlog(locks, Some(bytes));
                }
            }
            if target.is_some() {
                self.keyspace.journal.set_following(locks, true);
                self.keyspace.set_hides_expired(locks, config.replica_read_only);
            }
        });
        drop(locks);
        if target.is_some() {
            set_role(Role::Replica);
            self.renew_replicas(&config);
            link::start(self);
        }
    }
}

/// ROLE.
pub(crate) fn role(worker: &mut Worker) {
    let shared = worker.shared.clone();
    let replication = &shared.replication;
    let int = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX);
    let reply = &mut worker.reply;
    let Some(target) = replication.target() else {
        let replicas: Vec<_> =
            replication.replicas().into_iter().filter(|replica| replica.stage() == Stage::Online).collect();
        reply.array(3);
        reply.bulk("master");
        reply.int(int(shared.keyspace.journal.end()));
        reply.array(replicas.len());
        for replica in replicas {
            reply.array(3);
            reply.bulk(&replica.host);
            reply.bulk_int(i64::from(replica.port()));
            reply.bulk_int(int(replica.acked.load(Ordering::SeqCst)));
        }
        return;
    };
    let phase = replication.phase();
    reply.array(5);
    reply.bulk("slave");
    reply.bulk(&target.host);
    reply.int(i64::from(target.port));
    reply.bulk(match phase {
        Phase::None => "none",
        Phase::Connect => "connect",
        Phase::Connecting => "connecting",
        Phase::Handshake => "handshake",
        Phase::Transfer => "sync",
        Phase::Connected => "connected",
    });
    reply.int(if phase == Phase::Connected { int(shared.keyspace.journal.end()) } else { -1 });
}
