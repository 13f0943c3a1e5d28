//! ACL LOG: what was refused, the newest first.
//!
//! Equal refusals within a minute are one entry with a count, so that a client that tries the same thing over and over
//! does not push everything else out.

use parking_lot::Mutex;
use resp::Reply;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Refusals further apart are told apart.
const SAME_WITHIN_MS: i64 = 60_000;
/// Entries looked at for an equal one.
const LOOKED_AT: usize = 10;

/// Why something was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No right to the command.
    Command,
    /// No right to a key.
    Key,
    /// No right to a channel.
    Channel,
    /// Wrong user or password.
    Auth,
}

impl Reason {
    fn word(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// Where it was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// A command by itself.
    Toplevel,
    /// In MULTI, while queueing or at EXEC.
    Multi,
    /// In a script or function.
    Lua,
}

impl Context {
    fn word(self) -> &'static str {
        match self {
            Context::Toplevel => "toplevel",
            Context::Multi => "multi",
            Context::Lua => "lua",
        }
    }
}

/// A refusal to be noted.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// Where.
    pub context: Context,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// Who.
    pub user: Vec<u8>,
    /// The client as CLIENT INFO shows it.
    pub client: Vec<u8>,
}

struct Entry {
    id: u64,
    count: u64,
    refusal: Refusal,
    created_ms: i64,
    updated_ms: i64,
}

#[derive(Default)]
struct Entries {
    next_id: u64,
    list: VecDeque<Entry>,
}

/// See the module.
#[derive(Default)]
pub struct AclLog {
    entries: Mutex<Entries>,
    auth: AtomicU64,
    command: AtomicU64,
    key: AtomicU64,
    channel: AtomicU64,
}

impl AclLog {
    fn counter(&self, reason: Reason) -> &AtomicU64 {
        match reason {
            Reason::Command => &self.command,
            Reason::Key => &self.key,
            Reason::Channel => &self.channel,
            Reason::Auth => &self.auth,
        }
    }

    /// How often something was refused for a reason (INFO `acl_access_denied_*`).
    pub fn count(&self, reason: Reason) -> u64 {
        self.counter(reason).load(Ordering::Relaxed)
    }

    /// Sets the counts back (CONFIG RESETSTAT).
    pub fn reset_counts(&self) {
        for reason in [Reason::Auth, Reason::Command, Reason::Key, Reason::Channel] {
            self.counter(reason).store(0, Ordering::Relaxed);
        }
    }

    /// Notes a refusal at `now_ms` (Unix ms); at most `max_len` entries are kept (`acllog-max-len`). Returns the number of
    /// its entry.
    pub fn add(&self, refusal: Refusal, now_ms: i64, max_len: usize) -> u64 {
        self.counter(refusal.reason).fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock();
        let is_same = |entry: &Entry| {
            let known = &entry.refusal;
            known.reason == refusal.reason
                && known.context == refusal.context
                && (entry.updated_ms - now_ms).abs() <= SAME_WITHIN_MS
                && known.object == refusal.object
                && known.user == refusal.user
        };
        let same = entries.list.iter().take(LOOKED_AT).position(is_same);
        if let Some(mut entry) = same.and_then(|at| entries.list.remove(at)) {
            entry.count += 1;
            entry.updated_ms = now_ms;
            entry.refusal.client = refusal.client;
            let id = entry.id;
            entries.list.push_front(entry);
            return id;
        }
        let id = entries.next_id;
        entries.next_id += 1;
        entries.list.push_front(Entry { id, count: 1, refusal, created_ms: now_ms, updated_ms: now_ms });
        entries.list.truncate(max_len);
        id
    }

    /// Completes what is known of the client of an entry.
    pub fn describe_client(&self, id: u64, client: Vec<u8>) {
        if let Some(entry) = self.entries.lock().list.iter_mut().take(LOOKED_AT).find(|entry| entry.id == id) {
            entry.refusal.client = client;
        }
    }

    /// Forgets all entries.
    pub fn clear(&self) {
        self.entries.lock().list.clear();
    }

    /// Writes the newest `count` entries.
    pub fn write(&self, reply: &mut Reply, count: usize, now_ms: i64) {
        let entries = self.entries.lock();
        reply.array(count.min(entries.list.len()));
        for entry in entries.list.iter().take(count) {
            let refusal = &entry.refusal;
            reply.map(10);
            reply.bulk("count");
            reply.int(i64::try_from(entry.count).unwrap_or(i64::MAX));
            reply.bulk("reason");
            reply.bulk(refusal.reason.word());
            reply.bulk("context");
            reply.bulk(refusal.context.word());
            reply.bulk("object");
            reply.bulk(&refusal.object);
            reply.bulk("username");
            reply.bulk(&refusal.user);
            reply.bulk("age-seconds");
            #[allow(clippy::cast_precision_loss)]
            reply.double((now_ms - entry.updated_ms) as f64 / 1000.0);
            reply.bulk("client-info");
            reply.bulk(&refusal.client);
            reply.bulk("entry-id");
            reply.int(i64::try_from(entry.id).unwrap_or(i64::MAX));
            reply.bulk("timestamp-created");
            reply.int(entry.created_ms);
            reply.bulk("timestamp-last-updated");
            reply.int(entry.updated_ms);
        }
    }
}
