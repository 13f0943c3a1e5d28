//! Clients and job queues that others wrote, installed by name from their registries, each with a real workload.
//!
//! The packages go to a folder below the target directory, once for each set of versions. A test fails when they cannot
//! be installed, and says what is missing; it is never skipped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{Server, binary};

/// Packages of PyPI.
const PYTHON: [&str; 2] = ["redis==8.1.0", "rq==2.12.0"];
/// Packages of npm.
const NODE: [&str; 2] = ["ioredis@6.0.0", "bullmq@6.7.0"];

/// The folder of the target directory that holds what is installed.
fn cache() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let profile = exe.ancestors().skip(1).find(|folder| folder.file_name().is_some_and(|name| name != "deps")).unwrap();
    profile.parent().unwrap().join("clients")
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Installs packages into a folder of their own unless they are there; one process at a time.
fn installed(packages: &[&str], install: impl FnOnce(&Path) -> Output) -> PathBuf {
    let cache = cache();
    fs::create_dir_all(&cache).unwrap();
    let name: String = packages.join("-").replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let folder = cache.join(&name);
    let lock = File::create(cache.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !folder.is_dir() {
        let partial = cache.join(format!("{name}.partial"));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).unwrap();
        let output = install(&partial);
        assert!(output.status.success(), "cannot install {packages:?}: {}", shown(&output));
        fs::rename(&partial, &folder).unwrap();
    }
    folder
}

fn python(script: &str) {
    for (program, package) in [("python3", "python3"), ("pip3", "python3-pip")] {
        assert!(binary::on_path(program).is_some(), "there is no {program}: apt-get install {package}");
    }
    let packages = installed(&PYTHON, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        run(pip.arg(folder).args(PYTHON))
    });
    let server = Server::oxidis(&["--io-threads", "4"]);
    let mut command = Command::new("python3");
    command.args(["-B", "-W", "error::ResourceWarning", "-c"]);
    command.arg(format!("import {script}; {script}.main({})", server.port()));
    command.env("PYTHONPATH", std::env::join_paths([packages, scripts()]).unwrap());
    judge(script, &run(&mut command), &server);
}

fn node(script: &str) {
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        assert!(binary::on_path(program).is_some(), "there is no {program}: apt-get install {package}");
    }
    let packages = installed(&NODE, |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        run(npm.arg(folder).args(NODE))
    });
    let server = Server::oxidis(&["--io-threads", "4"]);
    let mut command = Command::new("node");
    command.arg(scripts().join(script)).arg(server.port().to_string());
    command.env("NODE_PATH", packages.join("node_modules"));
    judge(script, &run(&mut command), &server);
}

/// A workload prints one line for each part that is done, and `done` at its end.
#[track_caller]
fn judge(script: &str, output: &Output, server: &Server) {
    let is_done = String::from_utf8_lossy(&output.stdout).trim_end().ends_with("done");
    assert!(output.status.success() && is_done, "{script}: {}\n{}", shown(output), server.log());
    let panics = server.client().info("panics").unwrap_or_else(|| String::from("0"));
    assert_eq!(panics, "0", "{}", server.log());
}

#[test]
fn redis_py() {
    python("redis_py");
}

#[test]
fn rq_jobs() {
    python("rq_jobs");
}

#[test]
fn ioredis() {
    node("ioredis.cjs");
}

#[test]
fn bullmq() {
    node("bullmq.cjs");
}
