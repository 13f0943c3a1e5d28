//! The proxy: each client gets the replies to its own requests, in their order, whatever backends do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use testkit::{Answer, Client, Launch, Reply, Responder, Server};

/// A proxy whose slots are shared out evenly over ports.
fn proxy_over(ports: &[u16], directives: &[&str]) -> Server {
    let share = 16384_usize.div_ceil(ports.len());
    let parts = ports.iter().enumerate().map(|(index, port)| {
        let last = ((index + 1) * share).min(16384) - 1;
        format!("{}-{last}@127.0.0.1:{port}", index * share)
    });
    let topology = format!("static {}", parts.collect::<Vec<_>>().join(" "));
    Launch::proxy().args(&["--topology", &topology]).args(directives).start()
}

/// Answers GET with the key, after up to two milliseconds.
fn slow_echo() -> Responder {
    Responder::start(|request| {
        let key = request.get(1).cloned().unwrap_or_default();
        let bytes = [format!("${}\r\n", key.len()).as_bytes(), &key, b"\r\n"].concat();
        Answer::After(Duration::from_micros(fastrand::u64(0..2_000)), bytes)
    })
    .unwrap()
}

#[test]
fn replies_come_in_the_order_of_requests() {
    let backends = [slow_echo(), slow_echo(), slow_echo()];
    let proxy = proxy_over(&backends.each_ref().map(Responder::port), &["--io-threads", "2"]);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut client = proxy.client();
                for round in 0..6 {
                    let texts: Vec<String> =
                        (0..60).map(|at| format!("{number}:{round}:{at}:{}", fastrand::u32(..))).collect();
                    let commands: Vec<[&str; 2]> = texts
                        .iter()
                        .map(|text| if fastrand::u8(..) < 40 { ["PING", text] } else { ["GET", text] })
                        .collect();
                    let replies = client.pipeline(&commands).unwrap();
                    let got: Vec<String> = replies.iter().map(Reply::text).collect();
                    assert_eq!(got, texts);
                }
            });
        }
    });
    assert!(backends.iter().all(|backend| backend.requests() > 50 && backend.connections() <= 2 + 1));
}

#[test]
fn parts_of_a_command_are_joined() {
    let servers = [Server::oxidis(&[]), Server::redis(&[]), Server::oxidis(&[])];
    let proxy = proxy_over(&servers.each_ref().map(Server::port), &[]);
    let mut client = proxy.client();
    let keys: Vec<String> = (0..100).map(|number| format!("key:{number}")).collect();
    let mut set = vec!["MSET".to_owned()];
    set.extend(keys.iter().flat_map(|key| [key.clone(), format!("value of {key}")]));
    assert_eq!(client.call(&set).unwrap().text(), "OK");
    for server in &servers {
        let size = server.client().run("DBSIZE").integer().unwrap();
        assert!((10..60).contains(&size), "{size} keys on one of three");
    }
    let get: Vec<String> =
        std::iter::once("MGET".to_owned()).chain(keys.iter().cloned()).chain(["none".to_owned()]).collect();
    let Reply::Array(values) = client.call(&get).unwrap() else { panic!("no array") };
    for (key, value) in keys.iter().zip(&values) {
        assert_eq!(value.text(), format!("value of {key}"));
    }
    assert_eq!((values.len(), &values[100]), (101, &Reply::NullBulk));
    client.check("MSET twice 1 other 2 twice 3", "+OK");
    client.check("GET twice", "3");
    client.check("EXISTS key:1 key:2 key:3 key:1 none", ":4");
    client.check("TOUCH key:1 key:2 key:3", ":3");
    client.check("DEL key:1 key:2 key:3 none", ":3");
    client.check("UNLINK key:4 key:5 key:6 key:7", ":4");
    client.check("DBSIZE", ":95");
    let in_pipeline: Vec<Vec<&str>> = vec![
        vec!["GET", "key:10"],
        vec!["MGET", "key:11", "key:12", "key:13"],
        vec!["PING"],
        vec!["DEL", "key:14", "key:15"],
    ];
    let replies = client.pipeline(&in_pipeline).unwrap();
    assert_eq!(replies[0].text(), "value of key:10");
    assert_eq!(replies[2].text(), "PONG");
    assert_eq!(replies[3], Reply::Integer(2));
    // One part that fails makes the whole fail, in its place.
    client.check("LPUSH list a", ":1");
    let wrong = client.run("SUNIONSTORE {a}1 {a}2 {b}3").text();
    assert_eq!(wrong, "CROSSSLOT Keys in request don't hash to the same slot");
    client.check("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command");
    client.check("FLUSHALL", "+OK");
    client.check("DBSIZE", ":0");
}

#[test]
fn no_reply_goes_astray_among_a_thousand_clients() {
    let servers = [Server::oxidis(&[]), Server::oxidis(&[])];
    let proxy = proxy_over(&servers.each_ref().map(Server::port), &["--io-threads", "2"]);
    std::thread::scope(|scope| {
        for thread in 0..10 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut clients: Vec<Client> = (0..100).map(|_| proxy.client()).collect();
                for round in 0..4 {
                    let name = |number: usize| format!("{thread}:{number}");
                    let value = |number: usize| format!("{thread}:{number}:{round}:{}", "x".repeat(number % 50));
                    for (number, client) in clients.iter_mut().enumerate() {
                        client.send(&["SET", &name(number), &value(number)]).unwrap();
                        client.send(&["GET", &name(number)]).unwrap();
                        client.send(&["ECHO", &value(number)]).unwrap();
                        client.send(&["STRLEN", &name(number)]).unwrap();
                    }
                    for (number, client) in clients.iter_mut().enumerate() {
                        assert_eq!(client.read().unwrap().text(), "OK");
                        assert_eq!(client.read().unwrap().text(), value(number));
                        assert_eq!(client.read().unwrap().text(), value(number));
                        let length = i64::try_from(value(number).len()).unwrap();
                        assert_eq!(client.read().unwrap(), Reply::Integer(length));
                    }
                }
            });
        }
    });
}

#[test]
fn protocol_and_database_belong_to_the_session() {
    let server = Server::oxidis(&[]);
    let proxy = proxy_over(&[server.port()], &[]);
    let (mut two, mut three) = (proxy.client(), proxy.client());
    three.hello(3);
    two.check("HSET hash a 1", ":1");
    assert!(matches!(three.run("HGETALL hash"), Reply::Map(_)), "RESP3 has maps");
    assert!(matches!(two.run("HGETALL hash"), Reply::Array(_)));
    assert_eq!(three.run("GET none"), Reply::Null);
    three.check("SELECT 5", "+OK");
    three.check("SET here 5", "+OK");
    two.check("EXISTS here", ":0");
    two.check("SELECT 5", "+OK");
    two.check("GET here", "5");
    two.check("SELECT 16", "-ERR DB index is out of range");
    two.check("SELECT x", "-ERR value is not an integer or out of range");
    two.check("GET here", "5");
    let mut direct = server.client();
    direct.check("DBSIZE", ":1");
    direct.check("SELECT 5", "+OK");
    direct.check("DBSIZE", ":1");
}

#[test]
fn a_client_that_has_sent_everything_gets_everything() {
    let backend = slow_echo();
    let proxy = proxy_over(&[backend.port()], &[]);
    let mut client = proxy.client();
    for number in 0..50 {
        client.send(&["GET", &format!("key:{number}")]).unwrap();
    }
    client.send(&["PING"]).unwrap();
    client.finish_sending().unwrap();
    for number in 0..50 {
        assert_eq!(client.read().unwrap().text(), format!("key:{number}"));
    }
    assert_eq!(client.read().unwrap().text(), "PONG");
    assert!(client.closes_within(Duration::from_secs(5)));
}

#[test]
fn big_values_pass_in_pieces() {
    let server = Server::oxidis(&[]);
    let proxy = proxy_over(&[server.port()], &[]);
    let mut client = proxy.client();
    let value = "0123456789abcdef".repeat(1 << 18);
    assert_eq!(client.call(&["SET", "big", &value]).unwrap().text(), "OK");
    let replies = client.pipeline(&[vec!["GET", "big"], vec!["GET", "none"], vec!["STRLEN", "big"]]).unwrap();
    assert!(replies[0].text() == value, "the value differs");
    assert_eq!((&replies[1], &replies[2]), (&Reply::NullBulk, &Reply::Integer(4 << 20)));
}
