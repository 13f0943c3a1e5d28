//! From a command line to an exit code: what redis-benchmark's main function does, in its order.

use std::{
    ffi::OsString,
    fmt,
    io::{self, Read, Write},
    os::unix::ffi::OsStringExt,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use crate::{
    agents::{self, coordinator::Fleet},
    cleanup, formats, help,
    options::{self, Options, Parsed},
    preflight::Failure,
    prometheus::{self, Metrics},
    replay, self_check,
    session::{Opening, Session},
    workload,
};

/// Runs the load generator with `arguments` (without the program's name). `program` is the name
/// it was called by, for its messages.
///
/// Exit codes: 0 all well; 1 a mistake in the options, no connection, refused, or the first error
/// reply; 3 an assertion or the baseline does not hold; 4 more errors than allowed; 5 an agent was
/// lost; 130 interrupted.
pub fn run(arguments: &[OsString], program: &str) -> ExitCode {
    match options::parse(arguments) {
        Parsed::Help(task) => {
            put(&help::text(program, task.as_deref()));
            ExitCode::SUCCESS
        }
        Parsed::Version => {
            put(&format!("redis-benchmark {} ({NAME} {VERSION})\n", help::REDIS_VERSION));
            ExitCode::SUCCESS
        }
        Parsed::Invalid(option) => {
            put(&format!("Invalid option \"{option}\" or option argument missing\n\n"));
            put(&help::text(program, None));
            if let Some(meant) = ::options::suggestion(&help::tool(), &option) {
                tell(format_args!("{meant}"));
            }
            ExitCode::from(1)
        }
        Parsed::Fatal(text) => {
            tell(format_args!("{text}"));
            ExitCode::from(1)
        }
        Parsed::Run(options, warnings) => {
            for warning in warnings {
                tell(format_args!("{warning}"));
            }
            match start(*options, arguments) {
                Ok(code) => ExitCode::from(code),
                Err(text) => {
                    tell(format_args!("{}", text.trim_end_matches('\n')));
                    ExitCode::from(1)
                }
            }
        }
    }
}

/// What is run in one go, and the arguments that stand for it.
struct Phase {
    /// Its name in a workload file.
    name: Option<String>,
    options: Options,
    arguments: Vec<OsString>,
}

/// Runs the command line, or the phases of its workload file. The error is a text for stderr.
fn start(options: Options, arguments: &[OsString]) -> Result<u8, String> {
    if let Some(address) = options.extended.agent.clone() {
        return agents::server::serve(&options, &address).map(|()| 0);
    }
    if options.extended.self_check {
        put(&self_check::text());
        return Ok(0);
    }
    let interrupted = watch_interrupts();
    if let (Some(path), Some(duration)) = (&options.extended.record, options.extended.duration) {
        let count = replay::record(&options, path, duration, &interrupted)?;
        put(&format!("{count} commands recorded in {}\n", path.display()));
        return Ok(0);
    }
    let metrics = match &options.extended.prometheus {
        None => None,
        Some(address) => {
            let metrics = Arc::new(Metrics::default());
            prometheus::serve(address, Arc::clone(&metrics))?;
            Some(metrics)
        }
    };
    let mut report: Option<formats::Report> = None;
    let mut last: Option<Session> = None;
    let mut code = 0;
    let mut made = cleanup::Made::default();
    for mut phase in phases(options, arguments)? {
        take_stdin(&mut phase)?;
        let opening =
            Opening { phase: phase.name, metrics: metrics.clone(), interrupted: Arc::clone(&interrupted), share: None };
        let mut session = Session::open(phase.options, opening).map_err(|Failure(text)| text)?;
        if session.options.idle {
            return Ok(session.hold_idle());
        }
        if !session.options.extended.agents.is_empty() {
            session.fleet = Some(Fleet::join(&session.options, &phase.arguments)?);
        }
        let report = match &mut report {
            Some(report) => report,
            none => none.insert(formats::Report::new(arguments, &session)?),
        };
        code = code.max(session.run_all(report, &mut made));
        last = Some(session);
        if matches!(code, 1 | AGENT_LOST | INTERRUPTED) {
            break;
        }
    }
    if let (Some(report), Some(session)) = (report, last) {
        if session.options.extended.cleanup {
            made.delete(&session)?;
        }
        if let Err(text) = report.finish(&session) {
            tell(format_args!("{text}"));
            return Ok(code.max(1));
        }
    }
    Ok(code)
}

/// The first Ctrl-C ends the test and reports, the second ends the process as usual.
fn watch_interrupts() -> Arc<AtomicBool> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let watched =
        signal_hook::flag::register_conditional_default(signal_hook::consts::SIGINT, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted)));
    if watched.is_err() {
        tell(format_args!("WARNING: Ctrl-C will end the run without a report"));
    }
    interrupted
}

/// Appends standard input to the command (`-x`).
fn take_stdin(phase: &mut Phase) -> Result<(), String> {
    if phase.options.argument_from_stdin && !phase.options.command.is_empty() {
        let mut argument = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut argument);
        read.map_err(|error| format!("Error: cannot read standard input: {error}"))?;
        phase.arguments.push(OsString::from_vec(argument.clone()));
        phase.options.command.push(argument);
    }
    Ok(())
}

/// What is to be run one after the other. The command line's options hold for all phases of a workload file; a phase may
/// override them.
fn phases(options: Options, arguments: &[OsString]) -> Result<Vec<Phase>, String> {
    let Some(path) = &options.extended.script else {
        return Ok(vec![Phase { name: None, options, arguments: arguments.to_vec() }]);
    };
    if !options.command.is_empty() {
        return Err("--script and a command exclude each other".to_owned());
    }
    let mut phases = Vec::new();
    for phase in workload::read(path)? {
        let options = match options::parse_phase(arguments, &phase.arguments) {
            Parsed::Run(options, _) => *options,
            Parsed::Fatal(text) => return Err(format!("phase {}: {text}", phase.name)),
            Parsed::Invalid(option) => {
                return Err(format!("phase {}: invalid option {option}", phase.name));
            }
            Parsed::Help(_) | Parsed::Version => {
                return Err(format!("phase {}: an option that runs nothing", phase.name));
            }
        };
        let arguments = arguments.iter().chain(&phase.arguments).cloned().collect();
        phases.push(Phase { name: Some(phase.name), options, arguments });
    }
    Ok(phases)
}

/// Prints to stdout. Redis: a closed pipe is not an error of the run.
pub(crate) fn put(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Says something on stderr, which may be a closed pipe as well.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Exit code when an agent was lost.
pub(crate) const AGENT_LOST: u8 = 5;
/// Exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
const NAME: &str = "oxidis benchmark";
const VERSION: &str = env!("CARGO_PKG_VERSION");
