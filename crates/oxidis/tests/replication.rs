//! Replication with ourselves and with Redis, in both roles, over good and bad networks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;
use testkit::replicas::{Writer, equal, follow, link, log_of, ours, redis, up};
use testkit::{Client, Proxy, Reply, Server, wait_until};

const LIMIT: Duration = Duration::from_secs(15);

#[test]
fn a_replica_of_ours_has_what_its_primary_has() {
    let (primary, replica) = (ours(&[]), ours(&[]));
    let (mut at_primary, mut at_replica) = (primary.client(), replica.client());
    at_primary.check("SET before 1; SELECT 3; LPUSH l a b; SELECT 0", "+OK; +OK; :2; +OK");
    at_replica.check("SET old 1", "+OK");
    follow(&replica, primary.port());
    at_replica.check("GET before; GET old; SELECT 3; LRANGE l 0 -1", "1; nil; +OK; [b a]");
    at_primary.check("MULTI; SET a 1; INCR a; EXEC", "+OK; +QUEUED; +QUEUED; [+OK :2]");
    at_primary.check(
        "SELECT 5; SET five 5 EX 100; SELECT 0; FLUSHDB; SET after 1; WAIT 1 5000",
        "+OK; +OK; +OK; +OK; +OK; :1",
    );
    at_replica.check("SELECT 0; GET a; GET after; SELECT 5; GET five", "+OK; nil; 1; +OK; 5");
    at_replica.check("SET x 1", "-READONLY You can't write against a read only replica.");
    at_replica.check("MULTI; SET x 1; EXEC", "+OK; -READONLY...; -EXECABORT...");
    assert_eq!(at_primary.info("connected_slaves").unwrap(), "1");
    let line = at_primary.info("slave0").unwrap();
    assert!(line.starts_with(&format!("ip=127.0.0.1,port={},state=online,offset=", replica.port())), "{line}");
    assert!(at_primary.run("CLIENT LIST TYPE replica").text().contains(" flags=S "));
    let role = at_replica.run("ROLE").to_string();
    assert!(role.starts_with(&format!("[slave 127.0.0.1 :{} connected :", primary.port())), "{role}");
    assert!(at_primary.run("ROLE").to_string().starts_with("[master :"));
    at_replica.check("WAIT 0 0", "-ERR WAIT cannot be used with replica instances...");
    equal(&primary, &replica);
    at_replica.check("REPLICAOF NO ONE; SELECT 0; SET x 1", "+OK; +OK; +OK");
    assert_eq!(at_replica.info("master_replid2").unwrap(), at_primary.info("master_replid").unwrap());
}

#[test]
fn every_way_of_a_full_synchronization() {
    for (name, primary_args, replica_args) in [
        ("by a file", vec!["--repl-diskless-sync", "no"], vec![]),
        ("into an empty server", vec![], vec!["--repl-diskless-load", "on-empty-db"]),
        ("into a full server", vec![], vec!["--repl-diskless-load", "swapdb"]),
    ] {
        let (primary, replica) = (ours(&primary_args), ours(&replica_args));
        let mut client = primary.client();
        for index in 0..3000 {
            client.send(&["SET".to_owned(), format!("key:{index}"), "x".repeat(index % 300)]).unwrap();
        }
        (0..3000).for_each(|_| drop(client.read().unwrap()));
        if name == "into a full server" {
            replica.client().check("SET gone 1", "+OK");
        }
        follow(&replica, primary.port());
        client.check("SET last 1", "+OK");
        equal(&primary, &replica);
    }
}

#[test]
fn redis_follows_ours() {
    let (primary, replica) = (ours(&["--rdb-version", "10"]), redis(&[]));
    let mut writer = Writer::new(&primary, 1);
    writer.write(1500);
    follow(&replica, primary.port());
    writer.write(3000);
    equal(&primary, &replica);
    assert!(!log_of(&replica).contains("CRITICAL"), "{}", log_of(&replica));
}

#[test]
fn ours_follows_redis() {
    let (primary, replica) = (redis(&[]), ours(&[]));
    let mut writer = Writer::new(&primary, 2);
    writer.write(1500);
    follow(&replica, primary.port());
    writer.write(3000);
    equal(&primary, &replica);
    assert!(!log_of(&replica).contains("CRITICAL"), "{}", log_of(&replica));
}

/// Cuts the link again and again while somebody writes. Gives the partial and full synchronizations of the primary.
fn cut_and_write(primary: &Server, replica: &Server, seed: u64) -> (u64, u64) {
    let proxy = Proxy::start(primary.port()).unwrap();
    let mut writer = Writer::new(primary, seed);
    writer.write(500);
    follow(replica, proxy.port());
    for round in 1..=5 {
        let before = proxy.accepted();
        proxy.cut_after((seed * 7_919 + round * 4_057) % 20_000);
        let mut writes = 0;
        wait_until("the link is made again", LIMIT, || {
            writer.write(200);
            writes += 1;
            if writes == 40 {
                proxy.cut();
            }
            if proxy.accepted() > before { Ok(()) } else { Err(()) }
        });
    }
    up(replica);
    equal(primary, replica);
    let mut client = primary.client();
    let number = |client: &mut Client, field: &str| client.info(field).unwrap().parse::<u64>().unwrap();
    (number(&mut client, "sync_partial_ok"), number(&mut client, "sync_full"))
}

const BACKLOG: [&str; 2] = ["--repl-backlog-size", "16mb"];

#[test]
fn a_cut_link_between_ours_goes_on_where_it_was() {
    let (primary, replica) = (ours(&BACKLOG), ours(&BACKLOG));
    let (partial, full) = cut_and_write(&primary, &replica, 3);
    assert!(partial >= 5 && full == 1, "{partial} partial, {full} full\n{}", log_of(&replica));
}

#[test]
fn a_cut_link_from_redis_goes_on_where_it_was() {
    let (primary, replica) = (redis(&BACKLOG), ours(&BACKLOG));
    let (partial, full) = cut_and_write(&primary, &replica, 4);
    assert!(partial >= 5 && full == 1, "{partial} partial, {full} full\n{}", log_of(&replica));
}

#[test]
fn a_cut_link_to_redis_goes_on_where_it_was() {
    let mut args = vec!["--rdb-version", "10"];
    args.extend(BACKLOG);
    let (primary, replica) = (ours(&args), redis(&BACKLOG));
    let (partial, full) = cut_and_write(&primary, &replica, 5);
    assert!(partial >= 5 && full == 1, "{partial} partial, {full} full\n{}", log_of(&replica));
}

#[test]
fn a_cut_full_synchronization_is_made_again() {
    let (primary, replica) = (ours(&[]), ours(&[]));
    primary.client().run("DEBUG POPULATE 20000 key 50");
    replica.client().check("SET kept 1", "+OK");
    let mut proxies = Vec::new();
    for bytes in [0, 7, 200, 4_000, 300_000] {
        let proxy = Proxy::start(primary.port()).unwrap();
        proxy.cut_after(bytes);
        link(&replica, proxy.port());
        wait_until("the link was cut", LIMIT, || {
            if proxy.accepted() > 1 { Ok(()) } else { Err((bytes, log_of(&replica))) }
        });
        proxies.push(proxy);
        // What was there stays until the new data are whole.
        if bytes < 300_000 {
            replica.client().check("REPLICAOF NO ONE", "+OK");
            replica.client().check("GET kept", "1");
        }
    }
    up(&replica);
    equal(&primary, &replica);
}

#[test]
fn chains_promotions_and_partial_resyncs_after_them() {
    let (first, second, third) = (ours(&[]), ours(&[]), ours(&[]));
    first.client().check("SET a 1", "+OK");
    follow(&second, first.port());
    follow(&third, second.port());
    let mut writer = Writer::new(&first, 6);
    writer.write(2000);
    equal(&first, &third);
    let offset = |server: &Server| server.client().info("master_repl_offset").unwrap();
    wait_until("all stand at one place", LIMIT, || {
        let all = [offset(&first), offset(&second), offset(&third)];
        if all.iter().all(|one| *one == all[0]) { Ok(()) } else { Err(all) }
    });
    // The second becomes the primary: its replica and the first go on with it.
    second.client().check("REPLICAOF NO ONE; SET b 2", "+OK; +OK");
    link(&first, second.port());
    up(&first);
    up(&third);
    second.client().check("SET c 3; WAIT 2 10000", "+OK; :2");
    equal(&second, &first);
    equal(&second, &third);
    let mut client = second.client();
    assert_eq!(client.info("sync_partial_ok").unwrap(), "2", "{}", log_of(&second));
    assert_eq!(client.info("sync_full").unwrap(), "1", "{}", log_of(&second));
    // And the third turns to the first.
    link(&third, first.port());
    up(&third);
    second.client().check("SET d 4", "+OK");
    equal(&second, &third);
    assert_eq!(first.client().info("sync_partial_ok").unwrap(), "1", "{}", log_of(&first));
}

#[test]
fn keys_end_on_a_replica_when_the_primary_says_so() {
    let (primary, replica) = (ours(&[]), ours(&[]));
    follow(&replica, primary.port());
    let (mut at_primary, mut at_replica) = (primary.client(), replica.client());
    at_primary.check("DEBUG SET-ACTIVE-EXPIRE 0; SET k v PX 20; SET stays v; WAIT 1 5000", "+OK; +OK; +OK; :1");
    wait_until("the key is hidden", LIMIT, || match at_replica.run("GET k") {
        Reply::NullBulk => Ok(()),
        other => Err(other),
    });
    at_replica.check("EXISTS k; TTL k; DBSIZE; KEYS *; TYPE k", ":0; :-2; :2; [stays]; +none");
    at_primary.check("GET k; WAIT 1 5000", "nil; :1");
    wait_until("the key is gone", LIMIT, || match at_replica.run("DBSIZE") {
        Reply::Integer(1) => Ok(()),
        other => Err(other),
    });
}

#[test]
fn writes_wait_for_replicas_as_the_directives_say() {
    let primary = ours(&["--min-replicas-to-write", "1"]);
    let mut client = primary.client();
    client.check("SET a 1", "-NOREPLICAS Not enough good replicas to write.");
    let replica = ours(&[]);
    follow(&replica, primary.port());
    wait_until("writes are taken", LIMIT, || match client.run("SET a 1").to_string().as_str() {
        "+OK" => Ok(()),
        other => Err(other.to_owned()),
    });
    client.check("WAIT 1 0; WAIT 2 30", ":1; :1");
    drop(replica);
    wait_until("writes are refused", LIMIT, || match client.run("SET a 1").to_string().as_str() {
        "+OK" => Err(()),
        _ => Ok(()),
    });
}

#[test]
fn a_replica_without_its_primary_refuses_if_told_to() {
    let primary = ours(&[]);
    let replica = ours(&["--replica-serve-stale-data", "no"]);
    primary.client().check("SET a 1", "+OK");
    follow(&replica, primary.port());
    let mut client = replica.client();
    client.check("GET a", "1");
    drop(primary);
    wait_until("the link is down", LIMIT, || match client.run("GET a").to_string().as_str() {
        "1" => Err(()),
        text => {
            assert_eq!(text, "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
            Ok(())
        }
    });
    assert!(client.run("INFO").text().contains("master_link_status:down"));
}

#[test]
fn a_primary_hands_over_to_its_replica() {
    let (primary, replica) = (ours(&[]), ours(&[]));
    follow(&replica, primary.port());
    let mut client = primary.client();
    client.check(
        "FAILOVER ABORT; SET a 1; FAILOVER TO 127.0.0.1 1",
        "-ERR No failover in progress.; +OK; -ERR FAILOVER target HOST and PORT is not a replica.",
    );
    client.check(&format!("FAILOVER TO 127.0.0.1 {} TIMEOUT 10000", replica.port()), "+OK");
    let role = |server: &Server| server.client().info("role").unwrap();
    wait_until("the roles are exchanged", LIMIT, || {
        let roles = (role(&primary), role(&replica));
        if roles == ("slave".into(), "master".into()) { Ok(()) } else { Err(roles) }
    });
    up(&primary);
    replica.client().check("GET a; SET b 2; WAIT 1 5000", "1; +OK; :1");
    equal(&replica, &primary);
    assert_eq!(client.info("master_failover_state").unwrap(), "no-failover");
    assert_eq!(replica.client().info("sync_full").unwrap(), "0", "{}", log_of(&replica));
}

#[test]
fn both_sides_survive_a_restart_with_a_partial_resync() {
    let directory = tempfile::tempdir().unwrap();
    let primary = ours(&[]);
    primary.client().check("SET a 1", "+OK");
    let launch = testkit::replicas::launch_ours(&["--save", "900 1"]).directory(directory.path());
    let mut replica = launch.start();
    follow(&replica, primary.port());
    primary.client().check("SET b 1; WAIT 1 5000", "+OK; :1");
    replica.stop(testkit::process::Signal::Terminate).unwrap();
    primary.client().check("SET c 1", "+OK");
    let port = primary.port().to_string();
    let replica = launch.args(&["--replicaof", &format!("127.0.0.1 {port}")]).start();
    up(&replica);
    replica.client().check("GET a; GET b", "1; 1");
    equal(&primary, &replica);
    assert_eq!(primary.client().info("sync_partial_ok").unwrap(), "1", "{}", log_of(&replica));
}

#[test]
fn the_client_fetches_snapshots_and_shows_the_stream() {
    use std::process::{Command, Stdio};
    for primary in [ours(&["--rdb-version", "10"]), redis(&[])] {
        let directory = tempfile::tempdir().unwrap();
        let mut client = primary.client();
        client.check("SET a 1; LPUSH l x", "+OK; :1");
        let run = |args: &[&str]| {
            let mut command = Command::new(testkit::binary::oxidis());
            command.args(["cli", "-p", &primary.port().to_string()]).args(args);
            command
        };
        let path = directory.path().join("fetched.rdb");
        let fetched = run(&["--rdb", path.to_str().unwrap()]).output().unwrap();
        assert!(fetched.status.success(), "{fetched:?}");
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(b"REDIS0010"), "{}", bytes.escape_ascii());
        assert!(bytes.windows(3).any(|part| part == b"\x01a\xc0"), "{}", bytes.escape_ascii());
        let functions = run(&["--functions-rdb", "-"]).output().unwrap();
        assert!(functions.status.success(), "{functions:?}");
        assert!(functions.stdout.starts_with(b"REDIS0010"));
        assert!(!functions.stdout.windows(3).any(|part| part == b"\x01a\xc0"));
        let mut shown = run(&["--replica"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the client follows", LIMIT, || match client.info("slave0") {
            Some(line) if line.contains("state=online") => Ok(()),
            other => Err(other),
        });
        client.check("SET seen yes", "+OK");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(shown.stdout.take().unwrap()));
        let found = lines.any(|line| line.is_ok_and(|line| line.contains("\"seen\",\"yes\"")));
        shown.kill().unwrap();
        shown.wait().unwrap();
        assert!(found);
    }
}

#[test]
fn the_link_to_the_primary_is_a_client_that_can_be_killed() {
    let (primary, replica) = (ours(&[]), ours(&[]));
    follow(&replica, primary.port());
    let mut client = replica.client();
    let list = client.run("CLIENT LIST TYPE master").text();
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains(&format!(" addr=127.0.0.1:{} ", primary.port())), "{list}");
    assert!(list.contains(" flags=M ") && list.contains(" user=(superuser) "), "{list}");
    assert_eq!(client.run("CLIENT LIST").text().lines().count(), 2);
    client.check("CLIENT KILL TYPE master", ":1");
    wait_until("the link is made again", LIMIT, || {
        let resynced = primary.client().info("sync_partial_ok");
        if resynced.as_deref() == Some("1") { Ok(()) } else { Err(resynced) }
    });
    up(&replica);
    primary.client().check("SET a 1; WAIT 1 5000", "+OK; :1");
}

#[test]
fn waitaof_counts_the_logs_of_replicas_and_wakes_when_they_are_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let primary = testkit::replicas::launch_ours(&["--appendonly", "yes"]).directory(directory.path()).start();
    let (with, without) = (ours(&["--appendonly", "yes"]), ours(&[]));
    follow(&with, primary.port());
    follow(&without, primary.port());
    let mut client = primary.client();
    // The replica's log begins with a base that is still being written.
    wait_until("the replica's log", LIMIT, || match with.client().info("aof_rewrite_in_progress").as_deref() {
        Some("0") => Ok(()),
        other => Err(other.map(str::to_owned)),
    });
    client.check("SET a 1; WAITAOF 1 1 10000", "+OK; [:1 :1]");
    client.check("SET b 1", "+OK");
    let there = client.run("WAITAOF 0 1 10000").to_string();
    assert!(there.ends_with(" :1]"), "{there}");
    let turns = |client: &mut Client| client.info("eventloop_cycles").unwrap().parse::<u64>().unwrap();
    // Whoever waits is parked: the loop does not run hot for it.
    let mut waiting = primary.client();
    // Of who has written nothing, all is in every log.
    waiting.check("WAITAOF 0 2 600", "[:1 :2]");
    waiting.check("SET w 1", "+OK");
    let before = turns(&mut client);
    waiting.send(&["WAITAOF", "0", "2", "3000"]).unwrap();
    assert_eq!(waiting.read().unwrap().to_string(), "[:1 :1]");
    let used = turns(&mut client) - before;
    assert!(used < 2_000, "{used} turns");
    client.check("MULTI; SET c 1; WAITAOF 0 1 0; EXEC", "+OK; +QUEUED; +QUEUED; [+OK [...");
    with.client().check("WAITAOF 0 0 0", "-ERR WAITAOF cannot be used with replica instances...");
}
