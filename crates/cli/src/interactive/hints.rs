//! Which arguments of a command are still to come.
//!
//! The grammar of a command is a tree of arguments. [`Node`] adds to each what the words typed so far have filled. The
//! words are matched from the left; arguments that may be left out and stand side by side may come in any order. The
//! hint is the tree without what is filled. Source of behaviour: the hints of redis-cli 7.2.

use commands::table::docs::{Argument, ArgumentKind};
use commands::table::{CommandSpec, lookup, lookup_sub};
use resp::split_args;

/// The grammar of a command's arguments in one line.
pub(super) fn syntax(command: &CommandSpec) -> String {
    join(&forest(command.docs.arguments), " ")
}

mod judge;

pub(super) use judge::{next_tokens, problem};

/// What may follow a line; `None` when it does not start with a command.
pub(super) fn hint(line: &str) -> Option<String> {
    let words = split_args(line.as_bytes())?;
    let ends_with_space = line.ends_with(|last: char| last.is_ascii_whitespace());
    // The last word counts only when it is finished.
    let finished = if ends_with_space { words.len() } else { words.len().saturating_sub(1) };
    let words = words.get(..finished)?;
    let (command, length) = command_of(words)?;
    let typed = words.get(length..)?;
    let mut nodes = forest(command.docs.arguments);
    let taken = if typed.is_empty() { 0 } else { take_sequence(&mut nodes, typed) };
    if taken != typed.len() {
        return Some(String::new());
    }
    let hint = join(&nodes, " ");
    Some(if ends_with_space || hint.is_empty() { hint } else { format!(" {hint}") })
}

/// The command that words start with, and how many words name it.
pub(super) fn command_of(words: &[Vec<u8>]) -> Option<(&'static CommandSpec, usize)> {
    let command = lookup(words.first()?)?;
    match words.get(1).and_then(|word| lookup_sub(command, word)) {
        Some(subcommand) => Some((subcommand, 2)),
        None => Some((command, 1)),
    }
}

/// An argument and how far the typed words have filled it.
struct Node {
    argument: &'static Argument,
    children: Vec<Node>,
    /// Words that belong to it.
    words: usize,
    token: bool,
    value: bool,
    /// Nothing more can follow.
    complete: bool,
}

fn forest(arguments: &'static [Argument]) -> Vec<Node> {
    arguments.iter().map(Node::new).collect()
}

impl Node {
    fn new(argument: &'static Argument) -> Self {
        Node { argument, children: forest(argument.arguments), words: 0, token: false, value: false, complete: false }
    }

    fn clear(&mut self) {
        *self = Node::new(self.argument);
    }

    /// Fills the argument, as often as it may be repeated; the words it took.
    fn take(&mut self, words: &[Vec<u8>]) -> usize {
        let mut taken = self.take_once(words);
        if !self.argument.multiple {
            return taken;
        }
        while self.complete && taken < words.len() {
            self.clear();
            let rest = words.get(taken..).unwrap_or_default();
            taken += if self.argument.token.is_some() && !self.argument.multiple_token {
                // The token stands before the first repetition only.
                let count = self.take_value(rest);
                self.token = count > 0;
                count
            } else {
                self.take_once(rest)
            };
        }
        self.complete = false;
        taken
    }

    fn take_once(&mut self, words: &[Vec<u8>]) -> usize {
        let Some(token) = self.argument.token else {
            return self.take_value(words);
        };
        let Some((first, rest)) = words.split_first() else {
            return 0;
        };
        if !first.eq_ignore_ascii_case(token.as_bytes()) {
            return 0;
        }
        self.token = true;
        self.words = 1;
        if self.argument.kind == ArgumentKind::PureToken {
            self.complete = true;
            return 1;
        }
        if rest.is_empty() { 1 } else { self.take_value(rest) }
    }

    /// Fills what follows the token; all words of the argument so far.
    fn take_value(&mut self, words: &[Vec<u8>]) -> usize {
        let Some(first) = words.first() else {
            return 0;
        };
        let text = String::from_utf8_lossy(first);
        match self.argument.kind {
            ArgumentKind::Block => {
                self.words += take_sequence(&mut self.children, words);
                self.complete = self.children.iter().all(|child| child.complete);
            }
            ArgumentKind::OneOf => {
                if let Some(child) = self.children.iter_mut().find_map(|child| (child.take(words) > 0).then_some(child))
                {
                    self.words += child.words;
                    self.complete = child.complete;
                }
            }
            ArgumentKind::Integer | ArgumentKind::UnixTime => self.take_if(starts_as_number(&text)),
            // A bound that is not included has a parenthesis.
            ArgumentKind::Double => {
                let number = text.strip_prefix('(').unwrap_or(&text);
                self.take_if(starts_as_number(number) || number.parse::<f64>().is_ok());
            }
            _ => self.take_if(true),
        }
        self.words
    }

    fn take_if(&mut self, fits: bool) {
        if fits {
            self.words += 1;
            self.value = true;
            self.complete = true;
        } else {
            self.words = 0;
            self.value = false;
        }
    }

    /// What is missing.
    fn text(&self) -> String {
        if self.complete {
            return String::new();
        }
        let argument = self.argument;
        let mut text = String::new();
        if let Some(token) = argument.token.filter(|_| !self.token) {
            push_token(&mut text, token, argument.kind);
        }
        match argument.kind {
            ArgumentKind::OneOf if self.words > 0 => {
                self.children.iter().filter(|child| child.words > 0).for_each(|child| text.push_str(&child.text()));
            }
            ArgumentKind::OneOf | ArgumentKind::Block => text.push_str(&body(argument.kind, &self.children)),
            ArgumentKind::PureToken => {}
            _ if self.value => {}
            _ => text.push_str(argument.display.unwrap_or(argument.name)),
        }
        if argument.multiple {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&repetition(argument));
        }
        if argument.optional && self.words == 0 { format!("[{text}]") } else { text }
    }
}

/// `[name ...]`: what may come again, whatever is filled.
fn repetition(argument: &'static Argument) -> String {
    let mut text = String::from("[");
    if argument.multiple_token
        && let Some(token) = argument.token
    {
        push_token(&mut text, token, argument.kind);
    }
    match argument.kind {
        ArgumentKind::OneOf | ArgumentKind::Block => text.push_str(&body(argument.kind, &forest(argument.arguments))),
        ArgumentKind::PureToken => {}
        _ => text.push_str(argument.display.unwrap_or(argument.name)),
    }
    text.push_str(" ...]");
    text
}

fn body(kind: ArgumentKind, children: &[Node]) -> String {
    join(children, if kind == ArgumentKind::OneOf { "|" } else { " " })
}

fn push_token(text: &mut String, token: &str, kind: ArgumentKind) {
    text.push_str(if token.is_empty() { "\"\"" } else { token });
    if kind != ArgumentKind::PureToken {
        text.push(' ');
    }
}

/// The missing parts of arguments side by side; of a run of optional ones, the one that was begun comes first.
fn join(nodes: &[Node], separator: &str) -> String {
    let mut parts = Vec::new();
    let mut index = 0;
    while let Some(node) = nodes.get(index) {
        if !node.argument.optional {
            parts.push(node.text());
            index += 1;
            continue;
        }
        let run = optional_run(nodes, index);
        let behind = nodes.get(index + run.len());
        let begun = run.iter().rposition(|node| node.words > 0 && !node.complete);
        parts.extend(begun.and_then(|begun| run.get(begun)).map(Node::text));
        // Behind a required argument that is there, none of them can come any more.
        if behind.is_none_or(|node| node.words == 0) {
            parts
                .extend(run.iter().enumerate().filter(|(place, _)| Some(*place) != begun).map(|(_, node)| node.text()));
        }
        index += run.len();
    }
    parts.retain(|part| !part.is_empty());
    parts.join(separator)
}

fn optional_run(nodes: &[Node], start: usize) -> &[Node] {
    let rest = nodes.get(start..).unwrap_or_default();
    let length = rest.iter().take_while(|node| node.argument.optional).count();
    rest.get(..length).unwrap_or_default()
}

/// Fills arguments side by side; the words they took, 0 if a required one does not fit.
fn take_sequence(nodes: &mut [Node], words: &[Vec<u8>]) -> usize {
    let mut taken = 0;
    let mut index = 0;
    while taken < words.len() && index < nodes.len() {
        let run = optional_run(nodes, index).len();
        let rest = words.get(taken..).unwrap_or_default();
        if run > 0 {
            taken += take_any_order(nodes.get_mut(index..index + run).unwrap_or_default(), rest);
            index += run;
            continue;
        }
        match nodes.get_mut(index).map_or(0, |node| node.take(rest)) {
            0 => return 0,
            count => taken += count,
        }
        index += 1;
    }
    taken
}

/// Fills optional arguments in the order in which they were typed.
fn take_any_order(nodes: &mut [Node], words: &[Vec<u8>]) -> usize {
    let mut taken = 0;
    let mut last = None;
    while taken < words.len() {
        let rest = words.get(taken..).unwrap_or_default();
        let fitting = nodes.iter_mut().enumerate().filter(|(_, node)| node.words == 0).find_map(|(index, node)| {
            let count = node.take(rest);
            (count > 0).then_some((index, count))
        });
        let Some((index, count)) = fitting else {
            break;
        };
        // Another argument began, so the one before it has ended.
        if let Some(node) = last.and_then(|last: usize| nodes.get_mut(last)) {
            node.complete = true;
        }
        last = Some(index);
        taken += count;
    }
    taken
}

/// As C's `sscanf`: a number may be followed by anything.
fn starts_as_number(text: &str) -> bool {
    let digits = text.trim_start().trim_start_matches(['+', '-']);
    digits.starts_with(|first: char| first.is_ascii_digit())
        || digits.strip_prefix('.').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The fixed words of a command's grammar.
pub(super) fn tokens(arguments: &'static [Argument], found: &mut Vec<&'static str>) {
    for argument in arguments {
        found.extend(argument.token.filter(|token| !token.is_empty()));
        tokens(argument.arguments, found);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn hints_shrink_as_arguments_are_typed() {
        let cases = [
            ("get", None),
            ("nothing ", None),
            ("get ", Some("key")),
            ("get a", Some(" key")),
            ("get a ", Some("")),
            ("get a b ", Some("")),
            ("mget a ", Some("[key ...]")),
            ("config get ", Some("parameter [parameter ...]")),
            ("object freq ", Some("key")),
            ("set k v EX ", None),
            ("expire k x ", Some("")),
            ("expire k 5 ", Some("[NX|XX|GT|LT]")),
            ("expire k 5 NX ", Some("")),
            ("get \"a", None),
        ];
        for (line, want) in cases {
            if line == "set k v EX " {
                let hint = hint(line).unwrap();
                assert!(hint.starts_with("seconds"), "{hint}");
                assert!(hint.contains("[GET]"), "{hint}");
                continue;
            }
            assert_eq!(hint(line).as_deref(), want, "{line:?}");
        }
    }
}
