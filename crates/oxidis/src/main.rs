//! `oxidis`: argv to subcommand, nothing else.
//!
//! `oxidis TOOL …` runs a tool; so does a link named `redis-TOOL` or `oxidis-TOOL` to the binary.
#![forbid(unsafe_code)]

use keyspace::memory::Counting;
use persistence::disk::RealDisk;
use persistence::rdb;
#[cfg(not(feature = "jemalloc"))]
use std::alloc::System;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Counting<Jemalloc> = Counting(Jemalloc);
/// Sanitizers bring an allocator of their own, behind the system's calls.
#[cfg(not(feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

const USAGE: &str = "\
oxidis: a Redis-compatible data layer in one binary

Usage: oxidis TOOL [ARGUMENTS]

  server      the in-memory store         oxidis server [config-file] [--directive value …]
  benchmark   the load generator          oxidis benchmark -t set,get -n 100000 -P 16
  doctor      can this machine do it?     oxidis doctor --clients 120000
  cli         the client                  oxidis cli -p 6379 INFO server
  check-rdb   is this snapshot sound?     oxidis check-rdb dump.rdb

  oxidis TOOL --help     what a tool can do
  oxidis --version       the version

A link to this binary named redis-server, redis-cli, redis-check-rdb (or oxidis-…) runs that tool.
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let mut rest: Vec<OsString> = arguments.collect();
    let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let linked = name.strip_prefix("redis-").or_else(|| name.strip_prefix("oxidis-"));
    let tool = match linked {
        Some(tool) => tool.to_owned(),
        None if rest.is_empty() => String::new(),
        None => rest.remove(0).to_string_lossy().into_owned(),
    };
    let called = if linked.is_some() { name } else { format!("{name} {tool}") };
    let code = match tool.as_str() {
        "server" => server::run(&called, &rest),
        "benchmark" => return benchmark::run(&rest, &called),
        "cli" => cli::run(&called, &rest),
        "doctor" => doctor::run(&called, &rest),
        "check-rdb" => rdb::check::run(&called, &rest, &RealDisk, server::process::REDIS_VERSION),
        "--version" | "-v" | "version" => {
            println!("oxidis {}", env!("CARGO_PKG_VERSION"));
            0
        }
        "--help" | "-h" | "help" => {
            print!("{USAGE}");
            0
        }
        "" => {
            eprint!("{USAGE}");
            1
        }
        other => {
            eprintln!("oxidis: there is no tool named '{other}'; 'oxidis --help' lists them");
            1
        }
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
