//! Accepted connections: every way in which one may be read, served, sent to and closed.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::service::{Client, Lines, Running};
use crate::*;

#[test]
fn a_lone_request_costs_one_read_and_one_write() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    client.send("echo warm\n");
    client.expect("warm\n");
    let before = running.ask(|_, cx, _| *cx.stats());
    for _ in 0..100 {
        client.send("echo hello\n");
        client.expect("hello\n");
    }
    let after = running.ask(|_, cx, _| *cx.stats());
    assert_eq!(after.reads - before.reads, 100);
    assert_eq!(after.writes - before.writes, 100);
    assert_eq!(after.read_bytes - before.read_bytes, 1100);
    assert_eq!(after.written_bytes - before.written_bytes, 600);
    // One turn per request, and those of the two questions.
    assert!(after.turns - before.turns <= 103, "{after:?}");
}

#[test]
fn partial_requests_are_kept_and_given_back() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    for piece in ["ec", "ho a", "b", "c\necho", " d\n"] {
        client.send(piece);
        // Lets each piece arrive on its own.
        running.ask(|_, _, _| ());
    }
    client.expect("abc\nd\n");
    running
        .wait("nothing is held", |service, conns| service.opened.first().is_some_and(|&id| conns.held_bytes(id) == 0));
}

#[test]
fn a_big_request_grows_with_what_arrives() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    client.send("need 1000000000\n12345");
    running.wait("the start is kept", |service, conns| {
        service.opened.first().is_some_and(|&id| conns.pending_input(id) == 21)
    });
    assert!(running.ask(|service, _, conns| conns.held_bytes(service.opened[0])) < 1000);
    drop(client);
    running.wait_log("closed Peer");

    let mut client = running.client();
    let len = 20_000_000;
    let calls = running.ask(|service, _, _| service.calls);
    client.send(&format!("echo first\nneed {len}\n"));
    client.0.write_all(&vec![b'x'; len]).unwrap();
    client.send("\necho last\n");
    client.expect(&format!("first\ngot {len}\nlast\n"));
    let calls = running.ask(move |service, _, _| service.calls - calls);
    assert!(calls <= 6, "{calls} calls: not every piece may call the service");
    running
        .wait("nothing is held", |service, conns| service.opened.get(1).is_some_and(|&id| conns.held_bytes(id) == 0));
}

#[test]
fn yielding_lets_others_go_first_and_loses_nothing() {
    let running = Running::start(Lines { share: 3, ..Lines::new() });
    let mut client = running.client();
    let lines: String = (0..2000).map(|i| format!("echo {i}\n")).collect();
    let want: String = (0..2000).map(|i| format!("{i}\n")).collect();
    client.send(&lines);
    let mut other = running.client();
    other.send("echo other\n");
    other.expect("other\n");
    client.expect(&want);
    running
        .wait("nothing is held", |service, conns| service.opened.first().is_some_and(|&id| conns.held_bytes(id) == 0));
}

#[test]
fn paused_until_resumed_in_order() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    client.send("echo a\npause\necho b\n");
    client.expect("a\n");
    client.send("echo c\n");
    let mut other = running.client();
    other.send("echo other\n");
    other.expect("other\n");
    running.ask(|service, _, conns| {
        let id = service.opened[0];
        assert_eq!(conns.pending_input(id), 7);
        assert!(conns.write(id, b"woken\n"));
        conns.resume(id);
        conns.resume(id);
    });
    client.expect("woken\nb\nc\n");
}

#[test]
fn close_sends_everything_first_and_close_now_nothing() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    let len = 8_000_000;
    client.send(&format!("big {len}\nclose\necho never\n"));
    client.expect(&"x".repeat(len));
    // The unread line makes the kernel reset the connection instead of ending it.
    let mut rest = Vec::new();
    let _ = client.0.read_to_end(&mut rest);
    assert!(rest.is_empty());
    running.wait_log("closed Service");
    let mut client = running.client();
    client.send("echo a\nabort\n");
    client.expect_end();
}

#[test]
fn the_service_can_close() {
    let running = Running::start(Lines::new());
    let (mut first, mut second) = (running.client(), running.client());
    running.wait("both are accepted", |service, _| service.opened.len() == 2);
    running.ask(|service, _, conns| {
        conns.write(service.opened[0], b"bye\n");
        conns.close(service.opened[0], true);
        assert!(!conns.write(service.opened[0], b"more\n"));
        conns.close(service.opened[1], false);
    });
    first.expect("bye\n");
    first.expect_end();
    second.expect_end();
    running.wait("both are gone", |_, conns| conns.is_empty());
    running.ask(|service, _, conns| {
        assert!(!conns.write(service.opened[0], b"more\n"));
        assert_eq!(conns.peer(service.opened[0]), None);
    });
}

#[test]
fn ids_are_not_used_again() {
    let running = Running::start(Lines::new());
    for round in 1..=50_usize {
        let mut client = running.client();
        client.send("echo a\n");
        client.expect("a\n");
        running.ask(move |service, _, conns| {
            let last = service.opened[round - 1];
            assert_eq!(service.opened.iter().filter(|&&id| conns.contains(id)).count(), 1);
            assert_eq!(ConnId::from_u64(last.as_u64()), last);
        });
        drop(client);
        running.wait("it is gone", |_, conns| conns.is_empty());
    }
}

#[test]
fn a_slow_reader_gets_all_and_costs_no_spinning() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    let len = 30_000_000;
    client.send(&format!("big {len}\n"));
    running.wait("output is kept", |service, conns| {
        service.opened.first().is_some_and(|&id| conns.pending_output(id) > 1_000_000)
    });
    let turns = running.ask(|_, cx, _| cx.stats().turns);
    std::thread::sleep(Duration::from_millis(50));
    assert!(running.ask(|_, cx, _| cx.stats().turns) - turns < 20);
    client.send("echo behind\n");
    client.expect(&"x".repeat(len));
    client.expect("behind\n");
    running
        .wait("nothing is held", |service, conns| service.opened.first().is_some_and(|&id| conns.held_bytes(id) == 0));
}

#[test]
fn the_output_limit_closes() {
    let running = Running::start(Lines { output_limit: 1_000_000, ..Lines::new() });
    let mut client = running.client();
    client.send("big 20000000\n");
    running.wait_log("closed OutputLimit");
}

#[test]
fn half_closed_clients_get_their_answers() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    client.send("big 5000000\necho a\necho unfinished");
    client.0.shutdown(Shutdown::Write).unwrap();
    client.expect(&"x".repeat(5_000_000));
    client.expect("a\n");
    client.expect_end();
    running.wait_log("closed Peer");
}

#[test]
fn a_peer_that_leaves_while_paused_is_noticed() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    client.send("pause\n");
    running.wait("the line is used", |service, _| service.calls == 1);
    client.0.shutdown(Shutdown::Write).unwrap();
    running.wait_log("closed Peer");
    let mut client = running.client();
    client.send("pause\n");
    client.0.shutdown(Shutdown::Write).unwrap();
    running.wait("both are gone", |service, conns| service.opened.len() == 2 && conns.is_empty());
}

#[test]
fn a_half_closed_paused_client_can_be_kept() {
    let running = Running::start(Lines { keep_half_closed: true, ..Lines::new() });
    let mut client = running.client();
    client.send("pause\necho a\n");
    client.0.shutdown(Shutdown::Write).unwrap();
    running.wait("the line is used", |service, _| service.calls == 1);
    running.ask(|service, _, conns| conns.resume(service.opened[0]));
    client.expect("a\n");
    client.expect_end();
    running.wait_log("closed Peer");
}

#[test]
fn a_reset_is_noticed_whether_paused_or_not() {
    let running = Running::start(Lines::new());
    for first in ["echo a\n", "pause\n"] {
        let mut client = running.client();
        client.send(first);
        running.wait("it was served", |service, _| service.calls > 0);
        socket2::SockRef::from(&client.0).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        running.wait("it is gone", |_, conns| conns.is_empty());
        running.ask(|service, _, _| service.calls = 0);
    }
    let log = running.log.lock().unwrap();
    let resets = log.iter().filter(|line| *line == "closed Failed(ConnectionReset)").count();
    assert_eq!(resets, 2, "{log:?}");
}

#[test]
fn a_refused_client_reads_why() {
    let running = Running::start(Lines { refuse: true, ..Lines::new() });
    let mut client = running.client();
    client.expect("-no\n");
    client.expect_end();
    assert!(running.log.lock().unwrap().is_empty());
}

#[test]
fn unix_sockets_serve_too() {
    let folder = tempfile_dir();
    let path = folder.join("socket");
    let running = Running::start(Lines::new());
    for _ in 0..2 {
        // The second time a file is in the way.
        let listener = Listener::unix(&path, 511, Some(0o700)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        running.ask(move |_, _, conns| conns.listen(listener).unwrap());
    }
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"big 3000000\necho a\n").unwrap();
    let mut got = vec![0; 3_000_002];
    client.read_exact(&mut got).unwrap();
    assert!(got.ends_with(b"xa\n"));
    let before = running.ask(|service, cx, conns| {
        assert_eq!(conns.peer(service.opened[0]), Some(Peer::Unix));
        *cx.stats()
    });
    for _ in 0..100 {
        client.write_all(b"echo a\n").unwrap();
        client.read_exact(&mut got[..2]).unwrap();
    }
    let after = running.ask(|_, cx, _| *cx.stats());
    // The peer's reading must not wake the loop.
    assert!(after.turns - before.turns <= 103, "{}", after.turns - before.turns);
    drop(client);
    running.wait_log("closed Peer");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn listeners_can_be_closed() {
    let running = Running::start(Lines::new());
    let mut client = running.client();
    client.send("echo a\n");
    client.expect("a\n");
    running.ask(|_, _, conns| conns.close_listeners());
    assert!(std::net::TcpStream::connect(running.address).is_err());
    client.send("echo b\n");
    client.expect("b\n");
}

#[test]
fn thousands_of_idle_connections_hold_no_buffers() {
    const CLIENTS: usize = 5000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = 2 * CLIENTS as u64 + 200;
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = rustix::process::Rlimit { current: Some(wanted), maximum: limit.maximum };
        if rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).is_err() {
            eprintln!("skipped: no room for {wanted} descriptors");
            return;
        }
    }
    let running = Running::start(Lines::new());
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| running.client()).collect();
    for client in &mut clients {
        client.send("echo a\necho");
    }
    for client in &mut clients {
        client.expect("a\n");
    }
    for client in &mut clients {
        client.send(" b\n");
    }
    for client in &mut clients {
        client.expect("b\n");
    }
    running.wait("nothing is held", |service, conns| {
        conns.len() == CLIENTS && service.opened.iter().all(|&id| conns.held_bytes(id) == 0)
    });
}

fn tempfile_dir() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("net-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
