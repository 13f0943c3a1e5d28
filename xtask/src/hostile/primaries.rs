//! B6: a primary that sends damaged snapshots, wrong offsets, other protocols and nonsense without end. The replica stays
//! alive, drops the link, and keeps what it had.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::process;
use testkit::snapshot::crc64;
use testkit::{Client, wait_until};

use super::durability::LIMIT;
use super::old_values;
use super::payloads::damage;
use super::{Context, ensure_alive, mebibytes};

/// Memory that all sessions may cost.
const GROWTH_MIB: f64 = 256.0;
/// What is sent without end is ended here.
const ENDLESS: usize = 4 << 20;

/// Answers the handshake up to PSYNC; gives the connection.
fn greet(mut stream: TcpStream) -> Option<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(5))).ok()?;
    let (mut seen, mut piece, mut answered) = (Vec::new(), [0; 4096], 0);
    loop {
        let got = stream.read(&mut piece).ok().filter(|got| *got > 0)?;
        seen.extend_from_slice(&piece[..got]);
        if seen.windows(5).any(|word| word == b"PSYNC") {
            return Some(stream);
        }
        let commands = seen.iter().filter(|byte| **byte == b'*').count();
        while answered < commands {
            stream.write_all(b"+OK\r\n").ok()?;
            answered += 1;
        }
    }
}

/// Serves one session after another, each with the next answer; tells when one is over.
fn serve(listener: &TcpListener, answers: &Receiver<Vec<u8>>, over: &Sender<()>) {
    while let Ok(answer) = answers.recv() {
        loop {
            let Ok((stream, _)) = listener.accept() else { return };
            let Some(mut stream) = greet(stream) else { continue };
            // The replica may have gone by now, which is what is wanted.
            let _ = stream.write_all(&answer);
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = [0; 4096];
            while stream.read(&mut rest).is_ok_and(|got| got > 0) {}
            break;
        }
        if over.send(()).is_err() {
            return;
        }
    }
}

/// A snapshot with a value of every form, without its end.
fn snapshot() -> Vec<u8> {
    let mut bytes = b"REDIS0011\xfa\x09redis-ver\x05".to_vec();
    bytes.extend_from_slice(b"7.2.5\xfe\x00");
    for (index, value) in old_values::all().iter().enumerate() {
        bytes.push(value.kind);
        bytes.push(2);
        bytes.extend_from_slice(format!("{index:02}").as_bytes());
        bytes.extend_from_slice(&value.body);
    }
    bytes
}

/// Ends a snapshot with its mark and checksum.
fn close(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0xff);
    let sum = crc64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// A stream of commands after a snapshot.
fn stream(random: &mut fastrand::Rng) -> Vec<u8> {
    const COMMANDS: &[&str] = &[
        "SELECT 0",
        "SET a 1",
        "MULTI",
        "INCR a",
        "EXEC",
        "PING",
        "REPLCONF GETACK *",
        "DEL a b",
        "HSET h f v",
        "XADD s 1-1 f v",
        "PEXPIREAT a 9999999999999",
        "SPOP nothing",
        "FLUSHALL",
        "SUBSCRIBE c",
        "BLPOP a 0",
        "DEBUG SLEEP 0",
        "CONFIG SET maxmemory 1",
        "SHUTDOWN NOSAVE",
        "REPLICAOF NO ONE",
        "SYNC",
        "EVAL \"return 1\" 0",
        "CLIENT KILL TYPE master",
    ];
    let mut bytes = Vec::new();
    for _ in 0..random.usize(0..20) {
        // What ends the server by order of its primary is no fault of the replica's.
        let mut command = COMMANDS[random.usize(0..COMMANDS.len())];
        if command.starts_with("SHUTDOWN") || command.starts_with("REPLICAOF") || command.starts_with("CONFIG") {
            command = "PING";
        }
        testkit::text::encode(&testkit::text::words(command), &mut bytes);
    }
    bytes
}

/// One session's bytes; true if what is in them may have been taken.
fn session(random: &mut fastrand::Rng, snapshots: &[Vec<u8>]) -> (Vec<u8>, &'static str) {
    let id: String = (0..40).map(|_| char::from(b"0123456789abcdef"[random.usize(0..16)])).collect();
    let mark: String = (0..40).map(|_| char::from(b"abcdefghij"[random.usize(0..10)])).collect();
    let line = |offset: &str| format!("+FULLRESYNC {id} {offset}\r\n").into_bytes();
    let marked = |body: &[u8]| {
        [line("100"), format!("$EOF:{mark}\r\n").into_bytes(), body.to_vec(), mark.clone().into_bytes()].concat()
    };
    let counted = |body: &[u8], count: u64| [line("100"), format!("${count}\r\n").into_bytes(), body.to_vec()].concat();
    let mut body = snapshots[random.usize(0..snapshots.len())].clone();
    match random.u8(0..12) {
        // A damaged snapshot under a right checksum.
        0..5 => {
            damage(random, &mut body, snapshots);
            let body = close(body);
            let bytes = if random.bool() { marked(&body) } else { counted(&body, body.len() as u64) };
            (bytes, "a damaged snapshot")
        }
        5 => {
            // Anywhere, without another checksum.
            let mut body = close(body);
            damage(random, &mut body, snapshots);
            (marked(&body), "a damaged snapshot with a wrong checksum")
        }
        6 => {
            let body = close(body);
            let all = marked(&body);
            let at = random.usize(0..all.len());
            (all[..at].to_vec(), "a cut session")
        }
        7 => {
            let body = close(body);
            let count = [0, 1, u64::MAX, body.len() as u64 - 1, body.len() as u64 + 10][random.usize(0..5)];
            (counted(&body, count), "a wrong length")
        }
        8 => {
            let offsets = ["-1", "99999999999999999999", "9223372036854775807", "x", "", "0 0", "18446744073709551615"];
            let begin = line(offsets[random.usize(0..offsets.len())]);
            (if random.bool() { begin } else { [begin, close(body)].concat() }, "a wrong offset")
        }
        9 => {
            let lines: [&[u8]; 9] = [
                b"+CONTINUE\r\n",
                b"+CONTINUE zzz\r\n*1\r\n$4\r\nPING\r\n",
                b"+FULLRESYNC\r\n",
                b"-NOMASTERLINK no\r\n",
                b"-ERR\r\n",
                b"$5\r\nhello\r\n",
                b":1\r\n",
                b"HTTP/1.1 400 Bad Request\r\n\r\n",
                b"\0\0\0\0",
            ];
            (lines[random.usize(0..lines.len())].to_vec(), "another answer")
        }
        10 => {
            let byte = [b'\n', b'x', b'$', 0, b'+', b'\r'][random.usize(0..6)];
            let begin = if random.bool() { line("1") } else { Vec::new() };
            let size = if random.u8(0..20) == 0 { ENDLESS } else { 100_000 };
            ([begin, vec![byte; size]].concat(), "one byte without end")
        }
        _ => {
            let mut commands = stream(random);
            if random.bool() {
                let others =
                    [b"*3\r\n$3\r\nSET\r\n".to_vec(), b"$-1\r\n*-1\r\n".to_vec(), b"inline command\r\n".to_vec()];
                damage(random, &mut commands, &others);
            }
            ([marked(&close(body)), commands].concat(), "a damaged stream")
        }
    }
}

/// See the module.
pub(super) fn run(context: &Context<'_>) -> Result<String> {
    let sessions = context.pick(150, 10_000_u32);
    let mut server = context.server(&["--repl-timeout", "5", "--io-threads", "2"])?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (give, answers) = channel();
    let (tell, over) = channel();
    thread::spawn(move || serve(&listener, &answers, &tell));
    let mut client = server.client();
    client.check("SET kept 1; RPUSH list a b", "+OK; :2");
    let seed = testkit::seed(fastrand::u64(..1 << 40));
    let mut random = fastrand::Rng::with_seed(seed);
    let snapshots = [snapshot(), b"REDIS0011\xfe\x00\x00\x01k\x01v".to_vec()];
    let resident = process::resident_bytes(server.pid())?;
    let mut taken = 0;
    for number in 0..sessions {
        let (bytes, what) = session(&mut random, &snapshots);
        let shown = || format!("session {number} of seed {seed}: {what}");
        let wholly_sent = bytes.len();
        give.send(bytes).context("the primary is gone")?;
        client.check(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK...");
        over.recv_timeout(LIMIT).with_context(|| format!("{}: {wholly_sent} bytes are not read", shown()))?;
        ensure!(server.exit_status().is_none(), "{}: the replica ended\n{}", shown(), server.log());
        // Whatever the stream did to its clients, the server serves.
        if client.call(&["PING"]).is_err() {
            client = Client::connect(server.port())?;
        }
        client.check("REPLICAOF NO ONE", "+OK...");
        let kept = client.run("GET kept").to_string() == "1" && client.run("LLEN list").to_string() == ":2";
        if !kept {
            // The snapshot was whole all the same: then it is all there, and the link had stood.
            ensure!(was_synchronized(&server.log()), "{}: the old data are gone\n{}", shown(), server.log());
            taken += 1;
            client.check("FLUSHALL; SET kept 1; RPUSH list a b", "+OK; +OK; :2");
        }
        std::fs::write(server.directory().join("log"), b"")?;
    }
    ensure_alive(&mut server)?;
    ensure!(client.info("oxidis_panics").is_none_or(|panics| panics == "0"), "panics:\n{}", server.log());
    let grown = mebibytes(process::peak_resident_bytes(server.pid())?.saturating_sub(resident));
    ensure!(grown <= GROWTH_MIB, "the replica grew by {grown:.0} MiB");
    // A sound primary is followed as ever.
    let sound = context.server(&["--repl-diskless-sync-delay", "0"])?;
    sound.client().check("SET sound 1", "+OK");
    client.check(&format!("REPLICAOF 127.0.0.1 {}", sound.port()), "+OK...");
    wait_until("a sound primary is followed", LIMIT, || match client.run("GET sound").to_string().as_str() {
        "1" => Ok(()),
        other => Err(other.to_owned()),
    });
    Ok(format!(
        "{sessions} sessions, alive, +{grown:.0} MiB, old data kept; {taken} snapshots were sound after all, seed {seed}"
    ))
}

fn was_synchronized(log: &str) -> bool {
    log.contains("MASTER <-> REPLICA sync: Finished with success")
}
