//! A snapshot as commands, for `aof-use-rdb-preamble no`.
//!
//! The records that a snapshot hands over are read back and written as the commands that make their values: collections
//! in portions, so that who replays them is never busy with one command for long.

use crate::disk::{Disk, DiskFile};
use crate::rdb::Header;
use keyspace::codec::{ValueLimits, read_value};
use keyspace::journal::effects::push_command;
use keyspace::snapshot::{SnapshotSink, Totals};
use keyspace::stream::{Group, StreamId};
use keyspace::{Entry, Stream, ValueRef};
use rdb::codec::{DecodeError, Reader, opcode};
use rdb::value::{Scrutiny, ValueType, decode};
use std::io;
use std::path::Path;

/// Elements that one command adds at most, as in Redis.
const ELEMENTS_A_COMMAND: usize = 64;
/// Bytes gathered for one write.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes after which the file is forced to disk (`aof-rewrite-incremental-fsync`), as in Redis.
const SYNC_BYTES: usize = 4 << 20;

/// Saves the snapshot that `take` writes as commands in the file `path`, which is on disk when this returns.
///
/// # Errors
/// The operating system's; the file is gone then, as far as the disk lets it.
pub fn save(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    syncs_in_pieces: bool,
    take: impl FnOnce(&mut dyn SnapshotSink) -> io::Result<Totals>,
) -> io::Result<Totals> {
    let file = disk.create(path);
    let mut sink =
        Commands { file: None, error: None, buffer: Vec::new(), db: None, unsynced: syncs_in_pieces.then_some(0) };
    match file {
        Ok(file) => sink.file = Some(file),
        // The snapshot has begun and must be run to its end all the same.
        Err(error) => sink.error = Some(error),
    }
    for text in &header.functions {
        sink.command(&[b"FUNCTION", b"LOAD", text]);
    }
    let saved = take(&mut sink).and_then(|totals| {
        sink.flush()?;
        sink.file.as_mut().ok_or(io::ErrorKind::NotFound)?.sync()?;
        Ok(totals)
    });
    if saved.is_err() {
        let _ = disk.remove(path);
    }
    saved
}

/// Turns records into commands.
struct Commands {
    file: Option<Box<dyn DiskFile>>,
    /// Why there is no file.
    error: Option<io::Error>,
    buffer: Vec<u8>,
    db: Option<u64>,
    unsynced: Option<usize>,
}

fn malformed(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a record of the snapshot cannot be read: {error:?}"))
}

impl SnapshotSink for Commands {
    fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            self.record(&mut reader).map_err(malformed)?;
            if self.buffer.len() >= WRITE_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }
}

impl Commands {
    fn command(&mut self, arguments: &[&[u8]]) {
        push_command(&mut self.buffer, arguments.iter().copied());
    }

    fn flush(&mut self) -> io::Result<()> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.write_all(&self.buffer)?;
        if let Some(unsynced) = &mut self.unsynced {
            *unsynced += self.buffer.len();
            if *unsynced >= SYNC_BYTES {
                *unsynced = 0;
                file.sync()?;
            }
        }
        self.buffer.clear();
        Ok(())
    }

    fn record(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut expiry = None;
        let value_type = loop {
            if reader.rest().is_empty() {
                return Ok(());
            }
            match reader.byte()? {
                opcode::EXPIRETIME_MS => expiry = Some(reader.i64_le()?),
                opcode::FREQ => {
                    reader.byte()?;
                }
                opcode::IDLE => {
                    reader.length()?;
                }
                opcode::SELECTDB => {
                    let db = reader.length()?;
                    if self.db != Some(db) {
                        self.db = Some(db);
                        self.command(&[b"SELECT", db.to_string().as_bytes()]);
                    }
                }
                opcode::RESIZEDB => {
                    reader.length()?;
                    reader.length()?;
                }
                byte => break ValueType::from_byte(byte)?,
            }
        };
        let key = reader.string()?.into_vec();
        // The value lives for a moment only, so its encoding is of no interest.
        let hash = keyspace::hash::Limits { max_listpack_entries: 128, max_listpack_value: 64 };
        let set = keyspace::set::Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 };
        let (zset, list) = Default::default();
        let limits = ValueLimits { hash: &hash, set: &set, zset: &zset, list: &list };
        let decoded = decode(value_type, reader, Scrutiny::Structure)?;
        let value = read_value(decoded, limits)?;
        // An entry is what a value is looked at through.
        let entry = Entry::new(&key, value, None);
        self.value(&key, entry.value());
        if let Some(at_ms) = expiry {
            self.command(&[b"PEXPIREAT", &key, at_ms.to_string().as_bytes()]);
        }
        Ok(())
    }

    /// Writes the commands that make a value.
    fn value(&mut self, key: &[u8], value: ValueRef<'_>) {
        match value {
            ValueRef::Str(string) => self.command(&[b"SET", key, &string.to_vec()]),
            ValueRef::List(list) => self.elements(b"RPUSH", key, 1, list.iter().map(|elem| elem.to_vec())),
            ValueRef::Set(set) => self.elements(b"SADD", key, 1, set.iter().map(|elem| elem.to_vec())),
            ValueRef::ZSet(zset) => {
                let pairs = zset.iter().flat_map(|(member, score)| [score_text(score), member.to_vec()]);
                self.elements(b"ZADD", key, 2, pairs);
            }
            ValueRef::Hash(hash) => {
                let pairs = hash.iter().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]);
                self.elements(b"HMSET", key, 2, pairs);
            }
            ValueRef::Stream(stream) => self.stream(key, stream),
        }
    }

    /// Writes elements of `width` arguments in portions.
    fn elements(&mut self, name: &[u8], key: &[u8], width: usize, arguments: impl Iterator<Item = Vec<u8>>) {
        let mut portion: Vec<Vec<u8>> = Vec::new();
        let mut arguments = arguments.peekable();
        while arguments.peek().is_some() {
            portion.clear();
            portion.extend(arguments.by_ref().take(ELEMENTS_A_COMMAND * width));
            let all: Vec<&[u8]> = [name, key].into_iter().chain(portion.iter().map(Vec::as_slice)).collect();
            self.command(&all);
        }
    }

    fn stream(&mut self, key: &[u8], stream: &Stream) {
        let log = stream.log();
        for entry in log.range(StreamId::MIN, StreamId::MAX) {
            let id = entry.id.to_string();
            let mut arguments: Vec<Vec<u8>> = Vec::with_capacity(entry.len() * 2);
            for (field, value) in entry.fields() {
                arguments.push(field.to_vec());
                arguments.push(value.to_vec());
            }
            let head: [&[u8]; 3] = [b"XADD", key, id.as_bytes()];
            let all: Vec<&[u8]> = head.into_iter().chain(arguments.iter().map(Vec::as_slice)).collect();
            self.command(&all);
        }
        if log.is_empty() {
            // A stream without entries comes of one that is added and trimmed away.
            self.command(&[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
        }
        let (last, deleted) = (log.last_id().to_string(), log.max_deleted_id().to_string());
        let added = log.entries_added().to_string();
        self.command(&[
            b"XSETID",
            key,
            last.as_bytes(),
            b"ENTRIESADDED",
            added.as_bytes(),
            b"MAXDELETEDID",
            deleted.as_bytes(),
        ]);
        for (name, group) in stream.groups() {
            self.group(key, name, group);
        }
    }

    fn group(&mut self, key: &[u8], name: &[u8], group: &Group) {
        let last = group.last_id.to_string();
        let read = group.entries_read.map_or_else(|| "-1".to_owned(), |read| read.to_string());
        self.command(&[b"XGROUP", b"CREATE", key, name, last.as_bytes(), b"ENTRIESREAD", read.as_bytes()]);
        for consumer in group.consumers() {
            if consumer.pending().is_empty() {
                self.command(&[b"XGROUP", b"CREATECONSUMER", key, name, consumer.name()]);
            }
            for id in consumer.pending() {
                let Some(pending) = group.pending().get(id) else { continue };
                let (id, time) = (id.to_string(), pending.delivered_ms.to_string());
                let deliveries = pending.deliveries.to_string();
                self.command(&[
                    b"XCLAIM",
                    key,
                    name,
                    consumer.name(),
                    b"0",
                    id.as_bytes(),
                    b"TIME",
                    time.as_bytes(),
                    b"RETRYCOUNT",
                    deliveries.as_bytes(),
                    b"JUSTID",
                    b"FORCE",
                ]);
            }
        }
    }
}

/// A score so that it is read back as the same number.
fn score_text(score: f64) -> Vec<u8> {
    let mut text = Vec::new();
    resp::num::write_double_17g(&mut text, score);
    text
}
