//! Scripts and functions: what all threads share of them, and each thread's interpreters.
//!
//! - [`Scripts`]: cached scripts, function libraries, who runs a script now.
//! - [`running`]: the board of running scripts, by which SCRIPT KILL finds them and other clients learn that a slot is
//!   held by a busy one.
//! - [`threads`]: threads for scripts that would hold a worker too long.
//! - [`run`]: EVAL and FCALL: where a script runs, and with which locks.
//! - [`host`]: what `redis.call` does.
//!
//! # Where a script runs, and which locks it holds
//!
//! A script with declared keys locks their slots, all at once, in ascending order, and runs on the worker. Strict
//! two-phase locking: nothing is given back before its end, so scripts and commands are serializable.
//!
//! A script that touches a slot which it did not declare *tries* for it: trying needs no order, and what is got is kept
//! to the end. If the slot is busy and the script has changed nothing yet, it is ended without a trace and run anew
//! behind the gate, with the whole keyspace to itself. Every script that was ever seen with an undeclared key runs behind
//! the gate from then on. There is one case left: a script seen for the first time that has written already. It waits for
//! the slot with its hands full. Only such scripts do, they say so on a board ([`running::Waits`]), and the last one to
//! close a circle gets an error instead: no deadlock. It has not happened outside of tests made for it, as both scripts
//! must be new and each must want what the other holds.
//!
//! A script must not hold a worker. One that has not been seen to end soon (and has loops in its text) runs on a thread
//! of its own kind; one that is known as quick runs on the worker, and if it takes long for once and has not written yet,
//! it is ended without a trace and run anew on a thread. A long script on a worker, or behind the gate, changes to a long
//! runner that holds slots (`LockSet::go_long`), so that clients of other slots go on.

pub(crate) mod functions;
pub(crate) mod host;
pub(crate) mod run;
pub(crate) mod running;
pub(crate) mod threads;

use crate::process::log::Level;
use crate::shared::Shared;
use running::{Board, Running};
use script::{Kind, Libraries, ScriptCache, Vm, VmLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use threads::Pool;
pub(crate) use threads::STACK_BYTES;

/// Threads for scripts at most. They start when they are needed.
pub const THREADS_MAX: usize = 8;

/// See the module.
#[derive(Default)]
pub struct Scripts {
    /// Cached scripts.
    pub cache: ScriptCache,
    /// Function libraries.
    pub libraries: Libraries,
    pub(crate) board: Board,
    pub(crate) waits: running::Waits,
    pub(crate) pool: Pool,
    /// Bytes of all interpreters for EVAL, and of all for functions, as of their last script.
    pub(crate) vm_bytes: [AtomicUsize; 2],
}

/// The interpreters of one thread.
pub(crate) struct Interpreters {
    eval: Option<Vm>,
    function: Option<Vm>,
    generation: u64,
    /// Bytes reported last, of each.
    reported: [usize; 2],
    pub(crate) running: Arc<Running>,
    /// The last script, by its text: its SHA-1 need not be computed again.
    pub(crate) recent: Vec<Arc<script::Script>>,
}

impl Interpreters {
    pub(crate) fn new(scripts: &Scripts) -> Interpreters {
        Interpreters {
            eval: None,
            function: None,
            generation: 0,
            reported: [0; 2],
            running: scripts.board.join(),
            recent: Vec::new(),
        }
    }

    /// After SCRIPT FLUSH: begins anew.
    pub(crate) fn renew(&mut self, shared: &Shared) {
        if self.generation != shared.scripts.cache.generation() {
            self.generation = shared.scripts.cache.generation();
            self.eval = None;
            self.recent.clear();
        }
    }

    /// Takes the interpreter out for a script; a fresh one if there is none. To be given back with
    /// [`Interpreters::give_back`].
    pub(crate) fn take(&mut self, shared: &Shared, kind: Kind, memory_max: usize) -> Option<Vm> {
        self.renew(shared);
        let kept = match kind {
            Kind::Eval => self.eval.take(),
            Kind::Function => self.function.take(),
        };
        let made = match kept {
            Some(vm) => Ok(vm),
            None => Vm::new(kind, VmLimits { memory_max }),
        };
        match made {
            Ok(mut vm) => {
                vm.set_memory_max(memory_max);
                Some(vm)
            }
            Err(error) => {
                crate::log!(Level::Warning, "Cannot make a Lua interpreter: {error}");
                None
            }
        }
    }

    /// Keeps an interpreter for the next script, unless it holds too much.
    pub(crate) fn give_back(&mut self, shared: &Shared, vm: Vm) {
        let kind = vm.kind();
        let (index, worn) = (kind as usize, vm.is_worn());
        let bytes = if worn { 0 } else { vm.used_bytes() };
        if bytes != self.reported[index] {
            let total = &shared.scripts.vm_bytes[index];
            total.fetch_add(bytes.wrapping_sub(self.reported[index]), Ordering::Relaxed);
            self.reported[index] = bytes;
        }
        let kept = (!worn).then_some(vm);
        match kind {
            Kind::Eval => self.eval = kept,
            Kind::Function => self.function = kept,
        }
    }
}
