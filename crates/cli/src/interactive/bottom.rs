//! The bottom line of the screen: what the last command took, and what it costs. It stands still while replies scroll.
//!
//! The terminal scrolls only the lines above it (DECSTBM), and each drawing goes there and back between saving and
//! restoring the cursor (DECSC, DECRC), so the line editor knows nothing of it. Other programs get the whole screen.

use std::io::Write;

/// Lower screens have no line to spare.
const ROWS_MIN: u16 = 5;

/// The line, where it is shown.
#[derive(Debug, Default)]
pub(super) struct BottomLine {
    /// Rows and columns of the screen it was drawn on.
    screen: Option<(u16, u16)>,
}

impl BottomLine {
    /// Draws the line; the cursor must stand at the beginning of a line. Without a screen that can do it nothing is shown.
    pub(super) fn show(&mut self, text: &str) {
        let Some((rows, columns)) = screen() else {
            return self.hide();
        };
        let mut out = String::new();
        if self.screen != Some((rows, columns)) {
            // A line end that scrolls, should the cursor stand in the last row, and back up.
            out.push_str(&format!("\x1b7\x1b[r\x1b8\n\x1b[A\x1b7\x1b[1;{}r\x1b8", rows - 1));
            self.screen = Some((rows, columns));
        }
        let width = usize::from(columns);
        let text: String = text.chars().filter(|letter| !letter.is_control()).take(width).collect();
        out.push_str(&format!("\x1b7\x1b[{rows};1H\x1b[7m{text:width$}\x1b[0m\x1b8"));
        put(&out);
    }

    /// Takes the line away and gives the whole screen back.
    pub(super) fn hide(&mut self) {
        if let Some((rows, _)) = self.screen.take() {
            put(&format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[2K\x1b8"));
        }
    }
}

impl Drop for BottomLine {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Rows and columns of a screen that is high enough and not dumb.
fn screen() -> Option<(u16, u16)> {
    let terminal = std::env::var("TERM").unwrap_or_default();
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let is_fine = size.ws_row >= ROWS_MIN && size.ws_col > 0 && !terminal.is_empty() && terminal != "dumb";
    is_fine.then_some((size.ws_row, size.ws_col))
}

fn put(text: &str) {
    let mut out = std::io::stdout();
    // A terminal that has gone away needs nothing.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
