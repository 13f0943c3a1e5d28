//! Directives whose values have a structure of their own.

use std::fmt::Write as _;

use super::kind::{lenient_integer, parse_memory};

/// The most addresses that `bind` takes.
const BIND_ADDRESSES_MAX: usize = 16;

/// One rule of `save`: a snapshot is due when this much happened in this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds that must have passed since the last snapshot.
    pub seconds: u64,
    /// Changes that must have been made since the last snapshot.
    pub changes: u64,
}

pub(super) fn parse_save_points(arguments: &[Vec<u8>]) -> Result<Vec<SavePoint>, String> {
    const ERROR: &str = "Invalid save parameters";
    if arguments.len() == 1 && arguments.iter().all(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let mut points = Vec::new();
    for pair in arguments.chunks(2) {
        let [seconds, changes] = pair else {
            return Err(ERROR.into());
        };
        let number = |text: &[u8]| lenient_integer(text).and_then(|number| u64::try_from(number).ok());
        let seconds = number(seconds).filter(|seconds| *seconds >= 1).ok_or(ERROR)?;
        let changes = number(changes).ok_or(ERROR)?;
        points.push(SavePoint { seconds, changes });
    }
    Ok(points)
}

pub(super) fn print_save_points(points: &[SavePoint]) -> String {
    join(points.iter().map(|point| format!("{} {}", point.seconds, point.changes)))
}

/// When a client is cut because it does not read its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimit {
    /// Cut at once above this many bytes; 0 is no limit.
    pub hard_bytes: u64,
    /// Cut after a while above this many bytes; 0 is no limit.
    pub soft_bytes: u64,
    /// How long "a while" is, in seconds.
    pub soft_seconds: u64,
}

/// The classes of clients that have output limits of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientClass {
    /// Ordinary clients, MONITOR included.
    Normal,
    /// Replicas.
    Replica,
    /// Clients with at least one subscription.
    Pubsub,
}

/// `client-output-buffer-limit`: one limit for each class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferLimits {
    /// Ordinary clients.
    pub normal: BufferLimit,
    /// Replicas.
    pub replica: BufferLimit,
    /// Subscribers.
    pub pubsub: BufferLimit,
}

impl Default for BufferLimits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        let limit = |hard_bytes, soft_bytes, soft_seconds| BufferLimit { hard_bytes, soft_bytes, soft_seconds };
        Self { normal: limit(0, 0, 0), replica: limit(256 * MIB, 64 * MIB, 60), pubsub: limit(32 * MIB, 8 * MIB, 60) }
    }
}

impl BufferLimits {
    /// The limit of one class.
    #[must_use]
    pub fn of(&self, class: ClientClass) -> BufferLimit {
        match class {
            ClientClass::Normal => self.normal,
            ClientClass::Replica => self.replica,
            ClientClass::Pubsub => self.pubsub,
        }
    }

    /// Each class with the name a configuration file uses for it.
    pub(super) fn classes(&self) -> [(&'static str, BufferLimit); 3] {
        [("normal", self.normal), ("replica", self.replica), ("pubsub", self.pubsub)]
    }

    /// As CONFIG GET prints it, where the replicas keep their old name.
    pub(super) fn print(&self) -> String {
        join(self.classes().iter().map(|(name, limit)| {
            let name = if *name == "replica" { "slave" } else { name };
            format!("{name} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
        }))
    }
}

pub(super) fn parse_buffer_limits(arguments: &[Vec<u8>], current: BufferLimits) -> Result<BufferLimits, String> {
    let mut limits = current;
    if !arguments.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    for group in arguments.chunks(4) {
        let [class, hard, soft, seconds] = group else {
            continue;
        };
        let place = match class.to_ascii_lowercase().as_slice() {
            b"normal" => &mut limits.normal,
            b"slave" | b"replica" => &mut limits.replica,
            b"pubsub" => &mut limits.pubsub,
            _ => {
                return Err("Invalid client class specified in buffer limit configuration.".into());
            }
        };
        let parsed = parse_memory(hard)
            .zip(parse_memory(soft))
            .zip(lenient_integer(seconds).and_then(|seconds| u64::try_from(seconds).ok()));
        let Some(((hard_bytes, soft_bytes), soft_seconds)) = parsed else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit configuration.".into());
        };
        *place = BufferLimit { hard_bytes, soft_bytes, soft_seconds };
    }
    Ok(limits)
}

pub(super) fn parse_oom_scores(arguments: &[Vec<u8>]) -> Result<[i32; 3], String> {
    let mut scores = [0; 3];
    for (score, text) in scores.iter_mut().zip(arguments) {
        *score = lenient_integer(text)
            .filter(|number| (-2000..=2000).contains(number))
            .and_then(|number| i32::try_from(number).ok())
            .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")?;
    }
    Ok(scores)
}

pub(super) fn print_oom_scores(scores: &[i32; 3]) -> String {
    join(scores.iter().map(i32::to_string))
}

/// `notify-keyspace-events`: the classes of events that are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClasses(u16);

impl EventClasses {
    /// `g`: commands that are not about one type, such as DEL.
    pub const GENERIC: Self = Self(1);
    /// `$`: string commands.
    pub const STRING: Self = Self(1 << 1);
    /// `l`: list commands.
    pub const LIST: Self = Self(1 << 2);
    /// `s`: set commands.
    pub const SET: Self = Self(1 << 3);
    /// `h`: hash commands.
    pub const HASH: Self = Self(1 << 4);
    /// `z`: sorted-set commands.
    pub const SORTED_SET: Self = Self(1 << 5);
    /// `x`: a key expired.
    pub const EXPIRED: Self = Self(1 << 6);
    /// `e`: a key was evicted.
    pub const EVICTED: Self = Self(1 << 7);
    /// `t`: stream commands.
    pub const STREAM: Self = Self(1 << 8);
    /// `d`: events of module types.
    pub const MODULE: Self = Self(1 << 9);
    /// `n`: a key was created; not part of `A`.
    pub const NEW: Self = Self(1 << 10);
    /// `K`: publish to the channel of the key.
    pub const KEYSPACE: Self = Self(1 << 11);
    /// `E`: publish to the channel of the event.
    pub const KEYEVENT: Self = Self(1 << 12);
    /// `m`: a key was looked for in vain; not part of `A`.
    pub const KEY_MISS: Self = Self(1 << 13);
    /// `A`: everything except `n`, `m`, and where to publish.
    pub const ALL: Self = Self(0x3ff);

    /// The order in which letters are printed.
    const LETTERS: [(u8, Self); 14] = [
        (b'g', Self::GENERIC),
        (b'$', Self::STRING),
        (b'l', Self::LIST),
        (b's', Self::SET),
        (b'h', Self::HASH),
        (b'z', Self::SORTED_SET),
        (b'x', Self::EXPIRED),
        (b'e', Self::EVICTED),
        (b't', Self::STREAM),
        (b'd', Self::MODULE),
        (b'n', Self::NEW),
        (b'K', Self::KEYSPACE),
        (b'E', Self::KEYEVENT),
        (b'm', Self::KEY_MISS),
    ];

    /// Whether nothing at all is published.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every class in `other` is chosen.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both unions together.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Parses the letters of the directive.
    pub fn parse(letters: &[u8]) -> Result<Self, &'static str> {
        let mut union = Self::default();
        for letter in letters {
            let class = if *letter == b'A' {
                Self::ALL
            } else {
                Self::LETTERS
                    .iter()
                    .find(|(candidate, _)| candidate == letter)
                    .map(|(_, class)| *class)
                    .ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?
            };
            union = union.union(class);
        }
        Ok(union)
    }

    /// The letters in Redis's order. When `A` stands for the classes, `n` is not printed beside it,
    /// as in Redis.
    #[must_use]
    pub fn print(self) -> String {
        let all = self.contains(Self::ALL);
        let mut letters = String::new();
        if all {
            letters.push('A');
        }
        for (letter, class) in Self::LETTERS {
            let is_place = class.0 >= Self::KEYSPACE.0;
            if self.contains(class) && (is_place || !all) {
                letters.push(char::from(letter));
            }
        }
        letters
    }
}

pub(super) fn parse_addresses(arguments: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
    if arguments.len() > BIND_ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".into());
    }
    if arguments.len() == 1 && arguments.iter().all(Vec::is_empty) {
        return Ok(Vec::new());
    }
    Ok(arguments.to_vec())
}

/// `replicaof`: the server that this one follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryAddress {
    /// Host name or address, as written.
    pub host: Vec<u8>,
    /// TCP port.
    pub port: u16,
}

impl PrimaryAddress {
    pub(super) fn print(&self) -> Vec<u8> {
        let mut text = self.host.clone();
        text.extend_from_slice(format!(" {}", self.port).as_bytes());
        text
    }
}

pub(super) fn parse_primary(arguments: &[Vec<u8>]) -> Result<Option<PrimaryAddress>, String> {
    let [host, port] = arguments else {
        return Err("wrong number of arguments".into());
    };
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(None);
    }
    let port = lenient_integer(port).and_then(|port| u16::try_from(port).ok()).ok_or("Invalid master port")?;
    Ok(Some(PrimaryAddress { host: host.clone(), port }))
}

pub(super) fn parse_percentiles(arguments: &[Vec<u8>]) -> Result<Vec<f64>, String> {
    if arguments.len() == 1 && arguments.iter().all(Vec::is_empty) {
        return Ok(Vec::new());
    }
    arguments
        .iter()
        .map(|text| {
            let percentile = std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<f64>().ok())
                .filter(|number| !number.is_nan())
                .ok_or("Invalid latency-tracking-info-percentiles parameters")?;
            if !(0.0..=100.0).contains(&percentile) {
                return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
            }
            Ok(percentile)
        })
        .collect()
}

/// Six decimals at most, without the zeros at the end.
pub(super) fn print_percentiles(percentiles: &[f64]) -> String {
    join(percentiles.iter().map(|percentile| {
        let text = format!("{percentile:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for (index, part) in parts.enumerate() {
        let blank = if index == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{blank}{part}");
    }
    text
}
