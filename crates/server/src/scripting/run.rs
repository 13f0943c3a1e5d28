//! EVAL, EVALSHA, FCALL and their read-only forms: finds the script, decides where it runs, runs it.

use super::host::ScriptHost;
use super::threads::{Client, Job};
use crate::clients::Caller;
use crate::exec::memory_limit::OUT_OF_MEMORY;
use crate::exec::{Step, single};
use crate::session::{Session, State};
use crate::slowlog::kept_arguments;
use crate::ticks;
use crate::worker::Worker;
use commands::table::{CommandId, CommandSpec};
use commands::{CmdError, options};
use keyspace::Slot;
use net::ConnId;
use resp::Args;
use script::{Ended, Kind, Library, LibraryFunction, Run, Script, ScriptFlags, Sha, Traits};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Microseconds that a script may hold a worker.
pub(crate) const INLINE_US: u64 = 2_000;
/// Scripts whose SHA-1 a thread remembers by their texts.
const RECENT_MAX: usize = 8;
/// Texts beyond this length are hashed each time.
const RECENT_BYTES_MAX: usize = 4_096;

const NO_SCRIPT: CmdError = CmdError::new("NOSCRIPT No matching script. Please use EVAL.");
const TOO_MANY_KEYS: CmdError = CmdError::new("ERR Number of keys can't be greater than number of args");
const NEGATIVE_KEYS: CmdError = CmdError::new("ERR Number of keys can't be negative");
const FUNCTION_NOT_FOUND: CmdError = CmdError::new("ERR Function not found");
const WRITES_IN_RO: CmdError = CmdError::new("ERR Can not execute a script with write flag using *_ro command.");
const SCRIPT_OUT_OF_MEMORY: CmdError =
    CmdError::new("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'");

/// What is to run.
#[derive(Clone)]
pub(crate) enum Target {
    Script(Arc<Script>),
    Function(Arc<Library>, Arc<LibraryFunction>),
}

impl Target {
    pub(crate) fn flags(&self) -> ScriptFlags {
        match self {
            Target::Script(script) => script.flags,
            Target::Function(_, function) => function.flags,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Target::Script(script) => script.sha.as_str(),
            Target::Function(_, function) => &function.name,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Target::Script(_) => Kind::Eval,
            Target::Function(..) => Kind::Function,
        }
    }

    /// What its runs have shown of it.
    pub(crate) fn traits(&self) -> &Traits {
        match self {
            Target::Script(script) => script.traits(),
            Target::Function(_, function) => function.traits(),
        }
    }

    /// Whether it may hold a worker: it is known to end soon.
    fn is_quick(&self) -> bool {
        self.traits().is_proven() && !self.traits().is_slow()
    }
}

/// Where a script runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a worker.
    Worker { oom: bool },
    /// On a worker, within EXEC: what ran before it cannot be undone.
    Exec { oom: bool },
    /// On a thread for scripts.
    Thread { oom: bool },
}

/// What came of a run.
pub(crate) enum Outcome {
    /// The reply is written.
    Done,
    /// It is to be run anew, nothing having happened.
    Elsewhere(Why),
}

/// Why a script is run anew.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It needs slots that it did not declare.
    Wide,
    /// It takes long.
    Slow,
    /// It needs a slot that it did not declare and that is held for a cut-over.
    Held,
}

/// Whether a command is one of these.
pub(crate) fn handles(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::Eval | C::EvalRo | C::Evalsha | C::EvalshaRo | C::Fcall | C::FcallRo)
}

/// Whether a queued command is a script that needs the whole keyspace.
pub(crate) fn needs_gate(worker: &Worker, id: CommandId, args: Args<'_>) -> bool {
    use CommandId as C;
    let name = args.get(1).unwrap_or_default();
    let scripts = &worker.shared.scripts;
    match id {
        C::Eval | C::EvalRo => scripts.cache.get(&Sha::of(name)).is_some_and(|script| script.traits().is_wide()),
        C::Evalsha | C::EvalshaRo => {
            Sha::parse(name).and_then(|sha| scripts.cache.get(&sha)).is_some_and(|script| script.traits().is_wide())
        }
        C::Fcall | C::FcallRo => std::str::from_utf8(name)
            .ok()
            .and_then(|name| {
                scripts.libraries.current().function(name).map(|(_, function)| function.traits().is_wide())
            })
            .unwrap_or(false),
        _ => false,
    }
}

/// Whether `maxmemory` is passed, after evicting what can be. Inside a batch, with no lock held.
pub(crate) fn is_out_of_memory(worker: &mut Worker) -> bool {
    worker.config.maxmemory > 0 && !worker.has_memory()
}

/// Runs one of these commands.
pub(crate) fn command(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let nested = session.state.has(State::IN_MULTI);
    worker.feed_monitors_from(session, spec, args, Caller::Client);
    let target = target_of(worker, spec.id, args)?;
    let limit = worker.config.maxmemory;
    let oom =
        if nested { limit > 0 && keyspace::memory::used_bytes() as u64 > limit } else { is_out_of_memory(worker) };
    check_flags(spec.id, target.flags(), oom, nested)?;
    if nested {
        run(worker, id, session, spec, args, &target, Place::Exec { oom });
        return Ok(Step::Done);
    }
    let slots = single::slots_of(worker, spec, args)?;
    if !target.is_quick() {
        submit(worker, id, session, spec, args, target, &slots);
        return Ok(Step::Parked);
    }
    if !target.traits().is_wide() {
        if let Err(busy) = worker.locks.try_lock_all(&slots) {
            return Ok(Step::Busy(busy));
        }
        if let Some(step) = worker.admit(id, session, spec, &slots)? {
            return Ok(step);
        }
        let outcome = run(worker, id, session, spec, args, &target, Place::Worker { oom });
        if !worker.events.ready.is_empty() {
            worker.serve_held();
        }
        worker.locks.unlock_all();
        worker.locks.end_long();
        match outcome {
            Outcome::Done => return Ok(Step::Done),
            Outcome::Elsewhere(Why::Slow) => {
                submit(worker, id, session, spec, args, target, &slots);
                return Ok(Step::Parked);
            }
            Outcome::Elsewhere(Why::Held) => return Ok(Step::Again),
            Outcome::Elsewhere(Why::Wide) => {}
        }
    }
    let ran = worker.alone(|worker| -> Result<Result<Outcome, Step>, CmdError> {
        if let Some(step) = worker.admit(id, session, spec, &slots)? {
            return Ok(Err(step));
        }
        let outcome = run(worker, id, session, spec, args, &target, Place::Worker { oom });
        worker.serve_held();
        Ok(Ok(outcome))
    });
    match ran.transpose()? {
        None => Ok(Step::Retry),
        Some(Err(step)) => Ok(step),
        Some(Ok(Outcome::Done)) => Ok(Step::Done),
        Some(Ok(Outcome::Elsewhere(Why::Held))) => Ok(Step::Again),
        Some(Ok(Outcome::Elsewhere(_))) => {
            submit(worker, id, session, spec, args, target, &slots);
            Ok(Step::Parked)
        }
    }
}

fn submit(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
    target: Target,
    slots: &[Slot],
) {
    let job = Job {
        worker: worker.index,
        conn: id,
        spec,
        args: args.to_owned_args(),
        target,
        slots: slots.to_vec(),
        client: Client::of(session),
        shown: kept_arguments(args),
    };
    session.state.insert(State::OFFLOADED);
    worker.shared.scripts.pool.submit(&worker.shared.clone(), job);
}

// ---- which script ------------------------------------------------------------------------------------------------

fn target_of(worker: &mut Worker, id: CommandId, args: Args<'_>) -> Result<Target, CmdError> {
    use CommandId as C;
    match id {
        C::Fcall | C::FcallRo => {
            let set = worker.shared.scripts.libraries.current();
            let name = std::str::from_utf8(&args[1]).map_err(|_| FUNCTION_NOT_FOUND)?;
            let Some((library, function)) = set.function(name).cloned() else { return Err(FUNCTION_NOT_FOUND) };
            if options::int(&args[2]).is_err() {
                return Err(CmdError::new("ERR Bad number of keys provided"));
            }
            key_count(args)?;
            Ok(Target::Function(library, function))
        }
        C::Evalsha | C::EvalshaRo => {
            let sha = Sha::parse(&args[1]).ok_or(NO_SCRIPT)?;
            key_count(args)?;
            worker.shared.scripts.cache.get(&sha).map(Target::Script).ok_or(NO_SCRIPT)
        }
        _ => {
            key_count(args)?;
            script_of(worker, &args[1]).map(Target::Script)
        }
    }
}

fn key_count(args: Args<'_>) -> Result<usize, CmdError> {
    let count = options::int(&args[2])?;
    match usize::try_from(count) {
        Ok(count) if count <= args.len() - 3 => Ok(count),
        Ok(_) => Err(TOO_MANY_KEYS),
        Err(_) => Err(NEGATIVE_KEYS),
    }
}

/// The script of a text: the cached one, or a new one that compiles.
pub(crate) fn script_of(worker: &mut Worker, body: &[u8]) -> Result<Arc<Script>, CmdError> {
    let shared = worker.shared.clone();
    worker.scripting.renew(&shared);
    if let Some(script) = worker.scripting.recent.iter().find(|script| *script.body == *body) {
        return Ok(script.clone());
    }
    let sha = Sha::of(body);
    let script = match shared.scripts.cache.get(&sha) {
        Some(script) => script,
        None => {
            let script = Script::new(sha, body).map_err(|text| CmdError::text(format!("ERR {text}")))?;
            let compiled = with_vm(worker, Kind::Eval, |vm| vm.compile(&script).map(drop));
            match compiled {
                Some(Ok(())) => shared.scripts.cache.insert(script),
                Some(Err(text)) => {
                    return Err(CmdError::text(format!("ERR Error compiling script (new function): {text}")));
                }
                None => return Err(NO_INTERPRETER),
            }
        }
    };
    if body.len() <= RECENT_BYTES_MAX {
        let recent = &mut worker.scripting.recent;
        if recent.len() >= RECENT_MAX {
            recent.remove(0);
        }
        recent.push(script.clone());
    }
    Ok(script)
}

const NO_INTERPRETER: CmdError = CmdError::new("ERR not enough memory for a Lua interpreter");

/// Lends this thread's interpreter of a kind.
pub(crate) fn with_vm<R>(worker: &mut Worker, kind: Kind, work: impl FnOnce(&mut script::Vm) -> R) -> Option<R> {
    let shared = worker.shared.clone();
    let memory_max = usize::try_from(worker.config.script_memory_limit).unwrap_or(usize::MAX);
    let mut vm = worker.scripting.take(&shared, kind, memory_max)?;
    let result = work(&mut vm);
    worker.scripting.give_back(&shared, vm);
    Some(result)
}

fn check_flags(id: CommandId, flags: ScriptFlags, oom: bool, nested: bool) -> Result<(), CmdError> {
    use CommandId as C;
    if flags.has(ScriptFlags::COMPATIBLE) {
        return Ok(());
    }
    let writes = !flags.has(ScriptFlags::NO_WRITES);
    if oom && writes && !flags.has(ScriptFlags::ALLOW_OOM) && !nested {
        return Err(OUT_OF_MEMORY);
    }
    if writes && matches!(id, C::EvalRo | C::EvalshaRo | C::FcallRo) {
        return Err(WRITES_IN_RO);
    }
    if oom && writes && !flags.has(ScriptFlags::ALLOW_OOM) {
        return Err(SCRIPT_OUT_OF_MEMORY);
    }
    Ok(())
}

// ---- the run -----------------------------------------------------------------------------------------------------

/// Runs a script on the slots that are held. Its reply is written, or it is to be run elsewhere.
pub(crate) fn run(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
    target: &Target,
    place: Place,
) -> Outcome {
    let started = ticks::now();
    let shared = worker.shared.clone();
    let memory_max = usize::try_from(worker.config.script_memory_limit).unwrap_or(usize::MAX);
    let Some(mut vm) = worker.scripting.take(&shared, target.kind(), memory_max) else {
        worker.answer_error(worker.reply.len(), spec.id, &NO_INTERPRETER);
        return Outcome::Done;
    };
    let before = worker.last_tick;
    let proto = worker.reply.proto();
    let mut out = std::mem::take(&mut worker.reply);
    let mut inner = Client::of(session).stand_in(worker.now_s);
    let keys = key_count(args).unwrap_or(0);
    let run = Run { args: args.slice(3), keys, name: target.name() };
    let running = worker.scripting.running.clone();
    running.wrote.store(false, Ordering::Relaxed);
    worker.locks.effects.begin();
    let mut host = ScriptHost::new(worker, id, &mut inner, spec, args, target, place, started);
    let ended = match target {
        Target::Script(script) => match vm.compile(script) {
            Ok(function) => vm.eval(&mut host, &function, run, &mut out),
            Err(text) => {
                let text = format!("ERR Error compiling script (new function): {text}").into_bytes();
                Ended::Failed(script::Failure { text, counted: false })
            }
        },
        Target::Function(library, function) => vm.call(&mut host, library, &function.name, run, &mut out),
    };
    let (why, has_ticked) = (host.why(), host.has_ticked());
    worker.locks.effects.end();
    // What it did is recorded, not that it ran.
    worker.locks.effects.suppress();
    worker.reply = out;
    worker.reply.set_proto(proto);
    worker.last_tick = before;
    if target.kind() == Kind::Function {
        let set = shared.scripts.libraries.current();
        vm.keep_libraries(|id| set.libraries().any(|library| library.id == id));
    }
    worker.scripting.give_back(&shared, vm);
    shared.scripts.board.note_end(&running);
    let microseconds = ticks::to_microseconds(ticks::now().wrapping_sub(started));
    // A few thousand instructions at most are no long run, however long the thread had to wait for its core.
    if has_ticked && microseconds > INLINE_US {
        target.traits().note_slow();
    } else {
        target.traits().note_proven();
    }
    match ended {
        Ended::Done(errors) => {
            for text in errors {
                worker.stats.errors.add(1);
                shared.note_error(&String::from_utf8_lossy(&text));
            }
            Outcome::Done
        }
        Ended::Failed(failure) => {
            worker.reply.error(&failure.text);
            worker.stats.commands[spec.id.index()].failed.add(1);
            if !failure.counted {
                worker.stats.errors.add(1);
                shared.note_error(&String::from_utf8_lossy(&failure.text));
            }
            Outcome::Done
        }
        Ended::Restart => Outcome::Elsewhere(why),
    }
}
