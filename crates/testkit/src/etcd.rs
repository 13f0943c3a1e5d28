//! Debian's etcd as a peer: servers on free ports, each with a directory of its own, ended when dropped.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::binary;
use crate::process::{Signal, send_signal};
use crate::server::free_port;
use crate::wait_until;

/// An etcd server.
#[derive(Debug)]
pub struct Etcd {
    program: PathBuf,
    child: Option<Child>,
    directory: TempDir,
    name: String,
    client_port: u16,
    peer_port: u16,
    /// All servers of its cluster, as etcd wants them named.
    cluster: String,
}

impl Etcd {
    /// A server that is a cluster by itself, ready to answer.
    ///
    /// # Panics
    /// When etcd is not installed, with what to install; or when it does not start.
    #[track_caller]
    pub fn start() -> Etcd {
        Etcd::start_cluster(1).remove(0)
    }

    /// A cluster of that many servers, ready to answer.
    ///
    /// # Panics
    /// As [`Etcd::start`].
    #[track_caller]
    pub fn start_cluster(count: usize) -> Vec<Etcd> {
        let Some(program) = binary::peer("etcd") else {
            panic!("etcd is missing: apt-get install etcd-server");
        };
        let ports = |what: &str| free_port().unwrap_or_else(|error| panic!("no port for etcd's {what}: {error}"));
        let mut servers: Vec<Etcd> = (0..count)
            .map(|number| Etcd {
                program: program.clone(),
                child: None,
                directory: match tempfile::Builder::new().prefix("oxidis-test-etcd-").tempdir() {
                    Ok(directory) => directory,
                    Err(error) => panic!("no directory for etcd: {error}"),
                },
                name: format!("etcd{number}"),
                client_port: ports("clients"),
                peer_port: ports("peers"),
                cluster: String::new(),
            })
            .collect();
        let named: Vec<String> =
            servers.iter().map(|etcd| format!("{}=http://127.0.0.1:{}", etcd.name, etcd.peer_port)).collect();
        for server in &mut servers {
            server.cluster = named.join(",");
            server.launch();
        }
        for server in &servers {
            server.wait_healthy();
        }
        servers
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.client_port)
    }

    /// Its process.
    ///
    /// # Panics
    /// When it was killed.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or_else(|| panic!("{} does not run", self.name), Child::id)
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it was killed.
    pub fn signal(&self, signal: Signal) {
        if let Err(error) = send_signal(self.pid(), signal) {
            panic!("{}: {error}", self.name);
        }
    }

    /// Ends it at once; what it wrote stays.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again on what it wrote, and waits until it answers.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
        self.wait_healthy();
    }

    /// Posts JSON to its gateway (`kv/compact`, say) and gives the answer as it came, head and body.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn post(&self, path: &str, json: &str) -> io::Result<String> {
        let head = format!(
            "POST /v3/{path} HTTP/1.0\r\nhost: etcd\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            json.len()
        );
        self.talk(&(head + json))
    }

    fn launch(&mut self) {
        let log = File::options().create(true).append(true).open(self.directory.path().join("log"));
        let log = log.unwrap_or_else(|error| panic!("etcd's log: {error}"));
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let mut command = Command::new(&self.program);
        command.args(["--name", &self.name, "--initial-cluster", &self.cluster, "--logger", "zap"]);
        command.arg("--data-dir").arg(self.directory.path().join("data"));
        for (option, port) in [
            ("--listen-client-urls", self.client_port),
            ("--advertise-client-urls", self.client_port),
            ("--listen-peer-urls", self.peer_port),
            ("--initial-advertise-peer-urls", self.peer_port),
        ] {
            command.args([option, &url(port)]);
        }
        // Its own environment variables would change it.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ETCD_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        match command.spawn() {
            Ok(child) => self.child = Some(child),
            Err(error) => panic!("{}: {error}", self.program.display()),
        }
    }

    fn wait_healthy(&self) {
        wait_until(&format!("{} at {} to be healthy", self.name, self.url()), Duration::from_secs(20), || {
            match self.talk("GET /health HTTP/1.0\r\nhost: etcd\r\n\r\n") {
                Ok(answer) if answer.contains("\"true\"") => Ok(()),
                other => Err((other, self.log_end())),
            }
        });
    }

    fn talk(&self, request: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.client_port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        log.lines().last().unwrap_or_default().to_string()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}
