//! The configuration of a running server: snapshots for readers, CONFIG GET and CONFIG SET.
//!
//! Readers take a snapshot, which costs an atomic load; a writer makes a changed copy and swaps it in.
//! CONFIG SET is all or nothing: every value is parsed first, then the server is asked to act on the
//! changes, and if it cannot, it is asked to act on the old values again.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use keyspace::glob;
use parking_lot::Mutex;

use super::directive::{Directive, Named, all_names, find};
use super::kind::Kind;
use super::rewrite;
use super::table::Config;
use crate::process::error_text;
use crate::process::log::Level;

/// The lowest and the highest `hz` that are used.
const HZ_BOUNDS: (i32, i32) = (1, 500);

/// The configuration of a running server.
pub struct ConfigStore {
    current: ArcSwap<Config>,
    /// The version of `current`, to be looked at without taking a snapshot.
    version: AtomicU64,
    /// Held by whoever changes the configuration or the file.
    writer: Mutex<()>,
    file: Option<PathBuf>,
    default: Config,
}

/// What CONFIG SET has to know about its caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetContext {
    /// Whether the client connects from this machine.
    pub client_is_local: bool,
    /// Whether a data set is being loaded.
    pub is_loading: bool,
}

/// The server cannot act on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyError {
    /// The directive that cannot be obeyed.
    pub directive: &'static str,
    /// Why, for the client.
    pub message: String,
}

/// Acts on changes: gets the configuration to act on and the directives that changed.
pub type Apply<'a> = &'a mut dyn FnMut(&Config, &[&'static Directive]) -> Result<(), ApplyError>;

impl ConfigStore {
    /// A store that starts with `config`; `file` is the file that CONFIG REWRITE writes.
    #[must_use]
    pub fn new(config: Config, file: Option<PathBuf>) -> Self {
        Self {
            version: AtomicU64::new(config.version),
            current: ArcSwap::from_pointee(config),
            writer: Mutex::new(()),
            file,
            default: Config::default(),
        }
    }

    /// The present configuration.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// The number of changes so far. A worker that keeps a snapshot compares it with
    /// [`Config::version`] to see whether to take a new one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The configuration file, if the server was started with one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// CONFIG GET: names and values for some patterns, each name once. A name without wildcards is
    /// answered as it was written.
    #[must_use]
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let config = self.snapshot();
        let mut found: Vec<(Vec<u8>, &Directive)> = Vec::new();
        let add = |found: &mut Vec<(Vec<u8>, &'static Directive)>, name: &[u8], directive| {
            if !found.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                found.push((name.to_vec(), directive));
            }
        };
        for pattern in patterns {
            if pattern.iter().any(|byte| matches!(byte, b'[' | b'*' | b'?')) {
                for Named { name, directive } in all_names() {
                    if !directive.is_hidden() && glob::matches(pattern, name.as_bytes(), true) {
                        add(&mut found, name.as_bytes(), directive);
                    }
                }
            } else if let Some(named) = find(pattern) {
                add(&mut found, pattern, named.directive);
            }
        }
        found.into_iter().map(|(name, directive)| (name, directive.print(&config))).collect()
    }

    /// CONFIG SET: `arguments` are names and values in turn. Either all of them are set and acted
    /// on, or none is. The error is a whole RESP error line without its leading `-` and its end.
    pub fn set(&self, arguments: &[&[u8]], context: SetContext, apply: Apply<'_>) -> Result<Arc<Config>, Vec<u8>> {
        let _writer = self.writer.lock();
        let old = self.snapshot();
        let pairs = named_pairs(arguments, &old, context)?;

        let mut new = Config::clone(&old);
        let mut changed: Vec<&'static Directive> = Vec::new();
        for (named, value) in &pairs {
            match set_one(&mut new, *named, value) {
                Ok(true) => changed.push(named.directive),
                Ok(false) => {}
                Err(message) => {
                    restore_directory(&old, &new);
                    return Err(set_failed(named.name.as_bytes(), &message));
                }
            }
        }
        normalize(&mut new);
        new.version += 1;
        if let Err(error) = apply(&new, &changed) {
            crate::log!(
                Level::Warning,
                "Failed applying new configuration. Possibly related to new {} setting. Restoring previous settings.",
                error.directive
            );
            restore_directory(&old, &new);
            if let Err(error) = apply(&old, &changed) {
                crate::log!(Level::Warning, "Failed applying restored failed CONFIG SET command: {}", error.message);
            }
            return Err(set_failed(error.directive.as_bytes(), &error.message));
        }
        let default = &self.default;
        for line in warnings_about(&new, changed.iter().copied().filter(|row| row.is_changed(&new, default))) {
            crate::log!(Level::Warning, "{line}");
        }
        let new = Arc::new(new);
        self.publish(Arc::clone(&new));
        Ok(new)
    }

    /// Changes the configuration from inside the server, as REPLICAOF does; no hook is called.
    pub fn update(&self, change: impl FnOnce(&mut Config)) -> Arc<Config> {
        let _writer = self.writer.lock();
        let mut new = Config::clone(&self.snapshot());
        change(&mut new);
        new.version = self.version() + 1;
        let new = Arc::new(new);
        self.publish(Arc::clone(&new));
        new
    }

    fn publish(&self, new: Arc<Config>) {
        let version = new.version;
        self.current.store(new);
        self.version.store(version, Ordering::Release);
    }

    /// CONFIG REWRITE: brings the file in line with the present values, keeping its comments and
    /// order. `statements` are lines of statements that live outside the table, such as `user`, with
    /// their names; those not named are left as they stand in the file. The error is a whole RESP
    /// error line.
    pub fn rewrite(&self, statements: &[(&str, Vec<Vec<u8>>)]) -> Result<(), Vec<u8>> {
        let Some(file) = &self.file else {
            return Err(b"ERR The server is running without a config file".to_vec());
        };
        let _writer = self.writer.lock();
        let config = self.snapshot();
        match rewrite::rewrite_file(file, &config, &self.default, statements) {
            Ok(()) => {
                crate::log!(Level::Notice, "CONFIG REWRITE executed with success.");
                Ok(())
            }
            Err(error) => {
                let error = error_text(&error);
                crate::log!(Level::Warning, "CONFIG REWRITE failed: {error}");
                Err(format!("ERR Rewriting config file: {error}").into_bytes())
            }
        }
    }
}

/// Whether the value after this name in CONFIG SET must not be shown.
#[must_use]
pub fn is_secret(name: &[u8]) -> bool {
    find(name).is_some_and(|named| named.directive.is_secret())
}

/// The lines of CONFIG HELP, to be framed by the usual help header and footer.
pub const HELP: [&str; 8] = [
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
];

/// Finds the directives of CONFIG SET and checks that they may be set.
fn named_pairs<'a>(
    arguments: &[&'a [u8]],
    config: &Config,
    context: SetContext,
) -> Result<Vec<(Named, &'a [u8])>, Vec<u8>> {
    if !arguments.len().is_multiple_of(2) {
        return Err(b"ERR syntax error".to_vec());
    }
    let mut pairs: Vec<(Named, &[u8])> = Vec::new();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else {
            continue;
        };
        let Some(named) = find(name) else {
            return Err(error_line(b"ERR Unknown option or number of arguments for CONFIG SET - '", name, "'"));
        };
        let directive = named.directive;
        if directive.is_fixed() {
            return Err(set_failed(name, "can't set immutable config"));
        }
        if directive.is_protected() && !config.enable_protected_configs.allows(context.client_is_local) {
            return Err(set_failed(name, "can't set protected config"));
        }
        if context.is_loading && directive.is_denied_while_loading() {
            return Err(b"LOADING Redis is loading the dataset in memory".to_vec());
        }
        if pairs.iter().any(|(earlier, _)| earlier.name == named.name) {
            return Err(set_failed(name, "duplicate parameter"));
        }
        pairs.push((named, value));
    }
    Ok(pairs)
}

fn set_one(config: &mut Config, named: Named, value: &[u8]) -> Result<bool, String> {
    let kind = named.directive.kind;
    if matches!(kind, Kind::Directory) {
        config.dir = change_directory(value)?;
        return Ok(true);
    }
    let arguments = if !kind.is_multi_argument() {
        vec![value.to_vec()]
    } else if value.is_empty() {
        Vec::new()
    } else {
        value.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect()
    };
    named.directive.set(config, &arguments)
}

fn restore_directory(old: &Config, new: &Config) {
    if old.dir != new.dir
        && let Err(error) = change_directory(&old.dir)
    {
        crate::log!(
            Level::Warning,
            "Failed restoring failed CONFIG SET command. Error setting dir to '{}': {error}",
            String::from_utf8_lossy(&old.dir)
        );
    }
}

/// Changes the working directory; returns its full path.
pub(super) fn change_directory(path: &[u8]) -> Result<Vec<u8>, String> {
    std::env::set_current_dir(OsStr::from_bytes(path)).map_err(|error| error_text(&error))?;
    Ok(std::env::current_dir().map(|path| path.into_os_string().into_vec()).unwrap_or_default())
}

/// Brings values that are hints into the range that is used.
pub(super) fn normalize(config: &mut Config) {
    config.hz = config.hz.clamp(HZ_BOUNDS.0, HZ_BOUNDS.1);
}

/// The warnings that the present values of these directives deserve.
pub(super) fn warnings_about(config: &Config, directives: impl Iterator<Item = &'static Directive>) -> Vec<String> {
    let mut lines = Vec::new();
    for directive in directives {
        lines.extend(directive.inert_warning());
        let [primary, replica, child] = config.oom_score_adj_values;
        if matches!(directive.kind, Kind::OomScores) && (replica < primary || child < replica) {
            lines.push(
                "The oom-score-adj-values configuration may not work for non-privileged processes! \
                 Please consult the documentation."
                    .to_owned(),
            );
        }
    }
    lines
}

fn set_failed(name: &[u8], message: &str) -> Vec<u8> {
    let rest = format!("') - {message}");
    error_line(b"ERR CONFIG SET failed (possibly related to argument '", name, &rest)
}

/// Puts an error line together; a line break in a client's name must not break the protocol.
fn error_line(start: &[u8], name: &[u8], end: &str) -> Vec<u8> {
    let mut line = start.to_vec();
    line.extend_from_slice(name);
    line.extend_from_slice(end.as_bytes());
    for byte in &mut line {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    line
}
