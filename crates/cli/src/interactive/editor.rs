//! The line editor: history, completion, hints and colours at the prompt.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use commands::table::{keys, resolve};
use rustyline::completion::Completer;
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter, HistoryHinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};

use super::preferences::Preferences;
use super::{OWN_SETTINGS, OWN_WORDS, has_colour, help, hints, history, lines, piped};
use crate::output::complain;

/// Keys remembered for completion.
const KEYS_MAX: usize = 1000;

/// What the person answered.
pub(super) enum Answer {
    /// A line.
    Line(String),
    /// Ctrl-C while something was typed: nothing.
    Cleared,
    /// Ctrl-D, or Ctrl-C on an empty line.
    End,
}

/// The line editor with its history.
pub(super) struct Prompt {
    editor: Editor<Assistant, DefaultHistory>,
    history_file: Option<PathBuf>,
}

impl Prompt {
    /// Sets up the editor and loads the history.
    pub(super) fn new(preferences: &Preferences, red_prompt: bool) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(history::LINES_MAX)?
            .history_ignore_dups(true)?
            .auto_add_history(false)
            .completion_type(CompletionType::Circular)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant {
            preferences: preferences.clone(),
            typed: RefCell::new(String::new()),
            keys: BTreeSet::new(),
            databases: BTreeSet::from(["0".to_string()]),
            colour: has_colour(),
            red_prompt,
            columns: COLUMNS,
            prompt_width: 0,
        }));
        let history_file = history::path();
        if let Some(path) = &history_file {
            for line in history::load(path) {
                editor.add_history_entry(line)?;
            }
        }
        Ok(Prompt { editor, history_file })
    }

    /// Asks for a line.
    pub(super) fn ask(&mut self, prompt: &str, preferences: &Preferences) -> Answer {
        if let Some(assistant) = self.editor.helper_mut() {
            assistant.preferences = preferences.clone();
            assistant.typed.borrow_mut().clear();
            let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
            assistant.columns = if columns == 0 { COLUMNS } else { columns };
            assistant.prompt_width = prompt.chars().count();
        }
        match self.editor.readline(prompt) {
            Ok(line) => Answer::Line(line),
            Err(ReadlineError::Interrupted) => {
                let typed = self.editor.helper().is_some_and(|assistant| !assistant.typed.borrow().is_empty());
                if typed { Answer::Cleared } else { Answer::End }
            }
            Err(_) => Answer::End,
        }
    }

    /// Adds a line to the history and its file.
    pub(super) fn remember(&mut self, line: &str) {
        let line = history::one_line(line);
        let added = self.editor.add_history_entry(line);
        let Some(path) = &self.history_file else {
            return;
        };
        if !matches!(added, Ok(true)) {
            return;
        }
        if let Err(error) = history::save(path, self.editor.history().iter()) {
            complain(format_args!("Can't write history file '{}': {error}", path.display()));
            self.history_file = None;
        }
    }

    /// Notes the keys of a command, and the database that it selects, for completion.
    pub(super) fn saw(&mut self, words: &[Vec<u8>]) {
        let Some(assistant) = self.editor.helper_mut() else {
            return;
        };
        let Ok(command) = resolve(words) else {
            return;
        };
        if !commands::table::arity_ok(command, words.len()) {
            return;
        }
        let readable = |word: &Vec<u8>| {
            let text = std::str::from_utf8(word).ok()?;
            (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.to_string())
        };
        if command.name == "select" {
            assistant.databases.extend(words.get(1).and_then(readable).filter(|text| text.parse::<u32>().is_ok()));
        }
        for key in keys::keys(command, words).unwrap_or_default() {
            let text = words.get(key.position as usize).and_then(readable);
            if assistant.keys.len() < KEYS_MAX {
                assistant.keys.extend(text);
            }
        }
    }
}

/// What rustyline asks while a line is typed.
struct Assistant {
    preferences: Preferences,
    /// The line as it was last seen, to tell an empty one when Ctrl-C comes.
    typed: RefCell<String>,
    keys: BTreeSet<String>,
    databases: BTreeSet<String>,
    colour: bool,
    red_prompt: bool,
    columns: usize,
    prompt_width: usize,
}

/// A hint that is shown, as far as the screen is wide; only one from the history can be taken over.
struct Shown {
    text: String,
    shown: String,
    takeable: bool,
}

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        self.takeable.then_some(self.text.as_str())
    }
}

impl Hinter for Assistant {
    type Hint = Shown;

    fn hint(&self, line: &str, pos: usize, ctx: &Context<'_>) -> Option<Shown> {
        self.typed.replace(line.to_string());
        if !self.preferences.hints || pos < line.len() {
            return None;
        }
        let mut hint = self.find_hint(line, pos, ctx)?;
        let last = line.rsplit('\n').next().unwrap_or(line);
        let before = if last.len() == line.len() { self.prompt_width } else { 0 };
        // A hint in further lines would make the screen jump with each key.
        let room = self.columns.saturating_sub(before + last.chars().count() + 1);
        hint.shown = cut(&hint.text, room);
        (!hint.shown.is_empty()).then_some(hint)
    }
}

impl Assistant {
    fn find_hint(&self, line: &str, pos: usize, ctx: &Context<'_>) -> Option<Shown> {
        let (_, line) = without_repeat(line);
        match lines::quotes(line) {
            lines::Quotes::Open => return None,
            lines::Quotes::Wrong => return Some(blame("a space must follow the closing quote")),
            lines::Quotes::Closed => {}
        }
        if let Some(problem) = hints::problem(&finished_words(line)) {
            return Some(blame(&problem));
        }
        if let Some(text) = hints::hint(line) {
            return (!text.is_empty()).then_some(Shown { text, shown: String::new(), takeable: false });
        }
        let text = HistoryHinter::new().hint(&self.typed.borrow(), pos, ctx)?;
        Some(Shown { text, shown: String::new(), takeable: true })
    }
}

/// The beginning of a text that fits; nothing if that says nothing.
fn cut(text: &str, room: usize) -> String {
    let first = text.split('\n').next().unwrap_or(text);
    if first.len() == text.len() && text.chars().count() <= room {
        return text.to_string();
    }
    if room < ROOM_MIN {
        return String::new();
    }
    let end = first.chars().take(room - 3).collect::<String>();
    format!("{end}...")
}

/// Less of a hint than these columns is of no use.
const ROOM_MIN: usize = 8;
/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;

/// Stands before what is wrong with a line.
const BLAME: &str = "   <- ";

fn blame(problem: &str) -> Shown {
    Shown { text: format!("{BLAME}{problem}"), shown: String::new(), takeable: false }
}

/// The words of a command apart from the one that is being typed.
fn finished_words(line: &str) -> Vec<Vec<u8>> {
    let (command, _) = piped::split(line);
    let mut words = resp::split_args(command.as_bytes()).unwrap_or_default();
    if !command.ends_with(|last: char| last.is_ascii_whitespace()) {
        words.pop();
    }
    words
}

/// A line behind the number that repeats it, and the length of what was cut off.
fn without_repeat(line: &str) -> (usize, &str) {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..).unwrap_or_default();
    let blanks = rest.bytes().take_while(|byte| *byte == b' ').count();
    match digits > 0 && blanks > 0 {
        true => (digits + blanks, rest.get(blanks..).unwrap_or_default()),
        false => (0, line),
    }
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _ctx: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let (cut, typed) = without_repeat(line.get(..pos).unwrap_or(line));
        let asks_help = typed.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("help "));
        let start = if asks_help { typed.len() - typed.get(5..).unwrap_or_default().trim_start().len() } else { 0 };
        let prefix = typed.get(start..).unwrap_or_default();
        let mut candidates: Vec<String> = help::commands().iter().map(|command| help::shown_name(command)).collect();
        if asks_help {
            candidates.extend(help::commands().iter().map(|command| format!("@{}", command.docs.group.name())));
        } else {
            let own = OWN_WORDS.iter().filter(|word| **word != "restart").chain(OWN_SETTINGS);
            candidates.extend(own.map(|word| (*word).to_string()));
        }
        candidates.retain(|name| begins_with(name, prefix));
        candidates.sort_unstable();
        candidates.dedup();
        if candidates.is_empty() && !asks_help {
            let (start, candidates) = self.complete_argument(typed);
            return Ok((cut + start, candidates));
        }
        Ok((cut + start, candidates))
    }
}

fn begins_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

impl Assistant {
    /// What may stand at the cursor behind the command: fixed words of its grammar, keys and databases of this session,
    /// words of our own settings.
    fn complete_argument(&self, typed: &str) -> (usize, Vec<String>) {
        let start = typed.rfind(' ').map_or(0, |space| space + 1);
        let prefix = typed.get(start..).unwrap_or_default();
        let words = finished_words(typed);
        let mut candidates: Vec<String> = Vec::new();
        let mut offer = |names: &[&str]| {
            candidates.extend(names.iter().filter(|name| begins_with(name, prefix)).map(|name| (*name).to_string()));
        };
        let first = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let keys = || self.keys.iter().filter(|key| key.starts_with(prefix)).cloned();
        match (first.as_slice(), words.len()) {
            (b":set", 1) => offer(Preferences::NAMES),
            (b":decode", 1) => offer(crate::format::Decoder::NAMES),
            (b"select", 1) => candidates.extend(self.databases.iter().filter(|name| name.starts_with(prefix)).cloned()),
            (b"peek" | b":slot", 1) => candidates.extend(keys()),
            _ => {
                let Some((command, _)) = hints::command_of(&words) else {
                    return (start, Vec::new());
                };
                offer(&hints::next_tokens(&words));
                if self.preferences.key_hints && command.has_keys() && !prefix.is_empty() {
                    candidates.extend(keys());
                }
            }
        }
        (start, candidates)
    }

    /// The colour of a word, if it has one: the command green, or red once it is finished and unknown; fixed words of
    /// its grammar cyan; quoted words yellow, or red while the quote is open.
    fn colour_of(&self, line: &str, index: usize, word: &lines::Word, words: &[Vec<u8>]) -> Option<&'static str> {
        let text = line.get(word.place.clone())?;
        let is_last = word.place.end == line.len();
        if word.is_quoted {
            let is_open = is_last && lines::quotes(line) == lines::Quotes::Open;
            return Some(if is_open { "31" } else { "33" });
        }
        let command = hints::command_of(words);
        if index == 0 {
            let known = command.is_some()
                || OWN_WORDS.iter().any(|own| text.eq_ignore_ascii_case(own))
                || text.starts_with(':');
            return match (known, is_last) {
                (true, _) => Some("32"),
                (false, true) => None,
                (false, false) => Some("31"),
            };
        }
        let (command, length) = command?;
        if index < length {
            return Some("32");
        }
        let mut tokens = Vec::new();
        hints::tokens(command.docs.arguments, &mut tokens);
        tokens.iter().any(|token| text.eq_ignore_ascii_case(token)).then_some("36")
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if !self.colour || line.is_empty() {
            return Cow::Borrowed(line);
        }
        let (cut, command) = without_repeat(line);
        let (command, _) = piped::split(command);
        let places = lines::words(command);
        let words: Vec<Vec<u8>> =
            places.iter().map(|word| command.get(word.place.clone()).unwrap_or_default().as_bytes().to_vec()).collect();
        let mut shown = line.get(..cut).unwrap_or_default().to_string();
        let mut end = 0;
        for (index, word) in places.iter().enumerate() {
            shown.push_str(command.get(end..word.place.start).unwrap_or_default());
            let text = command.get(word.place.clone()).unwrap_or_default();
            match self.colour_of(command, index, word, &words) {
                Some(colour) => shown.push_str(&format!("\x1b[{colour}m{text}\x1b[0m")),
                None => shown.push_str(text),
            }
            end = word.place.end;
        }
        shown.push_str(line.get(cut + end..).unwrap_or_default());
        Cow::Owned(shown)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.red_prompt { Cow::Owned(format!("\x1b[1;31m{prompt}\x1b[0m")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        let colour = if hint.starts_with(BLAME) { "0;33" } else { "0;90" };
        if self.colour { Cow::Owned(format!("\x1b[{colour}m{hint}\x1b[0m")) } else { Cow::Borrowed(hint) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.colour
    }
}

impl Validator for Assistant {
    /// A line with an open quote goes on: the line end is part of the value. Ctrl-C gives it up.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match lines::quotes(context.input()) {
            lines::Quotes::Open => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(None),
        })
    }
}

impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::{cut, without_repeat};

    #[test]
    fn hints_fit_the_screen() {
        for (text, room, want) in [
            ("key value", 20, "key value"),
            ("key value [NX|XX]", 12, "key value..."),
            ("key value [NX|XX]", 5, ""),
            ("first\nsecond", 40, "first..."),
        ] {
            assert_eq!(cut(text, room), want);
        }
    }

    #[test]
    fn repeats_are_set_aside() {
        assert_eq!(without_repeat("3 get a"), (2, "get a"));
        assert_eq!(without_repeat("3"), (0, "3"));
        assert_eq!(without_repeat("get 3"), (0, "get 3"));
    }
}
