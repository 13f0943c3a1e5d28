//! Conditions on results: `p99<2ms`, `tps>50000`, `errors==0`, `err<0.1%`. Used by `--assert`
//! (exit code 3 when one fails) and as the objective of `--find-max`.

use std::fmt;

use crate::{latency, options::duration, results::Outcome};

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assertion {
    figure: Figure,
    comparison: Comparison,
    limit: f64,
    text: String,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    /// A percentile of the response time if there is one, else of the service time; ms.
    Percentile(f64),
    Average,
    Max,
    Rate,
    Errors,
    ErrorPercent,
    Dropped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
}

impl Assertion {
    /// The measured value and whether it meets the condition. Times are in milliseconds.
    pub(crate) fn check(&self, outcome: &Outcome) -> (f64, bool) {
        let value = self.figure.of(outcome);
        let holds = match self.comparison {
            Comparison::Less => value < self.limit,
            Comparison::LessOrEqual => value <= self.limit,
            Comparison::Greater => value > self.limit,
            Comparison::GreaterOrEqual => value >= self.limit,
            Comparison::Equal => (value - self.limit).abs() < 1e-9,
        };
        (value, holds)
    }

    /// What stands behind a measured value.
    pub(crate) fn unit(&self) -> &'static str {
        match self.figure {
            Figure::Percentile(_) | Figure::Average | Figure::Max => " ms",
            Figure::Rate => " requests per second",
            Figure::ErrorPercent => "%",
            Figure::Errors | Figure::Dropped => "",
        }
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Figure {
    #[expect(clippy::cast_precision_loss, reason = "compared with limits typed by people")]
    fn of(self, outcome: &Outcome) -> f64 {
        let latency = outcome.response.as_ref().unwrap_or(&outcome.service);
        match self {
            Figure::Percentile(percent) => latency::value_at_percent(latency, percent) as f64 / 1000.0,
            Figure::Average => latency::mean_us(latency) / 1000.0,
            Figure::Max => latency.max() as f64 / 1000.0,
            Figure::Rate => outcome.rate(),
            Figure::Errors => outcome.errors.total() as f64,
            Figure::ErrorPercent => outcome.error_share() * 100.0,
            Figure::Dropped => outcome.dropped as f64,
        }
    }
}

/// Reads conditions separated by commas or blanks.
pub(crate) fn parse_list(text: &str) -> Result<Vec<Assertion>, String> {
    let list: Result<Vec<_>, _> = text.split([',', ' ']).filter(|part| !part.is_empty()).map(parse).collect();
    match list {
        Ok(list) if list.is_empty() => Err("a condition is missing".to_owned()),
        other => other,
    }
}

fn parse(text: &str) -> Result<Assertion, String> {
    let wrong = || format!("'{text}' is not a condition; try p99<2ms, avg<1ms, tps>50000, errors==0, err<0.1%");
    let at = text.find(['<', '>', '=']).ok_or_else(wrong)?;
    let (name, rest) = text.split_at(at);
    let (comparison, length) = match rest.as_bytes() {
        [b'<', b'=', ..] => (Comparison::LessOrEqual, 2),
        [b'>', b'=', ..] => (Comparison::GreaterOrEqual, 2),
        [b'=', b'=', ..] => (Comparison::Equal, 2),
        [b'<', ..] => (Comparison::Less, 1),
        [b'>', ..] => (Comparison::Greater, 1),
        _ => (Comparison::Equal, 1),
    };
    let value = &rest[length..];
    let is_share = value.ends_with('%');
    let figure = match name {
        "avg" => Figure::Average,
        "max" => Figure::Max,
        "tps" | "rps" => Figure::Rate,
        "err" | "errors" if is_share => Figure::ErrorPercent,
        "err" | "errors" => Figure::Errors,
        "dropped" => Figure::Dropped,
        _ => Figure::Percentile(percentile(name).ok_or_else(wrong)?),
    };
    let limit = match figure {
        Figure::Percentile(_) | Figure::Average | Figure::Max => {
            // A bare number is milliseconds, the unit of the reports.
            let bare = value.parse::<f64>().ok();
            bare.or_else(|| duration(value).map(|time| time.as_secs_f64() * 1000.0))
        }
        Figure::ErrorPercent => value.trim_end_matches('%').parse().ok(),
        _ => value.parse().ok(),
    };
    let limit = limit.ok_or_else(wrong)?;
    Ok(Assertion { figure, comparison, limit, text: text.to_owned() })
}

/// `p50`, `p99`, `p99.9`, and `p999` for 99.9.
fn percentile(name: &str) -> Option<f64> {
    let digits = name.strip_prefix('p')?;
    let value: f64 = if digits.contains('.') || digits.len() <= 2 {
        digits.parse().ok()?
    } else {
        format!("{}.{}", digits.get(..2)?, digits.get(2..)?).parse().ok()?
    };
    let value = if digits == "100" { 100.0 } else { value };
    (0.0..=100.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn conditions_are_read() {
        let list = parse_list("p99<2ms,err<0.1% tps>=50000 p999<=10 errors==0").unwrap();
        let seen: Vec<_> = list.iter().map(|a| (a.figure, a.comparison, a.limit)).collect();
        assert_eq!(
            seen,
            [
                (Figure::Percentile(99.0), Comparison::Less, 2.0),
                (Figure::ErrorPercent, Comparison::Less, 0.1),
                (Figure::Rate, Comparison::GreaterOrEqual, 50_000.0),
                (Figure::Percentile(99.9), Comparison::LessOrEqual, 10.0),
                (Figure::Errors, Comparison::Equal, 0.0),
            ]
        );
        for text in ["", "p99", "q<1", "p99<x", "tps>1s"] {
            assert!(parse_list(text).is_err(), "{text}");
        }
    }
}
