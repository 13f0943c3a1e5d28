//! Scripts and functions over sockets: the same replies as Redis, byte for byte; busy scripts; locks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "scripting/busy.rs"]
mod busy;
#[path = "scripting/locks.rs"]
mod locks;
#[path = "scripting/scripts.rs"]
mod scripts;

use testkit::{Client, Server};

/// What 7.2 does otherwise than the peer, Redis 7.0: parts of scripts that are not compared.
///
/// 7.2 writes the shortest digits of a double, lets scripts call blocking commands, keeps `newproxy`, `getfenv` and
/// `setfenv`, and has other encodings.
const NEWER: &[&str] = &[
    "1/3}",
    "'incrbyfloat'",
    "0.1 + 0.2",
    "2^63",
    "'blpop'",
    "'encoding'",
    "'debug'",
    "'wait'",
    "newproxy",
    "fenv",
    "pairs(_G)",
    "redis.set_repl()",
    // Called last, a function of our sandbox has lost sight of the caller's line.
    "return next({}, 'x')",
    // The text is thrown there, returned here.
    "load(function() return {}",
];

/// The reply as text, addresses taken out.
fn shown(client: &mut Client, args: &[&str]) -> String {
    let reply = format!("{:?}", client.call(args).unwrap());
    let mut text = String::new();
    let mut rest = reply.as_str();
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].chars().take_while(char::is_ascii_hexdigit).count();
        text.push_str(&rest[..at]);
        text.push_str(if digits > 6 { "ADDRESS" } else { &rest[at..at + 2 + digits] });
        rest = &rest[at + 2 + digits..];
    }
    text + rest
}

#[test]
fn scripts_answer_as_redis_does() {
    let ours = Server::oxidis(&["--io-threads", "2"]);
    let theirs = Server::redis(&[]);
    let mut differences = Vec::new();
    for protocol in [2, 3] {
        let (mut our, mut their) = (ours.client(), theirs.client());
        our.hello(protocol);
        their.hello(protocol);
        our.run("FLUSHALL");
        their.run("FLUSHALL");
        let lines = scripts::SCRIPTS.lines().filter(|line| !line.is_empty() && !line.starts_with("-- "));
        for script in lines
            .chain(scripts::LONG_SCRIPTS.iter().copied())
            .filter(|script| !NEWER.iter().any(|newer| script.contains(newer)))
        {
            let args = ["EVAL", script, "2", "k1", "k2", "a1", "7", "-3.5"];
            let (our, their) = (shown(&mut our, &args), shown(&mut their, &args));
            if our != their {
                differences.push(format!("RESP{protocol} {script}\n   ours: {our}\n  redis: {their}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn commands_answer_as_redis_does() {
    const LIBRARY: &str = "#!lua name=lib\nlocal function get(keys, args) return redis.call('get', keys[1]) end\nlocal function put(keys, args) return redis.call('set', keys[1], args[1]) end\nredis.register_function('put', put)\nredis.register_function{function_name='get', callback=get, flags={'no-writes'}, description='reads'}";
    const ONE: &str = "#!lua name=one\nredis.register_function('one', function() return 1 end)";
    const SHA1: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    const CALLS: &[&[&str]] = &[
        &["EVAL"],
        &["EVAL", "return 1"],
        &["EVAL", "return 1", "x"],
        &["EVAL", "return 1", "-1"],
        &["EVAL", "return 1", "1"],
        &["EVAL", "return 1", "99999999999999999999"],
        &["EVALSHA", "x", "0"],
        &["EVALSHA", SHA1, "x"],
        &["EVALSHA", SHA1, "0"],
        &["SCRIPT", "EXISTS", SHA1],
        &["EVAL", "return 1", "0"],
        &["EVALSHA", SHA1, "0"],
        &["EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"],
        &["EVALSHA_RO", SHA1, "0"],
        &["SCRIPT", "EXISTS", SHA1, "nope", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"],
        &["SCRIPT", "EXISTS"],
        &["SCRIPT", "LOAD", "return 2"],
        &["SCRIPT", "LOAD", "if"],
        &["SCRIPT", "LOAD", "#!lua flags=x\n"],
        &["SCRIPT", "LOAD"],
        &["SCRIPT", "NOPE"],
        &["SCRIPT"],
        &["SCRIPT", "KILL"],
        &["SCRIPT", "FLUSH", "NOPE"],
        &["SCRIPT", "FLUSH", "SYNC", "X"],
        &["SCRIPT", "FLUSH", "ASYNC"],
        &["SCRIPT", "EXISTS", SHA1],
        &["SCRIPT", "DEBUG", "NO"],
        &["SCRIPT", "DEBUG", "NOPE"],
        &["SCRIPT", "HELP"],
        &["EVAL_RO", "return redis.call('set', KEYS[1], 'v')", "1", "k"],
        &["EVAL_RO", "return redis.call('get', KEYS[1])", "1", "k"],
        &["EVAL_RO", "return redis.pcall('publish', 'a', 'b')", "0"],
        &["EVAL_RO", "#!lua\nreturn 1", "0"],
        &["EVAL_RO", "#!lua flags=no-writes\nreturn 1", "0"],
        &["COMMAND", "GETKEYS", "EVAL", "return 1", "2", "a", "b", "c"],
        &["COMMAND", "GETKEYS", "EVAL", "return 1", "0"],
        &["COMMAND", "GETKEYS", "FCALL", "f", "1", "a", "b"],
        &["FUNCTION"],
        &["FUNCTION", "NOPE"],
        &["FUNCTION", "LIST"],
        &["FUNCTION", "STATS"],
        &["FUNCTION", "LOAD"],
        &["FUNCTION", "LOAD", "return 1"],
        &["FUNCTION", "LOAD", "#!lua\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=a b\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=a name=b\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=bad-name\nreturn 1"],
        &["FUNCTION", "LOAD", "#!js name=x\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=x"],
        &["FUNCTION", "LOAD", "#!lua name=x\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=x\nif"],
        &["FUNCTION", "LOAD", "#!lua name=x\nerror('at load')"],
        &["FUNCTION", "LOAD", "#!lua name=x\nerror({err = 'table'})"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.call('ping')"],
        &["FUNCTION", "LOAD", "#!lua name=x\nlocal y = string.rep('x', 2)"],
        &["FUNCTION", "LOAD", "#!lua name=x\nglobal = 1"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function()"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('a')"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('a', 1)"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function({}, function() end)"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('a', function() end, 1)"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{callback = function() end}"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{function_name = 'a'}"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{function_name = 'a', callback = 1}"],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function{function_name = 'a', nope = 1}"],
        &[
            "FUNCTION",
            "LOAD",
            "#!lua name=x\nredis.register_function{function_name = 'a', callback = function() end, flags = 1}",
        ],
        &[
            "FUNCTION",
            "LOAD",
            "#!lua name=x\nredis.register_function{function_name = 'a', callback = function() end, flags = {'nope'}}",
        ],
        &["FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('bad-name', function() end)"],
        &[
            "FUNCTION",
            "LOAD",
            "#!lua name=x\nlocal f = function() end redis.register_function('a', f) redis.register_function('a', f)",
        ],
        &["FUNCTION", "LOAD", LIBRARY],
        &["FUNCTION", "LOAD", LIBRARY],
        &["FUNCTION", "LOAD", "REPLACE", LIBRARY],
        &["FUNCTION", "LOAD", "NOPE", LIBRARY],
        &["FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('put', function() end)"],
        &["FUNCTION", "LIST", "LIBRARYNAME", "nope*"],
        &["FUNCTION", "LIST", "LIBRARYNAME"],
        &["FUNCTION", "LIST", "NOPE"],
        &["FUNCTION", "STATS"],
        &["FCALL", "put", "1", "k", "value"],
        &["FCALL", "get", "1", "k"],
        &["FCALL_RO", "get", "1", "k"],
        &["FCALL_RO", "put", "1", "k", "value"],
        &["FCALL", "nope", "0"],
        &["FCALL", "get", "x"],
        &["FCALL", "get", "5", "k"],
        &["FCALL", "get", "-1"],
        &["FCALL", "put", "0"],
        &["FCALL", "get", "1", "{k}list"],
        &["FUNCTION", "DELETE", "nope"],
        &["FUNCTION", "DELETE", "lib"],
        &["FUNCTION", "DELETE", "lib"],
        &["FCALL", "get", "1", "k"],
        &["FUNCTION", "LOAD", ONE],
        &["FUNCTION", "LIST", "WITHCODE", "LIBRARYNAME", "*"],
        &["FUNCTION", "DUMP"],
        &["FUNCTION", "RESTORE", "nope"],
        &["FUNCTION", "RESTORE"],
        &["FUNCTION", "RESTORE", "x", "NOPE"],
        &["FUNCTION", "FLUSH", "NOPE"],
        &["FUNCTION", "FLUSH", "SYNC"],
        &["FUNCTION", "LIST"],
        &["FUNCTION", "KILL"],
        &["FUNCTION", "HELP"],
    ];
    let ours = Server::oxidis(&["--io-threads", "2"]);
    let theirs = Server::redis(&[]);
    let mut differences = Vec::new();
    for protocol in [2, 3] {
        let (mut our, mut their) = (ours.client(), theirs.client());
        our.hello(protocol);
        their.hello(protocol);
        for args in CALLS {
            let (our, their) = (shown(&mut our, args), shown(&mut their, args));
            if our != their && !is_known_difference(args) {
                differences.push(format!("RESP{protocol} {args:?}\n   ours: {our}\n  redis: {their}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// HELP in words of our own; the RDB version in a dump's footer.
fn is_known_difference(args: &[&str]) -> bool {
    matches!(args, [_, "HELP"] | [_, "DUMP"])
}

#[test]
fn dumped_functions_are_restored() {
    let ours = Server::oxidis(&[]);
    let theirs = Server::redis(&[]);
    let library: &[u8] = b"#!lua name=lib\nredis.register_function('f', function(keys, args) return args[1] end)";
    let (mut our, mut their) = (ours.client(), theirs.client());
    assert_eq!(their.call(&[b"FUNCTION", &b"LOAD"[..], library]).unwrap().text(), "lib");
    let dump = their.run("FUNCTION DUMP");
    let payload = dump.bytes().unwrap();
    assert_eq!(our.call(&[b"FUNCTION", &b"RESTORE"[..], payload]).unwrap().text(), "OK");
    our.check("FCALL f 0 hello", "hello");
    let refused = our.call(&[b"FUNCTION", &b"RESTORE"[..], payload]).unwrap();
    assert_eq!(refused.text(), "ERR Library lib already exists");
    for policy in [&b"REPLACE"[..], b"FLUSH"] {
        assert_eq!(our.call(&[b"FUNCTION", &b"RESTORE"[..], payload, policy]).unwrap().text(), "OK");
    }
    our.check("FCALL f 0 hello; FUNCTION FLUSH; FCALL f 0 x", "hello; +OK; -ERR Function not found");
    let again = our.call(&[b"FUNCTION", &b"RESTORE"[..], payload]).unwrap();
    assert_eq!(again.text(), "OK");
    // Ours differs in the footer's version at most.
    let dump = our.run("FUNCTION DUMP");
    assert_eq!(dump.bytes().map(|ours| &ours[..ours.len() - 10]), Some(&payload[..payload.len() - 10]));
}

#[test]
fn the_script_s_surroundings() {
    let server = Server::oxidis(&["--io-threads", "2"]);
    let mut client = server.client();
    client.check(
        "SELECT 2; EVAL \"return redis.call('set', KEYS[1], 1)\" 1 k; SELECT 0; EXISTS k; SELECT 2; EXISTS k",
        "+OK; +OK; +OK; :0; +OK; :1",
    );
    client.check(
        "EVAL \"return redis.call('select', 5)\" 0; SET here 1; SELECT 2; EXISTS here; SELECT 0",
        "+OK; +OK; +OK; :1; +OK",
    );
    // Within MULTI, with what stands before it.
    client.check(
        "MULTI; SET a 1; EVAL \"return redis.call('incr', KEYS[1])\" 1 a; EVAL \"return redis.call('get', 'undeclared')\" 0; EXEC",
        "+OK; +QUEUED; +QUEUED; +QUEUED; [+OK :2 nil]",
    );
    client.check(
        "MULTI; EVAL \"return redis.call('flushall')\" 0; EVAL \"return redis.call('dbsize')\" 0; EXEC",
        "+OK; +QUEUED; +QUEUED; [+OK :0]",
    );
    // A watched key that a script changes.
    let mut other = server.client();
    client.run("WATCH w");
    other.run("EVAL \"return redis.call('set', KEYS[1], 1)\" 1 w");
    client.check("MULTI; PING; EXEC", "+OK; +QUEUED; *nil");
    // A blocked client is served by a script.
    let mut blocked = server.client();
    blocked.send(&["BLPOP", "list", "10"]).unwrap();
    let push = "EVAL \"return redis.call('rpush', KEYS[1], 'x')\" 1 list";
    testkit::wait_until("a blocked client", std::time::Duration::from_secs(5), || {
        let blocked = client.info("blocked_clients").unwrap_or_default();
        if blocked == "1" { Ok(()) } else { Err(blocked) }
    });
    client.check(push, ":1");
    assert_eq!(
        format!("{:?}", blocked.read().unwrap()),
        format!("{:?}", {
            client.run("RPUSH l2 list x");
            client.run("LRANGE l2 0 -1")
        })
    );
    // Figures.
    client.run("SCRIPT FLUSH");
    client.run("EVAL \"return 1\" 0");
    assert_eq!(client.info("number_of_cached_scripts").as_deref(), Some("1"));
    assert_ne!(client.info("used_memory_vm_eval").as_deref(), Some("0"));
}

#[test]
fn notifications_and_memory_limits() {
    let server = Server::oxidis(&["--io-threads", "2", "--notify-keyspace-events", "KEA"]);
    let mut client = server.client();
    let mut subscriber = server.client();
    subscriber.run("SUBSCRIBE __keyevent@0__:set");
    client.run("EVAL \"return redis.call('set', KEYS[1], 1)\" 1 noted");
    assert!(format!("{:?}", subscriber.read().unwrap()).contains("noted"));
    client.run("CONFIG SET maxmemory 1");
    client.check(
        "EVAL \"return redis.call('set', KEYS[1], 1)\" 1 k",
        "-OOM command not allowed when used memory > 'maxmemory'. script: ...",
    );
    client.check("EVAL \"return redis.call('get', KEYS[1])\" 1 noted", "1");
    client.check("EVAL \"redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 2)\" 1 noted", "+OK");
    let shebang = |flags: &str| format!("#!lua{flags}\nreturn redis.call('set', KEYS[1], 1)");
    let mut eval = |flags: &str| client.call(&["EVAL", &shebang(flags), "1", "k"]).unwrap().text();
    assert_eq!(eval(""), "OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(eval(" flags=allow-oom"), "OK");
}
