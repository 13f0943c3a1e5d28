//! Runs the steps of a task: one line each with its time, the output only when it fails, and
//! at the end the sum of tests that passed and failed.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

/// Root of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A cargo command in the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// What a step says when it is done.
pub(crate) struct Tally {
    /// Tests, or whole steps that are no tests, that passed.
    pub(crate) passed: usize,
    /// The same that failed.
    pub(crate) failed: usize,
    /// What to show, when something failed.
    pub(crate) output: String,
}

impl Tally {
    /// One check that holds, or does not for the reasons in `problems`.
    pub(crate) fn one(problems: &[String]) -> Tally {
        let failed = usize::from(!problems.is_empty());
        Tally { passed: 1 - failed, failed, output: problems.join("\n") }
    }
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Steps {
    passed: usize,
    failed: usize,
}

impl Steps {
    /// Runs one step. An error of the step itself counts as a failure.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> Result<Tally>) -> bool {
        let started = Instant::now();
        if std::io::stdout().is_terminal() {
            print!("  …    {name}");
            let _ = std::io::stdout().flush();
        }
        let tally = run().unwrap_or_else(|error| Tally { passed: 0, failed: 1, output: format!("{error:#}") });
        self.passed += tally.passed;
        self.failed += tally.failed;
        let clear = if std::io::stdout().is_terminal() { "\r\x1b[K" } else { "" };
        let mark = if tally.failed == 0 { "ok  " } else { "FAIL" };
        println!("{clear}  {mark} {name}  ({} passed, {:.1} s)", tally.passed, started.elapsed().as_secs_f64());
        if tally.failed > 0 {
            println!("{}\n", tally.output.trim_end());
        }
        tally.failed == 0
    }

    /// Runs a program as a step: the tests that its output counts, or one.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) -> bool {
        self.step(name, || run_quietly(command))
    }

    /// Prints the sums alone on the last line; true when nothing failed.
    pub(crate) fn finish(self) -> bool {
        println!("{} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }
}

/// Runs a program: the tests that its output counts, or one.
pub(crate) fn run_quietly(command: &mut Command) -> Result<Tally> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {shown}"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let (mut passed, mut failed) = count_tests(&text);
    if passed + failed == 0 {
        passed = usize::from(output.status.success());
    }
    if !output.status.success() && failed == 0 {
        failed = 1;
    }
    Ok(Tally { passed, failed, output: format!("{shown}\n{text}") })
}

/// Sums `N passed` and `N failed` over the summary lines of cargo test and of nextest.
fn count_tests(text: &str) -> (usize, usize) {
    let mut sums = (0, 0);
    // Where nextest shows the output of a test that failed, that has a summary of its own.
    let is_nextest = text.lines().any(|line| line.trim_start().starts_with("Summary ["));
    let mark = if is_nextest { "Summary [" } else { "test result:" };
    for line in text.lines() {
        let line = line.trim_start();
        if !line.starts_with(mark) {
            continue;
        }
        let words: Vec<&str> = line.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<usize>() else {
                continue;
            };
            match pair[1] {
                "passed" => sums.0 += count,
                "failed" => sums.1 += count,
                _ => {}
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::count_tests;

    #[test]
    fn both_kinds_of_summary_are_counted() {
        let cargo = "test result: ok. 9 passed; 1 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
        assert_eq!(count_tests(cargo), (11, 1));
        let nextest = "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            \x20    Summary [   1.2s] 20 tests run: 18 passed (1 slow), 2 failed, 3 skipped\n";
        assert_eq!(count_tests(nextest), (18, 2));
    }
}
