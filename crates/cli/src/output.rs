//! Standard output and standard error, and the way out of the program.
//!
//! Everything below [`crate::run`] that may end the program returns [`Outcome`], so that `?` carries the exit code up
//! and nothing calls `exit` in the middle. A closed pipe behind standard output is such an end, without a message.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::process::ChildStdin;

/// The program ends with this exit code; what there was to say has been said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) i32);

/// A result, or the end of the program.
pub(crate) type Outcome<T> = Result<T, Exit>;

/// Where [`print`] writes instead of standard output.
pub(crate) enum Sink {
    /// The standard input of a program.
    Program(ChildStdin),
    /// Memory, to be shown later.
    Memory(Vec<u8>),
}

thread_local! {
    /// The client has one thread; tests have their own sinks.
    static SINK: RefCell<Option<Sink>> = const { RefCell::new(None) };
}

/// Sends output elsewhere, or back to standard output; what it was sent to before.
pub(crate) fn redirect(sink: Option<Sink>) -> Option<Sink> {
    SINK.replace(sink)
}

/// Writes to standard output and flushes, so that pipes see it at once.
pub(crate) fn print(bytes: impl AsRef<[u8]>) -> Outcome<()> {
    let elsewhere = SINK.with_borrow_mut(|sink| match sink {
        None => false,
        // A program that has read enough closes its end; the rest is not wanted.
        Some(Sink::Program(input)) => input.write_all(bytes.as_ref()).map_or(true, |()| true),
        Some(Sink::Memory(memory)) => {
            memory.extend_from_slice(bytes.as_ref());
            true
        }
    });
    if elsewhere {
        return Ok(());
    }
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
