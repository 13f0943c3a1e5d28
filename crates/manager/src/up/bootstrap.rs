//! What the manager is told: groups, their servers, their slots. On a second start it knows; what was added to the
//! layout is told then.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Client, Failure, Method};
use crate::shapes::Topology;

use super::layout::Layout;

/// Longest wait for a server's answer to a PING.
const PING_PATIENCE: Duration = Duration::from_millis(500);

/// Tells the manager what it does not know of the layout. What was done, in a line each.
pub(super) fn tell(client: &Client, layout: &Layout) -> Result<Vec<String>, Failure> {
    let known: Topology = client.get("/topology")?;
    let mut done = Vec::new();
    let is_first = known.groups.is_empty();
    for group in 1..=layout.groups {
        if !known.groups.iter().any(|known| known.id == u32::from(group)) {
            client.call(Method::Post, "/groups", Some(json!({ "id": group })))?;
            done.push(format!("group {group} was added"));
        }
    }
    for place in layout.servers() {
        let address = format!("127.0.0.1:{}", place.port);
        let mut servers = known.groups.iter().flat_map(|group| &group.servers);
        if servers.any(|server| server.address == address) {
            continue;
        }
        let path = format!("/groups/{}/servers", place.group);
        client.call(Method::Post, &path, Some(json!({ "address": address })))?;
    }
    if is_first {
        client.call(Method::Post, "/slots/assign", Some(json!({ "slots": "all" })))?;
    } else if !done.is_empty() {
        done.push("new groups own no slots yet: 'oxidis admin rebalance' gives them some".into());
    }
    Ok(done)
}

/// Whether a server answers a command: `PING` for any, a keyed one to see that slots are served.
pub(super) fn answers(port: u16, words: &[&str]) -> bool {
    let ask = || -> std::io::Result<Vec<u8>> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut stream = TcpStream::connect_timeout(&address, PING_PATIENCE)?;
        stream.set_read_timeout(Some(PING_PATIENCE))?;
        let mut request = Vec::new();
        resp::write_command(&mut request, words);
        stream.write_all(&request)?;
        let mut reply = [0; 64];
        let count = stream.read(&mut reply)?;
        Ok(reply.get(..count).unwrap_or_default().to_vec())
    };
    ask().is_ok_and(|reply| !reply.is_empty() && !reply.starts_with(b"-"))
}

/// Whether the manager leads and answers.
pub(super) fn leads(client: &Client) -> bool {
    client.get::<Value>("/topology").is_ok_and(|topology| topology["is_leader"] == true)
}
