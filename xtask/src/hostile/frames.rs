//! B1: malformed and borderline frames, each with the exact bytes that Redis 7.2 answers.

use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::{Client, Server};

use super::bystander::Bystander;
use super::{Context, ensure_alive};

/// Whether the connection is closed after the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    Open,
    Closed,
}
use After::{Closed, Open};

type Case = (&'static str, &'static str, After);

const BAD_MULTIBULK: &str = "-ERR Protocol error: invalid multibulk length\r\n";
const BAD_BULK: &str = "-ERR Protocol error: invalid bulk length\r\n";
const UNBALANCED: &str = "-ERR Protocol error: unbalanced quotes in request\r\n";
const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";

/// Sent to a server without a password: bytes, reply, and what becomes of the connection.
const OPEN_CASES: &[Case] = &[
    ("PING\r\n", "+PONG\r\n", Open),
    ("PING\n", "+PONG\r\n", Open),
    ("  PING  \r\n", "+PONG\r\n", Open),
    ("\tPING\r\n", "+PONG\r\n", Open),
    ("ping\r\nPiNg\r\n", "+PONG\r\n+PONG\r\n", Open),
    ("\r\n", "", Open),
    ("\n\n\nPING\r\n", "+PONG\r\n", Open),
    ("   \r\nPING\r\n", "+PONG\r\n", Open),
    ("PING \"a b\"\r\n", "$3\r\na b\r\n", Open),
    ("PING 'a b'\r\n", "$3\r\na b\r\n", Open),
    ("PING \"\\x41\\n\\q\"\r\n", "$3\r\nA\nq\r\n", Open),
    ("PING 'a\\'b'\r\n", "$3\r\na'b\r\n", Open),
    ("PING \"\"\r\n", "$0\r\n\r\n", Open),
    ("PING a\\nb\r\n", "$4\r\na\\nb\r\n", Open),
    ("PING \"a\r\n", UNBALANCED, Closed),
    ("PING 'a\r\n", UNBALANCED, Closed),
    ("PING \"a\"b\r\n", UNBALANCED, Closed),
    ("PING 'a'b\r\n", UNBALANCED, Closed),
    ("\"PING\r\n", UNBALANCED, Closed),
    ("*abc\r\n", BAD_MULTIBULK, Closed),
    ("*\r\n", BAD_MULTIBULK, Closed),
    ("*+1\r\n$4\r\nPING\r\n", BAD_MULTIBULK, Closed),
    ("*01\r\n$4\r\nPING\r\n", BAD_MULTIBULK, Closed),
    ("* 1\r\n$4\r\nPING\r\n", BAD_MULTIBULK, Closed),
    ("*1 \r\n$4\r\nPING\r\n", BAD_MULTIBULK, Closed),
    ("*1.0\r\n$4\r\nPING\r\n", BAD_MULTIBULK, Closed),
    ("*2147483648\r\n", BAD_MULTIBULK, Closed),
    ("*9223372036854775807\r\n", BAD_MULTIBULK, Closed),
    ("*9223372036854775808\r\n", BAD_MULTIBULK, Closed),
    ("*-9223372036854775808\r\nPING\r\n", "+PONG\r\n", Open),
    ("*0\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", Open),
    ("*-1\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n", Open),
    ("*-5\r\nPING\r\n", "+PONG\r\n", Open),
    ("*1\n$4\nPING\n", "", Open),
    ("*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n", Closed),
    ("*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'\r\n", Closed),
    ("*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'\r\n", Closed),
    ("*1\r\n\r\n", "-ERR Protocol error: expected '$', got ' '\r\n", Closed),
    ("*2\r\n$4\r\nPING\r\n+a\r\n", "-ERR Protocol error: expected '$', got '+'\r\n", Closed),
    ("*1\r\n$abc\r\n", BAD_BULK, Closed),
    ("*1\r\n$\r\n", BAD_BULK, Closed),
    ("*1\r\n$-1\r\n", BAD_BULK, Closed),
    ("*1\r\n$-2\r\n", BAD_BULK, Closed),
    ("*1\r\n$+4\r\nPING\r\n", BAD_BULK, Closed),
    ("*1\r\n$04\r\nPING\r\n", BAD_BULK, Closed),
    ("*1\r\n$4 \r\nPING\r\n", BAD_BULK, Closed),
    ("*1\r\n$536870913\r\n", BAD_BULK, Closed),
    ("*1\r\n$9223372036854775808\r\n", BAD_BULK, Closed),
    ("*1\r\n$4294967300\r\nPING\r\n", BAD_BULK, Closed),
    ("*1\r\n$536870912\r\n", "", Open),
    ("*2147483647\r\n", "", Open),
    ("*1\r\n$4\r\nPI", "", Open),
    ("*1\r\n$4\r\nPINGxx", "+PONG\r\n", Open),
    ("*1\r\n$0\r\n\r\n", "-ERR unknown command '', with args beginning with: \r\n", Open),
    ("*2\r\n$3\r\nFOO\r\n$1\r\na\r\n", "-ERR unknown command 'FOO', with args beginning with: 'a' \r\n", Open),
    ("FOO a b\r\n", "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' \r\n", Open),
    ("FOO \"a\\r\\nb\"\r\n", "-ERR unknown command 'FOO', with args beginning with: 'a  b' \r\n", Open),
    ("*2\r\n$4\r\nPING\r\n$2\r\n\r\n\r\n", "$2\r\n\r\n\r\n", Open),
    ("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n", "+OK\r\n", Open),
    ("GET / HTTP/1.1\r\n", "-ERR wrong number of arguments for 'get' command\r\n", Open),
    ("POST / HTTP/1.1\r\nHost: x\r\n\r\n", "", Closed),
    ("Host: example\r\n", "", Closed),
    ("host:\r\n", "", Closed),
    ("PING\r\n*1\r\n$abc\r\nPING\r\n", "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n", Closed),
    ("QUIT\r\nPING\r\n", "+OK\r\n", Closed),
    ("*1\r\n$4\r\nQUIT\r\n*1\r\n$abc\r\n", "+OK\r\n", Closed),
    (
        "MULTI\r\nFOO\r\nEXEC\r\n",
        "+OK\r\n-ERR unknown command 'FOO', with args beginning with: \r\n-EXECABORT Transaction discarded because of previous errors.\r\n",
        Open,
    ),
    ("SET\r\n", "-ERR wrong number of arguments for 'set' command\r\n", Open),
    ("OBJECT nope x\r\n", "-ERR unknown subcommand 'nope'. Try OBJECT HELP.\r\n", Open),
];

/// Sent before authentication to a server with a password.
const LOCKED_CASES: &[Case] = &[
    ("PING\r\n", NOAUTH, Open),
    ("GET a\r\n", NOAUTH, Open),
    ("NOSUCH a\r\n", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n", Open),
    ("GET\r\n", "-ERR wrong number of arguments for 'get' command\r\n", Open),
    ("AUTH wrong\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", Open),
    ("AUTH default wrong\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", Open),
    ("AUTH\r\n", "-ERR wrong number of arguments for 'auth' command\r\n", Open),
    ("AUTH a b c\r\n", "-ERR syntax error\r\n", Open),
    ("MULTI\r\n", NOAUTH, Open),
    ("SUBSCRIBE a\r\n", NOAUTH, Open),
    (
        "HELLO 3\r\n",
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n",
        Open,
    ),
    ("HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n", Open),
    ("*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n", Closed),
    ("*2147483647\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n", Closed),
    ("*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n", Closed),
    ("*1\r\n$536870912\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n", Closed),
    ("*1\r\n$abc\r\n", BAD_BULK, Closed),
    ("QUIT\r\n", "+OK\r\n", Closed),
    ("RESET\r\n", "+RESET\r\n", Open),
    ("AUTH secret\r\nPING\r\n", "+OK\r\n+PONG\r\n", Open),
];

/// Runs every case, and the long ones that a table cannot hold.
pub(super) fn run(context: &Context<'_>) -> Result<String> {
    judge_all(context.server(&[])?, context.server(&["--requirepass", "secret"])?)
}

/// The same frames sent to a proxy: it answers as a server does, and what it lets through is right for any server.
pub(super) fn run_at_proxy(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&[])?;
    let topology = format!("server 127.0.0.1:{}", server.port());
    let proxy = context.launch.as_proxy().args(&["--topology", &topology]);
    let figures = judge_all(proxy.try_start()?, proxy.args(&["--requirepass", "secret"]).try_start()?)?;
    ensure_alive(&mut server)?;
    Ok(figures)
}

fn judge_all(mut open: Server, mut locked: Server) -> Result<String> {
    let bystander = Bystander::start(&open, "")?;
    let mut wrong = Vec::new();
    for case in OPEN_CASES {
        check(&open, case, &mut wrong);
    }
    for case in LOCKED_CASES {
        check(&locked, case, &mut wrong);
    }
    for (what, bytes, reply) in long_cases() {
        let mut client = open.client();
        let _ = client.send_raw(&bytes);
        judge(what, &mut client, reply, Closed, &mut wrong);
    }
    let count = OPEN_CASES.len() + LOCKED_CASES.len() + long_cases().len();
    bystander.finish()?.ensure_quick()?;
    ensure_alive(&mut open)?;
    ensure_alive(&mut locked)?;
    ensure!(wrong.is_empty(), "{} of {count} cases differ\n{}", wrong.len(), wrong.join("\n"));
    Ok(format!("{count} of {count} cases"))
}

fn long_cases() -> [(&'static str, Vec<u8>, &'static str); 3] {
    let long = vec![b'1'; 80 * 1024];
    [
        ("80 KiB without a line end", vec![b'a'; 80 * 1024], "-ERR Protocol error: too big inline request\r\n"),
        (
            "80 KiB of digits after *",
            [b"*".as_slice(), &long].concat(),
            "-ERR Protocol error: too big mbulk count string\r\n",
        ),
        (
            "80 KiB of digits after $",
            [b"*1\r\n$".as_slice(), &long].concat(),
            "-ERR Protocol error: too big bulk count string\r\n",
        ),
    ]
}

fn check(server: &Server, (bytes, reply, after): &Case, wrong: &mut Vec<String>) {
    let mut client = server.client();
    let _ = client.send_raw(bytes.as_bytes());
    judge(&bytes.escape_debug().to_string(), &mut client, reply, *after, wrong);
}

fn judge(what: &str, client: &mut Client, reply: &str, after: After, wrong: &mut Vec<String>) {
    let (got, closed) = client.read_to_end(Duration::from_millis(if after == Closed { 1_000 } else { 40 }));
    let got_after = if closed { Closed } else { Open };
    if got != reply.as_bytes() || got_after != after {
        let got = got.escape_ascii();
        wrong.push(format!(
            "  {what}\n    got      {got} ({got_after:?})\n    expected {} ({after:?})",
            reply.escape_debug()
        ));
    }
}
