//! Reads whole databases through ordinary commands and compares them.

use std::collections::BTreeSet;
use std::io;

use super::rules::{Rule, compare, rule_of};
use crate::{Client, Reply};

/// One key on which two servers differ, as the command that shows it.
#[derive(Debug)]
pub struct Differing {
    /// The command.
    pub args: Vec<Vec<u8>>,
    /// The reply of the server under test.
    pub subject: Reply,
    /// The reply of the peer.
    pub peer: Reply,
}

/// The content of a key in an order of its own: what two equal values have in common.
///
/// # Errors
/// When the connection fails.
pub fn content(client: &mut Client, key: &[u8]) -> io::Result<Reply> {
    let kind = client.call(&[b"TYPE", key])?.text();
    let reply = client.call(&reader(&kind, key))?;
    Ok(match (kind.as_str(), reply) {
        ("hash", Reply::Map(mut pairs)) => {
            pairs.sort();
            Reply::Array(pairs.into_iter().map(|(key, value)| Reply::Array(vec![key, value])).collect())
        }
        ("hash", reply) => Reply::Array(super::rules::sorted(&reply, 2).into_iter().map(Reply::Array).collect()),
        ("set", reply) => Reply::Array(super::rules::sorted(&reply, 1).into_iter().flatten().collect()),
        (_, reply) => reply,
    })
}

fn reader(kind: &str, key: &[u8]) -> Vec<Vec<u8>> {
    let words: &[&str] = match kind {
        "string" => &["GET"],
        "list" => &["LRANGE", "0", "-1"],
        "hash" => &["HGETALL"],
        "set" => &["SMEMBERS"],
        "zset" => &["ZRANGE", "0", "-1", "WITHSCORES"],
        "stream" => &["XRANGE", "-", "+"],
        _ => &["TYPE"],
    };
    let mut args = vec![words[0].as_bytes().to_vec(), key.to_vec()];
    args.extend(words[1..].iter().map(|word| word.as_bytes().to_vec()));
    args
}

/// Everything on which two servers differ in the databases that the shapes use.
///
/// # Errors
/// When a connection fails.
pub fn compare_all(subject: &mut Client, peer: &mut Client) -> io::Result<Vec<Differing>> {
    let mut differing = Vec::new();
    for db in ["0", "1", "2", "15"] {
        subject.call(&["SELECT", db])?;
        peer.call(&["SELECT", db])?;
        let mut keys = BTreeSet::new();
        for client in [&mut *subject, &mut *peer] {
            let reply = client.call(&["KEYS", "*"])?;
            keys.extend(reply.items().unwrap_or(&[]).iter().filter_map(|key| key.bytes().map(<[u8]>::to_vec)));
        }
        for key in keys {
            let kind = peer.call(&[b"TYPE", key.as_slice()])?.text();
            let mut questions = vec![
                vec![b"TYPE".to_vec(), key.clone()],
                reader(&kind, &key),
                vec![b"OBJECT".to_vec(), b"ENCODING".to_vec(), key.clone()],
                vec![b"PEXPIRETIME".to_vec(), key.clone()],
            ];
            if kind == "stream" {
                questions.push(["XINFO", "STREAM"].map(|word| word.as_bytes().to_vec()).to_vec());
                if let Some(last) = questions.last_mut() {
                    last.extend([key.clone(), b"FULL".to_vec(), b"COUNT".to_vec(), b"0".to_vec()]);
                }
            }
            for args in questions {
                let (ours, theirs) = (subject.call(&args)?, peer.call(&args)?);
                if compare(rule_of(&args), &ours, &theirs).is_err() {
                    differing.push(Differing { args, subject: ours, peer: theirs });
                }
            }
        }
    }
    let digest = vec![b"DEBUG".to_vec(), b"DIGEST".to_vec()];
    let (ours, theirs) = (subject.call(&digest)?, peer.call(&digest)?);
    let is_proxied = ours.text().contains("through the proxy");
    if differing.is_empty() && !is_proxied && compare(Rule::Exact, &ours, &theirs).is_err() {
        differing.push(Differing { args: digest, subject: ours, peer: theirs });
    }
    Ok(differing)
}
