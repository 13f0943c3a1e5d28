//! Stock sentinels.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::server::free_port;
use crate::{Client, Reply, binary, wait_until};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A sentinel; ended when dropped.
#[derive(Debug)]
pub struct Sentinel {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sentinel {
    /// Starts one that watches the server on a port, under the name `ours`, and calls it down after a second.
    ///
    /// # Panics
    /// When it does not start.
    pub fn watch(primary: u16) -> Sentinel {
        let program = binary::peer("redis-server").expect("redis-server is missing: apt-get install redis-server");
        let directory = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let path = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor ours 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds ours 1000\nsentinel failover-timeout ours 10000\n",
            directory.path().display()
        );
        std::fs::write(&path, text).unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new(program)
            .arg(&path)
            .arg("--sentinel")
            .stdout(log.try_clone().unwrap())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let sentinel = Sentinel { child, port, _directory: directory };
        wait_until("a sentinel answers", Duration::from_secs(20), || match Client::connect(port) {
            Ok(mut client) => client.call(&["PING"]).map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        });
        sentinel
    }

    /// A new connection to it.
    ///
    /// # Panics
    /// When it takes none.
    pub fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// A field of what it knows of the primary.
    ///
    /// # Panics
    /// When it is gone.
    pub fn field(&self, name: &str) -> String {
        let Reply::Array(words) = self.client().run("SENTINEL MASTER ours") else { return String::new() };
        let words: Vec<String> = words.iter().map(Reply::text).collect();
        words.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
    }

    /// The address of the primary that clients are told.
    ///
    /// # Panics
    /// When it is gone.
    pub fn primary(&self) -> String {
        self.client().run("SENTINEL GET-MASTER-ADDR-BY-NAME ours").to_string()
    }
}
