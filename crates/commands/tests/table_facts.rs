//! The table against the facts of Redis 7.2.5 in `data/commands-7.2.5.jsonl`: one line a command,
//! as a server of that version answers COMMAND INFO. Remarks on key specs are only noted as
//! present there, as their words are ours.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use commands::table::spec::{BeginSearch, FindKeys};
use commands::table::{self, CommandSpec, KeySpec};
use serde_json::{Value, json};

const FACTS: &str = include_str!("data/commands-7.2.5.jsonl");

fn facts() -> Vec<Value> {
    FACTS.lines().map(|line| serde_json::from_str(line).expect("a line is a JSON object")).collect()
}

#[test]
fn rows_equal_facts() {
    for fact in facts() {
        let name = fact["name"].as_str().unwrap();
        let spec = table::lookup_full_name(name.as_bytes()).unwrap_or_else(|| panic!("no row of {name}"));
        assert_eq!(describe(spec), fact, "row of {name}");
    }
}

#[test]
fn rows_are_exactly_those_of_facts() {
    let known: BTreeSet<_> = facts().iter().map(|fact| fact["name"].as_str().unwrap().to_owned()).collect();
    let beyond: BTreeSet<_> = table::beyond_redis()
        .flat_map(|spec| std::iter::once(spec).chain(spec.subcommands))
        .map(|spec| spec.name.to_owned())
        .collect();
    let rows: BTreeSet<_> =
        table::all().map(|spec| spec.name.to_owned()).filter(|name| !beyond.contains(name)).collect();
    assert_eq!(rows, known);
}

/// A row in the form of the facts, where sets are sorted.
fn describe(spec: &CommandSpec) -> Value {
    json!({
        "name": spec.name,
        "arity": spec.arity,
        "flags": sorted(spec.flags.names().map(str::to_owned)),
        "first": spec.first_key,
        "last": spec.last_key,
        "step": spec.step,
        "categories": sorted(spec.categories.names().map(|name| format!("@{name}"))),
        "tips": sorted(spec.tips.iter().map(|tip| (*tip).to_owned())),
        "key_specs": spec.key_specs.iter().map(describe_key_spec).collect::<Vec<_>>(),
        "subcommands": sorted(spec.subcommands.iter().map(|sub| sub.name.to_owned())),
    })
}

fn describe_key_spec(spec: &KeySpec) -> Value {
    let mut described = json!({
        "flags": spec.flags.names().collect::<Vec<_>>(),
        "begin_search": match spec.begin_search {
            BeginSearch::Unknown => json!({"type": "unknown", "spec": {}}),
            BeginSearch::Index(index) => json!({"type": "index", "spec": {"index": index}}),
            BeginSearch::Keyword { keyword, start_from } => json!({
                "type": "keyword",
                "spec": {"keyword": keyword, "startfrom": start_from},
            }),
        },
        "find_keys": match spec.find_keys {
            FindKeys::Unknown => json!({"type": "unknown", "spec": {}}),
            FindKeys::Range { last, step, limit } => json!({
                "type": "range",
                "spec": {"lastkey": last, "keystep": step, "limit": limit},
            }),
            FindKeys::Counted { count_at, first, step } => json!({
                "type": "keynum",
                "spec": {"keynumidx": count_at, "firstkey": first, "keystep": step},
            }),
        },
    });
    if spec.notes.is_some() {
        described["notes"] = json!(true);
    }
    described
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}
