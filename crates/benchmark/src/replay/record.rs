//! `--record FILE`: MONITOR's lines into a file, for a later `--replay`.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use resp::Value;

use crate::{options::Options, preflight::Connection};

/// Records for a time, or until Ctrl-C. Returns the number of commands; the error is a sentence for stderr.
pub(crate) fn record(
    options: &Options,
    path: &Path,
    duration: Duration,
    interrupted: &AtomicBool,
) -> Result<u64, String> {
    let (mut connection, server) =
        Connection::open(options, None).map_err(|failure| failure.0.trim_end().to_owned())?;
    let failed = |error: &std::io::Error| format!("Error: cannot write {}: {error}", path.display());
    let file = File::create(path).map_err(|error| failed(&error))?;
    let mut file = BufWriter::new(file);
    writeln!(file, "# MONITOR of {}", server.name).map_err(|error| failed(&error))?;
    match connection.ask(&["MONITOR"]) {
        Ok(Value::Error(text)) => return Err(format!("Error: MONITOR: {}", String::from_utf8_lossy(&text))),
        Ok(_) => {}
        Err(error) => return Err(format!("Error: MONITOR: {error}")),
    }
    connection.set_patience(POLL).map_err(|error| format!("Error: {error}"))?;
    let end = Instant::now() + duration;
    let mut count = 0;
    while Instant::now() < end && !interrupted.load(Ordering::Relaxed) {
        match connection.next_reply() {
            Ok(Some(value)) => {
                let line = value.as_bytes().unwrap_or_default();
                file.write_all(line).and_then(|()| file.write_all(b"\n")).map_err(|error| failed(&error))?;
                count += 1;
            }
            Ok(None) => {}
            Err(error) => return Err(format!("Error: {}: {}", server.name, crate::preflight::reason(&error))),
        }
    }
    file.flush().map_err(|error| failed(&error))?;
    Ok(count)
}

/// How often is looked whether the time is over.
const POLL: Duration = Duration::from_millis(50);
