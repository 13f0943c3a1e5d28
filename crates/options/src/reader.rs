//! A command line, word by word.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::{Row, Tool, suggestion};

/// What stands at a place of the command line.
#[derive(Debug)]
pub enum Item<'t> {
    /// An option with its value, if it has one.
    Option {
        /// Its row.
        row: &'t Row,
        /// The name that was used.
        name: String,
        /// The value.
        value: Option<Vec<u8>>,
    },
    /// Something with a dash that is no option.
    Unknown(String),
    /// An option without the value that it needs.
    NoValue(String),
    /// A value behind an equal sign, for an option that has none.
    NeedlessValue(String),
    /// A word that is no option.
    Word(Vec<u8>),
}

impl Item<'_> {
    /// Why it cannot stand in a command line of `tool`, for a tool that has no use for it there.
    #[must_use]
    pub fn complaint(&self, tool: &Tool) -> String {
        match self {
            Item::Unknown(name) => {
                let meant = suggestion(tool, name).map(|meant| format!(". {meant}")).unwrap_or_default();
                format!("unknown option '{name}'{meant}")
            }
            Item::NoValue(name) => format!("{name} needs a value"),
            Item::NeedlessValue(name) => format!("{name} takes no value"),
            Item::Word(word) => format!("unexpected '{}'", String::from_utf8_lossy(word)),
            Item::Option { name, .. } => format!("unexpected '{name}'"),
        }
    }
}

/// Reads words by the rows of a tool.
#[derive(Debug)]
pub struct Reader<'t> {
    tool: &'t Tool,
    words: Vec<Vec<u8>>,
    next: usize,
}

impl<'t> Reader<'t> {
    /// A reader of the words behind the name of the program.
    #[must_use]
    pub fn new(tool: &'t Tool, words: &[OsString]) -> Self {
        Reader { tool, words: words.iter().map(|word| word.clone().into_vec()).collect(), next: 0 }
    }

    /// Puts words in front of those that are still to be read.
    pub fn insert(&mut self, words: Vec<Vec<u8>>) {
        let place = self.next.min(self.words.len());
        self.words.splice(place..place, words);
    }

    /// What is left, from the word on that was read last.
    #[must_use]
    pub fn from_last(mut self) -> Vec<Vec<u8>> {
        self.words.split_off(self.next.saturating_sub(1).min(self.words.len()))
    }

    /// What is left behind the word that was read last.
    #[must_use]
    pub fn rest(mut self) -> Vec<Vec<u8>> {
        self.words.split_off(self.next.min(self.words.len()))
    }

    /// What stands next; `None` at the end.
    pub fn read(&mut self) -> Option<Item<'t>> {
        let word = self.words.get(self.next)?.clone();
        self.next += 1;
        if !word.starts_with(b"-") || word == b"-" {
            return Some(Item::Word(word));
        }
        let text = String::from_utf8_lossy(&word).into_owned();
        let (name, inline) = self.split(&text, &word);
        let Some(row) = self.tool.find(&name) else {
            return Some(Item::Unknown(text));
        };
        let value = match inline {
            Some(_) if row.placeholder().is_empty() => return Some(Item::NeedlessValue(name)),
            Some(value) => Some(value),
            None if row.placeholder().is_empty() => None,
            None => {
                let value = self.words.get(self.next).cloned();
                self.next += usize::from(value.is_some());
                value
            }
        };
        if row.needs_value() && value.is_none() {
            return Some(Item::NoValue(name));
        }
        Some(Item::Option { row, name, value })
    }

    /// The next option and its value as text (empty if it has none), for tools that take nothing but options.
    ///
    /// # Errors
    /// [`Item::complaint`] on anything else.
    pub fn option(&mut self) -> Result<Option<(&'t Row, String)>, String> {
        match self.read() {
            None => Ok(None),
            Some(Item::Option { row, value, .. }) => {
                Ok(Some((row, String::from_utf8_lossy(&value.unwrap_or_default()).into_owned())))
            }
            Some(other) => Err(other.complaint(self.tool)),
        }
    }

    /// `--name=value`, where the tool has that.
    fn split(&self, text: &str, word: &[u8]) -> (String, Option<Vec<u8>>) {
        let equal = word.iter().position(|byte| *byte == b'=');
        match equal.filter(|_| self.tool.rules.has_equal_signs && word.starts_with(b"--")) {
            Some(place) => {
                let (name, value) = word.split_at(place);
                (String::from_utf8_lossy(name).into_owned(), Some(value.get(1..).unwrap_or_default().to_vec()))
            }
            None => (text.to_owned(), None),
        }
    }
}
