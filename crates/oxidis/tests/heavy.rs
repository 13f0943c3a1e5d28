//! Large values, large replies, deep pipelines, slow readers, many slots at once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use common::{info_number, timed};
use testkit::{Reply, Server, text, wait_until};

fn server(more: &[&str]) -> Server {
    let mut args = vec!["--io-threads", "4"];
    args.extend(more);
    Server::oxidis(&args)
}

#[test]
fn a_value_of_a_hundred_megabytes() {
    let server = server(&[]);
    let mut client = server.client();
    let value: Vec<u8> = (0..100_u32 << 20).map(|index| (index ^ index >> 8).to_le_bytes()[0]).collect();
    let mut other = server.client();
    let reply = thread::scope(|scope| {
        let big = scope.spawn(|| client.call(&[&b"SET"[..], b"big", &value]).unwrap());
        // Others are served meanwhile.
        while !big.is_finished() {
            let ((), took) = timed(|| other.check("PING", "+PONG"));
            assert!(took < Duration::from_secs(2), "a PING took {took:?}");
            thread::sleep(Duration::from_millis(5));
        }
        big.join().unwrap()
    });
    assert_eq!(reply.to_string(), "+OK");
    other.check("STRLEN big; GETRANGE big 5 8", ":104857600; \"\\x05\\x06\\x07\\x08\"");
    let got = client.call(&["GET", "big"]).unwrap();
    assert!(got.bytes() == Some(&value[..]), "the value came back changed");
    other.check("APPEND big x; DEL big", ":104857601; :1");
    drop((got, client));
    wait_until("the memory to go", Duration::from_secs(10), || {
        let used = info_number(&mut other, "used_memory");
        if used < 50 << 20 { Ok(()) } else { Err(used) }
    });
}

#[test]
fn a_reply_of_a_million_elements() {
    let server = server(&[]);
    let mut client = server.client();
    let elements: Vec<Vec<u8>> = (0..1_000_000).map(|index: u32| index.to_string().into_bytes()).collect();
    for part in elements.chunks(50_000) {
        let mut command = vec![b"RPUSH".to_vec(), b"list".to_vec()];
        command.extend_from_slice(part);
        client.call(&command).unwrap();
        command[0] = b"SADD".to_vec();
        command[1] = b"set".to_vec();
        client.call(&command).unwrap();
    }
    let mut other = server.client();
    for command in ["LRANGE list 0 -1", "SMEMBERS set", "SORT list"] {
        client.send(&text::words(command)).unwrap();
        for _ in 0..20 {
            let ((), took) = timed(|| other.check("PING", "+PONG"));
            assert!(took < Duration::from_secs(1), "a PING took {took:?} beside {command}");
        }
        let reply = client.read().unwrap();
        let items = reply.items().unwrap();
        assert_eq!(items.len(), 1_000_000, "{command}");
        if command.starts_with('S') {
            let sum: u64 = items.iter().map(|item| item.text().parse::<u64>().unwrap()).sum();
            assert_eq!(sum, 499_999_500_000, "{command}");
        } else {
            assert_eq!(items[999_999].text(), "999999");
        }
    }
    client.check("SUNIONSTORE copy set set; SCARD copy; DEL list set copy; DBSIZE", ":1000000; :1000000; :3; :0");
}

#[test]
fn many_arguments_take_few_reads() {
    let server = server(&[]);
    let mut client = server.client();
    let mut admin = server.client();
    let mut command = vec!["RPUSH".to_owned(), "list".to_owned()];
    command.extend((0..100_000).map(|index| index.to_string()));
    let before = info_number(&mut admin, "total_reads_processed");
    client.call(&command).unwrap();
    let reads = info_number(&mut admin, "total_reads_processed") - before;
    assert!(reads < 1_000, "{reads} reads for about a megabyte");
    admin.check("LLEN list; LINDEX list -1", ":100000; 99999");
}

#[test]
fn a_hundred_thousand_commands_in_one_write() {
    let server = server(&[]);
    let mut writer = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let mut reader = writer.try_clone().unwrap();
    reader.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    const COUNT: usize = 100_000;
    let mut bytes = Vec::new();
    let mut expected = Vec::new();
    for index in 0..COUNT {
        match index % 4 {
            0 => {
                text::encode(&["INCR".to_owned(), format!("k:{}", index % 64)], &mut bytes);
                expected.extend_from_slice(format!(":{}\r\n", index / 64 + 1).as_bytes());
            }
            1 => {
                text::encode(&["ECHO".to_owned(), index.to_string()], &mut bytes);
                let digits = index.to_string();
                expected.extend_from_slice(format!("${}\r\n{digits}\r\n", digits.len()).as_bytes());
            }
            2 => {
                text::encode(&["MSET", "{x}a", "1", "b", "2"], &mut bytes);
                expected.extend_from_slice(b"+OK\r\n");
            }
            _ => {
                bytes.extend_from_slice(b"PING\r\n");
                expected.extend_from_slice(b"+PONG\r\n");
            }
        }
    }
    let sender = thread::spawn(move || writer.write_all(&bytes).unwrap());
    let mut got = vec![0; expected.len()];
    reader.read_exact(&mut got).unwrap();
    sender.join().unwrap();
    assert!(got == expected, "replies differ");
}

#[test]
fn who_does_not_read_is_cut_off() {
    let server = server(&["--client-output-buffer-limit", "normal 4mb 0 0 pubsub 1mb 0 0"]);
    let mut admin = server.client();
    admin.call(&["SET".to_owned(), "k".to_owned(), "v".repeat(100_000)]).unwrap();
    let mut greedy = server.client();
    let mut sleeping = server.client();
    sleeping.check("SUBSCRIBE c", "[subscribe c :1]");
    for _ in 0..500 {
        if greedy.send(&["GET", "k"]).is_err() {
            break;
        }
    }
    wait_until("the greedy one to be cut", Duration::from_secs(10), || {
        let list = admin.run("CLIENT LIST").text();
        if list.contains("cmd=get") { Err(list) } else { Ok(()) }
    });
    for _ in 0..400 {
        admin.call(&["PUBLISH".to_owned(), "c".to_owned(), "m".repeat(50_000)]).unwrap();
    }
    wait_until("the sleeper to be cut", Duration::from_secs(10), || {
        let reply = admin.run("PUBSUB NUMSUB c").to_string();
        if reply == "[c :0]" { Ok(()) } else { Err(reply) }
    });
    assert!(server.log().contains("output buffer limits"), "{}", server.log());
    // One who reads slowly but does read keeps its place and gets everything.
    let mut slow = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut left = 30 * (100_000 + 11);
    for _ in 0..30 {
        slow.write_all(b"GET k\r\n").unwrap();
    }
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        thread::sleep(Duration::from_millis(1));
        let count = slow.read(&mut buffer).unwrap();
        assert!(count > 0, "cut off with {left} bytes to come");
        left -= count;
    }
    let used = info_number(&mut admin, "used_memory");
    assert!(used < 60 << 20, "{used} bytes are still used");
}

#[test]
fn long_commands_and_hot_keys_do_not_starve_each_other() {
    let server = server(&[]);
    let mut client = server.client();
    let mut command = vec!["RPUSH".to_owned(), "hot".to_owned()];
    command.extend((0..200_000).map(|index| (index * 7919 % 200_003).to_string()));
    client.call(&command).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = server.client();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let replies = client.pipeline(&vec![text::words("LINDEX hot 5"); 32]).unwrap();
                    assert!(replies.iter().all(|reply| matches!(reply, Reply::Bulk(_))));
                }
            });
        }
        for _ in 0..5 {
            let (reply, took) = timed(|| client.run("SORT hot LIMIT 0 3"));
            assert_eq!(reply.items().map(<[Reply]>::len), Some(3));
            assert!(took < Duration::from_secs(10), "SORT took {took:?}");
            let (_, took) = timed(|| client.run("KEYS *"));
            assert!(took < Duration::from_secs(5), "KEYS took {took:?}");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_closer_that_dies_does_not_hold_long_commands_up() {
    let server = server(&[]);
    let mut client = server.client();
    let mut command = vec!["SADD".to_owned(), "big".to_owned()];
    command.extend((0..300_000).map(|index: u32| index.to_string()));
    client.call(&command).unwrap();
    for _ in 0..10 {
        let mut long = server.client();
        long.send(&["SORT", "big", "ALPHA", "LIMIT", "0", "1"]).unwrap();
        thread::sleep(Duration::from_millis(10));
        // It wants everything to stand still, and goes before that comes to pass.
        let mut closer = server.client();
        closer.send(&["MULTI"]).unwrap();
        closer.send(&["DBSIZE"]).unwrap();
        closer.send(&["RANDOMKEY"]).unwrap();
        closer.send(&["EXEC"]).unwrap();
        thread::sleep(Duration::from_millis(2));
        drop(closer);
        assert_eq!(long.read().unwrap().to_string(), "[0]");
        client.check("SORT big ALPHA LIMIT 0 1", "[0]");
    }
}

#[test]
fn what_was_sent_before_the_close_is_run() {
    let server = server(&[]);
    let mut admin = server.client();
    let mut command = vec!["SADD".to_owned(), "big".to_owned()];
    command.extend((0..200_000).map(|index: u32| index.to_string()));
    admin.call(&command).unwrap();
    for round in 0..20 {
        let mut client = server.client();
        client
            .send_raw(format!("SORT big ALPHA LIMIT 0 1\r\nSET after:{round} 1\r\nINCR after:{round}\r\n").as_bytes())
            .unwrap();
        client.finish_sending().unwrap();
        let (said, closed) = client.read_to_end(Duration::from_secs(10));
        assert!(closed);
        assert_eq!(String::from_utf8_lossy(&said), "*1\r\n$1\r\n0\r\n+OK\r\n:2\r\n");
    }
}
