//! Completion scripts for bash, zsh and fish.
//!
//! Each script defines a function per tool from its rows, and one that finds the tool: by the word behind `oxidis`, or
//! by the name of the link. The scripts need nothing but the shell itself.

use crate::{Row, Tool, Values};

mod bash;
mod fish;
mod zsh;

/// A shell that a script can be written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// bash 4 or later.
    Bash,
    /// zsh with its completion system.
    Zsh,
    /// fish 3 or later.
    Fish,
}

impl Shell {
    /// The names that [`Shell::named`] knows.
    pub const NAMES: &'static [&'static str] = &["bash", "zsh", "fish"];

    /// The shell of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Shell> {
        Some(match name {
            "bash" => Shell::Bash,
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => return None,
        })
    }
}

/// The completion script of `program` and its tools, and of the links to them.
#[must_use]
pub fn script(shell: Shell, program: &str, tools: &[&Tool]) -> String {
    match shell {
        Shell::Bash => bash::script(program, tools),
        Shell::Zsh => zsh::script(program, tools),
        Shell::Fish => fish::script(program, tools),
    }
}

/// A tool's name as a part of the name of a function.
fn identifier(tool: &Tool) -> String {
    tool.name.replace('-', "_")
}

/// All names that start a tool without `oxidis` before it.
fn links(tool: &Tool) -> Vec<String> {
    let own = format!("oxidis-{}", tool.name);
    let mut links: Vec<String> = tool.links.iter().map(|link| (*link).to_owned()).collect();
    if !links.contains(&own) && !tool.links.is_empty() {
        links.push(own);
    }
    links
}

/// Names of options whose value is the next word, in any case.
fn valued(tool: &Tool) -> Vec<&'static str> {
    tool.rows().filter(|row| row.needs_value()).flat_map(Row::names).collect()
}

fn listed(tool: &Tool) -> impl Iterator<Item = &Row> {
    tool.rows().filter(|row| row.is_listed)
}

/// The first sentence, for the narrow column of a shell.
fn brief(text: &str) -> String {
    let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).trim_end_matches('.').to_owned()
}

fn words_of(values: &Values) -> Option<String> {
    match values {
        Values::Words(words) => Some(words.join(" ")),
        _ => None,
    }
}
