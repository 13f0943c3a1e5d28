//! How the server starts, listens, admits clients and ends.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use common::{Daemon, connect, oxidis, run};
use testkit::process::Signal;
use testkit::server::free_port;
use testkit::{Client, Launch, Server, binary, wait_until};

/// Starts a server from a config file that must be refused; what it says.
fn refusal(file: &str, more: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.conf");
    std::fs::write(&path, file).unwrap();
    let mut args = vec!["server", path.to_str().unwrap()];
    args.extend(more);
    let ran = oxidis(&args, "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.err
}

#[test]
fn an_error_in_the_config_file_ends_the_start() {
    let says = |file: &str, line: usize, text: &str, why: &str| {
        let said = refusal(file, &[]);
        let version = said.split("(Redis ").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default();
        let expected = format!(
            "\n*** FATAL CONFIG FILE ERROR (Redis {version}) ***\nReading the configuration file, at line {line}\n>>> '{text}'\n{why}\n"
        );
        assert_eq!(said, expected, "for {file:?}");
    };
    says("port 0\nnosuch 1\n", 2, "nosuch 1", "Bad directive or wrong number of arguments");
    says("# words\n\nport none\n", 3, "port none", "argument couldn't be parsed into an integer");
    says("maxmemory 1qb\n", 1, "maxmemory 1qb", "argument must be a memory value");
    says("appendonly maybe\n", 1, "appendonly maybe", "argument must be 'yes' or 'no'");
    says("port 70000\n", 1, "port 70000", "argument must be between 0 and 65535 inclusive");
    says("logfile \"open\n", 1, "logfile \"open", "Unbalanced quotes in configuration line");
    says("port 1 2\n", 1, "port 1 2", "wrong number of arguments");
    let said = refusal("port 0\n", &["--maxmemory-policy", "none"]);
    assert!(said.contains(">>> 'maxmemory-policy \"none\"'"), "{said}");
}

#[test]
fn a_file_and_options_together() {
    let directory = tempfile::tempdir().unwrap();
    let included = directory.path().join("more.conf");
    std::fs::write(&included, "hash-max-listpack-entries 77\n").unwrap();
    let path = directory.path().join("redis.conf");
    let text = format!(
        "# from the file\nmaxmemory 100mb\nmaxclients 123\ninclude {}\nrequirepass \"two words\"\n",
        included.display()
    );
    std::fs::write(&path, text).unwrap();
    let server =
        Server::oxidis(&[path.to_str().unwrap(), "--maxclients", "55", "--save", "60 1", "--always-show-logo", "yes"]);
    let mut client = server.client();
    client.check(
        "GET a; AUTH \"two words\"; CONFIG GET maxclients; CONFIG GET maxmemory; CONFIG GET hash-max-listpack-entries; CONFIG GET save",
        "-NOAUTH Authentication required.; +OK; [maxclients 55]; [maxmemory 104857600]; [hash-max-listpack-entries 77]; [save \"60 1\"]",
    );
    assert_eq!(client.info("config_file"), Some(path.display().to_string()));
    client.check("CONFIG SET maxclients 60; CONFIG REWRITE", "+OK; +OK");
    let rewritten = std::fs::read_to_string(&path).unwrap();
    assert!(rewritten.contains("maxclients 60") && rewritten.starts_with("# from the file"), "{rewritten}");
    let log = server.log();
    for line in [
        " PID: ".to_owned(),
        "Server initialized".into(),
        "Ready to accept connections".into(),
        server.pid().to_string(),
    ] {
        assert!(log.contains(&line), "no {line:?} in {log}");
    }
}

#[test]
fn a_config_from_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let (port, pid_file) = (free_port().unwrap(), directory.path().join("pid"));
    let config = format!(
        "port {port}\nbind 127.0.0.1\ndaemonize yes\ndir {0}\npidfile {1}\nlogfile {0}/log\n",
        directory.path().display(),
        pid_file.display()
    );
    let ran = oxidis(&["server", "-"], &config);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let daemon = Daemon::from_pid_file(&pid_file);
    connect(port).check("CONFIG GET daemonize", "[daemonize yes]");
    daemon.stop();
    assert!(!pid_file.exists());
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.contains("Received SIGTERM") && log.contains("bye bye"), "{log}");
}

#[test]
fn signals_end_it_cleanly() {
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let mut server = Server::oxidis(&["--io-threads", "4"]);
        let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send(&["BLPOP", "never", "0"]).unwrap();
        }
        server.client().check("SET a 1", "+OK");
        let status = server.stop(signal).unwrap();
        assert_eq!(status.code(), Some(0), "{signal:?}: {}", server.log());
        for client in &mut clients {
            assert!(client.closes_within(Duration::from_secs(2)));
        }
    }
    let mut server = Server::oxidis(&[]);
    server.client().send(&["SHUTDOWN", "NOSAVE"]).unwrap();
    let ended = wait_until("the end", Duration::from_secs(5), || server.exit_status().ok_or("runs"));
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn it_listens_where_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("redis.sock");
    let server = Server::oxidis(&[
        "--bind",
        "127.0.0.1 127.0.0.2 -::1",
        "--unixsocket",
        socket.to_str().unwrap(),
        "--unixsocketperm",
        "700",
        "--io-threads",
        "3",
    ]);
    let mut clients: Vec<Client> = (0..6).map(|_| Client::connect_unix(&socket).unwrap()).collect();
    for client in &mut clients {
        client.check("INCR unix", ":...");
    }
    clients[0].check("GET unix", "6");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&socket).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    let port = server.port();
    assert!(TcpStream::connect(("127.0.0.2", port)).is_ok());
    assert!(TcpStream::connect(("127.0.0.3", port)).is_err());
    let mut list = clients.pop().unwrap();
    assert!(list.run("CLIENT LIST").text().contains("redis.sock:0"));
    drop(server);
    assert!(!socket.exists(), "the socket's file goes with the server");
}

#[test]
fn a_taken_port_is_told() {
    let server = Server::oxidis(&[]);
    let port = server.port().to_string();
    let ran = oxidis(&["server", "--port", &port, "--bind", "127.0.0.1"], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said =
        format!("Warning: Could not create server TCP listening socket 127.0.0.1:{port}: bind: Address already in use");
    assert!(ran.out.contains(&said), "{ran:?}");
    assert!(ran.out.contains(&format!("Failed listening on port {port} (tcp), aborting.")), "{ran:?}");
    server.client().check("PING", "+PONG");
    let peers = Server::redis(&[]);
    let ran = oxidis(&["server", "--port", &peers.port().to_string(), "--bind", "127.0.0.1"], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("bind: Address already in use"), "{ran:?}");
}

/// An address of this machine that is not the loopback's.
fn outer_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then_some(address)
}

#[test]
fn protected_mode_keeps_strangers_out() {
    let Some(address) = outer_address() else {
        eprintln!("skipped: this machine has no address but the loopback's");
        return;
    };
    let server = Server::oxidis(&["--bind", "* -::*"]);
    let knock = || {
        let mut stream = TcpStream::connect((address, server.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        std::io::Write::write_all(&mut stream, b"PING\r\n").unwrap();
        let mut text = vec![0; 4096];
        let length = std::io::Read::read(&mut stream, &mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let said = knock();
    assert!(
        said.starts_with(
            "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set"
        ),
        "{said}"
    );
    server.client().check("CONFIG SET protected-mode no", "+OK");
    assert_eq!(knock(), "+PONG\r\n");
    server.client().check("CONFIG SET protected-mode yes requirepass x", "+OK");
    assert!(knock().starts_with("-NOAUTH"), "with a password strangers may knock");
}

#[test]
fn a_password_is_asked_for() {
    let server = Server::oxidis(&["--requirepass", "secret"]);
    let mut client = server.client();
    client.check(
        "GET a; PING; HELLO 3; AUTH wrong; AUTH secret; SET a 1; CONFIG GET requirepass",
        "-NOAUTH Authentication required.; -NOAUTH Authentication required.; -NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time; -WRONGPASS invalid username-password pair or user is disabled.; +OK; +OK; [requirepass secret]",
    );
    let mut other = server.client();
    other.check(
        "AUTH default secret; GET a; RESET; GET a; HELLO 2 AUTH default secret; GET a",
        "+OK; 1; +RESET; -NOAUTH Authentication required.; [...; 1",
    );
    let mut greedy = server.client();
    greedy.send_raw(b"*1\r\n$100000000\r\n").unwrap();
    let (said, closed) = greedy.read_to_end(Duration::from_secs(5));
    assert!(
        closed && said.starts_with(b"-ERR Protocol error: unauthenticated bulk length"),
        "{:?}",
        String::from_utf8_lossy(&said)
    );
}

#[test]
fn only_so_many_clients() {
    let server = Server::oxidis(&["--maxclients", "10", "--io-threads", "2"]);
    let mut inside = Vec::new();
    wait_until("ten clients", Duration::from_secs(5), || {
        while inside.len() < 10 {
            let mut client = server.client();
            match client.call(&["PING"]) {
                Ok(reply) if reply.text() == "PONG" => inside.push(client),
                other => return Err(format!("{} inside, then {other:?}", inside.len())),
            }
        }
        Ok(())
    });
    for _ in 0..5 {
        let (said, closed) = server.client().read_to_end(Duration::from_secs(5));
        assert!(closed);
        assert_eq!(String::from_utf8_lossy(&said), "-ERR max number of clients reached\r\n");
    }
    assert_eq!(inside[0].info("rejected_connections").as_deref(), Some("5"));
    inside[0].check("CONFIG SET maxclients 11", "+OK");
    server.client().check("PING", "+PONG");
    inside.pop();
    wait_until("a place", Duration::from_secs(5), || match server.client().call(&["PING"]) {
        Ok(reply) if reply.text() == "PONG" => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn links_and_help() {
    let directory = tempfile::tempdir().unwrap();
    common::link_tools(directory.path());
    let version = run(&directory.path().join("redis-server"), &["--version"], "");
    assert!(version.out.starts_with("Redis server v=7.2."), "{version:?}");
    let check = |program: &Path, args: &[&str], code: i32| {
        let ran = run(program, args, "");
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        format!("{}{}", ran.out, ran.err)
    };
    assert!(check(&directory.path().join("redis-server"), &["--help"], 1).contains("Usage: "));
    assert!(check(&directory.path().join("redis-benchmark"), &["--help"], 0).contains("Usage: redis-benchmark"));
    assert!(check(binary::oxidis(), &[], 1).contains("oxidis TOOL"));
    assert!(check(binary::oxidis(), &["nosuch"], 1).contains("there is no tool named 'nosuch'"));
}

#[test]
fn idle_clients_are_let_go_and_their_worker_goes_on() {
    let server = Launch::oxidis().args(&["--timeout", "1", "--io-threads", "2"]).start();
    let mut idle = server.client();
    let mut blocked = server.client();
    let mut listening = server.client();
    idle.check("PING", "+PONG");
    blocked.send(&["BLPOP", "k", "0"]).unwrap();
    listening.check("SUBSCRIBE c", "[subscribe c :1]");
    assert!(idle.closes_within(Duration::from_secs(5)));
    server.client().check("RPUSH k v; PUBLISH c m", ":1; :1");
    assert_eq!(blocked.read().unwrap().to_string(), "[k v]");
    assert_eq!(listening.read().unwrap().to_string(), "[message c m]");
}
