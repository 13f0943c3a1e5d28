//! Single keys while the live view is drawn: the terminal gives them at once and does not show them, until this is
//! dropped. Ctrl-C stays what it is.

use std::io;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getpgrp,
    termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr},
};

/// A terminal whose keys are read one at a time.
#[derive(Debug)]
pub(crate) struct Keyboard {
    /// Settings to go back to.
    before: Termios,
}

impl Keyboard {
    /// Takes the terminal of standard input; `None` when there is none or another program has it.
    pub(crate) fn open() -> Option<Keyboard> {
        let stdin = io::stdin();
        if !isatty(&stdin) || tcgetpgrp(&stdin) != Ok(getpgrp()) {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut settings = before.clone();
        settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &settings).ok()?;
        Some(Keyboard { before })
    }

    /// The key that was pressed, if one was.
    pub(crate) fn key(&self) -> Option<u8> {
        let stdin = io::stdin();
        let mut descriptors = [PollFd::new(&stdin, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_there = poll(&mut descriptors, Some(&now)).is_ok_and(|count| count > 0);
        let mut byte = [0];
        (is_there && rustix::io::read(&stdin, &mut byte) == Ok(1)).then_some(byte[0])
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
