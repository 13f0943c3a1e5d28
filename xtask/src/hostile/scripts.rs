//! Scripts that try to leave their sandbox, to run for ever, or to take all memory.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::{Client, Server};

use super::{Context, ensure_alive, mebibytes};

/// Attempts on what other scripts see. After each, another script finds all as it was.
const ATTEMPTS: &[&str] = &[
    "_G.tostring = nil",
    "tostring = nil",
    "rawset(_G, 'tostring', nil)",
    "setmetatable(_G, {__index = function() return 1 end})",
    "getmetatable(_G).__index = function() return 1 end",
    "getmetatable('').__index = function() return 1 end",
    "getmetatable('').__call = function() return 1 end",
    "string.rep = nil",
    "rawset(string, 'rep', nil)",
    "string.format = function() return 'mine' end",
    "table.insert(_G, 'x')",
    "table.insert(redis, 'x')",
    "table.insert(string, 'x')",
    "table.sort(_G) table.remove(_G)",
    "redis.call = function() return 'mine' end",
    "rawset(redis, 'call', nil)",
    "setmetatable(redis, {__index = function() return 1 end})",
    "cjson.encode = nil",
    "rawset(cjson, 'decode', nil)",
    "setfenv(0, {})",
    "setfenv(1, {}) x = 1",
    "setfenv(2, {})",
    "setfenv(pcall, {})",
    "setfenv(xpcall, {})",
    "setfenv(pairs, {next = nil})",
    "setfenv(setmetatable, setmetatable({}, {__index = function() return nil end}))",
    "for k, v in pairs(_G) do if type(v) == 'function' then pcall(setfenv, v, {}) end end",
    "for k, v in pairs(string) do pcall(setfenv, v, {}) end",
    "for k, v in pairs(coroutine) do pcall(setfenv, v, {}) end",
    "local n, t = pairs(_G) t.tostring = nil t._G = nil",
    "local n, t = pairs(redis) t.call = nil",
    "coroutine.wrap(function() setfenv(0, {}) end)()",
    "coroutine.wrap(function() tostring = nil end)()",
    "loadstring('tostring = nil')()",
    "loadstring('\\27Lua' .. string.rep('\\0', 100))()",
    "loadstring(string.dump(function() tostring = nil end))()",
    "local n = 0 load(function() n = n + 1 if n == 1 then return 'tostring = nil' end end)()",
    "load(function() return 'x = 1 ' end)",
    "local s = string.dump(function() return 1 end) loadstring((s:gsub('\\30', '\\31')))()",
    "getmetatable(newproxy(true)).__gc = function() tostring = nil end",
    "local p = newproxy(true) rawset(getmetatable(p), '__gc', function() while true do end end) p = nil collectgarbage()",
    "collectgarbage('stop')",
    "collectgarbage('setpause', 100000)",
    "return debug.getinfo(1)",
    "return debug.setmetatable('', {})",
    "return os.execute('true')",
    "return os.exit()",
    "return io.open('/etc/passwd')",
    "return io.popen('id')",
    "return require('os')",
    "return package.loadlib('x', 'y')",
    "return dofile('/etc/passwd')",
    "return loadfile('/etc/passwd')",
    "return print('x')",
    "error(setmetatable({}, {__tostring = function() return 'x' end}))",
    "error(setmetatable({}, {__index = function() error('again') end}))",
    "return setmetatable({}, {__index = function() error('x') end})",
    "return redis.error_reply('A\\r\\n+OK')",
    "return {err = 'A\\r\\n+OK\\r\\n:1'}",
    "return {ok = 'A\\r\\n-ERR x'}",
    "return redis.status_reply('A\\r\\n+B')",
    "error('A\\r\\n+OK')",
    "return redis.call('get\\r\\n', 'x')",
    "return {big_number = '1\\r\\n+OK'}",
    "redis.call('eval', 'return 1', 0)",
    "redis.call('multi')",
    "redis.call('debug', 'sleep', 0)",
    "redis.call('config', 'set', 'dir', '/')",
    "redis.call('shutdown')",
    "redis.setresp(3) redis.setresp(2^31)",
    "redis.log(2^40, 'x')",
    "bit.tohex(1, -2147483648)",
    "bit.tohex(0/0, 1/0)",
    "struct.pack('>I2147483648', 1)",
    "struct.pack('i99999999999999999999', 1)",
    "struct.unpack('c2147483647', 'x')",
    "struct.unpack('c4294967296', 'x')",
    "struct.unpack('i4', 'abcd', 2^62)",
    "struct.unpack('i4', 'abcd', -2^62)",
    "struct.unpack(string.rep('x', 100000), string.rep('y', 10))",
    "struct.pack('!1073741824 i4 d', 1, 2)",
    "cmsgpack.unpack('\\221\\255\\255\\255\\255')",
    "cmsgpack.unpack('\\223\\255\\255\\255\\255')",
    "cmsgpack.unpack('\\219\\255\\255\\255\\255x')",
    "cmsgpack.unpack(string.rep('\\145', 100000))",
    "cmsgpack.unpack_limit('abc', 2^31, 2^31)",
    "cmsgpack.unpack_one('abc', 2^62)",
    "local t = {} t[1] = t cmsgpack.pack(t)",
    "local t = {} t[1] = t cjson.encode(t)",
    "cjson.encode({[2^31] = 1})",
    "cjson.encode({[2^53] = 1})",
    "cjson.decode(string.rep('[', 100000))",
    "cjson.decode(string.rep('{\"a\":', 100000))",
    "cjson.encode_max_depth(2^31 - 1) local t = {} for i = 1, 20000 do t = {t} end cjson.encode(t)",
    "cjson.decode_max_depth(2^31 - 1) cjson.decode(string.rep('[', 100000))",
    "string.rep('x', 2^31)",
    "string.rep('x', 2^63)",
    "string.rep('', 2^31)",
    "string.format('%99999s', 'x')",
    "string.format('%.999f', 1e308)",
    "string.format(string.rep('%s', 300), unpack({}, 1, 300))",
    "string.byte(string.rep('x', 1e6), 1, -1)",
    "string.char(unpack({}, 1, 7000))",
    "string.find(string.rep('a', 1e6), string.rep('a?', 1e6))",
    "string.find('a', string.rep('(', 200) .. string.rep(')', 200))",
    "string.find('x', '%b')",
    "string.find('x', '[%')",
    "string.gmatch('x', string.rep('(', 50))()",
    "unpack({}, -2^31, 2^31 - 1)",
    "unpack({}, 0, 2^31 - 1)",
    "unpack({}, 1, 8001)",
    "unpack({1}, 2^31, 2^31)",
    "select(-2^31, 1)",
    "table.concat({}, 'x', 1, 2^31)",
    "table.concat(setmetatable({}, {__index = function() return 'x' end}), '', 1, 10)",
    "table.sort({3, 1, 2, 5, 4}, function() return true end)",
    "local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function(a, b) return a ~= b end)",
    "math.random(2^31, 2^31)",
    "math.random(-2^31, 2^31 - 1)",
    "local function f() return f() + 1 end f()",
    "local function f() return pcall(f) end f()",
    "local function f() return xpcall(f, f) end f()",
    "local function f() coroutine.wrap(f)() end f()",
    "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
    "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return t.x",
    "local s = 'return ' .. string.rep('(', 10000) .. '1' .. string.rep(')', 10000) loadstring(s)()",
    "loadstring('local ' .. string.rep('a,', 300) .. 'b = 1')()",
    "loadstring('x', string.rep('n', 100000))()",
    "loadstring('x', 'n\\0ame')()",
    "local c = coroutine.create(function() coroutine.resume(coroutine.running()) end) coroutine.resume(c)",
    "local c c = coroutine.wrap(function() c() end) c()",
    "coroutine.yield()",
    "pcall(coroutine.yield)",
    "table.foreach(_G, function(k, v) if type(v) == 'table' then rawset(v, 'x', 1) end end)",
    "for k in pairs(redis) do rawset(redis, k, nil) end",
    "KEYS = nil",
    "KEYS[2^53] = 1 ARGV = 1",
    "return KEYS.x.y",
];

/// What another script must find after each attempt.
const AS_EVER: &str = "local n = 0 for k in pairs(_G) do n = n + 1 end for k in pairs(redis) do n = n + 1 end
return tostring(n) .. tostring(1) .. ('ab'):rep(2) .. cjson.encode({a = cjson.decode('[1]')}) .. tostring(rawget(_G, 1)) .. type(redis.call('ping')) .. #KEYS";

/// B7.
pub(super) fn sandbox(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&["--io-threads", "1"])?;
    let mut client = server.client();
    let mut ask = |body: &str| -> Result<String> { Ok(client.call(&["EVAL", body, "0"])?.text()) };
    let wanted = ask(AS_EVER)?;
    ensure!(!wanted.starts_with("ERR"), "{wanted}");
    for attempt in ATTEMPTS {
        ask(attempt)?;
        // A reply of more than one line would leave the rest to this one.
        let found = ask(AS_EVER)?;
        ensure!(found == wanted, "after {attempt:?} a script finds {found} instead of {wanted}");
    }
    ensure_alive(&mut server)?;
    Ok(format!("{} attempts", ATTEMPTS.len()))
}

const LOOPS: [(&str, &str); 7] = [
    ("plain", "while true do end"),
    ("pcall", "while true do pcall(function() while true do end end) end"),
    ("xpcall handler", "while true do xpcall(function() error('x') end, function() while true do end end) end"),
    ("coroutine", "while true do coroutine.wrap(function() while true do end end)() end"),
    ("tail call", "local function f() return f() end f()"),
    (
        "gc metamethod",
        "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end p = nil while true do collectgarbage() end",
    ),
    ("calls", "while true do pcall(redis.pcall, 'get', KEYS[1]) end"),
];

/// B8.
pub(super) fn loops(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&["--io-threads", "1", "--busy-reply-threshold", "100"])?;
    let mut worst = Duration::ZERO;
    for round in 0..context.pick(1, 20) {
        for (name, body) in LOOPS {
            worst = worst.max(kill(&server, name, body, round)?);
        }
    }
    ensure_alive(&mut server)?;
    ensure!(worst < Duration::from_secs(1), "a loop ended {worst:?} after SCRIPT KILL");
    Ok(format!("{} loops, the last end {} ms after SCRIPT KILL", LOOPS.len(), worst.as_millis()))
}

/// How long one loop lived on after SCRIPT KILL.
fn kill(server: &Server, name: &str, body: &str, round: usize) -> Result<Duration> {
    let mut runner = server.client();
    runner.send(&["EVAL", &format!("{body} -- {round}"), "1", "busy"])?;
    let mut other = server.client();
    let begun = Instant::now();
    let killed = loop {
        let elsewhere = other.call(&["SET", "elsewhere", "1"])?.text();
        ensure!(elsewhere == "OK", "{name}: a command on another slot is answered by {elsewhere}");
        let sent = Instant::now();
        if other.call(&["SCRIPT", "KILL"])?.text() == "OK" {
            break sent;
        }
        ensure!(begun.elapsed() < Duration::from_secs(20), "{name}: SCRIPT KILL finds nothing to end");
        std::thread::sleep(Duration::from_millis(5));
    };
    let reply = runner.read()?.text();
    ensure!(reply.starts_with("ERR Script killed by user"), "{name} ends with {reply}");
    Ok(killed.elapsed())
}

const BOMBS: [(&str, &str); 9] = [
    ("string doubling", "local s = 'x' while true do s = s .. s end"),
    ("string.rep", "return string.rep('x', 2^31)"),
    ("tables", "local t = {} while true do t[#t + 1] = {} end"),
    ("coroutines", "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end"),
    ("gsub", "return string.gsub(string.rep('x', 1e6), '.', string.rep('y', 1000))"),
    ("pattern of a million items", "return string.find(string.rep('a', 1e6), string.rep('a?', 1e6))"),
    ("JSON of 400 MB", "return cjson.decode('[' .. string.rep('1,', 2e8) .. '1]')"),
    ("recursion", "local function f() return 1 + f() end return f()"),
    ("recursion through coroutines", "local function f() return coroutine.wrap(f)() end return f()"),
];

/// B9.
pub(super) fn bombs(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&["--io-threads", "1"])?;
    let memory = |server: &Server| testkit::process::peak_resident_bytes(server.pid());
    let before = memory(&server).unwrap_or(0);
    let mut most = 0;
    for _ in 0..context.pick(1, 10) {
        for (name, body) in BOMBS {
            let mut client: Client = server.client();
            client.set_timeout(Duration::from_secs(60))?;
            let reply = client.call(&["EVAL", body, "0"])?.text();
            ensure!(reply.starts_with("ERR"), "{name} ends with {}", &reply[..reply.len().min(100)]);
            most = most.max(memory(&server).unwrap_or(0).saturating_sub(before));
            ensure_alive(&mut server)?;
        }
    }
    ensure!(mebibytes(most) <= 512.0, "{:.0} MiB more than before", mebibytes(most));
    Ok(format!("{} bombs, {:.0} MiB more than before at most", BOMBS.len(), mebibytes(most)))
}
