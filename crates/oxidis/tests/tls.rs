//! TLS: our server with stock clients, our clients with a stock server, and whom either refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use testkit::server::free_port;
use testkit::{Authority, Certificate, Launch, Reply, Server, wait_until};

const LIMIT: Duration = Duration::from_secs(20);

/// A server with a plain and an encrypted port, and who signs for it.
struct Setup {
    authority: Authority,
    server: Server,
    client: Certificate,
    port: u16,
}

fn words(text: &[String]) -> Vec<&str> {
    text.iter().map(String::as_str).collect()
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The directives of a server with certificates.
fn directives(authority: &Authority, port: u16) -> Vec<String> {
    let files = authority.issue("server", &["localhost", "127.0.0.1"]);
    let ca = text_of(&authority.certificate());
    [
        ("--tls-port", port.to_string()),
        ("--tls-cert-file", files.certificate().to_owned()),
        ("--tls-key-file", files.key().to_owned()),
        ("--tls-ca-cert-file", ca),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect()
}

fn setup_on(launch: fn() -> Launch, more: &[&str]) -> Setup {
    let authority = Authority::new("authority");
    let port = free_port().unwrap();
    let args = directives(&authority, port);
    let server = launch().args(&words(&args)).args(more).start();
    let client = authority.issue("client", &[]);
    Setup { authority, server, client, port }
}

fn setup(more: &[&str]) -> Setup {
    setup_on(Launch::oxidis, more)
}

impl Setup {
    /// The options of a client that is let in.
    fn options(&self) -> Vec<String> {
        let mut options = self.anonymous();
        options.extend(["--cert", self.client.certificate(), "--key", self.client.key()].map(str::to_owned));
        options
    }

    /// The options of a client without a certificate.
    fn anonymous(&self) -> Vec<String> {
        let mut options = vec!["-p".to_owned(), self.port.to_string()];
        options.extend(["--tls", "--cacert"].map(str::to_owned));
        options.push(text_of(&self.authority.certificate()));
        options
    }

    /// Runs a client with options that let it in.
    fn run(&self, client: &[&str], more: &[&str]) -> Output {
        run(client, &self.options(), more)
    }
}

/// Programs: stock ones, and ours.
const STOCK_CLI: &[&str] = &["redis-cli"];
const STOCK_BENCHMARK: &[&str] = &["redis-benchmark"];
const OUR_CLI: &[&str] = &["", "cli"];
const OUR_BENCHMARK: &[&str] = &["", "benchmark"];

fn command(client: &[&str]) -> Command {
    let (program, rest) = client.split_first().unwrap();
    let mut command = if program.is_empty() {
        Command::new(testkit::binary::oxidis())
    } else {
        Command::new(testkit::binary::peer(program).expect("redis-tools are installed"))
    };
    command.args(rest);
    command
}

fn run(client: &[&str], options: &[String], more: &[&str]) -> Output {
    command(client).args(options).args(more).stdin(Stdio::null()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn all(output: &Output) -> String {
    format!("{}{}", out(output), String::from_utf8_lossy(&output.stderr).trim())
}

/// How often the server has refused somebody for a reason with these words.
fn refusals(server: &Server, words: &str) -> usize {
    let is_one = |line: &&str| line.contains("Error accepting a client connection: ") && line.contains(words);
    server.log().lines().filter(is_one).count()
}

#[test]
fn clients_of_both_kinds_come_in() {
    let setup = setup(&["--io-threads", "2"]);
    for client in [STOCK_CLI, OUR_CLI] {
        assert_eq!(out(&setup.run(client, &["ping"])), "PONG");
        // 1 MB in and out, by standard input.
        let value = "x".repeat(1_000_000);
        let mut child = command(client)
            .args(setup.options())
            .args(["-x", "set", "big"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
        assert_eq!(out(&child.wait_with_output().unwrap()), "OK");
        assert_eq!(out(&setup.run(client, &["get", "big"])), value);
    }
    for client in [STOCK_BENCHMARK, OUR_BENCHMARK] {
        for more in [["-P", "1"], ["-P", "16"]] {
            let args = ["-q", "-n", "3000", "-c", "20", "-t", "set,get,lrange_100"];
            let done = setup.run(client, &[&args[..], &more[..]].concat());
            assert!(done.status.success() && all(&done).contains("requests per second"), "{client:?}: {}", all(&done));
        }
    }
    // The plain port is as it was, and both see the same keys.
    let mut plain = setup.server.client();
    assert_eq!(plain.run("STRLEN big"), Reply::Integer(1_000_000));
    let info = plain.run("INFO server").text();
    assert!(info.contains(&format!("listener2:name=tls,bind=127.0.0.1,port={}", setup.port)), "{info}");
    assert!(setup.server.log().contains("Ready to accept connections tls"));
}

#[test]
fn pipe_mode_and_uris() {
    let setup = setup(&[]);
    let mut child = command(OUR_CLI)
        .args(setup.options())
        .arg("--pipe")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = (0..50_000).map(|number| format!("SET key:{number} {number}\r\n")).collect();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert!(all(&done).contains("errors: 0, replies: 50000"), "{}", all(&done));
    let uri = format!("rediss://127.0.0.1:{}/0", setup.port);
    let ca = text_of(&setup.authority.certificate());
    let options = ["-u", &uri, "--cacert", &ca, "--cert", setup.client.certificate(), "--key", setup.client.key()];
    for client in [STOCK_CLI, OUR_CLI] {
        assert_eq!(out(&run(client, &options.map(str::to_owned), &["dbsize"])), "50000");
    }
    let done = run(OUR_BENCHMARK, &options.map(str::to_owned), &["-q", "-n", "100", "-t", "get"]);
    assert!(done.status.success(), "{}", all(&done));
}

#[test]
fn our_clients_with_a_stock_server() {
    let setup = setup_on(Launch::redis, &[]);
    assert_eq!(out(&setup.run(OUR_CLI, &["set", "a", "1"])), "OK");
    assert_eq!(out(&setup.run(OUR_CLI, &["--tls-verify-host", "localhost", "get", "a"])), "1");
    let args = ["-q", "-n", "3000", "-c", "20", "-P", "8", "-t", "set,get"];
    let done = setup.run(OUR_BENCHMARK, &args);
    assert!(done.status.success() && all(&done).contains("requests per second"), "{}", all(&done));
    let refused = run(OUR_CLI, &setup.anonymous(), &["get", "a"]);
    assert!(!refused.status.success());
    // It is the address of the server that is not named, so that name does not matter unless it is to.
    let wrong = setup.run(OUR_CLI, &["--tls-verify-host", "elsewhere", "get", "a"]);
    assert!(all(&wrong).starts_with("Could not negotiate a TLS connection: "), "{}", all(&wrong));
    assert_eq!(out(&setup.run(OUR_CLI, &["--sni", "elsewhere", "get", "a"])), "1");
}

#[test]
fn who_is_refused() {
    let setup = setup(&[]);
    let other = Authority::new("other");
    let with = |files: &Certificate| {
        let mut options = setup.anonymous();
        options.extend(["--cert", files.certificate(), "--key", files.key()].map(str::to_owned));
        options
    };
    for client in [STOCK_CLI, OUR_CLI] {
        let seen = |words: &str| refusals(&setup.server, words);
        let before = (seen("peer sent no certificates"), seen("certificate expired"), seen("UnknownIssuer"));
        for options in
            [setup.anonymous(), with(&setup.authority.issue_until("old", &[], 2001)), with(&other.issue("client", &[]))]
        {
            let done = run(client, &options, &["ping"]);
            assert!(!all(&done).contains("PONG"), "{options:?}");
        }
        wait_until("all three are told", LIMIT, || {
            let now = (seen("peer sent no certificates"), seen("certificate expired"), seen("UnknownIssuer"));
            let more = now.0 > before.0 && now.1 > before.1 && now.2 > before.2;
            if more { Ok(()) } else { Err(setup.server.log()) }
        });
        // The other way round: they do not trust us.
        let mut options = vec!["-p".to_owned(), setup.port.to_string(), "--tls".to_owned(), "--cacert".to_owned()];
        options.push(text_of(&other.certificate()));
        assert!(!all(&run(client, &options, &["ping"])).contains("PONG"));
        // Plain text on the encrypted port, and TLS on the plain one.
        let plain = run(client, &["-p".to_owned(), setup.port.to_string()], &["ping"]);
        assert!(!all(&plain).contains("PONG"));
    }
    let mut options = setup.options();
    options[1] = setup.server.port().to_string();
    assert!(!all(&run(OUR_CLI, &options, &["-t", "0.5", "ping"])).contains("PONG"));
    // Insecure is insecure.
    options[1] = setup.port.to_string();
    options[4] = text_of(&other.certificate());
    assert_eq!(out(&run(OUR_CLI, &options, &["--insecure", "ping"])), "PONG");
}

#[test]
fn certificates_of_clients_may_be_optional() {
    let setup = setup(&["--tls-auth-clients", "optional"]);
    let stranger = Authority::new("other");
    let other = stranger.issue("client", &[]);
    let ping = |options: &[String]| out(&run(STOCK_CLI, options, &["ping"]));
    assert_eq!(ping(&setup.options()), "PONG");
    assert_eq!(ping(&setup.anonymous()), "PONG");
    let mut bad = setup.anonymous();
    bad.extend(["--cert", other.certificate(), "--key", other.key()].map(str::to_owned));
    assert_ne!(ping(&bad), "PONG");
    let mut plain = setup.server.client();
    plain.check("CONFIG SET tls-auth-clients no", "+OK");
    assert_eq!(ping(&bad), "PONG");
    plain.check("CONFIG SET tls-auth-clients yes", "+OK");
    assert_ne!(ping(&setup.anonymous()), "PONG");
}

#[test]
fn settings_are_reloaded_and_bad_ones_change_nothing() {
    let setup = setup(&["--tls-auth-clients", "no", "--io-threads", "2"]);
    let mut plain = setup.server.client();
    let other = Authority::new("other");
    let files = other.issue("server", &["localhost"]);
    let trusts = |authority: &Authority| {
        let mut options = setup.anonymous();
        options[4] = text_of(&authority.certificate());
        out(&run(OUR_CLI, &options, &["ping"])) == "PONG"
    };
    assert!(trusts(&setup.authority) && !trusts(&other));
    let failed = "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - Unable to update TLS \
                  configuration. Check server logs.";
    // A file that is not there; a certificate without its key.
    plain.check("CONFIG SET tls-cert-file /nowhere", failed);
    plain.check(&format!("CONFIG SET tls-cert-file {}", files.certificate()), failed);
    assert!(setup.server.log().contains("Failed to load certificate: /nowhere: "));
    assert!(trusts(&setup.authority) && !trusts(&other));
    let set = format!("CONFIG SET tls-cert-file {} tls-key-file {}", files.certificate(), files.key());
    plain.check(&set, "+OK");
    assert!(!trusts(&setup.authority) && trusts(&other));
    // The same name with other contents is a change too.
    let back = setup.authority.issue("server", &["localhost"]);
    std::fs::copy(&back.certificate, &files.certificate).unwrap();
    std::fs::copy(&back.key, &files.key).unwrap();
    plain.check(&set, "+OK");
    assert!(trusts(&setup.authority) && !trusts(&other));
    for (name, value) in [("tls-protocols", "TLSv1.1"), ("tls-ciphers", "RC4-SHA"), ("tls-dh-params-file", "/nowhere")]
    {
        let reply = plain.run(&format!("CONFIG SET {name} {value}")).text();
        assert!(reply.contains("Unable to update TLS configuration"), "{name}: {reply}");
    }
    let log = setup.server.log();
    for line in [
        "TLSv1.1 is specified in tls-protocols but not supported",
        "Failed to configure ciphers: RC4-SHA: 'RC4-SHA' is not supported",
        "Failed to load DH params file: /nowhere: ",
    ] {
        assert!(log.contains(line), "{line} is not in\n{log}");
    }
    plain.check("CONFIG SET tls-protocols TLSv1.2 tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256", "+OK");
    assert!(trusts(&setup.authority));

    // Another port, then none.
    let port = free_port().unwrap();
    let mut options = setup.anonymous();
    options[1] = port.to_string();
    plain.check(&format!("CONFIG SET tls-port {port}"), "+OK");
    assert_eq!(out(&run(OUR_CLI, &options, &["ping"])), "PONG");
    assert!(!trusts(&setup.authority));
    plain.check("CONFIG SET tls-port 0", "+OK");
    wait_until("the port is closed", LIMIT, || match TcpStream::connect(("127.0.0.1", port)) {
        Err(_) => Ok(()),
        Ok(_) => Err("it takes clients"),
    });
    plain.check("PING", "+PONG");
}

#[test]
fn tls_alone_and_tls_that_cannot_start() {
    let authority = Authority::new("authority");
    let port = free_port().unwrap();
    let mut args = directives(&authority, port);
    let start = |args: &[String]| {
        command(&["", "server"])
            .args(["--port", "0", "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(authority.directory())
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    args.extend(["--tls-auth-clients", "no"].map(str::to_owned));
    let mut server = start(&args);
    let options = vec![
        "-p".to_owned(),
        port.to_string(),
        "--tls".to_owned(),
        "--cacert".to_owned(),
        text_of(&authority.certificate()),
    ];
    wait_until("it answers", LIMIT, || {
        let answer = run(STOCK_CLI, &options, &["ping"]);
        if out(&answer) == "PONG" { Ok(()) } else { Err(all(&answer)) }
    });
    let info = out(&run(STOCK_CLI, &options, &["info", "server"]));
    assert!(info.contains(&format!("tcp_port:{port}")) && !info.contains("listener0"), "{info}");
    run(STOCK_CLI, &options, &["shutdown", "nosave"]);
    assert!(server.wait().unwrap().success());

    let without = |name: &str| {
        let at = args.iter().position(|arg| arg == name).unwrap();
        let mut args = args.clone();
        args.drain(at..at + 2);
        args
    };
    let with = |name: &str, value: &str| [&args[..], &[name.to_owned(), value.to_owned()]].concat();
    for (args, line) in [
        (without("--tls-cert-file"), "No tls-cert-file configured!"),
        (without("--tls-key-file"), "No tls-key-file configured!"),
        (with("--tls-protocols", "TLSv1"), "TLSv1 is specified in tls-protocols but not supported"),
        (with("--tls-ciphersuites", "TLS_AES_128_CCM_SHA256"), "Failed to configure ciphersuites: "),
        (
            [&without("--tls-ca-cert-file")[..], &["--tls-auth-clients".to_owned(), "yes".to_owned()]].concat(),
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified",
        ),
    ] {
        let done = start(&args).wait_with_output().unwrap();
        let text = all(&done);
        assert_eq!(done.status.code(), Some(1), "{line}");
        assert!(text.contains(line) && text.contains("Failed to configure TLS. Check logs for more info."), "{text}");
    }
}

#[test]
fn half_handshakes_do_not_hold_up_who_is_there() {
    let setup = setup(&["--io-threads", "1"]);
    let mut bystander = setup.server.client();
    let hello = {
        // The begin of a hello: a record whose rest does not come.
        let mut hello = vec![22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3];
        hello.extend([7; 60]);
        hello
    };
    let mut halves = Vec::new();
    let mut slowest = Duration::ZERO;
    for number in 0..500 {
        let mut half = TcpStream::connect(("127.0.0.1", setup.port)).unwrap();
        if number % 2 == 0 {
            half.write_all(&hello).unwrap();
        }
        halves.push(half);
        let begun = Instant::now();
        bystander.check("INCR seen", &format!(":{}", number + 1));
        slowest = slowest.max(begun.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert_eq!(out(&setup.run(OUR_CLI, &["get", "seen"])), "500");
    // Cut at each byte of a handshake's begin.
    for len in 0..hello.len() {
        let mut half = TcpStream::connect(("127.0.0.1", setup.port)).unwrap();
        half.write_all(&hello[..len]).unwrap();
    }
    drop(halves);
    wait_until("all are gone", LIMIT, || match bystander.info("connected_clients").as_deref() {
        Some("1") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    bystander.check("INCR seen", ":501");
}

#[test]
fn plain_text_gets_nothing_from_an_encrypted_port() {
    let setup = setup(&[]);
    let mut stream = TcpStream::connect(("127.0.0.1", setup.port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.len() < 20 && !answer.starts_with(b"+"), "{answer:?}");
    setup.server.client().check("EXISTS a", ":0");
}

#[test]
fn replication_is_encrypted_when_asked_to() {
    let primary = setup(&["--repl-diskless-sync-delay", "0"]);
    let mut writer = primary.server.client();
    writer.check("SET before 1; DEBUG POPULATE 1000", "+OK; +OK");
    let args = directives(&primary.authority, 0);
    let replica = Launch::oxidis().args(&words(&args)).args(&["--tls-replication", "yes"]).start();
    let mut reader = replica.client();
    reader.check(&format!("REPLICAOF 127.0.0.1 {}", primary.port), "+OK...");
    wait_until("the link is up", LIMIT, || match reader.info("master_link_status").as_deref() {
        Some("up") => Ok(()),
        _ => Err(replica.log()),
    });
    writer.check("SET after 2", "+OK");
    wait_until("it follows", LIMIT, || match reader.run("GET after").text().as_str() {
        "2" => Ok(()),
        other => Err(other.to_owned()),
    });
    reader.check("DBSIZE", ":1002");
    // A replica that does not encrypt does not come in.
    let plain = Server::oxidis(&[]);
    plain.client().check(&format!("REPLICAOF 127.0.0.1 {}", primary.port), "+OK...");
    wait_until("it is refused", LIMIT, || {
        if refusals(&primary.server, "corrupt message") > 0 { Ok(()) } else { Err(primary.server.log()) }
    });
    assert_eq!(plain.client().info("master_link_status").as_deref(), Some("down"));
}

#[test]
fn we_follow_a_stock_primary() {
    let primary = setup_on(Launch::redis, &["--repl-diskless-sync-delay", "0"]);
    primary.server.client().check("SET a 1", "+OK");
    let args = directives(&primary.authority, 0);
    let replica = Launch::oxidis().args(&words(&args)).args(&["--tls-replication", "yes"]).start();
    replica.client().check(&format!("REPLICAOF 127.0.0.1 {}", primary.port), "+OK...");
    wait_until("it follows", LIMIT, || match replica.client().run("GET a").text().as_str() {
        "1" => Ok(()),
        _ => Err(replica.log()),
    });
}
