//! B3: every decoder of bytes from outside on mutated inputs, in a process of its own.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use super::Context;
use crate::steps::cargo;

/// B3: see the crate `fuzzing`.
pub(super) fn run(context: &Context<'_>) -> Result<String> {
    let runs: u64 = context.pick(20_000, 10_000_000);
    let seed = testkit::seed(fastrand::u64(..1 << 40));
    let output = cargo(&["run", "--quiet", "--profile", "fast", "-p", "fuzzing", "--"])
        .args(["--runs", &runs.to_string(), "--seed", &seed.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("cargo does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("FAIL")).collect();
        bail!("seed {seed}: {}\n{}", failed.join("\n"), String::from_utf8_lossy(&output.stderr));
    }
    let targets = text.lines().filter(|line| line.starts_with("ok")).count();
    Ok(format!("{targets} targets, {runs} inputs each, no panic, no hang, seed {seed}"))
}
