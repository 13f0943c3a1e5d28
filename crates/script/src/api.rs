//! The `redis` table, `math.random`, `loadstring` and the small functions that the prelude needs.

use crate::cjson::write_g;
use crate::host::{HOST, LogLevel, Refused};
use crate::native::{self, Call, Dying, Native, Raise, State, cast_i64, number_of, reveal, with_code};
use crate::{cache, convert, libraries};
use mlua::{Lua, MultiValue, Value};
use smallvec::SmallVec;
use std::rc::Rc;

/// Functions of `redis` in both interpreters.
pub(crate) const REDIS: &[(&str, Native)] = &[
    ("log", log),
    ("sha1hex", sha1hex),
    ("error_reply", error_reply),
    ("status_reply", status_reply),
    ("setresp", set_resp),
    ("set_repl", set_repl),
    ("acl_check_cmd", acl_check),
];

/// Functions of `redis` for EVAL alone.
pub(crate) const REDIS_EVAL: &[(&str, Native)] = &[
    ("breakpoint", |call| call.one(Value::Boolean(false))),
    ("debug", |_| Ok(MultiValue::new())),
    ("replicate_commands", |call| call.one(Value::Boolean(true))),
];

/// Numbers and texts of `redis`.
pub(crate) const CONSTANTS: &[(&str, i64)] = &[
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
    ("REPL_NONE", 0),
    ("REPL_AOF", AOF),
    ("REPL_SLAVE", REPLICAS),
    ("REPL_REPLICA", REPLICAS),
    ("REPL_ALL", AOF | REPLICAS),
    ("REDIS_VERSION_NUM", 0x0007_0205),
];

/// The chunk name of the prelude.
pub(crate) const PRELUDE_NAME: &str = "=prelude";

/// The version that scripts see.
pub(crate) const REDIS_VERSION: &str = "7.2.5";

const AOF: i64 = 1;
const REPLICAS: i64 = 2;

/// Functions that replace Lua's own or serve the prelude.
pub(crate) const PRELUDE: &[(&str, Native)] = &[
    ("random", random),
    ("randomseed", random_seed),
    ("reveal", |call| match call.arg(0) {
        Value::Error(error) => {
            let value = reveal(call.lua, call.state, error)?;
            call.one(value)
        }
        other => call.one(other.clone()),
    }),
    ("missing_global", missing_global),
    ("readonly", |call| Err(call.error("Attempt to modify a readonly table"))),
    ("compile", compile),
    ("collect", collect),
    ("register_function", libraries::register),
];

/// `redis.call` and `redis.pcall`.
pub(crate) fn call_function(lua: &Lua, state: &Rc<State>, raises: bool) -> mlua::Result<mlua::Function> {
    let state = state.clone();
    lua.create_function(move |lua, args: MultiValue| {
        let _uncapped = native::Uncapped::begin(lua, &state);
        command(lua, &state, &args, raises)
    })
}

fn command(lua: &Lua, state: &State, args: &MultiValue, raises: bool) -> mlua::Result<Value> {
    let outcome = with_arguments(args, |args| {
        let mut reply = state.reply.borrow_mut();
        reply.clear();
        HOST.with(|host| host.call(args, state.resp3.get(), &mut reply))
    });
    let err = match outcome {
        Err(text) => Raise::Table { err: with_code(text.as_bytes()), counted: false },
        Ok(Err(Refused::Error(text))) => Raise::Table { err: with_code(text.as_bytes()), counted: true },
        Ok(Err(Refused::Restart)) => {
            state.dying.set(Dying::Restart);
            return Err(Raise::Dying.into());
        }
        Ok(Ok(())) => {
            let mut reply = state.reply.borrow_mut();
            if raises && reply.first() == Some(&b'-') {
                let line = reply.strip_suffix(b"\r\n").unwrap_or(&reply);
                Raise::Table { err: with_code(line), counted: true }
            } else {
                if reply.len() > 1 << 16 {
                    state.reserve(lua, reply.len() * 2)?;
                }
                let value = convert::to_lua(lua, &reply)?;
                if reply.capacity() > 1 << 20 {
                    *reply = Vec::new();
                }
                return Ok(value);
            }
        }
    };
    if raises {
        return Err(err.into());
    }
    reveal(lua, state, &err.into())
}

/// Lends the arguments of a command as byte slices.
fn with_arguments<R>(args: &MultiValue, work: impl FnOnce(&[&[u8]]) -> R) -> Result<R, &'static str> {
    if args.is_empty() {
        return Err("Please specify at least one argument for this redis lib call");
    }
    enum Held {
        Bytes(mlua::BorrowedBytes),
        Text(SmallVec<[u8; 32]>),
    }
    let mut held: SmallVec<[Held; 8]> = SmallVec::with_capacity(args.len());
    for value in args {
        held.push(match value {
            Value::String(string) => Held::Bytes(string.as_bytes()),
            Value::Integer(integer) => {
                Held::Text(SmallVec::from_slice(itoa::Buffer::new().format(*integer).as_bytes()))
            }
            Value::Number(number) => {
                let mut text = Vec::new();
                let integer = cast_i64(*number);
                #[allow(clippy::cast_precision_loss, clippy::float_cmp)]
                if integer != i64::MIN && integer as f64 == *number {
                    resp::num::write_int(&mut text, integer);
                } else {
                    resp::num::write_double_grisu(&mut text, *number);
                }
                Held::Text(SmallVec::from_vec(text))
            }
            _ => return Err("Lua redis lib command arguments must be strings or integers"),
        });
    }
    let slices: SmallVec<[&[u8]; 8]> = held
        .iter()
        .map(|held| match held {
            Held::Bytes(bytes) => &**bytes,
            Held::Text(text) => text.as_slice(),
        })
        .collect();
    Ok(work(&slices))
}

fn sha1hex(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() != 1 {
        return Err(call.api_error("wrong number of arguments"));
    }
    // Redis: what is no string has the hash of the empty one.
    let text = call.string(0).ok();
    let hex = match &text {
        Some(text) => cache::sha1_hex(&text.as_bytes()),
        None => cache::sha1_hex(b""),
    };
    call.bytes(hex)
}

fn error_reply(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let text = match (call.len(), call.arg(0)) {
        (1, Value::String(text)) => text.as_bytes().to_vec(),
        _ => b"wrong number or type of arguments".to_vec(),
    };
    let full = match (call.len(), call.arg(0)) {
        (1, Value::String(_)) if text.first() == Some(&b'-') => with_code(&text),
        (1, Value::String(_)) => with_code(&[b"-", text.as_slice()].concat()),
        _ => with_code(&text),
    };
    call.one(Value::Table(native::error_table(call.lua, &full, false)?))
}

fn status_reply(call: &Call<'_>) -> mlua::Result<MultiValue> {
    match (call.len(), call.arg(0)) {
        (1, text @ Value::String(_)) => {
            let table = call.lua.create_table()?;
            table.raw_set("ok", text)?;
            call.one(Value::Table(table))
        }
        _ => {
            let full = with_code(b"wrong number or type of arguments");
            call.one(Value::Table(native::error_table(call.lua, &full, false)?))
        }
    }
}

fn set_resp(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() != 1 {
        return Err(call.api_error("redis.setresp() requires one argument."));
    }
    match cast_i64(number_of(call.lua, call.arg(0)).unwrap_or(0.0)) {
        2 => call.state.resp3.set(false),
        3 => call.state.resp3.set(true),
        _ => return Err(call.api_error("RESP version must be 2 or 3.")),
    }
    Ok(MultiValue::new())
}

fn set_repl(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() != 1 {
        return Err(call.api_error("redis.set_repl() requires one argument."));
    }
    let flags = cast_i64(number_of(call.lua, call.arg(0)).unwrap_or(0.0));
    if flags & !(AOF | REPLICAS) != 0 {
        return Err(call.api_error("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."));
    }
    if HOST.is_set() {
        HOST.with(|host| host.set_replication(flags & AOF != 0, flags & REPLICAS != 0));
    }
    Ok(MultiValue::new())
}

fn acl_check(call: &Call<'_>) -> mlua::Result<MultiValue> {
    match with_arguments(&call.args, |args| HOST.with(|host| host.acl_allows(args))) {
        Err(text) => Err(call.api_error(text)),
        Ok(None) => Err(call.api_error("Invalid command passed to redis.acl_check_cmd()")),
        Ok(Some(allowed)) => call.one(Value::Boolean(allowed)),
    }
}

fn log(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() < 2 {
        return Err(call.api_error("redis.log() requires two arguments or more."));
    }
    let Some(level) = number_of(call.lua, call.arg(0)) else {
        return Err(call.api_error("First argument must be a number (log level)."));
    };
    let level = match cast_i64(level) {
        0 => LogLevel::Debug,
        1 => LogLevel::Verbose,
        2 => LogLevel::Notice,
        3 => LogLevel::Warning,
        _ => return Err(call.api_error("Invalid debug level.")),
    };
    if !HOST.is_set() || HOST.with(|host| host.log_level()) > level {
        return Ok(MultiValue::new());
    }
    let mut message = Vec::new();
    for index in 1..call.len() {
        if let Ok(text) = call.string(index) {
            if index > 1 {
                message.push(b' ');
            }
            message.extend_from_slice(&text.as_bytes());
        }
    }
    HOST.with(|host| host.log(level, &message));
    Ok(MultiValue::new())
}

// ---- math --------------------------------------------------------------------------------------------------------

#[allow(clippy::cast_possible_truncation)]
fn small(call: &Call<'_>, index: usize) -> mlua::Result<i32> {
    Ok(call.integer(index)? as i32)
}

fn random(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let drawn = call.state.random.borrow_mut().draw() % i32::MAX;
    let ratio = f64::from(drawn) / f64::from(i32::MAX);
    let number = match call.len() {
        0 => ratio,
        1 => {
            let high = small(call, 0)?;
            if high < 1 {
                return Err(call.arg_error(0, "interval is empty"));
            }
            (ratio * f64::from(high)).floor() + 1.0
        }
        2 => {
            let (low, high) = (small(call, 0)?, small(call, 1)?);
            if low > high {
                return Err(call.arg_error(1, "interval is empty"));
            }
            (ratio * f64::from(high.wrapping_sub(low).wrapping_add(1))).floor() + f64::from(low)
        }
        _ => return Err(call.error("wrong number of arguments")),
    };
    call.one(Value::Number(number))
}

fn random_seed(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let seed = small(call, 0)?;
    call.state.random.borrow_mut().seed(seed);
    Ok(MultiValue::new())
}

// ---- for the prelude ---------------------------------------------------------------------------------------------

fn missing_global(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let name = match call.arg(1) {
        Value::String(name) => String::from_utf8_lossy(&name.as_bytes()).into_owned(),
        number @ (Value::Integer(_) | Value::Number(_)) => {
            let mut text = Vec::new();
            write_g(&mut text, number_of(call.lua, number).unwrap_or(0.0), 14);
            String::from_utf8_lossy(&text).into_owned()
        }
        _ => return Err(call.error("Second argument to luaProtectedTableError must be a string or number")),
    };
    let name = name.split('\0').next().unwrap_or_default();
    Err(call.error(format!("Script attempted to access nonexistent global variable '{name}'")))
}

/// Compiles text: the function, or nil and why not. Bytecode is text like any other, and wrong.
fn compile(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let source = call.string(0)?;
    let source = source.as_bytes();
    let name = if call.arg(1).is_nil() { source.to_vec() } else { call.string(1)?.as_bytes().to_vec() };
    match chunk(call.lua, &source, &name) {
        Ok(function) => call.one(Value::Function(function)),
        Err(error) => {
            let why = reveal(call.lua, call.state, &error)?;
            Ok(MultiValue::from_vec(vec![Value::Nil, why]))
        }
    }
}

/// Compiles a chunk under a name.
pub(crate) fn chunk(lua: &Lua, source: &[u8], name: &[u8]) -> mlua::Result<mlua::Function> {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    // Lua does not keep the name alive while it parses: we do.
    let anchor = lua.create_string(&name)?;
    // A first byte of ESC would be read as bytecode, `#` as a line to skip; behind a blank both are what they are.
    let loaded = if source.first() == Some(&27) {
        lua.load([b" ", source].concat()).set_name(name).set_mode(mlua::chunk::ChunkMode::Text).into_function()
    } else {
        lua.load(source).set_name(name).set_mode(mlua::chunk::ChunkMode::Text).into_function()
    };
    drop(anchor);
    loaded
}

/// `collectgarbage`: counts and collects; what would change how the interpreter works for others does nothing.
fn collect(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let word = if call.arg(0).is_nil() { None } else { Some(call.string(0)?.as_bytes().to_vec()) };
    match word.as_deref() {
        None | Some(b"collect") => {
            call.lua.gc_collect()?;
            call.one(Value::Integer(0))
        }
        #[allow(clippy::cast_precision_loss)]
        Some(b"count") => call.one(Value::Number(call.lua.used_memory() as f64 / 1024.0)),
        Some(b"step") => {
            let done = call.lua.gc_step()?;
            call.one(Value::Boolean(done))
        }
        Some(b"stop" | b"restart") => call.one(Value::Integer(0)),
        Some(b"setpause" | b"setstepmul") => call.one(Value::Integer(200)),
        Some(other) => {
            let other = String::from_utf8_lossy(other).into_owned();
            Err(call.arg_error(0, &format!("invalid option '{other}'")))
        }
    }
}

/// What the handler at the bottom of every script makes of an error: a table with `err`, `source` and `line`.
pub(crate) fn handle_error(lua: &Lua, state: &State, error: &Value) -> mlua::Result<Value> {
    let error = match error {
        Value::Error(error) => reveal(lua, state, error)?,
        other => other.clone(),
    };
    let table = match error {
        Value::Table(table) => table,
        other => {
            let mut text = b"ERR ".to_vec();
            match &other {
                Value::String(string) => text.extend_from_slice(&string.as_bytes()),
                Value::Nil => text.extend_from_slice(b"nil"),
                Value::Boolean(yes) => text.extend_from_slice(yes.to_string().as_bytes()),
                Value::Integer(_) | Value::Number(_) => {
                    write_g(&mut text, number_of(lua, &other).unwrap_or(0.0), 14);
                }
                other => {
                    text.extend_from_slice(
                        format!("{}: {:p}", native::type_name(other), other.to_pointer()).as_bytes(),
                    );
                }
            }
            native::error_table(lua, &text, false)?
        }
    };
    // The function that failed; if it is none of a script's own, the one that called it.
    let describe = |level: usize| {
        lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let line = debug.current_line().and_then(|line| i64::try_from(line).ok()).unwrap_or(-1);
            let text = source.source.map(|source| source.into_owned()).unwrap_or_default();
            (source.what == "C", text, line)
        })
    };
    let is_prelude =
        |frame: &Option<(bool, String, i64)>| frame.as_ref().is_some_and(|(_, source, _)| source == PRELUDE_NAME);
    let mut level = 1;
    let mut at = describe(level);
    if at.as_ref().is_some_and(|(is_c, ..)| *is_c) {
        level += 1;
        at = describe(level);
    }
    // Functions of the prelude stand for C functions of Redis. One that is called last leaves no trace of its caller.
    let mut last = at.clone();
    let mut within = false;
    while is_prelude(&at) || within && at.as_ref().is_some_and(|(_, source, _)| source == "=(tail call)") {
        within = true;
        level += 1;
        last = at.or(last);
        at = describe(level);
    }
    let at = match at {
        Some((false, ..)) => at,
        _ => last,
    };
    if let Some((_, source, line)) = at {
        table.raw_set("source", source)?;
        table.raw_set("line", line)?;
    }
    Ok(Value::Table(table))
}
