//! A file cut into chunks of whole records, in one pass, without building values.
//!
//! ```text
//! window:  [ parsed, to become a chunk ][ item that may go on beyond the bytes that are there ]
//! ```
//! The splitter finds the ends of records by skipping their parts. What stands between them it reads itself: fields,
//! functions, data of modules. SELECTDB stays in the chunks, and each chunk knows the database it begins in. A record
//! larger than the window makes the window grow, by what is there and never by what is declared.

use keyspace::DbIndex;
use rdb::codec::{DecodeError, RDB_VERSION, Reader, opcode};
use rdb::crc64::crc64_update;
use rdb::value::{ValueType, module_name, skip, skip_module_parts};
use std::io::{self, Read};

/// Bytes of a chunk, roughly; a record may make one larger.
const CHUNK_BYTES: usize = 1 << 20;
/// The opcode of a module's number.
const MODULE_UINT: u64 = 2;

/// Why a file cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The operating system's.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The file ends too early.
    #[error("Unexpected EOF reading RDB file")]
    ShortRead,
    /// It does not begin as an RDB file.
    #[error("Wrong signature trying to load DB from file")]
    WrongSignature,
    /// It is of a version that is not known.
    #[error("Can't handle RDB format version {0}")]
    Version(i64),
    /// It names a database beyond `databases`.
    #[error("Data file was created with a server configured to handle more than {0} databases")]
    TooManyDatabases(u32),
    /// The checksum does not match.
    #[error("RDB CRC error")]
    Checksum {
        /// Of what was read.
        expected: u64,
        /// In the file.
        found: u64,
    },
    /// A record that breaks the format.
    #[error("{0}")]
    Corrupt(DecodeError),
    /// A type byte that is none.
    #[error("Invalid object type: {0}")]
    UnknownType(u8),
    /// A value of a module, which there are none of.
    #[error("The RDB file contains module data I can't load: no matching module type '{0}'")]
    Module(String),
    /// Functions in the form of a release candidate.
    #[error("Pre-release function format not supported.")]
    OldFunctions,
    /// A library that was refused, and why.
    #[error("Failed loading library, {0}")]
    Function(String),
    /// A key that comes twice.
    #[error("RDB has duplicated key '{key}' in DB {db}")]
    Duplicate {
        /// The key.
        key: String,
        /// Its database.
        db: u32,
    },
    /// It was told to stop.
    #[error("loading was stopped")]
    Stopped,
}

impl From<DecodeError> for LoadError {
    fn from(error: DecodeError) -> LoadError {
        match error {
            DecodeError::Truncated => LoadError::ShortRead,
            DecodeError::UnknownType(byte) => LoadError::UnknownType(byte),
            other => LoadError::Corrupt(other),
        }
    }
}

/// Whole records.
#[derive(Debug)]
pub struct Chunk {
    /// The database they begin in.
    pub db: DbIndex,
    /// Where they begin in the file.
    pub offset: u64,
    /// Records and SELECTDBs.
    pub bytes: Vec<u8>,
}

/// What comes next in a file.
#[derive(Debug)]
pub enum Part {
    /// Records.
    Chunk(Chunk),
    /// A field about the file.
    Field(Vec<u8>, Vec<u8>),
    /// Source text of a function library.
    Function(Vec<u8>),
    /// Data of a module of this name.
    ModuleData(String),
    /// The end. The checksum is right, was not written, or is not asked for.
    End {
        /// It was compared.
        is_checked: bool,
        /// The file has none.
        has_no_checksum: bool,
    },
}

/// See the module.
pub struct Splitter<R> {
    source: R,
    window: Vec<u8>,
    /// Bytes of the window that are parsed and not handed out.
    parsed: usize,
    /// The source has no more.
    is_at_end: bool,
    /// Where the window begins in the file.
    offset: u64,
    checksum: u64,
    checks: bool,
    version: i64,
    db: DbIndex,
    /// Database at the beginning of what is parsed.
    chunk_db: DbIndex,
    databases: u32,
    keeps_modules: bool,
}

/// One thing in the window.
enum Item {
    Record,
    Select(u64),
    Hint,
    Field(Vec<u8>, Vec<u8>),
    Function(Vec<u8>),
    ModuleData(u64),
    End,
}

impl<R: Read> Splitter<R> {
    /// Reads the beginning of a file. `checks`: compare the checksum at its end.
    ///
    /// # Errors
    /// It is no RDB file, or of a version that is not known.
    pub fn new(source: R, checks: bool, databases: u32) -> Result<Splitter<R>, LoadError> {
        let mut splitter = Splitter {
            source,
            window: Vec::new(),
            parsed: 0,
            is_at_end: false,
            offset: 0,
            checksum: 0,
            checks,
            version: 0,
            db: DbIndex(0),
            chunk_db: DbIndex(0),
            databases,
            keeps_modules: false,
        };
        splitter.fill(9)?;
        let Some(signature) = splitter.window.first_chunk::<9>() else { return Err(LoadError::ShortRead) };
        let Some(digits) = signature.strip_prefix(b"REDIS") else { return Err(LoadError::WrongSignature) };
        // As C's atoi: digits up to what is none.
        let digits: Vec<u8> = digits.iter().copied().take_while(u8::is_ascii_digit).collect();
        splitter.version = std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        if !(1..=i64::from(RDB_VERSION)).contains(&splitter.version) {
            return Err(LoadError::Version(splitter.version));
        }
        splitter.parsed = 9;
        splitter.consume();
        Ok(splitter)
    }

    /// Does not refuse values of modules: they are in the chunks.
    #[must_use]
    pub fn keeping_modules(mut self) -> Splitter<R> {
        self.keeps_modules = true;
        self
    }

    /// Bytes that were read and not parsed: where the error lies after one.
    pub fn pending(&self) -> &[u8] {
        self.window.get(self.parsed..).unwrap_or(&[])
    }

    /// The version of the file's format.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Bytes of the file read and parsed so far.
    pub fn position(&self) -> u64 {
        self.offset + self.parsed as u64
    }

    /// What was read beyond the end of the RDB data, and the source with the rest: what follows a preamble.
    pub fn into_rest(self) -> (Vec<u8>, R) {
        (self.window, self.source)
    }

    /// The next part.
    ///
    /// # Errors
    /// The file breaks its format, ends too early or its checksum is wrong.
    pub fn next_part(&mut self) -> Result<Part, LoadError> {
        loop {
            let start = self.parsed;
            let rest = self.window.get(start..).unwrap_or(&[]);
            let mut reader = Reader::new(rest);
            match read_item(&mut reader, self.keeps_modules) {
                Ok(item) => {
                    let len = rest.len() - reader.rest().len();
                    if let Some(part) = self.take(item, start, len)? {
                        return Ok(part);
                    }
                }
                Err(DecodeError::Truncated) if !self.is_at_end => {
                    if let Some(chunk) = self.chunk() {
                        return Ok(Part::Chunk(chunk));
                    }
                    let have = self.window.len() - self.parsed;
                    self.fill((2 * have).max(CHUNK_BYTES))?;
                }
                Err(error) => {
                    // What is whole before it is handed out first; then it is met again.
                    if let Some(chunk) = self.chunk() {
                        return Ok(Part::Chunk(chunk));
                    }
                    return Err(self.named(error, start));
                }
            }
        }
    }

    /// A module's value is refused by its name.
    fn named(&self, error: DecodeError, start: usize) -> LoadError {
        let rest = self.window.get(start..).unwrap_or(&[]);
        if let Err(refusal) = refuse_modules(rest) { refusal } else { error.into() }
    }

    /// Takes an item of `len` bytes at `start`. Gives what is to be handed out now.
    fn take(&mut self, item: Item, start: usize, len: usize) -> Result<Option<Part>, LoadError> {
        match item {
            Item::Record | Item::Hint => {}
            Item::Select(db) => {
                let db = u32::try_from(db).ok().filter(|db| *db < self.databases);
                self.db = DbIndex(db.ok_or(LoadError::TooManyDatabases(self.databases))?);
            }
            other => {
                // Records before it are handed out first; it is read again then.
                if let Some(chunk) = self.chunk() {
                    return Ok(Some(Part::Chunk(chunk)));
                }
                self.parsed = start + len;
                self.consume();
                return self.part_of(other).map(Some);
            }
        }
        self.parsed = start + len;
        Ok(if self.parsed >= CHUNK_BYTES { self.chunk().map(Part::Chunk) } else { None })
    }

    fn part_of(&mut self, item: Item) -> Result<Part, LoadError> {
        Ok(match item {
            Item::Field(name, value) => Part::Field(name, value),
            Item::Function(text) => Part::Function(text),
            Item::ModuleData(id) => Part::ModuleData(module_name(id)),
            _ => self.end()?,
        })
    }

    fn end(&mut self) -> Result<Part, LoadError> {
        // Files before version 5 have no checksum.
        if self.version < 5 {
            return Ok(Part::End { is_checked: false, has_no_checksum: false });
        }
        let expected = self.checksum;
        self.fill(8)?;
        let found = Reader::new(&self.window).u64_le()?;
        self.parsed = 8;
        self.consume();
        if self.checks && found != 0 && found != expected {
            return Err(LoadError::Checksum { expected, found });
        }
        Ok(Part::End { is_checked: self.checks && found != 0, has_no_checksum: found == 0 })
    }

    /// What is parsed, as a chunk.
    fn chunk(&mut self) -> Option<Chunk> {
        if self.parsed == 0 {
            return None;
        }
        let rest = self.window.split_off(self.parsed);
        let bytes = std::mem::replace(&mut self.window, rest);
        self.parsed = 0;
        self.checksum = crc64_update(self.checksum, &bytes);
        let chunk = Chunk { db: self.chunk_db, offset: self.offset, bytes };
        self.offset += chunk.bytes.len() as u64;
        self.chunk_db = self.db;
        Some(chunk)
    }

    /// Drops what is parsed.
    fn consume(&mut self) {
        let parsed = std::mem::take(&mut self.parsed);
        self.checksum = crc64_update(self.checksum, self.window.get(..parsed).unwrap_or(&[]));
        self.window.drain(..parsed);
        self.offset += parsed as u64;
    }

    /// Reads until the window has `wanted` bytes behind what is parsed, or the source ends.
    fn fill(&mut self, wanted: usize) -> Result<(), LoadError> {
        let have = self.window.len() - self.parsed;
        let missing = wanted.saturating_sub(have) as u64;
        if missing > 0 {
            let got = self.source.by_ref().take(missing).read_to_end(&mut self.window)?;
            self.is_at_end = (got as u64) < missing;
        }
        Ok(())
    }
}

/// Reads one thing. A record's attributes belong to it.
fn read_item(reader: &mut Reader<'_>, keeps_modules: bool) -> Result<Item, DecodeError> {
    loop {
        match reader.byte()? {
            opcode::EXPIRETIME => drop(reader.i32_le()?),
            opcode::EXPIRETIME_MS => drop(reader.i64_le()?),
            opcode::FREQ => drop(reader.byte()?),
            opcode::IDLE => drop(reader.length()?),
            opcode::SELECTDB => return reader.length().map(Item::Select),
            opcode::RESIZEDB => {
                reader.length()?;
                reader.length()?;
                return Ok(Item::Hint);
            }
            opcode::AUX => return Ok(Item::Field(reader.string()?.into_vec(), reader.string()?.into_vec())),
            opcode::FUNCTION2 => return Ok(Item::Function(reader.string()?.into_vec())),
            opcode::FUNCTION_PRE_GA => return Err(DecodeError::Malformed("pre-release functions")),
            opcode::MODULE_AUX => {
                let id = reader.length()?;
                if reader.length()? != MODULE_UINT {
                    return Err(DecodeError::Malformed("bad when_opcode"));
                }
                reader.length()?;
                skip_module_parts(reader)?;
                return Ok(Item::ModuleData(id));
            }
            opcode::EOF => return Ok(Item::End),
            byte => {
                let value_type = ValueType::from_byte(byte)?;
                reader.skip_string()?;
                if !keeps_modules && matches!(value_type, ValueType::Module2 | ValueType::ModulePreGa) {
                    return Err(DecodeError::Unsupported(value_type));
                }
                skip(value_type, reader)?;
                return Ok(Item::Record);
            }
        }
    }
}

/// Names the module whose value, or the function format, a refused item is of.
fn refuse_modules(bytes: &[u8]) -> Result<(), LoadError> {
    let mut reader = Reader::new(bytes);
    let Ok(mut byte) = reader.byte() else { return Ok(()) };
    loop {
        let skipped = match byte {
            opcode::EXPIRETIME => reader.i32_le().map(drop),
            opcode::EXPIRETIME_MS => reader.i64_le().map(drop),
            opcode::FREQ => reader.byte().map(drop),
            opcode::IDLE => reader.length().map(drop),
            _ => break,
        };
        let next = skipped.and_then(|()| reader.byte());
        let Ok(next) = next else { return Ok(()) };
        byte = next;
    }
    if byte == opcode::FUNCTION_PRE_GA {
        return Err(LoadError::OldFunctions);
    }
    if byte == ValueType::Module2.byte() || byte == ValueType::ModulePreGa.byte() {
        let id = reader.skip_string().and_then(|()| reader.length());
        return Err(id.map_or(LoadError::ShortRead, |id| LoadError::Module(module_name(id))));
    }
    Ok(())
}
