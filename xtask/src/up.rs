//! `cargo xtask up`: from a fresh clone to a running server in one command.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use lexopt::prelude::*;

use crate::steps::{cargo, target_dir};

const HELP: &str = "\
usage: cargo xtask up [--port N] [-- directives for the server]

Builds the release binary and runs the server in the foreground until Ctrl-C. Without --port it
takes 6379, or the next free port.
";

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut port = None;
    let mut directives = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("port") => port = Some(parser.value()?.parse::<u16>()?),
            Value(word) => {
                directives.push(word);
                directives.extend(parser.raw_args()?);
            }
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    println!("building the release binary (the first time takes some minutes) …");
    if !cargo(&["build", "--quiet", "--release", "-p", "oxidis"]).status()?.success() {
        bail!("the build failed: see above");
    }
    let binary = target_dir().join("release/oxidis");
    let port = match port {
        Some(port) => port,
        None => (6379..6479)
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .context("no free port from 6379 to 6478: choose one with --port N")?,
    };
    let directory = target_dir().join("up");
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
    // The server takes this process's place, so that Ctrl-C and its exit code are its own.
    let error =
        Command::new(&binary).args(["server", "--port", &port, "--dir"]).arg(&directory).args(directives).exec();
    Err(error).with_context(|| format!("cannot run {shown}"))
}
