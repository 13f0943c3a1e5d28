//! `command | program`: the reply goes to a program of the shell; and long replies go through a pager.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{Next, Shell};
use crate::format::Format;
use crate::output::{Outcome, Sink, complain, os_text, print, redirect};
use crate::session::is;

/// The command and the program behind a bar that stands alone outside quotes.
pub(super) fn split(line: &str) -> (&str, Option<&str>) {
    let mut quote = None;
    let mut escaped = false;
    for (place, byte) in line.bytes().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'|') => {
                let (command, program) = (line.get(..place).unwrap_or(line), line.get(place + 1..).unwrap_or_default());
                if command.ends_with(' ') && program.starts_with(' ') && !program.trim().is_empty() {
                    return (command, Some(program.trim()));
                }
            }
            (None, _) => {}
        }
    }
    (line, None)
}

impl Shell {
    /// Runs a command with its reply, raw, going to a program.
    pub(super) fn run_piped(&mut self, repeat: i64, words: &[Vec<u8>], program: &str) -> Outcome<Next> {
        let mut child = match Command::new("sh").args(["-c", program]).stdin(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => {
                complain(format_args!("Can't run the shell: {}", os_text(&error)));
                return Ok(Next::Line);
            }
        };
        let shown = std::mem::replace(&mut self.session.options.style.format, Format::Raw);
        redirect(child.stdin.take().map(Sink::Program));
        let next = self.run_words(repeat, words);
        // Closes the program's input.
        drop(redirect(None));
        self.session.options.style.format = shown;
        let _ = child.wait();
        next
    }

    /// Runs a command; a reply higher than the screen goes through the pager.
    pub(super) fn run_paged(&mut self, repeat: i64, words: &[Vec<u8>]) -> Outcome<Next> {
        let endless = ["monitor", "subscribe", "psubscribe", "ssubscribe"].iter().any(|name| is(words, name));
        if endless || self.session.subscribed || super::danger::question(words).is_some() {
            return self.run_words(repeat, words);
        }
        redirect(Some(Sink::Memory(Vec::new())));
        let next = self.run_words(repeat, words);
        let Some(Sink::Memory(reply)) = redirect(None) else {
            return next;
        };
        let rows = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_row));
        let lines = reply.iter().filter(|byte| **byte == b'\n').count();
        if rows == 0 || lines < rows || !page(&reply) {
            print(reply)?;
        }
        next
    }
}

/// Whether the pager could be run.
fn page(reply: &[u8]) -> bool {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.is_empty()).unwrap_or_else(|| "less -R".to_string());
    let Ok(mut child) = Command::new("sh").args(["-c", &pager]).stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // The person may leave the pager before its end.
        let _ = input.write_all(reply);
    }
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_bar_alone_outside_quotes() {
        assert_eq!(split("keys * | wc -l"), ("keys * ", Some("wc -l")));
        assert_eq!(split("get a | sort | uniq"), ("get a ", Some("sort | uniq")));
        for line in ["set a \"x | y\"", "set a 'x | y'", "set a x|y", "echo |", "set a \"\\\" | y\""] {
            assert_eq!(split(line), (line, None));
        }
    }
}
