//! Sends the same random commands to two servers and compares what they answer.
//!
//! [`generator`] makes episodes of commands from the shapes in [`shapes`]; [`driver`] runs them
//! on both servers; [`rules`] says how each command's replies are compared; [`differences`] lists
//! what Redis 7.0 answers otherwise than 7.2; [`shrink`] makes a failure small. Each failure is
//! repeatable from the seed of its episode.

pub mod differences;
pub mod driver;
mod followup;
pub mod generator;
pub mod grammar;
pub mod keyspace;
mod proxied;
pub mod rules;
pub mod scripts;
pub mod shapes;
pub mod shrink;
pub mod vocabulary;

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use crate::{Launch, text};
use driver::{Failure, Pair};
use generator::{Episode, Generator};

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server under test.
    pub subject: Launch,
    /// The server that it is compared with.
    pub peer: Launch,
    /// Seed of the first episode; each later one adds one.
    pub seed: u64,
    /// Commands to send, rounded up to whole episodes.
    pub commands: u64,
    /// Families to draw from; all when empty.
    pub families: Vec<String>,
    /// 2, 3, or both by turns.
    pub protocol: Option<u8>,
    /// Failures after which to stop; at most one is kept for each command name.
    pub failures_max: usize,
    /// The subject is a proxy: ports of the servers behind it, which get the episodes' settings.
    pub behind: Vec<u16>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Commands sent to each server.
    pub commands: u64,
    /// Versions of the two servers.
    pub versions: [String; 2],
    /// How often each listed difference was met.
    pub differences: BTreeMap<&'static str, u64>,
    /// Shrunk failures.
    pub findings: Vec<Finding>,
    /// Failures beyond the first of each command.
    pub repeats: usize,
}

/// A failure with the shortest list of commands that still shows it.
#[derive(Debug)]
pub struct Finding {
    /// The episode, with its steps shrunk.
    pub episode: Episode,
    /// What went wrong.
    pub failure: Failure,
    /// Log of a server that ended, if one did.
    pub log: Option<String>,
    /// Whether it came again when the episode was run again.
    pub repeatable: bool,
}

/// Runs the tester. `progress` is called after each episode with the report so far.
///
/// # Errors
/// When a server does not start, or the options make no sense.
pub fn run(options: &Options, mut progress: impl FnMut(&Report)) -> io::Result<Report> {
    let mut generator = Generator::new(&options.families, options.protocol).map_err(io::Error::other)?;
    generator.is_proxied = !options.behind.is_empty();
    let mut pair = Pair::start(options.subject.clone(), options.peer.clone())?;
    pair.behind.clone_from(&options.behind);
    let mut report = Report { versions: pair.versions.clone(), ..Report::default() };
    let mut seed = options.seed;
    while report.commands < options.commands && report.findings.len() < options.failures_max {
        let episode = generator.episode(seed);
        seed += 1;
        let outcome = pair.run(&episode);
        report.commands += outcome.commands;
        for (name, count) in outcome.differences {
            *report.differences.entry(name).or_default() += count;
        }
        if let Some(failure) = outcome.failure {
            let log = pair.revive()?.into_iter().next();
            let known = |finding: &Finding| same_kind(&finding.failure, &failure);
            if report.findings.iter().any(known) {
                report.repeats += 1;
            } else {
                report.findings.push(shrink::shrink(&mut pair, episode, failure, log)?);
            }
        }
        progress(&report);
    }
    Ok(report)
}

/// Two failures are the same kind when command and problem are: one of each is shown.
fn same_kind(a: &Failure, b: &Failure) -> bool {
    let name = |failure: &Failure| {
        let mut words = failure.args.iter().map(|arg| arg.to_ascii_uppercase());
        let first = words.next().unwrap_or_default();
        let has_subcommand = matches!(
            first.as_slice(),
            b"OBJECT"
                | b"XINFO"
                | b"XGROUP"
                | b"ACL"
                | b"SCRIPT"
                | b"FUNCTION"
                | b"CLIENT"
                | b"COMMAND"
                | b"CONFIG"
                | b"DEBUG"
                | b"MEMORY"
                | b"PUBSUB"
        );
        (first, if has_subcommand { words.next() } else { None })
    };
    name(a) == name(b) && a.problem == b.problem
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.episode.protocol;
        writeln!(f, "{} (seed {}, RESP{protocol})", self.failure.problem, self.episode.seed)?;
        writeln!(f, "  command  {}", clip(&text::line(&self.failure.args)))?;
        writeln!(f, "  oxidis   {}", clip(&self.failure.subject))?;
        writeln!(f, "  peer     {}", clip(&self.failure.peer))?;
        let settings: Vec<String> =
            self.episode.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(f, "  settings {}", settings.join(", "))?;
        if !self.repeatable {
            writeln!(f, "  it did not come again when the episode was run again")?;
        }
        writeln!(f, "  shortest list of commands that shows it (connection number first):")?;
        for step in &self.episode.steps {
            let parks = if step.parks { "  (waits)" } else { "" };
            writeln!(f, "    {} {}{parks}", step.connection, clip(&text::line(&step.args)))?;
        }
        if let Some(log) = &self.log {
            writeln!(
                f,
                "  a server {}",
                log.lines().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n    ")
            )?;
        }
        Ok(())
    }
}

fn clip(text: &str) -> String {
    const WIDTH: usize = 600;
    if text.len() <= WIDTH {
        return text.to_owned();
    }
    let start: String = text.chars().take(WIDTH).collect();
    format!("{start}… ({} bytes)", text.len())
}
