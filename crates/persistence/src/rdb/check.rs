//! `check-rdb`: reads a file as the loader does and tells what is in it, or where it breaks, in Redis' words.

use super::split::{Chunk, LoadError, Part, Splitter};
use crate::bar::Bar;
use crate::disk::Disk;
use keyspace::codec::{ValueLimits, read_value};
use keyspace::{hash, list, set, zset};
use rdb::codec::{DecodeError, Reader, opcode};
use rdb::value::{Scrutiny, ValueType, decode, skip};
use std::io::{self, Read, Write};
use std::path::Path;

/// Databases that a file may name: as many as a number of the server can say.
const DATABASES: u32 = i32::MAX as u32;

/// What was being read when something broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Start,
    ReadType,
    ReadExpire,
    ReadKey,
    ReadValue,
    CheckSum,
    ReadLength,
    ReadField,
    ReadModuleData,
    ReadFunctions,
}

impl Doing {
    fn name(self) -> &'static str {
        match self {
            Doing::Start => "start",
            Doing::ReadType => "read-type",
            Doing::ReadExpire => "read-expire",
            Doing::ReadKey => "read-key",
            Doing::ReadValue => "read-object-value",
            Doing::CheckSum => "check-sum",
            Doing::ReadLength => "read-len",
            Doing::ReadField => "read-aux",
            Doing::ReadModuleData => "read-module-aux",
            Doing::ReadFunctions => "read-functions",
        }
    }
}

/// Redis' names of the types of values.
fn type_name(value_type: u8) -> &'static str {
    const NAMES: [&str; 22] = [
        "string",
        "list-linked",
        "set-hashtable",
        "zset-v1",
        "hash-hashtable",
        "zset-v2",
        "module-pre-release",
        "module-value",
        "",
        "hash-zipmap",
        "list-ziplist",
        "set-intset",
        "zset-ziplist",
        "hash-ziplist",
        "quicklist",
        "stream",
        "hash-listpack",
        "zset-listpack",
        "quicklist-v2",
        "stream-v2",
        "set-listpack",
        "stream-v3",
    ];
    NAMES.get(usize::from(value_type)).copied().unwrap_or("unknown")
}

/// The state of a check.
struct Check<'o> {
    out: &'o mut dyn Write,
    now_ms: i64,
    offset: u64,
    doing: Doing,
    key: Option<Vec<u8>>,
    /// Redis: 0 before the first key.
    value_type: Option<u8>,
    keys: u64,
    expires: u64,
    expired: u64,
}

/// What a reader found wrong.
enum Fault {
    Decode(DecodeError),
    Output(io::Error),
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Fault {
        Fault::Decode(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Output(error)
    }
}

/// Checks what `source` gives and writes the report. True: it looks fine.
///
/// # Errors
/// The report cannot be written.
pub fn check(
    source: impl Read,
    name: &str,
    now_ms: i64,
    out: &mut dyn Write,
    mut progress: impl FnMut(u64),
) -> io::Result<bool> {
    let mut check = Check {
        out,
        now_ms,
        offset: 0,
        doing: Doing::Start,
        key: None,
        value_type: Some(0),
        keys: 0,
        expires: 0,
        expired: 0,
    };
    check.info(&format!("Checking RDB file {name}"))?;
    let mut splitter = match Splitter::new(source, true, DATABASES) {
        Ok(splitter) => splitter.keeping_modules(),
        Err(error) => {
            check.offset = if matches!(error, LoadError::ShortRead) { 0 } else { 9 };
            return check.error(&text_of(&error)).map(|()| false);
        }
    };
    loop {
        let part = match splitter.next_part() {
            Ok(part) => part,
            Err(error) => {
                check.offset = splitter.position();
                check.diagnose(splitter.pending(), &error);
                return check.error(&text_of(&error)).map(|()| false);
            }
        };
        check.offset = splitter.position();
        progress(check.offset);
        match part {
            Part::Chunk(chunk) => match check.chunk(&chunk) {
                Ok(()) => {}
                Err(Fault::Output(error)) => return Err(error),
                Err(Fault::Decode(error)) => {
                    let text = match error {
                        DecodeError::Truncated => "Unexpected EOF reading RDB file".to_owned(),
                        other => format!("Internal error in RDB reading offset {} -> {other}", check.offset),
                    };
                    return check.error(&text).map(|()| false);
                }
            },
            Part::Field(name, value) => {
                let text = format!("AUX FIELD {} = '{}'", lossy(&name), lossy(&value));
                check.info(&text)?;
            }
            Part::Function(_) => check.doing = Doing::ReadFunctions,
            Part::ModuleData(module) => check.info(&format!("MODULE AUX for: {module}"))?,
            Part::End { is_checked, has_no_checksum } => {
                if has_no_checksum {
                    check.info("RDB file was saved with checksum disabled: no check performed.")?;
                } else if is_checked {
                    check.info("Checksum OK")?;
                }
                check.info("\\o/ RDB looks OK! \\o/")?;
                check.totals()?;
                return Ok(true);
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text_of(error: &LoadError) -> String {
    error.to_string()
}

impl Check<'_> {
    fn info(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "[offset {}] {text}", self.offset)
    }

    fn totals(&mut self) -> io::Result<()> {
        writeln!(self.out, "[info] {} keys read", self.keys)?;
        writeln!(self.out, "[info] {} expires", self.expires)?;
        writeln!(self.out, "[info] {} already expired", self.expired)
    }

    fn error(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "--- RDB ERROR DETECTED ---")?;
        self.info(text)?;
        writeln!(self.out, "[additional info] While doing: {}", self.doing.name())?;
        if let Some(key) = &self.key {
            writeln!(self.out, "[additional info] Reading key '{}'", lossy(key))?;
        }
        if let Some(value_type) = self.value_type {
            writeln!(self.out, "[additional info] Reading type {value_type} ({})", type_name(value_type))?;
        }
        self.totals()
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<(), Fault> {
        let mut reader = Reader::new(&chunk.bytes);
        let mut expiry = None;
        while !reader.rest().is_empty() {
            let at = |reader: &Reader<'_>| chunk.offset + (chunk.bytes.len() - reader.rest().len()) as u64;
            self.doing = Doing::ReadType;
            self.offset = at(&reader);
            match reader.byte()? {
                opcode::EXPIRETIME => expiry = Some(i64::from(reader.i32_le()?).saturating_mul(1000)),
                opcode::EXPIRETIME_MS => expiry = Some(reader.i64_le()?),
                opcode::FREQ => drop(reader.byte()?),
                opcode::IDLE => drop(reader.length()?),
                opcode::SELECTDB => {
                    let db = reader.length()?;
                    self.offset = at(&reader);
                    self.info(&format!("Selecting DB ID {db}"))?;
                }
                opcode::RESIZEDB => {
                    reader.length()?;
                    reader.length()?;
                }
                byte => {
                    self.value_type = Some(byte);
                    self.record(byte, &mut reader, expiry.take())?;
                    self.offset = at(&reader);
                    self.key = None;
                    self.value_type = None;
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, byte: u8, reader: &mut Reader<'_>, expiry: Option<i64>) -> Result<(), Fault> {
        self.doing = Doing::ReadKey;
        let value_type = ValueType::from_byte(byte)?;
        self.key = Some(reader.string()?.into_vec());
        self.keys += 1;
        self.doing = Doing::ReadValue;
        if value_type == ValueType::Module2 {
            skip(value_type, reader)?;
        } else {
            let limits = ValueLimits {
                hash: &hash::Limits { max_listpack_entries: 128, max_listpack_value: 64 },
                set: &set::Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 },
                zset: &zset::ZSetLimits { max_listpack_entries: 128, max_listpack_value: 64 },
                list: &list::ListLimits::default(),
            };
            read_value(decode(value_type, reader, Scrutiny::Full)?, limits)?;
        }
        if let Some(at_ms) = expiry.filter(|at_ms| *at_ms != -1) {
            self.expires += 1;
            self.expired += u64::from(at_ms < self.now_ms);
        }
        Ok(())
    }

    /// What was being read at the beginning of `pending`, which could not be read.
    fn diagnose(&mut self, pending: &[u8], error: &LoadError) {
        if matches!(error, LoadError::Checksum { .. }) {
            self.doing = Doing::CheckSum;
            return;
        }
        let mut reader = Reader::new(pending);
        loop {
            self.doing = Doing::ReadType;
            let Ok(byte) = reader.byte() else { return };
            let skipped = match byte {
                opcode::EXPIRETIME => self.while_doing(Doing::ReadExpire, reader.i32_le().map(drop)),
                opcode::EXPIRETIME_MS => self.while_doing(Doing::ReadExpire, reader.i64_le().map(drop)),
                opcode::FREQ => reader.byte().map(drop),
                opcode::IDLE => reader.length().map(drop),
                _ => {
                    self.doing = match byte {
                        opcode::SELECTDB | opcode::RESIZEDB => Doing::ReadLength,
                        opcode::AUX => Doing::ReadField,
                        opcode::MODULE_AUX => Doing::ReadModuleData,
                        opcode::FUNCTION2 => Doing::ReadFunctions,
                        opcode::EOF => Doing::CheckSum,
                        _ => Doing::ReadType,
                    };
                    if ValueType::from_byte(byte).is_ok() {
                        self.value_type = Some(byte);
                        self.doing = Doing::ReadKey;
                        if let Ok(key) = reader.string() {
                            self.key = Some(key.into_vec());
                            self.keys += 1;
                            self.doing = Doing::ReadValue;
                        }
                    }
                    return;
                }
            };
            if skipped.is_err() {
                return;
            }
        }
    }

    /// Notes what was done when `result` came out.
    fn while_doing(&mut self, doing: Doing, result: Result<(), DecodeError>) -> Result<(), DecodeError> {
        self.doing = doing;
        result
    }
}

/// Runs `check-rdb` with the arguments after its name. Returns the exit code.
pub fn run(program: &str, arguments: &[std::ffi::OsString], disk: &dyn Disk, version: &str) -> i32 {
    let [path] = arguments else {
        eprintln!("Usage: {program} <rdb-file-name>");
        return 1;
    };
    if path == "-v" || path == "--version" {
        println!("redis-check-rdb {version}");
        return 0;
    }
    let path = Path::new(path);
    match check_file(path, disk, &mut io::stdout().lock()) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("Cannot check {}: {error}", path.display());
            1
        }
    }
}

/// Checks a file, with a bar on the terminal while it takes long.
///
/// # Errors
/// It cannot be opened, or the report cannot be written.
pub fn check_file(path: &Path, disk: &dyn Disk, out: &mut dyn Write) -> io::Result<bool> {
    let (file, len) = disk.open(path)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut bar = Bar::new("checking", len);
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    // The report is whole lines; between them the bar may be on the terminal.
    let mut report = Vec::new();
    let is_fine = check(file, &path.display().to_string(), now_ms, &mut report, |done| bar.show(done))?;
    bar.clear();
    out.write_all(&report)?;
    Ok(is_fine)
}
