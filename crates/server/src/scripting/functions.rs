//! SCRIPT and FUNCTION: the caches and the running scripts.
//!
//! FUNCTION DUMP writes one record a library, as RDB files do, and DUMP's footer:
//!
//! ```text
//! ┌──────┬─────────────────┬ ─ ─ ┬─────────────┬───────┐
//! │ 0xF5 │ string: library │     │ RDB version │ CRC64 │
//! └──────┴─────────────────┴ ─ ─ ┴─────────────┴───────┘
//! ```

use super::run::{script_of, with_vm};
use super::running::Killed;
use crate::exec::Step;
use crate::session::Session;
use crate::shared::Shared;
use crate::worker::Worker;
use commands::table::{CommandId, errors};
use commands::{CmdError, options};
use rdb::codec::{Reader, Writer};
use resp::{Args, Reply};
use script::libraries::LibrarySet;
use script::{Kind, Library, ScriptFlags, Sha, shebang};
use std::sync::Arc;

/// RDB opcode of a library.
const OPCODE_FUNCTION2: u8 = 245;
/// RDB opcode of a library in a version that was never released.
const OPCODE_FUNCTION_PRE_GA: u8 = 246;
/// Bytes of version and checksum.
const FOOTER_BYTES: usize = 10;

/// What clients are told while a script of EVAL is busy.
pub(crate) const BUSY_EVAL: CmdError =
    CmdError::new("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
/// What clients are told while a function is busy.
pub(crate) const BUSY_FUNCTION: CmdError =
    CmdError::new("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.");

/// The error for a command that would have to wait for a busy script.
pub(crate) fn busy_error(is_eval: bool) -> CmdError {
    if is_eval { BUSY_EVAL } else { BUSY_FUNCTION }
}

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    matches!(
        id,
        C::ScriptDebug
            | C::ScriptExists
            | C::ScriptFlush
            | C::ScriptHelp
            | C::ScriptKill
            | C::ScriptLoad
            | C::FunctionDelete
            | C::FunctionDump
            | C::FunctionFlush
            | C::FunctionHelp
            | C::FunctionKill
            | C::FunctionList
            | C::FunctionLoad
            | C::FunctionRestore
            | C::FunctionStats
    )
}

/// Runs one.
pub(crate) fn run(worker: &mut Worker, session: &Session, id: CommandId, args: Args<'_>) -> Result<Step, CmdError> {
    use CommandId as C;
    match id {
        C::ScriptDebug => debug(worker, session, args)?,
        C::ScriptExists => {
            worker.reply.array(args.len() - 2);
            for sha in args.slice(2).iter() {
                let known = Sha::parse(sha).is_some_and(|sha| worker.shared.scripts.cache.get(&sha).is_some());
                worker.reply.int(i64::from(known));
            }
        }
        C::ScriptFlush => {
            if !flush_mode(args) {
                return Err(CmdError::new("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
            }
            worker.shared.scripts.cache.clear();
            worker.reply.ok();
        }
        C::ScriptLoad => {
            let script = script_of(worker, &args[2])?;
            worker.reply.bulk(script.sha.as_bytes());
        }
        C::ScriptKill => kill(worker, true)?,
        C::FunctionKill => kill(worker, false)?,
        C::FunctionLoad => load(worker, args)?,
        C::FunctionDelete => {
            let name = String::from_utf8_lossy(&args[2]).into_owned();
            let gone = worker.shared.scripts.libraries.change(|set| set.remove(&name).ok_or(()));
            gone.map_err(|()| CmdError::new("ERR Library not found"))?;
            worker.events.dirty += 1;
            worker.reply.ok();
        }
        C::FunctionFlush => {
            if args.len() > 3 {
                return Err(subcommand_syntax(args));
            }
            if !flush_mode(args) {
                return Err(CmdError::new("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
            }
            worker.events.dirty += u64::from(forget_all(&worker.shared));
            worker.reply.ok();
        }
        C::FunctionList => list(worker, args)?,
        C::FunctionStats => stats(worker)?,
        C::FunctionDump => {
            let payload = dump(&worker.shared.scripts.libraries.current());
            worker.reply.bulk(payload);
        }
        C::FunctionRestore => restore(worker, args)?,
        _ => return Err(subcommand_syntax(args)),
    }
    Ok(Step::Done)
}

fn subcommand_syntax(args: Args<'_>) -> CmdError {
    CmdError::text(String::from_utf8_lossy(&errors::unknown_subcommand(&args)).into_owned())
}

/// Forgets all libraries. True: they are gone.
pub(crate) fn forget_all(shared: &Shared) -> bool {
    let cleared: Result<(), ()> = shared.scripts.libraries.change(|set| {
        *set = LibrarySet::default();
        Ok(())
    });
    cleared.is_ok()
}

/// SYNC or ASYNC, or nothing: the same here, as memory always goes in the background or at once.
fn flush_mode(args: Args<'_>) -> bool {
    match args.get(2) {
        None => true,
        Some(word) => args.len() == 3 && (options::is_word(word, "sync") || options::is_word(word, "async")),
    }
}

/// The step-by-step debugger needs a process of its own for each session, which this server does not fork.
fn debug(worker: &mut Worker, _session: &Session, args: Args<'_>) -> Result<(), CmdError> {
    let word = &args[2];
    if options::is_word(word, "no") {
        worker.reply.ok();
        return Ok(());
    }
    if options::is_word(word, "yes") || options::is_word(word, "sync") {
        return Err(CmdError::new("ERR this server has no Lua debugger"));
    }
    Err(CmdError::new("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}

fn kill(worker: &mut Worker, eval: bool) -> Result<(), CmdError> {
    match worker.shared.scripts.board.kill(eval) {
        Killed::Some => {
            worker.reply.ok();
            Ok(())
        }
        Killed::Nobody => Err(CmdError::new("NOTBUSY No scripts in execution right now.")),
        Killed::Unkillable => Err(CmdError::new(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        )),
        Killed::OtherKind => Err(busy_error(!eval)),
    }
}

// ---- FUNCTION ------------------------------------------------------------------------------------------------------

fn error_of(text: &str) -> CmdError {
    CmdError::text(format!("ERR {text}"))
}

fn load(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    let mut replace = false;
    for word in args.slice(2).iter().take(args.len() - 3) {
        if !options::is_word(word, "replace") {
            return Err(error_of(&format!("Unknown option given: {}", String::from_utf8_lossy(word))));
        }
        replace = true;
    }
    let code = args.at(args.len() - 1);
    let name = load_library(worker, code, replace)?;
    worker.events.dirty += 1;
    worker.reply.bulk(name);
    Ok(())
}

/// Adds a library to the registry; returns its name.
pub(crate) fn load_library(worker: &mut Worker, code: &[u8], replace: bool) -> Result<String, CmdError> {
    let line = shebang::library_line(code).map_err(|text| error_of(&text))?;
    let shared = worker.shared.clone();
    if !replace && shared.scripts.libraries.current().library(&line.name).is_some() {
        return Err(error_of(&format!("Library '{}' already exists", line.name)));
    }
    let name = line.name.clone();
    let library = read_library(worker, code, line, true)?;
    shared
        .scripts
        .libraries
        .change(|set| {
            if set.remove(&name).is_some() && !replace {
                return Err(format!("Library '{name}' already exists").into());
            }
            set.insert(library)
        })
        .map_err(|text| error_of(&text))?;
    Ok(name)
}

/// Has the files of the server hold the libraries: snapshots write them, and loading brings them back.
pub(crate) fn join_files(shared: &Arc<Shared>) {
    let files = &shared.durability;
    let holder = Arc::downgrade(shared);
    let _ = files.dump_functions.set(Box::new(move || {
        let Some(shared) = holder.upgrade() else { return Vec::new() };
        shared.scripts.libraries.current().libraries().map(|library| library.code.to_vec()).collect()
    }));
    let holder = Arc::downgrade(shared);
    let _ = files.function_loader.set(Box::new(move || {
        // Files are read on a thread of their own, which needs an interpreter for this.
        let mut worker = holder.upgrade().map(|shared| {
            let stats = shared.link_stats.clone();
            let mut worker = Worker::new(0, shared);
            // What it counts is no worker's doing.
            worker.stats = stats;
            worker
        });
        Box::new(move |code, replace| match &mut worker {
            Some(worker) => load_library(worker, code, replace).map(drop).map_err(|error| error.0.to_string()),
            None => Ok(()),
        })
    }));
}

/// Looks whether the libraries of one file could be loaded into a server without any; loads none.
pub(crate) fn checker(shared: &Arc<Shared>) -> impl FnMut(&[u8]) -> Result<(), String> {
    let shared = shared.clone();
    let (mut worker, mut set) = (None, LibrarySet::default());
    move |code| {
        let worker = worker.get_or_insert_with(|| {
            let mut worker = Worker::new(0, shared.clone());
            worker.stats = shared.link_stats.clone();
            worker
        });
        let line = shebang::library_line(code).map_err(|text| text.to_string())?;
        let library = read_library(worker, code, line, true).map_err(|error| error.0.to_string())?;
        // Loading lets a library that comes twice replace the one before.
        set.remove(&library.name);
        set.insert(library).map_err(|text| text.to_string())
    }
}

/// Runs a library's text to learn its functions.
fn read_library(
    worker: &mut Worker,
    code: &[u8],
    line: shebang::LibraryLine,
    limited: bool,
) -> Result<Arc<Library>, CmdError> {
    let loaded = with_vm(worker, Kind::Function, |vm| vm.load(code, line.len, limited));
    let functions = match loaded {
        Some(loaded) => loaded.map_err(|text| error_of(&text))?,
        None => return Err(error_of("not enough memory for a Lua interpreter")),
    };
    if functions.is_empty() {
        return Err(error_of("No functions registered"));
    }
    Ok(worker.shared.scripts.libraries.library(line.name, code, line.len, functions))
}

fn list(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    let (mut with_code, mut pattern) = (false, None);
    let mut index = 2;
    while let Some(word) = args.get(index) {
        if !with_code && options::is_word(word, "withcode") {
            with_code = true;
        } else if pattern.is_none() && options::is_word(word, "libraryname") {
            index += 1;
            pattern = Some(args.get(index).ok_or(CmdError::new("ERR library name argument was not given"))?);
        } else {
            return Err(error_of(&format!("Unknown argument {}", String::from_utf8_lossy(word))));
        }
        index += 1;
    }
    let set = worker.shared.scripts.libraries.current();
    let fits = |library: &Library| {
        pattern.is_none_or(|pattern| keyspace::glob::matches(pattern, library.name.as_bytes(), true))
    };
    let libraries: Vec<_> = set.libraries().filter(|library| fits(library)).collect();
    worker.reply.array(libraries.len());
    for library in libraries {
        describe(&mut worker.reply, library, with_code);
    }
    Ok(())
}

fn describe(reply: &mut Reply, library: &Library, with_code: bool) {
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk("library_name");
    reply.bulk(&library.name);
    reply.bulk("engine");
    reply.bulk("LUA");
    reply.bulk("functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk("name");
        reply.bulk(&function.name);
        reply.bulk("description");
        match &function.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk("flags");
        let flags: Vec<_> = ScriptFlags::NAMED.iter().filter(|(_, flag)| function.flags.has(*flag)).collect();
        reply.set(flags.len());
        for (name, _) in flags {
            reply.simple(name);
        }
    }
    if with_code {
        reply.bulk("library_code");
        reply.bulk(&library.code);
    }
}

fn stats(worker: &mut Worker) -> Result<(), CmdError> {
    let shared = worker.shared.clone();
    let running = shared.scripts.board.longest(|details| {
        let duration_ms = details.since.map_or(0, |since| since.elapsed().as_millis());
        (details.is_eval, details.name.clone(), details.command.clone(), duration_ms)
    });
    if running.as_ref().is_some_and(|(is_eval, ..)| *is_eval) {
        return Err(BUSY_EVAL);
    }
    let reply = &mut worker.reply;
    reply.map(2);
    reply.bulk("running_script");
    match running {
        None => reply.null(),
        Some((_, name, command, duration_ms)) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(name);
            reply.bulk("command");
            reply.array(command.len());
            for word in command {
                reply.bulk(word);
            }
            reply.bulk("duration_ms");
            reply.int(i64::try_from(duration_ms).unwrap_or(i64::MAX));
        }
    }
    reply.bulk("engines");
    reply.map(1);
    reply.bulk("LUA");
    reply.map(2);
    let (libraries, functions) = shared.scripts.libraries.current().counts();
    reply.bulk("libraries_count");
    reply.count(libraries);
    reply.bulk("functions_count");
    reply.count(functions);
    Ok(())
}

/// The payload of FUNCTION DUMP.
pub(crate) fn dump(set: &LibrarySet) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut writer = Writer::compressing(&mut payload);
    for library in set.libraries() {
        writer.byte(OPCODE_FUNCTION2);
        writer.string(&library.code);
    }
    rdb::dump::append_footer(&mut payload, 0);
    payload
}

fn restore(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    if args.len() > 4 {
        return Err(subcommand_syntax(args));
    }
    let policy = match args.get(3) {
        None => Policy::Append,
        Some(word) if options::is_word(word, "append") => Policy::Append,
        Some(word) if options::is_word(word, "replace") => Policy::Replace,
        Some(word) if options::is_word(word, "flush") => Policy::Flush,
        Some(_) => {
            return Err(CmdError::new(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let payload = args.at(2);
    if rdb::dump::verify(payload).is_err() {
        return Err(CmdError::new("ERR DUMP payload version or checksum are wrong"));
    }
    let body = &payload[..payload.len().saturating_sub(FOOTER_BYTES)];
    let restored = read_libraries(worker, body)?;
    worker.shared.scripts.libraries.change(|set| join(set, restored, policy)).map_err(|text| error_of(&text))?;
    worker.events.dirty += 1;
    worker.reply.ok();
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Append,
    Replace,
    Flush,
}

/// The libraries of a payload, which may not clash among themselves.
fn read_libraries(worker: &mut Worker, body: &[u8]) -> Result<LibrarySet, CmdError> {
    let mut reader = Reader::new(body);
    let mut set = LibrarySet::default();
    while !reader.rest().is_empty() {
        match reader.byte() {
            Ok(OPCODE_FUNCTION2) => {}
            Ok(OPCODE_FUNCTION_PRE_GA) => return Err(error_of("Pre-GA function format not supported")),
            Ok(_) => return Err(error_of("given type is not a function")),
            Err(_) => return Err(error_of("can not read data type")),
        }
        let code = reader.string().map_err(|_| error_of("Failed loading library code"))?.into_vec();
        let line = shebang::library_line(&code).map_err(|text| error_of(&text))?;
        if set.library(&line.name).is_some() {
            return Err(error_of(&format!("Library '{}' already exists", line.name)));
        }
        let library = read_library(worker, &code, line, true)?;
        set.insert(library).map_err(|text| error_of(&text))?;
    }
    Ok(set)
}

fn join(set: &mut LibrarySet, restored: LibrarySet, policy: Policy) -> Result<(), std::borrow::Cow<'static, str>> {
    if policy == Policy::Flush {
        *set = restored;
        return Ok(());
    }
    for library in restored.libraries() {
        if set.library(&library.name).is_some() {
            if policy == Policy::Append {
                return Err(format!("Library {} already exists", library.name).into());
            }
            set.remove(&library.name);
        }
    }
    for library in restored.libraries() {
        set.insert(library.clone())?;
    }
    Ok(())
}

/// INFO's figures of scripts.
pub(crate) struct Figures {
    pub(crate) vm_eval: usize,
    pub(crate) vm_functions: usize,
    pub(crate) scripts_eval: usize,
    pub(crate) cached_scripts: usize,
    pub(crate) functions: usize,
    pub(crate) libraries: usize,
    pub(crate) functions_bytes: usize,
}

impl Figures {
    pub(crate) fn of(shared: &Shared) -> Figures {
        let set = shared.scripts.libraries.current();
        let (libraries, functions) = set.counts();
        let bytes = |kind: Kind| shared.scripts.vm_bytes[kind as usize].load(std::sync::atomic::Ordering::Relaxed);
        Figures {
            vm_eval: bytes(Kind::Eval),
            vm_functions: bytes(Kind::Function),
            scripts_eval: shared.scripts.cache.used_bytes(),
            cached_scripts: shared.scripts.cache.len(),
            functions,
            libraries,
            functions_bytes: set.used_bytes(),
        }
    }
}
