//! What is to be done next with a move, as a state machine without sockets: the manager only carries it out.
//!
//! ```text
//! planned ──START── copying ──lag small── cutover ──FREEZE +OK── committed ──COMMIT, FINISH── done
//!    ▲                 │  ▲                  │
//!    └──── restart ────┘  └────── thaw ──────┘        cancelled, failed ──CANCEL, ABORT── settled
//! ```
//!
//! The record in the coordinator is the truth; a [`Driver`] remembers only what it was answered, and what it does not know
//! (a new manager knows nothing) it finds out by asking or by saying again what may be said twice.
//!
//! # What it relies on
//! - Source and target say their incarnation with their lease. One that is not the record's has lost the copy.
//! - A source that answered `+OK` to FREEZE serves the slots no more, whatever becomes of it, until FINISH, CANCEL or a view
//!   newer than the FREEZE's epoch. So it takes no view older than that epoch, not even after a restart: it keeps the epoch on
//!   disk before it answers. The target keeps it likewise before it confirms.
//! - A target drops what it received only at ABORT, at a new BEGIN, or by a view in which the slots are not its own and no move
//!   to it is at `cutover` or `committed`.
//! - COMMIT, FINISH, ABORT and CANCEL carry the record's term and epoch, and are refused when the receiver knows a greater
//!   epoch (by a view, or a FREEZE): a CANCEL that a manager sent long ago must not let a source go that holds the slots for
//!   the next. They may be repeated, and are answered `+OK` for unknown moves too.
//! - FREEZE may be repeated: a source that holds the slots answers `+OK` again, and has a greater epoch confirmed anew.
//! - START is refused by a source that does not serve the slots, BEGIN by a target that does.

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::model::{Epoch, Move, MoveId, Newness, Stage, Term, Topology};
use crate::slots::SlotSet;
use crate::wire::{CopyState, CopyStatus};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

/// A group's primary as the manager knows it from its lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seat {
    /// Its lease is valid.
    Alive {
        /// Its incarnation.
        run: String,
        /// Its `host:port`.
        address: String,
    },
    /// Not heard of, but the manager does not lead for longer than a lease.
    Unknown,
    /// Its lease ran out.
    Silent,
}

/// Source and target of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The primary of the group that gives.
    pub source: Seat,
    /// The primary of the group that gets.
    pub target: Seat,
}

/// Which end of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The group that gives.
    Source,
    /// The group that gets.
    Target,
}

/// A command to one end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `OXIDIS MOVE START`
    Start {
        /// The target's `host:port`.
        target: String,
        /// What moves.
        slots: SlotSet,
        /// Bytes a second; 0 for no limit.
        rate: u64,
    },
    /// `OXIDIS MOVE STATUS`
    Status,
    /// `OXIDIS MOVE RATE`
    Rate(
        /// Bytes a second; 0 for no limit.
        u64,
    ),
    /// `OXIDIS MOVE PAUSE`
    Pause,
    /// `OXIDIS MOVE RESUME`
    Resume,
    /// `OXIDIS MOVE CANCEL`
    Cancel {
        /// The record's term.
        term: Term,
        /// The record's epoch.
        epoch: Epoch,
    },
    /// `OXIDIS MOVE FREEZE`
    Freeze {
        /// The epoch of the record that says `cutover`, or a later one.
        epoch: Epoch,
        /// How long it may take.
        timeout_ms: u64,
    },
    /// `OXIDIS MOVE FINISH`
    Finish {
        /// The record's term.
        term: Term,
        /// The record's epoch.
        epoch: Epoch,
    },
    /// `OXIDIS IMPORT COMMIT`
    Commit {
        /// The record's term.
        term: Term,
        /// The record's epoch.
        epoch: Epoch,
    },
    /// `OXIDIS IMPORT ABORT`
    Abort {
        /// The record's term.
        term: Term,
        /// The record's epoch.
        epoch: Epoch,
    },
}

impl Command {
    /// The words to send.
    pub fn words(&self, id: MoveId) -> Vec<String> {
        let (verb, rest): (&str, Vec<String>) = match self {
            Command::Start { target, slots, rate } => {
                let mut rest = vec![target.clone(), slots.to_string()];
                if *rate > 0 {
                    rest.extend(["RATE".to_string(), rate.to_string()]);
                }
                ("MOVE START", rest)
            }
            Command::Status => ("MOVE STATUS", Vec::new()),
            Command::Rate(rate) => ("MOVE RATE", vec![rate.to_string()]),
            Command::Pause => ("MOVE PAUSE", Vec::new()),
            Command::Resume => ("MOVE RESUME", Vec::new()),
            Command::Cancel { term, epoch } => ("MOVE CANCEL", vec![term.to_string(), epoch.to_string()]),
            Command::Freeze { epoch, timeout_ms } => ("MOVE FREEZE", vec![epoch.to_string(), timeout_ms.to_string()]),
            Command::Finish { term, epoch } => ("MOVE FINISH", vec![term.to_string(), epoch.to_string()]),
            Command::Commit { term, epoch } => ("IMPORT COMMIT", vec![term.to_string(), epoch.to_string()]),
            Command::Abort { term, epoch } => ("IMPORT ABORT", vec![term.to_string(), epoch.to_string()]),
        };
        let mut words = vec!["OXIDIS".to_string()];
        words.extend(verb.split(' ').map(str::to_string));
        words.push(id.to_string());
        words.extend(rest);
        words
    }
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Compare-and-set the record with this change; then ask again, whatever came of it.
    Apply(Change),
    /// Send this and hand in what is answered.
    Send {
        /// To which end.
        to: End,
        /// Where it is.
        address: String,
        /// What.
        command: Command,
    },
    /// Nothing before then, unless the record or an end changes.
    Wait {
        /// Milliseconds from now.
        ms: u64,
        /// What for, for people.
        why: String,
    },
    /// The move is over.
    Over,
}

/// What came of sending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// `+OK`
    Done,
    /// To STATUS.
    Status(CopyStatus),
    /// An error of the server, without the `-`.
    Refused(String),
    /// No answer came; whether it was done is not known.
    Lost(String),
}

/// How a move is driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// The slots are held when no more than this is unacknowledged, in bytes.
    pub cutover_lag_bytes: u64,
    /// How long the source may hold them before it says `+OK`, in milliseconds.
    pub freeze_timeout_ms: u64,
    /// How often the source is asked how far it is, in milliseconds.
    pub status_every_ms: u64,
    /// How often a copy is begun before the move fails.
    pub attempts: u32,
    /// How often the slots are held in vain before the move fails.
    pub thaws: u32,
    /// The longest pause after something failed, in milliseconds.
    pub longest_pause_ms: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            cutover_lag_bytes: 256 * 1024,
            freeze_timeout_ms: 500,
            status_every_ms: 200,
            attempts: 20,
            thaws: 50,
            longest_pause_ms: 5_000,
        }
    }
}

/// What a manager remembers of a move that it drives.
#[derive(Clone, Debug)]
pub struct Driver {
    id: MoveId,
    pace: Pace,
    /// The part of the move's life that `memory` is of.
    chapter: Option<(Stage, u32, u32)>,
    memory: Memory,
    /// Nothing is to be done before: after something failed.
    not_before_ms: u64,
    /// How often in a row something failed.
    failures: u32,
}

/// What was answered since the move came to its stage.
#[derive(Clone, Debug, Default)]
struct Memory {
    status: Option<CopyStatus>,
    asked_at_ms: Option<u64>,
    /// The source does not know the move.
    unknown: bool,
    /// START was answered `+OK`.
    started: bool,
    /// FREEZE was refused, or START so often that it is no matter of a view on its way: why.
    refused: Option<String>,
    start_refusals: u32,
    /// FREEZE was answered `+OK`.
    held: bool,
    source_told: bool,
    target_told: bool,
    /// What RATE, PAUSE or RESUME was refused or done last, so that it is not said for ever.
    rate_told: Option<u64>,
    paused_told: Option<bool>,
}

impl Driver {
    /// A driver that knows nothing yet: for a new move, and for a new manager.
    pub fn new(id: MoveId, pace: Pace) -> Driver {
        Driver { id, pace, chapter: None, memory: Memory::default(), not_before_ms: 0, failures: 0 }
    }

    /// Which move.
    pub fn id(&self) -> MoveId {
        self.id
    }

    /// What the source last said of itself.
    pub fn status(&self) -> Option<&CopyStatus> {
        self.memory.status.as_ref()
    }

    /// What to do next. `topology` is the newest record, `now_ms` a clock that only goes forward.
    pub fn next(&mut self, topology: &Topology, ends: &Ends, now_ms: u64) -> Action {
        let Some(one) = topology.find_move(self.id).filter(|one| one.is_open()) else { return Action::Over };
        let chapter = (one.stage, one.attempts, one.thaws);
        if self.chapter != Some(chapter) {
            let status = self.memory.status.take().filter(|_| one.stage != Stage::Planned);
            self.chapter = Some(chapter);
            self.memory = Memory { status, ..Memory::default() };
        }
        if now_ms < self.not_before_ms {
            return wait(self.not_before_ms - now_ms, "a while, after a failure");
        }
        match one.stage {
            Stage::Planned => self.planned(one, topology.newness(), ends),
            Stage::Copying => self.copying(one, ends, now_ms),
            Stage::Cutover => self.cutover(one, topology.newness(), ends),
            Stage::Committed => self.committed(topology.newness(), ends),
            Stage::Done | Stage::Cancelled | Stage::Failed => {
                self.clean_up(topology.newness(), ends).unwrap_or(Action::Apply(Change::Settle { id: self.id }))
            }
        }
    }

    /// What came of the action that [`Driver::next`] gave. Not needed for [`Action::Apply`].
    pub fn answered(&mut self, action: &Action, answer: Answer, now_ms: u64) {
        let Action::Send { to, command, .. } = action else { return };
        let failed = matches!(answer, Answer::Refused(_) | Answer::Lost(_));
        match (command, answer) {
            (Command::Status, Answer::Status(status)) => {
                self.memory.asked_at_ms = Some(now_ms);
                self.memory.status = Some(status);
                self.memory.unknown = false;
                self.failures = 0;
                return;
            }
            (Command::Status, Answer::Refused(text)) if is_verdict(&text) => {
                self.memory.asked_at_ms = Some(now_ms);
                self.memory.status = None;
                self.memory.unknown = true;
                return;
            }
            (Command::Start { .. }, Answer::Done) => {
                self.memory.started = true;
                self.memory.unknown = false;
            }
            (Command::Freeze { .. }, Answer::Done) => self.memory.held = true,
            (Command::Freeze { .. }, Answer::Refused(text)) => self.memory.refused = Some(text),
            (Command::Start { .. }, Answer::Refused(text)) => {
                self.memory.start_refusals += 1;
                if self.memory.start_refusals >= START_REFUSALS {
                    self.memory.refused = Some(text);
                }
            }
            (Command::Rate(rate), Answer::Done | Answer::Refused(_)) => self.memory.rate_told = Some(*rate),
            (Command::Pause | Command::Resume, Answer::Done | Answer::Refused(_)) => {
                self.memory.paused_told = Some(*command == Command::Pause);
                // Whether it rests is seen in what it says next.
                self.memory.asked_at_ms = None;
            }
            (
                Command::Cancel { .. } | Command::Abort { .. } | Command::Commit { .. } | Command::Finish { .. },
                Answer::Done,
            ) => self.told(*to),
            _ => {}
        }
        if failed {
            self.failures = self.failures.saturating_add(1);
            let pause = 50u64.checked_shl(self.failures.min(16)).unwrap_or(u64::MAX).min(self.pace.longest_pause_ms);
            self.not_before_ms = now_ms.saturating_add(pause);
        } else {
            self.failures = 0;
        }
    }

    fn told(&mut self, end: End) {
        match end {
            End::Source => self.memory.source_told = true,
            End::Target => self.memory.target_told = true,
        }
    }

    fn planned(&self, one: &Move, newness: Newness, ends: &Ends) -> Action {
        if one.paused {
            return wait(IDLE_MS, "to be resumed");
        }
        if one.attempts >= self.pace.attempts {
            let reason = format!("the copy was begun {} times in vain; last: {}", one.attempts, one.reason);
            return Action::Apply(Change::Fail { id: self.id, reason });
        }
        let (Seat::Alive { run: source_run, .. }, Seat::Alive { run: target_run, .. }) = (&ends.source, &ends.target)
        else {
            return wait(IDLE_MS, "the primaries of both groups");
        };
        // An earlier attempt may have left something at either end.
        if one.attempts > 0
            && let Some(action) = self.clean_up(newness, ends)
        {
            return action;
        }
        let (source_run, target_run) = (source_run.clone(), target_run.clone());
        Action::Apply(Change::StartCopy { id: self.id, source_run, target_run })
    }

    fn copying(&self, one: &Move, ends: &Ends, now_ms: u64) -> Action {
        if let Some(reason) = lost_copy(one, ends) {
            return Action::Apply(Change::Restart { id: self.id, reason });
        }
        let (Seat::Alive { .. }, Seat::Alive { address, .. }) = (&ends.source, &ends.target) else {
            return wait(IDLE_MS, "the primaries of both groups");
        };
        let memory = &self.memory;
        if let Some(text) = &memory.refused {
            return Action::Apply(Change::Restart { id: self.id, reason: text.clone() });
        }
        if memory.unknown {
            if memory.started {
                let reason = "the source forgot the move".to_string();
                return Action::Apply(Change::Restart { id: self.id, reason });
            }
            let command = Command::Start { target: address.clone(), slots: one.slots.clone(), rate: one.rate };
            return send(End::Source, ends, command);
        }
        let (Some(status), Some(asked_at)) = (&memory.status, memory.asked_at_ms) else {
            return send(End::Source, ends, Command::Status);
        };
        let due = asked_at.saturating_add(self.pace.status_every_ms);
        match status.state {
            CopyState::Failed | CopyState::Cancelled | CopyState::Finished => {
                let reason = if status.error.is_empty() { "the source gave the copy up" } else { &status.error };
                Action::Apply(Change::Restart { id: self.id, reason: reason.to_string() })
            }
            // Held for a cut-over that is no more: a late FREEZE.
            CopyState::Frozen => {
                let reason = "the source held the slots out of turn".to_string();
                Action::Apply(Change::Restart { id: self.id, reason })
            }
            CopyState::Copying | CopyState::Following if one.paused && memory.paused_told != Some(true) => {
                send(End::Source, ends, Command::Pause)
            }
            CopyState::Paused if !one.paused && memory.paused_told != Some(false) => {
                send(End::Source, ends, Command::Resume)
            }
            _ if status.rate != one.rate && memory.rate_told != Some(one.rate) => {
                send(End::Source, ends, Command::Rate(one.rate))
            }
            _ if now_ms >= due => send(End::Source, ends, Command::Status),
            CopyState::Following if !one.paused && status.lag_bytes <= self.pace.cutover_lag_bytes => {
                if one.thaws >= self.pace.thaws {
                    let reason = format!("the slots were held {} times in vain; last: {}", one.thaws, one.reason);
                    return Action::Apply(Change::Fail { id: self.id, reason });
                }
                Action::Apply(Change::BeginCutover { id: self.id })
            }
            _ => wait(due - now_ms, "the copy"),
        }
    }

    fn cutover(&self, one: &Move, newness: Newness, ends: &Ends) -> Action {
        if let Some(reason) = lost_copy(one, ends) {
            return Action::Apply(Change::Restart { id: self.id, reason });
        }
        if let Some(reason) = &self.memory.refused {
            // The source serves the slots again, or does not know the move: then the next stage finds that out.
            return Action::Apply(Change::Thaw { id: self.id, reason: reason.clone() });
        }
        if self.memory.held {
            let (Some(source_run), Some(target_run)) = (one.source_run.clone(), one.target_run.clone()) else {
                return Action::Apply(Change::Restart { id: self.id, reason: "nobody copied".to_string() });
            };
            let (attempts, thaws) = (one.attempts, one.thaws);
            return Action::Apply(Change::Commit { id: self.id, source_run, target_run, attempts, thaws });
        }
        if !matches!(ends.source, Seat::Alive { .. }) {
            return wait(IDLE_MS, "the source, which may hold the slots");
        }
        send(End::Source, ends, Command::Freeze { epoch: newness.epoch, timeout_ms: self.pace.freeze_timeout_ms })
    }

    fn committed(&self, newness: Newness, ends: &Ends) -> Action {
        let Newness { term, epoch } = newness;
        if !self.memory.target_told {
            // First the target, so that whoever the source sends there is served; and nothing is dropped before.
            return send(End::Target, ends, Command::Commit { term, epoch });
        }
        // A source that is away finds out by the view when it comes back.
        if self.memory.source_told || ends.source == Seat::Silent {
            return Action::Apply(Change::Finish { id: self.id });
        }
        send(End::Source, ends, Command::Finish { term, epoch })
    }

    /// Tells both ends to forget the move; nothing when both did.
    fn clean_up(&self, newness: Newness, ends: &Ends) -> Option<Action> {
        let Newness { term, epoch } = newness;
        if !self.memory.source_told {
            return Some(send(End::Source, ends, Command::Cancel { term, epoch }));
        }
        if !self.memory.target_told {
            return Some(send(End::Target, ends, Command::Abort { term, epoch }));
        }
        None
    }
}

/// How often a source may refuse START before the copy is begun anew: its view may still be on its way.
const START_REFUSALS: u32 = 4;
/// How long to wait for something that announces itself, in milliseconds.
const IDLE_MS: u64 = 1_000;

/// Why the copy of this move is lost, when one of its ends is another incarnation than the one that began it.
fn lost_copy(one: &Move, ends: &Ends) -> Option<String> {
    let other =
        |seat: &Seat, run: &Option<String>| matches!(seat, Seat::Alive { run: now, .. } if run.as_ref() != Some(now));
    if other(&ends.source, &one.source_run) {
        return Some("the source restarted".to_string());
    }
    other(&ends.target, &one.target_run).then(|| "the target restarted".to_string())
}

/// Whether an error says something of the move, not of the server's state (`LOADING`, `NOAUTH`, `BUSY`).
fn is_verdict(text: &str) -> bool {
    text.starts_with("ERR")
}

fn wait(ms: u64, why: &str) -> Action {
    Action::Wait { ms, why: why.to_string() }
}

/// The command to that end, or to wait until it is there.
fn send(to: End, ends: &Ends, command: Command) -> Action {
    let (seat, name) = match to {
        End::Source => (&ends.source, "the source"),
        End::Target => (&ends.target, "the target"),
    };
    match seat {
        Seat::Alive { address, .. } => Action::Send { to, address: address.clone(), command },
        Seat::Unknown | Seat::Silent => wait(IDLE_MS, name),
    }
}
