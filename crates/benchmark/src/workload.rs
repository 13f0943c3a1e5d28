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
//! duration = "60s"
//! key-max = 999_999
//! timeline = "1s"
//!
//! [run.get]                 # operations of the phase, with settings of their own
//! weight = 9
//! keys = "zipf:0.99"
//!
//! [run.write]
//! command = "SET user:__rand_int__ __data__ EX __ttl__"
//! size = [100, 1000]
//! ttl = "60s-120s"
//! ```
//!
//! A key is an option's name without dashes; some short options have a word of their own
//! ([`WORDS`]). `true` gives an option without a value, `false` leaves it out. `command` is split
//! at blanks, or given as an array of words.

use std::{ffi::OsString, fs, path::Path};

use toml::{Table, Value};

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
    fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        if key == "command" {
            self.command = command(value)?;
            return Ok(());
        }
        let option = match WORDS.iter().find(|(word, _)| *word == key) {
            Some((_, option)) => (*option).to_owned(),
            None if key.len() == 1 => format!("-{key}"),
            None => format!("--{}", key.replace('_', "-")),
        };
        match value {
            Value::Boolean(false) => {}
            Value::Boolean(true) => self.options.push(option),
            other => self.options.extend([option, text(key, other)?]),
        }
        Ok(())
    }

    fn into_phase(self, common: &Settings, name: String) -> Phase {
        let command = if self.command.is_empty() { &common.command } else { &self.command };
        let arguments = common.options.iter().chain(&self.options).chain(command);
        Phase { name, arguments: arguments.map(OsString::from).collect() }
    }
}

fn parse(text: &str) -> Result<Vec<Phase>, String> {
    let file: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        format!("line {line}: {}", error.message())
    })?;
    let mut common = Settings::default();
    let mut phases = Vec::new();
    for (key, value) in &file {
        match value {
            Value::Table(table) => phases.push((key.clone(), table)),
            value => common.set(key, value)?,
        }
    }
    if phases.is_empty() {
        return Ok(vec![Settings::default().into_phase(&common, "run".to_owned())]);
    }
    let phases = phases.into_iter().map(|(name, table)| {
        let settings = phase(table).map_err(|error| format!("[{name}]: {error}"))?;
        Ok(settings.into_phase(&common, name))
    });
    phases.collect()
}

fn phase(table: &Table) -> Result<Settings, String> {
    let mut settings = Settings::default();
    for (key, value) in table {
        match value {
            Value::Table(operation) => settings.options.extend(["--op".to_owned(), operation_text(key, operation)?]),
            value => settings.set(key, value)?,
        }
    }
    Ok(settings)
}

/// What stands behind `--op` for a table of a phase.
fn operation_text(name: &str, table: &Table) -> Result<String, String> {
    let mut out = name.to_owned();
    let mut words = Vec::new();
    for (key, value) in table {
        if key == "command" {
            words = command(value)?;
            continue;
        }
        out.push_str(&format!(" {}={}", key.replace('_', "-"), text(key, value)?));
    }
    if let Some(word) = words.iter().find(|word| word.is_empty() || word.contains(char::is_whitespace)) {
        return Err(format!("[{name}]: '{word}': words of an operation's command have no blanks in them"));
    }
    if !words.is_empty() {
        out.push_str(&format!(" command={}", words.join(" ")));
    }
    Ok(out)
}

fn command(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => Ok(text.split_whitespace().map(str::to_owned).collect()),
        Value::Array(words) => words.iter().map(|word| text("command", word)).collect(),
        _ => Err("a command is text or an array".to_owned()),
    }
}

/// A value as it would be typed.
fn text(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Array(list) => {
            let words: Result<Vec<String>, String> = list.iter().map(|word| text(key, word)).collect();
            Ok(words?.join(","))
        }
        _ => Err(format!("{key}: a text, a number or a list of them is expected")),
    }
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
        assert!(parse("[a]\nx = 1979-05-27\n").unwrap_err().contains("x: a text"));
        assert!(parse("[a.b]\ncommand = [\"set\", \"a b\"]\n").unwrap_err().contains("no blanks"));
    }

    #[test]
    fn tables_below_a_phase_are_operations() {
        let text = "[run]\nkeyspace = 5\n[run.get]\nweight = 9\nkeys = \"zipf:1\"\n\
                    [run.put]\nsize = [5, 9]\ncommand = \"SET u:__rand_int__ __data__\"\n";
        let phases = parse(text).unwrap();
        assert_eq!(
            arguments(&phases[0]),
            ["-r", "5", "--op", "get weight=9 keys=zipf:1", "--op", "put size=5,9 command=SET u:__rand_int__ __data__"]
        );
    }
}
