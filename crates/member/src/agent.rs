//! The thread that asks for the lease, again and again.
//!
//! It asks the manager that answered last, follows one that names the leader, and goes through the others with growing
//! pauses when nobody answers. An answer of an earlier term than one seen before comes from a manager that lost the lead and
//! does not know it: it counts as none.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use topology::model::DEFAULT_LEASE_MS;
use topology::wire::{LeaseReply, LeaseRequest, MemberKind, NotLeader, PREFIX};
use topology::{Term, View};

use crate::membership::{Contact, Membership};

#[cfg(test)]
mod tests;

/// Who the member is and whom it asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The member's name.
    pub id: String,
    /// What it is.
    pub kind: MemberKind,
    /// Its incarnation: 40 hex digits, new at each start of the process.
    pub run: String,
    /// `host:port` where it is reached.
    pub address: String,
    /// The managers' URLs, like `http://127.0.0.1:7080`.
    pub managers: Vec<String>,
    /// What it shows the manager, when one is needed.
    pub token: Option<String>,
}

/// A member's thread at the manager. Dropping it tells the thread to end without waiting for it; [`Agent::stop`] waits.
pub struct Agent {
    membership: Arc<Membership>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("membership", &self.membership).finish_non_exhaustive()
    }
}

impl Agent {
    /// Starts the thread (`member`). It calls `status` before each request, for what the member says of itself, and `on_view`
    /// after each newer view was taken; both on its own thread, so they must not block for long.
    ///
    /// # Errors
    /// When there is no manager to ask, an URL is not `http://…`, or no thread can be had; the text says what to do.
    pub fn start(
        settings: Settings,
        membership: Arc<Membership>,
        status: impl Fn() -> Value + Send + 'static,
        on_view: impl FnMut(&Arc<View>) + Send + 'static,
    ) -> Result<Agent, String> {
        if settings.managers.is_empty() {
            return Err("no manager is named: give its URL, like http://127.0.0.1:7080".to_string());
        }
        if let Some(url) = settings.managers.iter().find(|url| !is_url(url)) {
            return Err(format!("'{url}' is no manager's URL: give one like http://127.0.0.1:7080"));
        }
        let (stop, stopped) = channel();
        let worker = Worker {
            managers: settings.managers.iter().map(|url| url.trim_end_matches('/').to_string()).collect(),
            settings,
            membership: Arc::clone(&membership),
            status: Box::new(status),
            on_view: Box::new(on_view),
            stopped,
            client: client(),
            current: 0,
            leader: None,
            term: Term(0),
            lease_ms: DEFAULT_LEASE_MS,
            failures: 0,
            is_announced: false,
            random: fastrand::Rng::new(),
        };
        let thread = std::thread::Builder::new().name("member".to_string()).spawn(move || worker.run());
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Agent { membership, stop: Some(stop), thread: Some(thread) })
    }

    /// What the member knows.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    /// Ends the thread and waits for it: about as long as a request may be held.
    pub fn stop(mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a text may be a manager's URL.
fn is_url(url: &str) -> bool {
    url.strip_prefix("http://").is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

fn client() -> ureq::Agent {
    // Redirects are ours to follow: a leader is named in the body.
    ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).proxy(None).build().into()
}

/// What came of asking.
enum Outcome {
    Granted {
        /// Whether a newer view came with it.
        with_view: bool,
    },
    /// Another manager leads: ask that one.
    Elsewhere(String),
    /// The manager does not know this member.
    Unknown,
    /// It knows it now.
    Announced,
    Failed(String),
}

fn refused(url: &str, status: u16, text: &str) -> Outcome {
    let said: String = text.chars().take(200).collect();
    Outcome::Failed(format!("{url}: status {status}: {said}"))
}

/// What the member says of itself.
type StatusSource = Box<dyn Fn() -> Value + Send>;
/// What it does with a newer view.
type ViewSink = Box<dyn FnMut(&Arc<View>) + Send>;

struct Worker {
    settings: Settings,
    membership: Arc<Membership>,
    status: StatusSource,
    on_view: ViewSink,
    stopped: Receiver<()>,
    client: ureq::Agent,
    managers: Vec<String>,
    /// Which of them is asked.
    current: usize,
    /// Whom one of them named; asked instead while that goes well.
    leader: Option<String>,
    /// The greatest term seen.
    term: Term,
    lease_ms: u64,
    /// Attempts since the last grant.
    failures: u32,
    /// Whether the manager has known this member since it started: one that is removed later stays so.
    is_announced: bool,
    random: fastrand::Rng,
}

/// The longest answer that is read: a view of a big cluster in many ranges.
const ANSWER_BYTES: u64 = 64 << 20;
/// The first pause after a failure; it doubles up to the longest.
const FIRST_PAUSE_MS: u64 = 25;
const LONGEST_PAUSE_MS: u64 = 1_000;

impl Worker {
    fn run(mut self) {
        let mut pause = Duration::ZERO;
        // A stop is the sender's end; it is looked for between requests and ends a pause at once.
        while self.stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let manager = self.manager();
            let asked_ms = self.membership.now_ms();
            let (contact, next) = match self.ask(&manager) {
                Outcome::Granted { with_view } => {
                    self.failures = 0;
                    // One that does not hold requests is not asked more often than one that does.
                    let took = self.membership.now_ms().saturating_sub(asked_ms);
                    let rest = if with_view { 0 } else { self.hold_ms().saturating_sub(took) };
                    (Contact::Granted { manager }, Duration::from_millis(rest))
                }
                Outcome::Elsewhere(url) => {
                    let reason = format!("{manager} does not lead, {url} does");
                    self.leader = Some(url);
                    // At once the first time; two that name each other are not asked without end.
                    let at_once = self.failures == 0;
                    let pause = self.failed();
                    (Contact::Lost { reason }, if at_once { Duration::ZERO } else { pause })
                }
                Outcome::Unknown => {
                    self.failures = self.failures.max(4);
                    let pause = self.failed();
                    (Contact::Unknown { manager }, pause)
                }
                Outcome::Announced => {
                    pause = Duration::ZERO;
                    continue;
                }
                Outcome::Failed(reason) => {
                    self.leader = None;
                    self.current = self.current.wrapping_add(1);
                    let pause = self.failed();
                    (Contact::Lost { reason }, pause)
                }
            };
            self.membership.set_contact(contact);
            pause = next;
        }
    }

    /// How long the manager may hold a request, and how long one may be on its way beyond that: a quarter of the lease, so that
    /// after a lost request there is time for another.
    fn hold_ms(&self) -> u64 {
        (self.lease_ms / 4).max(10)
    }

    fn manager(&self) -> String {
        let at = self.current % self.managers.len().max(1);
        self.leader.clone().or_else(|| self.managers.get(at).cloned()).unwrap_or_default()
    }

    /// One more failure: how long to rest. Between the half and the whole of a doubling pause, so that a thousand members do
    /// not ask a new manager in one moment.
    fn failed(&mut self) -> Duration {
        let whole = FIRST_PAUSE_MS.checked_shl(self.failures.min(16)).unwrap_or(LONGEST_PAUSE_MS);
        // Well within a lease, however short that is.
        let whole = whole.min(LONGEST_PAUSE_MS).min(self.lease_ms / 4).max(2);
        self.failures = self.failures.saturating_add(1);
        Duration::from_millis(self.random.u64(whole / 2..=whole))
    }

    fn ask(&mut self, manager: &str) -> Outcome {
        // The first answer is wanted at once, for the lease that comes with it.
        let wait_ms = if self.failures == 0 && self.membership.deadline_ms() > 0 { self.hold_ms() } else { 0 };
        let newness = self.membership.newness();
        let request = LeaseRequest {
            kind: self.settings.kind,
            run: self.settings.run.clone(),
            term: newness.term,
            epoch: newness.epoch,
            address: self.settings.address.clone(),
            wait_ms,
            status: (self.status)(),
        };
        let body = match serde_json::to_string(&request) {
            Ok(body) => body,
            Err(error) => return Outcome::Failed(format!("the member's status is no JSON: {error}")),
        };
        let url = format!("{manager}{PREFIX}/members/{}/lease", self.settings.id);
        // Before anything leaves: the lease counts from here.
        let asked_ms = self.membership.now_ms();
        let limit = Duration::from_millis(wait_ms + self.hold_ms().max(250));
        match self.post(&url, &body, limit) {
            Ok((200, text)) => match serde_json::from_str(&text) {
                Ok(reply) => self.take(manager, asked_ms, reply),
                Err(error) => Outcome::Failed(format!("{url}: not understood: {error}")),
            },
            Ok((409, text)) => match serde_json::from_str::<NotLeader>(&text) {
                Ok(NotLeader { leader }) if is_url(&leader) && leader.trim_end_matches('/') != manager => {
                    Outcome::Elsewhere(leader.trim_end_matches('/').to_string())
                }
                _ => Outcome::Failed(format!("{manager} does not lead, and knows nobody who does")),
            },
            Ok((404, _)) if self.settings.kind == MemberKind::Proxy && !self.is_announced => self.announce(manager),
            Ok((404, _)) => Outcome::Unknown,
            Ok((status, text)) => refused(&url, status, &text),
            Err(error) => Outcome::Failed(format!("{url}: {error}")),
        }
    }

    /// Makes a proxy known. Servers are added by whoever knows which group is theirs; of a proxy nothing else is to be
    /// known, so it comes by itself.
    fn announce(&mut self, manager: &str) -> Outcome {
        let url = format!("{manager}{PREFIX}/proxies");
        let body = json!({ "id": self.settings.id, "address": self.settings.address }).to_string();
        match self.post(&url, &body, Duration::from_millis(self.hold_ms().max(1_000))) {
            Ok((200..=299, _)) => {
                self.is_announced = true;
                Outcome::Announced
            }
            Ok((status, text)) => refused(&url, status, &text),
            Err(error) => Outcome::Failed(format!("{url}: {error}")),
        }
    }

    fn post(&self, url: &str, body: &str, limit: Duration) -> Result<(u16, String), ureq::Error> {
        let mut request = self.client.post(url).content_type("application/json");
        if let Some(token) = &self.settings.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut answer = request.config().timeout_global(Some(limit)).build().send(body)?;
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_string()?;
        Ok((answer.status().as_u16(), text))
    }

    fn take(&mut self, manager: &str, asked_ms: u64, reply: LeaseReply) -> Outcome {
        if reply.term < self.term {
            return Outcome::Failed(format!(
                "{manager} leads no more: its term {} is before {}",
                reply.term, self.term
            ));
        }
        self.term = reply.term;
        let view = reply.view.and_then(|view| self.membership.take(view));
        if let Some(view) = &view {
            (self.on_view)(view);
        }
        // Whoever has an older view than the leader has no business with its lease.
        if self.membership.newness().epoch < reply.epoch {
            return Outcome::Failed(format!("{manager} granted a lease but not the view of epoch {}", reply.epoch));
        }
        self.lease_ms = reply.lease_ms.clamp(SHORTEST_LEASE_MS, LONGEST_LEASE_MS);
        self.is_announced = true;
        self.membership.granted(asked_ms, reply.lease_ms.min(LONGEST_LEASE_MS));
        Outcome::Granted { with_view: view.is_some() }
    }
}

/// What leases are taken for when they are odd, for the pace of asking.
const SHORTEST_LEASE_MS: u64 = 40;
const LONGEST_LEASE_MS: u64 = 600_000;
