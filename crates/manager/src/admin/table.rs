//! Tables: aligned columns for eyes, tab-separated fields for programs.

use super::command::Out;

/// A table that is being written.
#[derive(Debug)]
pub(super) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(heads: &[&'static str]) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the table to `out`. A column of numbers is aligned at its end. A pipe gets no headings.
    pub(super) fn print(&self, out: &mut Out) {
        if !out.is_terminal {
            for row in &self.rows {
                out.text.push_str(&row.join("\t"));
                out.text.push('\n');
            }
            return;
        }
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(self.heads.get(column).map_or(0, |head| head.len()))
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let is_number = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| *cell != "-").peekable();
            cells.peek().is_some()
                && cells.all(|cell| {
                    cell.starts_with(|letter: char| letter.is_ascii_digit()) && !cell.contains([':', '-', ','])
                })
        };
        let numbers: Vec<bool> = (0..self.heads.len()).map(is_number).collect();
        let bold = wants_colour();
        let heads: Vec<String> = self.heads.iter().map(|head| (*head).to_owned()).collect();
        let line = |cells: &[String]| {
            let mut text = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let width = widths.get(column).copied().unwrap_or(0);
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                if column > 0 {
                    text.push_str("  ");
                }
                if numbers.get(column) == Some(&true) {
                    text.push_str(&pad);
                    text.push_str(cell);
                } else {
                    text.push_str(cell);
                    text.push_str(&pad);
                }
            }
            text.trim_end().to_owned()
        };
        let head = line(&heads);
        out.text.push_str(&if bold { format!("\x1b[1m{head}\x1b[0m\n") } else { format!("{head}\n") });
        for row in &self.rows {
            out.text.push_str(&line(row));
            out.text.push('\n');
        }
    }
}

/// Whether a terminal may be sent bold text.
pub(super) fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// A cell: what came over the network moves no cursor and splits no line. An empty one is a dash.
fn clean(cell: String) -> String {
    let cell: String = cell.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if cell.is_empty() { "-".into() } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_for_eyes_and_apart_for_programs() {
        let mut table = Table::new(&["NAME", "KEYS"]);
        table.row(["a".to_owned(), "5".to_owned()]);
        table.row(["longer\u{1b}[2J".to_owned(), "1000".to_owned()]);
        table.row([String::new(), "-".to_owned()]);
        let mut out = Out { text: String::new(), is_terminal: false };
        table.print(&mut out);
        assert_eq!(out.text, "a\t5\nlonger?[2J\t1000\n-\t-\n");
        let mut out = Out { text: String::new(), is_terminal: true };
        table.print(&mut out);
        let lines: Vec<String> =
            out.text.replace("\x1b[1m", "").replace("\x1b[0m", "").lines().map(String::from).collect();
        assert_eq!(lines, ["NAME        KEYS", "a              5", "longer?[2J  1000", "-              -"]);
    }
}
