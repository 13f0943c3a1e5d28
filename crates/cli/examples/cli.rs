//! The command-line client as a program of its own, for tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let arguments: Vec<_> = arguments.collect();
    let code = cli::run(&program.to_string_lossy(), &arguments);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
