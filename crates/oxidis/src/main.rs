//! `oxidis`: argv to subcommand, nothing else.
//!
//! `oxidis TOOL …` runs a tool; so does a link named `redis-TOOL` or `oxidis-TOOL` to the binary. What `oxidis` says
//! about its tools is in `about`.
#![forbid(unsafe_code)]

mod about;

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

fn main() -> ExitCode {
    manager::up::follow_parent();
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
        "proxy" => proxy::run(&called, &rest),
        "benchmark" => return benchmark::run(&rest, &called),
        "cli" => cli::run(&called, &rest),
        "doctor" => doctor::run(&called, &rest),
        "manager" => manager::run(&called, &rest),
        "admin" => manager::admin::run(&called, &rest),
        "up" => manager::up::run(&called, &rest),
        "check-rdb" => match about::help_of(&tool, &called, &rest) {
            Some(code) => code,
            None => rdb::check::run(&called, &rest, &RealDisk, server::process::REDIS_VERSION),
        },
        "check-aof" => match about::help_of(&tool, &called, &rest) {
            Some(code) => code,
            None => persistence::aof::check::run(&called, &rest, &RealDisk),
        },
        _ => about::run(&tool, &rest),
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
