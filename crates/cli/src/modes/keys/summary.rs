//! The summary of `--bigkeys` and `--memkeys`, as redis-cli has it, and the lists of `--top`.

use super::super::{mean, percent};
use super::{Survey, repr};
use crate::output::{Outcome, print};

/// Shows what was found.
pub(super) fn show(survey: &Survey) -> Outcome<()> {
    let Survey { measure, types, sampled, name_bytes, .. } = survey;
    let early = survey.stopped_at.map(|share| format!("[{share:05.2}%] ")).unwrap_or_default();
    let mut out = format!(
        "\n-------- summary -------\n\n{early}Sampled {sampled} keys in the keyspace!\n\
         Total key length in bytes is {name_bytes} (avg len {:.2})\n\n",
        mean(*name_bytes, *sampled)
    );
    for kind in types {
        if let Some(key) = &kind.biggest_key {
            let unit = kind.size_unit(*measure);
            out.push_str(&format!("Biggest {:>6} found '{}' has {} {unit}\n", kind.name, repr(key), kind.biggest));
        }
    }
    out.push('\n');
    for kind in types {
        out.push_str(&format!(
            "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})\n",
            kind.count,
            kind.name,
            kind.total,
            kind.size_unit(*measure),
            percent(kind.count, *sampled),
            mean(kind.total, kind.count)
        ));
    }
    for kind in types.iter().filter(|kind| !kind.top.is_empty()) {
        let plural = if kind.name == "hash" { "hashes".to_string() } else { format!("{}s", kind.name) };
        out.push_str(&format!("\nBiggest {plural}:\n"));
        for (size, key) in &kind.top {
            out.push_str(&format!("{size:>12} {} {}\n", kind.size_unit(*measure), repr(key)));
        }
    }
    print(out)
}
