//! Recorded traffic: reading MONITOR logs and append-only files, and dealing their commands out to connections.
//!
//! ```text
//! MONITOR   1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
//! AOF       *3␍␊$3␍␊SET␍␊…      with #TS:1339518083 lines where the server writes them
//! ```
//!
//! The commands of one recorded client stay in their order and on one connection. Clients of another database get a
//! SELECT put before their first command and wherever they change it. Commands that make no sense from here
//! (AUTH, SUBSCRIBE, MONITOR, what a script called …) are left out and counted.

mod record;

use std::{collections::HashMap, fs, ops::Range, path::Path};

use crate::template::encode;

pub(crate) use record::record;

/// Recorded commands in the order of their clients, each client's in the order of time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The entries of each connection.
    ranges: Vec<Range<u64>>,
    names: Vec<String>,
    /// Commands that were left out.
    pub(crate) skipped: u64,
    /// Whether the record tells when the commands were sent.
    pub(crate) has_times: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    start: usize,
    end: usize,
    operation: u16,
    /// Nanoseconds since the first command of the record.
    due: u64,
}

/// A command of the record before it is dealt out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recorded {
    /// Microseconds since 1970; 0 when unknown.
    time_us: u64,
    database: u32,
    client: u32,
    words: Vec<Vec<u8>>,
}

impl Log {
    /// Reads a file for so many connections; fewer are used when the record has fewer clients, unless it is an AOF,
    /// which does not tell them apart and is played by one. The error is a sentence for stderr.
    pub(crate) fn read(path: &Path, connections: usize) -> Result<Log, String> {
        let shown = path.display();
        let bytes = fs::read(path).map_err(|error| format!("Error: cannot read {shown}: {error}"))?;
        let mut log = Log::default();
        let commands = if bytes.first() == Some(&b'*') || bytes.starts_with(b"#TS:") {
            parse_aof(&bytes)
        } else if bytes.starts_with(b"REDIS") {
            Err("it begins with a snapshot: replay the .incr.aof file of the appendonlydir".to_owned())
        } else {
            parse_monitor(&bytes, &mut log.skipped)
        };
        let commands = commands.map_err(|error| format!("Error: {shown}: {error}"))?;
        log.deal(commands, connections);
        if log.entries.is_empty() {
            return Err(format!("Error: {shown}: no command to replay in it"));
        }
        Ok(log)
    }

    /// Number of commands.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Connections it takes.
    pub(crate) fn connections(&self) -> usize {
        self.ranges.len()
    }

    /// Names of the commands, for their rows.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The bytes of neighbouring commands of one client.
    #[inline]
    pub(crate) fn bytes(&self, entries: Range<usize>) -> &[u8] {
        match self.entries.get(entries) {
            Some([first, .., last]) => self.bytes.get(first.start..last.end).unwrap_or_default(),
            Some([only]) => self.bytes.get(only.start..only.end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Index into [`Log::names`] of a command.
    #[inline]
    pub(crate) fn operation(&self, entry: usize) -> usize {
        self.entries.get(entry).map_or(0, |entry| usize::from(entry.operation))
    }

    /// The commands of a connection.
    pub(crate) fn range(&self, connection: usize) -> Range<u64> {
        self.ranges.get(connection).cloned().unwrap_or_default()
    }

    /// When a command is due, in nanoseconds from the start, as fast as recorded.
    pub(crate) fn due(&self, entry: u64) -> u64 {
        usize::try_from(entry).ok().and_then(|at| self.entries.get(at)).map_or(0, |entry| entry.due)
    }

    /// Deals the recorded clients out to connections.
    fn deal(&mut self, commands: Vec<Recorded>, connections: usize) {
        self.has_times = commands.iter().any(|command| command.time_us > 0);
        let first_us = commands.iter().map(|command| command.time_us).min().unwrap_or(0);
        let mut streams: Vec<Vec<Recorded>> = Vec::new();
        let mut stream_of_client: HashMap<u32, usize> = HashMap::new();
        for command in commands {
            let next = stream_of_client.len() % connections.max(1);
            let stream = *stream_of_client.entry(command.client).or_insert(next);
            if streams.len() <= stream {
                streams.resize_with(stream + 1, Vec::new);
            }
            streams[stream].push(command);
        }
        let mut known: HashMap<String, u16> = HashMap::new();
        for stream in streams {
            let begin = self.entries.len() as u64;
            let mut database = 0;
            for Recorded { time_us, database: wanted, words, .. } in stream {
                if words.first().is_some_and(|word| is_left_out(word)) {
                    self.skipped += 1;
                    continue;
                }
                let due = time_us.saturating_sub(first_us).saturating_mul(1_000);
                let is_select = words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"select"));
                if wanted != database && !is_select {
                    self.push(&[b"SELECT".to_vec(), wanted.to_string().into_bytes()], due, &mut known);
                }
                database = wanted;
                if is_select {
                    let number = words.get(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
                    database = number.unwrap_or(database);
                }
                self.push(&words, due, &mut known);
            }
            if self.entries.len() as u64 > begin {
                self.ranges.push(begin..self.entries.len() as u64);
            }
        }
    }

    fn push(&mut self, words: &[Vec<u8>], due: u64, known: &mut HashMap<String, u16>) {
        let name = words.first().map(|word| String::from_utf8_lossy(word).to_uppercase()).unwrap_or_default();
        let operation = *known.entry(name.clone()).or_insert_with(|| {
            self.names.push(name);
            u16::try_from(self.names.len() - 1).unwrap_or(u16::MAX)
        });
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&encode(words));
        self.entries.push(Entry { start, end: self.bytes.len(), operation, due });
    }
}

/// Reads MONITOR's lines; others (`OK`, comments) are passed over.
fn parse_monitor(bytes: &[u8], skipped: &mut u64) -> Result<Vec<Recorded>, String> {
    let mut commands = Vec::new();
    let mut clients: HashMap<Vec<u8>, u32> = HashMap::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        let line = line.strip_prefix(b"+").unwrap_or(line);
        if line.is_empty() || line == b"OK" || line.starts_with(b"#") {
            continue;
        }
        let wrong = || format!("line {} is none of MONITOR: {}", index + 1, String::from_utf8_lossy(line));
        let (time_us, rest) = monitor_time(line).ok_or_else(wrong)?;
        let head_end = rest.windows(3).position(|window| window == b"] \"").ok_or_else(wrong)?;
        let head = rest.get(1..head_end).filter(|_| rest.starts_with(b"[")).ok_or_else(wrong)?;
        let (database, client) = split_at_byte(head, b' ').ok_or_else(wrong)?;
        if client == b"lua" {
            // The script that called it is in the record too.
            *skipped += 1;
            continue;
        }
        let database = std::str::from_utf8(database).ok().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        let words = quoted_words(rest.get(head_end + 1..).unwrap_or_default()).ok_or_else(wrong)?;
        if words.is_empty() {
            return Err(wrong());
        }
        let next = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        let client = *clients.entry(client.to_vec()).or_insert(next);
        commands.push(Recorded { time_us, database, client, words });
    }
    Ok(commands)
}

/// Takes `seconds.micros ` off a line.
fn monitor_time(line: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = split_at_byte(line, b' ')?;
    let (seconds, micros) = std::str::from_utf8(time).ok()?.split_once('.')?;
    if micros.len() != 6 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    Some((seconds.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?, rest))
}

/// Words in double quotes with MONITOR's escapes.
fn quoted_words(mut rest: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        let Some(inner) = rest.strip_prefix(b"\"") else {
            return rest.is_empty().then_some(words);
        };
        let mut word = Vec::new();
        let mut at = 0;
        loop {
            match inner.get(at)? {
                b'"' => break,
                b'\\' => {
                    let (byte, length) = match inner.get(at + 1)? {
                        b'n' => (b'\n', 2),
                        b'r' => (b'\r', 2),
                        b't' => (b'\t', 2),
                        b'a' => (7, 2),
                        b'b' => (8, 2),
                        b'x' => {
                            let digits = std::str::from_utf8(inner.get(at + 2..at + 4)?).ok()?;
                            (u8::from_str_radix(digits, 16).ok()?, 4)
                        }
                        other => (*other, 2),
                    };
                    word.push(byte);
                    at += length;
                }
                byte => {
                    word.push(*byte);
                    at += 1;
                }
            }
        }
        words.push(word);
        rest = inner.get(at + 1..)?;
    }
}

/// Reads an append-only file. Its SELECTs are kept as they are: all is played by one client.
fn parse_aof(bytes: &[u8]) -> Result<Vec<Recorded>, String> {
    let mut commands = Vec::new();
    let (mut at, mut time_us, mut database) = (0, 0, 0);
    while let Some(mark) = bytes.get(at) {
        if *mark == b'#' {
            let (line, next) = aof_line(bytes, at)?;
            if let Some(seconds) = line.strip_prefix("#TS:").and_then(|text| text.parse::<u64>().ok()) {
                time_us = seconds.saturating_mul(1_000_000);
            }
            at = next;
            continue;
        }
        let (count, mut next) = aof_number(bytes, at, b'*')?;
        let mut words = Vec::new();
        for _ in 0..count {
            let (length, start) = aof_number(bytes, next, b'$')?;
            let Some(word) = start.checked_add(length).and_then(|end| bytes.get(start..end)) else {
                // The file was cut off while it was written.
                return Ok(commands);
            };
            words.push(word.to_vec());
            next = start + length + 2;
        }
        at = next;
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"select")) {
            let number = words.get(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
            database = number.unwrap_or(database);
        }
        if !words.is_empty() {
            commands.push(Recorded { time_us, database, client: 0, words });
        }
    }
    Ok(commands)
}

fn aof_line(bytes: &[u8], at: usize) -> Result<(&str, usize), String> {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.windows(2).position(|window| window == b"\r\n");
    let end = end.ok_or_else(|| format!("byte {at}: a line does not end"))?;
    let line = std::str::from_utf8(&rest[..end]).map_err(|_| format!("byte {at}: not an append-only file"))?;
    Ok((line, at + end + 2))
}

fn aof_number(bytes: &[u8], at: usize, mark: u8) -> Result<(usize, usize), String> {
    let (line, next) = aof_line(bytes, at)?;
    let number = line.strip_prefix(char::from(mark)).and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| format!("byte {at}: '{line}' is not the '{}' expected", char::from(mark)))?;
    Ok((number, next))
}

fn split_at_byte(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn is_left_out(name: &[u8]) -> bool {
    LEFT_OUT.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

/// What would change how the connection is spoken to, end it or the server, or is an answer to a primary.
const LEFT_OUT: &[&str] = &[
    "auth",
    "hello",
    "monitor",
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "client",
    "quit",
    "reset",
    "shutdown",
    "debug",
    "replconf",
    "psync",
    "sync",
    "replicaof",
    "slaveof",
    "failover",
    "cluster",
    "readonly",
    "readwrite",
    "asking",
];

#[cfg(test)]
mod tests;
