//! Joined generators: an agent on each load machine (`--agent`), and the run that shares its load among them (`--agents`).
//!
//! ```text
//! coordinator                                  agent
//!      ◄── Hello (version, nonce) ──────────────┤
//!      ├── Auth (HMAC of the nonce) ───────────►│   only with a token
//!      ◄── Welcome (the machine) ───────────────┤
//!      ├── Ping ×16 ──► ◄── Pong (its clock) ───┤   offset of the clocks
//!      ├── Job (arguments, its portion) ───────►│   connects to the servers
//!      ◄── Opened ──────────────────────────────┤
//!      ├── Test ───────────────────────────────►│   opens its share of the connections
//!      ◄── Ready ───────────────────────────────┤
//!      ├── Start (instant of the agent's clock) ►│
//!      ◄── News every 250 ms (what is new) ─────┤
//!      ◄── Done (everything) ───────────────────┤
//! ```
//!
//! Messages are JSON behind a length of four bytes. Histograms travel whole and are added bucket by bucket, so that a
//! percentile is that of all requests of all machines, never a mean of percentiles.
//!
//! An agent runs nothing but the load: it opens no file and starts no program for a job, loads allowed servers only, and
//! takes one job at a time. Without a token it listens on the loopback interface alone. What is said is not encrypted:
//! over networks that others share use a tunnel.

pub(crate) mod coordinator;
pub(crate) mod server;
pub(crate) mod wire;

use std::{fs, net::IpAddr, path::Path};

use serde::{Deserialize, Serialize};

use crate::{extended::Rate, keys::Part, results::Outcome};

/// An agent as typed behind `--agents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentAddress {
    /// `host:port`.
    pub(crate) name: String,
    /// Its share in proportion to the others'.
    pub(crate) weight: u64,
}

/// Servers that an agent may load (`--allow-target`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllowedTarget {
    network: IpAddr,
    bits: u8,
    port: Option<u16>,
}

/// One agent's place among all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Portion {
    /// Which one it is, from 0.
    pub(crate) index: usize,
    /// The weights of all.
    pub(crate) weights: Vec<u64>,
}

/// What a machine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Version of the program.
    pub(crate) version: String,
    /// CPUs.
    pub(crate) cpus: usize,
    /// Hard limit of open descriptors; `None` for no limit.
    pub(crate) descriptors: Option<u64>,
    /// Local ports for connections from one address to one server.
    pub(crate) ports: usize,
    /// Memory that is free or can be made so, MiB.
    pub(crate) memory_mib: u64,
}

/// From the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Shows that the token is known.
    Auth {
        /// HMAC-SHA256 of the nonce in hexadecimal digits.
        proof: String,
    },
    /// Asks for the clock.
    Ping,
    /// What is to be run: arguments as on a command line, in base64.
    Job {
        /// The arguments.
        arguments: Vec<String>,
        /// The agent's part of the load.
        portion: Portion,
    },
    /// Open the connections of a test.
    Test(TestOrder),
    /// Begin at this instant of the agent's clock, nanoseconds.
    Start {
        /// The instant.
        at_ns: u64,
    },
    /// End the test and tell what was measured.
    Stop,
}

/// A test that an agent is to run; the numbers are those of all agents together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestOrder {
    /// Its place among the tests of the job.
    pub(crate) index: usize,
    /// Its turn in the run, which random numbers depend on.
    pub(crate) turn: u32,
    /// Connections.
    pub(crate) clients: usize,
    /// Length, if it is bound by a time.
    pub(crate) duration: Option<std::time::Duration>,
    /// Pace.
    pub(crate) rate: Option<Rate>,
    /// Seed of the random numbers.
    pub(crate) seed: u32,
}

/// From an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Notice {
    /// First words.
    Hello {
        /// Version of the program.
        version: String,
        /// What the proof of the token is made from.
        nonce: String,
        /// Whether a token is asked for.
        needs_token: bool,
    },
    /// Come in.
    Welcome(Machine),
    /// No; the text says why.
    Refused {
        /// A sentence.
        why: String,
    },
    /// The agent's clock, nanoseconds.
    Pong {
        /// Now.
        now_ns: u64,
    },
    /// The servers answer.
    Opened {
        /// Time of a PING to the first server, µs.
        round_trip_us: u64,
    },
    /// All connections of the test stand.
    Ready {
        /// How many.
        connected: u64,
    },
    /// What is new since the last news.
    News(AgentNews),
    /// The test is over.
    Done(Box<Outcome>),
    /// The test ended by an error; what was measured until then.
    Failed {
        /// A sentence.
        text: String,
        /// The figures.
        partial: Option<Box<Outcome>>,
    },
}

/// Figures of a running test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentNews {
    /// Time since the test began.
    pub(crate) elapsed: std::time::Duration,
    /// Replies so far.
    pub(crate) finished: u64,
    /// Sum of their latencies, µs.
    pub(crate) latency_sum_us: u64,
    /// Errors so far.
    pub(crate) errors: u64,
    /// Connections.
    pub(crate) connections: u64,
    /// Latencies since the last news.
    #[serde(with = "wire")]
    pub(crate) latencies: crate::latency::Latency,
}

impl Portion {
    /// The part of `total` things that is this agent's; the parts of all meet without gap. Remainders go to the first
    /// agents.
    pub(crate) fn of(&self, total: u64) -> Part {
        let sum: u128 = self.weights.iter().map(|weight| u128::from(*weight)).sum::<u128>().max(1);
        let whole = |weight: &u64| u64::try_from(u128::from(total) * u128::from(*weight) / sum).unwrap_or(0);
        let rest = total - self.weights.iter().map(whole).sum::<u64>();
        let count = |(index, weight): (usize, &u64)| whole(weight) + u64::from((index as u64) < rest);
        let first = self.weights.iter().enumerate().take(self.index).map(count).sum();
        Part { first, count: self.weights.iter().enumerate().nth(self.index).map_or(0, count) }
    }

    /// The share of a rate.
    #[expect(clippy::cast_precision_loss, reason = "weights are small")]
    pub(crate) fn of_rate(&self, rate: f64) -> f64 {
        let sum: u64 = self.weights.iter().sum();
        rate * self.weights.get(self.index).copied().unwrap_or(0) as f64 / sum.max(1) as f64
    }
}

impl AllowedTarget {
    fn allows(&self, address: std::net::SocketAddr) -> bool {
        let same_network = match (self.network, address.ip().to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                network.to_bits() & mask == ip.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                network.to_bits() & mask == ip.to_bits() & mask
            }
            _ => false,
        };
        same_network && self.port.is_none_or(|port| port == address.port())
    }
}

/// Whether one of the list allows the address; an empty list allows all.
pub(crate) fn is_allowed(list: &[AllowedTarget], address: std::net::SocketAddr) -> bool {
    list.is_empty() || list.iter().any(|allowed| allowed.allows(address))
}

/// Reads `host:port,host:port=WEIGHT`.
pub(crate) fn parse_addresses(text: &str) -> Option<Vec<AgentAddress>> {
    text.split(',')
        .map(str::trim)
        .map(|part| {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let (host, port) = name.rsplit_once(':')?;
            let weight = weight.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight))?;
            let is_fine = !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0);
            is_fine.then(|| AgentAddress { name: name.to_owned(), weight })
        })
        .collect()
}

/// Reads `address`, `address:port`, `network/bits` and `network/bits:port`, separated by commas.
pub(crate) fn parse_allowed(text: &str) -> Option<Vec<AllowedTarget>> {
    text.split(',').map(str::trim).map(parse_allowed_one).collect()
}

fn parse_allowed_one(text: &str) -> Option<AllowedTarget> {
    if let Some((network, rest)) = text.split_once('/') {
        let (bits, port) = match rest.split_once(':') {
            Some((bits, port)) => (bits, Some(port.parse().ok()?)),
            None => (rest, None),
        };
        return allowed(network.trim_matches(['[', ']']).parse().ok()?, Some(bits.parse().ok()?), port);
    }
    if let Ok(address) = text.parse::<std::net::SocketAddr>() {
        return allowed(address.ip(), None, Some(address.port()));
    }
    allowed(text.trim_matches(['[', ']']).parse().ok()?, None, None)
}

fn allowed(network: IpAddr, bits: Option<u8>, port: Option<u16>) -> Option<AllowedTarget> {
    let all = if network.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(all);
    (bits <= all).then_some(AllowedTarget { network, bits, port })
}

/// The token of `--token-file`, without blanks at its ends. The error is a sentence for stderr.
pub(crate) fn read_token(path: Option<&Path>) -> Result<Option<Vec<u8>>, String> {
    let Some(path) = path else { return Ok(None) };
    let bytes = fs::read(path).map_err(|error| format!("Error: cannot read {}: {error}", path.display()))?;
    let token = bytes.trim_ascii().to_vec();
    if token.len() < TOKEN_BYTES_MIN {
        return Err(format!(
            "Error: the token in {} is shorter than {TOKEN_BYTES_MIN} bytes: make one with \
             'openssl rand -hex 32 > {}'",
            path.display(),
            path.display()
        ));
    }
    Ok(Some(token))
}

/// HMAC-SHA256 of the nonce under the token, as hexadecimal digits.
fn proof(token: &[u8], nonce: &str) -> Vec<u8> {
    use hmac::{Hmac, KeyInit, Mac};
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<sha2::Sha256>::new_from_slice(token) else { return Vec::new() };
    mac.update(nonce.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `digits` are the proof; takes as long for wrong ones as for right ones.
fn is_proof(token: &[u8], nonce: &str, digits: &str) -> bool {
    let right = hexadecimal(&proof(token, nonce));
    right.len() == digits.len() && right.bytes().zip(digits.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Both sides must be of one version: what they say may differ in the next.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const WEIGHT_MAX: u64 = 1_000_000;
const TOKEN_BYTES_MIN: usize = 16;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn portions_meet_and_remainders_go_first() {
        for (weights, total, expected) in [
            (vec![1, 1, 1, 1], 10, vec![3, 3, 2, 2]),
            (vec![2, 1], 90, vec![60, 30]),
            (vec![1], u64::MAX, vec![u64::MAX]),
            (vec![3, 1, 1], 4, vec![3, 1, 0]),
        ] {
            let parts: Vec<Part> =
                (0..weights.len()).map(|index| Portion { index, weights: weights.clone() }.of(total)).collect();
            let counts: Vec<u64> = parts.iter().map(|part| part.count).collect();
            assert_eq!(counts, expected, "{weights:?} {total}");
            let mut next = 0;
            for part in parts {
                assert_eq!(part.first, next);
                next += part.count;
            }
            assert_eq!(next, total);
        }
        let portion = Portion { index: 1, weights: vec![1, 3] };
        assert!((portion.of_rate(1_000.0) - 750.0).abs() < 1e-9);
    }

    #[test]
    fn targets_are_allowed_by_network_and_port() {
        let list = parse_allowed("10.1.0.0/16:6379, 192.168.0.7, [::1]:7000, 0.0.0.0/0:1").unwrap();
        for (address, expected) in [
            ("10.1.200.3:6379", true),
            ("10.1.200.3:6380", false),
            ("10.2.0.1:6379", false),
            ("192.168.0.7:1234", true),
            ("192.168.0.8:1234", false),
            ("[::1]:7000", true),
            ("[::2]:7000", false),
            ("8.8.8.8:1", true),
        ] {
            assert_eq!(is_allowed(&list, address.parse().unwrap()), expected, "{address}");
        }
        assert!(is_allowed(&[], "8.8.8.8:9".parse().unwrap()));
        for wrong in ["", "host", "10.0.0.0/33", "10.0.0.0/x", "10.0.0.1:port"] {
            assert_eq!(parse_allowed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_have_weights() {
        let list = parse_addresses("a:7701,[::1]:7702=3").unwrap();
        assert_eq!(list[1], AgentAddress { name: "[::1]:7702".to_owned(), weight: 3 });
        for wrong in ["a", "a:0", ":5", "a:1=0", "a:1=x", ""] {
            assert_eq!(parse_addresses(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_token_gives_the_proof() {
        let digits = hexadecimal(&proof(b"secret", "nonce"));
        assert_eq!(digits.len(), 64);
        assert!(is_proof(b"secret", "nonce", &digits));
        assert!(!is_proof(b"secret", "other", &digits) && !is_proof(b"Secret", "nonce", &digits));
        assert!(!is_proof(b"secret", "nonce", "") && !is_proof(b"secret", "nonce", &digits[1..]));
    }
}
