//! `oxidis`: argv to subcommand, nothing else.

use keyspace::memory::Counting;
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Counting<Jemalloc> = Counting(Jemalloc);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let mut rest: Vec<std::ffi::OsString> = arguments.collect();
    let linked = std::path::Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let tool = match linked.strip_prefix("redis-").or_else(|| linked.strip_prefix("oxidis-")) {
        Some(tool) => tool.to_owned(),
        None if rest.is_empty() => String::new(),
        None => rest.remove(0).to_string_lossy().into_owned(),
    };
    let code = match tool.as_str() {
        "server" => server::run(&program.to_string_lossy(), &rest),
        _ => 1,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
