//! Findings as a table for eyes, as lines of tab-separated fields for programs, or as JSON.

use std::fmt::Write as _;

use serde_json::json;

use crate::checks::{Finding, Verdict};

/// A table; what is not fine is explained below it. Colour only repeats what the word says.
pub(crate) fn table(findings: &[Finding], clients: u64, has_colour: bool) -> String {
    let width = |cell: fn(&Finding) -> usize| findings.iter().map(cell).max().unwrap_or(0);
    let names = width(|finding| finding.name.chars().count());
    let values = width(|finding| finding.value.chars().count());
    let mut out = String::new();
    for finding in findings {
        let (start, end) = match (has_colour, finding.verdict) {
            (false, _) => ("", ""),
            (true, Verdict::Fine) => ("\x1b[32m", "\x1b[0m"),
            (true, Verdict::Advice) => ("\x1b[33m", "\x1b[0m"),
            (true, Verdict::Stops) => ("\x1b[31m", "\x1b[0m"),
        };
        let wanted = if finding.verdict == Verdict::Fine { "" } else { &finding.wanted };
        let line = format!(
            "{start}{:<6}{end}  {:<names$}  {:<values$}  {wanted}",
            finding.verdict.word(),
            finding.name,
            finding.value
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    for finding in findings.iter().filter(|finding| finding.verdict != Verdict::Fine) {
        let _ = write!(
            out,
            "\n{}: {}\n  breaks   {}\n  wanted   {}\n",
            finding.name, finding.value, finding.breaks, finding.wanted
        );
        if !finding.command.is_empty() {
            let _ = write!(out, "  now      {}\n  to stay  {}\n", finding.command, finding.file);
        }
    }
    let _ = writeln!(out, "\n{}", verdict(findings, clients));
    out
}

/// A line per finding: verdict, name, value, wanted, what breaks, command, file.
pub(crate) fn plain(findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let Finding { name, value, verdict, breaks, wanted, command, file } = finding;
        let _ = writeln!(out, "{}\t{name}\t{value}\t{wanted}\t{breaks}\t{command}\t{file}", verdict.word());
    }
    out
}

/// One document.
pub(crate) fn json(findings: &[Finding], clients: u64) -> String {
    let rows: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "name": finding.name,
                "verdict": finding.verdict.word().to_lowercase(),
                "value": finding.value,
                "wanted": finding.wanted,
                "breaks": finding.breaks,
                "command": finding.command,
                "file": finding.file,
            })
        })
        .collect();
    let document = json!({ "clients": clients, "stops": stops(findings) > 0, "findings": rows });
    format!("{document:#}\n")
}

/// How many findings would stop the clients.
pub(crate) fn stops(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.verdict == Verdict::Stops).count()
}

fn verdict(findings: &[Finding], clients: u64) -> String {
    let advice = findings.iter().filter(|finding| finding.verdict == Verdict::Advice).count();
    match (stops(findings), advice) {
        (0, 0) => format!("{clients} clients: nothing to change"),
        (0, advice) => format!("{clients} clients: possible; {advice} settings could be better"),
        (stops, _) => format!("{clients} clients: not possible, {stops} settings stop them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(verdict: Verdict) -> Finding {
        Finding {
            name: "net.core.somaxconn",
            value: "128".into(),
            verdict,
            breaks: "a queue is full",
            wanted: "≥ 511".into(),
            command: "sysctl -w net.core.somaxconn=511".into(),
            file: "/etc/sysctl.d/60-oxidis.conf".into(),
        }
    }

    #[test]
    fn the_table_explains_only_what_is_not_fine() {
        let fine = table(&[finding(Verdict::Fine)], 10, false);
        assert_eq!(fine, "ok      net.core.somaxconn  128\n\n10 clients: nothing to change\n");
        let bad = table(&[finding(Verdict::Stops)], 10, false);
        assert!(
            bad.contains("  breaks   a queue is full\n") && bad.ends_with("not possible, 1 settings stop them\n"),
            "{bad}"
        );
    }

    #[test]
    fn programs_get_fields() {
        assert_eq!(plain(&[finding(Verdict::Advice)]).split('\t').count(), 7);
        assert!(json(&[finding(Verdict::Advice)], 10).contains("\"verdict\": \"advice\""));
    }
}
