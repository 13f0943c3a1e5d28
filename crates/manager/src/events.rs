//! The log of events: what people asked for, and what happened by itself.
//!
//! All managers share it in the coordinator, where the API reads it. Each keeps what it wrote itself in a file, too: one
//! JSON object a line in `events.ndjson`, each with the SHA-256 of the line before it and itself, so a line that is
//! taken out or changed shows. The newest are kept in memory too, for when the coordinator does not answer. At [`FILE_BYTES_MAX`] the file gets a
//! number behind its name and a new one is begun; the chain goes on through it.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};
use topology::coordinator::{Coordinator, EventsFrom, NewEvent, StoreError};

use crate::app::App;

use crate::clock::{instant, now_ms};
use crate::shapes::Event;

/// Events that are kept in memory.
const KEPT: usize = 10_000;
/// Where a file ends.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files with a number that are kept.
const OLD_FILES: u32 = 4;
/// Events that wait for the coordinator, and that are brought there together.
const OUTBOX: usize = 4_096;
const BATCH: usize = 64;
/// Between two attempts to bring events to the coordinator.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest text of a field: they may come from clients.
const TEXT_BYTES_MAX: usize = 1_000;

/// The log.
#[derive(Debug)]
pub(crate) struct EventLog {
    inner: Mutex<Inner>,
    /// Counts events that are to be read.
    newest: watch::Sender<u64>,
    /// What the coordinator is to get.
    outbox: mpsc::Sender<Event>,
    inbox: Mutex<Option<mpsc::Receiver<Event>>>,
}

#[derive(Debug)]
struct Inner {
    kept: VecDeque<Event>,
    last_seq: u64,
    chain: String,
    path: Option<PathBuf>,
    file: Option<File>,
    file_bytes: u64,
    /// Lines that could not be written, said once.
    is_failing: bool,
}

/// An event that is about to be written: number, instant and chain are given by the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Note {
    pub(crate) kind: Kind,
    pub(crate) who: String,
    pub(crate) from: String,
    pub(crate) action: &'static str,
    pub(crate) object: String,
    pub(crate) detail: String,
    pub(crate) result: String,
    pub(crate) term: u64,
}

/// Whether somebody asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Somebody did.
    Audit,
    /// It happened.
    #[default]
    Event,
}

impl Note {
    /// Something that the manager did or saw.
    pub(crate) fn event(action: &'static str, object: impl Into<String>, detail: impl Into<String>) -> Note {
        Note {
            who: "manager".into(),
            action,
            object: object.into(),
            detail: detail.into(),
            result: "ok".into(),
            ..Note::default()
        }
    }
}

impl EventLog {
    /// A log in memory alone.
    pub(crate) fn in_memory() -> EventLog {
        let inner = Inner {
            kept: VecDeque::new(),
            last_seq: 0,
            chain: String::new(),
            path: None,
            file: None,
            file_bytes: 0,
            is_failing: false,
        };
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        EventLog { inner: Mutex::new(inner), newest: watch::Sender::new(0), outbox, inbox: Mutex::new(Some(inbox)) }
    }

    /// Opens the log of a folder; the second is what is wrong with what it holds, if anything is.
    pub(crate) fn open(folder: &Path) -> io::Result<(EventLog, Option<String>)> {
        let path = folder.join("events.ndjson");
        let log = EventLog::in_memory();
        let complaint;
        {
            let mut inner = log.inner.lock().unwrap_or_else(PoisonError::into_inner);
            complaint = inner.read(&path)?;
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            inner.file_bytes = file.metadata()?.len();
            inner.file = Some(file);
            inner.path = Some(path);
            inner.end_torn_line()?;
        }
        Ok((log, complaint))
    }

    /// Writes an event. A disk that fails does not stop the manager: the event is kept in memory and on standard error.
    pub(crate) fn write(&self, note: Note) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut event = Event {
            seq: inner.last_seq + 1,
            at_ms: now_ms(),
            kind: if note.kind == Kind::Audit { "audit".into() } else { "event".into() },
            who: short(note.who),
            from: short(note.from),
            action: note.action.into(),
            object: short(note.object),
            detail: short(note.detail),
            result: short(note.result),
            term: note.term,
            chain: String::new(),
        };
        event.chain = chain(&inner.chain, &event);
        inner.last_seq = event.seq;
        inner.chain.clone_from(&event.chain);
        inner.append(&event);
        // Its own log may be closed.
        let _ = writeln!(io::stdout().lock(), "{}", line(&event));
        if inner.kept.len() >= KEPT {
            inner.kept.pop_front();
        }
        inner.kept.push_back(event.clone());
        drop(inner);
        // A coordinator that was away for so many misses some: the file has them.
        if self.outbox.try_send(event).is_err() {
            self.newest.send_modify(|count| *count += 1);
        }
    }

    /// The newest `limit` events with a number over `after`, oldest first; `is_wanted` picks.
    pub(crate) fn list(&self, after: u64, limit: usize, is_wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let newest_first =
            inner.kept.iter().rev().take_while(|event| event.seq > after).filter(|event| is_wanted(event));
        let mut events: Vec<Event> = newest_first.take(limit).cloned().collect();
        events.reverse();
        events
    }

    /// Changes when there is something new to read.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

impl Inner {
    /// Takes over what a file holds.
    fn read(&mut self, path: &Path) -> io::Result<Option<String>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut complaint = None;
        let mut is_first = true;
        for (index, line) in BufReader::new(file).split(b'\n').enumerate() {
            let line = line?;
            if line.is_empty() {
                continue;
            }
            let Ok(event) = serde_json::from_slice::<Event>(&line) else {
                complaint.get_or_insert(format!("line {} is no event", index + 1));
                continue;
            };
            // The first line of a file follows the last one of the file before.
            if !is_first && chain(&self.chain, &event) != event.chain {
                complaint.get_or_insert(format!("line {} does not follow the one before it", index + 1));
            }
            is_first = false;
            self.last_seq = event.seq;
            self.chain.clone_from(&event.chain);
            if self.kept.len() >= KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back(event);
        }
        Ok(complaint)
    }

    /// A line that a crash cut off ends here, so that the next one is whole.
    fn end_torn_line(&mut self) -> io::Result<()> {
        let (Some(path), Some(file)) = (&self.path, &mut self.file) else {
            return Ok(());
        };
        let is_torn = fs::read(path)?.last().is_some_and(|byte| *byte != b'\n');
        if is_torn {
            file.write_all(b"\n")?;
            self.file_bytes += 1;
        }
        Ok(())
    }

    fn append(&mut self, event: &Event) {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        if self.file_bytes + line.len() as u64 > FILE_BYTES_MAX {
            self.begin_file();
        }
        let Some(file) = &mut self.file else {
            return;
        };
        match file.write_all(&line) {
            Ok(()) => {
                self.file_bytes += line.len() as u64;
                self.is_failing = false;
            }
            Err(error) => {
                if !self.is_failing {
                    eprintln!("oxidis manager: the log of events cannot be written: {error}; it goes on here");
                }
                self.is_failing = true;
                eprintln!("{}", String::from_utf8_lossy(&line).trim_end());
            }
        }
    }

    /// Puts the file aside and begins a new one.
    fn begin_file(&mut self) {
        let Some(path) = self.path.clone() else {
            return;
        };
        let old = |number: u32| path.with_extension(format!("{number}.ndjson"));
        for number in (1..OLD_FILES).rev() {
            // The highest may not be there yet.
            let _ = fs::rename(old(number), old(number + 1));
        }
        let renamed = fs::rename(&path, old(1));
        let opened = renamed.and_then(|()| OpenOptions::new().create(true).append(true).open(&path));
        match opened {
            Ok(file) => {
                self.file = Some(file);
                self.file_bytes = 0;
            }
            Err(error) => {
                eprintln!("oxidis manager: no new log of events could be begun: {error}; the old one grows on")
            }
        }
    }
}

/// Brings events to the coordinator until the manager ends.
pub(crate) async fn ship(app: Arc<App>) {
    let inbox = app.events.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut inbox) = inbox else {
        return;
    };
    let mut stop = app.stop.subscribe();
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            count = inbox.recv_many(&mut batch, BATCH) => if count == 0 { return },
            _ = stop.changed() => {
                // What is left goes once, without further attempts.
                while let Ok(event) = inbox.try_recv() {
                    batch.push(event);
                }
                let events: Vec<NewEvent> = batch.iter().map(packed).collect();
                let _ = app.store.ask(move |coordinator| coordinator.append(&events)).await;
                return;
            }
        }
        loop {
            let events: Vec<NewEvent> = batch.iter().map(packed).collect();
            let shipped = app.store.ask(move |coordinator| coordinator.append(&events)).await;
            app.events.newest.send_modify(|count| *count += 1);
            if shipped.is_ok() || *stop.borrow() {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

/// An event as the coordinator keeps it.
fn packed(event: &Event) -> NewEvent {
    NewEvent {
        time_ms: event.at_ms,
        who: event.who.clone(),
        kind: event.action.clone(),
        text: line(event),
        detail: serde_json::to_value(event).unwrap_or_default(),
    }
}

/// The events of all managers: the newest `limit`, or those after a number; oldest first.
pub(crate) fn read(coordinator: &dyn Coordinator, after: Option<u64>, limit: usize) -> Result<Vec<Event>, StoreError> {
    let from = after.map_or(EventsFrom::Before(u64::MAX), EventsFrom::After);
    let mut events: Vec<Event> = coordinator
        .events(from, limit)?
        .into_iter()
        .map(|kept| {
            let event: Option<Event> = serde_json::from_value(kept.event.detail).ok();
            let plain = || Event {
                at_ms: kept.event.time_ms,
                who: kept.event.who,
                action: kept.event.kind,
                detail: kept.event.text,
                ..Event::default()
            };
            // The number that all managers share.
            Event { seq: kept.id, ..event.unwrap_or_else(plain) }
        })
        .collect();
    events.sort_by_key(|event| event.seq);
    Ok(events)
}

/// An event for the process's own log.
fn line(event: &Event) -> String {
    let mut text = format!("{} {} {}", instant(event.at_ms), event.who, event.action);
    for part in [&event.object, &event.detail].into_iter().filter(|part| !part.is_empty()) {
        text.push_str(": ");
        text.push_str(part);
    }
    if event.result != "ok" {
        text.push_str(&format!(": {}", event.result));
    }
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// The chain of an event behind another one.
fn chain(before: &str, event: &Event) -> String {
    let bare = Event { chain: String::new(), ..event.clone() };
    let mut hash = Sha256::new();
    hash.update(before.as_bytes());
    hash.update(serde_json::to_vec(&bare).unwrap_or_default());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text that is not too long, cut between letters.
fn short(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let mut end = TEXT_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn note(object: &str) -> Note {
        Note::event("group.add", object, "")
    }

    #[test]
    fn events_are_numbered_listed_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let (log, complaint) = EventLog::open(folder.path()).unwrap();
        assert_eq!(complaint, None);
        for object in ["group 1", "group 2", "group 3"] {
            log.write(note(object));
        }
        let objects = |events: Vec<Event>| events.into_iter().map(|event| event.object).collect::<Vec<_>>();
        assert_eq!(objects(log.list(0, 2, |_| true)), ["group 2", "group 3"]);
        assert_eq!(objects(log.list(2, 10, |_| true)), ["group 3"]);
        assert_eq!(objects(log.list(0, 10, |event| event.object == "group 1")), ["group 1"]);
        drop(log);
        let (log, complaint) = EventLog::open(folder.path()).unwrap();
        assert_eq!(complaint, None);
        log.write(note("group 4"));
        let events = log.list(0, 10, |_| true);
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn a_line_that_is_changed_or_gone_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        let (log, _) = EventLog::open(folder.path()).unwrap();
        for object in ["group 1", "group 2", "group 3"] {
            log.write(note(object));
        }
        drop(log);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("group 2", "group 9")).unwrap();
        let (_, complaint) = EventLog::open(folder.path()).unwrap();
        assert_eq!(complaint.unwrap(), "line 2 does not follow the one before it");
        let lines: Vec<&str> = text.lines().collect();
        fs::write(&path, format!("{}\n{}\n", lines[0], lines[2])).unwrap();
        let (_, complaint) = EventLog::open(folder.path()).unwrap();
        assert_eq!(complaint.unwrap(), "line 2 does not follow the one before it");
    }

    #[test]
    fn a_torn_line_does_not_tear_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        let (log, _) = EventLog::open(folder.path()).unwrap();
        log.write(note("group 1"));
        drop(log);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"seq\":2,\"at");
        fs::write(&path, text).unwrap();
        let (log, complaint) = EventLog::open(folder.path()).unwrap();
        assert_eq!(complaint.unwrap(), "line 2 is no event");
        log.write(note("group 2"));
        drop(log);
        let (log, _) = EventLog::open(folder.path()).unwrap();
        assert_eq!(log.list(0, 9, |_| true).len(), 2);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(short("ö".repeat(2_000)).chars().count(), 501);
    }
}
