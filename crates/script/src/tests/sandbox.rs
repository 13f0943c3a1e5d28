//! What scripts may not do, and how they end when they do not want to.

use super::{MEMORY_MAX, check, check_error, check_killed, host, run, run_in, vm};
use resp::Proto;

#[test]
fn globals_are_protected() {
    check_error("x = 1", "user_script:1: Attempt to modify a readonly table");
    check_error("_G.x = 1", "user_script:1: Attempt to modify a readonly table");
    check_error("return x", "user_script:1: Script attempted to access nonexistent global variable 'x'");
    check_error("rawset(_G, 'x', 1)", "Attempt to modify a readonly table");
    check_error("setmetatable(_G, {})", "Attempt to modify a readonly table");
    check_error("table.insert(_G, 1)", "Attempt to modify a readonly table");
    check_error("redis.call = nil", "user_script:1: Attempt to modify a readonly table");
    check_error("string.x = 1", "user_script:1: Attempt to modify a readonly table");
    check_error("getmetatable('').__index = nil", "user_script:1: Attempt to modify a readonly table");
    check_error("getmetatable(_G).__index = nil", "user_script:1: Attempt to modify a readonly table");
    check("return rawget(_G, 'x')", "$-1|");
    check("return getmetatable(string)", "$-1|");
    check("return type(getmetatable(_G).__index)", "$8|function|");
    check("return getmetatable('').__index == string", ":1|");
    check("return getfenv() == _G", ":1|");
}

#[test]
fn nothing_dangerous_is_there() {
    for name in ["os", "io", "debug", "package", "require", "dofile", "loadfile", "print", "module"] {
        check_error(
            &format!("return {name}"),
            &format!("user_script:1: Script attempted to access nonexistent global variable '{name}'"),
        );
    }
}

#[test]
fn one_script_does_not_reach_another() {
    let (mut vm, mut host) = (vm(), host());
    let mut both = |body: &str| run_in(&mut vm, &mut host, body, &[], 0, Proto::Resp2);
    for attack in [
        "setfenv(0, {})",
        "setfenv(1, {})",
        "setfenv(pcall, {}) return pcall(error, 'x')",
        "setfenv(pairs, setmetatable({}, {__index = function() return nil end}))",
        "local f = pairs for k, v in pairs(_G) do if type(v) == 'function' then pcall(setfenv, v, {}) end end",
        "for k, v in pairs(_G) do if type(v) == 'table' then pcall(table.insert, v, 1) pcall(rawset, v, 'a', 1) end end",
        "local n, t = pairs(_G) t.tostring = nil",
        "for i, t in pairs({string, table, math, redis, cjson}) do pcall(table.sort, t) pcall(table.remove, t) end",
        "local mt = getmetatable(newproxy(true)) mt.__gc = function() while true do end end",
        "getmetatable(getmetatable('')).__newindex = nil",
        "collectgarbage('stop') collectgarbage('setpause', 1000000)",
        "cjson.new().encode = nil",
        "coroutine.wrap(function() setfenv(0, {}) end)()",
        "load(function() return nil end)",
    ] {
        both(attack);
        assert_eq!(
            both(
                "local n = 0 for k, v in pairs(_G) do n = n + 1 end return {n, tostring(1), #('x'):rep(3), rawget(_G, 1) or 0}"
            ),
            "*4|:38|$1|1|:3|:0|",
            "{attack}"
        );
    }
}

#[test]
fn bytecode_is_text() {
    check(
        "local f, e = loadstring('\\27Lua') return e",
        "$52|[string \"\u{1b}Lua\"]:1: unexpected symbol near 'char(27)'|",
    );
    check("return loadstring(string.dump(function() return 1 end))", "$-1|");
    check("return load(function() return nil end)()", "$-1|");
    check(
        "local parts = {'return ', '4', '2'} local i = 0 return load(function() i = i + 1 return parts[i] end)()",
        ":42|",
    );
}

#[test]
fn loops_end_when_killed() {
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() error('x') end, function() while true do end end) end",
        "xpcall(function() while true do end end, function() while true do end end)",
        "while true do coroutine.wrap(function() while true do end end)() end",
        "while true do local ok = pcall(coroutine.wrap(function() while true do end end)) end",
        "while true do coroutine.resume(coroutine.create(function() while true do pcall(error) end end)) end",
        "local function f() return f() end f()",
        "local function f() while true do pcall(f) end end f()",
        "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end p = nil while true do collectgarbage() end",
        "while true do redis.pcall('echo', 'x') end",
        "while true do table.sort({3, 2, 1}, function(a, b) while true do end end) end",
        "while true do string.gsub('aaa', 'a', function() while true do end end) end",
        "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
        "return string.find(string.rep('a', 30000), string.rep('.-', 20) .. 'b')",
        "while true do loadstring('return 1') end",
        "repeat local ok, e = pcall(string.rep, 'x', 1e7) until false",
    ] {
        check_killed(body);
    }
}

#[test]
fn memory_has_an_end() {
    for body in [
        "local s = 'x' while true do s = s .. s end",
        "return string.rep('x', 1e9)",
        "return ('x'):rep(1e18)",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "return string.gsub(string.rep('x', 1e6), '.', string.rep('y', 1000))",
        "return cjson.encode({string.rep('\\1', 2e7)})",
        "local t = {} for i = 1, 1e4 do t[i] = string.rep('y', 1e4) end return table.concat(t) .. table.concat(t)",
        "return cmsgpack.unpack(string.rep('\\145', 1e6))",
        "return cjson.decode(string.rep('[', 1e6))",
        "return struct.pack('c0', string.rep('x', 4e7))",
        "return string.format('%s%s', string.rep('x', 3e7), string.rep('x', 3e7))",
        "return {unpack({}, 1, 7000)}, unpack({}, 1, 1e8)",
        "return unpack({}, -2147483648, 2147483647)",
        "local function f() return 1 + f() end return f()",
        "local function f() return coroutine.wrap(f)() end f()",
        "local f = function(f) return pcall(f, f) end return f(f)",
        "return string.find(string.rep('a', 1e6), string.rep('a?', 1e6))",
        "return string.find('a', string.rep('(', 100))",
        "return loadstring(string.rep('(', 1e5))()",
        "return string.format('%99999d', 1)",
        "local t = {} t[1] = t return cjson.encode(t)",
        "local t = {} t[1] = t return cmsgpack.pack(t)",
        "local s = setmetatable({}, {}) getmetatable(s).__index = s return s.x",
    ] {
        let (mut vm, mut host) = (vm(), host());
        let reply = run_in(&mut vm, &mut host, body, &[], 0, Proto::Resp2);
        assert!(reply.starts_with('-') || reply.len() < 100_000, "{body}: {} bytes", reply.len());
        assert!(vm.used_bytes() <= MEMORY_MAX, "{body}: {} bytes used", vm.used_bytes());
        assert_eq!(run_in(&mut vm, &mut host, "return 'alive'", &[], 0, Proto::Resp2), "$5|alive|", "{body}");
    }
}

#[test]
fn errors_have_their_places() {
    check_error("error('boom')", "user_script:1: boom");
    check("error({err = 'My error'})", "-My error script: SHA, on @user_script:1.");
    check_error("error(nil)", "nil");
    check_error("return redis.call('nope')", "Unknown Redis command called from script");
    check("\n\nreturn redis.call('fail')", "-WRONGTYPE not that script: SHA, on @user_script:3.");
    check("return redis.pcall('fail')", "-WRONGTYPE not that|");
    check("return {pcall(redis.call, 'fail')}", "*2|$-1|$18|WRONGTYPE not that|");
    check("local ok, e = pcall(redis.call, 'fail') return {type(e), e}", "*2|$6|string|$18|WRONGTYPE not that|");
    check("local ok, e = pcall(error, {err = 'a'}) return e", "$1|a|");
    check(
        "local co = coroutine.create(function() redis.call('nope') end) local ok, e = coroutine.resume(co) return {type(e), e.err}",
        "*2|$5|table|$44|ERR Unknown Redis command called from script|",
    );
    check(
        "local ok, e = xpcall(function() error('a') end, function(e) return e .. '!' end) return e",
        "$17|user_script:1: a!|",
    );
}

#[test]
fn a_restart_shows_nothing() {
    assert_eq!(run("pcall(redis.call, 'restart') return 1"), "restart");
    assert_eq!(run("while true do pcall(redis.call, 'restart') end"), "restart");
}
