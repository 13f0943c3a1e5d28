//! The proxy in front of backends that are dead, hang, break off or send elsewhere; and what is held back.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use testkit::process::{self, Signal};
use testkit::server::free_port;
use testkit::{Answer, Client, Launch, Responder, Server, wait_until};

/// `a` is in slot 15495, `b` in 3300: on different halves.
fn halves(of_b: u16, of_a: u16) -> String {
    format!("static 0-8191@127.0.0.1:{of_b} 8192-16383@127.0.0.1:{of_a}")
}

fn start(topology: &str, directives: &[&str]) -> Server {
    Launch::proxy().args(&["--topology", topology]).args(directives).start()
}

fn at_once(client: &mut Client, command: &str) -> String {
    let started = Instant::now();
    let text = client.run(command).text();
    assert!(started.elapsed() < Duration::from_millis(200), "{command} took {:?}", started.elapsed());
    text
}

#[test]
fn a_dead_backend_fails_its_own_requests_only_and_comes_back() {
    let (alive, dead) = (Server::oxidis(&[]), free_port().unwrap());
    let proxy = start(&halves(alive.port(), dead), &[]);
    let mut client = proxy.client();
    let refused = format!("ERR backend 127.0.0.1:{dead} is not reachable: ");
    assert!(client.run("GET a").text().starts_with(&refused));
    assert_eq!(at_once(&mut client, "SET b 1"), "OK");
    assert!(at_once(&mut client, "GET a").starts_with(&refused));
    let replies =
        client.pipeline(&[vec!["GET", "b"], vec!["GET", "a"], vec!["GET", "b"], vec!["MGET", "a", "b"]]).unwrap();
    let texts: Vec<String> = replies.iter().map(testkit::Reply::text).collect();
    assert_eq!((texts[0].as_str(), texts[2].as_str()), ("1", "1"));
    assert!(texts[1].starts_with(&refused) && texts[3].starts_with(&refused), "{texts:?}");
    let _back = Launch::oxidis().port(dead).start();
    wait_until("the backend to be used again", Duration::from_secs(5), || {
        match client.run("SET a 2").text().as_str() {
            "OK" => Ok(()),
            other => Err(other.to_owned()),
        }
    });
}

#[test]
fn a_hung_backend_fails_its_own_requests_only_and_comes_back() {
    let (alive, hung) = (Server::oxidis(&[]), Server::oxidis(&[]));
    let proxy =
        start(&halves(alive.port(), hung.port()), &["--backend-timeout", "300", "--backend-connect-timeout", "300"]);
    let (mut waiting, mut other) = (proxy.client(), proxy.client());
    other.check("MSET a 1 b 2", "+OK");
    hung.signal(Signal::Stop).unwrap();
    let started = Instant::now();
    waiting.send(&["GET", "a"]).unwrap();
    waiting.send(&["GET", "b"]).unwrap();
    while started.elapsed() < Duration::from_millis(200) {
        assert_eq!(at_once(&mut other, "GET b"), "2");
    }
    let late = format!("ERR backend 127.0.0.1:{} did not answer in 300 ms", hung.port());
    assert_eq!(waiting.read().unwrap().text(), late);
    assert_eq!(waiting.read().unwrap().text(), "2");
    assert!(started.elapsed() < Duration::from_millis(1_500), "{:?}", started.elapsed());
    for _ in 0..20 {
        assert_eq!(at_once(&mut waiting, "GET a"), late);
        assert_eq!(at_once(&mut other, "GET b"), "2");
        std::thread::sleep(Duration::from_millis(20));
    }
    hung.signal(Signal::Continue).unwrap();
    wait_until("the backend to be used again", Duration::from_secs(5), || match waiting.run("GET a").text().as_str() {
        "1" => Ok(()),
        other => Err(other.to_owned()),
    });
}

#[test]
fn a_request_that_may_have_been_run_is_not_sent_again() {
    let backend = Responder::start(|request| match request[1].as_slice() {
        b"cut" => Answer::Cut(Vec::new()),
        b"half" => Answer::Cut(b"$100\r\nthe beginning".to_vec()),
        _ => Answer::After(Duration::ZERO, b"+fine\r\n".to_vec()),
    })
    .unwrap();
    let proxy = start(&format!("server 127.0.0.1:{}", backend.port()), &[]);
    let mut client = proxy.client();
    let ended = format!("ERR backend 127.0.0.1:{} ended the connection before it answered", backend.port());
    let replies = client.pipeline(&[vec!["GET", "x"], vec!["INCR", "cut"], vec!["GET", "y"]]).unwrap();
    let texts: Vec<String> = replies.iter().map(testkit::Reply::text).collect();
    assert_eq!(texts, ["fine", &ended, &ended]);
    assert!(backend.requests() <= 3, "{} requests", backend.requests());
    let fine = |client: &mut Client| {
        wait_until("the backend to be used again", Duration::from_secs(5), || {
            match client.run("GET x").text().as_str() {
                "fine" => Ok(()),
                other => Err(other.to_owned()),
            }
        });
    };
    fine(&mut client);
    // Nothing right can follow the beginning of a reply; the others do not notice.
    let mut other = proxy.client();
    client.send(&["GET", "half"]).unwrap();
    let (got, closed) = client.read_to_end(Duration::from_secs(2));
    assert!(closed && got.starts_with(b"$100\r\nthe beg"), "{closed}: {}", got.escape_ascii());
    fine(&mut other);
}

#[test]
fn what_a_backend_sends_elsewhere_goes_there_in_order() {
    let asked = Arc::new(AtomicU32::new(0));
    let (of_new, seen) = (asked.clone(), Arc::new(AtomicU32::new(0)));
    let of_asking = seen.clone();
    let new = Responder::start(move |request| {
        if request[0] == b"ASKING" {
            of_asking.fetch_add(1, Ordering::SeqCst);
            return Answer::After(Duration::ZERO, b"+OK\r\n".to_vec());
        }
        of_new.fetch_add(1, Ordering::SeqCst);
        Answer::After(Duration::from_millis(2), [b"+new:", request[1].as_slice(), b"\r\n"].concat())
    })
    .unwrap();
    let port = Arc::new(AtomicU16::new(new.port()));
    let tries = AtomicU32::new(0);
    let old = Responder::start(move |request| {
        let port = port.load(Ordering::SeqCst);
        let text = match request[1].as_slice() {
            b"moved" => format!("-MOVED 1 127.0.0.1:{port}\r\n"),
            b"ask" => format!("-ASK 1 :{port}\r\n"),
            b"again" if tries.fetch_add(1, Ordering::SeqCst) < 2 => "-TRYAGAIN Multiple keys\r\n".to_owned(),
            b"never" => "-TRYAGAIN Multiple keys\r\n".to_owned(),
            key => format!("+old:{}\r\n", String::from_utf8_lossy(key)),
        };
        Answer::After(Duration::ZERO, text.into_bytes())
    })
    .unwrap();
    let proxy = start(&format!("server 127.0.0.1:{}", old.port()), &["--backend-retry-time", "200"]);
    let mut client = proxy.client();
    for _ in 0..3 {
        let keys = ["a", "moved", "b", "c", "moved", "ask", "d", "moved"];
        let commands: Vec<[&str; 2]> = keys.iter().map(|key| ["GET", key]).collect();
        let texts: Vec<String> = client.pipeline(&commands).unwrap().iter().map(testkit::Reply::text).collect();
        assert_eq!(texts, ["old:a", "new:moved", "old:b", "old:c", "new:moved", "new:ask", "old:d", "new:moved"]);
    }
    assert_eq!((asked.load(Ordering::SeqCst), seen.load(Ordering::SeqCst)), (12, 3));
    assert_eq!(client.run("GET again").text(), "old:again");
    assert_eq!(client.run("GET never").text(), "TRYAGAIN Multiple keys");
    assert_eq!(client.run("GET a").text(), "old:a");
}

#[test]
fn who_is_ahead_of_a_backend_is_not_read_from() {
    let backend = Responder::start(|_| Answer::Never).unwrap();
    let proxy = start(
        &format!("server 127.0.0.1:{}", backend.port()),
        &["--backend-timeout", "60000", "--client-pipeline-limit", "1000000", "--backend-queue-limit", "1mb"],
    );
    let before = process::resident_bytes(proxy.pid()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let value = "x".repeat(10_000);
    let request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10000\r\n{value}\r\n");
    let mut written = 0_usize;
    while written < (200 << 20) && stream.write_all(request.as_bytes()).is_ok() {
        written += request.len();
    }
    assert!(written < (60 << 20), "{written} bytes were taken");
    let grown = process::resident_bytes(proxy.pid()).unwrap().saturating_sub(before);
    assert!(grown < (24 << 20), "{grown} bytes of memory for what nobody answers");
    // Others are served meanwhile.
    assert_eq!(proxy.client().run("PING").text(), "PONG");
}

#[test]
fn who_does_not_read_is_not_read_from() {
    let server = Server::oxidis(&[]);
    let proxy = start(&format!("server 127.0.0.1:{}", server.port()), &["--client-output-pause", "256kb"]);
    let mut client = proxy.client();
    let value = "v".repeat(100_000);
    client.call(&["SET", "big", &value]).unwrap();
    client.send(&["PING"]).unwrap();
    client.read().unwrap();
    let before = process::resident_bytes(proxy.pid()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    let count = 2_000;
    let mut reader = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for _ in 0..count {
            stream.write_all(b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n").unwrap();
            // Ten thousand small ones would be read at once: these come as a client writes them.
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    std::thread::sleep(Duration::from_millis(700));
    let grown = process::resident_bytes(proxy.pid()).unwrap().saturating_sub(before);
    assert!(grown < (64 << 20), "{grown} bytes of memory for what nobody reads");
    let whole = count * ("$100000\r\n".len() + 100_002);
    let (mut got, mut buffer) = (0, vec![0; 1 << 20]);
    reader.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while got < whole {
        got += reader.read(&mut buffer).unwrap();
    }
    assert_eq!(got, whole);
    writing.join().unwrap();
    client.check("PING", "+PONG");
}

#[test]
fn users_have_their_rights_at_the_proxy() {
    let server = Server::oxidis(&["--requirepass", "deep"]);
    let topology = format!("server 127.0.0.1:{}", server.port());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        format!("topology {topology}\nrequirepass outer\nbackend-password deep\nuser joe on >j ~j:* +get +set +mget\n"),
    )
    .unwrap();
    let proxy = Launch::proxy().args(&[file.path().to_str().unwrap()]).start();
    let mut client = proxy.client();
    client.check("GET a", "-NOAUTH Authentication required.");
    client.check("AUTH deep", "-WRONGPASS invalid username-password pair or user is disabled.");
    client.check("AUTH outer", "+OK");
    client.check("SET j:1 x", "+OK");
    client.check("AUTH joe j", "+OK");
    client.check("GET j:1", "x");
    client.check("GET a", "-NOPERM No permissions to access a key");
    client.check("MGET j:1 a", "-NOPERM No permissions to access a key");
    client.check("DEL j:1", "-NOPERM User joe has no permissions to run the 'del' command");
    client.check("GET j:1", "x");
}

#[test]
fn a_wrong_password_for_the_backend_is_told() {
    let server = Server::oxidis(&["--requirepass", "deep"]);
    let topology = format!("server 127.0.0.1:{}", server.port());
    let refused = format!("ERR backend 127.0.0.1:{} refused the proxy: ", server.port());
    let proxy = start(&topology, &[]);
    assert_eq!(proxy.client().run("GET a").text(), format!("{refused}NOAUTH Authentication required."));
    let proxy = start(&topology, &["--backend-password", "wrong"]);
    let text = proxy.client().run("GET a").text();
    assert_eq!(text, format!("{refused}WRONGPASS invalid username-password pair or user is disabled."));
}
