//! A server killed again and again while clients write: what it acknowledged is there afterwards.
//!
//! The rows run the tests of the append only file with more kills than every run of the tests has.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Context;

/// A1: `appendfsync always`.
pub(super) fn always(context: &Context<'_>) -> Result<String> {
    kills("a_killed_server_has_lost_nothing_it_acknowledged_always", context.pick(200, 1000))
}

/// A4: `appendfsync everysec`.
pub(super) fn everysec(context: &Context<'_>) -> Result<String> {
    kills("a_killed_server_has_lost_nothing_it_acknowledged_everysec", context.pick(100, 1000))
}

fn kills(test: &str, kills: u32) -> Result<String> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--quiet", "-p", "oxidis", "--test", "append_only", test])
        .env("OXIDIS_KILLS", kills.to_string())
        .status()
        .context("cargo does not start")?;
    ensure!(status.success(), "{test} failed with {kills} kills");
    Ok(format!("{kills} kills, nothing acknowledged lost, no half transaction"))
}
