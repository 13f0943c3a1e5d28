//! `cargo xtask diff`: the differential tester by hand, for millions of commands.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use lexopt::prelude::*;
use testkit::differential::{self, Options, differences};
use testkit::{Launch, Server, binary};

const HELP: &str = "\
usage: cargo xtask diff [options]

Sends the same random commands to Oxidis and to a Redis and compares every reply.

  --seed N         seed of the first episode (default: from the clock)
  --commands N     commands to send (default 200000)
  --families A,B   only these: keys, strings, lists, hashes, sets, zsets, geos, hlls,
                   streams, scripts, acl
  --proto 2|3      only this protocol (default: both by turns)
  --peer PATH      the Redis to compare with (default: redis-server of the PATH);
                   with a 7.2 nothing is excused
  --failures N     stop after so many kinds of failure (default 10)
  --proxy          through a proxy before the server
  --arg DIRECTIVE  a directive for Oxidis, such as `--arg=--io-threads=4`; may be repeated
  --differences    print the table of differences between Redis 7.0 and 7.2

The binary under test is $OXIDIS_BIN, else target/debug/oxidis.
";

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut options = Options {
        subject: Launch::oxidis(),
        peer: Launch::redis(),
        seed: fastrand::u64(0..1 << 32),
        commands: 200_000,
        families: Vec::new(),
        protocol: None,
        failures_max: 10,
        behind: Vec::new(),
    };
    let mut is_proxied = false;
    let mut directives: Vec<String> = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("commands") => options.commands = parser.value()?.parse()?,
            Long("families") => {
                let list = parser.value()?.string()?;
                options.families = list.split(',').map(str::to_owned).collect();
            }
            Long("proto") => match parser.value()?.parse()? {
                version @ (2 | 3) => options.protocol = Some(version),
                other => bail!("--proto {other}: choose 2 or 3"),
            },
            Long("peer") => {
                let path = PathBuf::from(parser.value()?);
                if !path.is_file() {
                    bail!("--peer {}: no such program", path.display());
                }
                options.peer = Launch::program(&path);
            }
            Long("proxy") => is_proxied = true,
            Long("failures") => options.failures_max = parser.value()?.parse()?,
            Long("arg") => {
                let text = parser.value()?.string()?;
                directives.extend(text.splitn(2, '=').map(str::to_owned));
            }
            Long("differences") => {
                for difference in differences::DIFFERENCES.iter().chain(differences::DELIBERATE) {
                    println!("{:<16} {}", difference.name, difference.reason);
                }
                return Ok(ExitCode::SUCCESS);
            }
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let directives: Vec<&str> = directives.iter().map(String::as_str).collect();
    if !is_proxied {
        options.subject = options.subject.args(&directives);
        return run(&options);
    }
    let servers: Vec<Server> = (0..1).map(|_| Server::oxidis(&directives)).collect();
    options.behind = servers.iter().map(Server::port).collect();
    options.subject = Launch::proxy_over(&options.behind);
    run(&options)
}

fn run(options: &Options) -> Result<ExitCode> {
    let started = Instant::now();
    println!("seed {}, {} commands, {} under test", options.seed, options.commands, binary::oxidis().display());
    let mut shown = Instant::now();
    let live = std::io::stderr().is_terminal();
    let mut printed = 0;
    let report = differential::run(options, |report| {
        for finding in report.findings.iter().skip(printed) {
            printed += 1;
            println!("\n--- failure {printed} ---\n{finding}");
        }
        if live && shown.elapsed().as_millis() > 200 {
            eprint!("\r{} commands, {printed} kinds of failure ", report.commands);
            shown = Instant::now();
        }
    })?;
    if live {
        eprint!("\r\x1b[K");
    }
    for (name, count) in &report.differences {
        println!("{name:<16} met {count} times");
    }
    println!(
        "{} commands to {} and {} in {:.1} s: {} kinds of failure, {} more of the same",
        report.commands,
        report.versions[0],
        report.versions[1],
        started.elapsed().as_secs_f64(),
        report.findings.len(),
        report.repeats
    );
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
