//! A whole cluster as processes: `oxidis up`.
#![allow(dead_code)]

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Ran, run};
use testkit::process::{Signal, send_signal};
use testkit::{Client, binary, wait_until};

/// Many processes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An `oxidis up` in a folder of its own.
pub(crate) struct Up {
    pub(crate) process: Child,
    pub(crate) port: u16,
    folder: PathBuf,
}

impl Up {
    pub(crate) fn start(folder: &Path, port: u16, options: &[&str]) -> Up {
        let up = Up::begin(folder, port, options);
        up.wait_ready();
        up
    }

    pub(crate) fn begin(folder: &Path, port: u16, options: &[&str]) -> Up {
        let log = File::create(folder.join("up.log")).unwrap();
        let process = Command::new(binary::oxidis())
            .arg("up")
            .args(["--dir", folder.join("data").to_str().unwrap(), "--port", &port.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Up { process, port, folder: folder.to_owned() }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("up.log")).unwrap_or_default()
    }

    pub(crate) fn wait_ready(&self) {
        wait_until("oxidis up", PATIENCE, || {
            let said = self.said();
            if said.contains("Oxidis is up after") { Ok(()) } else { Err(said) }
        });
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// `oxidis admin` with the words of `command`.
    pub(crate) fn admin(&self, command: &str) -> Ran {
        let manager = format!("http://127.0.0.1:{}", self.port + 80);
        let mut words = vec!["admin", "-m", &manager];
        words.extend(command.split(' '));
        run(binary::oxidis(), &words, "")
    }

    pub(crate) fn admin_ok(&self, command: &str) -> String {
        let ran = self.admin(command);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}\n{}", self.said());
        ran.out
    }

    /// The process of a child by a word of its command line, or by the port in its title.
    pub(crate) fn pid_of(&self, word: &str) -> u32 {
        children_of(self.process.id())
            .into_iter()
            .find(|pid| {
                let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let text = String::from_utf8_lossy(&words);
                text.split(['\0', ' ']).any(|known| known == word || known == format!("127.0.0.1:{word}"))
            })
            .unwrap_or_else(|| panic!("no child with {word}"))
    }

    pub(crate) fn manager_pid(&self) -> u32 {
        self.pid_of("manager")
    }

    /// The stage of each move, by number.
    pub(crate) fn stages(&self) -> Result<Vec<(u64, String)>, String> {
        let ran = self.admin("--json moves");
        if ran.code != Some(0) {
            return Err(ran.err);
        }
        // "id" and "stage" of each, without a parser of JSON: they are alone on their lines.
        let field = |name: &str| -> Vec<String> {
            let head = format!("\"{name}\": ");
            ran.out
                .lines()
                .filter_map(|line| line.trim().strip_prefix(&head))
                .map(|value| value.trim_matches([',', '"']).to_owned())
                .collect()
        };
        Ok(field("id").into_iter().map(|id| id.parse().unwrap()).zip(field("stage")).collect())
    }

    pub(crate) fn wait_moved(&self) {
        wait_until("moves to be done", PATIENCE, || {
            let stages = self.stages()?;
            let all = !stages.is_empty() && stages.iter().all(|(_, stage)| stage == "done");
            if all { Ok(()) } else { Err(format!("{stages:?}")) }
        });
    }

    pub(crate) fn stop(mut self) -> String {
        let began = Instant::now();
        send_signal(self.process.id(), Signal::Interrupt).unwrap();
        let status = self.process.wait().unwrap();
        let said = self.said();
        assert!(status.success() && said.contains("stopped; the cluster is kept in"), "{status:?}: {said}");
        assert!(!said.contains("was killed"), "{said}");
        assert!(began.elapsed() < PATIENCE);
        said
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // The kernel ends its children.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processes that a process started.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The first of a run of free ports, each of which is this test's own.
pub(crate) fn base_port(index: u16) -> u16 {
    let first = 9_000 + 300 * index;
    (0..8)
        .map(|attempt| first + 30 * attempt)
        .find(|base| {
            let ports = [*base, base + 1, base + 80, base + 101, base + 102, base + 111, base + 112, base + 121];
            ports.iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        })
        .expect("free ports")
}
