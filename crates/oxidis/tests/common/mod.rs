//! What several of the end-to-end tests need.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::process::{Signal, send_signal};
use testkit::{Client, binary, wait_until};

/// How a program ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program to its end, with `input` on its standard input.
pub(crate) fn run<A: AsRef<OsStr>>(program: &Path, args: &[A], input: &str) -> Ran {
    run_in(Path::new("/"), program, args, input)
}

/// As [`run`], in a directory.
pub(crate) fn run_in<A: AsRef<OsStr>>(directory: &Path, program: &Path, args: &[A], input: &str) -> Ran {
    let mut command = Command::new(program);
    command.args(args).current_dir(directory).env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends without reading closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a tool of the binary under test.
pub(crate) fn oxidis(args: &[&str], input: &str) -> Ran {
    run(binary::oxidis(), args, input)
}

/// Puts links named `redis-server`, `redis-benchmark` and `redis-cli` to the binary under test into a directory.
pub(crate) fn link_tools(directory: &Path) {
    for name in ["redis-server", "redis-benchmark", "redis-cli"] {
        std::os::unix::fs::symlink(binary::oxidis(), directory.join(name)).unwrap();
    }
}

/// A program of Debian's redis packages.
pub(crate) fn peer(name: &str) -> std::path::PathBuf {
    binary::peer(name).unwrap_or_else(|| panic!("{name} is missing: apt-get install redis-server redis-tools"))
}

/// A server that went into the background: known by the number in its pid file, ended when dropped.
#[derive(Debug)]
pub(crate) struct Daemon(pub(crate) u32);

impl Daemon {
    /// Waits for the pid file.
    pub(crate) fn from_pid_file(path: &Path) -> Daemon {
        Daemon(wait_until("the pid file", Duration::from_secs(10), || {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.trim().parse().map_err(|_| text)
        }))
    }

    /// Whether the process is there.
    pub(crate) fn is_alive(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn stop(&self) {
        let _ = send_signal(self.0, Signal::Terminate);
        wait_until("the end of the daemon", Duration::from_secs(10), || {
            if self.is_alive() { Err(self.0) } else { Ok(()) }
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.is_alive() {
            let _ = send_signal(self.0, Signal::Kill);
        }
    }
}

/// Connects as soon as the server listens and answers.
pub(crate) fn connect(port: u16) -> Client {
    wait_until("a server that answers", Duration::from_secs(10), || {
        let mut client = Client::connect(port).map_err(|error| error.to_string())?;
        match client.call(&["PING"]) {
            Ok(reply) if reply.text() == "PONG" || reply.is_error() => Ok(client),
            other => Err(format!("{other:?}")),
        }
    })
}

/// The number in a field of INFO.
pub(crate) fn info_number(client: &mut Client, field: &str) -> u64 {
    let text = client.info(field).unwrap_or_else(|| panic!("INFO has no {field}"));
    text.parse().unwrap_or_else(|_| panic!("{field}:{text} is no number"))
}

/// Waits until so many clients are blocked.
pub(crate) fn wait_blocked(client: &mut Client, count: usize) {
    wait_until("blocked clients", Duration::from_secs(10), || {
        let blocked = info_number(client, "blocked_clients");
        if blocked == count as u64 { Ok(()) } else { Err(blocked) }
    });
}

/// How long something took.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}
