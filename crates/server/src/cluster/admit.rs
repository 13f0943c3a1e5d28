//! The look at a command: whether its slots are served here.
//!
//! Texts and rules are Redis Cluster's. Whoever asks under the slots' locks gets an answer that stays true until they go
//! back; before MULTI's queue and for shard channels, which lock nothing, it is a hint, and EXEC asks again.

use crate::exec::single::{self, Slots};
use crate::exec::{Step, transaction};
use crate::session::{Session, State};
use crate::shared::Shared;
use crate::worker::Worker;
use ::commands::table::{CommandId, CommandSpec, Flags, keys};
use ::commands::{CmdError, options};
use keyspace::slot::Tenure;
use keyspace::{LockSet, Slot};
use net::ConnId;
use resp::{Args, OwnedArgs};

/// Keys of several slots in one command.
pub(crate) const CROSS_SLOT: CmdError = CmdError::new("CROSSSLOT Keys in request don't hash to the same slot");
/// Without the right to serve.
const DOWN: CmdError = CmdError::new("CLUSTERDOWN The cluster is down");
/// Nobody owns the slot.
const NOT_SERVED: CmdError = CmdError::new("CLUSTERDOWN Hash slot not served");
const NO_SWAP: CmdError = CmdError::new("ERR SWAPDB is not allowed in cluster mode");
const NO_SORT_BY: CmdError = CmdError::new("ERR BY option of SORT denied in Cluster mode.");
const NO_SORT_GET: CmdError = CmdError::new("ERR GET option of SORT denied in Cluster mode.");
/// What a script is told that touches another server's key.
pub(crate) const NOT_LOCAL: &str = "Script attempted to access a non local key in a cluster node";
/// What a script is told that touches keys of several slots.
pub(crate) const NOT_SAME_SLOT: &str = "Script attempted to access keys that do not hash to the same slot";
/// What a script is told without the right to serve.
pub(crate) const DOWN_FOR_SCRIPT: &str = "Script attempted to execute a command while the cluster is down";

/// What is to be done with a command whose slots are locked.
pub(crate) enum Verdict {
    /// It runs.
    Runs,
    /// One of its slots is held: it waits.
    Waits,
    /// It does not run here.
    Refused(CmdError),
    /// What is known of its slots is just being changed: it is to be looked at again.
    Again,
}

/// Whether an error is one of those that send a client elsewhere or say that the cluster is down: EXEC answers them as they
/// are.
pub(crate) fn is_redirection(error: &CmdError) -> bool {
    ["MOVED ", "CROSSSLOT ", "CLUSTERDOWN "].iter().any(|code| error.0.starts_with(code))
}

/// Commands that a proxy may send with keys of several slots.
fn may_span_slots(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::Mget | C::Mset | C::Del | C::Unlink | C::Exists | C::Touch)
}

/// What a session's commands pass over: a replica's slots, if the client wants to read from a replica.
#[inline]
pub(crate) fn allowed(session: &Session, writes: bool) -> Tenure {
    if !writes && session.state.has(State::READS_REPLICA) { Tenure::REPLICATED } else { Tenure::SERVED }
}

impl Shared {
    /// The answer to a command on a slot that is not served here.
    pub(crate) fn redirection(&self, slot: Slot) -> Verdict {
        let Some(map) = self.cluster.map() else { return Verdict::Refused(DOWN) };
        let is_primary_here = matches!(map.home, Some((_, topology::Role::Primary)));
        if is_primary_here && map.is_ours(slot) {
            // It is about to be served, unless this server has still to be promoted.
            return if self.replication.is_replica() { Verdict::Refused(DOWN) } else { Verdict::Again };
        }
        Verdict::Refused(match map.address(slot) {
            Some(address) => moved(slot, address),
            None => NOT_SERVED,
        })
    }

    /// Looks at the slots of a command. All must be locked by `locks`.
    pub(crate) fn judge(&self, locks: &LockSet, slots: &[Slot], allowed: Tenure) -> Verdict {
        let mut waits = false;
        for slot in slots {
            let tenure = locks.tenure(*slot).without(allowed);
            if tenure.is_served() {
                continue;
            }
            if tenure != Tenure::HELD {
                return self.redirect_from(*slot, tenure);
            }
            waits = true;
        }
        if waits { Verdict::Waits } else { Verdict::Runs }
    }

    fn redirect_from(&self, slot: Slot, tenure: Tenure) -> Verdict {
        if tenure.has(Tenure::FOREIGN)
            && let Some(target) = self.cluster.departed_to(slot)
        {
            return Verdict::Refused(moved(slot, &target));
        }
        self.redirection(slot)
    }
}

fn moved(slot: Slot, address: &str) -> CmdError {
    CmdError::text(format!("MOVED {} {address}", slot.index()))
}

impl Worker {
    /// Looks at a command whose slots are locked. `None`: it runs. Else the locks have been given back.
    ///
    /// # Errors
    /// It does not run here.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        id: ConnId,
        session: &Session,
        spec: &'static CommandSpec,
        slots: &[Slot],
    ) -> Result<Option<Step>, CmdError> {
        if !self.shared.cluster.is_managed() || self.is_replaying {
            return Ok(None);
        }
        let spans = slots.len() > 1 && !(session.state.has(State::PROXY) && may_span_slots(spec.id));
        let judged = if spans {
            Err(CROSS_SLOT)
        } else {
            self.judge_slots(id, slots, allowed(session, single::writes(session, spec)))
        };
        if !matches!(judged, Ok(None)) {
            self.locks.unlock_all();
        }
        judged
    }

    /// As [`Worker::admit`], keeping the locks.
    pub(crate) fn judge_slots(&self, id: ConnId, slots: &[Slot], allowed: Tenure) -> Result<Option<Step>, CmdError> {
        match self.shared.judge(&self.locks, slots, allowed) {
            Verdict::Runs => Ok(None),
            Verdict::Waits => {
                self.shared.cluster.wait(self.index, id.as_u64());
                Ok(Some(Step::Again))
            }
            Verdict::Again => Ok(Some(Step::Retry)),
            Verdict::Refused(error) => Err(error),
        }
    }

    /// What can be said of a command before it locks anything.
    pub(crate) fn check_cluster(
        &self,
        session: &Session,
        spec: &'static CommandSpec,
        args: Args<'_>,
        is_queued: bool,
    ) -> Result<(), CmdError> {
        if !self.shared.cluster.is_managed() || self.is_replaying {
            return Ok(());
        }
        use CommandId as C;
        if spec.id == C::Swapdb {
            return Err(NO_SWAP);
        }
        let shard_channel = matches!(spec.id, C::Ssubscribe | C::Sunsubscribe | C::Spublish);
        let is_of = |spec: &CommandSpec, flag: Flags| spec.flags.contains(flag);
        let writes = is_of(spec, Flags::WRITE)
            || (spec.id == C::Exec && transaction::queues(session, |spec| is_of(spec, Flags::WRITE)));
        let looks = spec.has_keys() || (spec.id == C::Exec && transaction::queues(session, CommandSpec::has_keys));
        if (writes || (looks && !self.config.cluster_allow_reads_when_down)) && !self.shared.cluster.has_authority() {
            return Err(DOWN);
        }
        if shard_channel && !self.shared.cluster.has_authority() && !self.config.cluster_allow_pubsubshard_when_down {
            return Err(DOWN);
        }
        // On a replica a write is sent to the primary before it is refused for being one.
        let is_misplaced = writes && self.shared.replication.is_replica();
        if !is_queued && !shard_channel && !is_misplaced {
            return Ok(());
        }
        let slots = self.routing_slots(spec, args);
        if slots.len() > 1 {
            return Err(CROSS_SLOT);
        }
        // Redis: shard channels are served by replicas, too.
        let allowed = if shard_channel { Tenure::REPLICATED } else { allowed(session, single::writes(session, spec)) };
        for slot in slots {
            let tenure = self.locks.tenure(slot).without(allowed);
            if tenure.has(Tenure::FOREIGN) || tenure.has(Tenure::REPLICATED) {
                match self.shared.redirect_from(slot, tenure) {
                    Verdict::Refused(error) => return Err(error),
                    Verdict::Runs | Verdict::Waits | Verdict::Again => {}
                }
            }
        }
        Ok(())
    }

    fn routing_slots(&self, spec: &CommandSpec, args: Args<'_>) -> Slots {
        let mut slots: Slots = keys::routing_keys(spec, &args)
            .map(|found| {
                let bytes = found.iter().filter_map(|key| args.get(key.position as usize));
                bytes.map(|key| self.locks.keyspace().slot(key)).collect()
            })
            .unwrap_or_default();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Looks at a transaction whose slots, and those of its watched keys, are locked. `None`: it runs.
    ///
    /// # Errors
    /// It does not run here.
    pub(crate) fn admit_transaction(
        &self,
        id: ConnId,
        session: &Session,
        queued: &[(CommandId, OwnedArgs)],
    ) -> Result<Option<Step>, CmdError> {
        if !self.shared.cluster.is_managed() || self.is_replaying {
            return Ok(None);
        }
        let slots = transaction::slots_of_commands(self, queued);
        if slots.len() > 1 {
            return Err(CROSS_SLOT);
        }
        let allowed = allowed(session, transaction::writes_any(queued));
        if let Some(step) = self.judge_slots(id, &slots, allowed)? {
            return Ok(Some(step));
        }
        // A watched key that has gone counts as changed; one that is held may have to.
        let held: Slots = transaction::watched_slots(self, session)
            .into_iter()
            .filter(|slot| self.locks.tenure(*slot).has(Tenure::HELD))
            .collect();
        self.judge_slots(id, &held, allowed)
    }

    /// Whether a watched key is in a slot that is no longer here.
    pub(crate) fn watches_foreign(&self, session: &Session) -> bool {
        if !self.shared.cluster.is_managed() || self.is_replaying {
            return false;
        }
        let foreign = |slot: &Slot| self.locks.tenure(*slot).has(Tenure::FOREIGN);
        transaction::watched_slots(self, session).iter().any(foreign)
    }

    /// Whether a slot is held. With the gate closed that stays as it is.
    pub(crate) fn holds_any(&self) -> bool {
        let locks = &self.locks;
        self.shared.cluster.is_managed()
            && !self.is_replaying
            && locks.keyspace().slots().any(|slot| locks.tenure(slot).has(Tenure::HELD))
    }

    /// The error for a SORT that would look at keys of other slots.
    pub(crate) fn sort_refusal_in_cluster(&self, spec: &CommandSpec, args: Args<'_>) -> Option<CmdError> {
        if !self.shared.cluster.is_managed() || self.is_replaying {
            return None;
        }
        if !matches!(spec.id, CommandId::Sort | CommandId::SortRo) {
            return None;
        }
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let has = |more: usize| args.len() > at + more;
            at += match word {
                _ if options::is_word(word, "limit") && has(2) => 3,
                _ if options::is_word(word, "store") && has(1) => 2,
                _ if options::is_word(word, "by") && has(1) => {
                    if args.get(at + 1).is_some_and(|pattern| pattern.contains(&b'*')) {
                        return Some(NO_SORT_BY);
                    }
                    2
                }
                _ if options::is_word(word, "get") && has(1) => return Some(NO_SORT_GET),
                _ => 1,
            };
        }
        None
    }
}
