//! A redis-server of its own for each test, the two programs that are compared, and a terminal.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The oracle.
pub const REDIS_CLI: &str = "/usr/bin/redis-cli";
const PATIENCE: Duration = Duration::from_secs(20);

/// Our program: the example of this crate, beside the test's own binary.
pub fn our_cli() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples/cli");
    assert!(path.exists(), "no {}: cargo test builds it", path.display());
    path
}

/// A server on a Unix socket in a folder of its own; it ends with the value.
pub struct Server {
    child: Child,
    pub folder: tempfile::TempDir,
    options: Vec<String>,
}

impl Server {
    pub fn start(options: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_string()).collect();
        let child = launch(folder.path(), &options);
        let server = Server { child, folder, options };
        server.wait();
        server
    }

    pub fn socket(&self) -> String {
        self.folder.path().join("s").display().to_string()
    }

    pub fn restart(&mut self) {
        self.stop();
        let _ = std::fs::remove_file(self.socket());
        self.child = launch(self.folder.path(), &self.options);
        self.wait();
    }

    fn wait(&self) {
        let deadline = Instant::now() + PATIENCE;
        while UnixStream::connect(self.socket()).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Runs the oracle for its effect.
    pub fn redis(&self, arguments: &[&str]) -> String {
        let output = run(REDIS_CLI, &self.socket(), arguments, "", &[]);
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn launch(folder: &Path, options: &[String]) -> Child {
    Command::new("/usr/bin/redis-server")
        .args(["--port", "0", "--unixsocket", "s", "--save", "", "--enable-debug-command", "yes"])
        .args(options)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed")
}

/// Runs a program with standard input and environment; `-s socket` comes first.
pub fn run(
    program: impl AsRef<OsStr>,
    socket: &str,
    arguments: &[&str],
    input: &str,
    environment: &[(&str, &str)],
) -> Output {
    let mut child = Command::new(program)
        .args(["-s", socket])
        .args(arguments)
        .env_remove("REDISCLI_AUTH")
        .env_remove("FAKETTY")
        .env("TERM", "dumb")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// A pseudo-terminal with our program on it.
pub struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    /// What was shown and not yet expected.
    pub shown: String,
}

impl Terminal {
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Terminal {
        Terminal::start_with(arguments, environment, None)
    }

    /// With standard output in a file, if there is one.
    pub fn start_with(arguments: &[&str], environment: &[(&str, &str)], output: Option<File>) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open =
            || -> OwnedFd { File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap().into() };
        // With the terminal as the controlling one, Ctrl-C becomes a signal.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(our_cli())
            .args(arguments)
            .env_remove("REDISCLI_AUTH")
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(Stdio::from(open()))
            .stdout(output.map_or_else(|| Stdio::from(open()), Stdio::from))
            .stderr(Stdio::from(open()))
            .spawn()
            .unwrap();
        let keys = File::from(master);
        let mut output = keys.try_clone().unwrap();
        let (sender, screen) = channel();
        // Ends when the program has closed the terminal.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = output.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal { child, keys, screen, shown: String::new() }
    }

    /// Makes the screen so big; it has no size before.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keys, size).unwrap();
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the text is shown, and forgets everything up to it.
    pub fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.shown.find(text) {
                self.shown.drain(..place + text.len());
                return;
            }
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} was not shown; the screen: {:?}", self.shown),
            }
        }
    }

    /// Waits for a new prompt: it begins with the switch to bracketed paste, which no redrawing of a line has.
    pub fn expect_prompt(&mut self) {
        self.expect("\x1b[?2004h");
        self.expect("> ");
    }

    /// Waits for the end; the exit code.
    pub fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the program does not end; the screen: {:?}", self.shown);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
