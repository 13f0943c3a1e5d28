//! A primary that sends nonsense: the replica drops the link, keeps its data and goes on.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::replicas::{log_of, ours};
use testkit::wait_until;

/// Answers the handshake up to PSYNC; gives the connection.
fn greet(mut stream: TcpStream) -> Option<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    let mut answered = 0;
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

/// One session after another, each with the next of the `answers`.
fn serve(answers: Vec<Vec<u8>>) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let done = Arc::new(AtomicU64::new(0));
    let counted = done.clone();
    std::thread::spawn(move || {
        for answer in answers.iter().cycle() {
            let Ok((stream, _)) = listener.accept() else { return };
            if let Some(mut stream) = greet(stream) {
                // The replica may have gone by now, which is what is wanted.
                let _ = stream.write_all(answer);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let mut rest = [0; 4096];
                while stream.read(&mut rest).is_ok_and(|got| got > 0) {}
            }
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, done)
}

/// Ends a snapshot with its mark and checksum.
fn closed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = [bytes, b"\xff"].concat();
    let sum = testkit::snapshot::crc64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn answers() -> Vec<Vec<u8>> {
    let id = "a".repeat(40);
    let mark = "m".repeat(40);
    let full = |payload: &[u8]| [format!("+FULLRESYNC {id} 100\r\n").as_bytes(), payload].concat();
    let mut rdb = b"REDIS0011".to_vec();
    rdb.extend_from_slice(&[0xfa, 0x05]);
    let counted = |bytes: &[u8]| full(&[format!("${}\r\n", bytes.len()).as_bytes(), bytes].concat());
    let marked = |bytes: &[u8]| full(&[format!("$EOF:{mark}\r\n").as_bytes(), bytes, mark.as_bytes()].concat());
    vec![
        b"hello\r\n".to_vec(),
        b"+CONTINUE\r\n".to_vec(),
        format!("+CONTINUE {}\r\n", "z".repeat(40)).into_bytes(),
        b"+FULLRESYNC\r\n".to_vec(),
        format!("+FULLRESYNC {id} -5\r\n$10\r\nREDIS").into_bytes(),
        format!("+FULLRESYNC {id} 99999999999999999999999\r\n*1\r\n$4\r\nPING\r\n").into_bytes(),
        full(b"$18446744073709551615\r\nREDIS0011"),
        full(b"$-1\r\n"),
        full(b"$EOF:short\r\n"),
        full(b"-ERR no snapshot for you\r\n"),
        counted(b""),
        counted(b"not a snapshot at all"),
        counted(b"REDIS9999"),
        counted(&rdb),
        marked(&rdb),
        // A string of a length that is not there.
        marked(b"REDIS0011\x00\x01k\x80\xff\xff\xff\xff"),
        // Right to the checksum, but for a value: a sorted set's listpack whose scores are none, and a set with a member
        // that comes twice.
        marked(&closed(b"REDIS0011\xfe\x00\x11\x01z\x0d\x0d\0\0\0\x02\0\x81m\x02\x81x\x02\xff")),
        marked(&closed(b"REDIS0011\xfe\x00\x00\x01k\x01v\x02\x01s\x02\x01a\x01a")),
        // A library that is none.
        marked(&closed(b"REDIS0011\xf5\x0bnot a shebang")),
        // All is well but the checksum.
        marked(b"REDIS0011\x00\x01k\x01v\xff12345678"),
        vec![b'x'; 100_000],
        vec![b'\n'; 100_000],
    ]
}

#[test]
fn nonsense_costs_a_replica_nothing() {
    let replica = ours(&[]);
    let mut client = replica.client();
    client.check("SET kept 1; RPUSH list a b", "+OK; :2");
    let all = answers();
    let wanted = all.len() as u64;
    for answer in all {
        let shown = answer[..answer.len().min(60)].escape_ascii().to_string();
        let (port, done) = serve(vec![answer]);
        client.check(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK...");
        wait_until(&format!("a session with {shown}"), Duration::from_secs(10), || {
            if done.load(Ordering::SeqCst) > 0 { Ok(()) } else { Err(log_of(&replica)) }
        });
        client.check("GET kept; LLEN list", "1; :2");
        assert!(client.run("INFO replication").text().contains("master_link_status:down"), "{shown}");
    }
    assert!(wanted > 10);
    client.check("REPLICAOF NO ONE; SET new 1; GET kept", "+OK; +OK; 1");
}

#[test]
fn a_stream_of_nonsense_ends_the_link() {
    let id = "a".repeat(40);
    let mark = "m".repeat(40);
    // An empty snapshot without a checksum, then the stream.
    let snapshot = format!("+FULLRESYNC {id} 100\r\n$EOF:{mark}\r\n").into_bytes();
    let snapshot = [&snapshot[..], b"REDIS0011\xff\0\0\0\0\0\0\0\0", mark.as_bytes()].concat();
    for stream in [
        b"GET inline text\r\n".to_vec(),
        b"*-5\r\n*1\r\n$-9\r\n".to_vec(),
        b"*99999999999\r\n".to_vec(),
        b"*2\r\n$4\r\nINCR\r\n$99999999999999\r\n".to_vec(),
        [b"*1\r\n$5\r\nMULTI\r\n".as_slice(), b"*1\r\n$4\r\nEXEC\r\n*1\r\n$7\r\nNOTHING\r\n*1\r\nx"].concat(),
        b"*3\r\n$5\r\nBLPOP\r\n$1\r\nk\r\n$1\r\n0\r\n*1\r\n+\r\n".to_vec(),
    ] {
        let replica = ours(&[]);
        let shown = stream.escape_ascii().to_string();
        let (port, done) = serve(vec![[&snapshot[..], &stream].concat()]);
        let mut client = replica.client();
        client.check(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK...");
        wait_until(&shown, Duration::from_secs(10), || {
            if done.load(Ordering::SeqCst) > 0 { Ok(()) } else { Err(log_of(&replica)) }
        });
        client.check("PING; REPLICAOF NO ONE; SET a 1", "+PONG; +OK; +OK");
        assert_eq!(client.info("oxidis_panics").unwrap(), "0", "{shown}\n{}", log_of(&replica));
    }
}
