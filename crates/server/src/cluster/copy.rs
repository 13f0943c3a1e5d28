//! A slot as commands that make what it holds.
//!
//! ```text
//!  slot locked: ── small values: SET … or RESTORE …
//!               ── large ones:   ZADD / HSET / SADD / RPUSH / APPEND in pieces, then PEXPIREAT
//!               ── journal's end = where the changes begin that come after the copy
//!  unlocked
//! ```
//!
//! A slot is copied in one hold of its lock. Whatever changes it afterwards stands in the journal behind the offset that
//! was its end then; whatever came before is part of the copy. So slots are copied one by one, each at an instant of its
//! own, without a snapshot of the whole and without a second copy in memory of more than one slot.

use keyspace::codec::{value_type, write_value};
use keyspace::journal::effects::push_command;
use keyspace::snapshot::record::AccessForm;
use keyspace::{DbIndex, Entry, LockSet, Slot, ValueRef};
use rdb::codec::Writer;
use rdb::dump;
use rdb::listpack::Elem;
use std::iter::once;

/// Elements of a value from which on it is written in pieces.
const LARGE_ELEMENTS: usize = 4096;
/// Bytes of a string, or of one command that makes a piece, at about which the next begins.
const PIECE_BYTES: usize = 256 << 10;
/// Elements of a piece at most.
const PIECE_ELEMENTS: usize = 512;

/// Commands on their way to another server.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    /// The database that the stream has selected.
    db: Option<DbIndex>,
    words: Vec<Vec<u8>>,
}

impl Stream {
    fn select(&mut self, db: DbIndex) {
        if self.db != Some(db) {
            self.db = Some(db);
            let number = db.0.to_string();
            push_command(&mut self.bytes, [b"SELECT".as_slice(), number.as_bytes()].into_iter());
        }
    }

    /// Appends a command on a database.
    pub(crate) fn command<'a>(&mut self, db: DbIndex, words: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.select(db);
        push_command(&mut self.bytes, words);
    }

    /// Appends a command that is a RESP array already.
    pub(crate) fn raw(&mut self, db: DbIndex, frame: &[u8]) {
        self.select(db);
        self.bytes.extend_from_slice(frame);
    }

    /// Appends commands that make what a held slot holds. Returns how many keys that are.
    pub(crate) fn copy(&mut self, locks: &LockSet, slot: Slot, access: &AccessForm) -> u64 {
        let mut keys = 0;
        for (db, part) in locks.slot(slot).dbs() {
            for entry in part.table().iter() {
                self.entry(db, entry, access);
                keys += 1;
            }
        }
        keys
    }

    fn entry(&mut self, db: DbIndex, entry: &Entry, access: &AccessForm) {
        let is_large = match entry.value() {
            ValueRef::Str(string) => {
                let mut room = itoa::Buffer::new();
                let bytes = string.as_bytes(&mut room);
                if matches!(access, AccessForm::None) || bytes.len() > PIECE_BYTES {
                    self.string(db, entry, bytes);
                    return;
                }
                false
            }
            ValueRef::List(list) => list.len() > LARGE_ELEMENTS,
            ValueRef::Set(set) => set.len() > LARGE_ELEMENTS,
            ValueRef::ZSet(zset) => zset.len() > LARGE_ELEMENTS,
            ValueRef::Hash(hash) => hash.len() > LARGE_ELEMENTS,
            ValueRef::Stream(_) => false,
        };
        if is_large { self.pieces(db, entry) } else { self.whole(db, entry, access) }
    }

    fn string(&mut self, db: DbIndex, entry: &Entry, bytes: &[u8]) {
        let mut pieces = bytes.chunks(PIECE_BYTES);
        let first = pieces.next().unwrap_or_default();
        let at = entry.expire_at_ms().map(|at_ms| at_ms.to_string());
        let mut words: Vec<&[u8]> = vec![b"SET", entry.key(), first];
        if let Some(at) = &at {
            words.extend([b"PXAT".as_slice(), at.as_bytes()]);
        }
        self.command(db, words.into_iter());
        for piece in pieces {
            self.command(db, [b"APPEND".as_slice(), entry.key(), piece].into_iter());
        }
    }

    fn whole(&mut self, db: DbIndex, entry: &Entry, access: &AccessForm) {
        let mut payload = Vec::new();
        let value = entry.value();
        let mut writer = Writer::new(&mut payload);
        writer.value_type(value_type(value));
        write_value(&mut writer, value);
        dump::append_footer(&mut payload, 0);
        let at = entry.expire_at_ms().unwrap_or(0).to_string();
        let accessed = match access {
            AccessForm::None => None,
            AccessForm::Idle(clock) => Some((b"IDLETIME".as_slice(), clock.idle_seconds(entry.access()))),
            AccessForm::Frequency(clock) => Some((b"FREQ".as_slice(), clock.frequency(entry.access()))),
        };
        let accessed = accessed.map(|(word, number)| (word, number.to_string()));
        let mut words: Vec<&[u8]> = vec![b"RESTORE", entry.key(), at.as_bytes(), &payload, b"REPLACE", b"ABSTTL"];
        if let Some((word, number)) = &accessed {
            words.extend([word, number.as_bytes()]);
        }
        self.command(db, words.into_iter());
    }

    fn pieces(&mut self, db: DbIndex, entry: &Entry) {
        let key = entry.key();
        match entry.value() {
            ValueRef::ZSet(zset) => self.in_pieces(db, b"ZADD", key, zset.iter(), |words, (member, score)| {
                let mut text = Vec::new();
                resp::num::write_double_17g(&mut text, score);
                words.push(text);
                words.push(member.to_vec());
            }),
            ValueRef::Hash(hash) => self.in_pieces(db, b"HSET", key, hash.iter(), |words, (field, value)| {
                words.push(field.to_vec());
                words.push(value.to_vec());
            }),
            ValueRef::Set(set) => {
                self.in_pieces(db, b"SADD", key, set.iter(), |words, member: Elem<'_>| words.push(member.to_vec()));
            }
            ValueRef::List(list) => {
                self.in_pieces(db, b"RPUSH", key, list.iter(), |words, member: Elem<'_>| words.push(member.to_vec()));
            }
            ValueRef::Str(_) | ValueRef::Stream(_) => {}
        }
        if let Some(at_ms) = entry.expire_at_ms() {
            let at = at_ms.to_string();
            self.command(db, [b"PEXPIREAT".as_slice(), key, at.as_bytes()].into_iter());
        }
    }

    fn in_pieces<T>(
        &mut self,
        db: DbIndex,
        name: &'static [u8],
        key: &[u8],
        elements: impl Iterator<Item = T>,
        write: impl Fn(&mut Vec<Vec<u8>>, T),
    ) {
        let mut bytes = 0;
        let mut count = 0;
        for element in elements {
            let before = self.words.len();
            write(&mut self.words, element);
            bytes += self.words.iter().skip(before).map(Vec::len).sum::<usize>();
            count += 1;
            if count >= PIECE_ELEMENTS || bytes >= PIECE_BYTES {
                self.end_piece(db, name, key);
                (bytes, count) = (0, 0);
            }
        }
        self.end_piece(db, name, key);
    }

    fn end_piece(&mut self, db: DbIndex, name: &'static [u8], key: &[u8]) {
        if self.words.is_empty() {
            return;
        }
        self.select(db);
        let words = std::mem::take(&mut self.words);
        let all: Vec<&[u8]> = once(name).chain(once(key)).chain(words.iter().map(Vec::as_slice)).collect();
        push_command(&mut self.bytes, all.into_iter());
        self.words = words;
        self.words.clear();
    }
}
