//! What is wrong with a line while it is typed, and which fixed words may come next.
//!
//! Only finished words are judged, and only by the grammar: too few arguments are what the hint shows, not a mistake.

use commands::table::docs::ArgumentKind;
use commands::table::{CommandSpec, arity_ok};

use super::{Node, command_of, forest, join, optional_run, take_sequence};

/// What cannot be right about the finished words of a line, in a few words.
pub(in crate::interactive) fn problem(words: &[Vec<u8>]) -> Option<String> {
    let first = words.first()?;
    let Some((command, length)) = command_of(words) else {
        return unknown(first);
    };
    let typed = words.get(length..)?;
    if typed.is_empty() {
        return None;
    }
    let is_container = command.docs.arguments.is_empty() && commands::table::all().any(|other| is_part(other, command));
    if is_container && length == 1 {
        let known = commands::table::all().filter(|other| is_part(other, command)).map(CommandSpec::short_name);
        return Some(not_known(&text(typed.first()?), "subcommand", known));
    }
    // Exact arities are sure; the grammar below is looked at for the rest.
    if command.arity > 0 && !arity_ok(command, words.len()) && words.len() > usize::try_from(command.arity).unwrap_or(0)
    {
        return Some("too many arguments".to_string());
    }
    if command.docs.arguments.is_empty() || LOOSE.contains(&command.name) {
        return None;
    }
    let fits = |count: usize| {
        let mut nodes = forest(command.docs.arguments);
        let words = typed.get(..count).unwrap_or_default();
        (take_sequence(&mut nodes, words) == words.len()).then_some(nodes)
    };
    let wrong = (1..=typed.len()).find(|count| fits(*count).is_none())?;
    let expected = join(&fits(wrong - 1).unwrap_or_else(|| forest(command.docs.arguments)), " ");
    if expected.is_empty() {
        return Some("too many arguments".to_string());
    }
    Some(format!("'{}' does not fit: {expected}", text(typed.get(wrong - 1)?)))
}

/// Commands that take more than their documented grammar says, or in another order.
const LOOSE: &[&str] = &["bitfield", "bitfield_ro", "client|kill", "lolwut"];

fn is_part(other: &CommandSpec, command: &CommandSpec) -> bool {
    other.name.strip_prefix(command.name).is_some_and(|rest| rest.starts_with('|'))
}

/// A name that the table does not have; other servers may have it.
fn unknown(name: &[u8]) -> Option<String> {
    let name = text(name);
    // Numbers repeat a command, and modules have names with a dot.
    if name.contains('.') || name.starts_with(':') || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if super::super::OWN_WORDS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return None;
    }
    Some(not_known(&name, "command", commands::table::top_level().map(|command| command.name)))
}

fn not_known<'a>(name: &str, what: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = ::options::nearest(name, known).map(|near| format!("; {}?", near.to_uppercase()));
    format!("no {what} of Redis 7.2{}", near.unwrap_or_default())
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// Fixed words that may come behind the finished words of a line.
pub(in crate::interactive) fn next_tokens(words: &[Vec<u8>]) -> Vec<&'static str> {
    let mut found = Vec::new();
    let Some((command, length)) = command_of(words) else {
        return found;
    };
    let typed = words.get(length..).unwrap_or_default();
    let mut nodes = forest(command.docs.arguments);
    if !typed.is_empty() && take_sequence(&mut nodes, typed) != typed.len() {
        return found;
    }
    follow(&nodes, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// Tokens up to the first argument that must come.
fn follow(nodes: &[Node], found: &mut Vec<&'static str>) {
    let mut index = 0;
    while let Some(node) = nodes.get(index) {
        let run = optional_run(nodes, index);
        if run.is_empty() {
            if !node.complete {
                begin(node, found);
                return;
            }
            index += 1;
            continue;
        }
        if let Some(begun) = run.iter().find(|node| node.words > 0 && !node.complete && !node.argument.multiple) {
            begin(begun, found);
            return;
        }
        let passed = nodes.get(index + run.len()).is_some_and(|behind| behind.words > 0);
        if !passed {
            run.iter().filter(|node| !node.complete).for_each(|node| begin(node, found));
        }
        index += run.len();
    }
}

/// Tokens that an argument may begin or go on with.
fn begin(node: &Node, found: &mut Vec<&'static str>) {
    if let Some(token) = node.argument.token.filter(|token| !token.is_empty() && !node.token) {
        found.push(token);
        return;
    }
    match node.argument.kind {
        ArgumentKind::OneOf if node.words > 0 => {
            node.children.iter().filter(|child| child.words > 0).for_each(|child| begin(child, found));
        }
        ArgumentKind::OneOf => node.children.iter().for_each(|child| begin(child, found)),
        ArgumentKind::Block => follow(&node.children, found),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn judge(line: &str) -> Option<String> {
        problem(&resp::split_args(line.as_bytes()).unwrap())
    }

    #[test]
    fn mistakes_are_named() {
        for (line, want) in [
            ("gett a", "no command of Redis 7.2; GET?"),
            ("zzzzzz a", "no command of Redis 7.2"),
            ("get a b", "too many arguments"),
            ("config gte a", "no subcommand of Redis 7.2; GET?"),
            ("expire k soon", "'soon' does not fit: seconds [NX|XX|GT|LT]"),
            ("expire k 5 NY", "'NY' does not fit: [NX|XX|GT|LT]"),
            ("lrange l 0 end", "'end' does not fit: stop"),
            ("object freq a b", "too many arguments"),
        ] {
            assert_eq!(judge(line).as_deref(), Some(want), "{line}");
        }
    }

    /// A false alarm is worse than none.
    #[test]
    fn right_lines_are_not_blamed() {
        let mut alarms = Vec::new();
        for line in RIGHT.lines() {
            // Nor are their beginnings.
            let words = resp::split_args(line.as_bytes()).unwrap();
            let blamed = (1..=words.len()).find_map(|count| problem(&words[..count]));
            alarms.extend(blamed.map(|problem| format!("{line}: {problem}")));
        }
        assert!(alarms.is_empty(), "{}", alarms.join("\n"));
    }

    #[test]
    fn tokens_that_may_follow() {
        let after = |line: &str| next_tokens(&resp::split_args(line.as_bytes()).unwrap()).join(" ");
        assert_eq!(after("expire k 5"), "GT LT NX XX");
        assert_eq!(after("expire k"), "");
        assert_eq!(after("set k v"), "EX EXAT GET KEEPTTL NX PX PXAT XX");
        assert_eq!(after("set k v EX"), "");
        assert_eq!(after("set k v EX 5"), "GET NX XX");
        assert_eq!(after("zadd z"), "CH GT INCR LT NX XX");
        assert_eq!(after("get k"), "");
    }

    const RIGHT: &str = "get a
3 get a
json.set a . 1
set k v EX 10 GET
set k v GET NX KEEPTTL
set k v NX PXAT 12
mset a 1 b 2 c 3
zadd z NX GT CH INCR 1 a
zadd z 1 a 2.5 b -inf c +inf d
zadd z XX CH 1 a
zrange z 0 -1 REV WITHSCORES
zrange z (1 +inf BYSCORE LIMIT 0 5
zrange z - [c BYLEX
zrangebyscore z -inf (5 WITHSCORES LIMIT 0 10
zrangebylex z [a (c LIMIT 0 1
zunion 2 a b WEIGHTS 1 2 AGGREGATE MAX WITHSCORES
zunionstore d 2 a b WEIGHTS 1.5 2 AGGREGATE SUM
zinterstore d 2 a b
zmpop 2 a b MIN COUNT 3
sort l BY w_* LIMIT 0 5 GET # GET o_* DESC ALPHA STORE d
sort_ro l GET # DESC
xadd s * f v g w
xadd s MAXLEN ~ 100 * f v
xadd s NOMKSTREAM MAXLEN = 100 1-1 f v
xadd s MINID ~ 5 LIMIT 10 * f v
xread COUNT 2 BLOCK 0 STREAMS a b 0 0
xread STREAMS a $
xreadgroup GROUP g c COUNT 1 NOACK STREAMS s >
xgroup create s g $ MKSTREAM
xclaim s g c 1000 1-1 2-1 IDLE 5 FORCE JUSTID
xautoclaim s g c 0 0 COUNT 5 JUSTID
xpending s g IDLE 5 - + 10 c
xrange s - + COUNT 5
xtrim s MAXLEN ~ 10
geoadd g NX CH 13.3 38.1 a 15 37 b
geosearch g FROMLONLAT 15 37 BYRADIUS 200 km ASC COUNT 2 ANY WITHCOORD WITHDIST
geosearch g FROMMEMBER a BYBOX 400 400 km DESC
georadius g 15 37 200 km WITHDIST COUNT 3 ASC
bitfield k GET u8 0 SET u8 0 255 INCRBY i5 100 1
bitfield k OVERFLOW SAT INCRBY u2 0 1
bitcount k 0 -1 BIT
bitpos k 1 0 -1 BYTE
bitop AND d a b c
client kill ID 5 TYPE normal SKIPME yes
client kill 127.0.0.1:5
client tracking ON REDIRECT 5 PREFIX a PREFIX b BCAST NOLOOP
client reply OFF
client list TYPE normal
client list ID 1 2 3
client no-evict on
client pause 100 WRITE
config set maxmemory 1 maxclients 5
config get a* b*
migrate h 6379 k 0 5000 COPY REPLACE AUTH p
migrate h 6379 \"\" 0 5000 AUTH2 u p KEYS a b
restore k 0 \"x\" REPLACE ABSTTL IDLETIME 5 FREQ 3
scan 0 MATCH a* COUNT 100 TYPE string
hscan h 0 MATCH a* COUNT 10
eval \"return 1\" 2 a b c d
eval \"return 1\" 0
fcall f 1 k a
function load REPLACE \"#!lua name=x\"
function restore x FLUSH
lpos l a RANK -1 COUNT 0 MAXLEN 10
lmove a b LEFT RIGHT
lmpop 2 a b LEFT COUNT 2
blmpop 0 2 a b RIGHT COUNT 2
blpop a b 0
blpop a 0.5
linsert l BEFORE a b
hello 3 AUTH u p SETNAME n
auth u p
auth p
acl setuser u on >p ~* +@all
acl log RESET
acl log 5
getex k EX 5
getex k PERSIST
copy a b DB 2 REPLACE
object encoding k
memory usage k SAMPLES 5
hset h a 1 b 2
hrandfield h -5 WITHVALUES
srandmember s 3
spop s 2
flushall ASYNC
flushdb
shutdown NOSAVE NOW FORCE
failover TO h 5 FORCE ABORT TIMEOUT 5
cluster setslot 5 NODE x
cluster setslot 5 IMPORTING x
cluster failover TAKEOVER
cluster addslots 1 2 3
cluster slots
info server memory
lolwut VERSION 5 1 2
lcs a b IDX MINMATCHLEN 4 WITHMATCHLEN
lcs a b LEN
psubscribe a* b*
publish c m
pubsub numsub a b
replicaof no one
replicaof h 5
slowlog get 5
slowlog get
latency histogram a b
latency graph e
command docs get set
command list FILTERBY MODULE x
command getkeys get a
sintercard 2 a b LIMIT 5
wait 1 1000
waitaof 1 1 1000
watch a b
expire k 5 NX
expireat k 5 GT
setex k 5 v
setrange k 5 v
incrbyfloat k 1.5e3
incrby k -5
select 3
swapdb 0 1
ping
ping hello
quit
help get
peek a
connect h 5
:set hints
monitor
debug sleep 1
module list
save
bgsave SCHEDULE
type k
unlink a b
touch a b
pfadd h a b
pfcount a b
pfmerge d a b
smismember s a b
smove a b c
rename a b
persist k
dump k
randomkey
";
}
