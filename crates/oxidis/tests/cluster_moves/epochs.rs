//! Orders, views and restarts around a cut-over: what is late is refused, and what is decided is done.

use std::time::Duration;

use testkit::{Client, wait_until};

use super::cluster::{Cluster, LIMIT, field};
use super::{AOF, PLAIN, check_all, fill_slots};

/// Two servers, a move of keys from the first to the second that is about to be decided, and the epoch of its FREEZE, which
/// no view has shown.
fn held_beyond_the_view(args: &[&str]) -> (Cluster, Vec<String>, u64) {
    let mut cluster = Cluster::start(2, args);
    let keys = fill_slots(&mut cluster.client(0), 20);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    cluster.set_stage(1, "cutover");
    cluster.wait_known();
    let epoch = cluster.epoch + 5;
    cluster.client(0).check(&format!("OXIDIS MOVE FREEZE 1 {epoch} 2000"), "+OK");
    (cluster, keys, epoch)
}

fn is_held(cluster: &Cluster, key: &str) -> bool {
    let mut probe = cluster.client(0);
    probe.set_timeout(Duration::from_millis(100)).unwrap();
    probe.send(&["GET", key]).unwrap();
    probe.read().is_err()
}

/// Hidden keys count here too.
fn has_keys(client: &mut Client) -> bool {
    client.run("INFO keyspace").text().contains("db0")
}

fn wait_empty(client: &mut Client) {
    wait_until("the keys to be dropped", LIMIT, || if has_keys(client) { Err("still there") } else { Ok(()) });
}

fn wait_served(client: &mut Client, key: &str) {
    wait_until("the key to be served", LIMIT, || match client.run(&format!("GET {key}")).text() {
        text if text == key => Ok(()),
        other => Err(other),
    });
}

#[test]
fn orders_of_an_earlier_epoch_are_refused() {
    let (mut cluster, keys, epoch) = held_beyond_the_view(PLAIN);
    let (mut first, mut second) = (cluster.client(0), cluster.client(1));
    let before = epoch - 1;
    let refused = |client: &mut Client, command: String| {
        let reply = client.run(&command);
        assert!(reply.is_error() && reply.text().contains("ERR "), "{command}: {reply}");
    };
    refused(&mut first, format!("OXIDIS MOVE CANCEL 1 1 {before}"));
    refused(&mut first, format!("OXIDIS MOVE FINISH 1 1 {before}"));
    refused(&mut first, format!("OXIDIS MOVE START 1 127.0.0.1:{} 0-99", cluster.port(1)));
    refused(&mut second, format!("OXIDIS IMPORT ABORT 1 1 {before}"));
    refused(&mut second, format!("OXIDIS IMPORT COMMIT 1 1 {before}"));
    refused(&mut first, "OXIDIS MOVE CANCEL 1 1".to_owned());
    // Of what it does not know it has nothing to refuse.
    first.check("OXIDIS MOVE CANCEL 99 1 0; OXIDIS MOVE FINISH 99 1 0", "+OK; +OK");
    second.check("OXIDIS IMPORT ABORT 99 1 0; OXIDIS IMPORT COMMIT 99 1 0", "+OK; +OK");
    assert!(is_held(&cluster, &keys[0]));
    cluster.epoch = epoch;
    cluster.commit(1, true);
    cluster.forget(1);
    check_all(&mut second, &keys);
    // By a view.
    cluster.begin_move(2, 1, 0, (0, 99), "");
    cluster.wait_state(2, 1, "following");
    let before = cluster.epoch - 1;
    refused(&mut second, format!("OXIDIS MOVE CANCEL 2 1 {before}"));
    refused(&mut second, format!("OXIDIS MOVE FREEZE 2 {before} 2000"));
    refused(&mut first, format!("OXIDIS IMPORT ABORT 2 1 {before}"));
    cluster.wait_state(2, 1, "following");
    first.check(&format!("OXIDIS IMPORT ABORT 2 1 {}", cluster.epoch), "+OK");
    second.check(&format!("OXIDIS MOVE CANCEL 2 1 {}", cluster.epoch), "+OK");
    cluster.forget(2);
    check_all(&mut second, &keys);
}

#[test]
fn a_freeze_may_be_said_again() {
    let (mut cluster, keys, epoch) = held_beyond_the_view(PLAIN);
    let (mut first, mut second) = (cluster.client(0), cluster.client(1));
    first.check(&format!("OXIDIS MOVE FREEZE 1 {epoch} 2000; OXIDIS MOVE FREEZE 1 {} 2000", epoch + 3), "+OK; +OK");
    // The target knows of it, too.
    assert!(second.run(&format!("OXIDIS IMPORT ABORT 1 1 {}", epoch + 2)).is_error());
    cluster.kill(1);
    first.check(&format!("OXIDIS MOVE FREEZE 1 {} 2000", epoch + 3), "+OK");
    assert!(first.run(&format!("OXIDIS MOVE FREEZE 1 {} 2000", epoch + 4)).is_error());
    assert!(is_held(&cluster, &keys[0]), "it was promised");
    cluster.moving.clear();
    cluster.epoch = epoch + 4;
    cluster.publish();
    check_all(&mut first, &keys);
}

#[test]
fn the_epoch_of_a_freeze_outlives_restarts() {
    let (mut cluster, keys, epoch) = held_beyond_the_view(AOF);
    cluster.kill(0);
    cluster.kill(1);
    cluster.moving.clear();
    cluster.epoch = epoch - 2;
    cluster.publish_soon();
    for index in 0..2 {
        let member = format!("s{index}");
        let before = cluster.manager.asked_by(&member);
        cluster.restart_soon(index);
        let mut client = cluster.client(index);
        // Who asks again has heard the first answer.
        wait_until("the manager to be asked again", LIMIT, || {
            let asked = cluster.manager.asked_by(&member) - before;
            if asked < 2 { Err(asked) } else { Ok(()) }
        });
        assert_eq!(field(&client.run("OXIDIS VIEW").text(), "epoch"), "0", "an older view is not taken");
        assert!(client.run(&format!("GET {}", keys[0])).is_error());
        assert!(has_keys(&mut client));
    }
    cluster.epoch = epoch;
    cluster.publish();
    check_all(&mut cluster.client(0), &keys);
    wait_empty(&mut cluster.client(1));
}

#[test]
fn a_restart_of_the_target_drops_nothing() {
    let mut cluster = Cluster::start(2, AOF);
    let keys = fill_slots(&mut cluster.client(0), 20);
    for id in [1, 2] {
        cluster.begin_move(id, 0, 1, (0, 99), "");
        cluster.wait_state(id, 0, "following");
        assert_eq!(cluster.freeze(id, 2000).text(), "OK");
        cluster.wait_known();
        cluster.kill(1);
        cluster.restart(1);
        // A view of before the decision, once more.
        cluster.publish();
        let mut second = cluster.client(1);
        second.check("DBSIZE", ":0");
        assert!(has_keys(&mut second));
        if id == 1 {
            // Given up: the view says it.
            cluster.moving.clear();
            cluster.publish();
            wait_empty(&mut second);
            check_all(&mut cluster.client(0), &keys);
        }
    }
    cluster.commit(2, true);
    cluster.forget(2);
    check_all(&mut cluster.client(1), &keys);
}

#[test]
fn what_the_view_no_longer_shows_is_decided() {
    let mut cluster = Cluster::start(2, PLAIN);
    let keys = fill_slots(&mut cluster.client(0), 20);
    let (mut first, mut second) = (cluster.client(0), cluster.client(1));
    for (id, is_held) in [(1, false), (2, true)] {
        cluster.begin_move(id, 0, 1, (0, 99), "");
        cluster.wait_state(id, 0, "following");
        assert!(has_keys(&mut second));
        if is_held {
            assert_eq!(cluster.freeze(id, 2000).text(), "OK");
        }
        cluster.moving.clear();
        cluster.publish();
        cluster.wait_state(id, 0, "cancelled");
        check_all(&mut first, &keys);
        wait_empty(&mut second);
    }
    // Back to copying: it goes on, and is held once more.
    cluster.begin_move(3, 0, 1, (0, 99), "");
    cluster.wait_state(3, 0, "following");
    assert_eq!(cluster.freeze(3, 2000).text(), "OK");
    cluster.set_stage(3, "copying");
    wait_served(&mut first, &keys[0]);
    cluster.wait_state(3, 0, "following");
    first.check(&format!("SET {0} changed; SET {0} {0}", keys[0]), "+OK; +OK");
    assert_eq!(cluster.freeze(3, 2000).text(), "OK");
    cluster.commit(3, true);
    cluster.forget(3);
    check_all(&mut second, &keys);
}
