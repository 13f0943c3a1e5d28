//! Every name of COMMAND LIST, which is 7.2's and what lies beyond it, is answered by something that knows it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use testkit::{Client, Reply, Server};

/// Names that end the server or turn the connection into something else.
const ENDS: &[&str] = &["shutdown", "monitor", "debug", "failover", "psync", "sync", "replconf"];

fn names(client: &mut Client) -> Vec<String> {
    client.run("COMMAND LIST").items().unwrap().iter().map(Reply::text).collect()
}

#[test]
fn every_name_answers() {
    let server = Server::oxidis(&["--io-threads", "2"]);
    let mut client = server.client();
    let all = names(&mut client);
    assert!(all.len() > 360, "{}", all.len());
    let mut unknown = Vec::new();
    for name in &all {
        let container = name.split('|').next().unwrap();
        if ENDS.contains(&container) {
            continue;
        }
        let info = client.call(&["COMMAND", "INFO", name]).unwrap();
        let row = info.items().unwrap()[0].items().unwrap().to_vec();
        let has_subcommands = row[9].items().is_some_and(|subcommands| !subcommands.is_empty());
        let mut call: Vec<&str> = name.split('|').collect();
        if has_subcommands {
            call.push("help");
        }
        let least = usize::try_from(row[1].integer().unwrap().unsigned_abs()).unwrap();
        while call.len() < least {
            call.push("1");
        }
        let reply = server.client().call(&call).unwrap();
        if reply.is_error() && reply.text().starts_with("ERR unknown ") {
            unknown.push(format!("{name}: {reply}"));
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_help_helps() {
    let server = Server::oxidis(&["--io-threads", "2", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    let containers = [
        "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PUBSUB",
        "SLOWLOG", "XGROUP", "XINFO",
    ];
    for container in containers {
        let reply = client.call(&[container, "HELP"]).unwrap();
        let lines: Vec<String> =
            reply.items().unwrap_or_else(|| panic!("{container}: {reply}")).iter().map(Reply::text).collect();
        assert_eq!(lines[0], format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        assert_eq!(lines[lines.len() - 2..], ["HELP", "    Print this help."]);
    }
}
