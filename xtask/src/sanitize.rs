//! `cargo xtask sanitize`: unit tests, concurrency tests and hostile frames under a sanitizer.
//!
//! The compiler's sanitizers are not stable yet, so the stable toolchain is told to let them through. With the
//! component `rust-src` the standard library is built with the sanitizer too. Without it ThreadSanitizer cannot be
//! used: it does not see what the library's channels, cells and counted pointers synchronise, and reports them all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use lexopt::prelude::*;
use testkit::{Launch, binary};

use crate::hostile;
use crate::steps::{Steps, Tally, cargo, target_dir};

const HELP: &str = "\
usage: cargo xtask sanitize [thread|address] [--only build,unit,e2e,hostile]

Builds the binary and the tests of `keyspace` with the sanitizer (default: thread) and runs: the unit
tests of keyspace and net, the concurrency tests of the server with four workers, and mutated frames
(hostile row B2). Any report fails; reports stay in the target directory, under sanitize-THING/reports.
";

const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut kind = "thread".to_owned();
    let mut only: Vec<String> = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(word) => kind = word.string()?,
            Long("only") => only = parser.value()?.string()?.split(',').map(str::to_owned).collect(),
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if !["thread", "address"].contains(&kind.as_str()) {
        bail!("there is no sanitizer {kind:?} here: thread or address");
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|step| step == name);
    let sanitizer = Sanitizer::new(&kind)?;
    let mut steps = Steps::default();
    if wanted("build") {
        let arguments = ["build", "--quiet", "-p", "oxidis", "--no-default-features"];
        steps.command("build", &mut sanitizer.cargo(&arguments));
    }
    if wanted("unit") {
        for package in ["keyspace", "net"] {
            let arguments = ["test", "-p", package, "--lib"];
            steps.step(&format!("unit tests of {package}"), || sanitizer.run(&mut sanitizer.cargo(&arguments)));
        }
    }
    let program = sanitizer.directory.join(TARGET).join("fast/oxidis");
    if wanted("e2e") {
        let mut tests = cargo(&["test", "-p", "end-to-end", "--test", "concurrency", "--", "--test-threads", "1"]);
        tests.env(binary::OXIDIS_BIN, &program);
        steps.step("concurrency tests", || sanitizer.run(&mut tests));
    }
    if wanted("hostile") {
        let options = format!("{}={}", sanitizer.variable, sanitizer.options);
        let launch = Launch::program(&program).args(&["--io-threads", "4"]).wrapped(&["env", &options]);
        steps.step("hostile B2", || {
            let context = hostile::Context::untimed(&launch, hostile::Size::Small);
            let figures = hostile::fuzz::frames(&context)?;
            Ok(Tally { passed: 1, failed: 0, output: figures })
        });
    }
    steps.step("no reports", || Ok(Tally::one(&sanitizer.reports()?)));
    Ok(if steps.finish() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One sanitizer and where it works.
struct Sanitizer {
    flags: String,
    /// Builds the standard library as well.
    with_std: bool,
    directory: PathBuf,
    variable: &'static str,
    options: String,
}

impl Sanitizer {
    fn new(kind: &str) -> Result<Sanitizer> {
        let directory = target_dir().join(format!("sanitize-{kind}"));
        let reports = directory.join("reports");
        let _ = fs::remove_dir_all(&reports);
        fs::create_dir_all(&reports).with_context(|| reports.display().to_string())?;
        let with_std = has_std_source();
        if kind == "thread" && !with_std {
            bail!("ThreadSanitizer needs the source of the standard library: rustup component add rust-src");
        }
        let log = format!("log_path={}:exitcode=66", reports.join("report").display());
        let (variable, options) = match kind {
            "thread" => ("TSAN_OPTIONS", format!("{log}:second_deadlock_stack=1")),
            _ => ("ASAN_OPTIONS", format!("{log}:detect_leaks=0")),
        };
        let flags = format!("-Zsanitizer={kind} -Cunsafe-allow-abi-mismatch=sanitizer -Cforce-frame-pointers=yes");
        Ok(Sanitizer { flags, with_std, directory, variable, options })
    }

    /// A cargo command that builds with the sanitizer.
    fn cargo(&self, args: &[&str]) -> Command {
        let (head, tail) = args.split_at(1);
        let mut all = head.to_vec();
        all.extend(["--profile", "fast", "--target", TARGET]);
        if self.with_std {
            all.push("-Zbuild-std");
        }
        all.extend(tail);
        let mut command = cargo(&all);
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", &self.flags).env("CARGO_TARGET_DIR", &self.directory);
        command
    }

    /// Runs a program whose children may be sanitized.
    fn run(&self, command: &mut Command) -> Result<Tally> {
        crate::steps::run_quietly(command.env(self.variable, &self.options))
    }

    /// The first lines of every report.
    fn reports(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.directory.join("reports"))? {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            let head: Vec<&str> = text.lines().take(40).collect();
            found.push(format!("{}:\n{}", path.display(), head.join("\n")));
        }
        Ok(found)
    }
}

/// Whether the toolchain has the source of the standard library.
fn has_std_source() -> bool {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Ok(output) = output else { return false };
    let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Path::new(&root).join("lib/rustlib/src/rust/library/Cargo.lock").is_file()
}
