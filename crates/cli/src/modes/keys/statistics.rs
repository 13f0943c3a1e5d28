//! The report of `--keystats`: the biggest keys of all, the biggest and longest of each type, how sizes and names are
//! distributed, and the types side by side.

use super::super::histogram::Histogram;
use super::super::stat::human;
use super::super::{mean, percent};
use super::{Survey, repr};
use crate::output::{Outcome, print};

/// Thousandths of keys at which the distribution is shown.
const SHARES: [u64; 8] = [0, 250, 500, 750, 900, 990, 999, 1000];

/// Shows what was found.
pub(super) fn show(survey: &Survey) -> Outcome<()> {
    let early = survey.stopped_at.map(|share| format!(" (stopped at {share:.2}%)")).unwrap_or_default();
    let mut out = format!("\nKeys sampled: {}{early}\nKeys size:    {}\n", survey.sampled, size(survey.sizes.sum()));
    if !survey.biggest.is_empty() {
        out.push_str(&format!("\n--- Top {} key sizes ---\n", survey.biggest.len()));
    }
    for (index, (bytes, kind, key)) in survey.biggest.iter().enumerate() {
        let name = survey.types.get(*kind).map_or("", |kind| &kind.name);
        out.push_str(&format!("{:>3} {:>8} {name:<10} {}\n", index + 1, size(*bytes), repr(key)));
    }
    out.push_str("\n--- Top size per type ---\n");
    for kind in &survey.types {
        if let Some(key) = &kind.biggest_key {
            out.push_str(&format!("{:<10} {} is {}\n", kind.name, repr(key), size(kind.biggest)));
        }
    }
    out.push_str("\n--- Top length and cardinality per type ---\n");
    for kind in &survey.types {
        if let Some(key) = &kind.longest_key {
            out.push_str(&format!("{:<10} {} has {} {}\n", kind.name, repr(key), kind.longest, kind.unit));
        }
    }
    distribution(&mut out, "Key size", &survey.sizes, size);
    distribution(&mut out, "Name length", &survey.name_lengths, |length| format!("{length}B"));
    types(&mut out, survey);
    print(out)
}

fn distribution(out: &mut String, title: &str, histogram: &Histogram, show: fn(u64) -> String) {
    out.push_str(&format!("\n{title:>11} Percentile Total keys\n----------- ---------- ----------\n"));
    let mut before = None;
    for share in SHARES.into_iter().filter(|_| histogram.count() > 0) {
        let (value, count) = if share == 0 { (histogram.min(), 1) } else { histogram.percentile(share) };
        if before.replace(count) == Some(count) {
            continue;
        }
        let share = if count == histogram.count() { 1000 } else { share };
        let percent = format!("{}.{}%", share / 10, share % 10);
        out.push_str(&format!("{:>11} {percent:>10} {count:>10}\n", show(value)));
    }
    out.push_str(&format!("Mean {:.2}, standard deviation {:.2}\n", histogram.mean(), histogram.deviation()));
}

fn types(out: &mut String, survey: &Survey) {
    out.push_str(
        "\nType       Total keys  Keys % Tot size Avg size  Total len/card Avg len/card\n\
         ---------- ---------- ------- -------- -------- --------------- ------------\n",
    );
    for kind in &survey.types {
        let average = kind.total.checked_div(kind.count).unwrap_or(0);
        let length = format!("{} {}", kind.total_length, kind.unit);
        out.push_str(&format!(
            "{:<10} {:>10} {:>6.2}% {:>8} {:>8} {length:>15} {:>12.2}\n",
            kind.name,
            kind.count,
            percent(kind.count, survey.sampled),
            size(kind.total),
            size(average),
            mean(kind.total_length, kind.count)
        ));
    }
}

fn size(bytes: u64) -> String {
    human(i64::try_from(bytes).unwrap_or(i64::MAX))
}
