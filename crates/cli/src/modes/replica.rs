//! `--rdb`, `--functions-rdb` and `--replica`: the client asks for a synchronization as a replica would, and keeps the
//! snapshot in a file, or shows the commands that follow it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use resp::Value;

use crate::connection::Connection;
use crate::output::{Exit, Outcome, complain, fail, os_text, print_line, text};
use crate::session::Session;

/// Bytes of the mark behind a snapshot whose length nobody knew.
const MARK_LEN: usize = 40;
/// Longest first line of a snapshot.
const LINE_MAX: usize = 1024;

/// Where the snapshot ends.
enum End {
    Length(u64),
    Mark(Vec<u8>),
}

/// Keeps a snapshot in a file, `-` is standard output; `functions_only`: without keys.
pub(super) fn save(session: &mut Session, path: &Path, functions_only: bool) -> Outcome<()> {
    session.connect_or_exit()?;
    let Ok(connection) = session.connection() else { return Err(Exit(1)) };
    let knows_marks = configure(connection, "capa", "eof")?;
    configure(connection, "rdb-only", "1")?;
    if functions_only && !configure(connection, "rdb-filter-only", "functions")? {
        return fail(format_args!("Failed requesting functions only RDB from server, aborting"));
    }
    take(connection, path, knows_marks)
}

/// Keeps the snapshot of a connected server in a file, as for the backup of a cluster.
pub(super) fn fetch(session: &mut Session, path: &Path) -> Outcome<()> {
    let Ok(connection) = session.connection() else { return Err(Exit(1)) };
    take(connection, path, false)?;
    // What follows a snapshot is of no use here.
    session.disconnect();
    Ok(())
}

/// Asks for a snapshot and writes it; `knows_marks`: the server was told that it may have an end that only shows.
fn take(connection: &mut Connection, path: &Path, knows_marks: bool) -> Outcome<()> {
    let end = ask(connection, "SYNC")?;
    if let End::Mark(_) = end
        && !knows_marks
    {
        return fail(format_args!("The server sends a snapshot of unknown length though it was not asked to"));
    }
    match &end {
        End::Length(bytes) => {
            complain(format_args!("SYNC sent to master, writing {bytes} bytes to '{}'", path.display()));
        }
        End::Mark(_) => complain(format_args!(
            "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '{}'",
            path.display()
        )),
    }
    let bytes = if path == Path::new("-") {
        let mut out = io::stdout().lock();
        receive(connection, &end, &mut out, path)?
    } else {
        let mut file = match File::create(path) {
            Ok(file) => file,
            Err(error) => return fail(format_args!("Error opening '{}': {}", path.display(), os_text(&error))),
        };
        let bytes = receive(connection, &end, &mut file, path)?;
        if let Err(error) = file.sync_all() {
            return fail(format_args!("Fail to fsync '{}': {}", path.display(), os_text(&error)));
        }
        bytes
    };
    match end {
        End::Length(_) => complain(format_args!("Transfer finished with success.")),
        End::Mark(_) => complain(format_args!("Transfer finished with success after {bytes} bytes")),
    }
    Ok(())
}

/// Shows the commands that a primary sends its replicas.
pub(super) fn show(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let Ok(connection) = session.connection() else { return Err(Exit(1)) };
    // Without a mark the stream follows at once; with one a primary would wait for an acknowledgement.
    let end = ask(connection, "SYNC")?;
    match &end {
        End::Length(bytes) => {
            complain(format_args!("SYNC with master, discarding {bytes} bytes of bulk transfer..."));
        }
        End::Mark(_) => {
            complain(format_args!("SYNC with master, discarding bytes of bulk transfer until EOF marker..."));
        }
    }
    let bytes = receive(connection, &end, &mut io::sink(), Path::new("-"))?;
    match end {
        End::Length(_) => complain(format_args!("SYNC done. Logging commands from master.")),
        End::Mark(_) => complain(format_args!("SYNC done after {bytes} bytes. Logging commands from master.")),
    }
    loop {
        match connection.read() {
            Ok(Value::Array(words)) => {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| resp::quote_repr(word.as_bytes().unwrap_or_default()))
                    .map(|word| text(word.as_ref()).into_owned())
                    .collect();
                print_line(format_args!("{}", words.join(",")))?;
            }
            Ok(_) => {}
            Err(error) => return fail(format_args!("Error: {error}")),
        }
    }
}

/// Sends one REPLCONF. False: the server does not know it.
fn configure(connection: &mut Connection, option: &str, value: &str) -> Outcome<bool> {
    complain(format_args!("sending REPLCONF {option} {value}"));
    match connection.call(&["REPLCONF", option, value]) {
        Ok(Value::Error(reason)) => {
            complain(format_args!("REPLCONF {option} error: {}", text(&reason)));
            Ok(false)
        }
        Ok(_) => Ok(true),
        Err(error) => fail(format_args!("\nI/O error: {error}")),
    }
}

/// Asks for the snapshot and reads its first line.
fn ask(connection: &mut Connection, command: &str) -> Outcome<End> {
    if connection.send(&[command]).is_err() {
        return fail(format_args!("Error writing to master"));
    }
    let mut line = Vec::new();
    loop {
        let byte = match connection.take_raw(1) {
            Ok(bytes) => bytes,
            Err(_) => return fail(format_args!("Error reading bulk length while SYNCing")),
        };
        match byte.first() {
            // Signs of life before the snapshot is ready.
            Some(b'\n') if line.is_empty() => {}
            Some(b'\n') => break,
            Some(byte) if line.len() < LINE_MAX => line.push(*byte),
            _ => return fail(format_args!("Error reading bulk length while SYNCing")),
        }
    }
    let line = line.trim_ascii_end();
    match line {
        [b'$', b'E', b'O', b'F', b':', mark @ ..] if mark.len() >= MARK_LEN => {
            Ok(End::Mark(mark.get(..MARK_LEN).unwrap_or_default().to_vec()))
        }
        [b'$', number @ ..] => match std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()) {
            Some(bytes) => Ok(End::Length(bytes)),
            None => fail(format_args!("SYNC with master failed: {}", text(line))),
        },
        _ => fail(format_args!("SYNC with master failed: {}", text(line))),
    }
}

/// Takes the snapshot; gives its length.
fn receive(connection: &mut Connection, end: &End, out: &mut impl Write, path: &Path) -> Outcome<u64> {
    let mut written = 0_u64;
    let mut held: Vec<u8> = Vec::new();
    let mut write = |bytes: &[u8], written: &mut u64| -> Outcome<()> {
        *written += bytes.len() as u64;
        match out.write_all(bytes) {
            Ok(()) => Ok(()),
            Err(error) => fail(format_args!("Error writing data to file '{}': {}", path.display(), os_text(&error))),
        }
    };
    loop {
        let most = match end {
            End::Length(bytes) if written >= *bytes => return Ok(written),
            End::Length(bytes) => usize::try_from(bytes - written).unwrap_or(usize::MAX),
            End::Mark(_) => usize::MAX,
        };
        let bytes = match connection.take_raw(most) {
            Ok(bytes) => bytes,
            Err(error) => return fail(format_args!("I/O Error reading RDB payload from socket: {error}")),
        };
        let End::Mark(mark) = end else {
            write(&bytes, &mut written)?;
            continue;
        };
        held.extend_from_slice(&bytes);
        if held.ends_with(mark) {
            let payload = held.len() - mark.len();
            write(held.get(..payload).unwrap_or_default(), &mut written)?;
            return Ok(written);
        }
        let sure = held.len().saturating_sub(MARK_LEN);
        let rest = held.split_off(sure);
        write(&held, &mut written)?;
        held = rest;
    }
}
