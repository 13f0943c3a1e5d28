//! The store of a single manager: one file, safe against crashes at any moment.
//!
//! ```text
//! documents   name  → (version, text)
//! events      id    → JSON
//! counters    revision, term, next_event → number
//! ```
//!
//! The file belongs to one process; a second one is refused. Within the process one candidate leads until it resigns.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::*;

const DOCUMENTS: TableDefinition<'_, &str, (u64, &str)> = TableDefinition::new("documents");
const EVENTS: TableDefinition<'_, u64, &str> = TableDefinition::new("events");
const COUNTERS: TableDefinition<'_, &str, u64> = TableDefinition::new("counters");
/// How much of the file is kept in memory: records are small.
const CACHE_BYTES: usize = 4 << 20;

/// A store in one file.
pub struct Embedded {
    database: Database,
    path: PathBuf,
    kept_events: u64,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// What waiters wait for, and who leads.
#[derive(Default)]
struct Shared {
    revision: u64,
    leader: Option<(Leader, Arc<LeadershipState>)>,
}

impl Embedded {
    /// Opens the file, and makes it when there is none.
    ///
    /// # Errors
    /// [`StoreError::Occupied`] when another process has it, [`StoreError::Broken`] when it is none of ours or damaged.
    pub fn open(path: &Path) -> Result<Embedded, StoreError> {
        Embedded::open_keeping(path, KEPT_EVENTS)
    }

    /// As [`Embedded::open`], with the number of events that the audit log keeps.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open_keeping(path: &Path, kept_events: u64) -> Result<Embedded, StoreError> {
        let shown = path.display();
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Occupied(format!(
                "{shown} is in use by another manager: stop that one, or give several managers etcd"
            )),
            DatabaseError::Storage(redb::StorageError::Io(error)) => {
                StoreError::Broken(format!("cannot open {shown}: {error}"))
            }
            error => {
                StoreError::Broken(format!("cannot open {shown}: {error}; restore it from a copy, or move it away"))
            }
        })?;
        let embedded = Embedded {
            database,
            path: path.to_path_buf(),
            kept_events,
            shared: Mutex::new(Shared::default()),
            changed: Condvar::new(),
        };
        let revision = embedded.write(|transaction| {
            // Made here, so that reading never meets a file without them.
            transaction.open_table(DOCUMENTS).map_err(broken)?;
            transaction.open_table(EVENTS).map_err(broken)?;
            counter(&transaction.open_table(COUNTERS).map_err(broken)?, "revision")
        })?;
        embedded.shared().revision = revision;
        Ok(embedded)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `body` in a transaction that is on disk when this returns, or not done at all.
    fn write<T>(&self, body: impl FnOnce(&WriteTransaction) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let transaction = self.database.begin_write().map_err(broken)?;
        let value = body(&transaction)?;
        transaction.commit().map_err(broken)?;
        Ok(value)
    }

    fn note(&self, transaction: &WriteTransaction, events: &[NewEvent]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let mut table = transaction.open_table(EVENTS).map_err(broken)?;
        let mut counters = transaction.open_table(COUNTERS).map_err(broken)?;
        for event in events {
            let id = next(&mut counters, "next_event")?;
            let json = serde_json::to_string(event).map_err(broken)?;
            table.insert(id, json.as_str()).map_err(broken)?;
            if let Some(old) = id.checked_sub(self.kept_events) {
                table.remove(old).map_err(broken)?;
            }
        }
        Ok(())
    }
}

impl Coordinator for Embedded {
    fn describe(&self) -> String {
        format!("embedded store {}", self.path.display())
    }

    fn load(&self, name: &str) -> Result<Option<Document>, StoreError> {
        let transaction = self.database.begin_read().map_err(broken)?;
        let table = transaction.open_table(DOCUMENTS).map_err(broken)?;
        let found = table.get(name).map_err(broken)?;
        Ok(found.map(|guard| {
            let (version, text) = guard.value();
            Document { text: text.to_string(), version: Version(version) }
        }))
    }

    fn replace(
        &self,
        leadership: &Leadership,
        name: &str,
        expected: Version,
        text: &str,
        events: &[NewEvent],
    ) -> Result<Version, StoreError> {
        // Held to the end: nobody takes the lead between the look and the writing.
        let mut shared = self.shared();
        if leadership.is_lost() || shared.leader.as_ref().is_none_or(|(leader, _)| leader.term != leadership.term) {
            return Err(StoreError::NotLeader);
        }
        let version = self.write(|transaction| {
            let mut table = transaction.open_table(DOCUMENTS).map_err(broken)?;
            let current = table.get(name).map_err(broken)?.map_or(0, |guard| guard.value().0);
            if current != expected.0 {
                return Err(StoreError::Conflict);
            }
            let version = next(&mut transaction.open_table(COUNTERS).map_err(broken)?, "revision")?;
            table.insert(name, (version, text)).map_err(broken)?;
            self.note(transaction, events)?;
            Ok(version)
        })?;
        shared.revision = version;
        drop(shared);
        self.changed.notify_all();
        Ok(Version(version))
    }

    fn wait_newer(&self, name: &str, known: Version, limit: Duration) -> Result<Option<Document>, StoreError> {
        let end = Instant::now() + limit;
        loop {
            let seen = self.shared().revision;
            if let Some(document) = self.load(name)?.filter(|document| document.version > known) {
                return Ok(Some(document));
            }
            let mut shared = self.shared();
            while shared.revision == seen {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                shared = self.changed.wait_timeout(shared, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn append(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        self.write(|transaction| self.note(transaction, events))
    }

    fn events(&self, from: EventsFrom, limit: usize) -> Result<Vec<Event>, StoreError> {
        let transaction = self.database.begin_read().map_err(broken)?;
        let table = transaction.open_table(EVENTS).map_err(broken)?;
        let mut events = Vec::new();
        let mut read =
            |entry: Result<(redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &str>), redb::StorageError>| {
                let (id, json) = entry.map_err(broken)?;
                let event = serde_json::from_str(json.value()).map_err(broken)?;
                events.push(Event { id: id.value(), event });
                Ok::<(), StoreError>(())
            };
        match from {
            EventsFrom::After(id) => {
                for entry in table.range(id.saturating_add(1)..).map_err(broken)?.take(limit) {
                    read(entry)?;
                }
            }
            EventsFrom::Before(id) => {
                for entry in table.range(..id).map_err(broken)?.rev().take(limit) {
                    read(entry)?;
                }
            }
        }
        Ok(events)
    }

    fn campaign(&self, candidate: &Candidate) -> Result<Standing, StoreError> {
        let mut shared = self.shared();
        if let Some((leader, _)) = &shared.leader {
            return Ok(Standing::Follows(leader.clone()));
        }
        let term = self.write(|transaction| next(&mut transaction.open_table(COUNTERS).map_err(broken)?, "term"))?;
        let state = LeadershipState::new(Instant::now(), u64::MAX);
        let leader = Leader { candidate: candidate.clone(), term: Term(term) };
        shared.leader = Some((leader, Arc::clone(&state)));
        Ok(Standing::Leads(Leadership { term: Term(term), token: term, state, _renewal: None }))
    }

    fn leader(&self) -> Result<Option<Leader>, StoreError> {
        Ok(self.shared().leader.as_ref().map(|(leader, _)| leader.clone()))
    }

    fn resign(&self, leadership: Leadership) {
        let mut shared = self.shared();
        if let Some((_, state)) = shared.leader.take_if(|(leader, _)| leader.term == leadership.term) {
            state.lost.store(true, Ordering::Relaxed);
        }
    }
}

fn counter(table: &impl ReadableTable<&'static str, u64>, name: &'static str) -> Result<u64, StoreError> {
    Ok(table.get(name).map_err(broken)?.map_or(0, |guard| guard.value()))
}

/// The counter's next value, from 1.
fn next(table: &mut Table<'_, &'static str, u64>, name: &'static str) -> Result<u64, StoreError> {
    let value = counter(table, name)?.saturating_add(1);
    table.insert(name, value).map_err(broken)?;
    Ok(value)
}

fn broken(error: impl std::fmt::Display) -> StoreError {
    StoreError::Broken(format!("the manager's store: {error}"))
}
