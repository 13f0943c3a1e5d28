//! Commands from standard input: the prompt on a terminal, or a script.
//!
//! Both run the same lines ([`Shell::run_line`]). Only the prompt has history, hints, questions before dangerous
//! commands and a Ctrl-C that does not end the program. Source of behaviour: redis-cli 7.2.

use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use resp::split_args;
use rustix::event::{PollFd, PollFlags, poll};

use crate::connection::timespec;
use crate::format::{Decoder, Format};
use crate::options::stdout_is_terminal;
use crate::output::{Exit, Outcome, complain, print, print_line, text};
use crate::session::{Report, Session, is};
use crate::{signals, terminal};

mod bottom;
mod danger;
mod editor;
pub(crate) mod help;
mod hints;
mod history;
mod lines;
mod peek;
mod piped;
mod preferences;
mod topology;

use bottom::BottomLine;
use editor::Prompt;
use preferences::Preferences;

/// Words of the prompt itself, beside those with a colon.
const OWN_WORDS: &[&str] = &["help", "?", "connect", "clear", "quit", "exit", "peek", "restart"];

/// Words of the prompt that start with a colon.
const OWN_SETTINGS: &[&str] = &[":set", ":decode", ":slot", ":topology"];

/// An answer that took as long is followed by its time.
const SLOW: Duration = Duration::from_millis(500);
/// The notice below messages is written again after that time.
const NOTICE_AGAIN: Duration = Duration::from_secs(5);

/// What follows a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Line,
    Quit,
}

/// Runs commands from standard input until it ends.
pub(crate) fn run(session: Session) -> Outcome<()> {
    // Where replies go to a file or a program, nothing of the prompt may stand between them.
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let mut shell = Shell {
        session,
        preferences: Preferences::default(),
        at_terminal,
        bottom: BottomLine::default(),
        last_cost: String::new(),
    };
    shell.session.interactive = true;
    shell.session.forgiving = at_terminal;
    if at_terminal {
        signals::interrupt_waits();
        shell.preferences.load()?;
    }
    shell.session.connect(Report::Loud)?;
    if at_terminal { shell.converse() } else { shell.script() }
}

struct Shell {
    session: Session,
    preferences: Preferences,
    at_terminal: bool,
    bottom: BottomLine,
    /// Time and complexity of the last command, for the bottom line.
    last_cost: String,
}

impl Shell {
    /// One command per line, no prompt.
    fn script(&mut self) -> Outcome<()> {
        let mut input = BufReader::new(io::stdin());
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let repeat_and_words = self.words(&line)?;
            if let Some((repeat, words)) = repeat_and_words
                && self.run_words(repeat, &words)? == Next::Quit
            {
                return Ok(());
            }
            if self.session.subscribed && input.buffer().is_empty() {
                self.listen()?;
            }
        }
    }

    /// The prompt.
    fn converse(&mut self) -> Outcome<()> {
        let mut prompt = match Prompt::new(&self.preferences, self.session.options.red_prompt) {
            Ok(prompt) => prompt,
            Err(error) => {
                complain(format_args!("The terminal can't be used: {error}"));
                return Err(Exit(1));
            }
        };
        let mut mode = terminal::Mode::end_key_is_kept();
        loop {
            drop(mode.take());
            if self.preferences.bottom_line {
                self.bottom.show(&format!(" {}", self.last_cost));
            } else {
                self.bottom.hide();
            }
            let answer = prompt.ask(&self.prompt_text(), &self.preferences);
            mode = terminal::Mode::end_key_is_kept();
            let answer = match answer {
                editor::Answer::Line(answer) => answer,
                editor::Answer::Cleared => continue,
                editor::Answer::End if self.session.subscribed => {
                    self.session.connect(Report::Loud)?;
                    continue;
                }
                editor::Answer::End => return Ok(()),
            };
            for line in lines::commands(&answer) {
                if self.run_line(&mut prompt, line)? == Next::Quit {
                    return Ok(());
                }
            }
            if self.session.subscribed {
                self.listen()?;
            }
        }
    }

    /// Runs what was typed, or pasted, as one command.
    fn run_line(&mut self, prompt: &mut Prompt, line: &str) -> Outcome<Next> {
        // A Ctrl-C that came too late for the last command must not hit the next one.
        signals::take();
        let (command, program) = piped::split(line);
        let Some((repeat, words)) = self.words(command.as_bytes())? else {
            let rough: Vec<Vec<u8>> =
                command.split_whitespace().map(|word| word.trim_matches(['"', '\'']).as_bytes().to_vec()).collect();
            // A password may stand in a line with wrong quotes as well.
            if !rough.is_empty() && !history::is_sensitive(&rough) {
                prompt.remember(line);
            }
            return Ok(Next::Line);
        };
        if !history::is_sensitive(&words) {
            prompt.remember(line);
            prompt.saw(&words);
        }
        if program.is_some() || self.preferences.pager {
            // The program may want the whole screen.
            self.bottom.hide();
        }
        match program {
            Some(program) => self.run_piped(repeat, &words, program),
            None if self.preferences.pager => self.run_paged(repeat, &words),
            None => self.run_words(repeat, &words),
        }
    }

    /// `host:port[db](TX)(subscribed mode)> `.
    fn prompt_text(&self) -> String {
        let session = &self.session;
        if !session.is_connected() {
            return "not connected> ".to_string();
        }
        let server = &session.options.server;
        let mut prompt = match &server.socket {
            Some(path) => format!("redis {}", path.display()),
            None if server.host.contains(':') => format!("[{}]:{}", server.host, server.port),
            None => format!("{}:{}", server.host, server.port),
        };
        if session.database != 0 {
            prompt.push_str(&format!("[{}]", session.database));
        }
        if session.in_multi {
            prompt.push_str("(TX)");
        }
        if session.subscribed {
            prompt.push_str("(subscribed mode)");
        }
        prompt.push_str("> ");
        prompt
    }

    /// The words of a line and how often to run them; `None` when there is nothing to run.
    fn words(&mut self, line: &[u8]) -> Outcome<Option<(i64, Vec<Vec<u8>>)>> {
        let Some(mut words) = split_args(line) else {
            print("Invalid argument(s)\n")?;
            return Ok(None);
        };
        let Some(first) = words.first() else {
            return Ok(None);
        };
        let is_number = |word: &[u8]| {
            let digits = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        };
        if words.len() == 1 || !is_number(first) {
            return Ok(Some((1, words)));
        }
        match text(first).parse::<i64>() {
            Ok(repeat) if repeat > 0 => {
                words.remove(0);
                Ok(Some((repeat, words)))
            }
            _ => {
                print("Invalid redis-cli repeat command option value.\n")?;
                Ok(None)
            }
        }
    }

    /// Runs what the client itself knows, or sends the command.
    fn run_words(&mut self, repeat: i64, words: &[Vec<u8>]) -> Outcome<Next> {
        let name = words.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        match (name.as_slice(), words) {
            (b"quit" | b"exit", _) => return Ok(Next::Quit),
            ([b':', ..], _) => self.setting(words)?,
            (b"restart", _) => print("Use 'restart' only in Lua debugging mode.\n")?,
            (b"connect", [_, host, port]) => {
                let server = &mut self.session.options.server;
                server.host = text(host).into_owned();
                server.port = text(port).parse().unwrap_or(0);
                self.session.connect(Report::Loud)?;
            }
            (b"clear", [_]) => print("\x1b[H\x1b[2J")?,
            (b"peek", [_, key]) if self.at_terminal => peek::show(&mut self.session, key)?,
            _ if help::is_help(words) => help::show(words.get(1..).unwrap_or_default())?,
            _ => self.send(repeat, words)?,
        }
        Ok(Next::Line)
    }

    fn send(&mut self, repeat: i64, words: &[Vec<u8>]) -> Outcome<()> {
        if self.at_terminal
            && !self.session.options.yes
            && let Some(question) = danger::question(words)
            && !terminal::confirm(&question)
        {
            return print("Not sent.\n");
        }
        let start = Instant::now();
        self.session.issue(words, repeat)?;
        let elapsed = start.elapsed();
        let cost = commands::table::resolve(words).ok().and_then(|command| command.docs.complexity).unwrap_or("?");
        if self.preferences.bottom_line {
            let name = words.first().map(|name| text(name).to_uppercase()).unwrap_or_default();
            self.last_cost = format!("{name}: {:.3} ms; {cost}", elapsed.as_secs_f64() * 1e3);
        }
        if self.preferences.timing && self.at_terminal {
            print_line(format_args!("({:.3} ms; {cost})", elapsed.as_secs_f64() * 1e3))?;
        } else if elapsed >= SLOW && self.session.options.style.format == Format::Standard {
            print_line(format_args!("({:.2}s)", elapsed.as_secs_f64()))?;
        }
        Ok(())
    }

    /// `:set …` and the other words of the client.
    fn setting(&mut self, words: &[Vec<u8>]) -> Outcome<()> {
        match words {
            [_, key] if is(words, ":slot") => topology::slot(&mut self.session, key),
            [_] if is(words, ":topology") => topology::show(&mut self.session),
            [_, name] if is(words, ":decode") => match Decoder::named(&text(name)) {
                Some(decoder) => {
                    self.session.options.style.decoder = decoder;
                    Ok(())
                }
                None => print_line(format_args!("unknown decoder '{}'", text(name))),
            },
            _ => self.preferences.set(words, ""),
        }
    }

    /// Shows messages until a key is pressed, input arrives or Ctrl-C leaves the subscriptions.
    fn listen(&mut self) -> Outcome<()> {
        let notice = self.session.options.style.format != Format::Raw && stdout_is_terminal();
        let colour = notice && has_colour();
        let mode = terminal::Mode::key_by_key();
        let heard = self.hear(notice, colour);
        drop(mode);
        heard
    }

    fn hear(&mut self, notice: bool, colour: bool) -> Outcome<()> {
        loop {
            match self.session.show_buffered() {
                Ok(shown) => shown?,
                Err(error) => return crate::output::fail(format_args!("Error: {error}")),
            }
            if notice {
                let (start, end) = if colour { ("\x1b[1;90m", "\x1b[0m") } else { ("", "") };
                print(format!("{start}Reading messages... (press Ctrl-C to quit or any key to type command)\r{end}"))?;
            }
            let event = self.wait();
            if notice {
                print("\x1b[K")?;
            }
            match event {
                Event::Message => match self.session.show_message() {
                    Ok(shown) => shown?,
                    Err(error) => return crate::output::fail(format_args!("Error: {error}")),
                },
                Event::Interrupt => {
                    self.session.connect(Report::Loud)?;
                    return Ok(());
                }
                Event::Input => return Ok(()),
                Event::None => {}
            }
        }
    }

    fn wait(&mut self) -> Event {
        let input = io::stdin();
        let Ok(connection) = self.session.connection() else {
            return Event::Message;
        };
        let mut fds =
            vec![PollFd::new(connection, PollFlags::IN), PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        fds.extend(signals::pipe().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&timespec(NOTICE_AGAIN)));
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        match ready.as_slice() {
            [_, _, true] if signals::take() => Event::Interrupt,
            [true, ..] => Event::Message,
            [_, true, ..] => Event::Input,
            _ => Event::None,
        }
    }
}

enum Event {
    Message,
    Input,
    Interrupt,
    None,
}

/// Whether the terminal shows colours and the person wants them.
pub(crate) fn has_colour() -> bool {
    let terminal = std::env::var("TERM").unwrap_or_default();
    std::env::var_os("NO_COLOR").is_none() && (terminal.contains("xterm") || terminal.contains("256color"))
}
