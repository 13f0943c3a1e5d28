//! Digests of values by Redis' rules, so that data sets can be compared with a real server's: DEBUG DIGEST and DEBUG
//! DIGEST-VALUE.
//!
//! Two ways to add bytes to a digest of 20 bytes: *xor* adds the SHA-1 of the bytes, so that the order does not matter
//! (sets, fields, keys); *mix* does that and then takes the SHA-1 of the digest, so that it does (lists).

use keyspace::stream::StreamId;
use keyspace::{Entry, ValueRef};
use rdb::listpack::Elem;
use sha1::{Digest as _, Sha1};

/// A digest in the making; all zero at the start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Adds bytes whatever came before.
    pub fn xor(&mut self, bytes: &[u8]) {
        let hash = Sha1::digest(bytes);
        self.0.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }

    /// Adds bytes behind what came before.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.xor(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    fn mix_elem(&mut self, elem: Elem<'_>) {
        self.mix(elem.to_bytes(&mut [0; 24]));
    }

    /// Adds a finished digest whatever came before.
    pub fn xor_digest(&mut self, other: &Digest) {
        self.xor(&other.0);
    }

    /// 40 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Adds an entry's value and whether it has an expiry: alone, what DEBUG DIGEST-VALUE tells.
    pub fn add_value(&mut self, entry: &Entry) {
        let value = entry.value();
        // Redis numbers its types.
        let number: u32 = match value {
            ValueRef::Str(_) => 0,
            ValueRef::List(_) => 1,
            ValueRef::Set(_) => 2,
            ValueRef::ZSet(_) => 3,
            ValueRef::Hash(_) => 4,
            ValueRef::Stream(_) => 6,
        };
        self.mix(&number.to_be_bytes());
        match value {
            ValueRef::Str(string) => self.mix(string.as_bytes(&mut itoa::Buffer::new())),
            ValueRef::List(list) => list.iter().for_each(|element| self.mix_elem(element)),
            ValueRef::Set(set) => set.iter().for_each(|member| self.xor(member.to_bytes(&mut [0; 24]))),
            ValueRef::ZSet(zset) => {
                let mut text = Vec::new();
                for (member, score) in zset.iter() {
                    text.clear();
                    resp::num::write_double_grisu(&mut text, score);
                    let mut element = Digest::default();
                    element.mix_elem(member);
                    element.mix(&text);
                    self.xor_digest(&element);
                }
            }
            ValueRef::Hash(hash) => {
                for (field, value) in hash.iter() {
                    let mut element = Digest::default();
                    element.mix_elem(field);
                    element.mix_elem(value);
                    self.xor_digest(&element);
                }
            }
            ValueRef::Stream(stream) => {
                for entry in stream.log().range(StreamId::MIN, StreamId::MAX) {
                    self.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                    for (field, value) in entry.fields() {
                        self.mix_elem(field);
                        self.mix_elem(value);
                    }
                }
            }
        }
        if entry.has_expiry() {
            self.xor(b"!!expire!!");
        }
    }

    /// Adds a key with its value: what DEBUG DIGEST does with each key of a database, after it has mixed in the
    /// database's number by [`Digest::mix_db`].
    pub fn xor_key(&mut self, entry: &Entry) {
        let mut digest = Digest::default();
        digest.mix(entry.key());
        digest.add_value(entry);
        self.xor_digest(&digest);
    }

    /// Begins a database that is not empty, in the digest of all.
    pub fn mix_db(&mut self, number: u32) {
        self.mix(&number.to_be_bytes());
    }
}
