//! What a thread's commands did, on its way to the journal.
//!
//! A command that changed something is recorded as its arguments stand, unless it says otherwise: what depends on the
//! clock, on chance or on what it found is recorded as what it came to ([`crate::DbView::effect`]). Several effects of
//! one command, transaction or script stand between MULTI and EXEC. A key that was met after its end is recorded as
//! deleted, ahead of what the command itself did.
//!
//! Everything a thread collected is appended to the journal by [`crate::LockSet`] before it gives its locks back. This
//! is what makes the journal's order right, whichever way a command was run.

use super::{Run, Waker};
use crate::slot::DbIndex;
use resp::Args;

/// A command as its client sent it.
#[derive(Clone, Copy)]
pub enum Verbatim<'a> {
    /// A whole multibulk request, byte for byte.
    Frame(&'a [u8]),
    /// Arguments.
    Args(Args<'a>),
}

/// What the running command has said of itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Said {
    /// Nothing: it is recorded as it stands, if it changed something.
    #[default]
    Nothing,
    /// Its effects, or that there are none to record.
    Enough,
    /// To be recorded as it stands even if nothing was changed.
    Always,
}

/// Who is to learn of what a script does from here on (`redis.set_repl`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Audience {
    /// Everybody who reads the journal.
    #[default]
    All,
    /// Replicas, but not the append only file.
    Replicas,
    /// Nobody.
    Nobody,
}

/// See the module.
#[derive(Default)]
pub struct Effects {
    recording: bool,
    /// What this thread does is not recorded: it replays what has been.
    muted: bool,
    said: Said,
    /// Open transactions and scripts: their commands' effects belong together.
    depth: u32,
    /// Set by the script under way, for itself.
    audience: Audience,
    /// The commands that belong together so far.
    unit: Vec<u8>,
    unit_runs: Vec<Run>,
    /// What can be appended.
    ready: Vec<u8>,
    ready_runs: Vec<Run>,
    /// Where the last appended bytes of this thread end in the journal.
    pub(crate) appended_to: u64,
    pub(crate) wakers: Vec<Waker>,
    /// Bytes of the stream that is followed: what the running command stands for there. See [`Effects::follow`].
    pub(crate) followed: Vec<u8>,
    pub(crate) followed_replicas_only: bool,
}

/// Capacity that is kept for the next commands.
const KEPT_CAPACITY: usize = 64 * 1024;

fn push_number(bytes: &mut Vec<u8>, sign: u8, number: usize) {
    bytes.push(sign);
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

fn push_argument(bytes: &mut Vec<u8>, argument: &[u8]) {
    push_number(bytes, b'$', argument.len());
    bytes.extend_from_slice(argument);
    bytes.extend_from_slice(b"\r\n");
}

/// Appends a command as a RESP array.
pub fn push_command<'a>(bytes: &mut Vec<u8>, arguments: impl ExactSizeIterator<Item = &'a [u8]>) {
    push_number(bytes, b'*', arguments.len());
    for argument in arguments {
        push_argument(bytes, argument);
    }
}

/// Notes that the bytes up to `end` are of a database.
fn push_run(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.db == run.db && last.replicas_only == run.replicas_only => last.end = run.end,
        _ => runs.push(run),
    }
}

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

impl Effects {
    /// Whether the journal is read: else nothing is to be noted.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    #[inline]
    pub(crate) fn set_recording(&mut self, recording: bool) {
        self.recording = recording && !self.muted;
    }

    /// Nothing that this thread does is recorded from here on: it replays what has been.
    pub fn mute(&mut self) {
        self.muted = true;
        self.recording = false;
    }

    /// Where this thread's last recorded command ends in the journal.
    #[inline]
    pub fn appended_to(&self) -> u64 {
        self.appended_to
    }

    /// The command that is about to run is this stretch of the stream that is followed. It is appended to the journal as it
    /// stands, under the command's locks or by [`crate::LockSet::append_effects`]. `replicas_only`: no part of an AOF.
    pub fn follow(&mut self, bytes: &[u8], replicas_only: bool) {
        self.followed.clear();
        self.followed.extend_from_slice(bytes);
        self.followed_replicas_only = replicas_only;
    }

    /// Notes a command that the running one came to.
    pub(crate) fn note<'a>(
        &mut self,
        db: DbIndex,
        arguments: impl ExactSizeIterator<Item = &'a [u8]>,
        replicas_only: bool,
    ) {
        if !self.recording || self.audience == Audience::Nobody {
            return;
        }
        let replicas_only = replicas_only || self.audience == Audience::Replicas;
        push_command(&mut self.unit, arguments);
        // Not merged with the one before: the runs of a unit count its commands.
        self.unit_runs.push(Run { db: Some(db), end: self.unit.len(), replicas_only });
    }

    /// Notes the running command for replicas alone.
    pub fn for_replicas(&mut self, db: DbIndex, args: Args<'_>) {
        self.suppress();
        self.note(db, args.iter(), true);
    }

    /// The running command is not to be recorded as it stands.
    pub fn suppress(&mut self) {
        if self.recording {
            self.said = Said::Enough;
        }
    }

    /// The running command is to be recorded even if it changed nothing.
    pub(crate) fn force(&mut self) {
        if self.recording && self.said == Said::Nothing {
            self.said = Said::Always;
        }
    }

    /// Who learns of what is done until the transaction or script under way ends.
    pub fn address(&mut self, audience: Audience) {
        self.audience = audience;
    }

    /// The effects of commands from here on belong together, until the matching [`Effects::end`].
    pub fn begin(&mut self) {
        self.depth += 1;
    }

    /// See [`Effects::begin`].
    pub fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.audience = Audience::All;
            self.end_unit(true);
        }
    }

    /// Ends a command that began on database `db`, before its locks go back. `changed`: it changed something.
    #[inline]
    pub fn command_ran(&mut self, db: DbIndex, verbatim: Verbatim<'_>, changed: bool) {
        if self.recording {
            self.command_ran_recorded(db, verbatim, changed);
        }
    }

    #[inline(never)]
    fn command_ran_recorded(&mut self, db: DbIndex, verbatim: Verbatim<'_>, changed: bool) {
        let said = std::mem::take(&mut self.said);
        let as_it_stands =
            (said == Said::Always || (changed && said == Said::Nothing)) && self.audience != Audience::Nobody;
        let is_alone = self.depth == 0 && self.unit_runs.is_empty();
        if as_it_stands {
            let (bytes, runs) =
                if is_alone { (&mut self.ready, &mut self.ready_runs) } else { (&mut self.unit, &mut self.unit_runs) };
            match verbatim {
                Verbatim::Frame(frame) => bytes.extend_from_slice(frame),
                Verbatim::Args(args) => push_command(bytes, args.iter()),
            }
            let replicas_only = self.audience == Audience::Replicas;
            let run = Run { db: Some(db), end: bytes.len(), replicas_only };
            if is_alone { push_run(runs, run) } else { runs.push(run) }
        }
        if self.depth == 0 && !self.unit_runs.is_empty() {
            self.end_unit(true);
        }
    }

    /// Makes the commands that belong together ready, between MULTI and EXEC if there are several and `wrapped`.
    fn end_unit(&mut self, wrapped: bool) {
        let wrapped = wrapped && self.unit_runs.len() > 1;
        let replicas_only = self.unit_runs.iter().all(|run| run.replicas_only);
        let plain = |end: usize| Run { db: None, end, replicas_only };
        if wrapped {
            self.ready.extend_from_slice(MULTI);
            push_run(&mut self.ready_runs, plain(self.ready.len()));
        }
        let before = self.ready.len();
        self.ready.append(&mut self.unit);
        for run in self.unit_runs.drain(..) {
            push_run(&mut self.ready_runs, Run { end: before + run.end, ..run });
        }
        if wrapped {
            self.ready.extend_from_slice(EXEC);
            push_run(&mut self.ready_runs, plain(self.ready.len()));
        }
    }

    /// Whether a transaction or script is under way.
    pub(crate) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Whether something waits to be appended.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ready_runs.is_empty() && self.unit_runs.is_empty()
    }

    /// Takes what is to be appended: lends it to `append`.
    pub(crate) fn flush(&mut self, append: impl FnOnce(&[u8], &[Run]) -> (u64, Vec<Waker>)) {
        // What no command claimed are single deletions (expiry, eviction): each stands for itself. A transaction that
        // a panic has cut is closed here, too.
        let was_cut = std::mem::take(&mut self.depth) > 0;
        self.audience = Audience::All;
        self.end_unit(was_cut);
        let (end, wakers) = append(&self.ready, &self.ready_runs);
        self.appended_to = end;
        self.wakers.extend(wakers);
        self.ready.clear();
        self.ready_runs.clear();
        self.ready.shrink_to(KEPT_CAPACITY);
        self.unit.shrink_to(KEPT_CAPACITY);
    }
}
