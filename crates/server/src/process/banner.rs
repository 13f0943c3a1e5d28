//! The texts of start and end that people read and tools wait for.

use std::io::IsTerminal as _;

use super::REDIS_VERSION;
use super::log::{self, Level};
use crate::config::Config;

/// The lines before anything is set up. `program` is the name the server was started by.
pub fn log_start(had_arguments: bool, program: &str) {
    let process = std::process::id();
    crate::log!(Level::Notice, "oO0OoO0OoO0Oo Oxidis is starting oO0OoO0OoO0Oo");
    crate::log!(
        Level::Notice,
        "Redis version={REDIS_VERSION}, bits={}, commit=00000000, modified=0, pid={process}, just started",
        usize::BITS
    );
    if had_arguments {
        crate::log!(Level::Notice, "Configuration loaded");
    } else {
        crate::log!(
            Level::Warning,
            "Warning: no config file specified, using the default config. In order to specify a config file use {program} /path/to/redis.conf"
        );
    }
}

/// The picture, or one line with mode and port in its place. The picture is shown when the log is a
/// terminal, or always if `always-show-logo` says so.
pub fn log_mode(config: &Config) {
    let mode = if config.cluster_enabled { "cluster" } else { "standalone" };
    let port = if config.port == 0 { config.tls_port } else { config.port };
    let is_on_terminal = !config.syslog_enabled && config.logfile.is_empty() && std::io::stdout().is_terminal();
    if is_on_terminal || config.always_show_logo {
        log::write_raw(Level::Notice, &logo(mode, port, std::process::id()));
    } else {
        crate::log!(Level::Notice, "Running mode={mode}, port={port}.");
    }
}

/// The line that tells that data structures and listeners are there.
pub fn log_initialized() {
    crate::log!(Level::Notice, "Server initialized");
}

/// The lines that tools wait for, one for each kind of listener: `tcp`, `unix`, `tls`.
pub fn log_ready(kinds: &[&str]) {
    for kind in kinds {
        crate::log!(Level::Notice, "Ready to accept connections {kind}");
    }
}

/// The first line of a shutdown.
pub fn log_shutdown_requested() {
    crate::log!(Level::Notice, "User requested shutdown...");
}

/// The line about the Unix socket that goes away with the server.
pub fn log_unix_socket_removed() {
    crate::log!(Level::Notice, "Removing the unix socket file.");
}

/// The last line of a shutdown.
pub fn log_exit() {
    crate::log!(Level::Warning, "Redis is now ready to exit, bye bye...");
}

/// The line of `--version`.
#[must_use]
pub fn version_line() -> String {
    format!(
        "Redis server v={REDIS_VERSION} sha=00000000:0 malloc=jemalloc bits={} build=oxidis-{}\n",
        usize::BITS,
        env!("CARGO_PKG_VERSION")
    )
}

/// What `--test-memory` answers when the amount is missing.
#[must_use]
pub fn memory_test_usage() -> String {
    "Please specify the amount of memory to test in megabytes.\nExample: oxidis server --test-memory 4096\n\n"
        .to_owned()
}

/// The picture. The ` PID: ` line is one that test suites wait for.
fn logo(mode: &str, port: u16, process: u32) -> String {
    format!(
        r"
        .--''--.
     .-'  .--.  '-.
   .'   .'    '.   '.       Oxidis {version}, speaks Redis {REDIS_VERSION} (00000000/0) {bits} bit
  /    /  O  x  \    \
 |    |  i d i s |    |     Running in {mode} mode
 |    |  o  o  o |    |     Port: {port}
  \    \        /    /      PID: {process}
   '.   '.    .'   .'
     '-.  '--'  .-'
        '--..--'

",
        version = env!("CARGO_PKG_VERSION"),
        bits = usize::BITS,
    )
}
