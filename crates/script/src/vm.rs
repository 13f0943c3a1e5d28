//! One interpreter with its sandbox: compiles and runs scripts, loads libraries and calls their functions.
//!
//! An interpreter belongs to one thread. EVAL and FCALL have one each, as in Redis: what the one does to its settings
//! (`cjson`'s, the random generator's) does not show in the other.

use crate::api;
use crate::cache::{Script, Sha};
use crate::convert;
use crate::host::{HOST, Host, Tick};
use crate::libraries::{Library, LibraryFunction, Load};
use crate::native::{self, Dying, KILLED, State, set_cap};
use crate::{bits, cjson, cmsgpack, pattern, structs};
use bstr::BStr;
use hashbrown::HashMap;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};
use resp::{Args, Reply};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Instructions between two questions to the host.
const INSTRUCTIONS_PER_TICK: u32 = 10_000;
/// A library has so long to register its functions.
const LOAD_TIME: Duration = Duration::from_millis(500);
/// Bytes of garbage that are kept between two scripts.
const GARBAGE_MAX: usize = 16 << 20;

/// What an interpreter is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// EVAL.
    Eval,
    /// FCALL.
    Function,
}

/// Limits of an interpreter.
#[derive(Clone, Copy, Debug)]
pub struct VmLimits {
    /// Bytes it may use; 0: as many as there are.
    pub memory_max: usize,
}

/// What a script is given.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Keys, then arguments.
    pub args: Args<'a>,
    /// How many of them are keys.
    pub keys: usize,
    /// The name that errors show: the SHA-1, or the function's.
    pub name: &'a str,
}

/// How a script ended.
pub enum Ended {
    /// Its result is written. These error replies are in it, counted by nobody yet.
    Done(Vec<Vec<u8>>),
    /// By an error; nothing is written.
    Failed(Failure),
    /// The host has asked for it to be run anew; nothing is written.
    Restart,
}

/// The error that ended a script.
pub struct Failure {
    /// The whole text with its code, without `-`.
    pub text: Vec<u8>,
    /// It was an error reply of a command, counted when that ran.
    pub counted: bool,
}

/// See the module.
pub struct Vm {
    lua: Lua,
    state: Rc<State>,
    kind: Kind,
    /// The table behind the global proxy.
    globals: Table,
    loading: Table,
    of_globals: Table,
    /// Handles of functions cost a slot of the binding's each time they are cloned: these are shared.
    calls: Rc<Calls>,
    pcall: Function,
    scripts: HashMap<Sha, Rc<Function>, foldhash::fast::RandomState>,
    libraries: std::collections::HashMap<u64, std::collections::HashMap<String, Function>>,
}

/// Functions that start a script.
struct Calls {
    xpcall: Function,
    invoke: Function,
    handler: Function,
}

impl Vm {
    /// A fresh interpreter.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(kind: Kind, limits: VmLimits) -> mlua::Result<Vm> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::new())?;
        let state = Rc::new(State::new(limits.memory_max));
        let native = natives(&lua, &state, kind)?;
        let parts: Table =
            lua.load(include_str!("prelude.lua")).set_name(api::PRELUDE_NAME).call((native, kind == Kind::Eval))?;
        let of_handler = state.clone();
        let handler = lua.create_function(move |lua, error: Value| api::handle_error(lua, &of_handler, &error))?;
        let pcall: Function = parts.raw_get("pcall")?;
        *state.pcall.borrow_mut() = Some(pcall.clone());
        install_hook(&lua, &state, INSTRUCTIONS_PER_TICK)?;
        Ok(Vm {
            globals: parts.raw_get("globals")?,
            loading: parts.raw_get("loading")?,
            of_globals: parts.raw_get("of_globals")?,
            calls: Rc::new(Calls { xpcall: parts.raw_get("xpcall")?, invoke: parts.raw_get("invoke")?, handler }),
            pcall,
            lua,
            state,
            kind,
            scripts: HashMap::default(),
            libraries: std::collections::HashMap::new(),
        })
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// Sets the cap for scripts to come.
    pub fn set_memory_max(&mut self, bytes: usize) {
        self.state.memory_max.set(bytes);
    }

    /// Forgets compiled scripts.
    pub fn forget_scripts(&mut self) {
        self.scripts.clear();
    }

    /// Whether it holds so much that a fresh one should take its place.
    pub fn is_worn(&self) -> bool {
        let max = self.state.memory_max.get();
        max > 0 && self.lua.used_memory() > max / 2
    }

    /// Compiles a script unless it is compiled already.
    ///
    /// # Errors
    /// Lua's text.
    pub fn compile(&mut self, script: &Script) -> Result<Rc<Function>, String> {
        if let Some(function) = self.scripts.get(&script.sha) {
            return Ok(function.clone());
        }
        let function = api::chunk(&self.lua, script.code(), b"@user_script")
            .map_err(|error| text_of(&self.lua, &self.state, &error))?;
        let function = Rc::new(function);
        self.scripts.insert(script.sha, function.clone());
        Ok(function)
    }

    /// Runs a script that [`Vm::compile`] has accepted.
    pub fn eval(&mut self, host: &mut dyn Host, function: &Function, run: Run<'_>, out: &mut Reply) -> Ended {
        self.begin();
        let (keys, args) = match self.tables(run) {
            Ok(tables) => tables,
            Err(error) => return self.broken(run, &error),
        };
        let set = self.globals.raw_set("KEYS", keys).and_then(|()| self.globals.raw_set("ARGV", args));
        if let Err(error) = set {
            return self.broken(run, &error);
        }
        let calls = self.calls.clone();
        self.finish(host, run, out, move || calls.xpcall.call((function, &calls.handler)))
    }

    /// Calls a function of a library, which is loaded first if need be.
    pub fn call(&mut self, host: &mut dyn Host, library: &Library, name: &str, run: Run<'_>, out: &mut Reply) -> Ended {
        if !self.libraries.contains_key(&library.id)
            && let Err(text) = self.load_into(library)
        {
            return Ended::Failed(Failure { text: [b"ERR ", text.as_bytes()].concat(), counted: false });
        }
        let function = self.libraries.get(&library.id).and_then(|functions| functions.get(name)).cloned();
        let Some(function) = function else {
            return Ended::Failed(Failure { text: b"ERR Function not found".to_vec(), counted: false });
        };
        self.begin();
        let (keys, args) = match self.tables(run) {
            Ok(tables) => tables,
            Err(error) => return self.broken(run, &error),
        };
        let calls = self.calls.clone();
        self.finish(host, run, out, move || calls.invoke.call((function, &calls.handler, keys, args)))
    }

    /// Runs the text of a library and returns what it registers. `limited`: it has half a second.
    ///
    /// # Errors
    /// The text of the error reply, without `ERR `.
    pub fn load(&mut self, code: &[u8], line_len: usize, limited: bool) -> Result<Vec<LibraryFunction>, String> {
        Ok(self.run_library(code, line_len, limited)?.into_iter().map(|(function, _)| function).collect())
    }

    /// Keeps the interpreters' copies of these libraries alone.
    pub fn keep_libraries(&mut self, is_current: impl Fn(u64) -> bool) {
        self.libraries.retain(|id, _| is_current(*id));
    }

    fn load_into(&mut self, library: &Library) -> Result<(), String> {
        let functions = self.run_library(&library.code, library.line_len, false)?;
        let functions = functions.into_iter().map(|(function, callback)| (function.name, callback)).collect();
        self.libraries.insert(library.id, functions);
        Ok(())
    }

    fn run_library(
        &mut self,
        code: &[u8],
        line_len: usize,
        limited: bool,
    ) -> Result<Vec<(LibraryFunction, Function)>, String> {
        let code = code.get(line_len..).unwrap_or_default();
        let chunk = api::chunk(&self.lua, code, b"@user_function")
            .map_err(|error| format!("Error compiling function: {}", text_of(&self.lua, &self.state, &error)))?;
        self.begin();
        let until = limited.then(|| Instant::now() + LOAD_TIME);
        *self.state.load.borrow_mut() = Some(Load { functions: Vec::new(), until });
        let _ = self.of_globals.raw_set("__index", &self.loading);
        set_cap(&self.lua, self.state.memory_max.get());
        let ran = self.pcall.call::<(bool, Value)>(chunk);
        set_cap(&self.lua, 0);
        let _ = self.of_globals.raw_set("__index", &self.globals);
        let load = self.state.load.borrow_mut().take();
        let timed_out = self.state.dying.get() == Dying::LoadTimeout;
        self.revive();
        let failed = |text: String| Err(format!("Error registering functions: {text}"));
        if timed_out {
            return failed("ERR FUNCTION LOAD timeout".to_owned());
        }
        match ran {
            Ok((true, _)) => Ok(load.map(|load| load.functions).unwrap_or_default()),
            Ok((false, error)) => failed(self.load_error(&error)),
            Err(error) => failed(format!("ERR {}", text_of(&self.lua, &self.state, &error))),
        }
    }

    fn load_error(&self, error: &Value) -> String {
        let value = match error {
            Value::Error(error) => native::reveal(&self.lua, &self.state, error).unwrap_or(Value::Nil),
            other => other.clone(),
        };
        match &value {
            Value::Table(table) => match table.raw_get::<Value>("err") {
                Ok(Value::String(text)) => String::from_utf8_lossy(&text.as_bytes()).into_owned(),
                _ => "(null)".to_owned(),
            },
            Value::String(text) => format!("ERR {}", String::from_utf8_lossy(&text.as_bytes())),
            other => format!("ERR {}", other.to_string().unwrap_or_default()),
        }
    }

    fn begin(&mut self) {
        self.state.resp3.set(false);
        self.state.steps.set(0);
        set_cap(&self.lua, 0);
    }

    /// After a script that was ended: the next one runs as if nothing had been.
    fn revive(&mut self) {
        if self.state.dying.replace(Dying::No) != Dying::No {
            // It fails only without memory, and then the interpreter is replaced.
            let _ = install_hook(&self.lua, &self.state, INSTRUCTIONS_PER_TICK);
        }
    }

    fn tables(&self, run: Run<'_>) -> mlua::Result<(Table, Table)> {
        let mut all = run.args.iter();
        let keys = self.lua.create_sequence_from(all.by_ref().take(run.keys).map(BStr::new))?;
        let args = self.lua.create_sequence_from(all.map(BStr::new))?;
        Ok((keys, args))
    }

    fn finish(
        &mut self,
        host: &mut dyn Host,
        run: Run<'_>,
        out: &mut Reply,
        start: impl FnOnce() -> mlua::Result<(bool, Value)>,
    ) -> Ended {
        let before = out.len();
        set_cap(&self.lua, self.state.memory_max.get());
        let ended = HOST.set(host, || {
            let ran = start();
            set_cap(&self.lua, 0);
            match ran {
                Ok((true, value)) if self.state.dying.get() == Dying::No => {
                    match convert::to_reply(&self.lua, &self.state, &value, self.state.resp3.get(), out) {
                        Ok(returned) => Ended::Done(returned.errors),
                        Err(error) => self.broken(run, &error),
                    }
                }
                Ok((true, _)) => self.ended_by_host(run),
                Ok((false, error)) => self.failed(run, &error),
                Err(error) => self.broken(run, &error),
            }
        });
        let ended = if self.state.dying.get() == Dying::Restart { Ended::Restart } else { ended };
        if !matches!(ended, Ended::Done(_)) {
            out.truncate(before);
        }
        self.revive();
        self.sweep();
        ended
    }

    /// Gives back the memory of a script that used much.
    fn sweep(&self) {
        if self.lua.used_memory() > GARBAGE_MAX {
            let _ = self.lua.gc_collect();
        }
    }

    fn ended_by_host(&self, run: Run<'_>) -> Ended {
        let text = format!("{KILLED} script: {}, on @user_script:0.", run.name);
        Ended::Failed(Failure { text: text.into_bytes(), counted: false })
    }

    /// An error that came as an object of the binding or from the binding itself.
    fn broken(&self, run: Run<'_>, error: &mlua::Error) -> Ended {
        if self.state.dying.get() == Dying::Killed {
            return self.ended_by_host(run);
        }
        let text = text_of(&self.lua, &self.state, error);
        let text = format!("ERR Error running script {}, {}", run.name, text.chars().take(100).collect::<String>());
        Ended::Failed(Failure { text: text.into_bytes(), counted: false })
    }

    /// The table that the handler made of an error, as an error reply.
    fn failed(&self, run: Run<'_>, error: &Value) -> Ended {
        let Value::Table(table) = error else {
            let why = match error {
                Value::String(text) => String::from_utf8_lossy(&text.as_bytes()).chars().take(100).collect(),
                _ => "execution failure".to_owned(),
            };
            let text = format!("ERR Error running script {}, {why}", run.name);
            return Ended::Failed(Failure { text: text.into_bytes(), counted: false });
        };
        let text_field = |name: &str| match table.raw_get::<Value>(name) {
            Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
            Ok(number @ (Value::Integer(_) | Value::Number(_))) => {
                let mut text = Vec::new();
                cjson::write_g(&mut text, native::number_of(&self.lua, &number).unwrap_or(0.0), 14);
                Some(text)
            }
            _ => None,
        };
        let mut text = text_field("err").unwrap_or_else(|| b"ERR unknown error".to_vec());
        if let Some(end) = text.iter().position(|byte| *byte == 0) {
            text.truncate(end);
        }
        if let (Some(source), Some(line)) = (text_field("source"), text_field("line")) {
            text.extend_from_slice(b" script: ");
            text.extend_from_slice(run.name.as_bytes());
            text.extend_from_slice(b", on ");
            text.extend_from_slice(&source);
            text.push(b':');
            text.extend_from_slice(&line);
            text.push(b'.');
        }
        let counted = matches!(table.raw_get::<Value>("ignore_error_stats_update"), Ok(Value::Boolean(true)));
        Ended::Failed(Failure { text, counted })
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

fn text_of(lua: &Lua, state: &State, error: &mlua::Error) -> String {
    match native::reveal(lua, state, error) {
        Ok(Value::String(text)) => String::from_utf8_lossy(&text.as_bytes()).into_owned(),
        _ => error.to_string(),
    }
}

/// The functions that the prelude puts where scripts find them.
fn natives(lua: &Lua, state: &Rc<State>, kind: Kind) -> mlua::Result<Table> {
    let module = |functions: &[(&str, native::Native)]| {
        let table = lua.create_table()?;
        for (name, function) in functions {
            table.raw_set(*name, native::function(lua, state, *function)?)?;
        }
        Ok::<Table, mlua::Error>(table)
    };
    let native = module(api::PRELUDE)?;
    native.raw_set("call", api::call_function(lua, state, true)?)?;
    native.raw_set("redis_pcall", api::call_function(lua, state, false)?)?;
    let redis = module(api::REDIS)?;
    for (name, number) in api::CONSTANTS {
        redis.raw_set(*name, *number)?;
    }
    redis.raw_set("REDIS_VERSION", api::REDIS_VERSION)?;
    if kind == Kind::Eval {
        for (name, function) in api::REDIS_EVAL {
            redis.raw_set(*name, native::function(lua, state, *function)?)?;
        }
    }
    native.raw_set("redis", redis)?;
    let strings = module(pattern::FUNCTIONS)?;
    let of_gmatch = state.clone();
    strings.raw_set(
        "gmatch",
        lua.create_function(move |lua, args: MultiValue| {
            let _uncapped = native::Uncapped::begin(lua, &of_gmatch);
            pattern::gmatch(&native::Call { lua, state: &of_gmatch, args, frames: std::cell::Cell::new(0) }, &of_gmatch)
        })?,
    )?;
    native.raw_set("string", strings)?;
    let json = module(cjson::FUNCTIONS)?;
    json.raw_set("null", Value::NULL)?;
    json.raw_set("_NAME", "cjson")?;
    json.raw_set("_VERSION", "2.1.0")?;
    native.raw_set("cjson", json)?;
    let msgpack = module(cmsgpack::FUNCTIONS)?;
    for (name, text) in cmsgpack::TEXTS {
        msgpack.raw_set(*name, *text)?;
    }
    native.raw_set("cmsgpack", msgpack)?;
    native.raw_set("bit", module(bits::FUNCTIONS)?)?;
    native.raw_set("struct", module(structs::FUNCTIONS)?)?;
    Ok(native)
}

/// Has the host asked every so many instructions. A script that is to end meets an error at each further instruction,
/// so that no `pcall` of its own keeps it alive.
fn install_hook(lua: &Lua, state: &Rc<State>, instructions: u32) -> mlua::Result<()> {
    let of_hook = state.clone();
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(instructions), move |lua, _| {
        let state = &of_hook;
        if state.dying.get() == Dying::No {
            state.dying.set(verdict(state));
            if state.dying.get() == Dying::No {
                return Ok(VmState::Continue);
            }
        }
        install_hook(lua, state, 1)?;
        state.check_dying()?;
        Ok(VmState::Continue)
    })
}

fn verdict(state: &State) -> Dying {
    if let Some(load) = state.load.borrow().as_ref() {
        let is_late = load.until.is_some_and(|until| Instant::now() >= until);
        return if is_late { Dying::LoadTimeout } else { Dying::No };
    }
    if !HOST.is_set() {
        return Dying::No;
    }
    match HOST.with(|host| host.tick()) {
        Tick::Continue => Dying::No,
        Tick::Kill => Dying::Killed,
        Tick::Restart => Dying::Restart,
    }
}
