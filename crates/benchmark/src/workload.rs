//! Workload files (`--script FILE`): phases of a test as TOML, each with options of its own.
//!
//! ```toml
//! clients = 50              # before the first heading: for all phases
//!
//! [load]                    # phases run in the order of the file
//! t = "set"
//! requests = 1_000_000
//! key-max = 999_999
//! keys = "seq"
//!
//! [run]
//! mix = "set=1,get=9"
//! duration = "60s"
//! keys = "zipf:0.99"
//! key-max = 999_999
//! timeline = "1s"
//! ```
//!
//! A key is an option's name without dashes; some short options have a word of their own
//! ([`WORDS`]). `true` gives an option without a value, `false` leaves it out. `command` is split
//! at blanks, or given as an array of words. Only this part of TOML is understood: headings,
//! strings, numbers, booleans, one-line arrays and comments.

use std::{ffi::OsString, fs, path::Path};

/// One phase: its name and the arguments that stand for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phase {
    /// The heading.
    pub(crate) name: String,
    /// Options, and the command if there is one, as on a command line.
    pub(crate) arguments: Vec<OsString>,
}

/// Reads a workload file. The error is a sentence with the line.
pub(crate) fn read(path: &Path) -> Result<Vec<Phase>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("Error: cannot read {}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("Error: {}: {error}", path.display()))
}

/// Settings in the making: options first, because a command ends a command line.
#[derive(Debug, Clone, Default)]
struct Settings {
    options: Vec<String>,
    command: Vec<String>,
}

impl Settings {
    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        if key == "command" {
            self.command = match value {
                Value::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
                Value::List(words) => words,
                Value::Flag(_) => return Err("a command is text or an array".to_owned()),
            };
            return Ok(());
        }
        let option = match WORDS.iter().find(|(word, _)| *word == key) {
            Some((_, option)) => (*option).to_owned(),
            None if key.len() == 1 => format!("-{key}"),
            None => format!("--{}", key.replace('_', "-")),
        };
        match value {
            Value::Flag(false) => {}
            Value::Flag(true) => self.options.push(option),
            Value::Text(text) => self.options.extend([option, text]),
            Value::List(words) => self.options.extend([option, words.join(",")]),
        }
        Ok(())
    }

    fn into_phase(self, common: &Settings, name: String) -> Phase {
        let command = if self.command.is_empty() { &common.command } else { &self.command };
        let arguments = common.options.iter().chain(&self.options).chain(command);
        Phase { name, arguments: arguments.map(OsString::from).collect() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Flag(bool),
    Text(String),
    List(Vec<String>),
}

fn parse(text: &str) -> Result<Vec<Phase>, String> {
    let mut common = Settings::default();
    let mut phases: Vec<(String, Settings)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = |error: String| format!("line {}: {error}", index + 1);
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[') {
            let name = heading.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| at(format!("'{line}' is not a heading")))?;
            phases.push((name.to_owned(), Settings::default()));
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| at(format!("'{line}' is not 'option = value'")))?;
        let value = parse_value(value.trim()).map_err(at)?;
        let settings = phases.last_mut().map_or(&mut common, |(_, settings)| settings);
        settings.set(key.trim(), value).map_err(at)?;
    }
    if phases.is_empty() {
        return Ok(vec![Settings::default().into_phase(&common, "run".to_owned())]);
    }
    Ok(phases.into_iter().map(|(name, settings)| settings.into_phase(&common, name)).collect())
}

fn parse_value(text: &str) -> Result<Value, String> {
    if let Some(list) = text.strip_prefix('[') {
        let list = list.strip_suffix(']').ok_or("an array must end in the same line")?;
        let words: Result<Vec<String>, String> = split_list(list).iter().map(|word| scalar(word.trim())).collect();
        return words.map(Value::List);
    }
    match text {
        "true" => Ok(Value::Flag(true)),
        "false" => Ok(Value::Flag(false)),
        _ => scalar(text).map(Value::Text),
    }
}

/// A string without its quotes, or a number without its underscores.
fn scalar(text: &str) -> Result<String, String> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            let inner = rest.strip_suffix(quote).ok_or(format!("{text} has no closing quote"))?;
            return Ok(if quote == '"' { unescape(inner) } else { inner.to_owned() });
        }
    }
    let number = text.replace('_', "");
    match number.parse::<f64>() {
        Ok(_) => Ok(number),
        Err(_) => Err(format!("'{text}' is neither a number nor a text in quotes")),
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (c, false) => out.push(c),
        }
    }
    out
}

/// Parts between commas that are outside quotes.
fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match quote {
            None if c == ',' => {
                parts.push(String::new());
                continue;
            }
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match quote {
            None if c == '#' => return &line[..at],
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

/// Words for options that have only a letter.
const WORDS: &[(&str, &str)] = &[
    ("clients", "-c"),
    ("requests", "-n"),
    ("pipeline", "-P"),
    ("keyspace", "-r"),
    ("tests", "-t"),
    ("host", "-h"),
    ("port", "-p"),
    ("socket", "-s"),
    ("password", "-a"),
    ("keep-alive", "-k"),
    ("quiet", "-q"),
    ("uri", "-u"),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn arguments(phase: &Phase) -> Vec<String> {
        phase.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn phases_take_the_common_options() {
        let phases = parse(
            "clients = 5 # all\n\n[load]\ntests = \"set\"\nrequests = 1_000\nspread = true\n\
             [run]\nmix = \"set=1,get=9\"\nquiet = false\nsize = [5, 50]\n",
        )
        .unwrap();
        assert_eq!(phases.len(), 2);
        assert_eq!(phases[0].name, "load");
        assert_eq!(arguments(&phases[0]), ["-c", "5", "-t", "set", "-n", "1000", "--spread"]);
        assert_eq!(arguments(&phases[1]), ["-c", "5", "--mix", "set=1,get=9", "--size", "5,50"]);
    }

    #[test]
    fn commands_come_last() {
        let phases = parse("command = [\"set\", \"a b\", 'c,#']\nn = 5").unwrap();
        assert_eq!(arguments(&phases[0]), ["-n", "5", "set", "a b", "c,#"]);
        let phases = parse("command = \"get key:__rand_int__\"").unwrap();
        assert_eq!(arguments(&phases[0]), ["get", "key:__rand_int__"]);
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, line) in [("a\n", 1), ("\nx = y", 2), ("[a\n", 1), ("x = \"a", 1)] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: ")), "{error}");
        }
    }
}
