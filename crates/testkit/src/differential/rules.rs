//! How the replies of a command are compared: byte for byte unless Redis itself leaves
//! something open, such as the order of a set's members.

use super::scripts;
use crate::Reply;

/// How two replies to one command are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Byte for byte.
    Exact,
    /// As multisets of elements.
    Unordered,
    /// As multisets of pairs of elements.
    UnorderedPairs,
    /// Equal kinds of reply; errors byte for byte.
    Kind,
    /// Integers at most this far apart, unless one is negative.
    Near(i64),
    /// Equal lengths: the order that decides which elements come is open.
    Length,
    /// Random choice of members, each of which `probe` must find.
    Random(Probe),
    /// Random removal of members; both servers then lose what the other one took.
    Pop,
    /// An iteration: both are run to the end and compared as sets.
    Scan,
    /// A serialized value: compared by what each server makes of the other's.
    Dump,
    /// The order of channels is open.
    Unsubscribe,
    /// Byte for byte but for times and how long ago something was.
    Times,
    /// As [`Times`](Self::Times); the consumer that it names is there afterwards, whatever it found.
    Claim,
}

/// How a randomly chosen element is looked up in the other server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// A member of a set.
    Set,
    /// A field of a hash.
    Hash,
    /// A member of a sorted set.
    SortedSet,
    /// A key of the database.
    Key,
}

/// The rule for a command.
pub fn rule_of(args: &[Vec<u8>]) -> Rule {
    if let Some(inner) = scripts::inner(args) {
        return within(rule_of(inner));
    }
    let word = |index: usize| {
        let bytes = args.get(index).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(bytes).to_ascii_uppercase()
    };
    match word(0).as_str() {
        // Help texts are each server's own.
        _ if word(1) == "HELP" => Rule::Kind,
        "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "KEYS" | "HKEYS" | "HVALS" => Rule::Unordered,
        "HGETALL" => Rule::UnorderedPairs,
        "TTL" => Rule::Near(1),
        "PTTL" => Rule::Near(2_000),
        "EXPIRETIME" => Rule::Near(1),
        "PEXPIRETIME" => Rule::Near(2_000),
        "SRANDMEMBER" => Rule::Random(Probe::Set),
        "HRANDFIELD" => Rule::Random(Probe::Hash),
        "ZRANDMEMBER" => Rule::Random(Probe::SortedSet),
        "RANDOMKEY" => Rule::Random(Probe::Key),
        "SPOP" => Rule::Pop,
        "SLOWLOG" | "LATENCY" => Rule::Kind,
        "SCAN" | "SSCAN" | "HSCAN" | "ZSCAN" => Rule::Scan,
        "DUMP" => Rule::Dump,
        "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" if args.len() == 1 => Rule::Unsubscribe,
        "TIME" | "HELLO" | "LOLWUT" => Rule::Kind,
        "SORT" | "SORT_RO" => sort_rule(args),
        "PUBSUB" if matches!(word(1).as_str(), "CHANNELS" | "SHARDCHANNELS") => Rule::Unordered,
        "PUBSUB" | "PUBLISH" => Rule::Exact,
        "OBJECT" if matches!(word(1).as_str(), "IDLETIME" | "REFCOUNT" | "FREQ") => Rule::Kind,
        "MEMORY" if word(1) == "USAGE" => Rule::Kind,
        "CLIENT" if matches!(word(1).as_str(), "ID" | "INFO" | "LIST") => Rule::Kind,
        "COMMAND" if matches!(word(1).as_str(), "COUNT" | "LIST" | "DOCS" | "INFO") => Rule::Kind,
        "COMMAND" if args.len() == 1 => Rule::Kind,
        "DEBUG" if word(1) == "OBJECT" => Rule::Kind,
        "CONFIG" if word(1) == "GET" => Rule::UnorderedPairs,
        "XPENDING" | "XINFO" => Rule::Times,
        "XREADGROUP" | "XCLAIM" | "XAUTOCLAIM" => Rule::Claim,
        "FUNCTION" if matches!(word(1).as_str(), "STATS" | "DUMP" | "LIST") => Rule::Kind,
        "ACL" if matches!(word(1).as_str(), "USERS" | "CAT") => Rule::Unordered,
        "ACL" if matches!(word(1).as_str(), "GENPASS" | "LOG") => Rule::Kind,
        _ => Rule::Exact,
    }
}

/// Where nothing more can be asked: within EXEC and within a script.
pub fn within(rule: Rule) -> Rule {
    match rule {
        Rule::Random(_) => Rule::Length,
        rule => rule,
    }
}

/// SORT leaves two orders open: a set's own when it is not to be sorted, and that of elements
/// with equal weights when these are compared as texts.
fn sort_rule(args: &[Vec<u8>]) -> Rule {
    let has = |word: &str| args.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let unsorted = args.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(b"BY") && !pair[1].contains(&b'*'));
    if has("STORE") || !(unsorted || has("ALPHA")) {
        Rule::Exact
    } else if has("LIMIT") || has("GET") {
        Rule::Length
    } else {
        Rule::Unordered
    }
}

/// Whether two correct servers may come to hold different values: SORT ... STORE where the order
/// is open, and LSET past 32 bits, where Redis 7.2 cuts the index.
pub fn leaves_state_open(args: &[Vec<u8>]) -> bool {
    let index = args.get(2).and_then(|index| std::str::from_utf8(index).ok()?.parse::<i64>().ok());
    // An id of the server's own time.
    if args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"XADD")) && args.iter().any(|arg| arg == b"*") {
        return true;
    }
    if args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"LSET")) {
        return index.is_some_and(|index| i32::try_from(index).is_err());
    }
    let has = |word: &str| args.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"SORT")) && has("STORE") && has("ALPHA") && has("BY")
}

/// Whether the command asks for an order by member of a sorted set that may hold several
/// scores: what comes then depends on how the skip list happens to be linked.
pub fn asks_lex_order_of_scores(args: &[Vec<u8>]) -> bool {
    let is_lex = |arg: &Vec<u8>| arg.to_ascii_uppercase().windows(3).any(|part| part == b"LEX");
    let by_name = args.first().is_some_and(is_lex);
    let by_option = args.iter().any(|arg| arg.eq_ignore_ascii_case(b"BYLEX"));
    (by_name || by_option) && !args.iter().skip(1).take(2).any(|key| key.starts_with(b"lex"))
}

/// Redis 7.2 keeps the error of a failed authentication back while earlier replies are pending,
/// which leaves a transaction's reply short: such commands are sent alone, and not in MULTI.
pub fn authenticates(args: &[Vec<u8>]) -> bool {
    args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"AUTH") || name.eq_ignore_ascii_case(b"HELLO"))
}

/// Whether Redis 7.0 refuses the command by its count of arguments and 7.2 does not: in MULTI
/// that decides whether the whole transaction is discarded.
pub fn differs_when_queued(args: &[Vec<u8>]) -> bool {
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match name.as_slice() {
        b"COMMAND" => args.len() == 3,
        b"ZRANK" | b"ZREVRANK" => args.len() == 4,
        _ => false,
    }
}

/// Whether the command may wait for others.
pub fn may_wait(args: &[Vec<u8>]) -> bool {
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    if name.starts_with(b"XREAD") {
        return args.iter().any(|arg| arg.eq_ignore_ascii_case(b"BLOCK"));
    }
    matches!(
        name.as_slice(),
        b"BLPOP" | b"BRPOP" | b"BLMOVE" | b"BRPOPLPUSH" | b"BLMPOP" | b"BZPOPMIN" | b"BZPOPMAX" | b"BZMPOP" | b"WAIT"
    )
}

/// Whether the command changes which channels the connection listens to.
pub fn subscribes(args: &[Vec<u8>]) -> bool {
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    matches!(
        name.as_slice(),
        b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" | b"SUNSUBSCRIBE"
    )
}

/// Compares two replies without asking the servers anything more.
///
/// # Errors
/// What differs.
pub fn compare(rule: Rule, subject: &Reply, peer: &Reply) -> Result<(), String> {
    if subject == peer {
        return Ok(());
    }
    let equal = match (rule, subject, peer) {
        (_, Reply::Error(_), _) | (_, _, Reply::Error(_)) => false,
        (Rule::Unordered, a, b) => sorted(a, 1) == sorted(b, 1) && same_kind(a, b),
        (Rule::UnorderedPairs, Reply::Map(a), Reply::Map(b)) => {
            let (mut a, mut b) = (a.clone(), b.clone());
            a.sort();
            b.sort();
            a == b
        }
        (Rule::UnorderedPairs, a, b) => sorted(a, 2) == sorted(b, 2) && same_kind(a, b),
        (Rule::Near(gap), Reply::Integer(a), Reply::Integer(b)) => {
            *a >= 0 && *b >= 0 && a.abs_diff(*b) <= gap.unsigned_abs()
        }
        (Rule::Kind | Rule::Dump | Rule::Pop, a, b) => same_kind(a, b),
        (Rule::Length | Rule::Random(_), a, b) => {
            same_kind(a, b) && a.items().map(<[Reply]>::len) == b.items().map(<[Reply]>::len)
        }
        (Rule::Scan, Reply::Array(a), Reply::Array(b)) => a.len() == b.len(),
        (Rule::Unsubscribe, a, b) => same_kind(a, b),
        (Rule::Times | Rule::Claim, a, b) => timeless(a) == timeless(b),
        _ => false,
    };
    if equal { Ok(()) } else { Err(String::from("the replies differ")) }
}

/// A reply without what depends on when it was asked for: fields of that kind, integers that are unix times in
/// milliseconds, and the idle time of a pending entry (id, consumer, idle time, deliveries).
fn timeless(reply: &Reply) -> Reply {
    const FIELDS: [&[u8]; 4] = [b"idle", b"inactive", b"seen-time", b"active-time"];
    const LONG_AGO_MS: i64 = 1_000_000_000_000;
    let is_time = |field: &Reply| field.bytes().is_some_and(|name| FIELDS.contains(&name));
    match reply {
        Reply::Integer(time) if *time > LONG_AGO_MS => Reply::Integer(0),
        Reply::Map(pairs) => Reply::Map(
            pairs.iter().filter(|(field, _)| !is_time(field)).map(|(a, b)| (timeless(a), timeless(b))).collect(),
        ),
        Reply::Array(items) => {
            let mut kept = Vec::new();
            let mut at = 0;
            while let Some(item) = items.get(at) {
                if is_time(item) && matches!(items.get(at + 1), Some(Reply::Integer(_))) {
                    at += 2;
                    continue;
                }
                let is_idle = items.len() == 4 && at == 2 && items.get(1).is_some_and(|name| name.bytes().is_some());
                kept.push(if is_idle && item.integer().is_some() { Reply::Integer(0) } else { timeless(item) });
                at += 1;
            }
            Reply::Array(kept)
        }
        other => other.clone(),
    }
}

fn same_kind(a: &Reply, b: &Reply) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// The elements in groups of `size`, sorted: what is left of a reply whose order is open.
pub fn sorted(reply: &Reply, size: usize) -> Vec<Vec<Reply>> {
    let items = reply.items().unwrap_or(&[]);
    let mut groups: Vec<Vec<Reply>> = items.chunks(size).map(<[Reply]>::to_vec).collect();
    groups.sort();
    groups
}

/// Whether two replies are the same but for how the digits of doubles are written. Redis 7.2
/// writes the shortest digits that read back as the same double, 7.0 seventeen digits.
pub fn same_doubles(subject: &Reply, peer: &Reply) -> bool {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    match (subject, peer) {
        (Reply::Bulk(a), Reply::Bulk(b)) | (Reply::Double(a), Reply::Double(b)) => {
            a == b || matches!((number(a), number(b)), (Some(a), Some(b)) if a == b)
        }
        (a, b) => match (a.items(), b.items()) {
            (Some(x), Some(y)) => {
                same_kind(a, b) && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_doubles(x, y))
            }
            _ => a == b,
        },
    }
}
