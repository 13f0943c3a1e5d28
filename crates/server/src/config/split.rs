//! Splitting a configuration line into arguments, and quoting one so that it splits back.

// The quoting rules are those of inline requests.
pub use resp::{split_args as split_arguments, write_repr as push_quoted};

/// The line without blanks at its ends.
#[must_use]
pub(super) fn trim(line: &[u8]) -> &[u8] {
    let is_trimmed = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().take_while(|byte| is_trimmed(byte)).count();
    let tail = line.get(start..).unwrap_or_default();
    let end = tail.iter().rev().take_while(|byte| is_trimmed(byte)).count();
    tail.get(..tail.len() - end).unwrap_or_default()
}
