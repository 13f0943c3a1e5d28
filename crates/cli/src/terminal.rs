//! The terminal's modes: a password without echo, and keys as they are pressed.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::output::{Outcome, fail};

/// POSIX: a key that a terminal does not have.
const DISABLED: u8 = 0;
/// Ctrl-D.
const END_KEY: u8 = 4;

/// Changes to the modes of standard input, taken back when this is dropped.
pub(crate) struct Mode {
    before: Termios,
}

impl Mode {
    /// Keys arrive as they are pressed and are not shown; `None` if standard input is no terminal.
    pub(crate) fn key_by_key() -> Option<Mode> {
        Self::change(|modes| {
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        })
    }

    /// Ctrl-D has no meaning to the terminal: pressed while a command runs, it stays in the queue for the prompt, where
    /// the terminal would turn it into a NUL.
    pub(crate) fn end_key_is_kept() -> Option<Mode> {
        Self::change(|modes| modes.special_codes[SpecialCodeIndex::VEOF] = DISABLED)
    }

    /// Ctrl-D ends input.
    fn end_key_ends() -> Option<Mode> {
        Self::change(|modes| modes.special_codes[SpecialCodeIndex::VEOF] = END_KEY)
    }

    /// Lines are not shown while they are typed.
    fn silent() -> Option<Mode> {
        Self::change(|modes| modes.local_modes -= LocalModes::ECHO)
    }

    fn change(change: impl FnOnce(&mut Termios)) -> Option<Mode> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        let before = tcgetattr(input.as_fd()).ok()?;
        let mut modes = before.clone();
        change(&mut modes);
        tcsetattr(input.as_fd(), OptionalActions::Now, &modes).ok()?;
        Some(Mode { before })
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // A terminal that has gone away needs nothing.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.before);
    }
}

/// Asks on standard error and reads a line without showing it.
pub(crate) fn ask_password(question: &str) -> Outcome<Vec<u8>> {
    let mut screen = io::stderr();
    let _ = write!(screen, "{question}");
    let mode = Mode::silent();
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    drop(mode);
    let _ = writeln!(screen);
    if read.is_err() {
        return fail(format_args!("Can't read the password."));
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}

/// Asks before something that may hurt; only `yes` or `y` goes on.
pub(crate) fn confirm(question: &str) -> bool {
    let mut screen = io::stdout();
    let _ = write!(screen, "{question} (type 'yes' to accept): ");
    let _ = screen.flush();
    let mode = Mode::end_key_ends();
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).is_ok();
    drop(mode);
    read && matches!(line.trim(), "yes" | "y")
}
