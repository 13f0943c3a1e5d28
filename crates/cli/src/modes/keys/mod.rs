//! `--bigkeys`, `--memkeys`, `--keystats`: which keys are big, and how keys are shared among types.
//!
//! A walk gathers a [`Survey`]; `summary` shows it as redis-cli does, `statistics` for `--keystats`, `document` as
//! JSON. With `-c` the walk visits all primaries of a cluster, or what a proxy says they are.

use std::thread::sleep;

use resp::{Value, quote_repr};

use super::histogram::Histogram;
use super::percent;
use super::scan::Scan;
use crate::format::Format;
use crate::output::{Outcome, complain, fail, print, print_line, text};
use crate::session::Session;
use crate::signals;

mod document;
pub(super) mod hot;
mod statistics;
mod summary;

/// SCANs between two pauses of `-i`.
const SCANS_PER_PAUSE: u64 = 100;
/// Keys between two lines of progress.
const PROGRESS_EVERY: u64 = 1_000_000;
/// Keys listed by `--keystats`.
const TOP: usize = 10;

/// What is measured of a key. Without `samples`, or with 0, the server chooses how many elements it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Its elements, or bytes of a string.
    Elements,
    /// MEMORY USAGE.
    Memory {
        /// Elements looked at per key.
        samples: Option<u64>,
    },
    /// Both, and how they are distributed.
    Both {
        /// Elements looked at per key.
        samples: Option<u64>,
    },
}

impl Measure {
    fn has_elements(self) -> bool {
        !matches!(self, Measure::Memory { .. })
    }

    fn has_memory(self) -> bool {
        self != Measure::Elements
    }

    fn samples(self) -> Option<u64> {
        match self {
            Measure::Elements => None,
            Measure::Memory { samples } | Measure::Both { samples } => samples.filter(|samples| *samples > 0),
        }
    }
}

/// A type of keys and what was found of it. Of [`Measure::Both`], sizes are memory.
struct Type {
    name: String,
    /// The command that tells the number of elements; modules' types have none.
    length_command: Option<&'static str>,
    /// What elements are called.
    unit: &'static str,
    count: u64,
    total: u64,
    biggest: u64,
    biggest_key: Option<Vec<u8>>,
    /// The biggest keys, for `--top`.
    top: Vec<(u64, Vec<u8>)>,
    total_length: u64,
    longest: u64,
    longest_key: Option<Vec<u8>>,
}

impl Type {
    fn new(name: &str, length_command: Option<&'static str>, unit: &'static str) -> Self {
        Type {
            name: name.to_string(),
            length_command,
            unit,
            count: 0,
            total: 0,
            biggest: 0,
            biggest_key: None,
            top: Vec::new(),
            total_length: 0,
            longest: 0,
            longest_key: None,
        }
    }

    fn size_unit(&self, measure: Measure) -> &'static str {
        if measure == Measure::Elements { self.unit } else { "bytes" }
    }
}

/// What a walk has found.
struct Survey {
    measure: Measure,
    types: Vec<Type>,
    sampled: u64,
    name_bytes: u64,
    /// Ctrl-C came, at this share of all keys in percent.
    stopped_at: Option<f64>,
    /// Keys per list of the biggest.
    top: usize,
    /// The biggest of all types: size, place of the type, key.
    biggest: Vec<(u64, usize, Vec<u8>)>,
    sizes: Histogram,
    name_lengths: Histogram,
}

/// What one key is and has.
struct Found {
    kind: usize,
    size: u64,
    length: u64,
}

/// Walks through all keys, then shows the summary; Ctrl-C shows it early.
pub(super) fn run(session: &mut Session, measure: Measure) -> Outcome<()> {
    session.connect_or_exit()?;
    let stop = signals::stop_flag();
    let is_document = is_json(session);
    let mut scan = Scan::new(session)?;
    if !is_document {
        introduction(measure)?;
    }
    let mut survey = Survey::new(measure, session.options.top);
    let mut scans = 0;
    while let Some(keys) = scan.next(session)? {
        let share = percent(survey.sampled, scan.all());
        scans += 1;
        let found = survey.look_at(session, &keys)?;
        for (key, found) in keys.iter().zip(found) {
            let Some(found) = found else {
                continue;
            };
            let is_biggest = survey.add(key, &found);
            if is_document {
                continue;
            }
            if is_biggest && let Some(kind) = survey.types.get(found.kind) {
                let (name, unit, size) = (&kind.name, kind.size_unit(measure), found.size);
                print_line(format_args!(
                    "[{share:05.2}%] Biggest {name:<6} found so far '{}' with {size} {unit}",
                    repr(key)
                ))?;
            }
            if survey.sampled.is_multiple_of(PROGRESS_EVERY) {
                print_line(format_args!("[{share:05.2}%] Sampled {} keys so far", survey.sampled))?;
            }
        }
        pause(session, scans);
        if signals::stopped(&stop) {
            survey.stopped_at = Some(share);
            break;
        }
    }
    match measure {
        _ if is_document => document::show(session, &survey),
        Measure::Both { .. } => statistics::show(&survey),
        _ => summary::show(&survey),
    }
}

impl Survey {
    fn new(measure: Measure, top: Option<usize>) -> Self {
        let is_statistics = matches!(measure, Measure::Both { .. });
        Survey {
            measure,
            // Redis: the order of the summary.
            types: vec![
                Type::new("list", Some("LLEN"), "items"),
                Type::new("hash", Some("HLEN"), "fields"),
                Type::new("string", Some("STRLEN"), "bytes"),
                Type::new("stream", Some("XLEN"), "entries"),
                Type::new("set", Some("SCARD"), "members"),
                Type::new("zset", Some("ZCARD"), "members"),
            ],
            sampled: 0,
            name_bytes: 0,
            stopped_at: None,
            top: top.unwrap_or(if is_statistics { TOP } else { 0 }),
            biggest: Vec::new(),
            sizes: Histogram::default(),
            name_lengths: Histogram::default(),
        }
    }

    /// Asks for type and sizes of keys; `None` for keys that are gone.
    fn look_at(&mut self, session: &mut Session, keys: &[Vec<u8>]) -> Outcome<Vec<Option<Found>>> {
        let kinds = self.types_of(session, keys)?;
        let mut memory = vec![0; keys.len()];
        let mut lengths = vec![0; keys.len()];
        if self.measure.has_memory() {
            let call = |key: &Vec<u8>, _kind: &Type| {
                let mut call = vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()];
                if let Some(samples) = self.measure.samples() {
                    call.extend([b"SAMPLES".to_vec(), samples.to_string().into_bytes()]);
                }
                Some(call)
            };
            memory = self.sizes(session, keys, &kinds, "MEMORY USAGE", call)?;
        }
        if self.measure.has_elements() {
            let call = |key: &Vec<u8>, kind: &Type| Some(vec![kind.length_command?.as_bytes().to_vec(), key.clone()]);
            lengths = self.sizes(session, keys, &kinds, "", call)?;
        }
        let has_memory = self.measure.has_memory();
        Ok(kinds
            .into_iter()
            .zip(memory.into_iter().zip(lengths))
            .map(|(kind, (memory, length))| {
                kind.map(|kind| Found { kind, size: if has_memory { memory } else { length }, length })
            })
            .collect())
    }

    /// Places in `types` of the types of keys; `None` for keys that are gone.
    fn types_of(&mut self, session: &mut Session, keys: &[Vec<u8>]) -> Outcome<Vec<Option<usize>>> {
        let calls: Vec<_> = keys.iter().map(|key| vec![b"TYPE".to_vec(), key.clone()]).collect();
        let mut places = Vec::with_capacity(keys.len());
        for (reply, key) in session.call_many(&calls)?.iter().zip(keys) {
            let name = match reply {
                Value::Simple(name) => text(name),
                Value::Error(reason) => return fail(format_args!("TYPE returned an error: {}", text(reason))),
                _ => return fail(format_args!("Invalid reply type for TYPE on key '{}'!", text(key))),
            };
            let known = self.types.iter().position(|kind| kind.name == name);
            places.push(match known {
                None if name == "none" => None,
                None => {
                    self.types.push(Type::new(&name, None, "?"));
                    Some(self.types.len() - 1)
                }
                known => known,
            });
        }
        Ok(places)
    }

    /// One number of each key; 0 where none can be told.
    fn sizes(
        &self,
        session: &mut Session,
        keys: &[Vec<u8>],
        kinds: &[Option<usize>],
        shown: &str,
        call: impl Fn(&Vec<u8>, &Type) -> Option<Vec<Vec<u8>>>,
    ) -> Outcome<Vec<u64>> {
        let kind = |place: &Option<usize>| place.and_then(|place| self.types.get(place));
        let calls: Vec<_> = keys.iter().zip(kinds).map(|(key, place)| call(key, kind(place)?)).collect();
        let sent: Vec<_> = calls.iter().flatten().cloned().collect();
        let mut replies = session.call_many(&sent)?.into_iter();
        let mut sizes = Vec::with_capacity(keys.len());
        for (call, key) in calls.iter().zip(keys) {
            let reply = call.as_ref().and_then(|_| replies.next());
            sizes.push(match reply {
                None => 0,
                Some(Value::Int(size)) => u64::try_from(size).unwrap_or(0),
                Some(_) => {
                    let command = call.iter().flatten().next().map(|word| text(word)).unwrap_or_default();
                    let command = if shown.is_empty() { &command } else { shown };
                    complain(format_args!("Warning:  {command} on '{}' failed (may have changed type)", text(key)));
                    0
                }
            });
        }
        Ok(sizes)
    }

    /// Counts a key; whether it is the biggest of its type so far.
    fn add(&mut self, key: &[u8], found: &Found) -> bool {
        let name_length = u64::try_from(key.len()).unwrap_or(0);
        self.sampled += 1;
        self.name_bytes += name_length;
        let Some(kind) = self.types.get_mut(found.kind) else {
            return false;
        };
        kind.count += 1;
        kind.total = kind.total.saturating_add(found.size);
        if matches!(self.measure, Measure::Both { .. }) {
            self.sizes.add(found.size);
            self.name_lengths.add(name_length);
            kind.total_length = kind.total_length.saturating_add(found.length);
            if kind.longest < found.length {
                kind.longest = found.length;
                kind.longest_key = Some(key.to_vec());
            }
            let place = self.biggest.partition_point(|(bigger, _, _)| *bigger >= found.size);
            if place < self.top {
                self.biggest.insert(place, (found.size, found.kind, key.to_vec()));
                self.biggest.truncate(self.top);
            }
        } else {
            let place = kind.top.partition_point(|(bigger, _)| *bigger >= found.size);
            if place < self.top {
                kind.top.insert(place, (found.size, key.to_vec()));
                kind.top.truncate(self.top);
            }
        }
        let is_biggest = kind.biggest < found.size;
        if is_biggest {
            kind.biggest = found.size;
            kind.biggest_key = Some(key.to_vec());
        }
        is_biggest
    }
}

/// Whether the result is one JSON document.
fn is_json(session: &Session) -> bool {
    matches!(session.options.style.format, Format::Json | Format::QuotedJson | Format::JsonStrict | Format::Ndjson)
}

fn introduction(measure: Measure) -> Outcome<()> {
    match measure {
        Measure::Both { .. } => print(
            "\n# Scanning the entire keyspace to find the biggest keys and how sizes are\n\
             # distributed. -i 0.1 sleeps 0.1 sec per 100 SCAN commands, --top <n> lists\n\
             # n keys, Ctrl-C shows what has been seen.\n\n",
        ),
        _ => scanning("biggest"),
    }
}

/// Redis: the lines before keys are looked at.
fn scanning(what: &str) -> Outcome<()> {
    print(format!(
        "\n# Scanning the entire keyspace to find {what} keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n\n"
    ))
}

fn pause(session: &Session, scans: u64) {
    if let Some(interval) = session.options.interval.filter(|_| scans.is_multiple_of(SCANS_PER_PAUSE)) {
        sleep(interval);
    }
}

fn repr(key: &[u8]) -> String {
    text(&quote_repr(key)).into_owned()
}
