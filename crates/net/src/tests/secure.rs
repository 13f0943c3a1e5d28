//! Encrypted connections: records in pieces, slow readers, ends of every kind.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use testkit::{Authority, Certificate};

use super::service::{Lines, Running};
use crate::tls::{
    Acceptor, ClientCertificates, ClientSettings, Connector, Identity, Rules, ServerSettings, SessionCache, Stream,
    Trusted, Verify,
};

fn identity(files: &Certificate) -> Identity {
    Identity { certificate: files.certificate.clone(), key: files.key.clone(), password: None }
}

fn trusting(authority: &Authority) -> Trusted {
    Trusted { file: Some(authority.certificate()), directory: None }
}

fn server(authority: &Authority, client_certificates: ClientCertificates) -> ServerSettings {
    ServerSettings {
        identity: identity(&authority.issue("server", &["localhost"])),
        trusted: trusting(authority),
        client_certificates,
        rules: Rules::default(),
        prefers_own_order: false,
        cache: Some(SessionCache { entries: 10, life: Duration::from_secs(60) }),
    }
}

fn connector(authority: &Authority) -> Connector {
    ClientSettings { trusted: trusting(authority), ..ClientSettings::default() }.load().unwrap()
}

fn start(settings: &ServerSettings, service: Lines) -> Running {
    let acceptor = Arc::new(Acceptor::new(settings.load().unwrap()));
    Running::start_on(service, |listener| listener.secured_by(acceptor))
}

/// A loop with a certificate, and what connects to it.
fn pair(service: Lines) -> (Running, Connector) {
    let authority = Authority::new("authority");
    let running = start(&server(&authority, ClientCertificates::No), service);
    (running, connector(&authority))
}

fn client(running: &Running, connector: &Connector) -> Stream {
    Stream::connect(running.client().0, connector).unwrap()
}

fn expect(stream: &mut Stream, text: &str) {
    let mut got = vec![0; text.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), text);
}

#[test]
fn requests_and_replies_of_all_sizes() {
    let (running, connector) = pair(Lines::new());
    let mut stream = client(&running, &connector);
    stream.write_all(b"echo a\necho b\n").unwrap();
    expect(&mut stream, "a\nb\n");
    let len = 3_000_000;
    stream.write_all(format!("need {len}\n{}\nbig {len}\necho end\n", "y".repeat(len)).as_bytes()).unwrap();
    expect(&mut stream, &format!("got {len}\n"));
    let mut big = vec![0; len];
    stream.read_exact(&mut big).unwrap();
    assert!(big.iter().all(|byte| *byte == b'x'));
    expect(&mut stream, "end\n");
    running.wait("only the session is held", |service, conns| {
        let id = service.opened[0];
        conns.is_secure(id) && conns.pending_output(id) == 0 && conns.held_bytes(id) < 16 * 1024
    });
}

/// A session without a socket of its own.
struct Raw {
    session: ClientConnection,
    socket: TcpStream,
}

impl Raw {
    fn connect(running: &Running, connector: &Connector) -> Raw {
        let session = ClientConnection::new(connector.config.clone(), connector.name.clone()).unwrap();
        Raw { session, socket: running.client().0 }
    }

    /// What the session wants to send.
    fn records(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    fn receive(&mut self) -> usize {
        let got = self.session.read_tls(&mut self.socket).unwrap();
        // An alert may stand behind what is looked for.
        let _ = self.session.process_new_packets();
        got
    }

    fn shake(&mut self) {
        while self.session.is_handshaking() {
            let bytes = self.records();
            self.socket.write_all(&bytes).unwrap();
            if self.session.is_handshaking() {
                self.receive();
            }
        }
        let bytes = self.records();
        self.socket.write_all(&bytes).unwrap();
    }

    fn expect(&mut self, text: &str) {
        let mut got = vec![0; text.len()];
        let mut len = 0;
        while len < got.len() {
            match self.session.reader().read(&mut got[len..]) {
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => assert!(self.receive() > 0, "closed early"),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(String::from_utf8_lossy(&got), text);
    }
}

#[test]
fn records_may_come_byte_by_byte() {
    let (running, connector) = pair(Lines::new());
    let mut raw = Raw::connect(&running, &connector);
    raw.socket.set_nodelay(true).unwrap();
    while raw.session.is_handshaking() {
        for byte in raw.records() {
            raw.socket.write_all(&[byte]).unwrap();
        }
        if raw.session.is_handshaking() {
            raw.receive();
        }
    }
    raw.session.writer().write_all(b"echo slow\necho mot").unwrap();
    for byte in raw.records() {
        raw.socket.write_all(&[byte]).unwrap();
        running.ask(|_, _, _| ());
    }
    raw.expect("slow\n");
    raw.session.writer().write_all(b"ion\n").unwrap();
    let bytes = raw.records();
    raw.socket.write_all(&bytes).unwrap();
    raw.expect("motion\n");
}

#[test]
fn a_slow_reader_is_waited_for() {
    let (running, connector) = pair(Lines::new());
    let mut raw = Raw::connect(&running, &connector);
    raw.shake();
    let len = 8_000_000;
    raw.session.writer().write_all(format!("big {len}\n").as_bytes()).unwrap();
    let bytes = raw.records();
    raw.socket.write_all(&bytes).unwrap();
    running.wait("output waits", |service, conns| conns.pending_output(service.opened[0]) > 1_000_000);
    // It is plain output that waits, so it is counted as what it is.
    running.ask(move |service, _, conns| assert!(conns.pending_output(service.opened[0]) <= len + 100_000));
    let mut seen = 0;
    while seen < len {
        raw.receive();
        let mut piece = [0; 20_000];
        while let Ok(got @ 1..) = raw.session.reader().read(&mut piece) {
            assert!(piece[..got].iter().all(|byte| *byte == b'x'));
            seen += got;
        }
    }
    assert_eq!(seen, len);
    running.wait("all is sent", |service, conns| conns.pending_output(service.opened[0]) == 0);
}

#[test]
fn too_much_output_ends_it() {
    let (running, connector) = pair(Lines { output_limit: 100_000, ..Lines::new() });
    let mut stream = client(&running, &connector);
    stream.write_all(b"big 20000000\n").unwrap();
    running.wait_log("closed OutputLimit");
}

#[test]
fn an_end_is_told() {
    let (running, connector) = pair(Lines::new());
    let mut raw = Raw::connect(&running, &connector);
    raw.shake();
    raw.session.writer().write_all(b"echo last\nclose\n").unwrap();
    let bytes = raw.records();
    raw.socket.write_all(&bytes).unwrap();
    raw.expect("last\n");
    while raw.receive() > 0 {}
    // 0 rather than "unexpected end": there was a close_notify.
    assert_eq!(raw.session.reader().read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn what_was_sent_before_the_end_is_served() {
    let (running, connector) = pair(Lines::new());
    for told in [true, false] {
        let mut raw = Raw::connect(&running, &connector);
        raw.shake();
        raw.session.writer().write_all(b"echo one\nbig 500000\necho two\n").unwrap();
        if told {
            raw.session.send_close_notify();
        }
        // All in one piece, with the end of the connection behind it.
        let bytes = raw.records();
        raw.socket.write_all(&bytes).unwrap();
        if !told {
            raw.socket.shutdown(Shutdown::Write).unwrap();
        }
        raw.expect(&format!("one\n{}two\n", "x".repeat(500_000)));
        while raw.receive() > 0 {}
    }
    running.wait("both are closed", |_, conns| conns.is_empty());
}

#[test]
fn what_was_sent_to_a_paused_connection_before_its_end_is_served() {
    let (running, connector) = pair(Lines { keep_half_closed: true, ..Lines::new() });
    let mut raw = Raw::connect(&running, &connector);
    raw.shake();
    raw.session.writer().write_all(b"echo one\npause\necho two\n").unwrap();
    raw.session.send_close_notify();
    let bytes = raw.records();
    raw.socket.write_all(&bytes).unwrap();
    raw.expect("one\n");
    running.wait("the rest is kept", |service, conns| conns.pending_input(service.opened[0]) == 9);
    running.ask(|service, _, conns| conns.resume(service.opened[0]));
    raw.expect("two\n");
    while raw.receive() > 0 {}
}

#[test]
fn a_broken_record_ends_it_after_what_came_before() {
    let (running, connector) = pair(Lines::new());
    let mut raw = Raw::connect(&running, &connector);
    raw.shake();
    raw.session.writer().write_all(b"echo good\n").unwrap();
    let mut bytes = raw.records();
    raw.session.writer().write_all(b"echo bad\n").unwrap();
    let mut bad = raw.records();
    *bad.last_mut().unwrap() ^= 1;
    bytes.extend(bad);
    raw.socket.write_all(&bytes).unwrap();
    running.wait("it is closed", |service, conns| !service.opened.is_empty() && conns.is_empty());
    // It was served; its answer could not be sent behind the alert.
    assert_eq!(running.ask(|service, _, _| service.calls), 1);
}

#[test]
fn corked_output_waits() {
    let (running, connector) = pair(Lines::new());
    let mut stream = client(&running, &connector);
    stream.write_all(b"echo first\n").unwrap();
    expect(&mut stream, "first\n");
    running.ask(|service, _, conns| {
        conns.cork(service.opened[0]);
        conns.write(service.opened[0], b"held\n");
    });
    stream.write_all(b"echo behind\n").unwrap();
    running.wait("it is kept", |service, conns| conns.pending_output(service.opened[0]) == 12);
    running.ask(|service, _, conns| conns.uncork(service.opened[0]));
    expect(&mut stream, "held\nbehind\n");
}

#[test]
fn plain_text_and_old_versions_are_refused() {
    let (running, _) = pair(Lines::new());
    let mut plain = running.client();
    plain.send("PING\r\necho never\n");
    let mut rest = Vec::new();
    let _ = plain.0.read_to_end(&mut rest);
    assert!(!rest.windows(5).any(|window| window == b"never"));
    running.wait("it is told", |service, _| {
        service.log.lock().unwrap().iter().any(|line| line.starts_with("refused: received corrupt message"))
    });

    // A hello of TLS 1.1: two ciphers, no compression, nothing else.
    let mut hello = vec![3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0xc0, 0x14, 0, 0x35, 1, 0]);
    let mut record =
        vec![22, 3, 1, 0, u8::try_from(hello.len()).unwrap() + 4, 1, 0, 0, u8::try_from(hello.len()).unwrap()];
    record.extend(hello);
    let mut old = running.client();
    old.0.write_all(&record).unwrap();
    let mut answer = Vec::new();
    let _ = old.0.read_to_end(&mut answer);
    // An alert, fatal; nothing else.
    assert_eq!(answer.first(), Some(&21), "{answer:?}");
    running.wait("all are gone", |_, conns| conns.is_empty());
}

#[test]
fn half_handshakes_hold_nobody_up() {
    let (running, connector) = pair(Lines::new());
    let mut halves = Vec::new();
    for _ in 0..300 {
        let mut raw = Raw::connect(&running, &connector);
        let bytes = raw.records();
        raw.socket.write_all(&bytes[..bytes.len() / 2]).unwrap();
        halves.push(raw.socket);
    }
    let mut stream = client(&running, &connector);
    stream.write_all(b"echo fine\n").unwrap();
    expect(&mut stream, "fine\n");
    drop(halves);
    running.wait("one is left", |_, conns| conns.len() == 1);
}

#[test]
fn a_loop_connects_to_a_loop() {
    let (theirs, connector) = pair(Lines::new());
    let ours = Running::start(Lines::new());
    let address = theirs.address;
    ours.ask(move |_, _, conns| {
        let id = conns.connect(address, ()).unwrap();
        conns.secure(id, &connector).unwrap();
        // Their answer is a request to us, whose answer ends it all.
        assert!(conns.write(id, b"echo echo stop\n"));
    });
    ours.wait_log("connected Ok(())");
    theirs.wait_log("closed Service");
    ours.wait_log("closed Peer");
}

#[test]
fn a_loop_does_not_trust_everybody() {
    let (theirs, _) = pair(Lines::new());
    let connector = connector(&Authority::new("somebody else"));
    let ours = Running::start(Lines::new());
    let address = theirs.address;
    ours.ask(move |_, _, conns| {
        let id = conns.connect(address, ()).unwrap();
        conns.secure(id, &connector).unwrap();
        conns.write(id, b"echo secret\n");
    });
    ours.wait_log("closed Failed(InvalidData)");
    assert_eq!(ours.log.lock().unwrap()[0], "connected Err(InvalidData)");
    theirs
        .wait("they are told", |service, _| service.log.lock().unwrap().iter().any(|line| line.contains("UnknownCA")));
    assert_eq!(theirs.ask(|service, _, _| service.calls), 0);
}

#[test]
fn who_is_trusted() {
    let authority = Authority::new("authority");
    let other = Authority::new("other");
    let settings = server(&authority, ClientCertificates::Required);
    let running = start(&settings, Lines::new());
    let try_with = |settings: &ClientSettings| {
        let mut stream = Stream::connect(running.client().0, &settings.load().unwrap())?;
        stream.write_all(b"echo in\n")?;
        // With TLS 1.3 a client learns only now that it was refused.
        let mut answer = [0; 3];
        stream.read_exact(&mut answer)
    };
    let good = ClientSettings {
        identity: Some(identity(&authority.issue("client", &[]))),
        trusted: trusting(&authority),
        ..ClientSettings::default()
    };
    try_with(&good).unwrap();
    let with = |files: &Certificate| ClientSettings { identity: Some(identity(files)), ..good.clone() };
    assert!(try_with(&ClientSettings { identity: None, ..good.clone() }).is_err(), "no certificate");
    assert!(try_with(&with(&other.issue("client", &[]))).is_err(), "another authority's");
    assert!(try_with(&with(&authority.issue_until("old", &[], 2001))).is_err(), "expired");
    try_with(&with(&authority.itself())).unwrap();

    let verify = |verify| ClientSettings { verify, ..good.clone() };
    try_with(&verify(Verify::Host("localhost".to_owned()))).unwrap();
    let error = try_with(&verify(Verify::Host("elsewhere".to_owned()))).unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    let distrusting = ClientSettings { trusted: trusting(&other), ..good.clone() };
    let error = try_with(&distrusting).unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    try_with(&ClientSettings { verify: Verify::Nothing, ..distrusting }).unwrap();
    let old = ClientSettings { rules: Rules { protocols: "TLSv1.2".to_owned(), ..Rules::default() }, ..good.clone() };
    try_with(&old).unwrap();
    // Twice, so that the second takes the session of the first up again.
    try_with(&old).unwrap();

    let by_directory = Trusted { file: None, directory: Some(authority.directory().to_owned()) };
    try_with(&ClientSettings { trusted: by_directory, ..good.clone() }).unwrap();
}

#[test]
fn settings_that_cannot_be() {
    let authority = Authority::new("authority");
    let good = server(&authority, ClientCertificates::No);
    let why = |settings: &ServerSettings| settings.load().map(|_| ()).unwrap_err().to_string();
    let mixed = Identity { key: authority.issue("other", &[]).key, ..good.identity.clone() };
    assert!(why(&ServerSettings { identity: mixed, ..good.clone() }).starts_with("Failed to load private key: "));
    let missing = Identity { certificate: "/nowhere".into(), ..good.identity.clone() };
    assert!(
        why(&ServerSettings { identity: missing, ..good.clone() })
            .starts_with("Failed to load certificate: /nowhere: ")
    );
    let nobody = Trusted { file: Some(good.identity.key.clone()), directory: None };
    assert!(
        why(&ServerSettings { trusted: nobody, ..good.clone() }).starts_with("Failed to configure CA certificate(s)")
    );
    let rules = Rules { ciphers: "RC4-SHA".to_owned(), ..Rules::default() };
    assert!(why(&ServerSettings { rules, ..good.clone() }).starts_with("Failed to configure ciphers: RC4-SHA"));
    let rules = Rules { protocols: "TLSv1.1".to_owned(), ..Rules::default() };
    assert!(why(&ServerSettings { rules, ..good.clone() }).starts_with("TLSv1.1 is specified"));
}

#[test]
fn settings_are_replaced_while_in_use() {
    let (one, two) = (Authority::new("one"), Authority::new("two"));
    let acceptor = Arc::new(Acceptor::new(server(&one, ClientCertificates::No).load().unwrap()));
    let of_listener = acceptor.clone();
    let running = Running::start_on(Lines::new(), |listener| listener.secured_by(of_listener));
    let mut before = client(&running, &connector(&one));
    before.write_all(b"echo a\n").unwrap();
    expect(&mut before, "a\n");
    acceptor.replace(server(&two, ClientCertificates::No).load().unwrap());
    assert!(Stream::connect(running.client().0, &connector(&one)).is_err());
    let mut after = client(&running, &connector(&two));
    for stream in [&mut before, &mut after] {
        stream.write_all(b"echo b\n").unwrap();
        expect(stream, "b\n");
    }
}
