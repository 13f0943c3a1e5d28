//! Clients that write values of every kind and keep account of what they were told is done.
//!
//! Each client has ten keys (and two pairs that a transaction and a script raise together) and makes each of them one
//! larger by a write. After a fault the sizes tell what is there: fewer than acknowledged is a loss, more than one beyond
//! it a phantom, halves of a pair that differ half a transaction.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use testkit::{Client, Reply};

/// Kinds of writes.
const KINDS: usize = 10;
/// The script of the last kind.
const SCRIPT: &str = "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])";

/// What one client wrote of one kind.
#[derive(Default)]
struct Column {
    /// What was there before.
    base: u64,
    /// When each write was acknowledged.
    acked: Mutex<Vec<Instant>>,
}

/// See the module.
pub(super) struct Ledger {
    accounts: Vec<[Column; KINDS]>,
    /// Writes that were refused.
    refused: AtomicU64,
    /// The last refusal.
    refusal: Mutex<String>,
}

/// What was there after a fault.
#[derive(Default, Clone, Copy)]
pub(super) struct Found {
    pub(super) acked: u64,
    pub(super) lost: u64,
    /// How long before the fault the oldest lost write was acknowledged.
    pub(super) oldest_lost: Duration,
}

impl Found {
    /// Adds what another fault left.
    pub(super) fn add(&mut self, other: Found) {
        self.acked += other.acked;
        self.lost += other.lost;
        self.oldest_lost = self.oldest_lost.max(other.oldest_lost);
    }
}

/// Ends clients when it goes, however a row ends.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn key(kind: usize, id: usize) -> String {
    format!("ledger:{}:{id}", ["i", "l", "s", "h", "z", "x", "a", "b", "m", "e"][kind])
}

/// The other half of a pair.
fn partner(kind: usize, id: usize) -> String {
    format!("{}:other", key(kind, id))
}

fn number(reply: &Reply) -> Result<u64> {
    Ok(match reply {
        Reply::Integer(number) => u64::try_from(*number)?,
        Reply::Bulk(text) => String::from_utf8_lossy(text).parse()?,
        Reply::NullBulk | Reply::Null => 0,
        other => bail!("no number: {other}"),
    })
}

/// The sizes of a client's keys.
fn sizes(client: &mut Client, id: usize) -> Result<[u64; KINDS]> {
    const ASK: [&str; KINDS] = ["GET", "LLEN", "SCARD", "HLEN", "ZCARD", "XLEN", "STRLEN", "BITCOUNT", "GET", "GET"];
    let mut sizes = [0; KINDS];
    for (kind, size) in sizes.iter_mut().enumerate() {
        *size = number(&client.call(&[ASK[kind], &key(kind, id)])?)?;
    }
    for (kind, ask) in [(8, "LLEN"), (9, "GET")] {
        let other = number(&client.call(&[ask, &partner(kind, id)])?)?;
        ensure!(sizes[kind] == other, "half a transaction: {} has {}, its partner {other}", key(kind, id), sizes[kind]);
    }
    Ok(sizes)
}

impl Ledger {
    /// Begins an account for so many clients of a server.
    pub(super) fn open(port: u16, clients: usize) -> Result<Ledger> {
        let mut client = Client::connect(port)?;
        let mut accounts = Vec::new();
        for id in 0..clients {
            let sizes = sizes(&mut client, id)?;
            accounts.push(sizes.map(|base| Column { base, acked: Mutex::default() }));
        }
        Ok(Ledger { accounts, refused: AtomicU64::new(0), refusal: Mutex::default() })
    }

    /// Starts the clients; each ends when its connection does or at `stop`.
    pub(super) fn start<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        port: u16,
        stop: &'env AtomicBool,
    ) {
        for id in 0..self.accounts.len() {
            scope.spawn(move || {
                if let Ok(client) = Client::connect(port) {
                    // It ends when the server does: that is what most rows do to it.
                    let _ = self.write(client, id, stop);
                }
            });
        }
    }

    /// Writes refused so far.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Why the last one was refused.
    pub(super) fn refusal(&self) -> String {
        self.refusal.lock().map(|text| text.clone()).unwrap_or_default()
    }

    fn write(&self, mut client: Client, id: usize, stop: &AtomicBool) -> std::io::Result<()> {
        let Some(columns) = self.accounts.get(id) else { return Ok(()) };
        let mut round = id;
        while !stop.load(Ordering::Relaxed) {
            let kind = round % KINDS;
            round += 1;
            let column = &columns[kind];
            let done = column.acked.lock().map_or(0, |acked| acked.len() as u64);
            let next = (column.base + done + 1).to_string();
            let (key, other) = (key(kind, id), partner(kind, id));
            let reply = match kind {
                0 => client.call(&["INCR", &key])?,
                1 => client.call(&["RPUSH", &key, &next])?,
                2 => client.call(&["SADD", &key, &next])?,
                3 => client.call(&["HSET", &key, &next, &next])?,
                4 => client.call(&["ZADD", &key, &next, &next])?,
                5 => client.call(&["XADD", &key, "*", "n", &next])?,
                6 => client.call(&["APPEND", &key, "x"])?,
                7 => client.call(&["SETBIT", &key, &next, "1"])?,
                8 => {
                    let commands: [&[&str]; 4] = [&["MULTI"], &["INCR", &key], &["LPUSH", &other, &next], &["EXEC"]];
                    let mut replies = client.pipeline(&commands)?;
                    let refused = replies.iter().position(Reply::is_error);
                    match refused {
                        // The queued command tells why; EXEC only that there was something.
                        Some(index) => replies.swap_remove(index),
                        None => replies.pop().unwrap_or(Reply::Null),
                    }
                }
                _ => client.call(&["EVAL", SCRIPT, "2", &key, &other])?,
            };
            if reply.is_error() {
                self.refused.fetch_add(1, Ordering::Relaxed);
                if let Ok(mut text) = self.refusal.lock() {
                    *text = reply.text();
                }
                if reply.text().starts_with("EXECABORT") || reply.text().starts_with("LOADING") {
                    continue;
                }
                std::thread::sleep(Duration::from_millis(1));
            } else if let Ok(mut acked) = column.acked.lock() {
                acked.push(Instant::now());
            }
        }
        Ok(())
    }

    /// Compares with what a server has after a fault at `fault`.
    pub(super) fn compare(&self, port: u16, fault: Instant) -> Result<Found> {
        let mut client = Client::connect(port)?;
        let mut found = Found::default();
        for (id, columns) in self.accounts.iter().enumerate() {
            let now = sizes(&mut client, id)?;
            for (kind, column) in columns.iter().enumerate() {
                let Ok(acked) = column.acked.lock() else { bail!("a client panicked") };
                let told = acked.len() as u64;
                let there = now[kind].checked_sub(column.base);
                let Some(there) = there else {
                    bail!("{}: {} there, {} were there before", key(kind, id), now[kind], column.base)
                };
                ensure!(there <= told + 1, "{}: {there} new ones, only {told} acknowledged", key(kind, id));
                found.acked += told;
                if there < told {
                    found.lost += told - there;
                    let at = acked.get(usize::try_from(there)?).copied().unwrap_or(fault);
                    found.oldest_lost = found.oldest_lost.max(fault.saturating_duration_since(at));
                }
            }
        }
        Ok(found)
    }
}
