//! The scripts that SCRIPT LOAD and EVAL have left: one table for all threads. Compiled forms live in each interpreter.

use crate::shebang::{self, ScriptFlags};
use hashbrown::HashMap;
use parking_lot::RwLock;
use sha1::{Digest, Sha1};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// SHA-1 of a script in 40 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha([u8; 40]);

impl Sha {
    /// The SHA-1 of a script's text.
    pub fn of(body: &[u8]) -> Sha {
        Sha(sha1_hex(body))
    }

    /// Reads 40 characters in any case; whether they are hex digits is left to the look-up.
    pub fn parse(text: &[u8]) -> Option<Sha> {
        let mut digits: [u8; 40] = text.try_into().ok()?;
        digits.make_ascii_lowercase();
        Some(Sha(digits))
    }

    /// The digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The digits as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// SHA-1 in lower-case hex digits.
pub fn sha1_hex(bytes: &[u8]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha1::digest(bytes)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}

/// One script and what its runs have shown of it.
pub struct Script {
    /// Its SHA-1.
    pub sha: Sha,
    /// Its text.
    pub body: Box<[u8]>,
    /// Length of its shebang line.
    pub shebang_len: usize,
    /// Its flags.
    pub flags: ScriptFlags,
    traits: Traits,
}

/// What runs of a script or function have shown of it.
#[derive(Debug, Default)]
pub struct Traits {
    bits: AtomicU8,
    /// Long runs, less short ones since.
    strikes: AtomicU8,
}

const PROVEN: u8 = 1;
const WIDE: u8 = 2;
/// A thread that had to wait for a core looks slow: one long run alone says nothing.
const STRIKES_SLOW: u8 = 3;
const STRIKES_MAX: u8 = 8;

impl Traits {
    /// It has run to its end within a short time, or cannot run long.
    pub fn is_proven(&self) -> bool {
        self.bits.load(Ordering::Relaxed) & PROVEN != 0
    }

    /// It has taken long several times of late.
    pub fn is_slow(&self) -> bool {
        self.strikes.load(Ordering::Relaxed) >= STRIKES_SLOW
    }

    /// It has touched keys that it did not declare.
    pub fn is_wide(&self) -> bool {
        self.bits.load(Ordering::Relaxed) & WIDE != 0
    }

    /// Notes a short run.
    pub fn note_proven(&self) {
        if !self.is_proven() {
            self.bits.fetch_or(PROVEN, Ordering::Relaxed);
        }
        // Counts that get lost between threads do no harm.
        let strikes = self.strikes.load(Ordering::Relaxed);
        if strikes > 0 {
            self.strikes.store(strikes - 1, Ordering::Relaxed);
        }
    }

    /// Notes a long run.
    pub fn note_slow(&self) {
        let strikes = self.strikes.load(Ordering::Relaxed);
        self.strikes.store(strikes.saturating_add(1).min(STRIKES_MAX), Ordering::Relaxed);
    }

    /// Notes a key that was not declared.
    pub fn note_wide(&self) {
        self.bits.fetch_or(WIDE, Ordering::Relaxed);
    }
}

impl Script {
    /// Reads a script's shebang line.
    ///
    /// # Errors
    /// The text of the error reply, without `ERR `.
    pub fn new(sha: Sha, body: &[u8]) -> Result<Script, Cow<'static, str>> {
        let (flags, shebang_len) = shebang::script_flags(body)?;
        let traits = Traits::default();
        if is_straight(body) {
            traits.note_proven();
        }
        Ok(Script { sha, body: body.into(), shebang_len, flags, traits })
    }

    /// The text to compile.
    pub fn code(&self) -> &[u8] {
        &self.body[self.shebang_len..]
    }

    /// What its runs have shown of it.
    pub fn traits(&self) -> &Traits {
        &self.traits
    }
}

/// Whether a script has no loop and calls nothing that could be one: it ends after at most its own length. A script
/// without any of these words cannot go back to an instruction it has run.
fn is_straight(body: &[u8]) -> bool {
    const WORDS: [&[u8]; 13] = [
        b"for",
        b"while",
        b"repeat",
        b"function",
        b"load",
        b"string",
        b"gsub",
        b"find",
        b"match",
        b"rep",
        b"sort",
        b"cjson",
        b"cmsgpack",
    ];
    body.len() < 4096 && !WORDS.iter().any(|word| body.windows(word.len()).any(|window| window == *word))
}

/// All scripts by SHA-1.
#[derive(Default)]
pub struct ScriptCache {
    scripts: RwLock<HashMap<Sha, Arc<Script>, foldhash::fast::RandomState>>,
    bytes: AtomicUsize,
    generation: AtomicU64,
}

/// Bytes of a cached script beyond its text.
const OVERHEAD: usize = size_of::<Script>() + size_of::<(Sha, Arc<Script>)>() + 2 * size_of::<usize>();

impl ScriptCache {
    /// A script by its SHA-1.
    pub fn get(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.scripts.read().get(sha).cloned()
    }

    /// Adds a script unless it is there; returns the one that is.
    pub fn insert(&self, script: Script) -> Arc<Script> {
        let mut scripts = self.scripts.write();
        let bytes = script.body.len() + OVERHEAD;
        let entry = scripts.entry(script.sha).or_insert_with(|| {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            Arc::new(script)
        });
        entry.clone()
    }

    /// Forgets all scripts.
    pub fn clear(&self) {
        let mut scripts = self.scripts.write();
        scripts.clear();
        self.bytes.store(0, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Changes with each [`ScriptCache::clear`].
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Scripts.
    pub fn len(&self) -> usize {
        self.scripts.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all texts and of the table.
    pub fn used_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
