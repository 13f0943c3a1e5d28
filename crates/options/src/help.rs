//! `--help`: the table for eyes. Plain text in a pipe; on a terminal as wide as it is, with bold headings.

use std::fmt::Write as _;
use std::io::IsTerminal;

use crate::{Row, Section, Tool};

/// Where the texts of options begin.
const INDENT: usize = 23;
const WIDTH: usize = 80;
/// Longer lines are hard to read, however wide the terminal is.
const WIDTH_MAX: usize = 100;
const WIDTH_MIN: usize = 50;

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Headings are bold.
    pub is_bold: bool,
}

impl Look {
    /// For a pipe or a file.
    pub const PLAIN: Look = Look { width: WIDTH, is_bold: false };

    /// For what standard output is now. `NO_COLOR` is heeded.
    #[must_use]
    pub fn of_stdout() -> Look {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Look::PLAIN;
        }
        let columns = rustix::termios::tcgetwinsize(&out).map_or(0, |size| usize::from(size.ws_col));
        let width = if columns == 0 { WIDTH } else { columns.clamp(WIDTH_MIN, WIDTH_MAX) };
        let wants_no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        Look { width, is_bold: !wants_no_colour && !is_dumb }
    }

    fn heading(self, text: &str) -> String {
        if self.is_bold { format!("\x1b[1m{text}\x1b[0m\n") } else { format!("{text}\n") }
    }
}

/// The help of a tool called as `program`; only one section or topic, `examples`, `environment` or `exit` if `part` names it.
/// `None` if it names nothing.
#[must_use]
pub fn help(tool: &Tool, program: &str, part: Option<&str>, look: Look) -> Option<String> {
    let text = match part {
        None => whole(tool, program, look),
        Some("examples") => examples(tool, program, look),
        Some("environment") => surroundings(tool, look),
        Some("exit") => list("Exit codes", tool.exit_codes, look),
        Some(part) => match tool.topics.iter().find(|topic| topic.name == part) {
            Some(topic) => format!("{}{}", look.heading(&format!("{}:", topic.title)), topic.text),
            None => one(tool.sections.iter().find(|section| section.name == part)?, look),
        },
    };
    Some(text.replace("PROGRAM", program))
}

fn whole(tool: &Tool, program: &str, look: Look) -> String {
    let mut out = String::new();
    for (index, usage) in tool.usage.iter().enumerate() {
        let head = if index == 0 { "Usage: " } else { "       " };
        let _ = writeln!(out, "{head}{usage}");
    }
    for paragraph in tool.about.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        out.push('\n');
        wrap(&mut out, paragraph, 0, look.width);
    }
    for section in
        tool.sections.iter().filter(|section| !section.is_long && section.rows.iter().any(|row| row.is_listed))
    {
        out.push('\n');
        out.push_str(&one(section, look));
    }
    for part in [surroundings(tool, look), list("Exit codes", tool.exit_codes, look), examples(tool, program, look)] {
        if !part.is_empty() {
            out.push('\n');
            out.push_str(&part);
        }
    }
    if tool.sections.len() > 1 {
        let names = tool.sections.iter().map(|section| section.name);
        let names: Vec<&str> = names.chain(tool.topics.iter().map(|topic| topic.name)).collect();
        out.push('\n');
        let last =
            format!("One section only: oxidis help {} SECTION, one of {}, examples.", tool.name, names.join(", "));
        wrap(&mut out, &last, 0, look.width);
    }
    out
}

fn one(section: &Section, look: Look) -> String {
    let mut out = look.heading(&format!("{}:", section.title));
    for row in section.rows.iter().filter(|row| row.is_listed) {
        option(&mut out, row, look.width);
    }
    out
}

/// Names and text side by side, or below each other if the names are long.
fn option(out: &mut String, row: &Row, width: usize) {
    entry(out, row.spec, &row.help, width);
}

fn entry(out: &mut String, name: &str, text: &str, width: usize) {
    let start = out.len();
    let _ = write!(out, "  {name}");
    let used = out.get(start..).map_or(0, |line| line.chars().count());
    let mut body = String::new();
    wrap(&mut body, text, INDENT, width);
    if used + 1 < INDENT {
        let _ = write!(out, "{:rest$}", "", rest = INDENT - used);
        out.push_str(body.trim_start());
    } else {
        out.push('\n');
        out.push_str(&body);
    }
    if text.is_empty() {
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
}

fn list(title: &str, entries: &[(&str, &str)], look: Look) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut out = look.heading(&format!("{title}:"));
    for (name, text) in entries {
        entry(&mut out, name, text, look.width);
    }
    out
}

fn surroundings(tool: &Tool, look: Look) -> String {
    let variables = list("Environment", tool.environment, look);
    let files = list("Files", tool.files, look);
    let between = if variables.is_empty() || files.is_empty() { "" } else { "\n" };
    format!("{variables}{between}{files}")
}

fn examples(tool: &Tool, program: &str, look: Look) -> String {
    if tool.examples.is_empty() {
        return String::new();
    }
    let mut out = look.heading("Examples:");
    for (command, text) in tool.examples {
        example(&mut out, &command.replace("PROGRAM", program), look.width);
        wrap(&mut out, text, 6, look.width);
    }
    out
}

/// A command line, to be copied: what is too long goes on in the next line, as a shell takes it. No quotes are torn.
fn example(out: &mut String, command: &str, width: usize) {
    let mut pieces: Vec<String> = Vec::new();
    for word in command.split(' ') {
        match pieces.last_mut() {
            Some(piece) if piece.matches('\'').count() % 2 == 1 => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    out.push_str("  ");
    let mut column = 2;
    for (index, piece) in pieces.iter().enumerate() {
        let length = piece.chars().count();
        // The last piece needs no room for the backslash.
        let room = if index + 1 == pieces.len() { width } else { width.saturating_sub(2) };
        if index > 0 && column + 1 + length > room {
            out.push_str(" \\\n    ");
            column = 4;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(piece);
        column += length;
    }
    out.push('\n');
}

/// Words of a paragraph in lines of `width`, each after `indent` blanks.
fn wrap(out: &mut String, text: &str, indent: usize, width: usize) {
    let mut column = 0;
    for word in text.split_ascii_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            let _ = write!(out, "{:indent$}", "");
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}
