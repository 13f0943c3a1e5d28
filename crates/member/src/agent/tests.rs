#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use topology::{Change, Epoch, SlotSpace, Topology};

use super::*;

type Answer = (u16, String);
type Handler = Box<dyn Fn(&LeaseRequest, &str) -> Answer + Send + Sync>;

/// A manager that answers as told.
struct Responder {
    url: String,
    seen: Arc<Mutex<Vec<LeaseRequest>>>,
    handler: Arc<Mutex<Arc<Handler>>>,
    open: Arc<AtomicBool>,
}

impl Responder {
    fn start(handler: impl Fn(&LeaseRequest, &str) -> Answer + Send + Sync + 'static) -> Responder {
        let listener = TcpListener::bind(("127.0.0.1", testkit::server::free_port().unwrap())).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<Mutex<Arc<Handler>>> = Arc::new(Mutex::new(Arc::new(Box::new(handler))));
        let open = Arc::new(AtomicBool::new(true));
        let parts = (Arc::clone(&seen), Arc::clone(&handler), Arc::clone(&open));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !parts.2.load(Ordering::SeqCst) {
                    return;
                }
                let parts = parts.clone();
                std::thread::spawn(move || serve(stream, &parts.0, &parts.1, &parts.2));
            }
        });
        Responder { url, seen, handler, open }
    }

    fn answer(&self, handler: impl Fn(&LeaseRequest, &str) -> Answer + Send + Sync + 'static) {
        *self.handler.lock().unwrap() = Arc::new(Box::new(handler));
    }

    fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn last(&self) -> LeaseRequest {
        self.seen.lock().unwrap().last().unwrap().clone()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.open.store(false, Ordering::SeqCst);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<LeaseRequest>>, handler: &Mutex<Arc<Handler>>, open: &AtomicBool) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while open.load(Ordering::SeqCst) {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => {}
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        // A proxy that makes itself known sends less.
        let request: LeaseRequest = serde_json::from_slice(&body)
            .unwrap_or_else(|_| LeaseRequest { status: serde_json::from_slice(&body).unwrap(), ..empty_request() });
        seen.lock().unwrap().push(request.clone());
        let handler = Arc::clone(&handler.lock().unwrap());
        let (status, text) = handler(&request, &head);
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn empty_request() -> LeaseRequest {
    LeaseRequest {
        kind: MemberKind::Proxy,
        run: String::new(),
        term: Term(0),
        epoch: Epoch(0),
        address: String::new(),
        wait_ms: 0,
        status: Value::Null,
    }
}

fn topology(term: u64, epochs: u64) -> Topology {
    let mut topology = Topology::new("c", SlotSpace::Redis).apply(&Change::BeginTerm { term: Term(term) }).unwrap();
    while topology.epoch.0 < epochs {
        topology = topology.apply(&Change::AddGroup { id: None }).unwrap();
    }
    topology
}

/// The answer of a manager that has this record.
fn grant(topology: &Topology, request: &LeaseRequest, lease_ms: u64) -> Answer {
    let view = (request.newness() < topology.newness()).then(|| View::of(topology));
    let reply = LeaseReply { term: topology.term, epoch: topology.epoch, lease_ms, view };
    (200, serde_json::to_string(&reply).unwrap())
}

fn settings(managers: &[&Responder]) -> Settings {
    Settings {
        id: "s1".to_string(),
        kind: MemberKind::Server,
        run: "ab".repeat(20),
        address: "127.0.0.1:7101".to_string(),
        managers: managers.iter().map(|manager| manager.url.clone()).collect(),
        token: None,
    }
}

struct Started {
    agent: Agent,
    views: Arc<Mutex<Vec<Arc<View>>>>,
}

impl Started {
    fn membership(&self) -> &Membership {
        self.agent.membership()
    }
}

fn start(settings: Settings) -> Started {
    let views = Arc::new(Mutex::new(Vec::new()));
    let membership = Arc::new(Membership::new(Instant::now()));
    let seen = Arc::clone(&views);
    let agent = Agent::start(
        settings,
        membership,
        || serde_json::json!({"role": "primary"}),
        move |view| seen.lock().unwrap().push(Arc::clone(view)),
    );
    Started { agent: agent.unwrap(), views }
}

const SOON: Duration = Duration::from_secs(5);

fn until(what: &str, done: impl Fn() -> bool) {
    testkit::wait_until(what, SOON, || if done() { Ok(()) } else { Err("not yet") });
}

#[test]
fn a_lease_is_held_and_views_arrive_at_once() {
    let record = Arc::new(Mutex::new(topology(1, 3)));
    let shared = Arc::clone(&record);
    // Held as the real one does: until something is new, or the time is over.
    let manager = Responder::start(move |request, head| {
        assert!(head.starts_with("POST /api/v1/members/s1/lease HTTP/1.1"), "{head}");
        assert!(!head.to_ascii_lowercase().contains("authorization"), "{head}");
        let end = Instant::now() + Duration::from_millis(request.wait_ms);
        while request.newness() >= shared.lock().unwrap().newness() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        grant(&shared.lock().unwrap(), request, 2_000)
    });
    let started = start(settings(&[&manager]));
    until("the first view", || started.membership().view().is_some());
    until("the lease", || *started.membership().contact() == Contact::Granted { manager: manager.url.clone() });
    assert!(started.membership().lease_left_ms() > 0);
    until("a held request", || manager.count() >= 2);
    let asked = manager.last();
    assert_eq!((asked.epoch, asked.wait_ms), (Epoch(3), 500));
    assert_eq!((asked.run.len(), asked.status["role"].as_str()), (40, Some("primary")));
    *record.lock().unwrap() = topology(1, 4);
    let began = Instant::now();
    until("the next view", || started.membership().newness().epoch == Epoch(4));
    assert!(began.elapsed() < Duration::from_millis(400), "after {:?}", began.elapsed());
    // It stays valid for longer than one lease.
    let end = Instant::now() + Duration::from_millis(2_300);
    while Instant::now() < end {
        assert!(started.membership().lease_left_ms() > 0);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(manager.count() < 20, "{} requests", manager.count());
    let epochs: Vec<u64> = started.views.lock().unwrap().iter().map(|view| view.epoch.0).collect();
    assert_eq!(epochs, [3, 4]);
    let began = Instant::now();
    started.agent.stop();
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn the_leader_is_followed() {
    let leader = Responder::start(|request, _| grant(&topology(2, 5), request, 1_000));
    let url = leader.url.clone();
    let follower = Responder::start(move |_, _| (409, format!("{{\"leader\":\"{url}/\"}}")));
    let lost = Responder::start(|_, _| (409, "{\"leader\":\"\"}".to_string()));
    let started = start(settings(&[&lost, &follower]));
    until("a lease", || *started.membership().contact() == Contact::Granted { manager: leader.url.clone() });
    assert!(started.membership().lease_left_ms() > 0);
    assert_eq!((lost.count(), follower.count()), (1, 1));
    // The leader goes; the one that was named before names another.
    let next = Responder::start(|request, _| grant(&topology(3, 6), request, 1_000));
    let url = next.url.clone();
    follower.answer(move |_, _| (409, format!("{{\"leader\":\"{url}\"}}")));
    leader.answer(|_, _| (503, "shutting down".to_string()));
    until("the next leader's view", || started.membership().newness().epoch == Epoch(6));
    assert!(next.count() > 0);
}

#[test]
fn who_names_each_other_is_not_asked_without_end() {
    let urls = Arc::new(Mutex::new(vec![String::new(); 2]));
    let manager = |other: usize| {
        let urls = Arc::clone(&urls);
        Responder::start(move |_, _| (409, format!("{{\"leader\":\"{}\"}}", urls.lock().unwrap()[other])))
    };
    let (one, two) = (manager(1), manager(0));
    *urls.lock().unwrap() = vec![one.url.clone(), two.url.clone()];
    let started = start(settings(&[&one, &two]));
    until("some requests", || one.count() + two.count() >= 6);
    let (before, began) = (one.count() + two.count(), Instant::now());
    std::thread::sleep(Duration::from_millis(600));
    let more = one.count() + two.count() - before;
    assert!(more < 12, "{more} requests in {:?}", began.elapsed());
    assert!(matches!(&*started.membership().contact(), Contact::Lost { .. }));
}

#[test]
fn a_lease_ends_when_nobody_renews_it() {
    let manager = Responder::start(|request, _| grant(&topology(1, 3), request, 400));
    let started = start(settings(&[&manager]));
    until("a lease", || started.membership().lease_left_ms() > 0);
    manager.answer(|_, _| (500, "{\"error\":\"out of order\"}".to_string()));
    until("the end of it", || started.membership().lease_left_ms() == 0);
    until("the reason", || {
        let contact = started.membership().contact();
        matches!(&*contact, Contact::Lost { reason } if reason.contains("500") && reason.contains("out of order"))
    });
    // The view stays.
    assert!(started.membership().view().is_some());
    // Asked with pauses, not without end, and again when the manager is well.
    let before = manager.count();
    std::thread::sleep(Duration::from_millis(300));
    assert!((1..20).contains(&(manager.count() - before)), "{} requests", manager.count() - before);
    manager.answer(|request, _| grant(&topology(1, 3), request, 400));
    until("a lease again", || started.membership().lease_left_ms() > 0);
}

#[test]
fn a_hung_manager_does_not_cost_the_lease() {
    let hang = Arc::new(AtomicBool::new(false));
    let hung = Arc::clone(&hang);
    let one = Responder::start(move |request, _| {
        while hung.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        grant(&topology(1, 3), request, 3_000)
    });
    let two = Responder::start(|request, _| {
        std::thread::sleep(Duration::from_millis(request.wait_ms));
        grant(&topology(1, 3), request, 3_000)
    });
    let started = start(settings(&[&one, &two]));
    until("a lease", || started.membership().lease_left_ms() > 0);
    hang.store(true, Ordering::SeqCst);
    let end = Instant::now() + Duration::from_millis(4_000);
    while Instant::now() < end {
        assert!(started.membership().lease_left_ms() > 0, "{:?}", started.membership().contact());
        std::thread::sleep(Duration::from_millis(5));
    }
    hang.store(false, Ordering::SeqCst);
}

#[test]
fn an_older_term_counts_for_nothing() {
    let manager = Responder::start(|request, _| grant(&topology(5, 9), request, 300));
    let started = start(settings(&[&manager]));
    until("a lease", || started.membership().lease_left_ms() > 0);
    manager.answer(|_, _| {
        let old = topology(4, 30);
        let reply = LeaseReply { term: old.term, epoch: old.epoch, lease_ms: 300, view: Some(View::of(&old)) };
        (200, serde_json::to_string(&reply).unwrap())
    });
    until("the end of the lease", || started.membership().lease_left_ms() == 0);
    assert_eq!(started.membership().newness(), topology(5, 9).newness());
    assert!(matches!(&*started.membership().contact(), Contact::Lost { reason } if reason.contains("leads no more")));
}

#[test]
fn a_lease_without_the_view_it_is_for_is_none() {
    let manager = Responder::start(|_, _| {
        let reply = LeaseReply { term: Term(1), epoch: Epoch(7), lease_ms: 3_000, view: None };
        (200, serde_json::to_string(&reply).unwrap())
    });
    let started = start(settings(&[&manager]));
    until("some requests", || manager.count() >= 3);
    assert_eq!(started.membership().deadline_ms(), 0);
}

#[test]
fn a_lease_counts_from_the_asking_however_late_the_answer() {
    let manager = Responder::start(|request, _| {
        std::thread::sleep(Duration::from_millis(200));
        grant(&topology(1, 3), request, 400)
    });
    let began = Instant::now();
    let started = start(settings(&[&manager]));
    until("a lease", || started.membership().deadline_ms() > 0);
    let first = started.membership().deadline_ms();
    assert!(first <= 400 + u64::try_from(began.elapsed().as_millis()).unwrap() - 200 + 50, "{first}");
}

#[test]
fn a_member_that_is_not_known_says_so_and_asks_on() {
    let manager = Responder::start(|_, _| (404, "{\"error\":\"there is no member 's1'\"}".to_string()));
    let started = start(settings(&[&manager]));
    until("the answer", || *started.membership().contact() == Contact::Unknown { manager: manager.url.clone() });
    assert!(manager.count() < 4);
    manager.answer(|request, _| grant(&topology(1, 3), request, 400));
    until("a lease once it was added", || started.membership().lease_left_ms() > 0);
}

#[test]
fn a_proxy_makes_itself_known_once() {
    let known = Arc::new(AtomicBool::new(false));
    let announced = Arc::new(AtomicUsize::new(0));
    let parts = (Arc::clone(&known), Arc::clone(&announced));
    let manager = Responder::start(move |request, head| {
        if head.starts_with("POST /api/v1/proxies HTTP/1.1") {
            assert_eq!(request.status, json!({ "id": "s1", "address": "127.0.0.1:7101" }));
            parts.0.store(true, Ordering::SeqCst);
            parts.1.fetch_add(1, Ordering::SeqCst);
            return (201, "{}".to_string());
        }
        if parts.0.load(Ordering::SeqCst) { grant(&topology(1, 3), request, 400) } else { (404, String::new()) }
    });
    let started = start(Settings { kind: MemberKind::Proxy, ..settings(&[&manager]) });
    until("a lease", || started.membership().lease_left_ms() > 0);
    // One that is removed does not come back by itself.
    known.store(false, Ordering::SeqCst);
    until("the removal", || matches!(&*started.membership().contact(), Contact::Unknown { .. }));
    assert_eq!(announced.load(Ordering::SeqCst), 1);
}

#[test]
fn a_token_is_shown() {
    let manager = Responder::start(|request, head| {
        let shown = head.to_ascii_lowercase().contains("authorization: bearer secret");
        if shown { grant(&topology(1, 3), request, 400) } else { (401, String::new()) }
    });
    let started = start(Settings { token: Some("secret".to_string()), ..settings(&[&manager]) });
    until("a lease", || started.membership().lease_left_ms() > 0);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let refused = |managers: &[&str]| {
        let settings = Settings { managers: managers.iter().map(|url| url.to_string()).collect(), ..settings(&[]) };
        let membership = Arc::new(Membership::new(Instant::now()));
        Agent::start(settings, membership, || Value::Null, |_| {}).unwrap_err()
    };
    assert!(refused(&[]).contains("no manager is named"));
    for url in ["", "127.0.0.1:7080", "https://h", "http://", "http://a b"] {
        assert!(refused(&[url]).contains("is no manager's URL"), "{url}");
    }
}

#[test]
fn stopping_ends_a_pause_and_dropping_ends_the_thread() {
    let manager = Responder::start(|_, _| (500, String::new()));
    let started = start(settings(&[&manager]));
    until("some requests", || manager.count() >= 6);
    let began = Instant::now();
    started.agent.stop();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let alive = Arc::new(AtomicUsize::new(0));
    let held = Arc::clone(&alive);
    let membership = Arc::new(Membership::new(Instant::now()));
    let agent =
        Agent::start(settings(&[&manager]), membership, move || serde_json::json!(Arc::strong_count(&held)), |_| {});
    drop(agent.unwrap());
    until("the thread to end", || Arc::strong_count(&alive) == 1);
}
