//! `--hotkeys`: the keys with the highest access counters. The server has them only under an LFU policy.

use resp::Value;

use super::super::percent;
use super::super::scan::Scan;
use super::{PROGRESS_EVERY, document, is_json, pause, repr, scanning};
use crate::output::{Outcome, complain, fail, print, print_line, text};
use crate::session::Session;
use crate::signals;

/// Walks through all keys, then shows the summary; Ctrl-C shows it early.
pub(crate) fn run(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let stop = signals::stop_flag();
    let is_document = is_json(session);
    let mut scan = Scan::new(session)?;
    if !is_document {
        scanning("hot")?;
    }
    let wanted = session.options.hotkeys_count.max(1);
    // Hottest first.
    let mut hottest: Vec<(u64, Vec<u8>)> = Vec::new();
    let (mut sampled, mut scans) = (0, 0);
    let mut stopped_at = None;
    while let Some(keys) = scan.next(session)? {
        let share = percent(sampled, scan.all());
        scans += 1;
        let counters = counters(session, &keys)?;
        for (key, counter) in keys.iter().zip(counters) {
            sampled += 1;
            if sampled % PROGRESS_EVERY == 0 && !is_document {
                print_line(format_args!("[{share:05.2}%] Sampled {sampled} keys so far"))?;
            }
            let place = hottest.partition_point(|(hotter, _)| *hotter >= counter);
            if counter == 0 || place >= wanted {
                continue;
            }
            if !is_document {
                let shown = repr(key);
                print_line(format_args!("[{share:05.2}%] Hot key '{shown}' found so far with counter {counter}"))?;
            }
            hottest.insert(place, (counter, key.clone()));
            hottest.truncate(wanted);
        }
        pause(session, scans);
        if signals::stopped(&stop) {
            stopped_at = Some(share);
            break;
        }
    }
    if is_document {
        return document::show_hottest(session, sampled, stopped_at.is_none(), &hottest);
    }
    let early = stopped_at.map(|share| format!("[{share:05.2}%] ")).unwrap_or_default();
    print(format!("\n-------- summary -------\n\n{early}Sampled {sampled} keys in the keyspace!\n"))?;
    for (counter, key) in hottest {
        print_line(format_args!("hot key found with counter: {counter}\tkeyname: {}", repr(&key)))?;
    }
    Ok(())
}

fn counters(session: &mut Session, keys: &[Vec<u8>]) -> Outcome<Vec<u64>> {
    let calls: Vec<_> = keys.iter().map(|key| vec![b"OBJECT".to_vec(), b"FREQ".to_vec(), key.clone()]).collect();
    let mut counters = Vec::with_capacity(keys.len());
    for (reply, key) in session.call_many(&calls)?.iter().zip(keys) {
        counters.push(match reply {
            Value::Int(counter) => u64::try_from(*counter).unwrap_or(0),
            Value::Error(reason) => return fail(format_args!("Error: {}", text(reason))),
            _ => {
                complain(format_args!("Warning: OBJECT freq on '{}' failed (may have been deleted)", repr(key)));
                0
            }
        });
    }
    Ok(counters)
}
