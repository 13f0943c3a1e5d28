//! Full synchronizations: a snapshot to all replicas that wait, then the journal from the snapshot's instant on.
//!
//! Without a file (`repl-diskless-sync yes`) the snapshot goes to the replicas' queues as it is made, between marks; the
//! slowest of them sets the pace, and one that takes nothing for `repl-timeout` is cut. With a file it is BGSAVE's file
//! that is sent, by its length.

use super::primary::{Replica, Stage, hard_limit, set_waker};
use super::{Phase, write_log};
use crate::config::Config;
use crate::durability::claim::{Begun, Claim, Purpose};
use crate::durability::save::{file_of, write_file};
use crate::log;
use crate::process::log::Level;
use crate::process::{error_text, steady_ms};
use crate::shared::{Shared, random_id};
use ::replication::Severity;
use ::replication::history::History;
use keyspace::LockSet;
use keyspace::snapshot::SnapshotSink;
use persistence::rdb::Encoder;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of a file sent at once.
const PIECE_BYTES: usize = 256 << 10;

impl Shared {
    /// Begins a full synchronization if replicas wait for one and it is time.
    pub(crate) fn begin_full_sync_if_due(self: &Arc<Self>, config: &Config) {
        let replication = &self.replication;
        let waiting: Vec<Arc<Replica>> =
            replication.replicas().into_iter().filter(|replica| replica.stage() == Stage::WaitStart).collect();
        let Some(oldest_ms) = waiting.iter().map(|replica| replica.since_ms).min() else { return };
        // Those that want the same get it together.
        let filter = waiting.first().and_then(|replica| replica.claimed.filter);
        let group: Vec<Arc<Replica>> = waiting.into_iter().filter(|replica| replica.claimed.filter == filter).collect();
        let is_direct =
            (config.repl_diskless_sync || filter.is_some()) && group.iter().all(|replica| replica.knows_marks());
        if is_direct {
            let waited_ms = steady_ms() - oldest_ms;
            let is_complete = usize::try_from(config.repl_diskless_sync_max_replicas)
                .is_ok_and(|most| most > 0 && group.len() >= most);
            if waited_ms < i64::from(config.repl_diskless_sync_delay) * 1000 && !is_complete {
                return;
            }
        }
        if replication.is_replica() && replication.phase() != Phase::Connected {
            return;
        }
        if replication.is_syncing.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(claim) = Claim::new(self, Purpose::FullSync) else {
            replication.is_syncing.store(false, Ordering::SeqCst);
            return;
        };
        let (shared, config) = (self.clone(), config.clone());
        let spawned = std::thread::Builder::new().name("full-sync".into()).spawn(move || {
            run(&shared, claim, &config, &group, is_direct);
            shared.replication.is_syncing.store(false, Ordering::SeqCst);
        });
        if let Err(error) = spawned {
            log!(Level::Warning, "Can't save in background: fork: {}", error_text(&error));
            replication.is_syncing.store(false, Ordering::SeqCst);
        }
    }
}

/// Makes sure that the journal is kept for replicas, behind the gate. A history that begins with it gets a new name, as
/// nothing was recorded before.
pub(crate) fn keep_backlog(shared: &Shared, locks: &mut LockSet, config: &Config) {
    let journal = &shared.keyspace.journal;
    if journal.backlog().is_some() {
        return;
    }
    let replication = &shared.replication;
    if !replication.is_replica() {
        let mut state = replication.state.lock();
        state.history = History::new(random_id());
        let line = format!(
            "Replication backlog created, my new replication IDs are '{}' and '{}'",
            state.history.id, state.history.second_id
        );
        write_log(vec![(Severity::Notice, line)]);
    }
    journal.set_backlog(locks, Some(u64::try_from(config.repl_backlog_size).unwrap_or(1 << 20)));
}

fn run(shared: &Arc<Shared>, claim: Claim, config: &Config, group: &[Arc<Replica>], is_direct: bool) {
    let target = if is_direct { "replicas sockets" } else { "disk" };
    log!(Level::Notice, "Starting BGSAVE for SYNC with target: {target}");
    let begun = claim.begin_here_after(config, |locks| {
        keep_backlog(shared, locks, config);
        for replica in group {
            let reader = shared.keyspace.journal.read_from_here(locks, hard_limit(config));
            set_waker(shared, replica, &reader);
            replica.feed.lock().reader = Some(reader);
            replica.set_stage(if is_direct { Stage::Sending } else { Stage::WaitEnd });
        }
        (shared.replication.history().id, shared.keyspace.journal.end())
    });
    let Some((begun, (id, offset))) = begun else { return };
    let answer: Arc<[u8]> = format!("+FULLRESYNC {id} {offset}\r\n").into_bytes().into();
    let patience = patience(config);
    for replica in group.iter().filter(|replica| replica.is_modern) {
        replica.push(shared, &answer, patience);
    }
    let sent = if is_direct { send(shared, begun, config, group) } else { send_file(shared, begun, config, group) };
    if let Err(error) = sent {
        log!(Level::Warning, "BGSAVE for replication failed: {}", error_text(&error));
        for replica in group {
            replica.cut(shared);
        }
        return;
    }
    shared.renew_replicas(config);
}

fn patience(config: &Config) -> Duration {
    Duration::from_secs(u64::try_from(config.repl_timeout).unwrap_or(60))
}

/// Puts a snapshot into the queues of several replicas.
struct Queues<'s> {
    shared: &'s Shared,
    replicas: Vec<Arc<Replica>>,
    patience: Duration,
}

impl Queues<'_> {
    fn give(&mut self, bytes: &[u8]) -> io::Result<()> {
        let bytes: Arc<[u8]> = bytes.into();
        let (shared, patience) = (self.shared, self.patience);
        self.replicas.retain(|replica| {
            let is_there = replica.push(shared, &bytes, patience);
            if !is_there && !replica.is_over() {
                log!(Level::Warning, "Disconnecting timedout replica (full sync): {}", replica.name());
                replica.cut(shared);
            }
            is_there
        });
        self.idle()
    }
}

impl SnapshotSink for Queues<'_> {
    fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.give(bytes)
    }

    fn idle(&mut self) -> io::Result<()> {
        self.replicas.retain(|replica| !replica.is_over());
        if self.replicas.is_empty() {
            log!(Level::Warning, "Diskless rdb transfer, last replica dropped, killing fork child.");
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

/// A snapshot straight to the replicas.
fn send(shared: &Arc<Shared>, mut begun: Begun, config: &Config, group: &[Arc<Replica>]) -> io::Result<()> {
    let mark = random_id();
    let filter = group.first().and_then(|replica| replica.claimed.filter);
    let mut header = std::mem::take(&mut begun.header);
    let mut queues = Queues { shared, replicas: group.to_vec(), patience: patience(config) };
    queues.give(format!("$EOF:{mark}\r\n").as_bytes())?;
    if filter.is_some_and(|filter| !filter.functions) {
        header.functions.clear();
    }
    let mut encoder = Encoder::begin(&mut queues, &header)?;
    if filter.is_none() {
        let totals = begun.run(&mut encoder)?;
        shared.durability.last_handed_over.store(totals.handed_over_bytes, Ordering::Relaxed);
    }
    drop(begun);
    encoder.finish()?;
    for replica in &queues.replicas {
        // Before the end is sent: the answer to it may come at once.
        finish(shared, replica, true);
    }
    queues.give(mark.as_bytes())?;
    log!(Level::Notice, "Diskless rdb transfer, done reading from pipe, {} replicas still up.", queues.replicas.len());
    for replica in &queues.replicas {
        log!(
            Level::Notice,
            "Streamed replica synchronization with replica {} succeeded (socket). Waiting for REPLCONF ACK from replica to enable streaming",
            replica.name()
        );
    }
    Ok(())
}

/// A snapshot into the file, and the file to the replicas.
fn send_file(shared: &Arc<Shared>, begun: Begun, config: &Config, group: &[Arc<Replica>]) -> io::Result<()> {
    if !write_file(shared, begun, config) {
        return Err(io::Error::other("the snapshot could not be written"));
    }
    let path = file_of(config);
    let (mut file, bytes) = shared.durability.disk.open(&path)?;
    if config.rdb_del_sync_files && config.save.is_empty() && !config.appendonly {
        log!(
            Level::Notice,
            "Removing the RDB file {} used to feed replicas in a persistence-less instance",
            path.display()
        );
        shared.durability.disk.remove(&path)?;
    }
    for replica in group {
        replica.set_stage(Stage::Sending);
    }
    let mut queues = Queues { shared, replicas: group.to_vec(), patience: patience(config) };
    queues.give(format!("${bytes}\r\n").as_bytes())?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        let Some(room) = piece.get_mut(..most) else { break };
        let got = file.read(room)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= got as u64;
        queues.give(piece.get(..got).unwrap_or_default())?;
    }
    for replica in &queues.replicas {
        log!(Level::Notice, "Synchronization with replica {} succeeded", replica.name());
        finish(shared, replica, false);
    }
    Ok(())
}

fn finish(shared: &Shared, replica: &Replica, starts_on_ack: bool) {
    replica.acked_at_ms.store(steady_ms(), Ordering::Relaxed);
    {
        let mut feed = replica.feed.lock();
        feed.is_whole = true;
        feed.starts_on_ack = starts_on_ack;
    }
    replica.set_stage(if replica.claimed.wants_file_only { Stage::Sent } else { Stage::Online });
    replica.ring(shared);
}
