//! The API over a real socket, with a store in a file, and servers that are played by a few lines.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::routes::{Needs, ROUTES};
use crate::app::App;
use crate::auth::{Role, Tokens};
use crate::command::Options;
use crate::events::EventLog;
use crate::shapes::Settings;
use crate::store::Store;
use crate::wire::{Login, Wire};

const TOKENS: &str = "admin alice admin-token-0123456\noperator olga operator-token-0123\n\
                      viewer bob viewer-token-01234567\nmember all member-token-01234567\n";

/// A manager that leads, and its folder.
struct Manager {
    app: Arc<App>,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.app.stop.send_replace(true);
    }
}

impl Manager {
    async fn start(tokens: Tokens) -> Manager {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}");
        let options = Options {
            listen: vec![address],
            url: url.clone(),
            managers: vec![url.clone()],
            tokens: Tokens::default(),
            token_file: None,
            folder: folder.path().to_owned(),
            etcd: Vec::new(),
            cluster: "test".into(),
            slot_space: topology::SlotSpace::Redis,
            lease_ms: None,
            login: Login::default(),
            settings: Settings { moves_per_group: Some(2), move_rate: Some(0), freeze_ms: Some(500) },
        };
        let store = Store::open(&options).await.unwrap();
        let (log, _) = EventLog::open(folder.path()).unwrap();
        let wire = Wire::new(Login::default());
        let app = Arc::new(App::new(&url, vec![url.clone()], tokens, &options.settings, store, log, wire));
        tokio::spawn(crate::store::follow(app.clone()));
        tokio::spawn(crate::events::ship(app.clone()));
        tokio::spawn(crate::driver::drive(app.clone()));
        let service = super::router(&app).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        let mut published = app.store.watch();
        while !published.borrow_and_update().leads() {
            published.changed().await.unwrap();
        }
        Manager { app, address, _folder: folder }
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.send_with(method, path, body, &[]).await
    }

    /// Sends a request as it stands, with headers of one's own: the status and the body.
    async fn send_with(&self, method: &str, path: &str, body: Option<Value>, headers: &[&str]) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        if !body.is_empty() {
            let has_kind = headers.iter().any(|header| header.starts_with("Content-Type:"));
            if !has_kind {
                text.push_str("Content-Type: application/json\r\n");
            }
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str(&format!("\r\n{body}"));
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.send("POST", path, Some(body)).await;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body
    }

    /// Renews the lease of a server.
    async fn renew(&self, id: &str, address: &str, run: &str, epoch: u64, wait_ms: u64) -> (u16, Value) {
        let term = if epoch == 0 { 0 } else { self.app.store.term() };
        let body = json!({ "kind": "server", "run": run, "term": term, "epoch": epoch, "address": address,
                           "wait_ms": wait_ms, "status": { "keys": 5, "ops": 1.5 } });
        self.send("POST", &format!("/api/v1/members/{id}/lease"), Some(body)).await
    }
}

/// A server that is played: answers what a server would say, and remembers what it was told.
#[derive(Clone)]
struct Player {
    address: String,
    told: Arc<Mutex<Vec<String>>>,
    /// Answers that are not the usual ones, by the start of the command.
    answers: Arc<Mutex<HashMap<String, String>>>,
}

impl Player {
    async fn start() -> Player {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let player = Player {
            address: listener.local_addr().unwrap().to_string(),
            told: Arc::default(),
            answers: Arc::default(),
        };
        let own = player.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().talk(stream));
            }
        });
        player
    }

    fn answer(&self, command: &str, reply: &str) {
        self.answers.lock().unwrap().insert(command.into(), reply.into());
    }

    fn has_answer(&self, command: &str) -> bool {
        self.answers.lock().unwrap().contains_key(command)
    }

    fn was_told(&self, command: &str) -> bool {
        self.told.lock().unwrap().iter().any(|told| told.starts_with(command))
    }

    async fn talk(self, mut stream: TcpStream) {
        let mut bytes = Vec::with_capacity(1 << 16);
        while stream.read_buf(&mut bytes).await.unwrap_or(0) > 0 {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            // Requests here are small, and come whole.
            let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
            let command = words.join(" ").trim().to_owned();
            bytes.clear();
            let reply = self.reply(&command);
            self.told.lock().unwrap().push(command);
            if stream.write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn reply(&self, command: &str) -> String {
        if command.starts_with("OXIDIS MOVE START") && !self.has_answer("OXIDIS MOVE STATUS") {
            self.answer("OXIDIS MOVE STATUS", &copy_status("copying", 0));
        }
        let own = self.answers.lock().unwrap();
        if let Some(reply) = own.iter().find(|(start, _)| command.starts_with(start.as_str())) {
            return reply.1.clone();
        }
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        match command {
            "OXIDIS VIEW" => "-ERR this server is no member of a cluster: use OXIDIS JOIN first\r\n".into(),
            "INFO replication" => bulk("role:master\r\n"),
            "INFO keyspace" => bulk("# Keyspace\r\n"),
            "CONFIG GET slot-space" => format!("*2\r\n{}{}", bulk("slot-space"), bulk("redis")),
            "OXIDIS SLOTS STATS" => bulk("[]"),
            command if command.starts_with("OXIDIS MOVE STATUS") => "-ERR this server knows no move\r\n".into(),
            _ => "+OK\r\n".into(),
        }
    }
}

/// A manager with two groups of a played server each, which own half of the slots.
async fn cluster() -> (Manager, [Player; 2], [String; 2]) {
    let manager = Manager::start(Tokens::default()).await;
    let players = [Player::start().await, Player::start().await];
    let mut ids = Vec::new();
    for (index, player) in players.iter().enumerate() {
        manager.post("/api/v1/groups", json!({})).await;
        let path = format!("/api/v1/groups/{}/servers", index + 1);
        let server = manager.post(&path, json!({ "address": player.address })).await;
        ids.push(server["id"].as_str().unwrap().to_owned());
    }
    let assigned = manager.post("/api/v1/slots/assign", json!({ "slots": "all" })).await;
    assert_eq!(assigned["assigned"], 16384);
    (manager, players, ids.try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_put_together() {
    let (manager, players, ids) = cluster().await;
    assert!(players[0].was_told(&format!("OXIDIS JOIN {} http://127.0.0.1:", ids[0])));
    let replica = Player::start().await;
    let added = manager.post("/api/v1/groups/1/servers", json!({ "address": replica.address, "zone": "b" })).await;
    assert_eq!((&added["role"], &added["zone"]), (&json!("replica"), &json!("b")));
    let port = players[0].address.rsplit_once(':').unwrap().1;
    assert!(replica.was_told(&format!("REPLICAOF 127.0.0.1 {port}")));
    let topology = manager.get("/api/v1/topology").await;
    assert_eq!(topology["groups"][0]["slots"], json!([[0, 8191]]));
    assert_eq!(topology["groups"][0]["servers"].as_array().unwrap().len(), 2);
    assert_eq!((&topology["is_leader"], &topology["unassigned"]), (&json!(true), &json!([])));
    let slots = manager.get("/api/v1/slots").await;
    assert_eq!(slots[1], json!({ "from": 8192, "to": 16383, "group": 2, "moving_to": null, "move_id": null }));
    // What is owned goes nowhere unmoved, and a primary stays while it has replicas.
    let (status, body) = manager.send("DELETE", "/api/v1/groups/1", None).await;
    assert_eq!(status, 409, "{body}");
    let (status, body) = manager.send("DELETE", &format!("/api/v1/groups/1/servers/{}", ids[0]), None).await;
    assert_eq!(status, 409, "{body}");
    let path = format!("/api/v1/groups/1/servers/{}", replica.address);
    assert_eq!(manager.send("DELETE", &path, None).await.0, 200);
    for _ in 0..500 {
        if replica.was_told("REPLICAOF NO ONE") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(replica.was_told("OXIDIS LEAVE") && replica.was_told("REPLICAOF NO ONE"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_looked_at_before_they_are_taken() {
    let manager = Manager::start(Tokens::default()).await;
    manager.post("/api/v1/groups", json!({})).await;
    let player = Player::start().await;
    let add = async |body: Value| manager.send("POST", "/api/v1/groups/1/servers", Some(body)).await;
    player.answer("OXIDIS VIEW", "-ERR unknown command 'OXIDIS'\r\n");
    let (status, body) = add(json!({ "address": player.address })).await;
    assert!(status == 409 && body["error"].as_str().unwrap().contains("is no oxidis server"), "{body}");
    let view = r#"{"member":"other"}"#;
    player.answer("OXIDIS VIEW", &format!("${}\r\n{view}\r\n", view.len()));
    assert!(
        add(json!({ "address": player.address, "force": true })).await.1["hint"].as_str().unwrap().contains("LEAVE")
    );
    player.answers.lock().unwrap().clear();
    player.answer("INFO keyspace", "$21\r\ndb0:keys=3,expires=0,\r\n");
    let (status, body) = add(json!({ "address": player.address })).await;
    assert!(status == 409 && body["error"].as_str().unwrap().contains("holds 3 keys"), "{body}");
    player.answer("OXIDIS JOIN", "-ERR the file cannot be written\r\n");
    let (status, body) = add(json!({ "address": player.address, "force": true })).await;
    assert!(status == 502 && body["hint"] == "it was not added", "{status} {body}");
    assert_eq!(manager.get("/api/v1/servers").await, json!([]));
    let (status, body) = add(json!({ "address": "127.0.0.1:1" })).await;
    assert!(status == 502 && body["error"].as_str().unwrap().contains("no server answers"), "{body}");
    let (status, body) = add(json!({ "adress": "127.0.0.1:1" })).await;
    assert!(status == 400 && body["error"].as_str().unwrap().contains("unknown field `adress`"), "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_bring_views_at_once() {
    let (manager, players, ids) = cluster().await;
    let (status, reply) = manager.renew(&ids[0], &players[0].address, &"a".repeat(40), 0, 0).await;
    assert_eq!((status, &reply["lease_ms"]), (200, &json!(3000)));
    let epoch = reply["view"]["epoch"].as_u64().unwrap();
    assert_eq!(reply["view"]["groups"][0]["servers"][0]["id"], json!(ids[0]));
    // Nothing new: held, and then without a view.
    let (_, reply) = manager.renew(&ids[0], &players[0].address, &"a".repeat(40), epoch, 50).await;
    assert_eq!((&reply["view"], &reply["epoch"]), (&Value::Null, &json!(epoch)));
    // Something new comes at once.
    let run = "a".repeat(40);
    let (held, _) = tokio::join!(manager.renew(&ids[0], &players[0].address, &run, epoch, 1_400), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        manager.post("/api/v1/groups", json!({ "id": 9 })).await
    });
    assert_eq!(held.1["view"]["groups"][2]["id"], 9, "{held:?}");
    let topology = manager.get("/api/v1/topology").await;
    let status = &topology["groups"][0]["servers"][0]["status"];
    assert_eq!((&status["state"], &status["facts"]["keys"]), (&json!("up"), &json!(5)));
    assert_eq!(topology["groups"][1]["servers"][0]["status"]["state"], "unknown");
    assert_eq!(manager.renew("nobody", "h:1", &"a".repeat(40), 0, 0).await.0, 404);
    let metrics = manager.get("/metrics").await;
    let metrics = metrics.as_str().unwrap();
    assert!(
        metrics.contains(&format!("redis_up{{addr=\"{}\",group=\"1\",role=\"primary\"}} 1", players[0].address)),
        "{metrics}"
    );
    assert!(metrics.contains("oxidis_manager_leads 1"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_goes_through_its_stages() {
    let (manager, players, ids) = cluster().await;
    let renew = async || {
        for (index, id) in ids.iter().enumerate() {
            manager.renew(id, &players[index].address, &["a", "b"][index].repeat(40), 0, 0).await;
        }
    };
    renew().await;
    let begun = manager.post("/api/v1/moves", json!({ "slots": "0-9", "to": 2, "rate": 1000 })).await;
    assert_eq!((&begun[0]["id"], &begun[0]["from"], &begun[0]["by"]), (&json!(1), &json!(1), &json!("local (admin)")));
    // The source knows it as soon as it was started.
    wait(&manager, "START", &renew, |_| players[0].was_told("OXIDIS MOVE START 1")).await;
    assert!(players[0].was_told(&format!("OXIDIS MOVE START 1 {} 0-9 RATE 1000", players[1].address)));
    players[0].answer("OXIDIS MOVE STATUS", &copy_status("copying", 40));
    wait(&manager, "progress", &renew, |one| one["keys"] == 40 && one["state"] == "copying").await;
    let (code, _) = manager.send("POST", "/api/v1/moves/1/pause", Some(json!({}))).await;
    assert_eq!(code, 200);
    wait(&manager, "PAUSE", &renew, |_| players[0].was_told("OXIDIS MOVE PAUSE 1")).await;
    players[0].answer("OXIDIS MOVE STATUS", &copy_status("paused", 40));
    wait(&manager, "paused", &renew, |one| one["is_paused"] == true && one["state"] == "paused").await;
    manager.post("/api/v1/moves/1/resume", json!({})).await;
    wait(&manager, "RESUME", &renew, |_| players[0].was_told("OXIDIS MOVE RESUME 1")).await;
    players[0].answer("OXIDIS MOVE STATUS", &copy_status("following", 100));
    wait(&manager, "done", &renew, |one| one["stage"] == "done").await;
    let order =
        |player: &Player, command: &str| player.told.lock().unwrap().iter().position(|told| told.starts_with(command));
    assert!(order(&players[0], "OXIDIS MOVE FREEZE 1") < order(&players[0], "OXIDIS MOVE FINISH 1"));
    assert!(players[1].was_told("OXIDIS IMPORT COMMIT 1"));
    assert_eq!(manager.get("/api/v1/groups/2").await["slots"], json!([[0, 9], [8192, 16383]]));
    let (code, body) = manager.send("POST", "/api/v1/moves/1/cancel", Some(json!({}))).await;
    assert!(code == 409 && body["hint"] == "it has ended: plan a new move", "{body}");
    // Who, what, and what became of it.
    let events = manager.get("/api/v1/events?limit=1000").await;
    let of = |action: &str| events.as_array().unwrap().iter().find(|event| event["action"] == action).cloned();
    let started = of("move.start").unwrap();
    assert_eq!(
        (&started["object"], &started["who"], &started["result"]),
        (&json!("move 1"), &json!("local (admin)"), &json!("ok"))
    );
    for action in ["move.copying", "move.cutover", "move.committed", "move.done"] {
        assert!(of(action).is_some(), "{action}: {events}");
    }
}

/// What a source says of move 1.
fn copy_status(state: &str, keys: u64) -> String {
    let text = json!({ "move": 1, "state": state, "keys": keys, "bytes": keys * 10, "total_keys": 100, "lag_bytes": 0,
                       "rate": 1000, "started_ms": 1, "error": "" });
    format!("${}\r\n{text}\r\n", text.to_string().len())
}

/// Waits until a move is as wanted.
async fn wait(manager: &Manager, what: &str, renew: impl AsyncFn(), is_so: impl Fn(&Value) -> bool) {
    let mut last = Value::Null;
    for round in 0..1_000 {
        // Leases are short compared with a slow machine.
        if round % 20 == 0 {
            renew().await;
        }
        last = manager.get("/api/v1/moves/1").await;
        if is_so(&last) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_are_dry_unless_told() {
    let (manager, players, _) = cluster().await;
    let third = Player::start().await;
    manager.post("/api/v1/groups", json!({})).await;
    manager.post("/api/v1/groups/3/servers", json!({ "address": third.address })).await;
    let stats = r#"[{"slot":0,"keys":7,"bytes":700,"ops":1}]"#;
    players[0].answer("OXIDIS SLOTS STATS", &format!("${}\r\n{stats}\r\n", stats.len()));
    let plan = manager.post("/api/v1/plans/rebalance", json!({})).await;
    assert_eq!((&plan["dry_run"], &plan["begun"]), (&json!(true), &json!([])));
    let moved: u64 = plan["moves"].as_array().unwrap().iter().map(|one| one["slot_count"].as_u64().unwrap()).sum();
    assert_eq!(moved, 5461, "{plan}");
    assert_eq!(plan["groups"][0]["before"], json!({ "slots": 8192, "keys": 7, "bytes": 700, "ops": 1 }));
    assert_eq!(manager.get("/api/v1/moves").await, json!([]));
    let plan = manager.post("/api/v1/plans/scale-in", json!({ "group": 2, "dry_run": false })).await;
    let begun = plan["begun"].as_array().unwrap().len();
    assert_eq!(begun, plan["moves"].as_array().unwrap().len());
    assert_eq!(manager.get("/api/v1/moves").await.as_array().unwrap().len(), begun);
    players[0].answer("OXIDIS SLOTS STATS", "-LOADING data\r\n");
    let (status, body) = manager.send("POST", "/api/v1/plans/rebalance", Some(json!({ "by": "memory" }))).await;
    assert!(status == 502 && body["hint"].as_str().unwrap().contains("plan by slots"), "{body}");
    let (status, _) = manager.send("POST", "/api/v1/plans/rebalance", Some(json!({ "by": "colour" }))).await;
    assert_eq!(status, 400);
}

/// Defect 6 of the model: a manager without a secret, whose errors show its inside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_needs_its_role_and_errors_show_no_inside() {
    let manager = Manager::start(Tokens::parse(TOKENS).unwrap()).await;
    let people = [
        ("Authorization: Bearer viewer-token-01234567", Role::Viewer),
        ("Authorization: Bearer operator-token-0123", Role::Operator),
        ("Authorization: Bearer admin-token-0123456", Role::Admin),
        ("Authorization: Bearer member-token-01234567", Role::Member),
    ];
    for route in ROUTES {
        let path = route.path.replace("{id}", "77").replace("{server}", "x");
        let body = (route.method != "GET").then(|| json!({}));
        let (status, answer) = manager.send(route.method, &path, body.clone()).await;
        if route.needs == Needs::Nothing {
            assert_eq!(status, 200, "{path}");
            continue;
        }
        assert_eq!(status, 401, "{} {path}: {answer}", route.method);
        let (status, _) =
            manager.send_with(route.method, &path, body.clone(), &["Authorization: Bearer wrong-token-0123456"]).await;
        assert_eq!(status, 401, "{} {path}", route.method);
        for (header, role) in people {
            let (status, answer) = manager.send_with(route.method, &path, body.clone(), &[header]).await;
            assert_eq!(
                status == 403,
                !role.may(route.role()),
                "{} {path} as {}: {status} {answer}",
                route.method,
                role.name()
            );
            assert_ne!(status, 401, "{path}");
            let text = answer.to_string();
            for inside in [".rs", "panicked", "stack", "src/", "token-0"] {
                assert!(!text.contains(inside), "{path}: {text}");
            }
        }
    }
    let admin = "Authorization: Bearer admin-token-0123456";
    let (_, events) = manager.send_with("GET", "/api/v1/events?limit=1000&kind=audit", None, &[admin]).await;
    let refused = events
        .as_array()
        .unwrap()
        .iter()
        .any(|event| event["result"] == "viewer may not do that" || event["result"] == "a token is needed");
    assert!(refused, "{events}");
    let log = std::fs::read_to_string(manager._folder.path().join("events.ndjson")).unwrap();
    assert!(!log.contains("token-0"), "tokens are in no log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_other_sites_change_nothing() {
    let manager = Manager::start(Tokens::default()).await;
    let send = async |headers: &[&str]| manager.send_with("POST", "/api/v1/groups", Some(json!({})), headers).await.0;
    assert_eq!(send(&["Content-Type: text/plain"]).await, 415);
    assert_eq!(send(&["Origin: http://evil.example"]).await, 403);
    assert_eq!(send(&["Sec-Fetch-Site: cross-site"]).await, 403);
    assert_eq!(send(&["Host: evil.example"]).await, 403);
    let own = format!("Origin: http://{}", manager.address);
    assert_eq!(send(&[&own]).await, 201);
    let (status, _) = manager.send_with("GET", "/api/v1/topology", None, &["Host: evil.example:7080"]).await;
    assert_eq!(status, 403);
    assert_eq!(manager.send_with("GET", "/api/v1/topology", None, &["Host: localhost:7080"]).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_told_with_a_hint() {
    let manager = Manager::start(Tokens::default()).await;
    let (status, body) = manager.send("GET", "/api/v1/topologie", None).await;
    assert!(status == 404 && body["hint"].as_str().unwrap().contains("did you mean /api/v1/topology?"), "{body}");
    let (status, body) = manager.send("PUT", "/api/v1/groups", Some(json!({}))).await;
    assert!(status == 405 && body["error"] == "PUT is not understood here", "{status} {body}");
    let (status, body) = manager.send("GET", "/api/v1/groups/one", None).await;
    assert!(status == 400 && body["error"] == "'one' is no group number", "{body}");
    let (status, body) = manager.send("POST", "/api/v1/moves", Some(json!({ "slots": "0-5", "to": 1 }))).await;
    assert_eq!((status, &body["error"]), (404, &json!("there is no group 1")));
    manager.post("/api/v1/groups", json!({})).await;
    for (slots, status) in [("5-1", 400), ("0-5", 409), ("99999", 400)] {
        let (got, body) = manager.send("POST", "/api/v1/moves", Some(json!({ "slots": slots, "to": 1 }))).await;
        assert!(got == status && !body["hint"].as_str().unwrap().is_empty(), "{slots}: {got} {body}");
    }
    let big = json!({ "id": "x".repeat(2 << 20) });
    assert_eq!(manager.send("POST", "/api/v1/groups", Some(big)).await.0, 413);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_hold_until_the_end() {
    let manager = Manager::start(Tokens::default()).await;
    let (status, body) = manager.send("PUT", "/api/v1/settings", Some(json!({ "moves_per_group": 8 }))).await;
    assert_eq!((status, &body), (200, &json!({ "moves_per_group": 8, "move_rate": 0, "freeze_ms": 500 })));
    assert_eq!(manager.send("PUT", "/api/v1/settings", Some(json!({ "moves_per_group": 0 }))).await.0, 400);
    assert_eq!(manager.get("/api/v1/settings").await, body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_can_be_waited_for() {
    let manager = Manager::start(Tokens::default()).await;
    manager.post("/api/v1/groups", json!({})).await;
    let mut events = Value::Null;
    for _ in 0..500 {
        events = manager.get("/api/v1/events").await;
        if events.as_array().unwrap().iter().any(|event| event["action"] == "group.add") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let last = events.as_array().unwrap().last().unwrap()["seq"].as_u64().unwrap();
    let path = format!("/api/v1/events?after={last}&wait_ms=20000");
    let (news, _) = tokio::join!(manager.get(&path), async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        manager.post("/api/v1/groups", json!({})).await
    });
    assert_eq!((&news[0]["action"], &news[0]["object"]), (&json!("group.add"), &json!("group 2")));
    assert_eq!(manager.send("GET", "/api/v1/events?limit=x", None).await.0, 400);
}
