//! Connections that a loop makes itself.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::service::{Lines, Running};
use crate::*;

#[test]
fn connects_and_is_served() {
    let running = Running::start(Lines::new());
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = peer.local_addr().unwrap();
    let id = running.ask(move |_, _, conns| {
        let id = conns.connect(address, ()).unwrap();
        assert!(conns.write(id, b"early\n"));
        id
    });
    let (mut stream, _) = peer.accept().unwrap();
    let mut got = [0; 6];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"early\n");
    running.wait_log("connected Ok(())");
    running.ask(move |_, _, conns| assert_eq!(conns.peer(id), Some(Peer::Tcp(address))));
    stream.write_all(b"echo a\n").unwrap();
    stream.read_exact(&mut got[..2]).unwrap();
    assert_eq!(&got[..2], b"a\n");
    drop(stream);
    running.wait_log("closed Peer");
}

#[test]
fn a_refused_connection_is_told_and_closed() {
    let running = Running::start(Lines::new());
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    running.ask(move |_, _, conns| {
        let id = conns.connect(address, ()).unwrap();
        conns.write(id, b"never\n");
    });
    running.wait_log("closed ConnectFailed(ConnectionRefused)");
    let log = running.log.lock().unwrap().clone();
    assert_eq!(log[0], "connected Err(ConnectionRefused)");
}

#[test]
fn a_unix_path_without_listener_fails_at_once() {
    let running = Running::start(Lines::new());
    let failed = running
        .ask(|_, _, conns| conns.connect(Address::Unix("/nowhere/socket".into()), ()).map_err(|error| error.kind()));
    assert_eq!(failed, Err(std::io::ErrorKind::NotFound));
}

#[test]
fn a_connected_socket_can_be_adopted() {
    let running = Running::start(Lines::new());
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    theirs.write_all(b"echo early\n").unwrap();
    running.ask(move |_, _, conns| {
        conns.adopt(ours, ()).unwrap();
    });
    let mut got = [0; 6];
    theirs.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"early\n");
}
