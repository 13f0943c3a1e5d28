//! Command-line client: redis-cli's options and formats.
//!
//! Knows the wire and the command table; nothing of a server's inside. Start reading at [`run`]; then `session` for
//! the way of a command, `format` for what a reply looks like, `interactive` for the prompt and `modes` for
//! everything that an option starts instead of a command.
//!
//! Invariants: only `output` writes to standard output and error, apart from the line editor and the questions of
//! `terminal`; nothing ends the
//! process but the return of [`run`].
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Read;

use output::{Exit, Outcome, complain, fail, os_text};

mod connection;
mod format;
mod interactive;
mod modes;
mod options;
mod output;
mod session;
mod signals;
mod terminal;
mod uri;

pub use self::options::tool;
use self::options::{Mode, Options, StdinArgument, unquote};
use session::{Report, Session};

/// Runs the client with the words behind its name; the exit code.
///
/// `program` is the name it was called by. Exit codes as redis-cli 7.2: 0, also when a reply is an error; 1 when there is no connection, or with `-e` for an
/// error reply.
pub fn run(program: &str, args: &[OsString]) -> i32 {
    match Options::parse(program, args).and_then(start) {
        Ok(()) => 0,
        Err(Exit(code)) => code,
    }
}

fn start(options: Options) -> Outcome<()> {
    let mode = options.mode.clone();
    let mut session = Session::new(options);
    match mode {
        Mode::Commands if session.options.words.is_empty() => interactive::run(session),
        Mode::Commands => one_shot(&mut session),
        mode => modes::run(&mut session, mode),
    }
}

/// The command of the command line.
fn one_shot(session: &mut Session) -> Outcome<()> {
    let arguments = arguments(&session.options)?;
    if interactive::help::is_help(&arguments) {
        return interactive::help::show(arguments.get(1..).unwrap_or_default());
    }
    session.connect(Report::Quiet)?;
    run_once(session, &arguments)
}

/// Runs a command as often as `-r` says; then listens, if it subscribed.
fn run_once(session: &mut Session, arguments: &[Vec<u8>]) -> Outcome<()> {
    if !session.issue(arguments, session.options.repeat)? {
        return Err(Exit(1));
    }
    while session.subscribed {
        match session.show_message() {
            Ok(shown) => shown?,
            Err(error) => return fail(format_args!("Error: {error}")),
        }
    }
    Ok(())
}

/// The words of the command line, unquoted and with standard input in its place.
fn arguments(options: &Options) -> Outcome<Vec<Vec<u8>>> {
    let mut arguments = options.words.clone();
    if options.quoted_input {
        for argument in &mut arguments {
            match unquote(argument) {
                Some(unquoted) => *argument = unquoted,
                None => {
                    output::print("Invalid quoted string\n")?;
                    return Err(Exit(1));
                }
            }
        }
    }
    match &options.stdin_argument {
        StdinArgument::None => {}
        StdinArgument::Last => arguments.push(standard_input()?),
        StdinArgument::Tag(tag) => match arguments.iter_mut().find(|argument| *argument == tag) {
            Some(argument) => *argument = standard_input()?,
            None => {
                complain(format_args!("Using -X option but stdin tag not match."));
                return Err(Exit(1));
            }
        },
    }
    Ok(arguments)
}

fn standard_input() -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => fail(format_args!("Reading from standard input: {}", os_text(&error))),
    }
}
