//! HOTKEYS and BIGKEYS over sockets, on four workers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use testkit::{Client, Server, wait_until};

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4"])
}

/// The rows of a reply, each as its fields' values.
fn rows(client: &mut Client, command: &str) -> Vec<Vec<String>> {
    let reply = client.run(command);
    let items = reply.items().unwrap_or_else(|| panic!("{command}: {reply}"));
    items
        .iter()
        .map(|row| row.items().unwrap().iter().skip(1).step_by(2).map(|value| value.to_string()).collect())
        .collect()
}

#[test]
fn the_keys_used_most_are_named() {
    let server = server();
    let port = server.port();
    let clients: Vec<_> = (0..3_u64)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut client = Client::connect(port).unwrap();
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..200 {
                    // A tenth for one key, a twentieth for another, all else spread wide.
                    let commands: Vec<Vec<String>> = (0..100)
                        .map(|_| match rng.u8(..20) {
                            0 | 1 => vec!["GET".into(), "hottest".into()],
                            2 => vec!["INCR".into(), "hot".into()],
                            _ => vec!["GET".into(), format!("cold{}", rng.u32(..1_000_000))],
                        })
                        .collect();
                    client.pipeline(&commands).unwrap();
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let mut client = server.client();
    let found = rows(&mut client, "HOTKEYS COUNT 2");
    assert_eq!(found[0][0], "hottest", "{found:?}");
    assert_eq!(found[1][0], "hot", "{found:?}");
    let percent: f64 = found[0][3].parse().unwrap();
    assert!((6.0..14.0).contains(&percent), "{found:?}");
    assert!(!client.run("INFO").text().contains("hot_key"), "INFO names no keys unless asked to");
    assert!(client.run("INFO keystats").text().contains("key=\"hottest\""));
    client.check("CONFIG RESETSTAT; HOTKEYS", "+OK; []");
    assert!(client.run("HOTKEYS COUNT 0").is_error());
    assert!(client.run("HOTKEYS TYPE set").is_error());
}

#[test]
fn the_biggest_keys_are_named_by_their_present_size() {
    let server = server();
    let mut client = server.client();
    let big = "x".repeat(200_000);
    client.call(&["SET", "big string", &big]).unwrap();
    client.call(&["SET", "middle", &big[..5000]]).unwrap();
    // In one piece, and one element at a time.
    let mut push: Vec<String> = vec!["RPUSH".into(), "big list".into()];
    push.extend((0..3000).map(|element: u32| element.to_string()));
    client.call(&push).unwrap();
    let adds: Vec<Vec<String>> =
        (0..4000).map(|n: u32| vec!["ZADD".into(), "grown".into(), "1".into(), format!("m{n}")]).collect();
    client.pipeline(&adds).unwrap();
    client.check("SELECT 3; SETRANGE far 100000 x", "+OK; :100001");
    let found = rows(&mut client, "BIGKEYS");
    let named = |name: &str| found.iter().find(|row| row[0] == name).cloned();
    assert_eq!(
        named("\"big string\""),
        Some(["\"big string\"", ":0", "string", ":200000"].map(str::to_owned).to_vec()),
        "{found:?}"
    );
    assert_eq!(named("middle").map(|row| row[3].clone()), Some(":5000".into()), "{found:?}");
    assert_eq!(named("\"big list\"").map(|row| row[3].clone()), Some(":3000".into()), "{found:?}");
    assert_eq!(named("grown").map(|row| row[3].clone()), Some(":4000".into()), "{found:?}");
    // What shrinks or goes is not shown as it was; what is copied is known at once.
    client.check(
        "SELECT 0; LTRIM \"big list\" 0 9; RENAME grown renamed; COPY \"big string\" copied; DEL \"big string\"",
        "+OK; +OK; +OK; :1; :1",
    );
    let found = rows(&mut client, "BIGKEYS COUNT 1");
    assert_eq!(found[0][0], "copied", "{found:?}");
    assert!(found.iter().all(|row| row[0] != "grown"), "{found:?}");
    assert_eq!(rows(&mut client, "BIGKEYS TYPE zset")[0][0], "renamed");
    assert_eq!(rows(&mut client, "BIGKEYS TYPE list")[0][3], ":10");
    assert!(client.run("INFO keystats").text().contains("big_zset_0:db=0,size=4000,key=\"renamed\""));
    client.check("FLUSHALL; BIGKEYS", "+OK; []");
    // In a transaction, too; and from a file.
    client.check("SET k 1; MULTI; BIGKEYS; HOTKEYS; EXEC", "+OK; +OK; +QUEUED; +QUEUED; [...");
}

#[test]
fn what_a_long_command_writes_is_known() {
    let server = server();
    let mut client = server.client();
    for set in ["a", "b"] {
        let mut add: Vec<String> = vec!["SADD".into(), set.into()];
        add.extend((0..20_000).map(|member: u32| format!("{set}{member}")));
        client.call(&add).unwrap();
    }
    client.check("SUNIONSTORE both a b", ":40000");
    wait_until("the result among the big keys", Duration::from_secs(5), || {
        let found = rows(&mut client, "BIGKEYS TYPE set COUNT 1");
        if found.first().is_some_and(|row| row[3] == ":40000") { Ok(()) } else { Err(found) }
    });
}

#[test]
fn what_comes_from_a_file_is_known() {
    let server = Server::oxidis(&["--io-threads", "2", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    let adds: Vec<Vec<String>> =
        (0..600).map(|n: u32| vec!["HSET".into(), "hash".into(), format!("f{n}"), "1".into()]).collect();
    client.pipeline(&adds).unwrap();
    let keys: Vec<Vec<String>> =
        (0..300).map(|n: u32| vec!["SET".into(), format!("k{n}"), "x".repeat(n as usize)]).collect();
    client.pipeline(&keys).unwrap();
    client.check("SET read yes; CLIENT TRACKING on; DEBUG RELOAD", "+OK; +OK; +OK");
    assert_eq!(rows(&mut client, "BIGKEYS TYPE hash")[0][3], ":600");
    assert_eq!(rows(&mut client, "BIGKEYS TYPE string COUNT 1")[0][3], ":299");
}
