//! B5: values in every form that Redis 1.0 to 7.2 wrote, made here byte by byte: as DUMP payloads and as RDB files of
//! versions 1 to 11.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use testkit::snapshot::crc64;
use testkit::{Client, Launch};

use super::Context;

/// A value as an old server wrote it.
pub(super) struct OldValue {
    pub(super) name: &'static str,
    /// RDB version that has the form first.
    pub(super) since: u16,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
    /// What of the key `K` must be so: a command and its reply.
    checks: &'static [(&'static str, &'static str)],
}

/// A DUMP payload of a type byte and a value.
pub(super) fn payload(kind: u8, body: &[u8], version: u16) -> Vec<u8> {
    let mut bytes = [&[kind], body, &version.to_le_bytes()].concat();
    let sum = crc64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

#[allow(clippy::cast_possible_truncation, reason = "lengths of this table")]
fn length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..64 => out.push(length as u8),
        64..16384 => out.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => {
            out.push(0x80);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    length(out, text.len());
    out.extend_from_slice(text);
}

fn strings(count: usize, texts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    length(&mut out, count);
    texts.iter().for_each(|text| string(&mut out, text));
    out
}

fn blob(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    string(&mut out, bytes);
    out
}

/// An entry of a ziplist: its encoding byte(s) with its data.
enum Packed {
    Text(Vec<u8>),
    /// Encoding and little-endian data of a number.
    Number(Vec<u8>),
}

fn text(text: &[u8]) -> Packed {
    Packed::Text(text.to_vec())
}

fn ziplist(entries: &[Packed]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut last = 0;
    let mut tail = 10;
    #[allow(clippy::cast_possible_truncation, reason = "lengths of this table")]
    for entry in entries {
        tail = 10 + body.len();
        let begin = body.len();
        if last < 254 {
            body.push(last as u8);
        } else {
            body.push(254);
            body.extend_from_slice(&(last as u32).to_le_bytes());
        }
        match entry {
            Packed::Number(bytes) => body.extend_from_slice(bytes),
            Packed::Text(text) => {
                match text.len() {
                    0..64 => body.push(text.len() as u8),
                    64..16384 => body.extend_from_slice(&(text.len() as u16 | 0x4000).to_be_bytes()),
                    _ => {
                        body.push(0x80);
                        body.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    }
                }
                body.extend_from_slice(text);
            }
        }
        last = body.len() - begin;
    }
    let mut out = Vec::new();
    out.extend_from_slice(&u32::try_from(body.len() + 11).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&u32::try_from(tail).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&u16::try_from(entries.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(&body);
    out.push(255);
    out
}

/// Numbers in every width that a ziplist has: 7, -5, 1000, 100000, 70000000, 2^40.
fn numbers() -> Vec<Packed> {
    let number = |bytes: &[u8]| Packed::Number(bytes.to_vec());
    vec![
        number(&[0xf8]),
        number(&[0xfe, 0xfb]),
        number(&[&[0xc0][..], &1000_i16.to_le_bytes()].concat()),
        number(&[&[0xf0][..], &100_000_i32.to_le_bytes()[..3]].concat()),
        number(&[&[0xd0][..], &70_000_000_i32.to_le_bytes()].concat()),
        number(&[&[0xe0][..], &(1_i64 << 40).to_le_bytes()].concat()),
    ]
}

fn intset<const BYTES: usize>(values: &[[u8; BYTES]]) -> Vec<u8> {
    let mut out = u32::try_from(BYTES).unwrap_or(0).to_le_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(values.len()).unwrap_or(0).to_le_bytes());
    values.iter().for_each(|value| out.extend_from_slice(value));
    out
}

/// A listpack of short texts and small numbers.
#[allow(clippy::cast_possible_truncation, reason = "lengths of this table")]
fn listpack(entries: &[Result<u8, &[u8]>]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        let begin = body.len();
        match entry {
            Ok(number) => body.push(*number),
            Err(text) => {
                body.push(0x80 | text.len() as u8);
                body.extend_from_slice(text);
            }
        }
        body.push((body.len() - begin) as u8);
    }
    let mut out = (body.len() as u32 + 7).to_le_bytes().to_vec();
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&body);
    out.push(255);
    out
}

fn id(milliseconds: u64, seq: u64) -> Vec<u8> {
    [milliseconds.to_be_bytes(), seq.to_be_bytes()].concat()
}

/// A stream of two entries with a group, in the form of version `form` (1: 5.0, 2: 7.0, 3: 7.2).
fn stream(form: u8) -> Vec<u8> {
    let block = listpack(&[
        Ok(2),
        Ok(0),
        Ok(1),
        Err(b"f"),
        Ok(0),
        Ok(2),
        Ok(0),
        Ok(0),
        Err(b"v1"),
        Ok(4),
        Ok(2),
        Ok(1),
        Ok(0),
        Err(b"v2"),
        Ok(4),
    ]);
    let mut out = vec![1];
    string(&mut out, &id(5, 1));
    string(&mut out, &block);
    // Length; last id; then first id, greatest deleted id and how many ever came.
    out.extend_from_slice(&[2, 6, 1]);
    if form >= 2 {
        out.extend_from_slice(&[5, 1, 0, 0, 2]);
    }
    out.push(1);
    string(&mut out, b"g");
    out.extend_from_slice(&[5, 1]);
    if form >= 2 {
        out.push(1);
    }
    out.push(1);
    out.extend_from_slice(&id(5, 1));
    out.extend_from_slice(&1_600_000_000_000_u64.to_le_bytes());
    out.push(3);
    out.push(1);
    string(&mut out, b"c");
    out.extend_from_slice(&1_600_000_000_000_u64.to_le_bytes());
    if form >= 3 {
        out.extend_from_slice(&1_600_000_000_000_u64.to_le_bytes());
    }
    out.push(1);
    out.extend_from_slice(&id(5, 1));
    out
}

const STREAM: &[(&str, &str)] = &[
    ("XRANGE K - +", "[[5-1 [f v1]] [6-1 [f v2]]]"),
    ("XLEN K", ":2"),
    ("XPENDING K g", "[:1 5-1 5-1 [[c 1]]]"),
    ("XREADGROUP GROUP g c STREAMS K >", "[[K [[6-1 [f v2]]]]]"),
];
const NUMBERS: &str = "[7 -5 1000 100000 70000000 1099511627776]";

/// One of each kind.
pub(super) fn all() -> Vec<OldValue> {
    let mut all = Vec::new();
    let mut add = |name, since, kind, body, checks| all.push(OldValue { name, since, kind, body, checks });
    add("string", 1, 0, blob(b"plain"), &[("GET K", "plain")]);
    add("string of a byte's number", 1, 0, vec![0xc0, 0xfb], &[("GET K", "-5"), ("OBJECT ENCODING K", "int")]);
    add("string of 16 bits", 1, 0, [&[0xc1][..], &1000_i16.to_le_bytes()].concat(), &[("INCR K", ":1001")]);
    add("string of 32 bits", 1, 0, [&[0xc2][..], &70_000_000_i32.to_le_bytes()].concat(), &[("GET K", "70000000")]);
    // One letter, then a hundred times the one before.
    add(
        "compressed string",
        1,
        0,
        vec![0xc3, 5, 0x40, 101, 0, b'a', 0xe0, 91, 0],
        &[("STRLEN K", ":101"), ("GETRANGE K 95 100", "aaaaaa")],
    );
    add("list", 1, 1, strings(3, &[b"a", b"", b"c"]), &[("LLEN K", ":3"), ("LINDEX K 2", "c")]);
    add("set", 1, 2, strings(2, &[b"one", b"two"]), &[("SCARD K", ":2"), ("SMISMEMBER K one two 3", "[:1 :1 :0]")]);
    let mut zset = vec![4];
    for (member, score) in [("m", Some("1.5")), ("n", Some("-3")), ("top", None), ("o", Some("2.25"))] {
        string(&mut zset, member.as_bytes());
        match score {
            Some(score) => {
                zset.push(u8::try_from(score.len()).unwrap_or(0));
                zset.extend_from_slice(score.as_bytes());
            }
            None => zset.push(254),
        }
    }
    add("sorted set, scores as text", 1, 3, zset, &[("ZRANGE K 0 -1 WITHSCORES", "[n -3 m 1.5 o 2.25 top inf]")]);
    add("hash", 1, 4, strings(2, &[b"f", b"1", b"g", b"2"]), &[("HMGET K f g", "[1 2]"), ("HLEN K", ":2")]);
    let zipmap = [&[2, 1][..], b"f", &[2, 0], b"v1", &[1], b"g", &[1, 3], b"w???", &[255]].concat();
    add("hash as a zipmap", 2, 9, blob(&zipmap), &[("HMGET K f g", "[v1 w]"), ("HLEN K", ":2")]);
    add("list as a ziplist", 2, 10, blob(&ziplist(&numbers())), &[("LRANGE K 0 -1", NUMBERS)]);
    let long = vec![b'x'; 300];
    let texts = [text(b"a"), text(&long), text(b"after the long one")];
    add(
        "list as a ziplist of long texts",
        2,
        10,
        blob(&ziplist(&texts)),
        &[("LLEN K", ":3"), ("LINDEX K 2", "\"after the long one\"")],
    );
    let small = [1_i16, 2, 300].map(i16::to_le_bytes);
    add(
        "set of 16 bits",
        2,
        11,
        blob(&intset(&small)),
        &[("SISMEMBER K 300", ":1"), ("SCARD K", ":3"), ("OBJECT ENCODING K", "intset")],
    );
    let wide = [-(1_i64 << 40), 5].map(i64::to_le_bytes);
    add("set of 64 bits", 2, 11, blob(&intset(&wide)), &[("SISMEMBER K -1099511627776", ":1"), ("SCARD K", ":2")]);
    let scored = ziplist(&[text(b"m"), text(b"1.5"), text(b"n"), Packed::Number(vec![0xf8])]);
    add("sorted set as a ziplist", 2, 12, blob(&scored), &[("ZRANGE K 0 -1 WITHSCORES", "[m 1.5 n 7]")]);
    let fields = ziplist(&[text(b"f"), text(b"v"), text(b"n"), Packed::Number(vec![0xfe, 0xfb])]);
    add("hash as a ziplist", 4, 13, blob(&fields), &[("HMGET K f n", "[v -5]"), ("HLEN K", ":2")]);
    let nodes = [&[2][..], &blob(&ziplist(&[text(b"a"), text(b"b")])), &blob(&ziplist(&[text(b"c")]))].concat();
    add("list of ziplists", 7, 14, nodes, &[("LRANGE K 0 -1", "[a b c]")]);
    let binary = [&[2][..], &blob(b"m"), &1.5_f64.to_le_bytes(), &blob(b"n"), &(-2.0_f64).to_le_bytes()].concat();
    add("sorted set, binary scores", 8, 5, binary, &[("ZRANGE K 0 -1 WITHSCORES", "[n -2 m 1.5]")]);
    add("stream of 5.0", 9, 15, stream(1), STREAM);
    let packed = listpack(&[Err(b"f"), Err(b"v"), Err(b"n"), Ok(5)]);
    add("hash as a listpack", 10, 16, blob(&packed), &[("HMGET K f n", "[v 5]")]);
    let packed = listpack(&[Err(b"m"), Ok(1), Err(b"n"), Ok(2)]);
    add("sorted set as a listpack", 10, 17, blob(&packed), &[("ZRANGE K 0 -1 WITHSCORES", "[m 1 n 2]")]);
    let nodes = [&[2, 2][..], &blob(&listpack(&[Err(b"a"), Ok(5)])), &[1], &blob(b"plain")].concat();
    add("list of listpacks", 10, 18, nodes, &[("LRANGE K 0 -1", "[a 5 plain]")]);
    add("stream of 7.0", 10, 19, stream(2), STREAM);
    add("set as a listpack", 11, 20, blob(&listpack(&[Err(b"one"), Ok(5)])), &[("SMISMEMBER K one 5 6", "[:1 :1 :0]")]);
    add("stream of 7.2", 11, 21, stream(3), STREAM);
    all
}

fn check(client: &mut Client, value: &OldValue, key: &str, who: &str) -> Result<()> {
    for (command, reply) in value.checks {
        let got = client.run(&command.replace('K', key)).to_string();
        let wanted = reply.replace("[[K ", &format!("[[{key} "));
        ensure!(got == wanted, "{who}: {} has {got} for {command}, not {wanted}", value.name);
    }
    Ok(())
}

/// The newest version that Debian's server reads.
const PEER_VERSION: u16 = 10;

/// B5, payloads: each is restored, holds what it must, and what is dumped again is read by redis-server.
pub(super) fn payloads(context: &Context<'_>) -> Result<String> {
    let own: &[&str] = if context.is_peer() { &[] } else { &["--rdb-version", "10"] };
    let (ours, theirs) = (context.server(own)?, Launch::redis().try_start()?);
    let (mut client, mut peer) = (ours.client(), theirs.client());
    let all = all();
    let mut again = 0;
    for value in &all {
        for strict in ["no", "yes"] {
            client.run(&format!("CONFIG SET sanitize-dump-payload {strict}"));
            let bytes = payload(value.kind, &value.body, value.since);
            let reply = client.call(&[b"RESTORE".as_slice(), b"key", b"0", &bytes, b"REPLACE"])?;
            ensure!(!reply.is_error(), "{}: {reply}", value.name);
            // What is dumped before the checks, some of which change the value.
            let dumped = client.run("DUMP key").bytes().context("DUMP gives nothing")?.to_vec();
            let digest = client.run("DEBUG DIGEST-VALUE key");
            check(&mut client, value, "key", "restored")?;
            if let Some(dumped) = for_peer(&dumped) {
                let reply = peer.call(&[b"RESTORE".as_slice(), b"key", b"0", &dumped, b"REPLACE"])?;
                ensure!(!reply.is_error(), "{} dumped again: redis-server says {reply}", value.name);
                check(&mut peer, value, "key", "redis-server")?;
                again += 1;
            }
            if value.since <= PEER_VERSION {
                let reply = peer.call(&[b"RESTORE".as_slice(), b"key", b"0", &bytes, b"REPLACE"])?;
                ensure!(!reply.is_error(), "{}: redis-server refuses the payload itself: {reply}", value.name);
                let wanted = peer.run("DEBUG DIGEST-VALUE key");
                // Versions 7.0 and 7.2 write scores differently into digests.
                ensure!(
                    wanted == digest || matches!(value.kind, 3 | 5 | 12 | 17),
                    "{}: the digests differ",
                    value.name
                );
            }
        }
    }
    let files = files(context)?;
    Ok(format!("{} payloads of types 0 to 21, {again} of them dumped again for redis-server; {files}", all.len()))
}

/// The payload as a server of the peer's version would have written it; `None`: it has no such form.
fn for_peer(dumped: &[u8]) -> Option<Vec<u8>> {
    /// Newest type of version 10.
    const NEWEST: u8 = 19;
    let (kind, rest) = dumped.split_first()?;
    let body = rest.get(..rest.len().checked_sub(10)?)?;
    (*kind <= NEWEST).then(|| payload(*kind, body, PEER_VERSION))
}

/// A file of an RDB version with all values that it may hold.
fn file(version: u16, all: &[OldValue]) -> Vec<u8> {
    let mut name = String::new();
    let _ = write!(name, "REDIS{version:04}");
    let mut bytes = name.into_bytes();
    if version >= 7 {
        bytes.push(0xfa);
        string(&mut bytes, b"redis-ver");
        string(&mut bytes, b"of old");
    }
    bytes.extend_from_slice(&[0xfe, 0]);
    let fitting: Vec<(usize, &OldValue)> = all.iter().enumerate().filter(|(_, value)| value.since <= version).collect();
    if version >= 7 {
        bytes.push(0xfb);
        length(&mut bytes, fitting.len());
        length(&mut bytes, 1);
    }
    for (index, value) in fitting {
        if index == 0 && version < 3 {
            bytes.push(0xfd);
            bytes.extend_from_slice(&2_000_000_000_u32.to_le_bytes());
        } else if index == 0 {
            bytes.push(0xfc);
            bytes.extend_from_slice(&2_000_000_000_000_u64.to_le_bytes());
        }
        bytes.push(value.kind);
        string(&mut bytes, format!("value:{index}").as_bytes());
        bytes.extend_from_slice(&value.body);
    }
    bytes.extend_from_slice(&[0xfe, 9, 0]);
    string(&mut bytes, b"other");
    string(&mut bytes, b"1");
    bytes.push(0xff);
    if version >= 5 {
        let sum = crc64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// B5, files: versions 1 to 11 load, and what redis-server reads gives the same digest there.
pub(super) fn files(context: &Context<'_>) -> Result<String> {
    let all = all();
    let mut values = 0;
    for version in 1..=11 {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("dump.rdb"), file(version, &all))?;
        let start = |launch: &Launch| launch.clone().directory(directory.path()).try_start();
        let server = start(context.launch).with_context(|| format!("version {version}"))?;
        let mut client = server.client();
        let digest = client.run("DEBUG DIGEST");
        if version <= PEER_VERSION {
            let theirs = start(&Launch::redis()).with_context(|| format!("redis-server, version {version}"))?;
            let mut peer = theirs.client();
            let sizes = (client.run("DBSIZE"), peer.run("DBSIZE"));
            ensure!(sizes.0 == sizes.1, "version {version}: {} keys, redis-server has {}", sizes.0, sizes.1);
            let wanted = peer.run("DEBUG DIGEST");
            for (index, _) in all.iter().enumerate().filter(|(_, value)| value.since <= version) {
                let ask = format!("DEBUG DIGEST-VALUE value:{index}");
                let same = client.run(&ask) == peer.run(&ask) || matches!(all[index].kind, 3 | 5 | 12 | 17);
                ensure!(
                    same,
                    "version {version}: {} differs from redis-server's ({wanted}, {digest})",
                    all[index].name
                );
            }
        }
        client.check("TTL nothing; SELECT 9; GET other; SELECT 0", ":-2; +OK; 1; +OK");
        ensure!(client.run("EXPIRETIME value:0").to_string() == ":2000000000", "version {version}: the expiry is lost");
        for (index, value) in all.iter().enumerate().filter(|(_, value)| value.since <= version) {
            check(&mut client, value, &format!("value:{index}"), &format!("version {version}"))?;
            values += 1;
        }
    }
    Ok(format!("files of versions 1 to 11 with {values} values"))
}
