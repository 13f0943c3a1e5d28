//! Moves under everything that can go wrong, in one thread and reproducible: two managers that both believe to lead, with
//! old records and old news of the members; servers that restart with what is on their disks; commands that arrive late,
//! twice, or not; views of any age; clients that write and read all the while.
//!
//! Looked at after each step: no slot is served by two servers, and every read gives the last write that was acknowledged. In
//! the end, when nothing fails any more, every move ends and every slot has its one owner.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::change::NewMove;
use crate::model::GroupId;
use crate::slots::SlotSpace;
use crate::view::View;

const SLOTS: u16 = 4;

/// A server of the one group that has its number less one as its place.
struct Server {
    group: GroupId,
    run: String,
    up: bool,
    /// On disk.
    values: BTreeMap<u16, u64>,
    /// On disk: no view before this epoch is taken.
    floor: u64,
    view: Option<View>,
    /// What COMMIT and FINISH said beyond the view.
    gained: SlotSet,
    lost: SlotSet,
    export: Option<Export>,
    import: Option<(MoveId, SlotSet, u64)>,
}

/// A copy at its source.
struct Export {
    id: MoveId,
    slots: SlotSet,
    state: CopyState,
    to_copy: Vec<u16>,
    stream: VecDeque<(u16, u64)>,
    /// What ties it to the target's import.
    token: u64,
    /// Slots are held for the FREEZE of this epoch; it is answered when all is confirmed.
    held: Option<u64>,
    confirmed: u64,
}

struct Manager {
    driver: Driver,
    record: Topology,
    known: [Seat; 2],
    life: u64,
    waiting: bool,
}

/// A command on its way, or its answer.
#[derive(Clone)]
struct Flight {
    manager: usize,
    life: u64,
    place: usize,
    id: MoveId,
    action: Action,
    answer: Option<Answer>,
}

struct World {
    random: fastrand::Rng,
    now: u64,
    record: Topology,
    views: Vec<View>,
    servers: Vec<Server>,
    managers: Vec<Manager>,
    flights: Vec<Flight>,
    /// Commands that arrive once more, long after.
    late: Vec<Flight>,
    truth: BTreeMap<u16, u64>,
    counter: u64,
    faults: bool,
    /// A fault happens each so many times that it could.
    rare: u32,
    /// Whether managers make a change on a newer record than they decided on.
    retries: bool,
    committed: usize,
}

impl Server {
    fn owns(&self, slot: u16) -> bool {
        let by_view = self
            .view
            .as_ref()
            .is_some_and(|view| view.group(self.group).is_some_and(|group| group.slots.contains(slot)));
        self.view.is_some() && (by_view || self.gained.contains(slot)) && !self.lost.contains(slot)
    }

    fn serves(&self, slot: u16) -> bool {
        let held = self.export.as_ref().is_some_and(|export| export.held.is_some() && export.slots.contains(slot));
        let other_run = self.view.as_ref().is_some_and(|view| {
            view.moves.iter().any(|one| {
                one.stage == Stage::Cutover
                    && one.from == self.group
                    && one.slots.contains(slot)
                    && one.source_run.as_ref() != Some(&self.run)
            })
        });
        self.up && self.owns(slot) && !held && !other_run
    }

    fn epoch(&self) -> u64 {
        self.floor.max(self.view.as_ref().map_or(0, |view| view.epoch.0))
    }

    fn take(&mut self, view: &View) {
        if !self.up || view.epoch.0 < self.floor || !view.replaces(self.view.as_ref()) {
            return;
        }
        self.view = Some(view.clone());
        (self.gained, self.lost) = (SlotSet::new(), SlotSet::new());
        let find = |id: MoveId| view.moves.iter().find(|one| one.id == id);
        if let Some(export) = &mut self.export {
            match find(export.id).filter(|one| one.source_run.as_ref() == Some(&self.run)).map(|one| one.stage) {
                Some(Stage::Copying) if export.held.is_some_and(|epoch| epoch < view.epoch.0) => export.thaw(),
                Some(Stage::Copying | Stage::Cutover) => {}
                _ => self.export = None,
            }
        }
        if let Some((id, ..)) = &self.import
            && !find(*id).is_some_and(|one| matches!(one.stage, Stage::Copying | Stage::Cutover | Stage::Committed))
        {
            self.import = None;
        }
        let kept = |slot: u16| {
            let decided_later = |one: &crate::view::ViewMove| {
                one.to == self.group
                    && one.slots.contains(slot)
                    && matches!(one.stage, Stage::Cutover | Stage::Committed)
            };
            view.group(self.group).is_some_and(|group| group.slots.contains(slot))
                || view.moves.iter().any(decided_later)
                || self.import.as_ref().is_some_and(|(_, slots, _)| slots.contains(slot))
        };
        self.values.retain(|&slot, _| kept(slot));
    }
}

impl Export {
    fn thaw(&mut self) {
        self.held = None;
        if self.state == CopyState::Frozen {
            self.state = CopyState::Following;
        }
    }
}

impl World {
    fn new(seed: u64) -> World {
        let add = |group: u32| {
            let address = format!("h:{group}");
            let server = Change::AddServer { group: GroupId(group), id: address.clone(), address, zone: String::new() };
            [Change::AddGroup { id: Some(GroupId(group)) }, server]
        };
        let assign = Change::AssignSlots { group: GroupId(1), slots: SlotSet::range(0, SLOTS - 1) };
        let changes = [add(1).to_vec(), add(2).to_vec(), vec![assign]].concat();
        let record = Topology::new("test", SlotSpace::Codis).apply_all(&changes).unwrap();
        let mut world = World {
            random: fastrand::Rng::with_seed(seed),
            now: 0,
            views: vec![View::of(&record)],
            record,
            servers: Vec::new(),
            managers: Vec::new(),
            flights: Vec::new(),
            late: Vec::new(),
            truth: (0..SLOTS).map(|slot| (slot, 0)).collect(),
            counter: 0,
            faults: true,
            rare: [1, 5, 25][usize::try_from(seed % 3).unwrap()],
            retries: seed.is_multiple_of(2),
            committed: 0,
        };
        for group in [1, 2] {
            let values = if group == 1 { world.truth.clone() } else { BTreeMap::new() };
            let run = world.new_run();
            world.servers.push(Server {
                group: GroupId(group),
                run,
                up: true,
                values,
                floor: 0,
                view: Some(View::of(&world.record)),
                gained: SlotSet::new(),
                lost: SlotSet::new(),
                export: None,
                import: None,
            });
        }
        world.plan();
        for _ in 0..2 {
            let driver = world.new_driver();
            let record = world.record.clone();
            world.managers.push(Manager {
                driver,
                record,
                known: [Seat::Unknown, Seat::Unknown],
                life: 0,
                waiting: false,
            });
        }
        world
    }

    fn new_run(&mut self) -> String {
        self.counter += 1;
        format!("{:040x}", self.counter)
    }

    fn new_driver(&self) -> Driver {
        let pace = Pace { attempts: u32::MAX, thaws: u32::MAX, longest_pause_ms: 200, ..Pace::default() };
        Driver::new(self.record.moves.last().unwrap().id, pace)
    }

    /// A move of two or three slots from the group that owns slot 0 to the other.
    fn plan(&mut self) {
        let from = self.record.owner(0).unwrap();
        let to = if from == GroupId(1) { GroupId(2) } else { GroupId(1) };
        let slots = SlotSet::range(0, self.random.u16(1..3));
        let change = Change::PlanMoves { moves: vec![NewMove { from, to, slots, rate: 0 }] };
        self.store(&change);
    }

    fn store(&mut self, change: &Change) -> bool {
        let Ok(next) = self.record.apply(change) else { return false };
        assert_eq!(next.check(), Ok(()));
        self.record = next;
        self.views.push(View::of(&self.record));
        self.committed += usize::from(matches!(change, Change::Commit { .. }));
        true
    }

    fn step(&mut self) {
        self.now += self.random.u64(1..40);
        // Between the source's +OK and the decision everything is at stake: there faults are most.
        let held = |server: &Server| server.export.as_ref().is_some_and(|export| export.state == CopyState::Frozen);
        if self.servers.iter().any(held) && self.fault(4) {
            match self.random.u8(0..5) {
                0 => self.bounce_server(),
                1 => self.crash_manager(),
                2 => self.operator(),
                _ => self.arrive_late(),
            }
        }
        match self.random.u8(0..100) {
            0..=24 => self.client(),
            25..=44 => self.manage(),
            45..=59 => self.fly(),
            60..=79 => self.copy(),
            80..=89 => self.push_view(),
            90..=95 => self.learn(),
            _ if !self.fault(1) => {}
            96 => self.crash_server(),
            97 => self.restart_servers(),
            98 if self.random.bool() => self.crash_manager(),
            98 => self.arrive_late(),
            _ => self.operator(),
        }
        self.check();
    }

    /// Whether something fails now, once in so many times when faults are not rare.
    fn fault(&mut self, times: u32) -> bool {
        self.faults && self.random.u32(0..times * self.rare) == 0
    }

    fn client(&mut self) {
        let slot = self.random.u16(0..SLOTS);
        let place = self.random.usize(0..2);
        let write = self.random.bool();
        let Some(server) = self.servers.get_mut(place).filter(|server| server.serves(slot)) else { return };
        if !write {
            let value = server.values.get(&slot).copied();
            assert_eq!(value, self.truth.get(&slot).copied(), "server {place} answered an old value of slot {slot}");
            return;
        }
        self.counter += 1;
        server.values.insert(slot, self.counter);
        self.truth.insert(slot, self.counter);
        if let Some(export) = &mut server.export
            && export.slots.contains(slot)
            && !export.to_copy.contains(&slot)
        {
            export.stream.push_back((slot, self.counter));
        }
    }

    fn manage(&mut self) {
        let at = self.random.usize(0..self.managers.len());
        let manager = &mut self.managers[at];
        if manager.waiting {
            return;
        }
        let one = manager.record.find_move(manager.driver.id()).cloned();
        let seat = |group: Option<GroupId>| match group {
            Some(GroupId(number)) => manager.known[usize::try_from(number).unwrap() - 1].clone(),
            None => Seat::Unknown,
        };
        let (from, to) = (one.as_ref().map(|one| one.from), one.as_ref().map(|one| one.to));
        let ends = Ends { source: seat(from), target: seat(to) };
        let action = manager.driver.next(&manager.record, &ends, self.now);
        match &action {
            Action::Apply(change) => {
                // By compare-and-set: only who has the newest record changes it. A manager may also, when it meets somebody
                // else's change, try its own on the record as it is now; even one that decided long ago.
                if manager.record.epoch == self.record.epoch || self.retries {
                    let _ = self.store(change);
                }
                self.managers[at].record = self.record.clone();
            }
            Action::Send { to: end, .. } => {
                let group = if *end == End::Source { from } else { to };
                let place = usize::try_from(group.unwrap().0).unwrap() - 1;
                manager.waiting = true;
                let life = manager.life;
                let id = manager.driver.id();
                let again = self.random.u8(0..3) == 0;
                let flight = Flight { manager: at, life, place, id, action, answer: None };
                if again {
                    // Its sender has forgotten it by then.
                    self.late.push(Flight { life: u64::MAX, ..flight.clone() });
                }
                self.flights.push(flight);
            }
            Action::Wait { .. } => {}
            Action::Over => {
                manager.record = self.record.clone();
                if self.record.find_move(manager.driver.id()).is_none_or(|one| !one.is_open()) {
                    if self.faults && self.record.open_moves().next().is_none() {
                        self.plan();
                    }
                    let driver = self.new_driver();
                    let manager = &mut self.managers[at];
                    if driver.id() != manager.driver.id() {
                        manager.driver = driver;
                        manager.record = self.record.clone();
                    }
                }
            }
        }
    }

    /// One of the commands and answers on their way arrives, in any order.
    fn fly(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let mut flight = self.flights.swap_remove(self.random.usize(0..self.flights.len()));
        if let Some(answer) = flight.answer.take() {
            let lost = self.fault(20);
            let manager = &mut self.managers[flight.manager];
            if manager.life == flight.life && manager.waiting {
                let answer = if lost { Answer::Lost("cut".to_string()) } else { answer };
                manager.driver.answered(&flight.action, answer, self.now);
                manager.waiting = false;
            }
            return;
        }
        // A manager that hears nothing gives up, and the command arrives later all the same.
        if self.fault(10) {
            let manager = &mut self.managers[flight.manager];
            if manager.life == flight.life && manager.waiting {
                manager.driver.answered(&flight.action, Answer::Lost("timeout".to_string()), self.now);
                manager.waiting = false;
                flight.life = u64::MAX;
            }
            self.flights.push(flight);
            return;
        }
        let answer = self.execute(flight.place, flight.id, &flight.action);
        match answer {
            Some(answer) => flight.answer = Some(answer),
            None if self.random.u8(0..4) == 0 => {
                // FREEZE took too long: the source lets go by itself before it answers so.
                if let Some(export) = &mut self.servers[flight.place].export
                    && export.state != CopyState::Frozen
                {
                    export.thaw();
                    flight.answer = Some(Answer::Refused("ERR timeout".to_string()));
                }
            }
            None => {}
        }
        self.flights.push(flight);
    }

    /// A command that was sent long ago arrives. Nobody waits for its answer.
    fn arrive_late(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let flight = self.late.swap_remove(self.random.usize(0..self.late.len()));
        let answer = self.execute(flight.place, flight.id, &flight.action);
        if answer.is_none()
            && let Some(export) = &mut self.servers[flight.place].export
        {
            export.thaw();
        }
        if self.late.len() > 40 {
            self.late.swap_remove(0);
        }
    }

    /// What the server answers; nothing when it is still at it.
    fn execute(&mut self, place: usize, id: MoveId, action: &Action) -> Option<Answer> {
        let Action::Send { command, .. } = action else { return None };
        if !self.servers[place].up {
            return Some(Answer::Lost("refused".to_string()));
        }
        let refused = |text: &str| Some(Answer::Refused(format!("ERR {text}")));
        match command {
            Command::Start { slots, .. } => self.start(place, id, slots),
            Command::Status => match self.servers[place].export.as_ref().filter(|export| export.id == id) {
                Some(export) => Some(Answer::Status(CopyStatus {
                    id: id.0,
                    state: export.state,
                    keys: 0,
                    bytes: 0,
                    total_keys: 0,
                    lag_bytes: export.stream.len() as u64,
                    rate: 0,
                    started_ms: 0,
                    error: String::new(),
                })),
                None => refused("unknown move"),
            },
            Command::Rate(_) | Command::Pause | Command::Resume => Some(Answer::Done),
            Command::Freeze { epoch, .. } => self.freeze(place, id, epoch.0),
            Command::Cancel { epoch, .. }
            | Command::Abort { epoch, .. }
            | Command::Finish { epoch, .. }
            | Command::Commit { epoch, .. }
                if epoch.0 < self.servers[place].epoch() =>
            {
                refused("old epoch")
            }
            Command::Cancel { .. } => {
                let server = &mut self.servers[place];
                server.export = server.export.take().filter(|export| export.id != id);
                Some(Answer::Done)
            }
            Command::Abort { .. } => {
                let server = &mut self.servers[place];
                if let Some((_, slots, _)) = server.import.take_if(|(import, ..)| *import == id) {
                    let owned: SlotSet = slots.iter().filter(|&slot| server.owns(slot)).collect();
                    server.values.retain(|&slot, _| owned.contains(slot) || !slots.contains(slot));
                }
                Some(Answer::Done)
            }
            Command::Commit { epoch, .. } => {
                let server = &mut self.servers[place];
                server.floor = server.floor.max(epoch.0);
                if let Some((_, slots, _)) = server.import.take_if(|(import, ..)| *import == id) {
                    server.gained = slots;
                }
                Some(Answer::Done)
            }
            Command::Finish { epoch, .. } => {
                let server = &mut self.servers[place];
                server.floor = server.floor.max(epoch.0);
                if let Some(export) = server.export.take_if(|export| export.id == id) {
                    server.values.retain(|&slot, _| !export.slots.contains(slot));
                    server.lost = export.slots;
                }
                Some(Answer::Done)
            }
        }
    }

    fn start(&mut self, place: usize, id: MoveId, slots: &SlotSet) -> Option<Answer> {
        let refused = |text: &str| Some(Answer::Refused(format!("ERR {text}")));
        let (source, target) = (&self.servers[place], &self.servers[1 - place]);
        if !slots.iter().all(|slot| source.serves(slot)) || source.export.is_some() {
            return refused("cannot copy these slots");
        }
        if !target.up || target.view.is_none() || slots.iter().any(|slot| target.owns(slot)) {
            return refused("the target does not want them");
        }
        self.counter += 1;
        let token = self.counter;
        let target = &mut self.servers[1 - place];
        target.values.retain(|&slot, _| !slots.contains(slot));
        target.import = Some((id, slots.clone(), token));
        self.servers[place].export = Some(Export {
            id,
            slots: slots.clone(),
            state: CopyState::Copying,
            to_copy: slots.iter().collect(),
            stream: VecDeque::new(),
            token,
            held: None,
            confirmed: 0,
        });
        Some(Answer::Done)
    }

    fn freeze(&mut self, place: usize, id: MoveId, epoch: u64) -> Option<Answer> {
        let refused = |text: &str| Some(Answer::Refused(format!("ERR {text}")));
        if epoch < self.servers[place].epoch() {
            return refused("old epoch");
        }
        let linked = self.linked(place);
        let Some(export) = self.servers[place].export.as_mut().filter(|export| export.id == id) else {
            return refused("unknown move");
        };
        if !matches!(export.state, CopyState::Following | CopyState::Frozen) {
            return refused("not yet");
        }
        export.held = Some(export.held.unwrap_or(0).max(epoch));
        if !linked {
            if export.state == CopyState::Frozen {
                // It said +OK once: it stays as it is until that is decided.
                return refused("the target is gone");
            }
            export.thaw();
            return refused("the target is gone");
        }
        if !export.stream.is_empty() {
            return None;
        }
        if export.confirmed < epoch {
            export.confirmed = epoch;
            let target = &mut self.servers[1 - place];
            target.floor = target.floor.max(epoch);
        }
        let source = &mut self.servers[place];
        source.floor = source.floor.max(epoch);
        if let Some(export) = &mut source.export {
            export.state = CopyState::Frozen;
        }
        Some(Answer::Done)
    }

    /// Whether the source's copy still has its import at the other server.
    fn linked(&self, place: usize) -> bool {
        let target = &self.servers[1 - place];
        let token = target.import.as_ref().map(|(_, _, token)| *token);
        target.up && self.servers[place].export.as_ref().is_some_and(|export| Some(export.token) == token)
    }

    /// A copy goes on by a step: a slot of the snapshot is sent, or something arrives.
    fn copy(&mut self) {
        let place = self.random.usize(0..2);
        let linked = self.linked(place);
        let send = self.random.bool();
        let server = &mut self.servers[place];
        let Some(export) = server.export.as_mut().filter(|_| server.up) else { return };
        if !linked {
            if export.state != CopyState::Frozen {
                export.thaw();
                export.state = CopyState::Failed;
            }
            return;
        }
        if send && let Some(slot) = export.to_copy.pop() {
            export.stream.push_back((slot, server.values[&slot]));
        } else if let Some((slot, value)) = export.stream.pop_front() {
            self.servers[1 - place].values.insert(slot, value);
        } else if export.to_copy.is_empty() && export.state == CopyState::Copying {
            export.state = CopyState::Following;
        }
    }

    fn push_view(&mut self) {
        let place = self.random.usize(0..2);
        let last = self.views.len() - 1;
        let at = if self.fault(4) { self.random.usize(last.saturating_sub(8)..=last) } else { last };
        let view = self.views[at].clone();
        self.servers[place].take(&view);
    }

    /// A manager hears of a member, or reads the record.
    fn learn(&mut self) {
        let at = self.random.usize(0..self.managers.len());
        let place = self.random.usize(0..2);
        let server = &self.servers[place];
        let gone = if self.random.bool() { Seat::Silent } else { Seat::Unknown };
        let address = "h:1".to_string();
        let seat = if server.up { Seat::Alive { run: server.run.clone(), address } } else { gone };
        self.managers[at].known[place] = seat;
        if self.random.bool() {
            self.managers[at].record = self.record.clone();
        }
    }

    fn crash_server(&mut self) {
        let server = &mut self.servers[self.random.usize(0..2)];
        server.up = false;
        server.view = None;
        (server.gained, server.lost) = (SlotSet::new(), SlotSet::new());
        (server.export, server.import) = (None, None);
    }

    /// A server restarts at once, and the first that talks to it is a manager that sleeps.
    fn bounce_server(&mut self) {
        self.crash_server();
        self.restart_servers();
        let place = self.random.usize(0..2);
        let at = self.random.usize(self.views.len().saturating_sub(20)..self.views.len());
        let view = self.views[at].clone();
        self.servers[place].take(&view);
    }

    fn restart_servers(&mut self) {
        for place in 0..2 {
            if !self.servers[place].up {
                let run = self.new_run();
                self.servers[place].run = run;
                self.servers[place].up = true;
            }
        }
    }

    fn crash_manager(&mut self) {
        let driver = self.new_driver();
        let record = self.record.clone();
        let at = self.random.usize(0..self.managers.len());
        let manager = &mut self.managers[at];
        manager.life += 1;
        manager.waiting = false;
        (manager.driver, manager.record) = (driver, record);
    }

    fn operator(&mut self) {
        let id = self.record.moves.last().unwrap().id;
        let change = match self.random.u8(0..6) {
            0 => Change::Cancel { id },
            1 | 2 => Change::SetPaused { id, paused: true },
            _ => Change::SetPaused { id, paused: false },
        };
        self.store(&change);
    }

    fn check(&self) {
        for slot in 0..SLOTS {
            let serving: Vec<usize> = (0..2).filter(|&place| self.servers[place].serves(slot)).collect();
            assert!(serving.len() <= 1, "slot {slot} is served by both");
            if let Some(&place) = serving.first() {
                assert_eq!(self.servers[place].values.get(&slot), self.truth.get(&slot), "slot {slot} at {place}");
            }
        }
    }

    /// Nothing fails any more: everything comes to its end.
    fn settle(&mut self) {
        self.faults = false;
        self.restart_servers();
        for paused in self.record.moves.iter().filter(|one| one.paused).map(|one| one.id).collect::<Vec<_>>() {
            let _ = self.store(&Change::SetPaused { id: paused, paused: false });
        }
        for _ in 0..30_000 {
            let last = self.views.last().unwrap().epoch;
            let current = |server: &Server| server.view.as_ref().is_some_and(|view| view.epoch == last);
            if self.record.open_moves().next().is_none() && self.servers.iter().all(current) {
                break;
            }
            self.step();
        }
        assert_eq!(self.record.open_moves().next(), None, "a move does not end");
        for slot in 0..SLOTS {
            let owner = self.record.owner(slot).unwrap();
            let serving: Vec<GroupId> =
                self.servers.iter().filter(|server| server.serves(slot)).map(|server| server.group).collect();
            assert_eq!(serving, [owner], "slot {slot}");
        }
    }
}

fn run(seed: u64, steps: usize) -> usize {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world.settle();
    world.committed
}

/// `MOVE_FIRST_SEED` and `MOVE_LAST_SEED` run others, `MOVE_STEPS` for longer.
#[test]
fn one_owner_and_no_lost_write_whatever_fails() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = number("MOVE_STEPS").map_or(3_000, |steps| usize::try_from(steps).unwrap());
    let (first, last) = (number("MOVE_FIRST_SEED").unwrap_or(0), number("MOVE_LAST_SEED").unwrap_or(250));
    let mut committed = 0;
    for seed in first..last {
        match std::panic::catch_unwind(|| run(seed, steps)) {
            Ok(count) => committed += count,
            Err(_) => panic!("seed {seed} (MOVE_FIRST_SEED={seed} MOVE_LAST_SEED={})", seed + 1),
        }
    }
    // The weather is not so bad that nothing ever arrives.
    assert!(committed as u64 >= last - first, "only {committed} moves were committed");
}
