//! What stands around the records: header, fields, functions, end.

use keyspace::snapshot::SnapshotSink;
use rdb::codec::{Writer, opcode};
use rdb::crc64::crc64_update;
use std::io;

/// The replication history that a file belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replication {
    /// The database that the stream had selected at the instant.
    pub stream_db: u32,
    /// 40 hex digits.
    pub id: String,
    /// How far the history had come.
    pub offset: u64,
}

/// What stands at the beginning of a file.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The version of the format, as the records have it.
    pub version: u16,
    /// The Redis version that is told.
    pub redis_version: String,
    /// Unix seconds.
    pub created_s: i64,
    /// `used_memory` when the file was begun.
    pub used_memory: u64,
    /// Only a primary with a history has one.
    pub replication: Option<Replication>,
    /// The file is the base of an append only file.
    pub is_aof_base: bool,
    /// Source texts of function libraries.
    pub functions: Vec<Vec<u8>>,
    /// Put a checksum at the end (`rdbchecksum`).
    pub checksum: bool,
}

/// Puts an RDB file around the records of a snapshot, into another sink.
pub struct Encoder<'s> {
    sink: &'s mut dyn SnapshotSink,
    checksum: Option<u64>,
    bytes: u64,
}

impl<'s> Encoder<'s> {
    /// Writes the beginning.
    ///
    /// # Errors
    /// The sink's.
    pub fn begin(sink: &'s mut dyn SnapshotSink, header: &Header) -> io::Result<Encoder<'s>> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(format!("REDIS{:04}", header.version).as_bytes());
        let mut writer = Writer::new(&mut bytes);
        let mut field = |name: &str, value: &str| {
            writer.byte(opcode::AUX);
            writer.string(name.as_bytes());
            writer.string(value.as_bytes());
        };
        field("redis-ver", &header.redis_version);
        field("redis-bits", "64");
        field("ctime", &header.created_s.to_string());
        field("used-mem", &header.used_memory.to_string());
        if let Some(replication) = &header.replication {
            field("repl-stream-db", &replication.stream_db.to_string());
            field("repl-id", &replication.id);
            field("repl-offset", &replication.offset.to_string());
        }
        field("aof-base", if header.is_aof_base { "1" } else { "0" });
        for text in &header.functions {
            // Redis: the text as it is, never as an integer.
            writer.byte(opcode::FUNCTION2);
            writer.length(text.len() as u64);
            writer.raw(text);
        }
        let mut encoder = Encoder { sink, checksum: header.checksum.then_some(0), bytes: 0 };
        encoder.block(&bytes)?;
        Ok(encoder)
    }

    /// Writes the end. Returns how long the file is.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<u64> {
        self.block(&[opcode::EOF])?;
        let checksum = self.checksum.unwrap_or(0);
        self.sink.block(&checksum.to_le_bytes())?;
        Ok(self.bytes + 8)
    }
}

impl SnapshotSink for Encoder<'_> {
    fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(checksum) = &mut self.checksum {
            *checksum = crc64_update(*checksum, bytes);
        }
        self.bytes += bytes.len() as u64;
        self.sink.block(bytes)
    }

    fn idle(&mut self) -> io::Result<()> {
        self.sink.idle()
    }
}
