//! Function libraries: what FUNCTION LOAD registers, shared by all threads.
//!
//! The registry holds texts and descriptions. The functions themselves live in interpreters: each runs a library's text
//! when one of its functions is first called there, so a library's local variables are one interpreter's own.

use crate::cache::Traits;
use crate::native::{Call, Raise, number_of, with_code};
use crate::shebang::{BAD_NAME, ScriptFlags, is_name};
use arc_swap::ArcSwap;
use mlua::{MultiValue, Table, Value};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// One function of a library.
#[derive(Debug)]
pub struct LibraryFunction {
    /// Its name, unique over all libraries.
    pub name: String,
    /// What the library says of it.
    pub description: Option<Vec<u8>>,
    /// Its flags.
    pub flags: ScriptFlags,
    traits: Traits,
}

impl LibraryFunction {
    /// What its runs have shown of it.
    pub fn traits(&self) -> &Traits {
        &self.traits
    }
}

/// One library.
#[derive(Debug)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// Its whole text, with the first line.
    pub code: Arc<[u8]>,
    /// Length of the first line.
    pub line_len: usize,
    /// Its functions, by name.
    pub functions: Vec<Arc<LibraryFunction>>,
    /// Never used twice.
    pub id: u64,
}

/// Libraries and functions of one moment.
#[derive(Clone, Default, Debug)]
pub struct LibrarySet {
    libraries: BTreeMap<String, Arc<Library>>,
    functions: BTreeMap<String, (Arc<Library>, Arc<LibraryFunction>)>,
}

impl LibrarySet {
    /// All libraries by name.
    pub fn libraries(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    /// A library.
    pub fn library(&self, name: &str) -> Option<&Arc<Library>> {
        self.libraries.get(name)
    }

    /// A function and its library.
    pub fn function(&self, name: &str) -> Option<&(Arc<Library>, Arc<LibraryFunction>)> {
        self.functions.get(name)
    }

    /// How many libraries and functions.
    pub fn counts(&self) -> (usize, usize) {
        (self.libraries.len(), self.functions.len())
    }

    /// Takes a library out.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Library>> {
        let library = self.libraries.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&function.name);
        }
        Some(library)
    }

    /// Puts a library in.
    ///
    /// # Errors
    /// A function of that name is in another library; the text of the error reply without `ERR `.
    pub fn insert(&mut self, library: Arc<Library>) -> Result<(), Cow<'static, str>> {
        for function in &library.functions {
            if self.functions.contains_key(&function.name) {
                return Err(format!("Function {} already exists", function.name).into());
            }
        }
        for function in &library.functions {
            self.functions.insert(function.name.clone(), (library.clone(), function.clone()));
        }
        self.libraries.insert(library.name.clone(), library);
        Ok(())
    }

    /// Bytes of all texts and tables, an estimate.
    pub fn used_bytes(&self) -> usize {
        let of_library = |library: &Arc<Library>| {
            let functions: usize = library
                .functions
                .iter()
                .map(|function| {
                    size_of::<LibraryFunction>()
                        + 2 * function.name.len()
                        + function.description.as_ref().map_or(0, Vec::len)
                        + 64
                })
                .sum();
            size_of::<Library>() + library.code.len() + 2 * library.name.len() + functions + 64
        };
        self.libraries.values().map(of_library).sum()
    }
}

/// The registry.
#[derive(Default)]
pub struct Libraries {
    current: ArcSwap<LibrarySet>,
    change: Mutex<()>,
    ids: AtomicU64,
}

impl Libraries {
    /// What there is now.
    pub fn current(&self) -> Arc<LibrarySet> {
        self.current.load_full()
    }

    /// Makes a library of what an interpreter has found in a text.
    pub fn library(&self, name: String, code: &[u8], line_len: usize, functions: Vec<LibraryFunction>) -> Arc<Library> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let functions = functions.into_iter().map(Arc::new).collect();
        Arc::new(Library { name, code: code.into(), line_len, functions, id })
    }

    /// Changes the registry in one step, or not at all.
    ///
    /// # Errors
    /// What `change` returns.
    pub fn change<R, E>(&self, change: impl FnOnce(&mut LibrarySet) -> Result<R, E>) -> Result<R, E> {
        let _only = self.change.lock();
        let mut set = LibrarySet::clone(&self.current.load());
        let result = change(&mut set)?;
        self.current.store(Arc::new(set));
        Ok(result)
    }
}

// ---- redis.register_function ---------------------------------------------------------------------------------------

/// What a library has registered so far.
pub(crate) struct Load {
    pub(crate) functions: Vec<(LibraryFunction, mlua::Function)>,
    /// When its time is over.
    pub(crate) until: Option<Instant>,
}

pub(crate) fn register(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.state.load.borrow().is_none() {
        return Err(call.api_error("redis.register_function can only be called on FUNCTION LOAD command"));
    }
    let registered = match (call.len(), call.arg(0)) {
        (1, Value::Table(named)) => read_named(call, named),
        (1, _) => Err(
            "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).",
        ),
        (2, _) => read_positional(call),
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let (function, callback) = registered.map_err(|text| call.api_error(text))?;
    if !is_name(function.name.as_bytes()) {
        return Err(call.api_error(BAD_NAME));
    }
    let mut load = call.state.load.borrow_mut();
    let Some(load) = load.as_mut() else { return Ok(MultiValue::new()) };
    if load.functions.iter().any(|(other, _)| other.name == function.name) {
        return Err(Raise::Table { err: with_code(b"Function already exists in the library"), counted: false }.into());
    }
    load.functions.push((function, callback));
    Ok(MultiValue::new())
}

type Registered = Result<(LibraryFunction, mlua::Function), &'static str>;

fn text_of(call: &Call<'_>, value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(_) | Value::Number(_) => {
            call.lua.coerce_string(value.clone()).ok().flatten().map(|text| text.as_bytes().to_vec())
        }
        _ => None,
    }
}

fn made(name: &[u8], description: Option<Vec<u8>>, flags: ScriptFlags, callback: mlua::Function) -> Registered {
    let name = String::from_utf8_lossy(name).into_owned();
    Ok((LibraryFunction { name, description, flags, traits: Traits::default() }, callback))
}

fn read_positional(call: &Call<'_>) -> Registered {
    let Some(name) = text_of(call, call.arg(0)) else {
        return Err("first argument to redis.register_function must be a string");
    };
    let Value::Function(callback) = call.arg(1) else {
        return Err("second argument to redis.register_function must be a function");
    };
    made(&name, None, ScriptFlags::default(), callback.clone())
}

fn read_named(call: &Call<'_>, named: &Table) -> Registered {
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, ScriptFlags::default());
    for pair in named.pairs::<Value, Value>() {
        let Ok((key, value)) = pair else { break };
        let Some(key) = text_of(call, &key) else {
            return Err("named argument key given to redis.register_function is not a string");
        };
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => {
                name = Some(
                    text_of(call, &value)
                        .ok_or("function_name argument given to redis.register_function must be a string")?,
                );
            }
            b"description" => {
                description = Some(
                    text_of(call, &value)
                        .ok_or("description argument given to redis.register_function must be a string")?,
                );
            }
            b"callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => return Err("callback argument given to redis.register_function must be a function"),
            },
            b"flags" => match value {
                Value::Table(list) => flags = read_flags(call, &list)?,
                _ => {
                    return Err(
                        "flags argument to redis.register_function must be a table representing function flags",
                    );
                }
            },
            _ => return Err("unknown argument given to redis.register_function"),
        }
    }
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let callback = callback.ok_or("redis.register_function must get a callback argument")?;
    made(&name, description, flags, callback)
}

fn read_flags(call: &Call<'_>, list: &Table) -> Result<ScriptFlags, &'static str> {
    const UNKNOWN: &str = "unknown flag given";
    let mut flags = ScriptFlags::default();
    for index in 1.. {
        let value: Value = list.raw_get(index).map_err(|_| UNKNOWN)?;
        if value.is_nil() {
            break;
        }
        let name = text_of(call, &value).filter(|_| number_of(call.lua, &value).is_none()).ok_or(UNKNOWN)?;
        let known = ScriptFlags::NAMED.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(&name));
        flags = flags.with(known.ok_or(UNKNOWN)?.1);
    }
    Ok(flags)
}
