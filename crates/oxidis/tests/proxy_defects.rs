//! Defects of Codis that the proxy must not have, each under a name that says it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use testkit::{Launch, Server};

fn pair() -> (Server, Server) {
    let server = Server::oxidis(&[]);
    let topology = format!("server 127.0.0.1:{}", server.port());
    let proxy = Launch::proxy().args(&["--topology", &topology, "--io-threads", "1"]).start();
    (server, proxy)
}

/// Codis: names with a dash or a digit skipped the list of commands and were forwarded, so that clients could run any command
/// on a server, and change the state of connections that other clients shared.
#[test]
fn defect_4_no_name_off_the_list_reaches_a_server_and_no_client_changes_a_shared_connection() {
    let (server, proxy) = pair();
    let (mut bad, mut other) = (proxy.client(), proxy.client());
    other.check("SET k v", "+OK");
    for command in [
        "SLOTSMGRT-EXEC-WRAPPER k FLUSHALL",
        "SLOTSMGRT-EXEC-WRAPPER k MULTI",
        "SLOTSMGRTONE-ASYNC 127.0.0.1 1 100 0 0 k",
        "SLOTSRESTORE-ASYNC delete k",
        "SLOTSRESTORE-ASYNC-SELECT 3",
        "RESTORE-ASKING k 0 x",
        "X-Y k",
        "GET2 k",
        "MULTI\u{0} k",
    ] {
        let reply = bad.run(command);
        assert!(reply.text().starts_with("ERR "), "{command}: {reply}");
        // Nobody else notices.
        other.check("GET k; SET l m; GET l; DEL l", "v; +OK; m; :1");
    }
    // What the list has, but a client must not say to a shared connection.
    for command in [
        "MULTI",
        "ASKING",
        "READONLY",
        "READWRITE",
        "MONITOR",
        "SYNC",
        "PSYNC ? -1",
        "REPLCONF listening-port 1",
        "CLIENT TRACKING ON",
        "CLIENT NO-TOUCH ON",
        "SCRIPT DEBUG YES",
        "SHUTDOWN NOSAVE",
        "DEBUG SLEEP 1",
        "REPLICAOF NO ONE",
        "CLIENT REPLY OFF",
        "SELECT 3",
        "HELLO 3",
        "SUBSCRIBE c",
        "WATCH k",
        "AUTH x",
    ] {
        let mut bad = proxy.client();
        bad.send(&command.split(' ').collect::<Vec<_>>()).unwrap();
        bad.send(&["SET", "in.three", "1"]).unwrap();
        other.check("GET k; SET l m; GET l; DEL l", "v; +OK; m; :1");
    }
    // The database that one client selected is its own.
    other.check("EXISTS k; CLIENT ID", ":1; :...");
    let mut straight = server.client();
    straight.check("GET k; INFO replication", "v; ...");
    assert_eq!(straight.info("role").as_deref(), Some("master"));
}
