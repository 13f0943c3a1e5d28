//! The configuration of a running proxy: snapshots, CONFIG GET and CONFIG SET.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use keyspace::glob;
use parking_lot::Mutex;
use server::config::Directive;

use super::table::{Config, OWN, Own, SHARED};

/// See the module.
pub struct ConfigStore {
    current: ArcSwap<Config>,
    version: AtomicU64,
    writer: Mutex<()>,
    file: Option<PathBuf>,
}

/// A directive of either table.
#[derive(Clone, Copy)]
enum Row {
    Own(&'static Own),
    Shared(&'static Directive),
}

impl Row {
    fn find(name: &[u8]) -> Option<Row> {
        if let Some(own) = Own::find(name) {
            return Some(Row::Own(own));
        }
        let named = server::config::find(name)?;
        SHARED.contains(&named.directive.name).then_some(Row::Shared(named.directive))
    }

    fn all() -> impl Iterator<Item = Row> {
        let shared = SHARED.iter().filter_map(|name| Row::find(name.as_bytes()));
        OWN.iter().map(Row::Own).chain(shared)
    }

    fn name(self) -> &'static str {
        match self {
            Row::Own(own) => own.name,
            Row::Shared(directive) => directive.name,
        }
    }

    fn is_fixed(self) -> bool {
        match self {
            Row::Own(own) => own.is_fixed,
            // These act when the process starts; a server would change them while it runs.
            Row::Shared(directive) => {
                directive.is_fixed() || matches!(directive.name, "bind" | "port" | "dir" | "proc-title-template")
            }
        }
    }

    fn print(self, config: &Config) -> Vec<u8> {
        match self {
            Row::Own(own) => own.print(config),
            Row::Shared(directive) => directive.print(&config.base),
        }
    }

    fn set(self, config: &mut Config, value: &[u8]) -> Result<bool, String> {
        let whole = || vec![value.to_vec()];
        match self {
            Row::Own(own) => own.set(config, &whole()),
            Row::Shared(directive) if directive.kind.is_multi_argument() => {
                let words: Vec<Vec<u8>> = match value {
                    b"" => Vec::new(),
                    value => value.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect(),
                };
                directive.set(&mut config.base, &words)
            }
            Row::Shared(directive) => directive.set(&mut config.base, &whole()),
        }
    }
}

impl ConfigStore {
    /// A store that starts with `config`.
    pub fn new(config: Config, file: Option<PathBuf>) -> ConfigStore {
        ConfigStore {
            version: AtomicU64::new(config.version),
            current: ArcSwap::from_pointee(config),
            writer: Mutex::new(()),
            file,
        }
    }

    /// The present configuration.
    pub fn snapshot(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// The number of changes so far.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The configuration file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// CONFIG GET: names and values for some patterns, each name once.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(String, Vec<u8>)> {
        let config = self.snapshot();
        let is_wanted = |row: &Row| patterns.iter().any(|pattern| glob::matches(pattern, row.name().as_bytes(), true));
        Row::all().filter(is_wanted).map(|row| (row.name().to_owned(), row.print(&config))).collect()
    }

    /// CONFIG SET: names and values in turn, all of them or none. `act` is told of the names that changed.
    ///
    /// # Errors
    /// The text for the client, with its code.
    pub fn set(&self, arguments: &[&[u8]], act: impl FnOnce(&Config, &[&'static str])) -> Result<(), String> {
        let _writer = self.writer.lock();
        let mut new = Config::clone(&self.snapshot());
        let mut changed = Vec::new();
        let failed =
            |name: &str, why: &str| format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err("ERR syntax error".to_owned()) };
            let shown = String::from_utf8_lossy(name);
            let Some(row) = Row::find(name) else {
                return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"));
            };
            if row.is_fixed() {
                return Err(failed(&shown, "can't set immutable config"));
            }
            if row.set(&mut new, value).map_err(|why| failed(&shown, &why))? {
                changed.push(row.name());
            }
        }
        new.version += 1;
        act(&new, &changed);
        let version = new.version;
        self.current.store(Arc::new(new));
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}
