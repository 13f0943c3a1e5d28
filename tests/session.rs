//! Commands of session and server: CLIENT, CONFIG, INFO, SLOWLOG, LATENCY, MEMORY, MONITOR, DEBUG; beside Debian's
//! redis-server 7.0 where both have an opinion.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use testkit::{Client, Server, text, wait_until};

const LIMIT: Duration = Duration::from_secs(10);

fn server() -> Server {
    Server::oxidis(&["--io-threads", "3", "--maxclients", "500", "--enable-debug-command", "yes"])
}

/// Clients enough that the kernel has given some to each worker.
fn crowd(server: &Server) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..40).map(|_| server.client()).collect();
    // A connection may stand before it is accepted.
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG"));
    clients
}

fn id(client: &mut Client) -> i64 {
    client.run("CLIENT ID").integer().unwrap()
}

/// A field of a line of CLIENT LIST.
fn field(line: &str, name: &str) -> String {
    let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {name} in {line}")).trim_end().to_owned()
}

#[test]
fn lists_hold_the_clients_of_all_workers() {
    let server = server();
    let mut clients = crowd(&server);
    let ids: Vec<i64> = clients.iter_mut().map(id).collect();
    let (watcher, rest) = clients.split_first_mut().unwrap();
    watcher.check("CLIENT SETNAME watcher", "+OK");
    rest[0].run("SUBSCRIBE channel");
    rest[1].run("MULTI");
    let listed = watcher.run("CLIENT LIST").text();
    let lines: Vec<&str> = listed.lines().collect();
    let listed_ids: Vec<i64> = lines.iter().map(|line| field(line, "id").parse().unwrap()).collect();
    assert!(listed_ids.is_sorted(), "{listed}");
    let values = |id: i64, names: [&str; 2]| {
        let line = lines[listed_ids.binary_search(&id).unwrap()];
        names.map(|name| field(line, name))
    };
    assert_eq!(values(ids[0], ["name", "cmd"]), ["watcher", "client|list"]);
    assert_eq!(values(ids[1], ["flags", "sub"]), ["P", "1"]);
    assert_eq!(values(ids[2], ["flags", "multi"]), ["x", "0"]);
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(listed_ids, sorted);
    assert_eq!(watcher.run("CLIENT LIST TYPE pubsub").text().lines().count(), 1);
    assert_eq!(watcher.run(&format!("CLIENT LIST ID {} {} 99999", ids[5], ids[3])).text().lines().count(), 2);
    assert_eq!(watcher.run("CLIENT INFO").text().lines().count(), 1);
    assert_eq!(field(&watcher.run("CLIENT INFO").text(), "id"), ids[0].to_string());
    // Nothing is left behind for a client that comes to the same place.
    assert_eq!(watcher.run("CLIENT LIST").text().lines().count(), ids.len());
}

#[test]
fn lines_have_redis_fields() {
    let server = server();
    let redis = Server::redis(&[]);
    let names = |server: &Server| -> Vec<String> {
        let line = server.client().run("CLIENT INFO").text();
        line.trim_end().split(' ').map(|word| word.split('=').next().unwrap().to_owned()).collect()
    };
    let mut expected = names(&redis);
    expected.extend(["lib-name".to_owned(), "lib-ver".to_owned()]);
    assert_eq!(names(&server), expected);
}

#[test]
fn kills_reach_every_worker() {
    let server = server();
    let mut clients = crowd(&server);
    let ids: Vec<i64> = clients.iter_mut().map(id).collect();
    let mut admin = server.client();
    for (client, id) in clients.iter_mut().zip(&ids).take(10) {
        admin.check(&format!("CLIENT KILL ID {id}"), ":1");
        assert!(client.closes_within(LIMIT));
    }
    let line = admin.run(&format!("CLIENT LIST ID {}", ids[10])).text();
    admin.check(&format!("CLIENT KILL {}", field(&line, "addr")), "+OK");
    assert!(clients[10].closes_within(LIMIT));
    admin.check("CLIENT KILL 1.1.1.1:1", "-ERR No such client");
    clients[11].run("SUBSCRIBE c");
    admin.check("CLIENT KILL TYPE pubsub", ":1");
    assert!(clients[11].closes_within(LIMIT));
    admin.check("CLIENT KILL TYPE normal SKIPME yes", ":28");
    assert!(clients.iter_mut().skip(12).all(|client| client.closes_within(LIMIT)));
    wait_until("the clients are gone", LIMIT, || match admin.info("connected_clients") {
        Some(count) if count == "1" => Ok(()),
        other => Err(other),
    });
    admin.check("CLIENT KILL TYPE normal SKIPME no", ":1");
    assert!(admin.closes_within(LIMIT));
}

#[test]
fn blocked_clients_are_unblocked() {
    let server = server();
    let mut admin = server.client();
    for mut client in crowd(&server).into_iter().take(12) {
        let id = id(&mut client);
        client.send(&text::words("BLPOP list 0")).unwrap();
        wait_until("the client is blocked", LIMIT, || match admin.info("blocked_clients") {
            Some(count) if count == "1" => Ok(()),
            other => Err(other),
        });
        assert_eq!(admin.info("total_blocking_keys").as_deref(), Some("1"));
        admin.check(&format!("CLIENT UNBLOCK {id} ERROR"), ":1");
        assert_eq!(client.read().unwrap().to_string(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
        admin.check(&format!("CLIENT UNBLOCK {id}"), ":0");
        client.check("PING", "+PONG");
    }
    admin.check("CLIENT UNBLOCK 99999", ":0");
}

#[test]
fn a_transaction_may_ask_for_clients() {
    let server = server();
    let _others = crowd(&server);
    let mut client = server.client();
    client.check("MULTI; CLIENT LIST; SET a 1; CLIENT KILL TYPE pubsub", "+OK; +QUEUED; +QUEUED; +QUEUED");
    let replies = client.run("EXEC");
    let replies = replies.items().unwrap();
    assert_eq!(replies[0].text().lines().count(), 41);
    assert_eq!(replies[1].to_string(), "+OK");
    assert_eq!(replies[2].integer(), Some(0));
}

#[test]
fn replies_can_be_switched_off() {
    let server = server();
    let mut client = server.client();
    for command in ["CLIENT REPLY OFF", "SET a 1", "GET a", "CLIENT REPLY SKIP"] {
        client.send(&text::words(command)).unwrap();
    }
    client.check("CLIENT REPLY ON", "+OK");
    client.send(&text::words("CLIENT REPLY SKIP")).unwrap();
    client.send(&text::words("SET a 2")).unwrap();
    client.check("GET a", "2");
}

#[test]
fn a_pause_holds_writes_back() {
    let server = server();
    let (mut admin, mut client) = (server.client(), server.client());
    admin.check("SET a 1; CLIENT PAUSE 60000 WRITE", "+OK; +OK");
    client.check("GET a", "1");
    client.send(&text::words("SET a 2")).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    admin.check("GET a; CLIENT UNPAUSE", "1; +OK");
    assert_eq!(client.read().unwrap().to_string(), "+OK");
    client.check("GET a", "2");
}

#[test]
fn configuration_acts_on_the_running_server() {
    let server = server();
    let mut admin = server.client();
    let mut early = server.client();
    // The port.
    let port = testkit::server::free_port().unwrap();
    admin.check(&format!("CONFIG SET port {port}"), "+OK");
    let mut moved: Vec<Client> = (0..20).map(|_| Client::connect(port).unwrap()).collect();
    moved.iter_mut().for_each(|client| client.check("PING", "+PONG"));
    wait_until("the old port is closed", LIMIT, || {
        match Client::connect(server.port()).and_then(|mut client| client.call(&["PING"])) {
            Err(_) => Ok(()),
            Ok(reply) => Err(reply),
        }
    });
    early.check("PING", "+PONG");
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let refused = admin.run(&format!("CONFIG SET port {}", taken.local_addr().unwrap().port()));
    assert_eq!(
        refused.to_string(),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs."
    );
    admin.check("CONFIG GET port", &format!("[port {port}]"));
    Client::connect(port).unwrap().check("PING", "+PONG");
    // The password: for new clients.
    admin.check("CONFIG SET requirepass secret", "+OK");
    Client::connect(port)
        .unwrap()
        .check("GET a; AUTH wrong; AUTH secret; GET a", "-NOAUTH...; -WRONGPASS...; +OK; nil");
    admin.check("GET a; CONFIG SET requirepass ''", "nil; +OK");
    // The number of clients.
    let now: i64 = admin.info("connected_clients").unwrap().parse().unwrap();
    admin.check(&format!("CONFIG SET maxclients {now}"), "+OK");
    let mut refused = Client::connect(port).unwrap();
    assert_eq!(refused.read().unwrap().to_string(), "-ERR max number of clients reached");
    admin.check("CONFIG SET maxclients 500", "+OK");
    // Several at once, or none.
    admin.check("CONFIG SET hz 50 timeout abc", "-ERR CONFIG SET failed (possibly related to argument 'timeout')...");
    admin.check("CONFIG GET hz; CONFIG SET hz 50 timeout 1000; CONFIG GET hz", "[hz 10]; +OK; [hz 50]");
    // Thresholds of encodings.
    admin.check("CONFIG SET hash-max-listpack-entries 1; HSET h a 1 b 2; OBJECT ENCODING h", "+OK; :2; hashtable");
}

#[test]
fn statistics_are_set_back() {
    let server = server();
    let mut client = server.client();
    client
        .check("SET a 1; GET a; GET b; NOSUCH; GET a b", "+OK; 1; nil; -ERR unknown command...; -ERR wrong number...");
    assert_eq!(client.info("keyspace_hits").as_deref(), Some("1"));
    assert_eq!(client.info("keyspace_misses").as_deref(), Some("1"));
    assert_eq!(client.info("errorstat_ERR").as_deref(), Some("count=2"));
    assert!(client.info("cmdstat_get").unwrap().starts_with("calls=2,"));
    assert!(client.info("cmdstat_get").unwrap().ends_with("rejected_calls=1,failed_calls=0"));
    assert!(client.info("latency_percentiles_usec_get").unwrap().starts_with("p50="));
    client.check("CONFIG RESETSTAT", "+OK");
    assert_eq!(client.info("keyspace_hits").as_deref(), Some("0"));
    assert_eq!(client.info("errorstat_ERR"), None);
    assert_eq!(client.info("cmdstat_get"), None);
    wait_until("only this client is left", LIMIT, || match client.info("connected_clients") {
        Some(count) if count == "1" => Ok(()),
        other => Err(other),
    });
}

/// Names of INFO's fields and titles of its sections, in order.
fn fields(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.starts_with("cmdstat_") && !line.starts_with("latency_percentiles"));
    lines.map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn info_has_all_of_redis_fields() {
    let server = server();
    let redis = Server::redis(&[]);
    // Who waits for a server to answer may have met it while it loads, which counts as an error.
    let asked = |client: &mut Client| {
        client.check("CONFIG RESETSTAT", "+OK");
        fields(&client.run("INFO everything").text())
    };
    let (ours, theirs) = (asked(&mut server.client()), asked(&mut redis.client()));
    let (in_ours, in_theirs): (BTreeSet<_>, BTreeSet<_>) =
        (ours.iter().cloned().collect(), theirs.iter().cloned().collect());
    let missing: Vec<_> = in_theirs.difference(&in_ours).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // 7.2 has these and 7.0 does not; those named after us are ours, and what is known of keys.
    let added: Vec<&str> = in_ours.difference(&in_theirs).map(String::as_str).collect();
    assert_eq!(
        added,
        [
            "# Keystats",
            "acl_access_denied_auth",
            "acl_access_denied_channel",
            "acl_access_denied_cmd",
            "acl_access_denied_key",
            "eventloop_cycles",
            "eventloop_duration_cmd_sum",
            "eventloop_duration_sum",
            "expired_subkeys",
            "instantaneous_eventloop_cycles_per_sec",
            "instantaneous_eventloop_duration_usec",
            "listener0",
            "oxidis_panics",
            "oxidis_version",
            "oxidis_workers",
            "total_blocking_keys",
            "total_blocking_keys_on_nokey",
        ]
    );
    let ours: Vec<&String> = ours.iter().filter(|name| in_theirs.contains(*name)).collect();
    let theirs: Vec<&String> = theirs.iter().collect();
    assert_eq!(ours, theirs, "the order differs");
}

#[test]
fn info_answers_for_the_sections_that_are_asked_for() {
    let server = server();
    let mut client = server.client();
    let sections = |client: &mut Client, command: &str| -> Vec<String> {
        client.run(command).text().lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
    };
    assert_eq!(sections(&mut client, "INFO clients CPU"), ["Clients", "CPU"]);
    assert_eq!(sections(&mut client, "INFO nosuch"), [""; 0]);
    assert!(!sections(&mut client, "INFO").contains(&"Commandstats".to_owned()));
    assert!(sections(&mut client, "INFO all").contains(&"Latencystats".to_owned()));
    assert_eq!(sections(&mut client, "INFO"), sections(&mut client, "INFO default"));
    client.check("SELECT 3; SET a 1 EX 100; SET b 1; SELECT 0", "+OK; +OK; +OK; +OK");
    wait_until("the time to live is surveyed", LIMIT, || match client.info("db3") {
        Some(line) if line.starts_with("keys=2,expires=1,avg_ttl=9") => Ok(()),
        other => Err(other),
    });
}

#[test]
fn memory_is_told_truly() {
    let server = server();
    let mut client = server.client();
    let number = |client: &mut Client, field: &str| -> i64 { client.info(field).unwrap().parse().unwrap() };
    let before = number(&mut client, "used_memory");
    client.check("DEBUG POPULATE 1000 key 10000", "+OK");
    let after = number(&mut client, "used_memory");
    assert!((10_000_000..16_000_000).contains(&(after - before)), "{before} {after}");
    assert!(number(&mut client, "used_memory_peak") >= after);
    wait_until("the process grew", LIMIT, || match number(&mut client, "used_memory_rss") {
        rss if rss > 10_000_000 => Ok(()),
        rss => Err(rss),
    });
    assert!(number(&mut client, "used_memory_dataset") > 9_000_000);
    let stats = client.run("MEMORY STATS").items().unwrap().len();
    assert_eq!(stats, 2 * 28);
    client.check("MEMORY PURGE; FLUSHALL; DBSIZE", "+OK; +OK; :0");
    wait_until("memory is given back", LIMIT, || {
        let now = number(&mut client, "used_memory");
        if now - before < 1_000_000 { Ok(()) } else { Err(now - before) }
    });
}

#[test]
fn slow_commands_are_kept() {
    let server = server();
    let mut client = server.client();
    client.check("CLIENT SETNAME slow; CONFIG SET slowlog-log-slower-than 10000", "+OK; +OK");
    client.check("SLOWLOG RESET; DEBUG SLEEP 0.05; SLOWLOG LEN", "+OK; +OK; :1");
    let entries = client.run("SLOWLOG GET");
    let entry = entries.items().unwrap()[0].items().unwrap();
    assert_eq!(entry[3].to_string(), "[DEBUG SLEEP 0.05]");
    assert!(entry[2].integer().unwrap() >= 50_000);
    assert_eq!(entry[5].text(), "slow");
    client.check("CONFIG SET latency-monitor-threshold 10; DEBUG SLEEP 0.05", "+OK; +OK");
    let latest = client.run("LATENCY LATEST");
    let event = latest.items().unwrap()[0].items().unwrap();
    assert_eq!(event[0].text(), "command");
    assert!(event[2].integer().unwrap() >= 50);
    assert!(client.run("LATENCY GRAPH command").text().starts_with("command - high "));
    assert!(client.run("LATENCY DOCTOR").text().contains("command"));
    client.check("LATENCY RESET; LATENCY HISTORY command", ":1; []");
    assert!(client.run("LATENCY HISTOGRAM debug").to_string().contains("calls"));
}

#[test]
fn monitors_see_what_others_do() {
    let server = server();
    let others = crowd(&server);
    let mut monitor = server.client();
    monitor.check("MONITOR", "+OK");
    for (number, mut client) in others.into_iter().enumerate().take(8) {
        client.check(&format!("SET key {number}"), "+OK");
        let line = monitor.read().unwrap().to_string();
        assert!(line.contains(&format!(r#"\"SET\" \"key\" \"{number}\""#)), "{line}");
        assert!(line.contains("[0 127.0.0.1:"), "{line}");
    }
    // Administration and secrets are not shown.
    server.client().check("CONFIG GET port; AUTH default secret; ECHO end", "[port ...; +OK; end");
    let line = monitor.read().unwrap().to_string();
    assert!(line.contains("AUTH") && line.contains("(redacted)") && !line.contains("secret"), "{line}");
    assert!(monitor.read().unwrap().to_string().contains("ECHO"));
    monitor.check("RESET", "+RESET");
    server.client().check("SET key x", "+OK");
    monitor.check("PING", "+PONG");
}

#[test]
fn a_sleep_stops_everybody() {
    let server = server();
    let mut clients = crowd(&server);
    let mut sleeper = server.client();
    let started = Instant::now();
    sleeper.send(&text::words("DEBUG SLEEP 0.3")).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG"));
    assert!(started.elapsed() >= Duration::from_millis(290), "{:?}", started.elapsed());
    assert_eq!(sleeper.read().unwrap().to_string(), "+OK");
    sleeper.check("PING", "+PONG");
}

#[test]
fn debug_needs_leave() {
    let mut closed = Server::oxidis(&["--enable-debug-command", "no"]);
    closed.client().check(
        "DEBUG SLEEP 0",
        "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\"...",
    );
    closed.stop(testkit::process::Signal::Terminate).unwrap();
    let server = Server::oxidis(&["--enable-debug-command", "local"]);
    server.client().check("DEBUG SLEEP 0", "+OK");
}

#[test]
fn shutdown_ends_the_process() {
    let mut server = server();
    let mut client = server.client();
    client.check("SHUTDOWN ABORT; SHUTDOWN NOW ABORT", "-ERR No shutdown in progress.; -ERR syntax error");
    client.send(&text::words("SHUTDOWN NOSAVE")).unwrap();
    assert!(client.closes_within(LIMIT));
    let status = wait_until("the process ends", LIMIT, || server.exit_status().ok_or("running"));
    assert!(status.success());
}

#[test]
fn replies_are_those_of_redis() {
    let ours = server();
    let theirs = Server::redis(&["--enable-debug-command", "yes"]);
    let commands = [
        "CLIENT ID x",
        "CLIENT SETNAME 'a b'",
        "CLIENT GETNAME",
        "CLIENT LIST TYPE x",
        "CLIENT LIST ID x",
        "CLIENT LIST x",
        "CLIENT KILL ID 0",
        "CLIENT KILL TYPE x",
        "CLIENT KILL USER x",
        "CLIENT KILL SKIPME x",
        "CLIENT KILL ID",
        "CLIENT UNBLOCK x",
        "CLIENT UNBLOCK 1 x",
        "CLIENT PAUSE x",
        "CLIENT PAUSE -1",
        "CLIENT PAUSE 1 x",
        "CLIENT NO-EVICT x",
        "CLIENT REPLY x",
        "CLIENT GETREDIR",
        "CLIENT TRACKINGINFO",
        "CLIENT CACHING yes",
        "CLIENT X",
        "CONFIG SET maxmemory 1 x 2",
        "CONFIG SET maxmemory",
        "CONFIG SET port x",
        "CONFIG SET databases 3",
        "CONFIG REWRITE",
        "CONFIG X",
        "SLOWLOG GET x",
        "SLOWLOG GET -2",
        "LATENCY HISTORY x",
        "LATENCY GRAPH x",
        "LATENCY X",
        "MEMORY X",
        "ROLE",
        "WAIT 0 -1",
        "WAIT 0 x",
        "REPLICAOF h 99999",
        "SHUTDOWN x",
        "SHUTDOWN SAVE NOSAVE",
        "ACL WHOAMI",
        "ACL CAT x",
        "ACL GENPASS 0",
        "ACL LOG",
        "CLUSTER INFO",
        "READONLY",
        "FAILOVER",
        "COMMAND GETKEYS mset a 1 b 2",
        "COMMAND GETKEYSANDFLAGS set a b",
        "DEBUG X",
        "DEBUG PROTOCOL string",
        "DEBUG PROTOCOL integer",
        "DEBUG PROTOCOL double",
        "DEBUG PROTOCOL bignum",
        "DEBUG PROTOCOL null",
        "DEBUG PROTOCOL array",
        "DEBUG PROTOCOL set",
        "DEBUG PROTOCOL map",
        "DEBUG PROTOCOL true",
        "DEBUG PROTOCOL verbatim",
        "DEBUG PROTOCOL x",
        "DEBUG ERROR 'MYERR x'",
        "DEBUG OBJECT x",
        "SET k v",
        "RPUSH l a b c",
        "HSET h a 1 b 2",
        "ZADD z 1 a 2.5 b",
        "SADD s 1 2 x",
        "DEBUG DIGEST",
        "DEBUG DIGEST-VALUE k l h z s x",
        "DEBUG LISTPACK k",
        "DEBUG POPULATE 100 p 20",
        "DEBUG DIGEST",
        "DBSIZE",
        "LOLWUT VERSION x",
        "INFO x",
        "BGSAVE x",
        "MULTI",
        "MONITOR",
        "DBSIZE",
        "SHUTDOWN",
        "DISCARD",
    ];
    for version in [2, 3] {
        let (mut ours, mut theirs) = (ours.client(), theirs.client());
        ours.hello(version);
        theirs.hello(version);
        for command in commands {
            assert_eq!(ours.run(command).to_string(), theirs.run(command).to_string(), "{command} with RESP{version}");
        }
        ours.check("FLUSHALL", "+OK");
        theirs.check("FLUSHALL", "+OK");
    }
}
