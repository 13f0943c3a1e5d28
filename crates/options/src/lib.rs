//! The options of a tool as a table of rows, and all that follows from it: reading a command line, `--help`, manual
//! pages, completion in shells, and what was meant by a mistyped word.
//!
//! A row is written as people see it: `row("-a, --pass <word>", "Password.")`. Its names are the words with a dash;
//! what stands behind them is the value, in brackets if it may be left out. Nothing is said twice: an option that is
//! not in the table is not read, and one that is read is shown everywhere.
//!
//! Knows nothing of any tool, and ends no process. Start reading at [`Tool`]; then [`Reader`].
#![forbid(unsafe_code)]

use std::borrow::Cow;

mod help;
mod manual;
mod nearest;
mod reader;
pub mod shells;

pub use help::{Look, help};
pub use manual::manual;
pub use nearest::{nearest, suggestion};
pub use reader::{Item, Reader};

/// All that a tool takes and says about itself. `PROGRAM` in its texts stands for the name it was called by.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The word behind `oxidis`; empty for `oxidis` itself.
    pub name: &'static str,
    /// Names of links to the binary that start this tool.
    pub links: &'static [&'static str],
    /// What it is, in a few words without a full stop.
    pub summary: &'static str,
    /// Forms of the command line, each starting with `PROGRAM`.
    pub usage: &'static [&'static str],
    /// Paragraphs on what it does, with an empty line between them.
    pub about: &'static str,
    /// Its options by task.
    pub sections: Cow<'static, [Section]>,
    /// The words that are no options.
    pub operands: Operands,
    /// Where options may stand, and how.
    pub rules: Rules,
    /// More to read, shown when it is asked for and in the manual.
    pub topics: &'static [Topic],
    /// Command lines and what they do.
    pub examples: &'static [(&'static str, &'static str)],
    /// Variables of the environment that it reads.
    pub environment: &'static [(&'static str, &'static str)],
    /// Files that it reads or writes unasked.
    pub files: &'static [(&'static str, &'static str)],
    /// Exit codes and when they are given.
    pub exit_codes: &'static [(&'static str, &'static str)],
}

impl Tool {
    /// A tool without options: a start for the `..` of others.
    pub const EMPTY: Tool = Tool {
        name: "",
        links: &[],
        summary: "",
        usage: &[],
        about: "",
        sections: Cow::Borrowed(&[]),
        operands: Operands::None,
        rules: Rules::COMMAND,
        topics: &[],
        examples: &[],
        environment: &[],
        files: &[],
        exit_codes: &[],
    };

    /// All rows, in the order of the help.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| section.rows.iter())
    }

    /// The row of an option's name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Row> {
        self.rows().find(|row| row.names().any(|known| known == name))
    }

    /// The name of its manual page, and of its link of ours.
    #[must_use]
    pub fn page_name(&self) -> String {
        if self.name.is_empty() { "oxidis".to_owned() } else { format!("oxidis-{}", self.name) }
    }
}

/// Options that belong to one task.
#[derive(Clone, Debug)]
pub struct Section {
    /// One word, to ask for this section alone.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// Its options.
    pub rows: Cow<'static, [Row]>,
    /// So many that they are shown only when this section is asked for.
    pub is_long: bool,
}

/// A text of a tool that is laid out as it stands.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// One word, to ask for it.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// Lines, each with its end.
    pub text: &'static str,
}

/// One option.
#[derive(Clone, Debug)]
pub struct Row {
    /// Names and value as people see them: `-a, --pass <word>`.
    pub spec: &'static str,
    /// What it does, in sentences.
    pub help: Cow<'static, str>,
    /// What completion offers for the value.
    pub values: Values,
    /// Whether people are told of it. Others are understood, for scripts that have them.
    pub is_listed: bool,
}

impl Row {
    /// Its names, the first of which is the one that code knows it by.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.spec.split(' ').filter(|word| word.starts_with('-')).map(|word| word.trim_end_matches(','))
    }

    /// The first name.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.names().next().unwrap_or_default()
    }

    /// The value as people see it, `<word>` or `[section]`; empty for an option without one.
    #[must_use]
    pub fn placeholder(&self) -> &'static str {
        let names: usize = self.spec.split_inclusive(' ').take_while(|word| word.starts_with('-')).map(str::len).sum();
        self.spec.get(names..).unwrap_or_default()
    }

    /// Whether a value must follow.
    #[must_use]
    pub fn needs_value(&self) -> bool {
        let placeholder = self.placeholder();
        !placeholder.is_empty() && !placeholder.starts_with('[')
    }

    /// The value without its brackets, or its first word if there are several.
    fn value_name(&self) -> &'static str {
        let placeholder = self.placeholder();
        let first = placeholder.split(' ').next().unwrap_or(placeholder);
        first.trim_matches(['<', '>', '[', ']'])
    }
}

/// What completion offers for the value of an option.
#[derive(Clone, Debug)]
pub enum Values {
    /// Nothing: free text.
    Free,
    /// Files.
    Files,
    /// Folders.
    Folders,
    /// These words.
    Words(Cow<'static, [&'static str]>),
}

/// What the words that are no options are.
#[derive(Clone, Debug)]
pub enum Operands {
    /// There are none, or nothing is known of them.
    None,
    /// Files.
    Files,
    /// The first is one of these; the second one of its own list.
    Words(Vec<Word>),
}

/// A word that may stand on the command line, and what may follow it.
#[derive(Clone, Debug)]
pub struct Word {
    /// The word.
    pub name: String,
    /// What it is, in a few words; may be empty.
    pub summary: String,
    /// Words that may follow.
    pub next: Vec<String>,
}

/// Where options may stand, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Behind the first operand there are no options any more.
    pub operand_ends_options: bool,
    /// `--name=value` is the same as `--name value`.
    pub has_equal_signs: bool,
}

impl Rules {
    /// A command with options of its own follows the options.
    pub const COMMAND: Rules = Rules { operand_ends_options: true, has_equal_signs: false };
    /// Options anywhere, with equal signs if one likes.
    pub const FREE: Rules = Rules { operand_ends_options: false, has_equal_signs: true };
}

/// An option without a value, or with one that is free text.
#[must_use]
pub const fn row(spec: &'static str, help: &'static str) -> Row {
    Row { spec, help: Cow::Borrowed(help), values: Values::Free, is_listed: true }
}

/// An option whose value is a file.
#[must_use]
pub const fn file(spec: &'static str, help: &'static str) -> Row {
    Row { spec, help: Cow::Borrowed(help), values: Values::Files, is_listed: true }
}

/// An option whose value is a folder.
#[must_use]
pub const fn folder(spec: &'static str, help: &'static str) -> Row {
    Row { spec, help: Cow::Borrowed(help), values: Values::Folders, is_listed: true }
}

/// An option whose value is one of a few words.
#[must_use]
pub const fn choice(spec: &'static str, words: &'static [&'static str], help: &'static str) -> Row {
    Row { spec, help: Cow::Borrowed(help), values: Values::Words(Cow::Borrowed(words)), is_listed: true }
}

/// An option that is understood, but not shown.
#[must_use]
pub const fn unlisted(spec: &'static str) -> Row {
    Row { spec, help: Cow::Borrowed(""), values: Values::Free, is_listed: false }
}

/// Sections of rows that are known when the program is built.
#[must_use]
pub const fn section(name: &'static str, title: &'static str, rows: &'static [Row]) -> Section {
    Section { name, title, rows: Cow::Borrowed(rows), is_long: false }
}

#[cfg(test)]
mod tests;
