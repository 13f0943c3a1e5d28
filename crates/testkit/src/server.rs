//! Processes under test: each on a free port, in a directory of its own, ended by its own id.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{Signal, send_signal};
use crate::{Client, binary};

/// Ports that tests use: below the range from which the kernel takes outgoing ones, so that a
/// client's connection can never sit on a port that a server is about to take.
const PORTS: std::ops::Range<u16> = 10_000..15_000;
/// How long a server may take from start to its first PONG.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a server may take to end after SIGTERM before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How to start a server. [`Server::oxidis`] and [`Server::redis`] are the short forms.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    subcommand: Option<&'static str>,
    args: Vec<String>,
    wrapper: Vec<OsString>,
    port: Option<u16>,
    directory: Option<PathBuf>,
    ready_limit: Duration,
    /// Directives that are given when `args` does not have them.
    defaults: &'static [(&'static str, &'static str)],
}

/// Nothing is kept on disk, and tests may use DEBUG.
const SERVER_DEFAULTS: &[(&str, &str)] = &[("--save", ""), ("--appendonly", "no"), ("--enable-debug-command", "yes")];

impl Launch {
    /// The binary under test. When `OXIDIS_BIN` names a `redis-server`, that is started instead,
    /// which shows whether a failing test is right about Redis.
    pub fn oxidis() -> Launch {
        Launch::program(binary::oxidis())
    }

    /// The binary under test as a proxy; its directives name the topology.
    pub fn proxy() -> Launch {
        Launch { subcommand: Some("proxy"), defaults: &[], ..Launch::program(binary::oxidis()) }
    }

    /// The same program as a proxy.
    #[must_use]
    pub fn as_proxy(&self) -> Launch {
        Launch { args: Vec::new(), ..Launch::proxy_of(&self.program) }
    }

    /// As [`Launch::proxy`], of this binary.
    pub fn proxy_of(path: &Path) -> Launch {
        Launch { subcommand: Some("proxy"), defaults: &[], ..Launch::program(path) }
    }

    /// A proxy before servers on these ports, which share the slots evenly.
    pub fn proxy_over(ports: &[u16]) -> Launch {
        let share = 16384_usize.div_ceil(ports.len().max(1));
        let parts = ports.iter().enumerate().map(|(index, port)| {
            let last = ((index + 1) * share).min(16384) - 1;
            format!("{}-{last}@127.0.0.1:{port}", index * share)
        });
        let topology = format!("static {}", parts.collect::<Vec<_>>().join(" "));
        Launch::proxy().args(&["--topology", &topology])
    }

    /// Debian's redis-server.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn redis() -> Launch {
        match binary::peer("redis-server") {
            Some(path) => Launch::program(&path),
            None => panic!("redis-server is missing: apt-get install redis-server redis-tools"),
        }
    }

    /// Any program with redis-server's options; the one named `oxidis` gets its subcommand.
    pub fn program(path: &Path) -> Launch {
        let is_oxidis = path.file_name().is_some_and(|name| name == "oxidis");
        Launch {
            program: path.to_owned(),
            subcommand: is_oxidis.then_some("server"),
            args: Vec::new(),
            wrapper: Vec::new(),
            port: None,
            directory: None,
            ready_limit: READY_LIMIT,
            defaults: SERVER_DEFAULTS,
        }
    }

    /// The program that it starts.
    pub fn path(&self) -> &Path {
        &self.program
    }

    /// Whether it starts another server than Oxidis.
    pub fn is_peer(&self) -> bool {
        self.subcommand.is_none()
    }

    /// Adds directives or, first of all, a config file.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Launch {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Puts an argument before all others: a config file.
    #[must_use]
    pub fn first(mut self, argument: &str) -> Launch {
        self.args.insert(0, argument.to_owned());
        self
    }

    /// Binds the process to cores, as `taskset -c` writes them.
    #[must_use]
    pub fn pinned(self, cores: &str) -> Launch {
        self.wrapped(&["taskset", "-c", cores])
    }

    /// Starts the process by another program that executes it, such as valgrind.
    #[must_use]
    pub fn wrapped(mut self, words: &[&str]) -> Launch {
        self.wrapper.extend(words.iter().map(OsString::from));
        self
    }

    /// Takes this port rather than a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Launch {
        self.port = Some(port);
        self
    }

    /// Works in this directory, which stays, rather than in a fresh one.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Launch {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Allows another time until the first PONG.
    #[must_use]
    pub fn ready_within(mut self, limit: Duration) -> Launch {
        self.ready_limit = limit;
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// When it ends or stays silent; the text holds the end of its log.
    pub fn try_start(&self) -> io::Result<Server> {
        let mut last = io::Error::other("no attempt was made");
        for _ in 0..4 {
            match self.attempt() {
                Ok(server) => return Ok(server),
                // Somebody else was quicker to take the port that was free a moment ago.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && self.port.is_none() => {
                    last = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// As [`Launch::try_start`].
    ///
    /// # Panics
    /// When the server does not start.
    #[track_caller]
    pub fn start(&self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    fn attempt(&self) -> io::Result<Server> {
        let port = self.port.map_or_else(free_port, Ok)?;
        let (path, own_directory) = match &self.directory {
            Some(path) => (path.clone(), None),
            None => {
                let dir = tempfile::Builder::new().prefix("oxidis-test-").tempdir()?;
                (dir.path().to_owned(), Some(dir))
            }
        };
        let log_path = path.join("log");
        let log = File::options().create(true).append(true).open(&log_path)?;
        let mut command = self.command(port, &path);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Collation and messages must not depend on who runs the test.
        command.env("LC_ALL", "C");
        let child =
            command.spawn().map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", self.program.display())))?;
        let mut server = Server { child, port, path, own_directory, stopped: false };
        server.wait_ready(self.ready_limit)?;
        Ok(server)
    }

    fn command(&self, port: u16, directory: &Path) -> Command {
        let mut words = self.wrapper.clone();
        words.push(self.program.clone().into());
        words.extend(self.subcommand.map(OsString::from));
        let mut args = self.args.as_slice();
        if let [first, rest @ ..] = args
            && !first.starts_with("--")
        {
            words.push(first.into());
            args = rest;
        }
        let port = port.to_string();
        let everywhere = [("--port", port.as_str()), ("--bind", "127.0.0.1")];
        for (name, value) in everywhere.iter().chain(self.defaults) {
            if !args.iter().any(|arg| arg == *name) {
                words.extend([name.into(), value.into()]);
            }
        }
        words.extend(["--dir".into(), directory.into()]);
        words.extend(args.iter().map(OsString::from));
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }
}

/// A running server. Dropping it ends the process: SIGTERM first, SIGKILL when that is ignored.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    path: PathBuf,
    own_directory: Option<TempDir>,
    stopped: bool,
}

impl Server {
    /// Starts the binary under test with these directives.
    #[track_caller]
    pub fn oxidis(args: &[&str]) -> Server {
        Launch::oxidis().args(args).start()
    }

    /// Starts Debian's redis-server with these directives.
    #[track_caller]
    pub fn redis(args: &[&str]) -> Server {
        Launch::redis().args(args).start()
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its working directory.
    pub fn directory(&self) -> &Path {
        &self.path
    }

    /// What it wrote to its log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.path.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A new connection.
    ///
    /// # Panics
    /// When the server does not accept it.
    #[track_caller]
    pub fn client(&self) -> Client {
        match Client::connect(self.port) {
            Ok(client) => client,
            Err(error) => panic!("port {}: {error}\n{}", self.port, tail(&self.log())),
        }
    }

    /// How the process ended, or `None` while it runs.
    pub fn exit_status(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        send_signal(self.pid(), signal)
    }

    /// Ends the process and waits for it. Returns how it ended.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn stop(&mut self, signal: Signal) -> io::Result<std::process::ExitStatus> {
        self.stopped = true;
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        send_signal(self.child.id(), signal)?;
        let end = Instant::now() + STOP_LIMIT;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.child.kill()?;
        self.child.wait()
    }

    fn wait_ready(&mut self, limit: Duration) -> io::Result<()> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                let log = self.log();
                let taken = log.contains("Address already in use") || log.contains("bind: ");
                let kind = if taken { io::ErrorKind::AddrInUse } else { io::ErrorKind::Other };
                return Err(io::Error::new(kind, format!("server ended ({status}):\n{}", tail(&log))));
            }
            if let Ok(mut client) = Client::connect(self.port) {
                client.set_timeout(limit)?;
                let reply = client.call(&["PING"]);
                let reply = reply.map(|reply| reply.text()).unwrap_or_default();
                // A wrong process may hold the port, since servers share ports on purpose.
                if reply == "PONG" {
                    let owner = client.info("process_id");
                    return match owner {
                        Some(pid) if pid != self.pid().to_string() => {
                            Err(io::Error::new(io::ErrorKind::AddrInUse, "another server has the port"))
                        }
                        _ => Ok(()),
                    };
                }
                if reply.starts_with("NOAUTH") || reply.starts_with("DENIED") {
                    return Ok(());
                }
            }
            if Instant::now() > end {
                let log = self.log();
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("server on port {} is not ready after {limit:?}:\n{}", self.port, tail(&log)),
                ));
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.stop(Signal::Terminate);
        }
        if std::thread::panicking()
            && let Some(directory) = self.own_directory.take()
        {
            eprintln!("server's directory and log are kept in {}", directory.keep().display());
        }
    }
}

/// A port of 127.0.0.1 on which nothing listens. Nothing is locked: each process starts at its
/// own place in the range, and [`Launch::try_start`] tries again when two still meet.
///
/// # Errors
/// When every port of the range is taken.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    if NEXT.load(Ordering::Relaxed) == 0 {
        let start = fastrand::u16(1..count);
        let _ = NEXT.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    }
    for _ in 0..count {
        let port = PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % count;
        // Connecting, not only binding, finds servers that share their port.
        let silent = std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
        if silent && std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no free port in {PORTS:?}")))
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let from = lines.len().saturating_sub(25);
    lines.get(from..).unwrap_or(&[]).join("\n")
}
