//! The tests: redis-benchmark 7.2's default suite in its order, with its titles, and tests made
//! from a command line (one command, several with `;`, or a weighted mix).

use crate::{options::Options, template::encode};

/// One line of the report: a title and what to send.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    /// Title in reports.
    pub(crate) title: String,
    /// Number printed as `bytes payload`.
    pub(crate) payload_bytes: usize,
    /// The commands.
    pub(crate) operations: Vec<Operation>,
    /// Whether `operations` follow each other or are drawn by weight.
    pub(crate) order: Order,
}

/// One command of a test.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// Name in per-operation rows.
    pub(crate) name: String,
    /// Encoded request.
    pub(crate) command: Vec<u8>,
    /// Times in a row, or weight of the draw.
    pub(crate) weight: u32,
}

/// How the operations of a test follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Each `weight` times, then the next.
    Sequence,
    /// Drawn at random, in proportion to the weights.
    Weighted,
}

impl Test {
    fn single(title: &str, payload_bytes: usize, command: Vec<u8>) -> Test {
        let operation = Operation { name: title.to_owned(), command, weight: 1 };
        Test { title: title.to_owned(), payload_bytes, operations: vec![operation], order: Order::Sequence }
    }
}

/// The value bytes of redis-benchmark 7.x: a linear congruential stream of 64 characters that
/// starts with `VXK` and goes on from round to round of `-l`.
#[derive(Debug, Clone)]
pub(crate) struct ValueStream {
    state: u32,
}

impl ValueStream {
    /// At the start of the stream.
    pub(crate) fn new() -> Self {
        ValueStream { state: 1_234 }
    }

    /// The next `bytes` bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut value = Vec::with_capacity(bytes);
        for _ in 0..bytes {
            self.state = self.state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            value.push(b'0' + ((self.state >> 16) & 63) as u8);
        }
        value
    }
}

impl Default for ValueStream {
    fn default() -> Self {
        Self::new()
    }
}

/// The tests of the default suite that `options` selects.
pub(crate) fn default_suite(options: &Options, value: &[u8]) -> Vec<Test> {
    let names = Names::new(options);
    let mut tests = Vec::new();
    let mut add = |selectors: &[&str], title: &str, words: &[&[u8]]| {
        if selectors.iter().any(|name| options.test_is_selected(name)) {
            tests.push(Test::single(title, options.value_bytes, encode(words)));
        }
    };
    let Names { key, counter, list, set, hash, zset, stream } = &names;
    let element: &[u8] = b"element:__rand_int__";
    let score: &[u8] = if options.keyspace.is_some() { b"__rand_int__" } else { b"0" };
    add(&["ping_mbulk", "ping"], "PING_MBULK", &[b"PING"]);
    add(&["set"], "SET", &[b"SET", key, value]);
    add(&["get"], "GET", &[b"GET", key]);
    add(&["incr"], "INCR", &[b"INCR", counter]);
    add(&["lpush"], "LPUSH", &[b"LPUSH", list, value]);
    add(&["rpush"], "RPUSH", &[b"RPUSH", list, value]);
    add(&["lpop"], "LPOP", &[b"LPOP", list]);
    add(&["rpop"], "RPOP", &[b"RPOP", list]);
    add(&["sadd"], "SADD", &[b"SADD", set, element]);
    add(&["hset"], "HSET", &[b"HSET", hash, element, value]);
    add(&["spop"], "SPOP", &[b"SPOP", set]);
    add(&["zadd"], "ZADD", &[b"ZADD", zset, score, element]);
    add(&["zpopmin"], "ZPOPMIN", &[b"ZPOPMIN", zset]);
    add(
        &["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"],
        "LPUSH (needed to benchmark LRANGE)",
        &[b"LPUSH", list, value],
    );
    for (selector, title, last) in LRANGES {
        add(&["lrange", selector], title, &[b"LRANGE", list, b"0", last]);
    }
    let mut mset: Vec<&[u8]> = vec![b"MSET"];
    for _ in 0..10 {
        mset.extend([key.as_slice(), value]);
    }
    add(&["mset"], "MSET (10 keys)", &mset);
    if options.tests.is_some() {
        // Valkey's test: only by name, so that the default suite stays that of Redis 7.2.
        let mut mget: Vec<&[u8]> = vec![b"MGET"];
        mget.extend([key.as_slice(); 10]);
        add(&["mget"], "MGET (10 keys)", &mget);
    }
    add(&["xadd"], "XADD", &[b"XADD", stream, b"*", b"myfield", value]);
    if options.test_is_selected("ping_inline") || options.test_is_selected("ping") {
        tests.insert(0, Test::single("PING_INLINE", options.value_bytes, b"PING\r\n".to_vec()));
    }
    tests
}

/// The test of a command line. `;` as a word of its own separates commands, and a number before
/// a command repeats it, as in Valkey; `value` stands in for `__data__`.
pub(crate) fn custom(words: &[Vec<u8>], value: &[u8]) -> Result<Test, String> {
    let shown: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    let title = shown.join(" ");
    let mut operations = Vec::new();
    for command in words.split(|word| word == b";") {
        let (repeat, command) = repeat_count(command);
        if command.is_empty() {
            return Err("a command is missing beside ';'".to_owned());
        }
        let filled: Vec<Vec<u8>> = command.iter().map(|word| replace(word, b"__data__", value)).collect();
        let name = String::from_utf8_lossy(&command[0]).to_uppercase();
        operations.push(Operation { name, command: encode(&filled), weight: repeat });
    }
    let payload_bytes = operations.first().map_or(0, |operation| operation.command.len());
    Ok(Test { title, payload_bytes, operations, order: Order::Sequence })
}

/// A mix such as `set=1,get=9`: names of the default suite with weights.
pub(crate) fn mix(text: &str, options: &Options, value: &[u8]) -> Result<Test, String> {
    let mut operations = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let weight: u32 = weight.parse().map_err(|_| format!("'{weight}' is not a weight (in '{part}')"))?;
        let only = Options { tests: Some(format!(",{},", name.to_lowercase())), ..options.clone() };
        let mut found = default_suite(&only, value);
        let Some(test) = found.pop() else {
            return Err(format!("no test is called '{name}'; see --help tests"));
        };
        for mut operation in test.operations {
            operation.name = name.to_uppercase();
            operation.weight = weight;
            operations.push(operation);
        }
    }
    if operations.iter().all(|operation| operation.weight == 0) {
        return Err(format!("the mix '{text}' sends nothing"));
    }
    operations.retain(|operation| operation.weight > 0);
    Ok(Test { title: format!("MIX {text}"), payload_bytes: options.value_bytes, operations, order: Order::Weighted })
}

/// Key names of the suite: a hash tag in cluster mode, a random part with `--spread`.
struct Names {
    key: Vec<u8>,
    counter: Vec<u8>,
    list: Vec<u8>,
    set: Vec<u8>,
    hash: Vec<u8>,
    zset: Vec<u8>,
    stream: Vec<u8>,
}

impl Names {
    fn new(options: &Options) -> Names {
        let tag = if options.cluster { ":{tag}" } else { "" };
        let prefix = &options.extended.key_prefix;
        let number = ":__rand_int__";
        let spread = if options.extended.spread { number } else { "" };
        let name = |base: &str, number: &str| format!("{prefix}{base}{tag}{number}").into_bytes();
        Names {
            key: name("key", number),
            counter: name("counter", number),
            list: name("mylist", spread),
            set: name("myset", spread),
            hash: name("myhash", spread),
            zset: name("myzset", spread),
            stream: name("mystream", spread),
        }
    }
}

fn repeat_count(command: &[Vec<u8>]) -> (u32, &[Vec<u8>]) {
    match command.split_first() {
        Some((first, rest)) if !rest.is_empty() && first.iter().all(u8::is_ascii_digit) => {
            match std::str::from_utf8(first).ok().and_then(|text| text.parse().ok()) {
                Some(count) if (1..=REPEAT_MAX).contains(&count) => (count, rest),
                _ => (1, command),
            }
        }
        _ => (1, command),
    }
}

fn replace(word: &[u8], placeholder: &[u8], value: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.windows(placeholder.len()).position(|w| w == placeholder) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(value);
        rest = &rest[at + placeholder.len()..];
    }
    result.extend_from_slice(rest);
    result
}

const REPEAT_MAX: u32 = 10_000;

const LRANGES: [(&str, &str, &[u8]); 4] = [
    ("lrange_100", "LRANGE_100 (first 100 elements)", b"99"),
    ("lrange_300", "LRANGE_300 (first 300 elements)", b"299"),
    ("lrange_500", "LRANGE_500 (first 500 elements)", b"499"),
    ("lrange_600", "LRANGE_600 (first 600 elements)", b"599"),
];

#[cfg(test)]
mod tests;
