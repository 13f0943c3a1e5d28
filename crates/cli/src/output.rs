//! Standard output and standard error, and the way out of the program.
//!
//! Everything below [`crate::run`] that may end the program returns [`Outcome`], so that `?` carries the exit code up
//! and nothing calls `exit` in the middle. A closed pipe behind standard output is such an end, without a message.

use std::fmt;
use std::io::{self, Write};

/// The program ends with this exit code; what there was to say has been said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) i32);

/// A result, or the end of the program.
pub(crate) type Outcome<T> = Result<T, Exit>;

/// Writes to standard output and flushes, so that pipes see it at once.
pub(crate) fn print(bytes: impl AsRef<[u8]>) -> Outcome<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes.as_ref()).and_then(|()| out.flush());
    written.map_err(|_| Exit(1))
}

/// [`print`] with a formatted text and a line end.
pub(crate) fn print_line(text: fmt::Arguments<'_>) -> Outcome<()> {
    print(format!("{text}\n"))
}

/// A line on standard error. Nobody may be reading there: that is not an error.
pub(crate) fn complain(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// [`complain`], then the end with exit code 1.
pub(crate) fn fail<T>(text: fmt::Arguments<'_>) -> Outcome<T> {
    complain(text);
    Err(Exit(1))
}

/// Bytes of a message for people: not UTF-8 becomes the replacement sign.
pub(crate) fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What the operating system says, without the number that Rust adds.
pub(crate) fn os_text(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error ") {
        text.truncate(end);
    }
    match text.strip_prefix("failed to lookup address information: ") {
        Some(reason) => reason.to_string(),
        None => text,
    }
}
