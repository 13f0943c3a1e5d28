//! E4: one attempt for each class of flaw that Redis has published since 2018, by the input that set it off.
//!
//! Classes with a row of their own: unread floods (C3), refused connections in a loop (C5), announced sizes (C2),
//! patterns (B10), rights (E1). Lua's have rows, too (B7 to B9); here are the inputs that were published.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::{Server, text};

use super::{Context, ensure_alive};

/// A class, what is sent, and how the last reply begins.
struct Flaw {
    class: &'static str,
    lines: &'static [&'static str],
    answer: &'static str,
}

const fn flaw(class: &'static str, lines: &'static [&'static str], answer: &'static str) -> Flaw {
    Flaw { class, lines, answer }
}

const FLAWS: &[Flaw] = &[
    flaw("CVE-2022-0543 package", &["EVAL \"return tostring(package)\" 0"], "-ERR"),
    flaw("CVE-2022-0543 io", &["EVAL \"return io.popen('id')\" 0"], "-ERR"),
    flaw("CVE-2022-24735 globals", &["EVAL \"redis.call = function() return 1 end\" 0"], "-ERR"),
    flaw("CVE-2022-24735 string", &["EVAL \"string.rep = nil return 1\" 0"], "-ERR"),
    flaw(
        "CVE-2025-46818 metatables",
        &["EVAL \"getmetatable('').__index = function() return 1 end return 1\" 0"],
        "-ERR",
    ),
    flaw("CVE-2025-46818 rawset", &["EVAL \"rawset(_G, 'redis', 1) return 1\" 0"], "-ERR"),
    flaw("CVE-2022-24736 bad chunk", &["EVAL \"return (\" 0"], "-ERR Error compiling script"),
    flaw("CVE-2022-24834 cjson", &["EVAL \"return #cjson.encode({string.rep('x', 1000000)})\" 0"], ":1000004"),
    flaw("CVE-2022-24834 cmsgpack", &["EVAL \"return #cmsgpack.pack(string.rep('x', 1000000))\" 0"], ":1000005"),
    flaw("CVE-2024-31449 bit", &["EVAL \"return bit.tohex(65535, -2147483648)\" 0"], "0000FFFF"),
    flaw(
        "CVE-2024-46981 collected",
        &[
            "EVAL \"local t = setmetatable({}, {__gc = function() error('x') end}) t = nil collectgarbage() return 7\" 0",
        ],
        ":7",
    ),
    flaw(
        "CVE-2025-49844 parser",
        &[
            "EVAL \"for i = 1, 200 do loadstring('return \\\"' .. string.rep('x', 1000) .. '\\\"') collectgarbage() end return 7\" 0",
        ],
        ":7",
    ),
    flaw("CVE-2025-46817 unpack", &["EVAL \"return {unpack({1, 2, 3}, -2, 2147483647)}\" 0"], "-ERR"),
    flaw("CVE-2025-46819 long bracket", &["EVAL \"return [==========[ x ]=\" 0"], "-ERR Error compiling script"),
    flaw(
        "CVE-2025-67733 lines in errors",
        &["EVAL \"return redis.error_reply('MY x\\r\\n+INJECTED')\" 0", "PING"],
        "+PONG",
    ),
    flaw(
        "CVE-2022-35951 XAUTOCLAIM COUNT",
        &["XGROUP CREATE s g 0 MKSTREAM", "XAUTOCLAIM s g c 0 0 COUNT 9223372036854775807"],
        "-ERR COUNT must be > 0",
    ),
    flaw(
        "CVE-2022-31144 XAUTOCLAIM of deleted",
        &[
            "XGROUP CREATE t g 0 MKSTREAM",
            "XADD t 1-1 f v",
            "XADD t 2-1 f v",
            "XREADGROUP GROUP g c STREAMS t >",
            "XDEL t 1-1",
            "XAUTOCLAIM t g d 0 0",
        ],
        "[0-0 [[2-1 [f v]]] [1-1]]",
    ),
    flaw("CVE-2022-35977 SETRANGE", &["SETRANGE big 9223372036854775807 x"], "-ERR string exceeds"),
    flaw("CVE-2022-35977 SORT", &["RPUSH l 1 2", "SORT l LIMIT -9223372036854775808 9223372036854775807"], "[1 2]"),
    flaw("CVE-2023-22458 HRANDFIELD", &["HSET h a 1", "HRANDFIELD h -9223372036854775808 WITHVALUES"], "-ERR"),
    flaw("CVE-2023-22458 ZRANDMEMBER", &["ZADD z 1 a", "ZRANDMEMBER z -9223372036854775808 WITHSCORES"], "-ERR"),
    flaw("CVE-2023-25155 SRANDMEMBER", &["SADD m a", "SRANDMEMBER m -9223372036854775808"], "-ERR"),
    flaw("CVE-2023-28425 MSETNX twice", &["MSETNX one 1 one 2", "GET one"], "2"),
    flaw("CVE-2023-28856 HINCRBYFLOAT", &["HINCRBYFLOAT odd f nan", "EXISTS odd"], ":0"),
    flaw(
        "CVE-2025-32023 HyperLogLog",
        &[
            "SET hll \"HYLL\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\\x7f\\xff\\x7f\\xff\"",
            "PFCOUNT hll",
        ],
        "-",
    ),
    flaw("CVE-2023-36824 GETKEYS", &["COMMAND GETKEYS EVAL x 2147483647 a"], "[]"),
    flaw("CVE-2023-36824 GETKEYS of streams", &["COMMAND GETKEYS XREADGROUP GROUP a b STREAMS x"], "-ERR"),
    flaw("CVE-2024-31227 selector", &["ACL SETUSER u \"(+get\""], "-ERR"),
    flaw("CVE-2024-51741 key permission", &["ACL SETUSER u %"], "-ERR"),
    flaw("CVE-2024-51741 empty permission", &["ACL SETUSER u %~x"], "-ERR"),
    // 7.2.5 cuts it to 32 bits, which does no harm.
    flaw("index of 33 bits", &["RPUSH li a b", "RPUSH cut a b", "LSET cut 4294967297 x"], "+OK"),
    flaw("BITFIELD offset", &["BITFIELD bits SET u8 #9223372036854775807 1"], "-ERR"),
    flaw("SCAN COUNT", &["SCAN 0 COUNT 9223372036854775807"], "["),
    flaw("least of all integers", &["LRANGE li -9223372036854775808 9223372036854775807"], "[a b]"),
    flaw("LPOS RANK", &["LPOS li a RANK -9223372036854775808"], "-ERR"),
    flaw("RESTORE of nothing", &["RESTORE r 0 \"\""], "-ERR"),
    flaw("RESTORE of a wrong sum", &["RESTORE r 0 \"\\x00\\x01a\\x0b\\x00garbage!\""], "-ERR"),
    flaw("GEORADIUS without end", &["GEOADD g 1 1 a", "GEORADIUS g 1 1 1e308 km"], "[a]"),
    flaw("XSETID backwards", &["XADD x 5-1 f v", "XSETID x 1-1"], "-ERR"),
];

/// Raw bytes of a client that has not logged in, and what may come back at most.
const UNAUTHENTICATED: &[(&str, &[u8])] = &[
    ("CVE-2026-27623 empty request first", b"*0\r\n*1\r\n$4\r\nPING\r\n"),
    ("CVE-2026-27623 empty line first", b"\r\n\r\nPING\r\n"),
    ("CVE-2025-46686 many arguments", b"*1048576\r\n$4\r\nAUTH\r\n"),
];

/// E4. Each attempt on a connection of its own.
pub(super) fn published(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&["--io-threads", "2"])?;
    let mut slowest = (Duration::ZERO, "");
    for flaw in FLAWS {
        let took = attempt(&server, flaw).with_context(|| flaw.class.to_owned())?;
        slowest = slowest.max((took, flaw.class));
        ensure_alive(&mut server).with_context(|| flaw.class.to_owned())?;
    }
    let closed = context.server(&["--requirepass", "secret"])?;
    for (class, bytes) in UNAUTHENTICATED {
        let mut client = closed.client();
        client.send_raw(bytes)?;
        let (reply, _) = client.read_to_end(Duration::from_millis(100));
        let reply = String::from_utf8_lossy(&reply);
        ensure!(reply.is_empty() || reply.starts_with("-NOAUTH") || reply.starts_with("-ERR"), "{class}: {reply:?}");
    }
    unblocked_and_killed(&server)?;
    ensure_alive(&mut server)?;
    let count = FLAWS.len() + UNAUTHENTICATED.len() + 1;
    Ok(format!("{count} of {count} harmless; slowest {:.0} ms ({})", slowest.0.as_secs_f64() * 1e3, slowest.1))
}

fn attempt(server: &Server, flaw: &Flaw) -> Result<Duration> {
    let mut client = server.client();
    let started = Instant::now();
    let mut last = String::new();
    for line in flaw.lines {
        last = client.call(&text::words(line))?.to_string();
    }
    ensure!(last.starts_with(flaw.answer), "{} is answered by {last}, not by {}", flaw.lines.join("; "), flaw.answer);
    Ok(started.elapsed())
}

/// CVE-2026-23479 and its like: clients that wait are served, unblocked and killed in the same moment.
fn unblocked_and_killed(server: &Server) -> Result<()> {
    let mut admin = server.client();
    for round in 0..50 {
        let mut waiting: Vec<_> = (0..4).map(|_| server.client()).collect();
        let mut ids = Vec::new();
        for client in &mut waiting {
            ids.push(client.run("CLIENT ID").integer().context("no id")?);
            client.send(&["BLMOVE", "waited", "moved", "LEFT", "RIGHT", "5"])?;
        }
        let batch = [
            format!("CLIENT UNBLOCK {} ERROR", ids[0]),
            "RPUSH waited a b c".to_owned(),
            format!("CLIENT KILL ID {}", ids[1]),
            format!("CLIENT UNBLOCK {}", ids[2]),
            "DEL waited".to_owned(),
            format!("CLIENT UNBLOCK {}", ids[3]),
        ];
        let batch: Vec<_> = batch.iter().map(|line| text::words(line)).collect();
        admin.pipeline(&batch).with_context(|| format!("round {round}"))?;
        for (index, client) in waiting.iter_mut().enumerate().filter(|(index, _)| *index != 1) {
            client.set_timeout(Duration::from_secs(10))?;
            client.read().with_context(|| format!("round {round}, client {index}"))?;
        }
    }
    Ok(())
}
