//! More clients than one descriptor table holds on machines with a low limit, and what the tools say of them. The full size
//! is `cargo xtask bench clients`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::{Server, binary, wait_until};

const CLIENTS: usize = 30_000;

/// A figure of INFO.
fn figure(client: &mut testkit::Client, field: &str) -> usize {
    client.info(field).and_then(|text| text.trim().parse().ok()).unwrap_or_else(|| panic!("no {field} in INFO"))
}

#[test]
fn thirty_thousand_clients_are_served_and_listed() {
    // As much as the machine allows: twice one table of 20,000, or one table where the limit is higher.
    let server = Server::oxidis(&["--maxclients", "31000", "--requirepass", "secret"]);
    let mut client = server.client();
    client.set_timeout(Duration::from_secs(60)).unwrap();
    client.check("AUTH secret", "+OK");
    let load = Command::new(binary::oxidis())
        .args(["benchmark", "-p", &server.port().to_string(), "-a", "secret", "-c", &CLIENTS.to_string()])
        .args(["--per-client", "2", "--hold", "4s", "--output", "json", "PING"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("all clients have spoken", Duration::from_secs(60), || {
        // AUTH once and PING twice.
        let commands = figure(&mut client, "total_commands_processed");
        if commands >= CLIENTS * 3 { Ok(()) } else { Err(commands) }
    });
    assert_eq!(figure(&mut client, "connected_clients"), CLIENTS + 1);
    let list = client.call(&["CLIENT", "LIST"]).unwrap();
    let text = String::from_utf8_lossy(list.bytes().unwrap()).into_owned();
    let ids: Vec<u64> = text
        .lines()
        .map(|line| line.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids.len(), CLIENTS + 1);
    assert!(ids.is_sorted(), "CLIENT LIST is in the order of the ids");

    let output = load.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let fairness = report.split_once("\"fairness\":").map(|(_, rest)| rest).expect("the report tells of fairness");
    let field = |name: &str| {
        let (_, rest) = fairness.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name}: {report}"));
        rest.trim_start().split([',', '\n', '}']).next().unwrap().trim().to_owned()
    };
    assert_eq!(field("clients"), CLIENTS.to_string());
    assert_eq!(field("served"), CLIENTS.to_string());
    assert_eq!((field("min"), field("median")), ("2".to_owned(), "2".to_owned()));

    wait_until("the clients are gone", Duration::from_secs(30), || {
        let clients = figure(&mut client, "connected_clients");
        if clients == 1 { Ok(()) } else { Err(clients) }
    });
}

#[test]
fn clients_past_the_limit_are_refused_and_counted() {
    let server = Server::oxidis(&["--maxclients", "20"]);
    let mut first = server.client();
    // Each has been accepted before the next comes: several workers accept, in no order.
    let others: Vec<_> = (0..19)
        .map(|_| {
            let mut client = server.client();
            client.check("PING", "+PONG");
            client
        })
        .collect();
    let mut refused = server.client();
    let (text, closed) = refused.read_to_end(Duration::from_secs(5));
    assert_eq!(String::from_utf8_lossy(&text), "-ERR max number of clients reached\r\n");
    assert!(closed);
    assert_eq!(figure(&mut first, "rejected_connections"), 1);
    assert_eq!(figure(&mut first, "connected_clients"), 20);
    drop(others);
}

#[test]
fn the_doctor_says_whether_it_can_be_done() {
    let few = common::oxidis(&["doctor", "--clients", "10"], "");
    assert_eq!(few.code, Some(0), "{}{}", few.out, few.err);
    assert!(few.out.lines().all(|line| line.split('\t').count() == 7), "{}", few.out);
    let many = common::oxidis(&["doctor", "--clients", "1000000000000", "--json"], "");
    assert_eq!(many.code, Some(1), "{}{}", many.out, many.err);
    assert!(many.out.contains("\"stops\": true"), "{}", many.out);

    let server = Server::oxidis(&["--maxclients", "30"]);
    let address = format!("127.0.0.1:{}", server.port());
    let asked = common::oxidis(&["doctor", "--clients", "100", "--server", &address], "");
    assert_eq!(asked.code, Some(1), "{}{}", asked.out, asked.err);
    assert!(asked.out.contains("STOPS\tmaxclients\t30\t≥ 100\t"), "{}", asked.out);
    let nobody = common::oxidis(&["doctor", "--server", "127.0.0.1:1"], "");
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.err.contains("Connection refused"), "{}", nobody.err);
    assert_eq!(common::oxidis(&["doctor", "--wrong"], "").code, Some(2));
}
