//! E3: handshakes that must fail, and fail quickly, quietly and without a word in plain text.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Authority, Certificate, Server, binary, server::free_port};

use super::bystander::Bystander;
use super::{Context, ensure_alive};

/// How long a server may take to end a connection that is no good.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server with an encrypted port that wants certificates.
struct Setup {
    server: Server,
    port: u16,
    authority: Authority,
}

fn setup(context: &Context<'_>) -> Result<Setup> {
    let authority = Authority::new("right");
    let files = authority.issue("server", &["localhost", "127.0.0.1"]);
    let port = free_port()?;
    let ca = authority.certificate();
    let server = context.server(&[
        "--io-threads",
        "2",
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        files.certificate(),
        "--tls-key-file",
        files.key(),
        "--tls-ca-cert-file",
        ca.to_str().context("a path")?,
        "--tls-auth-clients",
        "yes",
    ])?;
    Ok(Setup { server, port, authority })
}

impl Setup {
    /// What the stock client says to PING, or why it cannot.
    fn ping(&self, port: u16, certificate: Option<&Certificate>) -> Result<(bool, String)> {
        let program = binary::peer("redis-cli").context("redis-cli is missing: apt-get install redis-tools")?;
        let mut command = Command::new(program);
        command.args(["-p", &port.to_string(), "--tls", "--cacert"]).arg(self.authority.certificate());
        if let Some(files) = certificate {
            command.args(["--cert", files.certificate(), "--key", files.key()]);
        }
        let output = command.arg("ping").stdin(Stdio::null()).output()?;
        let all = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&all).trim().to_owned();
        Ok((text == "PONG", text))
    }

    /// What the server sends in answer to these bytes, and whether it ends the connection.
    fn answer(&self, bytes: &[u8]) -> Result<(Vec<u8>, bool)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(bytes)?;
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).is_ok();
        Ok((answer, ended))
    }
}

/// A hello of an old version of the protocol.
fn old_hello(minor: u8) -> Vec<u8> {
    let mut body = vec![3, minor];
    body.extend([7; 32]);
    body.push(0);
    let suites: [u16; 4] = [0xC013, 0xC014, 0x002F, 0x0035];
    body.extend([0, 8]);
    suites.iter().for_each(|suite| body.extend(suite.to_be_bytes()));
    body.extend([1, 0]);
    let mut hello = vec![22, 3, minor, 0, u8::try_from(body.len() + 4).unwrap_or(u8::MAX), 1, 0, 0];
    hello.push(u8::try_from(body.len()).unwrap_or(u8::MAX));
    hello.extend(body);
    hello
}

/// The hello that the stock client sends.
fn present_hello(setup: &Setup) -> Result<Vec<u8>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::scope(|scope| {
        let asking = scope.spawn(move || setup.ping(port, None));
        let (mut stream, _) = listener.accept()?;
        // The client tries once more, and would wait where nobody answers.
        drop(listener);
        let mut hello = vec![0; 4096];
        let count = stream.read(&mut hello)?;
        stream.shutdown(Shutdown::Both)?;
        hello.truncate(count);
        asking.join().map_err(|_| anyhow::anyhow!("the client panicked"))??;
        ensure!(hello.first() == Some(&22), "that is no hello");
        Ok(hello)
    })
}

/// Passes one connection on and ends it after so many bytes in both directions.
fn cut_after(setup: &Setup, certificate: &Certificate, limit: usize) -> Result<bool> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::scope(|scope| {
        let asking = scope.spawn(move || setup.ping(port, Some(certificate)));
        let (client, _) = listener.accept()?;
        drop(listener);
        let server = TcpStream::connect(("127.0.0.1", setup.port))?;
        let left = std::sync::atomic::AtomicUsize::new(limit);
        std::thread::scope(|inner| {
            for (mut from, mut to) in [(&client, &server), (&server, &client)] {
                let left = &left;
                inner.spawn(move || {
                    let mut bytes = [0; 256];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        let before = left.load(std::sync::atomic::Ordering::SeqCst);
                        let passed = count.min(before);
                        left.store(before - passed, std::sync::atomic::Ordering::SeqCst);
                        if to.write_all(&bytes[..passed]).is_err() || passed < count || before == passed {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        });
        let (pong, _) = asking.join().map_err(|_| anyhow::anyhow!("the client panicked"))??;
        Ok(pong)
    })
}

/// Whether bytes of the server are the protocol's and no word of Redis'.
fn is_record(answer: &[u8]) -> bool {
    answer.is_empty() || matches!(answer, [20..=23, 3, ..])
}

/// E3.
pub(super) fn handshakes(context: &Context<'_>) -> Result<String> {
    let mut setup = setup(context)?;
    let right = setup.authority.issue("client", &[]);
    ensure!(setup.ping(setup.port, Some(&right))?.0, "a good client is refused");
    let bystander = Bystander::start(&setup.server, "")?;
    // Whom the server must not let in.
    let other = Authority::new("other");
    let expired = setup.authority.issue_until("expired", &[], 2001);
    let foreign = other.issue("foreign", &[]);
    for (name, files) in [("expired", Some(&expired)), ("foreign", Some(&foreign)), ("no certificate", None)] {
        let (pong, text) = setup.ping(setup.port, files)?;
        ensure!(!pong, "{name} was let in: {text}");
    }
    // Old versions, plain text, garbage.
    let hello = present_hello(&setup)?;
    let odd: [(&str, Vec<u8>); 6] = [
        ("TLS 1.0", old_hello(1)),
        ("TLS 1.1", old_hello(2)),
        ("SSL 3", old_hello(0)),
        ("plain PING", b"*1\r\n$4\r\nPING\r\n".to_vec()),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("a hello and garbage", [hello.as_slice(), &[0xFF; 64]].concat()),
    ];
    for (name, bytes) in &odd {
        let (answer, ended) = setup.answer(bytes)?;
        ensure!(ended && is_record(&answer), "{name}: ended {ended}, {:?}", String::from_utf8_lossy(&answer));
    }
    // Half handshakes that stay, and those that end at each byte.
    let halves = context.pick(100, 1_000);
    let mut open = Vec::new();
    for number in 0..halves {
        let mut stream = TcpStream::connect(("127.0.0.1", setup.port))?;
        stream.write_all(&hello[..1 + number % (hello.len() - 1)])?;
        open.push(stream);
    }
    ensure!(setup.ping(setup.port, Some(&right))?.0, "a good client waits behind half handshakes");
    for end in (1..hello.len()).step_by(context.pick(16, 1)) {
        let mut stream = TcpStream::connect(("127.0.0.1", setup.port))?;
        stream.write_all(&hello[..end])?;
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut answer = Vec::new();
        ensure!(stream.read_to_end(&mut answer).is_ok() && is_record(&answer), "cut after {end} bytes");
    }
    drop(open);
    let mut cuts = 0;
    let mut limit = 1;
    while !cut_after(&setup, &right, limit)? {
        cuts += 1;
        ensure!(limit < 100_000, "the handshake does not end");
        limit += context.pick(400, 40);
    }
    ensure!(setup.ping(setup.port, Some(&right))?.0, "a good client is refused afterwards");
    let felt = bystander.finish()?;
    ensure_alive(&mut setup.server)?;
    felt.ensure_quick()?;
    Ok(format!("all refused, {halves} half handshakes, {cuts} cut handshakes; {felt}"))
}
