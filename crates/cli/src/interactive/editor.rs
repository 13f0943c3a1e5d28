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
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use super::preferences::Preferences;
use super::{has_colour, help, hints, history};
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
            colour: has_colour(),
            red_prompt,
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

    /// Notes the keys of a command for completion.
    pub(super) fn saw_keys(&mut self, words: &[Vec<u8>]) {
        let Some(assistant) = self.editor.helper_mut() else {
            return;
        };
        let Ok(command) = resolve(words) else {
            return;
        };
        if !commands::table::arity_ok(command, words.len()) {
            return;
        }
        for key in keys::keys(command, words).unwrap_or_default() {
            let text = words.get(key.position as usize).and_then(|word| std::str::from_utf8(word).ok());
            if let Some(text) = text.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()))
                && assistant.keys.len() < KEYS_MAX
            {
                assistant.keys.insert(text.to_string());
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
    colour: bool,
    red_prompt: bool,
}

/// A hint that is shown; only one from the history can be taken over.
struct Shown {
    text: String,
    takeable: bool,
}

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.text
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
        if let Some(text) = hints::hint(line) {
            return (!text.is_empty()).then_some(Shown { text, takeable: false });
        }
        let text = HistoryHinter::new().hint(line, pos, ctx)?;
        Some(Shown { text, takeable: true })
    }
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _ctx: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..pos).unwrap_or(line);
        let asks_help = typed.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("help "));
        let start = if asks_help { typed.len() - typed.get(5..).unwrap_or_default().trim_start().len() } else { 0 };
        let prefix = typed.get(start..).unwrap_or_default();
        let begins = |name: &str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
        let mut candidates: Vec<String> =
            help::commands().iter().map(|command| help::shown_name(command)).filter(|name| begins(name)).collect();
        if asks_help {
            let mut groups: Vec<String> =
                help::commands().iter().map(|command| format!("@{}", command.docs.group.name())).collect();
            groups.sort_unstable();
            groups.dedup();
            candidates.extend(groups.into_iter().filter(|group| begins(group)));
        }
        if candidates.is_empty() && !asks_help {
            return Ok(self.complete_argument(typed));
        }
        Ok((start, candidates))
    }
}

impl Assistant {
    /// Fixed words of the command and keys of this session that start like the word at the cursor.
    fn complete_argument(&self, typed: &str) -> (usize, Vec<String>) {
        let start = typed.rfind(' ').map_or(0, |space| space + 1);
        let prefix = typed.get(start..).unwrap_or_default();
        let words = resp::split_args(typed.as_bytes()).unwrap_or_default();
        let Some((command, _)) = hints::command_of(&words) else {
            return (start, Vec::new());
        };
        let begins = |name: &&str| {
            !prefix.is_empty() && name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
        };
        let mut tokens = Vec::new();
        hints::tokens(command.docs.arguments, &mut tokens);
        tokens.sort_unstable();
        tokens.dedup();
        let mut candidates: Vec<String> = tokens.into_iter().filter(begins).map(str::to_string).collect();
        if self.preferences.key_hints && command.has_keys() {
            candidates.extend(self.keys.iter().filter(|key| key.starts_with(prefix)).cloned());
        }
        (start, candidates)
    }
}

impl Highlighter for Assistant {
    /// The command's name in green, or in red once it is finished and unknown.
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        let Some((name, rest)) = line.split_once(' ') else {
            return Cow::Borrowed(line);
        };
        if !self.colour || name.is_empty() {
            return Cow::Borrowed(line);
        }
        let own = ["help", "?", "connect", "clear", "quit", "exit", "peek", "restart"];
        let known = commands::table::lookup(name.as_bytes()).is_some()
            || own.iter().any(|word| name.eq_ignore_ascii_case(word))
            || name.starts_with(':')
            || name.bytes().all(|byte| byte.is_ascii_digit());
        let colour = if known { "32" } else { "31" };
        Cow::Owned(format!("\x1b[{colour}m{name}\x1b[0m {rest}"))
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.red_prompt { Cow::Owned(format!("\x1b[1;31m{prompt}\x1b[0m")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { Cow::Owned(format!("\x1b[0;90m{hint}\x1b[0m")) } else { Cow::Borrowed(hint) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.colour
    }
}

impl Validator for Assistant {}

impl Helper for Assistant {}
