//! What `:set` and `~/.redisclirc` change.

use resp::split_args;

use super::history::dot_file;
use crate::output::{Outcome, print_line, text};

/// Settings of the prompt.
#[derive(Clone, Debug)]
pub(super) struct Preferences {
    /// Grey hints behind the cursor.
    pub(super) hints: bool,
    /// Keys that were used in this session are offered by TAB.
    pub(super) key_hints: bool,
    /// Each reply is followed by its time and the cost of the command.
    pub(super) timing: bool,
    /// Both stand in the bottom line of the screen.
    pub(super) bottom_line: bool,
    /// Replies higher than the screen go through `$PAGER`.
    pub(super) pager: bool,
}

impl Default for Preferences {
    fn default() -> Self {
        Preferences { hints: true, key_hints: true, timing: false, bottom_line: false, pager: false }
    }
}

impl Preferences {
    /// The words that `:set` takes.
    pub(super) const NAMES: &'static [&'static str] = &[
        "hints",
        "nohints",
        "keyhints",
        "nokeyhints",
        "timing",
        "notiming",
        "bottomline",
        "nobottomline",
        "pager",
        "nopager",
    ];

    /// Reads `~/.redisclirc` (or `REDISCLI_RCFILE`), if there is one.
    pub(super) fn load(&mut self) -> Outcome<()> {
        let Some(path) = dot_file("RCFILE", ".redisclirc") else {
            return Ok(());
        };
        let bytes = std::fs::read(path).unwrap_or_default();
        for line in bytes.split(|byte| *byte == b'\n') {
            match split_args(line) {
                Some(words) if !words.is_empty() => self.set(&words, ".redisclirc: ")?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs `:set name`; `place` stands before a complaint.
    pub(super) fn set(&mut self, words: &[Vec<u8>], place: &str) -> Outcome<()> {
        let name = words.first().map(|word| text(word)).unwrap_or_default();
        let (":set", Some(preference)) = (name.to_lowercase().as_str(), words.get(1)) else {
            return print_line(format_args!("{place}unknown redis-cli internal command '{name}'"));
        };
        match text(preference).to_lowercase().as_str() {
            "hints" => self.hints = true,
            "nohints" => self.hints = false,
            "keyhints" => self.key_hints = true,
            "nokeyhints" => self.key_hints = false,
            "timing" => self.timing = true,
            "notiming" => self.timing = false,
            "bottomline" => self.bottom_line = true,
            "nobottomline" => self.bottom_line = false,
            "pager" => self.pager = true,
            "nopager" => self.pager = false,
            _ => return print_line(format_args!("{place}unknown redis-cli preference '{}'", text(preference))),
        }
        Ok(())
    }
}
