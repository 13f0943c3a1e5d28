//! A Redis Cluster of Debian's redis-server, as its users set it up: by `redis-cli --cluster create`.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::server::free_port;
use crate::{Client, Launch, Server, binary, wait_until};

/// How long the cluster may take to agree on something.
const AGREE_LIMIT: Duration = Duration::from_secs(40);

/// Primaries and replicas on free ports of 127.0.0.1. Dropping it ends them.
#[derive(Debug)]
pub struct StockCluster {
    /// The servers; the first ones were made primaries.
    pub servers: Vec<Server>,
}

impl StockCluster {
    /// Starts so many primaries with so many replicas each, and waits until all of them see all slots served.
    ///
    /// # Panics
    /// When that fails: the message has what redis-cli said.
    pub fn start(primaries: usize, replicas_each: usize) -> StockCluster {
        let count = primaries * (1 + replicas_each);
        let servers: Vec<Server> = (0..count).map(|_| StockCluster::node()).collect();
        let cluster = StockCluster { servers };
        let mut args = vec!["--cluster".to_owned(), "create".to_owned()];
        args.extend(cluster.servers.iter().map(address));
        args.extend(["--cluster-replicas".to_owned(), replicas_each.to_string(), "--cluster-yes".to_owned()]);
        cli(&args);
        cluster.wait_whole(&[]);
        let mut first = cluster.servers[0].client();
        wait_until("replicas to follow", AGREE_LIMIT, || {
            let nodes = first.run("CLUSTER NODES").text();
            let slaves = nodes.lines().filter(|line| line.contains("slave")).count();
            if slaves == count - primaries { Ok(()) } else { Err(nodes) }
        });
        cluster
    }

    /// A server that belongs to no cluster yet.
    pub fn node() -> Server {
        let bus = match free_port() {
            Ok(port) => port.to_string(),
            Err(error) => panic!("{error}"),
        };
        Launch::redis()
            .args(&["--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-port", &bus])
            .args(&["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"])
            .start()
    }

    /// `host:port,host:port,…` for the proxy's `topology cluster`.
    pub fn seeds(&self) -> String {
        self.servers.iter().map(address).collect::<Vec<_>>().join(",")
    }

    /// Waits until every server but the excluded ones sees all slots served.
    ///
    /// # Panics
    /// When that takes too long.
    pub fn wait_whole(&self, excluded: &[usize]) {
        for (index, server) in self.servers.iter().enumerate().filter(|(index, _)| !excluded.contains(index)) {
            let mut client = server.client();
            wait_until(&format!("server {index} to see the cluster whole"), AGREE_LIMIT, || {
                let info = client.run("CLUSTER INFO").text();
                let is_whole = info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384");
                if is_whole { Ok(()) } else { Err(info) }
            });
        }
    }

    /// The id of a server in the cluster.
    pub fn id(&self, index: usize) -> String {
        self.servers[index].client().run("CLUSTER MYID").text()
    }

    /// The server that owns a slot.
    ///
    /// # Panics
    /// When none does.
    pub fn owner(&self, slot: u16) -> usize {
        for (index, server) in self.servers.iter().enumerate() {
            let Ok(mut client) = Client::connect(server.port()) else { continue };
            let nodes = client.run("CLUSTER NODES").text();
            let Some(own) = nodes.lines().find(|line| line.contains("myself,master")) else { continue };
            let owns = own.split_whitespace().skip(8).filter(|word| !word.starts_with('[')).any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let number = |text: &str| text.parse::<u16>().unwrap_or(u16::MAX);
                (number(first)..=number(last)).contains(&slot)
            });
            if owns {
                return index;
            }
        }
        panic!("nobody owns slot {slot}")
    }

    /// Waits until all servers that run tell the same.
    fn wait_agreed(&self, via: &str) {
        wait_until("the servers to agree", AGREE_LIMIT, || {
            let output = output(&["--cluster".to_owned(), "check".to_owned(), via.to_owned()]);
            if output.contains("[OK] All nodes agree about slots configuration.") && !output.contains("[WARNING]") {
                Ok(())
            } else {
                Err(output)
            }
        });
    }

    /// Moves slots from one primary to another while clients go on, as `redis-cli --cluster reshard` does.
    ///
    /// # Panics
    /// When it fails.
    pub fn reshard(&self, from: usize, to: usize, slots: u16) {
        let (via, from, to) = (address(&self.servers[to]), self.id(from), self.id(to));
        self.wait_agreed(&via);
        let slots = slots.to_string();
        let words = ["--cluster", "reshard", &via, "--cluster-from", &from, "--cluster-to", &to];
        let more = ["--cluster-slots", &slots, "--cluster-yes", "--cluster-pipeline", "5"];
        cli(&words.iter().chain(&more).map(|word| (*word).to_owned()).collect::<Vec<_>>());
    }
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

/// Runs redis-cli to its end.
///
/// # Panics
/// When it is missing or fails.
fn cli(args: &[String]) {
    match run(args) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            panic!("redis-cli {} failed ({}):\n{out}\n{err}", args.join(" "), output.status)
        }
        Err(error) => panic!("redis-cli: {error}"),
    }
}

fn run(args: &[String]) -> io::Result<std::process::Output> {
    let Some(program) = binary::peer("redis-cli") else {
        panic!("redis-cli is missing: apt-get install redis-tools");
    };
    Command::new(program).args(args).stdin(Stdio::null()).output()
}

/// What redis-cli prints, whether it succeeds or not.
fn output(args: &[String]) -> String {
    run(args).map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}
