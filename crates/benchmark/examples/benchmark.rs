//! The load generator as a program of its own, for tests and profiles of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let arguments: Vec<_> = arguments.collect();
    benchmark::run(&arguments, &program.to_string_lossy())
}
