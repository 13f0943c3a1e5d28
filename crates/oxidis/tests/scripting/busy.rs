//! Scripts that run long: others go on, are told, and can end them.

use std::time::{Duration, Instant};
use testkit::{Server, wait_until};

fn server(workers: &str) -> Server {
    Server::oxidis(&["--io-threads", workers, "--busy-reply-threshold", "100"])
}

/// Loops that do their best to stay.
const LOOPS: [&str; 7] = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(function() error('x') end, function() while true do end end) end",
    "while true do coroutine.wrap(function() while true do end end)() end",
    "local function f() return f() end f()",
    "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end p = nil while true do collectgarbage() end",
    "while true do redis.pcall('get', KEYS[1]) end",
];

#[test]
fn a_busy_script_is_killed() {
    for workers in ["1", "2"] {
        let server = server(workers);
        let mut other = server.client();
        for body in LOOPS {
            let mut client = server.client();
            client.send(&["EVAL", body, "1", "busy"]).unwrap();
            // Other slots go on, this one is refused.
            let refused = wait_until("a BUSY reply", Duration::from_secs(10), || {
                other.check("SET elsewhere 1; PING", "+OK; +PONG");
                let text = other.call(&["GET", "busy"]).unwrap().text();
                if text.starts_with("BUSY") { Ok(text) } else { Err(text) }
            });
            assert_eq!(
                refused,
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
            );
            other.check(
                "FUNCTION STATS",
                "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            );
            other.check(
                "FUNCTION KILL",
                "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            );
            other.check(
                "FLUSHALL",
                "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            );
            let killed = Instant::now();
            other.check("SCRIPT KILL", "+OK");
            let reply = client.read().unwrap().text();
            assert!(killed.elapsed() < Duration::from_secs(1), "{body}: {:?}", killed.elapsed());
            assert!(reply.starts_with("ERR Script killed by user with SCRIPT KILL... script: "), "{body}: {reply}");
            other.check("GET busy; SCRIPT KILL", "nil; -NOTBUSY No scripts in execution right now.");
        }
    }
}

#[test]
fn one_that_wrote_is_not_killed() {
    let mut server = server("2");
    let mut client = server.client();
    client.send(&["EVAL", "redis.call('set', KEYS[1], 1) while true do end", "1", "busy"]).unwrap();
    let mut other = server.client();
    wait_until("UNKILLABLE", Duration::from_secs(10), || {
        let text = other.call(&["SCRIPT", "KILL"]).unwrap().text();
        if text.starts_with("UNKILLABLE Sorry the script already executed write commands") { Ok(()) } else { Err(text) }
    });
    wait_until("a BUSY reply", Duration::from_secs(10), || {
        let text = other.call(&["GET", "busy"]).unwrap().text();
        if text.starts_with("BUSY") { Ok(()) } else { Err(text) }
    });
    other.check("SHUTDOWN", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
    let _ = other.send(&["SHUTDOWN", "NOSAVE"]);
    wait_until("the end of the server", Duration::from_secs(10), || server.exit_status().ok_or("it runs"));
}

#[test]
fn a_busy_function_is_killed() {
    let server = server("2");
    let mut client = server.client();
    let library = "#!lua name=lib\nredis.register_function('spin', function() while true do end end)";
    assert_eq!(client.call(&["FUNCTION", "LOAD", library]).unwrap().text(), "lib");
    client.send(&["FCALL", "spin", "1", "busy"]).unwrap();
    let mut other = server.client();
    wait_until("a BUSY reply", Duration::from_secs(10), || {
        let text = other.call(&["GET", "busy"]).unwrap().text();
        let wanted = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
        if text == wanted { Ok(()) } else { Err(text) }
    });
    let stats = format!("{:?}", other.run("FUNCTION STATS"));
    assert!(stats.contains("spin") && stats.contains("duration_ms"), "{stats}");
    other.check(
        "SCRIPT KILL",
        "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
    );
    other.check("FUNCTION KILL", "+OK");
    assert!(client.read().unwrap().text().starts_with("ERR Script killed by user with SCRIPT KILL..."));
}

#[test]
fn a_script_over_all_keys_is_killed() {
    let server = server("2");
    let mut client = server.client();
    // Seen with an undeclared key, it has the whole keyspace to itself: commands on keys are refused, others go on.
    let script = "if ARGV[1] == 'spin' then while true do redis.call('get', 'undeclared') end end return redis.call('get', 'undeclared')";
    client.check(&format!("EVAL \"{script}\" 0 once"), "nil");
    client.send(&["EVAL", script, "0", "spin"]).unwrap();
    let mut other = server.client();
    wait_until("a BUSY reply", Duration::from_secs(10), || {
        other.check("PING", "+PONG");
        let text = other.call(&["GET", "any"]).unwrap().text();
        if text.starts_with("BUSY") { Ok(()) } else { Err(text) }
    });
    other.check("PING; SCRIPT KILL", "+PONG; +OK");
    assert!(client.read().unwrap().text().starts_with("ERR Script killed by user"));
    other.check("SET any 1; FLUSHALL", "+OK; +OK");
}

#[test]
fn memory_bombs_end_cleanly() {
    let server = Server::oxidis(&["--io-threads", "2", "--script-memory-limit", "64mb"]);
    let mut client = server.client();
    for body in [
        "local s = 'x' while true do s = s .. s end",
        "return string.rep('x', 1e9)",
        "local t = {} while true do t[#t + 1] = {} end",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "return string.gsub(string.rep('x', 1e6), '.', string.rep('y', 1000))",
        "return string.find(string.rep('a', 1e6), string.rep('a?', 1e6))",
        "return cjson.decode(string.rep('[', 3e7))",
    ] {
        let text = client.call(&["EVAL", body, "0"]).unwrap().text();
        assert!(text.starts_with("ERR"), "{body}: {text}");
        client.check("EVAL \"return 1\" 0; PING", ":1; +PONG");
    }
}
