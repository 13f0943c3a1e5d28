//! What a run should not do unasked: write to other machines, empty databases; and what a reader of its figures should know
//! before. redis-benchmark's own ways of use are left as they are.

use crate::{
    extended::is_loopback_name,
    preflight::{Address, Server},
    report::Configuration,
    run::tell,
    session::Session,
    suite::{Form, Test},
};

/// Refuses what needs `--yes`. The error is a sentence for stderr.
pub(crate) fn check(session: &Session, tests: &[Test]) -> Result<(), String> {
    let extended = &session.options.extended;
    if !extended.is_used || extended.yes {
        return Ok(());
    }
    let words: Vec<String> = tests.iter().flat_map(words_of).collect();
    if let Some(word) = words.iter().find(|word| EMPTYING.contains(&word.as_str())) {
        return Err(format!("{word} deletes what others have stored: add --yes if that is meant"));
    }
    let writing = words.iter().find(|word| !READING.contains(&word.as_str()));
    let foreign = session.servers().iter().find(|server| !is_here(server));
    if let (Some(word), Some(server)) = (writing, foreign) {
        return Err(format!(
            "{word} would write to {}, which is not this machine: add --yes if that is meant",
            server.name
        ));
    }
    Ok(())
}

/// Tells on stderr what the figures will not mean.
pub(crate) fn notes(session: &Session, tests: &[Test]) {
    let options = &session.options;
    let is_proxy = session.servers().len() > 1 || matches!(session.configuration, Configuration::Standalone(None));
    if options.cluster || options.extended.spread || !is_proxy {
        return;
    }
    let names: Vec<&str> =
        tests.iter().filter(|test| has_one_key(test)).map(|test| test.title.split(' ').next().unwrap_or("")).collect();
    if !names.is_empty() {
        tell(format_args!(
            "NOTE: {} send everything to one key, so one server behind a proxy is measured: add --spread and -r",
            names.join(", ")
        ));
    }
}

/// The name of a request's command, upper case.
pub(crate) fn command_word(form: &Form) -> String {
    let word = match form.command.first() {
        Some(b'*') => form.command.split(|byte| *byte == b'\n').nth(2).unwrap_or_default(),
        _ => form.command.split(|byte| *byte == b' ').next().unwrap_or_default(),
    };
    String::from_utf8_lossy(word.trim_ascii_end()).to_uppercase()
}

/// Whether a command changes nothing.
pub(crate) fn is_reading(word: &str) -> bool {
    READING.contains(&word)
}

fn words_of(test: &Test) -> Vec<String> {
    let forms = test.operations.iter().flat_map(|operation| {
        // The commands of a record are known by name only.
        let names = if operation.forms.is_empty() { vec![operation.name.clone()] } else { Vec::new() };
        names.into_iter().chain(operation.forms.iter().take(1).map(command_word))
    });
    forms.collect()
}

fn has_one_key(test: &Test) -> bool {
    let forms = test.operations.iter().filter_map(|operation| operation.forms.first());
    let mut keys = forms.filter(|form| ONE_KEY.contains(&command_word(form).as_str())).map(|form| {
        let key = form.command.split(|byte| *byte == b'\n').nth(4).unwrap_or_default();
        key.windows(12).any(|window| window == b"__rand_int__")
    });
    keys.next().is_some_and(|has_number| !has_number)
}

fn is_here(server: &Server) -> bool {
    match &server.address {
        Address::Unix(_) => true,
        Address::Tcp(address) => {
            address.ip().is_loopback() || is_loopback_name(server.name.rsplit_once(':').map_or("", |(host, _)| host))
        }
    }
}

const EMPTYING: &[&str] = &["FLUSHALL", "FLUSHDB", "SWAPDB", "SHUTDOWN", "REPLICAOF", "SLAVEOF", "FAILOVER"];

const ONE_KEY: &[&str] =
    &["LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "SPOP", "HSET", "ZADD", "ZPOPMIN", "LRANGE", "XADD"];

const READING: &[&str] = &[
    "PING",
    "ECHO",
    "TIME",
    "COMMAND",
    "INFO",
    "SELECT",
    "GET",
    "MGET",
    "STRLEN",
    "GETRANGE",
    "EXISTS",
    "TYPE",
    "TTL",
    "PTTL",
    "SCAN",
    "KEYS",
    "DBSIZE",
    "RANDOMKEY",
    "TOUCH",
    "OBJECT",
    "DUMP",
    "LRANGE",
    "LLEN",
    "LINDEX",
    "LPOS",
    "HGET",
    "HMGET",
    "HGETALL",
    "HLEN",
    "HKEYS",
    "HVALS",
    "HEXISTS",
    "HSCAN",
    "HRANDFIELD",
    "HSTRLEN",
    "SISMEMBER",
    "SMISMEMBER",
    "SMEMBERS",
    "SCARD",
    "SINTER",
    "SINTERCARD",
    "SUNION",
    "SDIFF",
    "SSCAN",
    "SRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZREVRANGE",
    "ZSCORE",
    "ZMSCORE",
    "ZCARD",
    "ZCOUNT",
    "ZRANK",
    "ZREVRANK",
    "ZSCAN",
    "XRANGE",
    "XREVRANGE",
    "XLEN",
    "XREAD",
    "GETBIT",
    "BITCOUNT",
    "BITPOS",
    "PFCOUNT",
    "GEOPOS",
    "GEODIST",
    "GEOSEARCH",
    "FCALL_RO",
    "EVAL_RO",
    "EVALSHA_RO",
    "LOLWUT",
    "ACL",
    "CLUSTER",
    "MEMORY",
    "SLOWLOG",
    "LATENCY",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::encode;

    fn form(command: Vec<u8>) -> Form {
        Form { command, value: Vec::new() }
    }

    #[test]
    fn the_first_word_of_a_request() {
        assert_eq!(command_word(&form(encode(&["set", "a", "b"]))), "SET");
        assert_eq!(command_word(&form(b"PING\r\n".to_vec())), "PING");
        assert_eq!(command_word(&form(b"get x\r\n".to_vec())), "GET");
        assert!(is_reading("GET") && !is_reading("SET") && !is_reading("FUNCTION"));
    }
}
