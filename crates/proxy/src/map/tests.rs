#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use resp::{Proto, Reply, Value};

use super::refresh::RefreshPolicy;
use super::*;

const NODES: &str = "\
07c37dfeb235213a872192d90877d0cd55635b91 127.0.0.1:30004@31004,host4 slave e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 0 1426238317239 4 connected
67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 127.0.0.1:30002@31002,,shard-id=69bc master - 0 1426238316232 2 connected 5461-10922
292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f 127.0.0.1:30003@31003 master,fail - 0 1426238318243 3 connected 10923-16382 16383
6ec23923021cf3ffec47632106199cb7f496ce01 127.0.0.1:30005@31005 slave,fail? 67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 0 1426238316232 5 connected
824fe116063bc5fcf9f4ffd895bc17aee7731ac3 :0@0 slave,noaddr 292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f 0 1426238317741 6 disconnected
e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca :30001@31001 myself,master - 0 0 7 connected 0-5460 [93-<-292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f] [77->-67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1]
";

#[test]
fn nodes_are_read() {
    let mut map = parse_nodes(NODES).unwrap();
    map.fill_host("10.1.1.1");
    assert_eq!(map.shards.len(), 3);
    assert_eq!(map.count_owned(), SLOTS);
    assert_eq!(map.epoch(), 7);
    assert_eq!(map.moving, [93, 77]);
    let first = map.owner(5460).unwrap();
    assert_eq!(first.primary.address(), "10.1.1.1:30001");
    assert_eq!(first.replicas[0].address(), "host4:30004");
    let second = map.owner(5461).unwrap();
    assert_eq!(second.primary.address(), "127.0.0.1:30002", "a shard id is no name");
    assert!(!second.replicas[0].is_failed, "one server's suspicion is not enough");
    let third = map.owner(16383).unwrap();
    assert!(third.primary.is_failed);
    assert!(third.replicas.is_empty(), "what has no address cannot be asked");
}

#[test]
fn the_later_epoch_owns_a_slot_that_two_claim() {
    for swapped in [false, true] {
        let mut lines = ["b 1.1.1.1:1@2 master - 0 0 3 connected 0-10", "a 1.1.1.2:1@2 master - 0 0 5 connected 5-7"];
        if swapped {
            lines.reverse();
        }
        let map = parse_nodes(&lines.join("\n")).unwrap();
        assert_eq!(map.owner(4).unwrap().primary.id, "b");
        assert_eq!(map.owner(5).unwrap().primary.id, "a");
        assert_eq!(map.owner(11), None);
    }
}

#[test]
fn nonsense_is_no_map() {
    for text in ["x", "id 1.1.1.1 master - 0 0 1 c", "id h:1@2 master - 0 0 1 c 5-3", "id h:1@2 master - 0 0 1 c 16384"]
    {
        assert!(parse_nodes(text).is_err(), "{text}");
    }
    assert!(parse_slots(&Value::Int(1)).is_err());
    assert!(parse_slots(&Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(20000)])])).is_err());
    assert!(parse_shards(&Value::Array(vec![Value::Array(vec![])])).is_err());
}

fn text(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

#[test]
fn slots_are_read() {
    let node =
        |port: i64, id: &str| Value::Array(vec![text("127.0.0.1"), Value::Int(port), text(id), Value::Array(vec![])]);
    let range =
        |first, last, nodes: Vec<Value>| Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat());
    let reply = Value::Array(vec![
        range(0, 99, vec![node(1, "b"), node(2, "r")]),
        range(200, 300, vec![node(3, "a")]),
        range(100, 150, vec![node(1, "b"), node(2, "r")]),
        range(400, 400, vec![Value::Array(vec![Value::Null, Value::Int(4), text("c")])]),
    ]);
    let mut map = parse_slots(&reply).unwrap();
    map.fill_host("me");
    assert_eq!(map.shards.len(), 3);
    assert_eq!(map.owner(120).unwrap().primary.port, 1);
    assert_eq!(map.owner(99).unwrap().replicas.len(), 1);
    assert_eq!(map.owner(151), None);
    assert_eq!(map.owner(400).unwrap().primary.address(), "me:4");
}

#[test]
fn shards_are_read_in_both_protocols() {
    let node = |role: &str, port: i64, health: &str| {
        Value::Map(vec![
            (text("id"), text(&format!("id{port}"))),
            (text("port"), Value::Int(port)),
            (text("ip"), text("127.0.0.1")),
            (text("endpoint"), text("127.0.0.1")),
            (text("role"), text(role)),
            (text("replication-offset"), Value::Int(72156)),
            (text("health"), text(health)),
        ])
    };
    let reply = Value::Array(vec![
        Value::Map(vec![
            (text("slots"), Value::Array(vec![Value::Int(0), Value::Int(5), Value::Int(7), Value::Int(7)])),
            (
                text("nodes"),
                Value::Array(vec![
                    node("master", 1, "fail"),
                    node("master", 2, "online"),
                    node("replica", 3, "loading"),
                ]),
            ),
        ]),
        Value::Map(vec![
            (text("slots"), Value::Array(vec![])),
            (text("nodes"), Value::Array(vec![node("master", 4, "online")])),
        ]),
    ]);
    let mut resp2 = Reply::new();
    reply.write(&mut resp2);
    assert_eq!(resp2.proto(), Proto::Resp2);
    let (flat, _) = resp::parse_reply(resp2.as_slice()).unwrap().unwrap();
    for form in [reply, flat] {
        let map = parse_shards(&form).unwrap();
        assert_eq!(map.shards.len(), 1);
        assert_eq!(map.owner(7).unwrap().primary.port, 2);
        assert_eq!(map.owner(6), None);
        let failed: Vec<bool> = map.shards[0].replicas.iter().map(|node| node.is_failed).collect();
        assert_eq!(failed, [true, true]);
    }
}

#[test]
fn fingerprints_tell_maps_apart() {
    let map = parse_nodes(NODES).unwrap();
    let same = parse_nodes(&NODES.lines().rev().collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(map.fingerprint(), same.fingerprint());
    for (from, to) in [(" 7 connected", " 8 connected"), ("0-5460", "0-5459"), ("e7d1", "e7d2")] {
        let other = parse_nodes(&NODES.replace(from, to)).unwrap();
        assert_ne!(map.fingerprint(), other.fingerprint(), "{from}");
    }
}

#[test]
fn questions_keep_their_distance() {
    let start = Instant::now();
    let ms = Duration::from_millis;
    let mut policy = RefreshPolicy::new();
    assert_eq!(policy.wait(start), Duration::ZERO);
    policy.asked(start);
    assert!(policy.answered(start, None, &parse_nodes(NODES).unwrap()));
    assert_eq!(policy.wait(start), ms(5000));
    policy.want();
    assert_eq!(policy.wait(start + ms(30)), ms(70));
    policy.asked(start + ms(100));
    for _ in 0..20 {
        policy.failed();
    }
    assert_eq!(policy.wait(start + ms(100)), ms(2000));
}

#[test]
fn an_old_map_is_not_believed_at_once() {
    let start = Instant::now();
    let (old, new) =
        (parse_nodes(&NODES.replace(" 7 connected", " 1 connected")).unwrap(), parse_nodes(NODES).unwrap());
    let mut policy = RefreshPolicy::new();
    assert!(policy.answered(start, None, &new));
    assert!(!policy.answered(start + Duration::from_secs(1), Some(&new), &old));
    assert!(policy.answered(start + Duration::from_secs(16), Some(&new), &old));
}
