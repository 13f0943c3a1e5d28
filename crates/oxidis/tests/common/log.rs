//! Logs of changes as tests look at them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use testkit::Client;

/// A command of a log.
pub(crate) type Command = Vec<Vec<u8>>;

/// Commands of RESP arrays; panics when they are none.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Command> {
    fn line<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
        let end = bytes.windows(2).position(|two| two == b"\r\n").expect("a line has an end");
        let line = &bytes[..end];
        *bytes = &bytes[end + 2..];
        line
    }
    let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<usize>().unwrap();
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let head = line(&mut bytes);
        if head[0] == b'#' {
            all.push(vec![head.to_vec()]);
            continue;
        }
        assert_eq!(head[0], b'*', "at {:?}", bytes.escape_ascii().to_string());
        let mut command = Vec::new();
        for _ in 0..number(&head[1..]) {
            let len = number(&line(&mut bytes)[1..]);
            command.push(bytes[..len].to_vec());
            bytes = &bytes[len + 2..];
        }
        all.push(command);
    }
    all
}

/// The text of a command.
pub(crate) fn shown(command: &Command) -> String {
    command.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}

/// Names in the manifest of kind `kind`, in order.
pub(crate) fn names(directory: &Path, kind: char) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("appendonlydir/appendonly.aof.manifest")).unwrap();
    let lines = text.lines().filter(|line| line.ends_with(&format!("type {kind}")));
    lines.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

/// The bytes of all increments.
pub(crate) fn increments(directory: &Path) -> Vec<u8> {
    let all = names(directory, 'i');
    all.iter().flat_map(|name| std::fs::read(directory.join("appendonlydir").join(name)).unwrap()).collect()
}

/// A digest of all data.
pub(crate) fn digest(client: &mut Client) -> String {
    match client.run("DEBUG DIGEST") {
        testkit::Reply::Simple(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("DEBUG DIGEST answered {other}"),
    }
}

/// Removes all keys with an expiry, so that a digest does not depend on the moment.
pub(crate) fn drop_volatile(client: &mut Client) {
    for db in 0..16 {
        client.run(&format!("SELECT {db}"));
        let keys = match client.run("KEYS *") {
            testkit::Reply::Array(keys) => keys,
            other => panic!("KEYS answered {other}"),
        };
        for key in keys {
            let testkit::Reply::Bulk(key) = key else { continue };
            let ttl = client.call(&[b"PTTL".as_slice(), &key]).unwrap();
            if !matches!(ttl, testkit::Reply::Integer(-1)) {
                client.call(&[b"DEL".as_slice(), &key]).unwrap();
            }
        }
    }
    client.run("SELECT 0");
}
