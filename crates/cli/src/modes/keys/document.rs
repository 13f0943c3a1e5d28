//! What walks have found as one JSON document, in the JSON of the options.

use resp::Value;

use super::super::histogram::Histogram;
use super::super::mean;
use super::{Measure, Survey, Type};
use crate::format::render;
use crate::output::{Outcome, print};
use crate::session::Session;

/// Shows a survey.
pub(super) fn show(session: &Session, survey: &Survey) -> Outcome<()> {
    let mut members = vec![
        ("sampled", number(survey.sampled)),
        ("complete", Value::Bool(survey.stopped_at.is_none())),
        ("key_name_bytes", number(survey.name_bytes)),
        ("types", Value::Array(survey.types.iter().map(|kind| of_type(kind, survey.measure)).collect())),
    ];
    if matches!(survey.measure, Measure::Both { .. }) {
        let biggest = survey.biggest.iter().map(|(size, kind, key)| {
            let kind = survey.types.get(*kind).map_or("", |kind| &kind.name);
            object(vec![("key", bytes(key)), ("type", bytes(kind.as_bytes())), ("bytes", number(*size))])
        });
        members.push(("biggest", Value::Array(biggest.collect())));
        members.push(("sizes", distribution(&survey.sizes)));
        members.push(("key_name_lengths", distribution(&survey.name_lengths)));
    }
    print(render(&object(members), &session.options.style))
}

/// Shows the hottest keys.
pub(super) fn show_hottest(session: &Session, sampled: u64, complete: bool, hottest: &[(u64, Vec<u8>)]) -> Outcome<()> {
    let keys =
        hottest.iter().map(|(counter, key)| object(vec![("key", bytes(key)), ("counter", number(*counter))])).collect();
    let members =
        vec![("sampled", number(sampled)), ("complete", Value::Bool(complete)), ("hottest", Value::Array(keys))];
    print(render(&object(members), &session.options.style))
}

fn of_type(kind: &Type, measure: Measure) -> Value {
    let unit = kind.size_unit(measure);
    let mut members = vec![
        ("type", bytes(kind.name.as_bytes())),
        ("keys", number(kind.count)),
        ("unit", bytes(unit.as_bytes())),
        ("total", number(kind.total)),
        ("average", Value::Double(format!("{:.2}", mean(kind.total, kind.count)))),
        ("biggest", of_key(kind.biggest_key.as_deref(), kind.biggest)),
    ];
    if !kind.top.is_empty() {
        let top = kind.top.iter().map(|(size, key)| of_key(Some(key), *size)).collect();
        members.push(("top", Value::Array(top)));
    }
    if matches!(measure, Measure::Both { .. }) {
        members.push(("length_unit", bytes(kind.unit.as_bytes())));
        members.push(("total_length", number(kind.total_length)));
        members.push(("longest", of_key(kind.longest_key.as_deref(), kind.longest)));
    }
    object(members)
}

fn of_key(key: Option<&[u8]>, size: u64) -> Value {
    match key {
        Some(key) => object(vec![("key", bytes(key)), ("size", number(size))]),
        None => Value::Null,
    }
}

fn distribution(histogram: &Histogram) -> Value {
    let at = |per_mille| number(histogram.percentile(per_mille).0);
    object(vec![
        ("min", number(histogram.min())),
        ("p50", at(500)),
        ("p90", at(900)),
        ("p99", at(990)),
        ("p999", at(999)),
        ("max", number(histogram.max())),
        ("mean", Value::Double(format!("{:.2}", histogram.mean()))),
        ("deviation", Value::Double(format!("{:.2}", histogram.deviation()))),
    ])
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Map(members.into_iter().map(|(name, value)| (bytes(name.as_bytes()), value)).collect())
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bulk(bytes.to_vec())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
