//! `cargo xtask test`: everything that must hold before a change is merged.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};
use lexopt::prelude::*;
use testkit::binary;

use crate::steps::{Steps, Tally, cargo, target_dir};
use crate::{hostile, tidy};

const HELP: &str = "\
usage: cargo xtask test [options]

Installs the peers that tests talk to (Debian's redis-server, redis-tools and nutcracker, node with
npm, python3 with pip) when it may, then runs: tidy, fmt, clippy, build, doc, unit, doctest, loom, e2e,
hostile. The last line counts what
passed and failed.

  --only A,B     only these steps
  --no-install   never call apt-get

The binary under test is built with the profile `fast`, unless $OXIDIS_BIN names one.
";

const STEPS: [&str; 10] = ["tidy", "fmt", "clippy", "build", "doc", "unit", "doctest", "loom", "e2e", "hostile"];
/// Programs of the peers, with the packages that hold them.
const PEERS: [(&str, &str); 9] = [
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
    ("nutcracker", "nutcracker"),
    ("etcd", "etcd-server"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("python3", "python3"),
    ("pip3", "python3-pip"),
];

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut only: Vec<String> = Vec::new();
    let mut may_install = true;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("only") => {
                only = parser.value()?.string()?.split(',').map(str::to_owned).collect();
            }
            Long("no-install") => may_install = false,
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = only.iter().find(|name| !STEPS.contains(&name.as_str())) {
        bail!("there is no step {unknown:?}; choose from {}", STEPS.join(", "));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|step| step == name);
    let mut steps = Steps::default();
    let have_peers = steps.step("peers", || Ok(Tally::one(&peers(may_install))));
    if wanted("tidy") {
        steps.step("tidy", || Ok(Tally::one(&tidy::problems()?)));
    }
    if wanted("fmt") {
        steps.command("fmt", &mut cargo(&["fmt", "--all", "--check"]));
    }
    if wanted("clippy") {
        let args = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.command("clippy", &mut cargo(&args));
    }
    let own_binary = std::env::var_os(binary::OXIDIS_BIN).is_none();
    let program =
        std::env::var_os(binary::OXIDIS_BIN).map_or_else(|| target_dir().join("fast/oxidis"), std::path::PathBuf::from);
    let tests = |args: &[&str]| {
        let mut command = cargo(args);
        command.env(binary::OXIDIS_BIN, &program);
        command
    };
    let needs_binary = ["build", "unit", "e2e", "hostile"].iter().any(|step| wanted(step));
    if own_binary && needs_binary {
        let built = steps.command("build", &mut cargo(&["build", "--quiet", "--profile", "fast", "-p", "oxidis"]));
        if !built {
            println!("the tests need the binary: nothing more is run");
            steps.finish();
            return Ok(ExitCode::FAILURE);
        }
    }
    if wanted("doc") {
        let mut doc = cargo(&["doc", "--quiet", "--workspace", "--no-deps"]);
        steps.command("doc", doc.env("RUSTDOCFLAGS", "-D warnings"));
    }
    let runner: &[&str] = if binary::on_path("cargo-nextest").is_some() {
        &["nextest", "run", "--no-fail-fast"]
    } else {
        &["test", "--no-fail-fast", "--all-targets"]
    };
    if wanted("unit") {
        let args = [runner, &["--workspace", "--exclude", "end-to-end"]].concat();
        steps.command("unit", &mut tests(&args));
    }
    if wanted("doctest") {
        steps.command("doctest", &mut tests(&["test", "--quiet", "--workspace", "--doc"]));
    }
    if wanted("loom") {
        // In a directory of its own: the flag changes every crate.
        let mut models = cargo(&["test", "-p", "keyspace", "--profile", "fast", "--test", "loom_models"]);
        models.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target_dir().join("loom"));
        steps.command("loom", &mut models);
    }
    if wanted("e2e") && have_peers {
        let args = [runner, &["-p", "end-to-end"]].concat();
        steps.command("e2e", &mut tests(&args));
    }
    if wanted("hostile") && have_peers {
        hostile::run_all(&mut steps, &testkit::Launch::program(&program), hostile::Size::Small);
    }
    Ok(if steps.finish() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is missing of the peers, after trying to install it.
fn peers(may_install: bool) -> Vec<String> {
    let missing = || -> Vec<&str> {
        PEERS.iter().filter(|(program, _)| binary::peer(program).is_none()).map(|(_, package)| *package).collect()
    };
    let mut packages = missing();
    packages.dedup();
    if packages.is_empty() {
        return Vec::new();
    }
    let command = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if may_install && is_root() && binary::on_path("apt-get").is_some() {
        let shell = format!(
            "export DEBIAN_FRONTEND=noninteractive; {command} || {{ apt-get update && {command}; }}; \
             ! pidof systemd >/dev/null || systemctl disable --now redis-server nutcracker etcd"
        );
        let _ = Command::new("sh").args(["-c", &shell]).output();
    }
    if missing().is_empty() {
        return Vec::new();
    }
    vec![format!("missing: {}. Install them as root, then run this again:\n    {command}", packages.join(", "))]
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout.trim_ascii() == b"0")
}
