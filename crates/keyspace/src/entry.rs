//! A key and its value in one heap block, behind one 8-byte handle.
//!
//! ```text
//! block:  [payload u64]?  [expiry i64 ms]?  [meta u32]  [key length 1|5]  key  ([value length 1|5]  value)?
//!          tag PAYLOAD     tag EXPIRY        kind 8 | access 24                 only kinds Embstr and Raw
//! handle: 48-bit address | low bits: tags
//! ```
//! - `payload` is the word of an integer, of a grown string (`Box<Vec<u8>>`) or of an object ([`Hash`](struct@Hash), [`List`],
//!   [`Set`], [`ZSet`], [`Stream`]), all of which are 8 bytes. It comes first so that it is aligned and can be borrowed.
//! - A length is one byte below 255, else 255 and four bytes.
//! - Tag PARITY tells whether the entry has been saved by the snapshot that runs, see [`crate::snapshot`].
//! - `access` is Redis' 24 bits for LRU (seconds) or LFU (16 bits minutes, 8 bits counter).
//!
//! A 16-byte key with a 3-byte value takes 4 + 1 + 16 + 1 + 3 = 25 bytes, with expiry 33, in blocks of 32 and 48.
//! Tests of the tags need no visit to the block: expiry scans look only at entries that have one.

use crate::string::StrRef;
use crate::table::Item;
use crate::value::{Value, ValueMut, ValueRef};
use crate::{Hash, List, Set, Stream, ZSet};
use rdb::size_class;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::{ManuallyDrop, forget};
use std::ptr;

const TAG_EXPIRY: u64 = 1;
const TAG_PAYLOAD: u64 = 2;
/// Which of two generations the entry belongs to, see [`crate::snapshot`].
pub(crate) const TAG_PARITY: u64 = 4;
const TAGS: u64 = 0xF;
/// The address in a handle. A table keeps hash bits of its own above it.
const ADDRESS: u64 = 0x0000_FFFF_FFFF_FFF0;

/// Longest value that Redis calls `embstr`.
pub const EMBSTR_MAX: usize = 44;
/// Longest string kept in the entry's block; longer ones have a block of their own, so that changing the expiry of a
/// big value does not copy it.
const INLINE_MAX: usize = 4096;

/// What an entry holds; also how a string is kept.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A string that is a canonical 64-bit integer.
    Int,
    /// A short string as it was set.
    Embstr,
    /// A string in the block that is long, or was changed in place.
    Raw,
    /// A string in a block of its own (`Box<Vec<u8>>`).
    Buffer,
    /// List.
    List,
    /// Set.
    Set,
    /// Sorted set.
    ZSet,
    /// Hash.
    Hash,
    /// Stream.
    Stream,
}

impl Kind {
    #[inline]
    fn from_u8(kind: u8) -> Kind {
        match kind {
            0 => Kind::Int,
            1 => Kind::Embstr,
            2 => Kind::Raw,
            3 => Kind::Buffer,
            4 => Kind::List,
            5 => Kind::Set,
            6 => Kind::ZSet,
            7 => Kind::Hash,
            _ => Kind::Stream,
        }
    }

    #[inline]
    fn has_payload(self) -> bool {
        !matches!(self, Kind::Embstr | Kind::Raw)
    }
}

/// Owns one key and its value.
#[repr(transparent)]
pub struct Entry(u64);

/// Bytes that a length takes.
#[inline]
fn length_bytes(len: usize) -> usize {
    if len < 255 { 1 } else { 5 }
}

/// # Safety
/// `at` must be valid for writing [`length_bytes`] bytes; `len` must fit u32.
#[inline]
unsafe fn write_length(at: *mut u8, len: usize) -> *mut u8 {
    // SAFETY: the caller gives room for 1 or 5 bytes.
    unsafe {
        if len < 255 {
            #[allow(clippy::cast_possible_truncation)]
            at.write(len as u8);
            at.add(1)
        } else {
            at.write(255);
            #[allow(clippy::cast_possible_truncation)]
            at.add(1).cast::<u32>().write_unaligned(len as u32);
            at.add(5)
        }
    }
}

/// # Safety
/// `at` must point at a length written by [`write_length`].
#[inline]
unsafe fn read_length(at: *const u8) -> (usize, *const u8) {
    // SAFETY: as the caller says.
    unsafe {
        let first = at.read();
        if first < 255 {
            (first as usize, at.add(1))
        } else {
            (at.add(1).cast::<u32>().read_unaligned() as usize, at.add(5))
        }
    }
}

impl Entry {
    /// A string entry: kept as an integer when `value` is a canonical one, else as bytes.
    pub fn new_str(key: &[u8], value: &[u8], expire_at_ms: Option<i64>) -> Entry {
        if value.len() <= 20
            && let Some(number) = resp::num::parse_i64(value)
        {
            return Entry::new_int(key, number, expire_at_ms);
        }
        if value.len() <= EMBSTR_MAX {
            Entry::new_inline(key, value, Kind::Embstr, expire_at_ms)
        } else if value.len() <= INLINE_MAX {
            Entry::new_inline(key, value, Kind::Raw, expire_at_ms)
        } else {
            Entry::new_buffer(key, value.to_vec(), expire_at_ms)
        }
    }

    /// An integer string.
    #[allow(clippy::cast_sign_loss)]
    pub fn new_int(key: &[u8], number: i64, expire_at_ms: Option<i64>) -> Entry {
        Entry::build(key, Kind::Int, number as u64, &[], expire_at_ms)
    }

    /// A string whose encoding is `raw` whatever its length, as after APPEND or SETRANGE.
    pub fn new_raw(key: &[u8], value: Vec<u8>, expire_at_ms: Option<i64>) -> Entry {
        if value.len() <= INLINE_MAX && value.capacity() <= INLINE_MAX.min(value.len() + value.len() / 8 + 16) {
            Entry::new_inline(key, &value, Kind::Raw, expire_at_ms)
        } else {
            Entry::new_buffer(key, value, expire_at_ms)
        }
    }

    /// An entry of any value.
    pub fn new(key: &[u8], value: Value, expire_at_ms: Option<i64>) -> Entry {
        match value {
            Value::Int(number) => Entry::new_int(key, number, expire_at_ms),
            Value::Str(bytes) if bytes.len() <= EMBSTR_MAX => {
                Entry::new_inline(key, &bytes, Kind::Embstr, expire_at_ms)
            }
            Value::Str(bytes) | Value::RawStr(bytes) => Entry::new_raw(key, bytes, expire_at_ms),
            Value::List(list) => Entry::new_object(key, Kind::List, list, expire_at_ms),
            Value::Set(set) => Entry::new_object(key, Kind::Set, set, expire_at_ms),
            Value::ZSet(zset) => Entry::new_object(key, Kind::ZSet, zset, expire_at_ms),
            Value::Hash(hash) => Entry::new_object(key, Kind::Hash, hash, expire_at_ms),
            Value::Stream(stream) => Entry::new_object(key, Kind::Stream, stream, expire_at_ms),
        }
    }

    fn new_inline(key: &[u8], value: &[u8], kind: Kind, expire_at_ms: Option<i64>) -> Entry {
        Entry::build(key, kind, 0, value, expire_at_ms)
    }

    fn new_buffer(key: &[u8], value: Vec<u8>, expire_at_ms: Option<i64>) -> Entry {
        let word = Box::into_raw(Box::new(value)) as u64;
        Entry::build(key, Kind::Buffer, word, &[], expire_at_ms)
    }

    /// `object` must be one of the five 8-byte object types that `kind` names.
    fn new_object<T>(key: &[u8], kind: Kind, object: T, expire_at_ms: Option<i64>) -> Entry {
        const { assert!(size_of::<T>() == 8 && align_of::<T>() == 8) };
        // SAFETY: T is 8 bytes by the assertion; ownership moves into the entry, `object` is forgotten.
        let word = unsafe { ptr::read(ptr::from_ref(&object).cast::<u64>()) };
        forget(object);
        Entry::build(key, kind, word, &[], expire_at_ms)
    }

    fn size_of_block(tags: u64, key_len: usize, value_len: Option<usize>) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "at most two")]
        let words = ((tags & TAG_EXPIRY) + ((tags & TAG_PAYLOAD) >> 1)) as usize;
        let value = value_len.map_or(0, |len| length_bytes(len) + len);
        size_class::round_up(8 * words + 4 + length_bytes(key_len) + key_len + value)
    }

    fn layout(size: usize) -> Layout {
        // SAFETY: 16 is a power of two, and the sizes (at most 2 × 512 MiB by the protocol's limits) do not overflow.
        unsafe { Layout::from_size_align_unchecked(size, 16) }
    }

    fn build(key: &[u8], kind: Kind, payload: u64, value: &[u8], expire_at_ms: Option<i64>) -> Entry {
        debug_assert!(u32::try_from(key.len()).is_ok(), "keys are bounded by proto-max-bulk-len");
        let tags = if kind.has_payload() { TAG_PAYLOAD } else { 0 } | u64::from(expire_at_ms.is_some());
        let value_len = (!kind.has_payload()).then_some(value.len());
        let size = Entry::size_of_block(tags, key.len(), value_len);
        // SAFETY: the size is not zero. All writes below stay within the sum that `size_of_block` adds up.
        unsafe {
            let block = alloc(Entry::layout(size));
            if block.is_null() {
                handle_alloc_error(Entry::layout(size));
            }
            let mut at = block;
            if kind.has_payload() {
                at.cast::<u64>().write(payload);
                at = at.add(8);
            }
            if let Some(expire_at_ms) = expire_at_ms {
                at.cast::<i64>().write(expire_at_ms);
                at = at.add(8);
            }
            at.cast::<u32>().write(kind as u32);
            at = write_length(at.add(4), key.len());
            ptr::copy_nonoverlapping(key.as_ptr(), at, key.len());
            at = at.add(key.len());
            if !kind.has_payload() {
                at = write_length(at, value.len());
                ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
            }
            debug_assert!((block as u64).trailing_zeros() >= 4 && (block as u64) >> 48 == 0);
            Entry(block as u64 | tags)
        }
    }

    #[inline]
    fn block(&self) -> *mut u8 {
        (self.0 & ADDRESS) as *mut u8
    }

    #[inline]
    fn meta(&self) -> *mut u32 {
        #[allow(clippy::cast_possible_truncation, reason = "at most two")]
        let words = ((self.0 & TAG_EXPIRY) + ((self.0 & TAG_PAYLOAD) >> 1)) as usize;
        // SAFETY: the block begins with that many words, then the meta word.
        unsafe { self.block().add(8 * words).cast() }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: the layout of `build`; the bytes live as long as self.
        unsafe {
            let (len, at) = read_length(self.meta().add(1).cast());
            std::slice::from_raw_parts(at, len)
        }
    }

    /// What the entry holds.
    #[inline]
    pub fn kind(&self) -> Kind {
        // SAFETY: the meta word is initialised; its low byte is a Kind.
        Kind::from_u8((unsafe { self.meta().read() } & 0xFF) as u8)
    }

    /// The 24 access bits (LRU clock or LFU).
    #[inline]
    pub fn access(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.meta().read() >> 8 }
    }

    /// Sets the 24 access bits. By shared reference, as readers note their access: an entry is not `Sync`, so nobody
    /// else looks, and no reference into the meta word is ever lent.
    #[inline]
    pub fn set_access(&self, bits: u32) {
        // SAFETY: as above; one thread.
        unsafe {
            let meta = self.meta().read();
            self.meta().write((meta & 0xFF) | (bits << 8));
        }
    }

    /// The generation: 0 or [`TAG_PARITY`]. Costs no visit to the block.
    #[inline]
    pub(crate) fn parity(&self) -> u64 {
        self.0 & TAG_PARITY
    }

    /// Sets the generation. Allowed on an entry in its table: the handle keeps its address, and the table's bits.
    #[inline]
    pub(crate) fn set_parity(&mut self, parity: u64) {
        self.0 = self.0 & !TAG_PARITY | parity;
    }

    /// Whether it is a hash whose fields may end.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.kind() == Kind::Hash && matches!(self.value(), ValueRef::Hash(hash) if hash.is_timed())
    }

    /// When the first field of such a hash ends, Unix ms.
    pub fn earliest_field_ms(&self) -> Option<i64> {
        match self.value() {
            ValueRef::Hash(hash) => hash.earliest_ms(),
            _ => None,
        }
    }

    /// Whether an expiry is set. Costs no visit to the block.
    #[inline]
    pub fn has_expiry(&self) -> bool {
        self.0 & TAG_EXPIRY != 0
    }

    /// Unix time in ms at which the entry ends.
    #[inline]
    pub fn expire_at_ms(&self) -> Option<i64> {
        if !self.has_expiry() {
            return None;
        }
        // SAFETY: with the tag set there is an i64 right before the meta word.
        Some(unsafe { self.meta().cast::<i64>().sub(1).read() })
    }

    /// Sets or clears the expiry; moves the entry to another block when the word must come or go: in a table, go
    /// through [`crate::DbView::update`].
    pub fn set_expiry(&mut self, expire_at_ms: Option<i64>) {
        match (self.has_expiry(), expire_at_ms) {
            (false, None) => {}
            // SAFETY: as in `expire_at_ms`.
            (true, Some(at)) => unsafe { self.meta().cast::<i64>().sub(1).write(at) },
            _ => {
                let (kind, access) = (self.kind(), self.access());
                let (payload, value) =
                    if kind.has_payload() { (self.payload(), &[][..]) } else { (0, self.inline_value()) };
                let mut moved = Entry::build(self.key(), kind, payload, value, expire_at_ms);
                moved.set_access(access);
                moved.set_parity(self.parity());
                let old = std::mem::replace(self, moved);
                old.free_block();
            }
        }
    }

    #[inline]
    fn payload(&self) -> u64 {
        debug_assert!(self.0 & TAG_PAYLOAD != 0);
        // SAFETY: with the tag set the block begins with the payload word.
        unsafe { self.block().cast::<u64>().read() }
    }

    #[inline]
    fn inline_value(&self) -> &[u8] {
        debug_assert!(self.0 & TAG_PAYLOAD == 0);
        // SAFETY: without payload the value's length and bytes follow the key.
        unsafe {
            let key = self.key();
            let (len, at) = read_length(key.as_ptr().add(key.len()));
            std::slice::from_raw_parts(at, len)
        }
    }

    /// # Safety
    /// The payload must be a live `T`.
    #[inline]
    unsafe fn object<T>(&self) -> &T {
        // SAFETY: aligned to 8 at the start of the block; the caller vouches for the type.
        unsafe { &*self.block().cast::<T>() }
    }

    /// # Safety
    /// The payload must be a live `T`.
    #[inline]
    unsafe fn object_mut<T>(&mut self) -> &mut T {
        // SAFETY: as `object`; unique by &mut self.
        unsafe { &mut *self.block().cast::<T>() }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> ValueRef<'_> {
        // SAFETY: each kind's payload is what `new` stored under that kind.
        unsafe {
            match self.kind() {
                #[allow(clippy::cast_possible_wrap)]
                Kind::Int => ValueRef::Str(StrRef::Int(self.payload() as i64)),
                Kind::Embstr | Kind::Raw => ValueRef::Str(StrRef::Bytes(self.inline_value())),
                Kind::Buffer => ValueRef::Str(StrRef::Bytes((*self.object::<Box<Vec<u8>>>()).as_slice())),
                Kind::List => ValueRef::List(self.object::<List>()),
                Kind::Set => ValueRef::Set(self.object::<Set>()),
                Kind::ZSet => ValueRef::ZSet(self.object::<ZSet>()),
                Kind::Hash => ValueRef::Hash(self.object::<Hash>()),
                Kind::Stream => ValueRef::Stream(self.object::<Stream>()),
            }
        }
    }

    /// The string value, if it is one: the fast path of GET.
    #[inline]
    pub fn as_str(&self) -> Option<StrRef<'_>> {
        match self.value() {
            ValueRef::Str(string) => Some(string),
            _ => None,
        }
    }

    /// The value, to change in place. A string's length can change only through [`Entry::make_buffer`].
    pub fn value_mut(&mut self) -> ValueMut<'_> {
        // SAFETY: as in `value`.
        unsafe {
            match self.kind() {
                Kind::Int | Kind::Embstr | Kind::Raw | Kind::Buffer => ValueMut::Str,
                Kind::List => ValueMut::List(self.object_mut::<List>()),
                Kind::Set => ValueMut::Set(self.object_mut::<Set>()),
                Kind::ZSet => ValueMut::ZSet(self.object_mut::<ZSet>()),
                Kind::Hash => ValueMut::Hash(self.object_mut::<Hash>()),
                Kind::Stream => ValueMut::Stream(self.object_mut::<Stream>()),
            }
        }
    }

    /// The number of an integer string, to change in place.
    #[inline]
    pub fn int_mut(&mut self) -> Option<&mut i64> {
        if self.kind() != Kind::Int {
            return None;
        }
        // SAFETY: an Int's payload is an i64.
        Some(unsafe { self.object_mut::<i64>() })
    }

    /// Turns a string into a growable buffer (encoding `raw`) and lends it. `None` for other types. May become another
    /// handle: in a table, go through [`crate::DbView::update`].
    pub fn make_buffer(&mut self) -> Option<&mut Vec<u8>> {
        let bytes = match self.kind() {
            Kind::Buffer => None,
            Kind::Int | Kind::Embstr | Kind::Raw => Some(self.as_str()?.to_vec()),
            _ => return None,
        };
        if let Some(bytes) = bytes {
            let mut moved = Entry::new_buffer(self.key(), bytes, self.expire_at_ms());
            moved.set_access(self.access());
            moved.set_parity(self.parity());
            *self = moved;
        }
        // SAFETY: the kind is Buffer now.
        Some(unsafe { &mut **self.object_mut::<Box<Vec<u8>>>() })
    }

    /// Overwrites the value of an inline string without a new block when kind, tags and block size stay what they
    /// are; false: nothing done. Hot path of SET on an existing key.
    #[inline]
    pub fn overwrite_inline(&mut self, value: &[u8]) -> bool {
        if self.0 & TAG_PAYLOAD != 0 || value.len() > INLINE_MAX {
            return false;
        }
        let kind = if value.len() <= EMBSTR_MAX { Kind::Embstr } else { Kind::Raw };
        let key_len = self.key().len();
        let old_len = self.inline_value().len();
        let tags = self.0 & TAGS;
        if old_len != value.len()
            && Entry::size_of_block(tags, key_len, Some(old_len))
                != Entry::size_of_block(tags, key_len, Some(value.len()))
        {
            return false;
        }
        // SAFETY: the block has room for the new value by the check above; meta and value are ours by &mut self.
        unsafe {
            let meta = self.meta().read();
            self.meta().write((meta & !0xFF) | kind as u32);
            let key = self.key();
            let at = write_length(key.as_ptr().add(key.len()).cast_mut(), value.len());
            ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
        }
        true
    }

    /// Takes the value out and frees the key's block.
    pub fn into_value(self) -> Value {
        let kind = self.kind();
        // SAFETY: ownership of the payload moves to the returned value; `free_block` drops no payload.
        let value = unsafe {
            match kind {
                #[allow(clippy::cast_possible_wrap)]
                Kind::Int => Value::Int(self.payload() as i64),
                Kind::Embstr => Value::Str(self.inline_value().to_vec()),
                Kind::Raw => Value::RawStr(self.inline_value().to_vec()),
                Kind::Buffer => Value::RawStr(*ptr::read(self.object::<Box<Vec<u8>>>())),
                Kind::List => Value::List(ptr::read(self.object::<List>())),
                Kind::Set => Value::Set(ptr::read(self.object::<Set>())),
                Kind::ZSet => Value::ZSet(ptr::read(self.object::<ZSet>())),
                Kind::Hash => Value::Hash(ptr::read(self.object::<Hash>())),
                Kind::Stream => Value::Stream(ptr::read(self.object::<Stream>())),
            }
        };
        self.free_block();
        value
    }

    fn block_size(&self) -> usize {
        let value_len = (self.0 & TAG_PAYLOAD == 0).then(|| self.inline_value().len());
        Entry::size_of_block(self.0 & TAGS, self.key().len(), value_len)
    }

    /// Frees the block without dropping the payload.
    fn free_block(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: the block was allocated with this layout; nobody else owns it.
        unsafe { dealloc(this.block(), Entry::layout(this.block_size())) };
    }

    /// Bytes of the entry's own block, rounded to its size class.
    pub fn block_bytes(&self) -> usize {
        self.block_size()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: the payload is dropped once, then the block is freed with the layout it was allocated with.
        unsafe {
            match self.kind() {
                Kind::Int | Kind::Embstr | Kind::Raw => {}
                Kind::Buffer => ptr::drop_in_place(self.block().cast::<Box<Vec<u8>>>()),
                Kind::List => ptr::drop_in_place(self.block().cast::<List>()),
                Kind::Set => ptr::drop_in_place(self.block().cast::<Set>()),
                Kind::ZSet => ptr::drop_in_place(self.block().cast::<ZSet>()),
                Kind::Hash => ptr::drop_in_place(self.block().cast::<Hash>()),
                Kind::Stream => ptr::drop_in_place(self.block().cast::<Stream>()),
            }
            dealloc(self.block(), Entry::layout(self.block_size()));
        }
    }
}

// SAFETY: the handle is a 16-aligned heap address below 2^48 (checked in `build`) with tags in the low four bits.
unsafe impl Item for Entry {
    #[inline]
    fn into_raw(self) -> u64 {
        ManuallyDrop::new(self).0
    }

    #[inline]
    unsafe fn from_raw(raw: u64) -> Entry {
        Entry(raw & (ADDRESS | TAGS))
    }

    #[inline]
    fn key(&self) -> &[u8] {
        Entry::key(self)
    }
}

// SAFETY: an entry owns its block and its payload, all of which are Send.
unsafe impl Send for Entry {}
