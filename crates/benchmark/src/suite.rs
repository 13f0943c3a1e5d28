//! The tests: redis-benchmark 7.2's default suite in its order, with its titles, and tests made
//! from a command line (one command, several with `;`, or a weighted mix).

use crate::{
    dataset::Dataset,
    extended::{HashTag, OperationSettings, Ttl},
    keys::Distribution,
    options::Options,
    template::encode,
};

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
    /// Words of a command that the server needs once before.
    pub(crate) setup: Option<Vec<String>>,
}

/// One command of a test.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// Name in per-operation rows; commands of the same name share a row.
    pub(crate) name: String,
    /// The encoded request, once for each value or life of its key; at least once.
    pub(crate) forms: Vec<Form>,
    /// Times in a row, or weight of the draw.
    pub(crate) weight: u32,
    /// Key numbers of its own.
    pub(crate) keys: Option<OperationKeys>,
}

/// A command with one of the values it may carry.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    /// Encoded request.
    pub(crate) command: Vec<u8>,
    /// The value in it.
    pub(crate) value: Vec<u8>,
}

/// Key numbers of one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OperationKeys {
    /// How they are distributed; uniform if not said.
    pub(crate) distribution: Option<Distribution>,
    /// The first.
    pub(crate) low: u64,
    /// How many.
    pub(crate) span: u64,
}

/// What varies in the commands of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The value.
    pub(crate) value: Vec<u8>,
    /// How long the key lives.
    pub(crate) ttl: Option<Ttl>,
}

impl Payload {
    /// A value for keys that live for ever.
    #[cfg(test)]
    pub(crate) fn of(value: &[u8]) -> Payload {
        Payload { value: value.to_vec(), ttl: None }
    }
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
    /// Names of the rows.
    pub(crate) fn operation_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for operation in &self.operations {
            if !names.contains(&operation.name) {
                names.push(operation.name.clone());
            }
        }
        names
    }

    /// Numbers that the longest command takes.
    pub(crate) fn numbers_per_command(&self) -> u64 {
        let count = |form: &Form| form.command.windows(12).filter(|word| *word == b"__rand_int__").count() as u64;
        self.operations.iter().flat_map(|operation| &operation.forms).map(count).max().unwrap_or(0).max(1)
    }

    /// Length of the longest value.
    pub(crate) fn value_bytes_max(&self) -> usize {
        let forms = self.operations.iter().flat_map(|operation| &operation.forms);
        forms.map(|form| form.value.len()).max().unwrap_or(0)
    }

    fn single(title: &str, payload_bytes: usize, command: Vec<u8>, value: &[u8]) -> Test {
        let forms = vec![Form { command, value: value.to_vec() }];
        let operation = Operation { name: title.to_owned(), forms, weight: 1, keys: None };
        let order = Order::Sequence;
        Test { title: title.to_owned(), payload_bytes, operations: vec![operation], order, setup: None }
    }
}

/// The tests that the options ask for; each command has a form for each of the payloads.
pub(crate) fn tests(options: &Options, payloads: &[Payload], rows: Option<&Dataset>) -> Result<Vec<Test>, String> {
    let extended = &options.extended;
    if extended.mix.is_some() || !extended.operations.is_empty() {
        return Ok(vec![mix(options, payloads)?]);
    }
    merged(payloads, |payload| match options.command.as_slice() {
        [] => Ok(default_suite(options, payload)),
        words => Ok(vec![custom(words, payload, rows)?]),
    })
}

/// Values and lives as the options ask for, drawn from `values`; at least one.
pub(crate) fn payloads(sizes: &[usize], default_bytes: usize, ttls: &[Ttl], values: &mut ValueStream) -> Vec<Payload> {
    let sizes = if sizes.is_empty() { &[default_bytes] } else { sizes };
    let values: Vec<Vec<u8>> = sizes.iter().map(|size| values.take(*size)).collect();
    // As many as the longer list; both are gone through evenly.
    (0..values.len().max(ttls.len()))
        .map(|at| Payload {
            value: values[at % values.len()].clone(),
            ttl: (!ttls.is_empty()).then(|| ttls[(at * TTL_STRIDE) % ttls.len()]),
        })
        .collect()
}

/// The tests of each payload, made one list by taking their commands as forms.
fn merged(
    payloads: &[Payload],
    mut build: impl FnMut(&Payload) -> Result<Vec<Test>, String>,
) -> Result<Vec<Test>, String> {
    let mut tests: Vec<Test> = Vec::new();
    for payload in payloads {
        let more = build(payload)?;
        if tests.is_empty() {
            tests = more;
            continue;
        }
        let operations = tests.iter_mut().flat_map(|test| &mut test.operations);
        for (operation, more) in operations.zip(more.into_iter().flat_map(|test| test.operations)) {
            let known = operation.forms.first().map(|form| &form.command);
            // A command without a value is the same for all of them.
            if more.forms.first().map(|form| &form.command) != known {
                operation.forms.extend(more.forms);
            }
        }
    }
    Ok(tests)
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
pub(crate) fn default_suite(options: &Options, payload: &Payload) -> Vec<Test> {
    let value = payload.value.as_slice();
    let names = Names::new(options);
    let mut tests = Vec::new();
    let mut add = |selectors: &[&str], title: &str, words: &[&[u8]]| {
        if selectors.iter().any(|name| options.test_is_selected(name)) {
            tests.push(Test::single(title, options.value_bytes, encode(words), value));
        }
    };
    let Names { key, counter, list, set, hash, zset, stream } = &names;
    let element: &[u8] = b"element:__rand_int__";
    let score: &[u8] = if options.keyspace.is_some() { b"__rand_int__" } else { b"0" };
    add(&["ping_mbulk", "ping"], "PING_MBULK", &[b"PING"]);
    let life = payload.ttl.map(Ttl::words);
    let mut set_words: Vec<&[u8]> = vec![b"SET", key, value];
    set_words.extend(life.iter().flatten().map(String::as_bytes));
    add(&["set"], "SET", &set_words);
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
    add(&["xadd"], "XADD", &[b"XADD", stream, b"*", b"myfield", value]);
    if options.tests.is_some() {
        // Valkey's tests: only by name, so that the default suite stays that of Redis 7.2.
        let mut mget: Vec<&[u8]> = vec![b"MGET"];
        mget.extend([key.as_slice(); 10]);
        add(&["mget"], "MGET (10 keys)", &mget);
        let library = function_library(options.extended.functions);
        add(&["function_load"], "FUNCTION LOAD", &[b"FUNCTION".as_slice(), b"LOAD", b"REPLACE", library.as_bytes()]);
        let count = options.extended.function_keys.to_string();
        let mut fcall: Vec<&[u8]> = vec![b"FCALL".as_slice(), b"benchmark_0", count.as_bytes()];
        fcall.extend((0..options.extended.function_keys).map(|_| key.as_slice()));
        add(&["fcall"], "FCALL", &fcall);
        if let Some(test) = tests.iter_mut().find(|test| test.title == "FCALL") {
            test.setup = Some(["FUNCTION", "LOAD", "REPLACE", &library].map(str::to_owned).to_vec());
        }
    }
    if options.test_is_selected("ping_inline") || options.test_is_selected("ping") {
        tests.insert(0, Test::single("PING_INLINE", options.value_bytes, b"PING\r\n".to_vec(), value));
    }
    tests
}

/// Names of `-t` that no test has, each with one that may be meant. Redis says nothing of them.
pub(crate) fn unknown_tests(options: &Options) -> Vec<(String, Option<&'static str>)> {
    let names = options.tests.iter().flat_map(|tests| tests.split(','));
    let unknown = names.filter(|name| !name.is_empty() && !TEST_NAMES.contains(name));
    unknown.map(|name| (name.to_owned(), ::options::nearest(name, TEST_NAMES.iter().copied()))).collect()
}

/// What `-t` may name.
const TEST_NAMES: &[&str] = &[
    "ping",
    "ping_inline",
    "ping_mbulk",
    "set",
    "get",
    "incr",
    "lpush",
    "rpush",
    "lpop",
    "rpop",
    "sadd",
    "hset",
    "spop",
    "zadd",
    "zpopmin",
    "lrange",
    "lrange_100",
    "lrange_300",
    "lrange_500",
    "lrange_600",
    "mset",
    "xadd",
    "mget",
    "function_load",
    "fcall",
];

/// The test of a command line. `;` as a word of its own separates commands, and a number before
/// a command repeats it, as in Valkey; `value` stands in for `__data__`.
pub(crate) fn custom(words: &[Vec<u8>], payload: &Payload, rows: Option<&Dataset>) -> Result<Test, String> {
    let shown: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    let title = shown.join(" ");
    let seconds = payload.ttl.map(|ttl| ttl.ms.div_ceil(1_000).to_string());
    let mut operations = Vec::new();
    let row_count = rows.map_or(1, Dataset::len);
    for row in 0..row_count {
        for command in words.split(|word| word == b";") {
            let (repeat, command) = repeat_count(command);
            let Some(name) = command.first() else {
                return Err("a command is missing beside ';'".to_owned());
            };
            let mut filled: Vec<Vec<u8>> = Vec::with_capacity(command.len());
            for word in command {
                let mut word = replace(word, b"__data__", &payload.value);
                if let Some(seconds) = &seconds {
                    word = replace(&word, b"__ttl__", seconds.as_bytes());
                }
                filled.push(match rows {
                    Some(rows) => rows.fill(&word, row)?,
                    None => word,
                });
            }
            let forms = vec![Form { command: encode(&filled), value: payload.value.clone() }];
            let name = String::from_utf8_lossy(name).to_uppercase();
            operations.push(Operation { name, forms, weight: repeat, keys: None });
        }
    }
    let payload_bytes = operations.first().map_or(0, |operation| operation.forms[0].command.len());
    Ok(Test { title, payload_bytes, operations, order: Order::Sequence, setup: None })
}

/// The frame of recorded commands: their names have rows, their bytes come from the record.
pub(crate) fn recorded(title: &str, names: &[String]) -> Test {
    let operations =
        names.iter().map(|name| Operation { name: name.clone(), forms: Vec::new(), weight: 1, keys: None });
    let operations = operations.collect();
    Test { title: title.to_owned(), payload_bytes: 0, operations, order: Order::Sequence, setup: None }
}

/// A mix such as `set=1,get=9`: names of the suite with weights, and operations with settings of their own.
pub(crate) fn mix(options: &Options, payloads: &[Payload]) -> Result<Test, String> {
    let text = options.extended.mix.as_deref().unwrap_or_default();
    let mut operations = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let weight: u32 = weight.parse().map_err(|_| format!("'{weight}' is not a weight (in '{part}')"))?;
        operations.push(mix_operation(name, weight, &[], options, payloads)?);
    }
    let mut title = text.to_owned();
    let mut stream = ValueStream::new();
    for own in &options.extended.operations {
        let has_own = !own.sizes.is_empty() || !own.ttls.is_empty();
        let own_payloads = payloads_of(own, options, &mut stream);
        let payloads = if has_own { &own_payloads } else { payloads };
        let mut operation = mix_operation(&own.name, own.weight, &own.command, options, payloads)?;
        operation.keys = keys_of(own, options)?;
        operations.push(operation);
        let separator = if title.is_empty() { "" } else { "," };
        title.push_str(&format!("{separator}{}={}", own.name, own.weight));
    }
    if operations.iter().all(|operation| operation.weight == 0) {
        return Err(format!("the mix '{title}' sends nothing"));
    }
    operations.retain(|operation| operation.weight > 0);
    let title = format!("MIX {title}");
    Ok(Test { title, payload_bytes: options.value_bytes, operations, order: Order::Weighted, setup: None })
}

fn mix_operation(
    name: &str,
    weight: u32,
    command: &[String],
    options: &Options,
    payloads: &[Payload],
) -> Result<Operation, String> {
    let words: Vec<Vec<u8>> = command.iter().map(|word| word.as_bytes().to_vec()).collect();
    let only = Options { tests: Some(format!(",{},", name.to_lowercase())), ..options.clone() };
    let found = merged(payloads, |payload| match words.as_slice() {
        [] => Ok(default_suite(&only, payload)),
        words => Ok(vec![custom(words, payload, None)?]),
    })?;
    let operation = found.into_iter().next_back().and_then(|test| test.operations.into_iter().next());
    let Some(operation) = operation else {
        return Err(format!("no test is called '{name}'; see --help tests"));
    };
    Ok(Operation { name: name.to_uppercase(), weight, ..operation })
}

fn payloads_of(own: &OperationSettings, options: &Options, stream: &mut ValueStream) -> Vec<Payload> {
    let sizes = if own.sizes.is_empty() { &options.extended.sizes } else { &own.sizes };
    let ttls = if own.ttls.is_empty() { &options.extended.ttls } else { &own.ttls };
    payloads(sizes, options.value_bytes, ttls, stream)
}

/// Key numbers of an operation, where it says something about them.
fn keys_of(own: &OperationSettings, options: &Options) -> Result<Option<OperationKeys>, String> {
    if own.keys.is_none() && own.key_min.is_none() && own.key_max.is_none() {
        return Ok(None);
    }
    let low = own.key_min.unwrap_or(options.extended.key_min);
    let span = match own.key_max.or(options.extended.key_max) {
        Some(max) => max.saturating_sub(low).saturating_add(1),
        None => options.keyspace.ok_or_else(|| format!("--op {}: its keys need a key-max, or -r", own.name))?,
    };
    Ok(Some(OperationKeys { distribution: own.keys.or(options.extended.keys), low, span }))
}

/// A library of functions that give their first key back.
fn function_library(functions: u64) -> String {
    let mut library = String::from("#!lua name=oxidis_benchmark\n");
    library.push_str("local function first_key(keys, args) return keys[1] or '' end\n");
    for number in 0..functions {
        library.push_str(&format!("redis.register_function('benchmark_{number}', first_key)\n"));
    }
    library
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
        let is_tagged = options.cluster || options.extended.hash_tag == Some(HashTag::Spread);
        let tag = if is_tagged { ":{tag}" } else { "" };
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

/// Step through the lives while the sizes are gone through one by one, so that each size meets many lives.
const TTL_STRIDE: usize = 7;

const REPEAT_MAX: u32 = 10_000;

const LRANGES: [(&str, &str, &[u8]); 4] = [
    ("lrange_100", "LRANGE_100 (first 100 elements)", b"99"),
    ("lrange_300", "LRANGE_300 (first 300 elements)", b"299"),
    ("lrange_500", "LRANGE_500 (first 500 elements)", b"499"),
    ("lrange_600", "LRANGE_600 (first 600 elements)", b"599"),
];

#[cfg(test)]
mod tests;
