//! `cargo xtask up`: from a fresh clone to a running cluster, or server, in one command.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use lexopt::prelude::*;

use crate::steps::{cargo, target_dir};

const HELP: &str = "\
usage: cargo xtask up [options of oxidis up]
       cargo xtask up --single [--port N] [-- directives for the server]

Builds the release binary and runs a whole cluster in the foreground until Ctrl-C: a manager, two
proxies and three groups of two servers (oxidis up; its options, such as --groups 4 or --port 8000,
are passed on). With --single it runs one server, on 6379 or the next free port.
";

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut words: Vec<OsString> = parser.raw_args()?.collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let is_single = words.iter().any(|word| word == "--single");
    words.retain(|word| word != "--single");
    println!("building the release binary (the first time takes some minutes) …");
    if !cargo(&["build", "--quiet", "--release", "-p", "oxidis"]).status()?.success() {
        bail!("the build failed: see above");
    }
    let binary = target_dir().join("release/oxidis");
    if is_single { single(&binary, lexopt::Parser::from_args(words)) } else { cluster(&binary, &words) }
}

fn cluster(binary: &Path, words: &[OsString]) -> Result<ExitCode> {
    let mut command = Command::new(binary);
    command.arg("up");
    // What the user says of the folder comes later, and so counts.
    command.arg("--dir").arg(target_dir().join("up")).args(words);
    // It takes this process's place, so that Ctrl-C and its exit code are its own.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", binary.display()))
}

fn single(binary: &Path, mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut port = None;
    let mut directives = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("port") => port = Some(parser.value()?.parse::<u16>()?),
            Value(word) => {
                directives.push(word);
                directives.extend(parser.raw_args()?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let port = match port {
        Some(port) => port,
        None => (6379..6479)
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .context("no free port from 6379 to 6478: choose one with --port N")?,
    };
    let directory = target_dir().join("up-single");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let shown = binary.display();
    println!(
        "\nOxidis listens on 127.0.0.1:{port}; its files are in {}. Ctrl-C stops it.\n\n\
         In another terminal:\n\
         \x20   {shown} cli -p {port} set greeting hello\n\
         \x20   {shown} cli -p {port} info server\n\
         \x20   {shown} benchmark -p {port} -t set,get -n 1000000 -P 16 -q\n\
         \x20   redis-cli -p {port}          any Redis client works\n\
         \x20   {shown} --help\n",
        directory.display()
    );
    let port = port.to_string();
    let error = Command::new(binary).args(["server", "--port", &port, "--dir"]).arg(&directory).args(directives).exec();
    Err(error).with_context(|| format!("cannot run {shown}"))
}
