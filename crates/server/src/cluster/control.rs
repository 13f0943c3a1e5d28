//! Who owns what: the one thread that changes the tenure of slots.
//!
//! Everything that bears on it is in [`Control`]; [`Control::settle`] computes what each slot's tenure should be and brings
//! those that differ in line, one lock at a time. So there is no order of events that leaves a slot in a state that no
//! rule explains.

use super::outgoing::Outgoing;
use super::store::{Arrival, Kept, Leaving};
use super::{Departed, Map, agent, discard, slots_of};
use crate::log;
use crate::process::log::Level;
use crate::session::State;
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use keyspace::lock::Wake;
use keyspace::slot::Tenure;
use keyspace::{LockSet, Slot};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use topology::{Epoch, Newness, Role, SlotSet, Stage, View};

mod decide;

/// Something to be done by the control thread.
pub(crate) type Task = Box<dyn FnOnce(&mut Control) + Send>;

/// How long the thread sleeps for a busy slot before it looks again by itself.
const SLOT_PATIENCE: Duration = Duration::from_millis(1);
/// Slots that are locked together while tenures are changed.
const TOGETHER: usize = 64;

/// A hold of slots by a move's cut-over.
#[derive(Clone)]
pub(crate) struct Hold {
    pub(crate) id: u64,
    pub(crate) slots: SlotSet,
    /// The epoch of the record that ordered it: a view of a later one decides.
    pub(crate) epoch: u64,
}

/// See the module.
pub(crate) struct Control {
    pub(crate) shared: Arc<Shared>,
    locks: LockSet,
    /// What is on disk, too.
    pub(crate) kept: Kept,
    pub(crate) agent: Option<agent::Running>,
    pub(crate) holds: Vec<Hold>,
    /// Slots that were committed to this server, until the view says so.
    granted: Vec<(SlotSet, Newness)>,
    /// Slots that are being taken over.
    arriving: Vec<(u64, SlotSet)>,
    /// What a server of before left to be dropped has been seen to.
    is_tidied: bool,
    tenures: Vec<Tenure>,
    /// The epoch that the file says.
    epoch_on_disk: u64,
}

impl Shared {
    /// Has a task done by the control thread.
    pub(crate) fn control(self: &Arc<Self>, task: impl FnOnce(&mut Control) + Send + 'static) {
        let sender = self.cluster.control.get_or_init(|| parking_lot::Mutex::new(start(self)));
        // The thread lives as long as the process.
        let _ = sender.lock().send(Box::new(task));
    }

    /// As [`Shared::control`], waiting for what comes of it. `None`: the thread is gone. Not for workers.
    pub(crate) fn control_waiting<R: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&mut Control) -> R + Send + 'static,
    ) -> Option<R> {
        let (sender, receiver) = channel();
        self.control(move |control| {
            let _ = sender.send(task(control));
        });
        receiver.recv().ok()
    }
}

fn start(shared: &Arc<Shared>) -> Sender<Task> {
    let (sender, receiver) = channel::<Task>();
    let shared = shared.clone();
    let spawned = std::thread::Builder::new().name("cluster".into()).spawn(move || run(&shared, &receiver));
    if let Err(error) = spawned {
        log!(Level::Warning, "There is no thread to follow the cluster on: {error}");
    }
    sender
}

fn run(shared: &Arc<Shared>, receiver: &Receiver<Task>) {
    let slots = shared.keyspace.space().count();
    let mut control = Control {
        shared: shared.clone(),
        locks: LockSet::new(shared.keyspace.clone()),
        kept: Kept::default(),
        agent: None,
        holds: Vec::new(),
        granted: Vec::new(),
        arriving: Vec::new(),
        is_tidied: false,
        tenures: vec![Tenure::SERVED; slots],
        epoch_on_disk: 0,
    };
    while let Ok(task) = receiver.recv() {
        task(&mut control);
    }
}

impl Control {
    // ---- membership ----------------------------------------------------------------------------------------------

    /// Becomes a member.
    ///
    /// # Errors
    /// The file cannot be written, or there is no thread for the agent.
    pub(crate) fn join(&mut self, kept: Kept) -> Result<(), String> {
        self.become_member(kept);
        self.save()?;
        self.start_agent()
    }

    /// Is a member from here on, without a view yet: commands on keys are refused.
    pub(crate) fn become_member(&mut self, kept: Kept) {
        let member = kept.member.clone();
        self.kept = kept;
        self.epoch_on_disk = 0;
        // What came before a restart is kept, hidden, until a view decides.
        self.arriving = self.kept.coming.iter().map(|one| (one.id, one.slots.clone())).collect();
        let cluster = &self.shared.cluster;
        cluster.member.store(Some(Arc::new(member)));
        let slots = self.shared.keyspace.space().count();
        cluster.uses.get_or_init(|| (0..slots).map(|_| std::sync::atomic::AtomicU32::new(0)).collect());
        // First, so that no command slips through between the change of a tenure and the look at it.
        cluster.managed.store(true, Ordering::SeqCst);
        self.settle_all();
    }

    /// Ends the old agent, if there is one, and starts one for the managers that are known.
    pub(crate) fn start_agent(&mut self) -> Result<(), String> {
        drop(self.agent.take());
        let agent = agent::start(&self.shared, &self.kept)?;
        self.shared.cluster.authority.lease.store(Some(agent.membership.clone()));
        self.agent = Some(agent);
        Ok(())
    }

    /// Is a plain server again.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn leave(&mut self) -> Result<(), String> {
        drop(self.agent.take());
        for one in self.shared.cluster.outgoing() {
            one.give_up("the server has left the cluster");
        }
        for one in self.shared.cluster.incoming() {
            one.end();
        }
        super::store::forget(&self.shared.config.snapshot())?;
        self.kept = Kept::default();
        self.holds.clear();
        self.granted.clear();
        self.arriving.clear();
        let cluster = &self.shared.cluster;
        cluster.departed.lock().clear();
        cluster.authority.lease.store(None);
        self.epoch_on_disk = 0;
        cluster.authority.always.store(false, Ordering::SeqCst);
        cluster.map.store(None);
        *cluster.in_force.lock() = Newness::default();
        cluster.member.store(None);
        cluster.managed.store(false, Ordering::SeqCst);
        self.settle_all();
        Ok(())
    }

    /// Brings what is kept to disk.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn save(&mut self) -> Result<(), String> {
        self.kept.epoch = self.known_epoch();
        super::store::save(&self.shared.config.snapshot(), &self.kept)?;
        self.epoch_on_disk = self.kept.epoch;
        Ok(())
    }

    // ---- epochs --------------------------------------------------------------------------------------------------

    /// The greatest epoch known: by the view, or by what was said of moves.
    fn known_epoch(&self) -> u64 {
        self.shared.cluster.map().map_or(0, |map| map.newness().epoch.0).max(self.kept.epoch)
    }

    /// Refuses what was said by a record of before: it was decided on what is no longer so.
    ///
    /// # Errors
    /// A greater epoch is known.
    pub(crate) fn refuse_stale(&self, epoch: u64) -> Result<(), String> {
        let known = self.known_epoch();
        if epoch >= known {
            return Ok(());
        }
        Err(format!("this is of epoch {epoch}, and this server knows epoch {known}: say it with the newest one"))
    }

    /// No view of an earlier epoch is taken from here on, in memory; the next [`Control::save`] keeps it.
    fn raise_floor(&mut self, epoch: u64) {
        self.kept.epoch = self.kept.epoch.max(epoch);
        if let Some(agent) = &self.agent {
            agent.membership.refuse_before(Epoch(epoch));
        }
    }

    /// No view of an earlier epoch is taken from here on, nor after a restart: when this returns it is on disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep_floor(&mut self, epoch: u64) -> Result<(), String> {
        self.raise_floor(epoch);
        if self.epoch_on_disk >= epoch { Ok(()) } else { self.save() }
    }

    /// As [`Control::save`], where only a restart would suffer from a failure: it is logged.
    fn save_or_log(&mut self) {
        if let Err(error) = self.save() {
            log!(
                Level::Warning,
                "The cluster's file cannot be written, a restart would begin from an older one: {error}"
            );
        }
    }

    // ---- views ---------------------------------------------------------------------------------------------------

    /// Takes over a view unless it is older than what is known.
    pub(crate) fn take_view(&mut self, view: &View) {
        let shared = self.shared.clone();
        let cluster = &shared.cluster;
        let is_newer = view.replaces(cluster.map().as_ref().map(|map| &map.view));
        if self.kept.member.is_empty() || view.epoch.0 < self.kept.epoch || !is_newer {
            return;
        }
        let map = Arc::new(Map::new(view.clone(), &self.kept.member));
        let newness = map.newness();
        let alone = map.home.is_some_and(|(group, role)| {
            role == Role::Primary && view.group(group).is_some_and(|group| group.replicas().next().is_none())
        });
        if map.home.is_none() {
            log!(
                Level::Warning,
                "The cluster's view (term {}, epoch {}) does not name this server",
                view.term,
                view.epoch
            );
        }
        cluster.map.store(Some(map.clone()));
        let kept = self.kept.clone();
        // What was decided up to here, the view shows.
        cluster.departed.lock().retain(|departed| departed.newness > newness);
        self.granted.retain(|(_, granted)| *granted > newness);
        self.decide_outgoing(&map);
        let gone = self.decide_arrivals(&map).union(&self.decide_leavings(&map));
        if !alone {
            cluster.authority.always.store(false, Ordering::SeqCst);
        }
        self.settle_all();
        if alone {
            cluster.authority.always.store(true, Ordering::SeqCst);
        }
        *cluster.in_force.lock() = newness;
        // By now it is settled whose they are, and what is not to go.
        if !gone.is_empty() {
            self.discard(&gone);
        } else if self.kept != kept {
            self.save_or_log();
        }
    }

    /// This server has become a primary or a replica.
    pub(crate) fn role_changed(&mut self) {
        if self.shared.cluster.is_managed() {
            self.settle_all();
        }
    }

    // ---- moves: the source ---------------------------------------------------------------------------------------

    /// A move away from here begins.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn begin_leaving(&mut self, leaving: Leaving) -> Result<(), String> {
        self.kept.leaving.retain(|other| other.id != leaving.id);
        self.kept.leaving.push(leaving);
        self.save()
    }

    /// A move away from here has ended.
    pub(crate) fn forget_leaving(&mut self, id: u64) {
        let before = self.kept.leaving.len();
        self.kept.leaving.retain(|other| other.id != id);
        if self.kept.leaving.len() != before {
            self.save_or_log();
        }
    }

    fn is_current(&self, outgoing: &Arc<Outgoing>) -> bool {
        self.shared.cluster.outgoing_of(outgoing.id).is_some_and(|one| Arc::ptr_eq(&one, outgoing))
    }

    /// Holds the slots of a move for the cut-over of an epoch.
    ///
    /// # Errors
    /// It took too long, or the move or the epoch has been overtaken: they are not held.
    pub(crate) fn hold(&mut self, outgoing: &Arc<Outgoing>, epoch: u64, until: Instant) -> Result<(), String> {
        self.refuse_stale(epoch)?;
        if outgoing.is_over() || !self.is_current(outgoing) {
            return Err("the move has ended".to_owned());
        }
        let (id, slots) = (outgoing.id, outgoing.slots.clone());
        self.holds.retain(|other| other.id != id);
        self.holds.push(Hold { id, slots: slots.clone(), epoch });
        if self.settle(Some(&slots), Some(until)) {
            return Ok(());
        }
        self.release(id);
        Err("a command holds one of them for long".to_owned())
    }

    /// The source is about to say OK to the manager: only a decision ends the hold from here on. False: it is no longer there.
    pub(crate) fn promise(&mut self, outgoing: &Arc<Outgoing>, epoch: u64) -> bool {
        if outgoing.is_over() || !self.is_current(outgoing) {
            return false;
        }
        let Some(hold) = self.holds.iter_mut().find(|hold| hold.id == outgoing.id) else { return false };
        hold.epoch = hold.epoch.max(epoch);
        outgoing.promised();
        true
    }

    /// As [`Control::release`], unless another has taken the place of this move.
    pub(crate) fn release_of(&mut self, outgoing: &Arc<Outgoing>) {
        if self.is_current(outgoing) {
            self.release(outgoing.id);
        }
    }

    /// Lets held slots go: they are served here as before.
    pub(crate) fn release(&mut self, id: u64) {
        let slots: Vec<SlotSet> =
            self.holds.iter().filter(|hold| hold.id == id).map(|hold| hold.slots.clone()).collect();
        self.holds.retain(|hold| hold.id != id);
        for slots in slots {
            self.settle(Some(&slots), None);
        }
        self.note_held(id);
    }

    fn note_held(&self, id: u64) {
        if let Some(outgoing) = self.shared.cluster.outgoing_of(id) {
            outgoing.note_held(&self.shared);
        }
    }

    /// Slots are another server's from here on: who waits for them is sent there, and what they hold is dropped.
    pub(crate) fn finish(&mut self, id: u64, slots: &SlotSet, target: &str, newness: Newness) {
        let cluster = &self.shared.cluster;
        let known = cluster.map();
        for (granted, _) in &mut self.granted {
            *granted = granted.difference(slots);
        }
        if known.as_ref().is_none_or(|map| map.newness() < newness) {
            cluster.departed.lock().push(Departed { slots: slots.clone(), target: target.to_owned(), newness });
        }
        self.raise_floor(newness.epoch.0);
        self.holds.retain(|hold| hold.id != id);
        self.settle(Some(slots), None);
        self.note_held(id);
        let gone: SlotSet =
            slots.iter().filter(|slot| !self.tenure_of(Slot::new(usize::from(*slot))).is_visible()).collect();
        self.kept.leaving.retain(|other| other.id != id);
        self.discard(&gone);
    }

    // ---- moves: the target ---------------------------------------------------------------------------------------

    /// Slots are to be taken over.
    ///
    /// # Errors
    /// They are ours already, or the file cannot be written.
    pub(crate) fn begin_arrival(&mut self, arrival: Arrival) -> Result<(), String> {
        let cluster = &self.shared.cluster;
        let Some(map) = cluster.map() else {
            return Err("this server has no view of the cluster yet: try again when it has".to_owned());
        };
        if !matches!(map.home, Some((_, Role::Primary))) || self.shared.replication.is_replica() {
            return Err("only the primary of a group takes slots over: begin the move with it".to_owned());
        }
        if arrival.slots.iter().any(|slot| self.tenure_of(Slot::new(usize::from(slot))).is_visible()) {
            return Err("slots of the move are served by this server already".to_owned());
        }
        if self.arriving.iter().any(|(id, slots)| *id != arrival.id && !slots.is_disjoint(&arrival.slots)) {
            return Err("slots of the move are being taken over by another move".to_owned());
        }
        self.kept.coming.retain(|other| other.id != arrival.id);
        self.kept.dropping = self.kept.dropping.difference(&arrival.slots);
        self.kept.coming.push(arrival.clone());
        self.save()?;
        self.arriving.retain(|(id, _)| *id != arrival.id);
        self.arriving.push((arrival.id, arrival.slots.clone()));
        self.settle(Some(&arrival.slots), None);
        Ok(())
    }

    /// Slots that were taken over are ours from here on.
    pub(crate) fn commit_arrival(&mut self, id: u64, slots: &SlotSet, newness: Newness) {
        let known = self.shared.cluster.map();
        if known.is_none_or(|map| map.newness() < newness) {
            self.granted.push((slots.clone(), newness));
        }
        self.raise_floor(newness.epoch.0);
        for departed in self.shared.cluster.departed.lock().iter_mut() {
            departed.slots = departed.slots.difference(slots);
        }
        self.end_arrival(id);
        self.settle(Some(slots), None);
        // Last: clients wait for the slots, and until it is written a restart asks the view.
        self.save_or_log();
    }

    /// A take-over has come to nothing: what came is dropped.
    pub(crate) fn abort_arrival(&mut self, id: u64, slots: &SlotSet) {
        self.end_arrival(id);
        self.settle(Some(slots), None);
        let hidden: SlotSet =
            slots.iter().filter(|slot| !self.tenure_of(Slot::new(usize::from(*slot))).is_visible()).collect();
        self.discard(&hidden);
    }

    /// Forgets a take-over; what is kept of it is to be saved by the caller.
    fn end_arrival(&mut self, id: u64) {
        self.arriving.retain(|(other, _)| *other != id);
        self.kept.coming.retain(|other| other.id != id);
        self.shared.cluster.incoming.lock().retain(|other| {
            if other.id == id {
                other.end();
            }
            other.id != id
        });
    }

    // ---- dropping ------------------------------------------------------------------------------------------------

    /// Empties slots that are not ours, in the background.
    pub(crate) fn discard(&mut self, slots: &SlotSet) {
        self.kept.dropping = self.kept.dropping.union(slots);
        self.save_or_log();
        if !slots.is_empty() {
            discard::start(&self.shared, slots.clone());
        }
    }

    /// Slots were emptied.
    pub(crate) fn discarded(&mut self, slots: &SlotSet) {
        self.kept.dropping = self.kept.dropping.difference(slots);
        self.save_or_log();
    }

    // ---- tenures -------------------------------------------------------------------------------------------------

    /// What is known of a slot.
    pub(crate) fn tenure_of(&self, slot: Slot) -> Tenure {
        self.tenures.get(slot.index()).copied().unwrap_or(Tenure::FOREIGN)
    }

    /// What each slot's tenure should be.
    fn wanted(&self) -> Vec<Tenure> {
        let cluster = &self.shared.cluster;
        let count = self.shared.keyspace.space().count();
        if !cluster.is_managed() {
            return vec![Tenure::SERVED; count];
        }
        let Some(map) = cluster.map() else { return vec![Tenure::FOREIGN; count] };
        // One that is to be the primary and still follows another has not all data yet.
        let is_replica = self.shared.replication.is_replica();
        let own = match map.home {
            Some((_, Role::Primary)) if !is_replica => Tenure::SERVED,
            Some(_) => Tenure::REPLICATED,
            None => Tenure::FOREIGN,
        };
        let mut wanted: Vec<Tenure> =
            self.shared.keyspace.slots().map(|slot| if map.is_ours(slot) { own } else { Tenure::FOREIGN }).collect();
        let mut set = |slots: &SlotSet, change: &dyn Fn(Tenure) -> Tenure| {
            for slot in slots_of(slots) {
                if let Some(tenure) = wanted.get_mut(slot.index()) {
                    *tenure = change(*tenure);
                }
            }
        };
        for (slots, _) in &self.granted {
            set(slots, &|_| own);
        }
        for departed in cluster.departed.lock().iter() {
            set(&departed.slots, &|_| Tenure::FOREIGN);
        }
        let held = |tenure: Tenure| if tenure.is_served() { Tenure::HELD } else { tenure };
        for hold in &self.holds {
            set(&hold.slots, &held);
        }
        // Another incarnation of this server has promised to hold them; it may have been said to the target.
        let of_before = map.view.moves.iter().filter(|one| {
            one.stage == Stage::Cutover
                && map.home.is_some_and(|(group, _)| group == one.from)
                && one.source_run.as_ref().is_some_and(|run| *run != self.shared.run_id)
        });
        for one in of_before {
            set(&one.slots, &held);
        }
        for (_, slots) in &self.arriving {
            set(slots, &|tenure| {
                if tenure.has(Tenure::FOREIGN) { tenure.with(Tenure::IMPORTED) } else { tenure }
            });
        }
        wanted
    }

    fn settle_all(&mut self) {
        self.settle(None, None);
    }

    /// Brings the tenures of slots (all) in line. False: that took longer than it may.
    fn settle(&mut self, scope: Option<&SlotSet>, until: Option<Instant>) -> bool {
        let wanted = self.wanted();
        let differs = |slot: &Slot| wanted.get(slot.index()) != self.tenures.get(slot.index());
        let changed: Vec<Slot> = match scope {
            Some(set) => slots_of(set).filter(differs).collect(),
            None => self.shared.keyspace.slots().filter(differs).collect(),
        };
        let mut complete = true;
        let leaves = changed.iter().any(|slot| wanted.get(slot.index()).is_some_and(|tenure| !tenure.is_visible()));
        for together in changed.chunks(TOGETHER) {
            if !self.change(together, &wanted, until) {
                complete = false;
                break;
            }
        }
        if changed.is_empty() {
            return true;
        }
        let hidden = self.tenures.iter().filter(|tenure| !tenure.is_visible()).count();
        self.shared.cluster.hidden.store(hidden, Ordering::SeqCst);
        self.shared.wake_waiting();
        if leaves {
            self.shared.end_foreign_waits();
        }
        complete
    }

    fn change(&mut self, slots: &[Slot], wanted: &[Tenure], until: Option<Instant>) -> bool {
        let mut left = slots;
        while let Some(first) = left.first() {
            self.locks.enter();
            let locked = left.iter().position(|slot| !self.locks.try_lock(*slot)).unwrap_or(left.len());
            let (now, later) = left.split_at(locked);
            for slot in now {
                let Some(tenure) = wanted.get(slot.index()).copied() else { continue };
                self.locks.set_tenure(*slot, tenure);
                if !tenure.is_visible() {
                    self.locks.break_watches(*slot);
                }
                if let Some(known) = self.tenures.get_mut(slot.index()) {
                    *known = tenure;
                }
            }
            self.locks.unlock_all();
            let busy = later.first().or(Some(first)).copied().unwrap_or(*first);
            let is_parked = !later.is_empty() && self.locks.park(busy, Wake::Thread(std::thread::current()));
            self.locks.leave();
            if is_parked {
                std::thread::park_timeout(SLOT_PATIENCE);
            }
            left = later;
            if !left.is_empty() && until.is_some_and(|until| Instant::now() >= until) {
                return false;
            }
        }
        true
    }
}

impl super::Cluster {
    /// `host:port` of the server that a slot went to by a decision that the view may not show yet.
    pub(crate) fn departed_to(&self, slot: Slot) -> Option<String> {
        let number = u16::try_from(slot.index()).ok()?;
        let departed = self.departed.lock();
        departed.iter().rev().find(|departed| departed.slots.contains(number)).map(|departed| departed.target.clone())
    }
}

impl Shared {
    /// Blocked clients whose keys are another server's now are sent there.
    fn end_foreign_waits(self: &Arc<Self>) {
        for worker in 0..self.workers() {
            let call = |worker: &mut Worker, conns: &mut net::Conns<Worker>| worker.end_foreign_waits(conns);
            #[allow(clippy::cast_possible_truncation, reason = "there are far fewer workers")]
            self.post(worker as u16, Message::Call(Box::new(call)));
        }
    }
}

impl Worker {
    fn end_foreign_waits(&mut self, conns: &mut net::Conns<Worker>) {
        use super::admit::Verdict;
        let keyspace = self.locks.keyspace().clone();
        let mut moved: Vec<(net::ConnId, String)> = Vec::new();
        for (conn, session) in conns.iter() {
            if !session.state.has(State::BLOCKED) {
                continue;
            }
            let Some(blocked) = session.extra.as_ref().and_then(|extra| extra.blocked.as_ref()) else { continue };
            let slots: Vec<Slot> = blocked.keys.iter().map(|key| keyspace.slot(key)).collect();
            let foreign = slots.iter().find(|slot| !keyspace.tenure_hint(**slot).is_visible());
            let Some(slot) = foreign else { continue };
            let verdict = match self.shared.cluster.departed_to(*slot) {
                Some(target) => Some(format!("MOVED {} {target}", slot.index())),
                None => match self.shared.redirection(*slot) {
                    Verdict::Refused(error) => Some(error.0.into_owned()),
                    Verdict::Runs | Verdict::Waits | Verdict::Again => None,
                },
            };
            moved.extend(verdict.map(|text| (conn, text)));
        }
        for (conn, text) in moved {
            self.end_wait(conns, conn, Some(&text));
        }
    }
}
