//! The project's tasks, run as `cargo xtask TASK`. Each task is a module of its own; this file
//! only chooses.
#![forbid(unsafe_code)]

mod bench;
mod diff;
mod hostile;
mod sanitize;
mod steps;
mod test;
mod tidy;
mod up;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask TASK [options]

  test      everything that must hold before a change is merged; .ci/run calls this
  up        build, start a whole cluster (or a server), and say how to connect
  bench     speed and memory beside redis-server, as ratios with their targets
  diff      random commands to Oxidis and to redis-server, replies compared
  hostile   malformed, greedy and heavy clients, and what others feel of them
  sanitize  the same tests under ThreadSanitizer or AddressSanitizer
  tidy      dependencies, file sizes, banned words, unsafe lines, docs
  help      this text

`cargo xtask TASK --help` lists a task's options.
";

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let task = args.next().map(|task| task.to_string_lossy().into_owned());
    let parser = lexopt::Parser::from_args(args);
    let result = match task.as_deref() {
        Some("test") => test::main(parser),
        Some("up") => up::main(parser),
        Some("bench") => bench::main(parser),
        Some("floor") => bench::floor::main(parser),
        Some("diff") => diff::main(parser),
        Some("hostile") => hostile::main(parser),
        Some("sanitize") => sanitize::main(parser),
        Some("tidy") => tidy::main(parser),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("xtask: there is no task {other:?}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
