//! `--bigkeys` and `--memkeys`: the biggest key of each type, and how keys are shared among types.

use std::thread::sleep;

use resp::{Value, quote_repr};

use super::scan::Scan;
use super::{mean, percent};
use crate::output::{Outcome, complain, fail, print, print_line, text};
use crate::session::Session;
use crate::signals;

pub(super) mod hot;

/// SCANs between two pauses of `-i`.
const SCANS_PER_PAUSE: u64 = 100;
/// Keys between two lines of progress.
const PROGRESS_EVERY: u64 = 1_000_000;

/// What makes a key big.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Its elements, or bytes of a string.
    Elements,
    /// MEMORY USAGE; 0 samples leave their number to the server.
    Memory {
        /// Elements looked at per key.
        samples: u64,
    },
}

/// A type of keys and what was found of it.
struct Type {
    name: String,
    /// The command that tells the size; modules' types have none.
    size_command: Option<&'static str>,
    unit: &'static str,
    count: u64,
    total: u64,
    biggest: u64,
    biggest_key: Option<String>,
    /// The biggest keys, for `--top`.
    top: Vec<(u64, String)>,
}

impl Type {
    fn new(name: &str, size_command: Option<&'static str>, unit: &'static str) -> Self {
        let name = name.to_string();
        Type { name, size_command, unit, count: 0, total: 0, biggest: 0, biggest_key: None, top: Vec::new() }
    }
}

/// Walks through all keys, then shows the summary; Ctrl-C shows it early.
pub(super) fn run(session: &mut Session, measure: Measure) -> Outcome<()> {
    session.connect_or_exit()?;
    let stop = signals::stop_flag();
    // Redis: the order of the summary.
    let mut types = vec![
        Type::new("list", Some("LLEN"), "items"),
        Type::new("hash", Some("HLEN"), "fields"),
        Type::new("string", Some("STRLEN"), "bytes"),
        Type::new("stream", Some("XLEN"), "entries"),
        Type::new("set", Some("SCARD"), "members"),
        Type::new("zset", Some("ZCARD"), "members"),
    ];
    let all = database_size(session)?;
    introduction("biggest")?;
    let (mut sampled, mut name_bytes, mut scans) = (0, 0, 0);
    let mut share = 0.0;
    let mut scan = Scan::new(session);
    let mut stopped = false;
    while let Some(keys) = scan.next(session)? {
        share = percent(sampled, all);
        scans += 1;
        let of_type = types_of(session, &keys, &mut types)?;
        let sizes = sizes(session, &keys, &of_type, &types, measure)?;
        for ((key, place), size) in keys.iter().zip(of_type).zip(sizes) {
            let Some(kind) = place.and_then(|place| types.get_mut(place)) else {
                continue;
            };
            sampled += 1;
            name_bytes += u64::try_from(key.len()).unwrap_or(0);
            count(kind, key, size, session.options.top.unwrap_or(0));
            if kind.biggest < size {
                kind.biggest = size;
                let shown = repr(key);
                print_line(format_args!(
                    "[{share:05.2}%] Biggest {:<6} found so far '{shown}' with {size} {}",
                    kind.name,
                    unit(kind, measure)
                ))?;
                kind.biggest_key = Some(shown);
            }
            if sampled % PROGRESS_EVERY == 0 {
                print_line(format_args!("[{share:05.2}%] Sampled {sampled} keys so far"))?;
            }
        }
        pause(session, scans);
        if signals::stopped(&stop) {
            stopped = true;
            break;
        }
    }
    let early = if stopped { format!("[{share:05.2}%] ") } else { String::new() };
    print(format!("\n-------- summary -------\n\n{early}"))?;
    summary(&types, measure, sampled, name_bytes)
}

fn count(kind: &mut Type, key: &[u8], size: u64, top: usize) {
    kind.count += 1;
    kind.total = kind.total.saturating_add(size);
    if top == 0 || (kind.top.len() >= top && kind.top.last().is_some_and(|(smallest, _)| *smallest >= size)) {
        return;
    }
    let place = kind.top.partition_point(|(bigger, _)| *bigger >= size);
    kind.top.insert(place, (size, repr(key)));
    kind.top.truncate(top);
}

fn summary(types: &[Type], measure: Measure, sampled: u64, name_bytes: u64) -> Outcome<()> {
    let mut out = format!(
        "Sampled {sampled} keys in the keyspace!\nTotal key length in bytes is {name_bytes} (avg len {:.2})\n\n",
        mean(name_bytes, sampled)
    );
    for kind in types {
        if let Some(key) = &kind.biggest_key {
            let unit = unit(kind, measure);
            out.push_str(&format!("Biggest {:>6} found '{key}' has {} {unit}\n", kind.name, kind.biggest));
        }
    }
    out.push('\n');
    for kind in types {
        out.push_str(&format!(
            "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})\n",
            kind.count,
            kind.name,
            kind.total,
            unit(kind, measure),
            percent(kind.count, sampled),
            mean(kind.total, kind.count)
        ));
    }
    for kind in types.iter().filter(|kind| !kind.top.is_empty()) {
        out.push_str(&format!("\nBiggest {}s:\n", kind.name));
        for (size, key) in &kind.top {
            out.push_str(&format!("{size:>12} {} {key}\n", unit(kind, measure)));
        }
    }
    print(out)
}

fn unit(kind: &Type, measure: Measure) -> &'static str {
    if measure == Measure::Elements { kind.unit } else { "bytes" }
}

/// Places in `types` of the types of keys; `None` for keys that are gone.
fn types_of(session: &mut Session, keys: &[Vec<u8>], types: &mut Vec<Type>) -> Outcome<Vec<Option<usize>>> {
    let calls: Vec<_> = keys.iter().map(|key| vec![b"TYPE".to_vec(), key.clone()]).collect();
    let mut places = Vec::with_capacity(keys.len());
    for (reply, key) in session.call_many(&calls)?.iter().zip(keys) {
        let name = match reply {
            Value::Simple(name) => text(name),
            Value::Error(reason) => return fail(format_args!("TYPE returned an error: {}", text(reason))),
            _ => return fail(format_args!("Invalid reply type for TYPE on key '{}'!", text(key))),
        };
        let known = types.iter().position(|kind| kind.name == name);
        places.push(match known {
            None if name == "none" => None,
            None => {
                types.push(Type::new(&name, None, "?"));
                Some(types.len() - 1)
            }
            known => known,
        });
    }
    Ok(places)
}

/// Sizes of keys; 0 where none can be told.
fn sizes(
    session: &mut Session,
    keys: &[Vec<u8>],
    places: &[Option<usize>],
    types: &[Type],
    measure: Measure,
) -> Outcome<Vec<u64>> {
    let call = |key: &Vec<u8>, place: &Option<usize>| -> Option<Vec<Vec<u8>>> {
        let kind = types.get((*place)?)?;
        let words = match measure {
            Measure::Elements => vec![kind.size_command?.as_bytes().to_vec(), key.clone()],
            Measure::Memory { samples: 0 } => vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()],
            Measure::Memory { samples } => vec![
                b"MEMORY".to_vec(),
                b"USAGE".to_vec(),
                key.clone(),
                b"SAMPLES".to_vec(),
                samples.to_string().into_bytes(),
            ],
        };
        Some(words)
    };
    let calls: Vec<_> = keys.iter().zip(places).map(|(key, place)| call(key, place)).collect();
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
                let command = if measure == Measure::Elements { &command } else { "MEMORY USAGE" };
                complain(format_args!("Warning:  {command} on '{}' failed (may have changed type)", text(key)));
                0
            }
        });
    }
    Ok(sizes)
}

fn introduction(what: &str) -> Outcome<()> {
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

fn database_size(session: &mut Session) -> Outcome<u64> {
    match session.call(&["DBSIZE"])? {
        Value::Int(size) => Ok(u64::try_from(size).unwrap_or(0)),
        Value::Error(reason) => fail(format_args!("Couldn't determine DBSIZE: {}", text(&reason))),
        _ => fail(format_args!("Non INTEGER response from DBSIZE!")),
    }
}

fn repr(key: &[u8]) -> String {
    text(&quote_repr(key)).into_owned()
}
