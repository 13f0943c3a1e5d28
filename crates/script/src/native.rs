//! How functions written here look to a script: arguments checked with the texts of Lua's auxiliary library, errors
//! raised as plain strings or tables.
//!
//! A Rust callback can only raise an error object of the binding (a userdata). A [`Raise`] travels in it; whoever shows
//! an error to a script (`pcall`, `xpcall`, `coroutine.resume`, see `prelude.lua`) turns it into the string or table that
//! stands for it first.

use crate::host::{HOST, Tick};
use crate::random::Lrand48;
use mlua::{Lua, MultiValue, Table, Value};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// The error of a script killed by SCRIPT KILL.
pub(crate) const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";

/// Steps of a library's loop between two questions to the host.
const STEPS_PER_TICK: u32 = 65_536;

/// How a script ends before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Dying {
    #[default]
    No,
    Killed,
    Restart,
    /// FUNCTION LOAD took too long.
    LoadTimeout,
}

/// What the callbacks of one interpreter share.
pub(crate) struct State {
    /// Replies of `redis.call` come in RESP3 (`redis.setresp(3)`).
    pub(crate) resp3: Cell<bool>,
    pub(crate) dying: Cell<Dying>,
    pub(crate) random: RefCell<Lrand48>,
    /// Bytes the interpreter may use.
    pub(crate) memory_max: Cell<usize>,
    /// Reply bytes of the command under way; kept so that nothing is allocated.
    pub(crate) reply: RefCell<Vec<u8>>,
    /// Functions registered by the library that is being loaded.
    pub(crate) load: RefCell<Option<crate::libraries::Load>>,
    pub(crate) steps: Cell<u32>,
    /// The error value that a function called from here has thrown, while it travels as [`Raise::Thrown`].
    pub(crate) thrown: RefCell<Option<Value>>,
    /// Lua's own `pcall`, to call functions of scripts with.
    pub(crate) pcall: RefCell<Option<mlua::Function>>,
    pub(crate) cjson: RefCell<crate::cjson::Config>,
}

impl State {
    pub(crate) fn new(memory_max: usize) -> State {
        State {
            resp3: Cell::new(false),
            dying: Cell::new(Dying::No),
            random: RefCell::default(),
            memory_max: Cell::new(memory_max),
            reply: RefCell::default(),
            load: RefCell::default(),
            steps: Cell::new(0),
            thrown: RefCell::default(),
            pcall: RefCell::default(),
            cjson: RefCell::default(),
        }
    }

    /// Counts steps of a loop in a library; asks the host now and then.
    #[inline]
    pub(crate) fn step(&self) -> mlua::Result<()> {
        let steps = self.steps.get().saturating_add(1);
        self.steps.set(steps);
        if steps < STEPS_PER_TICK { Ok(()) } else { self.ask() }
    }

    #[cold]
    fn ask(&self) -> mlua::Result<()> {
        self.steps.set(0);
        if self.dying.get() == Dying::No && HOST.is_set() {
            match HOST.with(|host| host.tick()) {
                Tick::Continue => {}
                Tick::Kill => self.dying.set(Dying::Killed),
                Tick::Restart => self.dying.set(Dying::Restart),
            }
        }
        self.check_dying()
    }

    /// The error that ends a dying script.
    pub(crate) fn check_dying(&self) -> mlua::Result<()> {
        if self.dying.get() == Dying::No { Ok(()) } else { Err(Raise::Dying.into()) }
    }

    /// Whether so many bytes may be built now.
    pub(crate) fn reserve(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        // Much to build is much to do.
        let steps = u32::try_from(bytes >> 8).unwrap_or(STEPS_PER_TICK);
        self.steps.set(self.steps.get().saturating_add(steps));
        self.step()?;
        let max = self.memory_max.get();
        if max == 0 || lua.used_memory().saturating_add(bytes) <= max {
            return Ok(());
        }
        // Garbage counts as well: it goes first.
        lua.gc_collect()?;
        if lua.used_memory().saturating_add(bytes) <= max { Ok(()) } else { Err(Raise::Text(NO_MEMORY.into()).into()) }
    }
}

/// Lua's own text for it.
pub(crate) const NO_MEMORY: &str = "not enough memory";

/// An error on its way to a script.
#[derive(Debug)]
pub(crate) enum Raise {
    /// A string.
    Text(Vec<u8>),
    /// A table with `err`; of a command that failed and was counted already, or not.
    Table { err: Vec<u8>, counted: bool },
    /// The script is being ended.
    Dying,
    /// What a function of the script has thrown: [`State::thrown`].
    Thrown,
}

impl fmt::Display for Raise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raise::Text(text) | Raise::Table { err: text, .. } => write!(f, "{}", String::from_utf8_lossy(text)),
            Raise::Dying => write!(f, "{KILLED}"),
            Raise::Thrown => write!(f, "an error of the script"),
        }
    }
}

impl std::error::Error for Raise {}

impl From<Raise> for mlua::Error {
    fn from(raise: Raise) -> mlua::Error {
        mlua::Error::external(raise)
    }
}

/// The value that a script sees for an error of the binding.
pub(crate) fn reveal(lua: &Lua, state: &State, error: &mlua::Error) -> mlua::Result<Value> {
    match error.downcast_ref::<Raise>() {
        Some(Raise::Text(text)) => Ok(Value::String(lua.create_string(text)?)),
        Some(Raise::Table { err, counted }) => Ok(Value::Table(error_table(lua, err, *counted)?)),
        Some(Raise::Thrown) => Ok(state.thrown.borrow_mut().take().unwrap_or(Value::Nil)),
        Some(Raise::Dying) => Ok(Value::Table(error_table(lua, KILLED.as_bytes(), false)?)),
        None => Ok(Value::String(lua.create_string(text_of(error))?)),
    }
}

/// The text of an error that Lua or the binding made.
fn text_of(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => text_of(cause),
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => {
            text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
        }
        mlua::Error::MemoryError(_) => NO_MEMORY.to_owned(),
        other => other.to_string(),
    }
}

/// `{err = text}`, as `redis.pcall` gives it.
pub(crate) fn error_table(lua: &Lua, err: &[u8], counted: bool) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("err", lua.create_string(err)?)?;
    if counted {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(table)
}

/// The text of an error as `redis.error_reply` and refused commands make it: with a leading `-` it has its code, else
/// `ERR` is put before it.
pub(crate) fn with_code(text: &[u8]) -> Vec<u8> {
    let (code, message): (&[u8], &[u8]) = match text {
        [b'-', rest @ ..] => match rest.iter().position(|byte| *byte == b' ') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (b"ERR", rest),
        },
        _ => (b"ERR", text),
    };
    let mut message = message;
    while let [b'\r' | b'\n', rest @ ..] | [rest @ .., b'\r' | b'\n'] = message {
        message = rest;
    }
    let mut full = code.to_vec();
    full.push(b' ');
    full.extend_from_slice(message);
    full
}

/// One call of a native function.
pub(crate) struct Call<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) state: &'a State,
    pub(crate) args: MultiValue,
    /// Frames of the binding between the function and what asks for its place.
    pub(crate) frames: Cell<usize>,
}

/// A native function.
pub(crate) type Native = fn(&Call<'_>) -> mlua::Result<MultiValue>;

/// Makes a native function callable. While it runs, the interpreter's own cap is off (an allocation that fails within
/// the binding costs much to guard against); sizes are checked with [`State::reserve`].
pub(crate) fn function(lua: &Lua, state: &Rc<State>, native: Native) -> mlua::Result<mlua::Function> {
    let state = state.clone();
    lua.create_function(move |lua, args: MultiValue| {
        let _uncapped = Uncapped::begin(lua, &state);
        native(&Call { lua, state: &state, args, frames: Cell::new(0) })
    })
}

/// The interpreter's cap is off while this lives.
pub(crate) struct Uncapped<'a> {
    lua: &'a Lua,
    memory_max: usize,
}

impl<'a> Uncapped<'a> {
    pub(crate) fn begin(lua: &'a Lua, state: &State) -> Uncapped<'a> {
        let memory_max = state.memory_max.get();
        set_cap(lua, 0);
        Uncapped { lua, memory_max }
    }
}

impl Drop for Uncapped<'_> {
    fn drop(&mut self) {
        set_cap(self.lua, self.memory_max);
    }
}

/// Sets the interpreter's cap; 0: none.
pub(crate) fn set_cap(lua: &Lua, bytes: usize) {
    // It fails only for interpreters that the binding did not make itself.
    let _ = lua.set_memory_limit(bytes);
}

impl Call<'_> {
    /// Walks over a table.
    pub(crate) fn each(&self, table: &Table, work: impl FnMut(Value, Value) -> mlua::Result<()>) -> mlua::Result<()> {
        self.frames.set(self.frames.get() + 1);
        let walked = table.for_each(work);
        self.frames.set(self.frames.get() - 1);
        walked
    }

    /// Calls a function of the script; what it throws goes on as it is.
    pub(crate) fn call_back(&self, function: &mlua::Function, args: Vec<Value>) -> mlua::Result<Value> {
        let Some(pcall) = self.state.pcall.borrow().clone() else { return Ok(Value::Nil) };
        let mut all = args;
        all.insert(0, Value::Function(function.clone()));
        set_cap(self.lua, self.state.memory_max.get());
        let called = pcall.call::<(bool, Value)>(MultiValue::from_vec(all));
        set_cap(self.lua, 0);
        match called? {
            (true, value) => Ok(value),
            (false, Value::Error(error)) => Err(*error),
            (false, thrown) => {
                *self.state.thrown.borrow_mut() = Some(thrown);
                Err(Raise::Thrown.into())
            }
        }
    }

    /// An argument, nil past the end.
    pub(crate) fn arg(&self, index: usize) -> &Value {
        self.args.get(index).unwrap_or(&Value::Nil)
    }

    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// A string error with the place of the call before it.
    pub(crate) fn error(&self, text: impl AsRef<[u8]>) -> mlua::Error {
        let mut full = place(self.lua, 1 + self.frames.get());
        full.extend_from_slice(text.as_ref());
        Raise::Text(full).into()
    }

    /// A table error: `ERR text`.
    pub(crate) fn api_error(&self, text: &str) -> mlua::Error {
        Raise::Table { err: with_code(text.as_bytes()), counted: false }.into()
    }

    /// `bad argument #n to 'name' (why)`.
    pub(crate) fn arg_error(&self, index: usize, why: &str) -> mlua::Error {
        let named = self.lua.inspect_stack(self.frames.get(), |debug| {
            let names = debug.names();
            (names.name.map(|name| name.into_owned()), names.name_what == Some("method"))
        });
        let (name, is_method) = named.unwrap_or((None, false));
        let name = name.unwrap_or_else(|| "?".to_owned());
        match (index, is_method) {
            (0, true) => self.error(format!("calling '{name}' on bad self ({why})")),
            (index, true) => self.error(format!("bad argument #{index} to '{name}' ({why})")),
            (index, false) => self.error(format!("bad argument #{} to '{name}' ({why})", index + 1)),
        }
    }

    /// The argument has the wrong type.
    pub(crate) fn type_error(&self, index: usize, wanted: &str) -> mlua::Error {
        let got = match self.args.get(index) {
            None => "no value",
            Some(value) => type_name(value),
        };
        self.arg_error(index, &format!("{wanted} expected, got {got}"))
    }

    /// A number, or a string that looks like one.
    pub(crate) fn number(&self, index: usize) -> mlua::Result<f64> {
        match number_of(self.lua, self.arg(index)) {
            Some(number) => Ok(number),
            None => Err(self.type_error(index, "number")),
        }
    }

    /// A number cut to an integer, as the C library's casts do it.
    pub(crate) fn integer(&self, index: usize) -> mlua::Result<i64> {
        self.number(index).map(cast_i64)
    }

    /// The same where the argument may be missing.
    pub(crate) fn integer_or(&self, index: usize, default: i64) -> mlua::Result<i64> {
        if self.arg(index).is_nil() { Ok(default) } else { self.integer(index) }
    }

    /// A string, or a number as its text.
    pub(crate) fn string(&self, index: usize) -> mlua::Result<mlua::LuaString> {
        match self.arg(index) {
            Value::String(string) => Ok(string.clone()),
            value @ (Value::Integer(_) | Value::Number(_)) => match self.lua.coerce_string(value.clone())? {
                Some(string) => Ok(string),
                None => Err(self.type_error(index, "string")),
            },
            _ => Err(self.type_error(index, "string")),
        }
    }

    /// The bytes of a string as the C libraries read them: up to the first NUL.
    pub(crate) fn one(&self, value: Value) -> mlua::Result<MultiValue> {
        let mut values = MultiValue::with_capacity(1);
        values.push_back(value);
        Ok(values)
    }

    /// Bytes as the one result.
    pub(crate) fn bytes(&self, bytes: impl AsRef<[u8]>) -> mlua::Result<MultiValue> {
        self.one(Value::String(self.lua.create_string(bytes)?))
    }
}

/// `source:line: ` of a function on the stack, where that is known.
pub(crate) fn place(lua: &Lua, level: usize) -> Vec<u8> {
    lua.inspect_stack(level, |debug| match debug.current_line() {
        Some(line) if line > 0 => {
            let source = debug.source().short_src.map(|source| source.into_owned()).unwrap_or_default();
            format!("{source}:{line}: ").into_bytes()
        }
        _ => Vec::new(),
    })
    .unwrap_or_default()
}

/// Lua's name for the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) | Value::Number(_) => "number",
        Value::LightUserData(_) | Value::UserData(_) | Value::Error(_) | Value::Other(_) => "userdata",
        other => other.type_name(),
    }
}

/// The number that a value is or reads as.
pub(crate) fn number_of(lua: &Lua, value: &Value) -> Option<f64> {
    match value {
        #[allow(clippy::cast_precision_loss)]
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        Value::String(_) => lua.coerce_number(value.clone()).ok().flatten(),
        _ => None,
    }
}

/// A double as a 64-bit integer, as x86 casts it: what does not fit becomes the least integer.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn cast_i64(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) { number as i64 } else { i64::MIN }
}
