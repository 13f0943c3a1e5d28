//! Lines of the prompt: which are not finished, which are several commands, and where their words stand.

use std::ops::Range;

/// What a line is as far as its quotes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    /// All are closed.
    Closed,
    /// One is open: more lines may follow.
    Open,
    /// Something stands right behind a closed one: nothing that follows mends it.
    Wrong,
}

/// A word as it was typed, with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its bytes in the line.
    pub(super) place: Range<usize>,
    /// Whether it has quotes.
    pub(super) is_quoted: bool,
}

/// The words of a text with several lines, and its quotes. Line ends outside quotes end a command: `ends` are their
/// places.
struct Split {
    words: Vec<Word>,
    ends: Vec<usize>,
    quotes: Quotes,
}

/// Splits by the rules of the prompt: a backslash escapes in `"…"`, and only `\'` in `'…'`.
fn split(line: &str) -> Split {
    let mut split = Split { words: Vec::new(), ends: Vec::new(), quotes: Quotes::Closed };
    let bytes = line.as_bytes();
    let at = |index: usize| bytes.get(index).copied();
    let mut start = None;
    let mut is_quoted = false;
    let mut quote = None;
    let mut index = 0;
    while let Some(byte) = at(index) {
        match quote {
            Some(b'"') if byte == b'\\' && index + 1 < bytes.len() => index += 1,
            Some(b'\'') if byte == b'\\' && at(index + 1) == Some(b'\'') => index += 1,
            Some(open) if byte == open => {
                quote = None;
                if at(index + 1).is_some_and(|next| !next.is_ascii_whitespace()) {
                    split.quotes = Quotes::Wrong;
                }
            }
            Some(_) => {}
            None if byte.is_ascii_whitespace() => {
                if let Some(start) = start.take() {
                    split.words.push(Word { place: start..index, is_quoted });
                }
                is_quoted = false;
                if byte == b'\n' {
                    split.ends.push(index);
                }
            }
            None => {
                start.get_or_insert(index);
                if matches!(byte, b'"' | b'\'') {
                    quote = Some(byte);
                    is_quoted = true;
                }
            }
        }
        index += 1;
    }
    if let Some(start) = start {
        split.words.push(Word { place: start..bytes.len(), is_quoted });
    }
    if quote.is_some() && split.quotes == Quotes::Closed {
        split.quotes = Quotes::Open;
    }
    split
}

/// Whether the quotes of a line are closed.
pub(super) fn quotes(line: &str) -> Quotes {
    split(line).quotes
}

/// The words of a line.
pub(super) fn words(line: &str) -> Vec<Word> {
    split(line).words
}

/// The commands of a text: pasted lines are one each, but a line end in quotes belongs to the value.
pub(super) fn commands(text: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut start = 0;
    for end in split(text).ends {
        commands.push(text.get(start..end).unwrap_or_default());
        start = end + 1;
    }
    commands.push(text.get(start..).unwrap_or_default());
    if commands.len() > 1 {
        commands.retain(|command| !command.trim().is_empty());
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_and_wrong_quotes() {
        for line in ["set a \"x", "set a 'it", "set a \"x\\\"", "set a 'x\\'", "\"", "set a x\"y", "set a \"x\\"] {
            assert_eq!(quotes(line), Quotes::Open, "{line}");
        }
        for line in ["", "get a", "set a \"x\"", "set a 'it\\'s'", "set a \"\\\\\"", "set a \"x\ny\" b"] {
            assert_eq!(quotes(line), Quotes::Closed, "{line}");
        }
        for line in ["set a \"x\"y", "set a 'x'\"y\"", "set a \"x\"y \"z"] {
            assert_eq!(quotes(line), Quotes::Wrong, "{line}");
        }
    }

    #[test]
    fn quotes_are_as_the_splitter_sees_them() {
        for line in ["a \"b\\x41\" 'c' d\"e\"", "a 'b", "a \"b\"c", "\"\\\"\"", "'\\''", "a\\\"b\""] {
            let splits = resp::split_args(line.as_bytes());
            assert_eq!(quotes(line) == Quotes::Closed, splits.is_some(), "{line}");
            if let Some(splits) = splits {
                assert_eq!(splits.len(), words(line).len(), "{line}");
            }
        }
    }

    #[test]
    fn pasted_lines_are_commands() {
        assert_eq!(commands("set a 1\n\nget a\n"), ["set a 1", "get a"]);
        assert_eq!(commands("set a \"1\n2\""), ["set a \"1\n2\""]);
        assert_eq!(commands(""), [""]);
    }
}
