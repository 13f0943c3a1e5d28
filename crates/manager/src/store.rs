//! The record of the cluster as this manager knows it, who leads, and changes.
//!
//! ```text
//! change ─▶ apply (pure) ─▶ compare-and-set in the coordinator ─▶ publish ─▶ leases answer with the new view
//! ```
//!
//! What is published is what the coordinator holds, never what it may come to hold. Its calls block, so they run on
//! threads for that; a change that was begun is carried to its publishing there, even if whoever asked for it is gone.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use topology::coordinator::embedded::Embedded;
use topology::coordinator::etcd::{Etcd, EtcdOptions};
use topology::coordinator::{
    Candidate, Coordinator, Leader, Leadership, NewEvent, Standing, StoreError, StoredTopology, Version,
};
use topology::{Change, SlotSpace, Term, Topology};

use crate::api::problem::Problem;
use crate::app::App;
use crate::command::Options;
use crate::events::Note;

/// Changes of others that a change may meet before it is given up.
const RETRIES: usize = 8;
/// How long a manager that does not lead waits for news before it stands for election again.
const FOLLOW_PERIOD: Duration = Duration::from_millis(500);
/// Between two looks of a leader at its leadership, and at the coordinator after it failed.
const LEAD_PERIOD: Duration = Duration::from_millis(100);
const TROUBLE_PAUSE: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Clone)]
pub(crate) struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    coordinator: Box<dyn Coordinator>,
    candidate: Candidate,
    /// What a new cluster is like.
    cluster: String,
    slot_space: SlotSpace,
    lease_ms: Option<u64>,
    published: watch::Sender<Arc<Published>>,
    lead: RwLock<Option<Lead>>,
    /// One change at a time: they would only meet each other in the coordinator.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Why the coordinator cannot be used right now.
    trouble: Mutex<Option<String>>,
}

struct Lead {
    leadership: Leadership,
    since: Instant,
}

/// What is known at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) topology: Arc<Topology>,
    version: Version,
    /// The term in which this manager leads.
    term_led: Option<Term>,
    /// Who leads, if another one does.
    leader: Option<Leader>,
}

impl Published {
    pub(crate) fn leads(&self) -> bool {
        self.term_led.is_some()
    }

    pub(crate) fn term_led(&self) -> Option<Term> {
        self.term_led
    }

    /// Where the leader is; `own` is this manager's URL.
    pub(crate) fn leader_url(&self, own: &str) -> Option<String> {
        if self.leads() {
            Some(own.to_owned())
        } else {
            self.leader.as_ref().map(|leader| leader.candidate.url.clone())
        }
    }
}

impl Store {
    /// Opens the coordinator that the options name.
    pub(crate) async fn open(options: &Options) -> Result<Store, String> {
        let (folder, etcd, cluster) = (options.folder.clone(), options.etcd.clone(), options.cluster.clone());
        let open = move || -> Result<Box<dyn Coordinator>, StoreError> {
            if etcd.is_empty() {
                return Ok(Box::new(Embedded::open(&folder.join("manager.redb"))?));
            }
            let endpoints: Vec<&str> = etcd.iter().map(String::as_str).collect();
            Ok(Box::new(Etcd::new(EtcdOptions::new(&endpoints, &format!("oxidis/{cluster}")))?))
        };
        let coordinator = tokio::task::spawn_blocking(open).await.map_err(|error| error.to_string())?;
        let coordinator = coordinator.map_err(|error| format!("cannot open the store of the record: {error}"))?;
        Ok(Store::new(coordinator, options))
    }

    pub(crate) fn new(coordinator: Box<dyn Coordinator>, options: &Options) -> Store {
        let topology = Arc::new(Topology::new(&options.cluster, options.slot_space));
        let first = Published { topology, version: Version(0), term_led: None, leader: None };
        let inner = Inner {
            coordinator,
            candidate: Candidate { id: options.url.clone(), url: options.url.clone() },
            cluster: options.cluster.clone(),
            slot_space: options.slot_space,
            lease_ms: options.lease_ms,
            published: watch::Sender::new(Arc::new(first)),
            lead: RwLock::new(None),
            turn: Arc::default(),
            trouble: Mutex::default(),
        };
        Store { inner: Arc::new(inner) }
    }

    /// What is known now.
    pub(crate) fn now(&self) -> Arc<Published> {
        self.inner.published.borrow().clone()
    }

    /// The record that is known now.
    pub(crate) fn topology(&self) -> Arc<Topology> {
        self.inner.published.borrow().topology.clone()
    }

    /// The term of the record that is known now.
    pub(crate) fn term(&self) -> u64 {
        self.inner.published.borrow().topology.term.0
    }

    /// What is known, as it changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Published>> {
        self.inner.published.subscribe()
    }

    /// Why the coordinator cannot be used right now, if that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// That this manager surely leads, or who does.
    pub(crate) fn must_lead(&self) -> Result<(), Problem> {
        let lead = self.inner.lead.read().unwrap_or_else(PoisonError::into_inner);
        if lead.as_ref().is_some_and(|lead| lead.leadership.is_valid()) {
            return Ok(());
        }
        drop(lead);
        let now = self.now();
        let other = now.leader.as_ref().map(|leader| leader.candidate.url.as_str());
        // Whoever is sent to us by ourselves would turn in circles.
        Err(Problem::not_leader(other.filter(|url| *url != self.inner.candidate.url).unwrap_or_default()))
    }

    /// How long this manager has led; nothing if it does not.
    pub(crate) fn leads_for(&self) -> Duration {
        let lead = self.inner.lead.read().unwrap_or_else(PoisonError::into_inner);
        lead.as_ref().map(|lead| lead.since.elapsed()).unwrap_or_default()
    }

    /// Changes the record by what `make` says of the one that is there: the records before and after.
    pub(crate) async fn change(
        &self,
        make: impl Fn(&Topology) -> Result<Vec<Change>, Problem>,
    ) -> Result<(Arc<Topology>, Arc<Topology>), Problem> {
        for _ in 0..RETRIES {
            let turn = self.inner.turn.clone().lock_owned().await;
            self.must_lead()?;
            let before = self.now();
            let changes = make(&before.topology)?;
            if changes.is_empty() {
                return Ok((before.topology.clone(), before.topology.clone()));
            }
            let next = Arc::new(before.topology.apply_all(&changes)?);
            let (inner, from, to) = (self.inner.clone(), before.clone(), next.clone());
            let stored = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                inner.store(&from, to)
            });
            match stored.await {
                Ok(Ok(())) => return Ok((before.topology.clone(), next)),
                Ok(Err(StoreError::Conflict)) => {}
                Ok(Err(StoreError::NotLeader)) => return Err(Problem::not_leader("")),
                Ok(Err(error)) => {
                    return Err(Problem::unavailable(
                        format!("the record cannot be written: {error}"),
                        "look whether it was done; then try again",
                    ));
                }
                Err(_) => return Err(Problem::unavailable("the record could not be written", "try again")),
            }
        }
        Err(Problem::conflict("the record is being changed all the while", "try again"))
    }

    /// Gives the leadership back, so that another manager can follow at once.
    pub(crate) async fn resign(&self) {
        let inner = self.inner.clone();
        let given = tokio::task::spawn_blocking(move || {
            let lead = inner.lead.write().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(lead) = lead {
                inner.coordinator.resign(lead.leadership);
            }
        });
        // It runs out by itself if it cannot be given back.
        let _ = given.await;
    }

    /// Asks the coordinator on a thread of its own.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Coordinator) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let asked = tokio::task::spawn_blocking(move || question(inner.coordinator.as_ref()));
        asked.await.unwrap_or_else(|_| Err(StoreError::Broken("the question was not answered".into())))
    }
}

impl Inner {
    /// Writes a record in place of the one that `from` holds, and publishes it. Blocks.
    fn store(&self, from: &Published, next: Arc<Topology>) -> Result<(), StoreError> {
        let written = {
            let lead = self.lead.read().unwrap_or_else(PoisonError::into_inner);
            let lead = lead.as_ref().ok_or(StoreError::NotLeader)?;
            self.coordinator.replace_topology(&lead.leadership, from.version, &next, &[] as &[NewEvent])
        };
        match written {
            Ok(version) => {
                self.publish(next, version);
                Ok(())
            }
            Err(StoreError::NotLeader) => Err(StoreError::NotLeader),
            Err(error) => {
                // What is there now is what counts, whatever came of the writing.
                let there = self.coordinator.load_topology();
                self.note_trouble(there.as_ref().err());
                if let Ok(Some(there)) = there {
                    let is_done = there.version > from.version && there.topology == *next;
                    self.publish(Arc::new(there.topology), there.version);
                    if is_done {
                        return Ok(());
                    }
                    if there.version != from.version {
                        return Err(StoreError::Conflict);
                    }
                }
                Err(error)
            }
        }
    }

    /// Publishes a record, unless a newer one is out already.
    fn publish(&self, topology: Arc<Topology>, version: Version) {
        self.published.send_if_modified(|now| {
            if version <= now.version {
                return false;
            }
            *now = Arc::new(Published { topology, version, ..(**now).clone() });
            true
        });
    }

    fn note_trouble(&self, error: Option<&StoreError>) {
        let text = error.map(|error| format!("the store of the record cannot be used: {error}"));
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Stands for election once. Blocks.
    fn campaign(&self) -> Result<bool, StoreError> {
        match self.coordinator.campaign(&self.candidate)? {
            Standing::Leads(leadership) => {
                if let Err(error) = self.begin(&leadership) {
                    self.coordinator.resign(leadership);
                    return Err(error);
                }
                let term = leadership.term();
                let lead = Lead { leadership, since: Instant::now() };
                *self.lead.write().unwrap_or_else(PoisonError::into_inner) = Some(lead);
                self.published.send_modify(|now| {
                    *now = Arc::new(Published { term_led: Some(term), leader: None, ..(**now).clone() });
                });
                Ok(true)
            }
            Standing::Follows(leader) => {
                self.published.send_if_modified(|now| {
                    if now.leader.as_ref() == Some(&leader) {
                        return false;
                    }
                    *now = Arc::new(Published { leader: Some(leader.clone()), ..(**now).clone() });
                    true
                });
                Ok(false)
            }
        }
    }

    /// Takes the record over, in the new term; makes it if there is none.
    fn begin(&self, leadership: &Leadership) -> Result<(), StoreError> {
        let term = leadership.term();
        loop {
            let there = self.coordinator.load_topology()?;
            let is_new = there.is_none();
            let there = there.unwrap_or_else(|| StoredTopology {
                topology: Topology::new(&self.cluster, self.slot_space),
                version: Version(0),
            });
            let mut changes = vec![Change::BeginTerm { term }];
            let lease_ms = self.lease_ms.filter(|lease_ms| *lease_ms != there.topology.lease_ms);
            changes.extend(lease_ms.map(|lease_ms| Change::SetLease { lease_ms }));
            if !is_new && there.topology.slot_space != self.slot_space && self.slot_space != SlotSpace::default() {
                let has = there.topology.slot_space;
                return Err(StoreError::Broken(format!(
                    "the cluster has the slot space {has}, which cannot be changed"
                )));
            }
            let next = there.topology.apply_all(&changes).map_err(|refused| StoreError::Broken(refused.to_string()))?;
            match self.coordinator.replace_topology(leadership, there.version, &next, &[]) {
                Ok(version) => {
                    self.publish(Arc::new(next), version);
                    return Ok(());
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a record that is newer than the one that is known. Blocks for a while.
    fn wait(&self, limit: Duration) -> Result<(), StoreError> {
        let known = self.published.borrow().version;
        if let Some(there) = self.coordinator.wait_newer_topology(known, limit)? {
            self.publish(Arc::new(there.topology), there.version);
        }
        Ok(())
    }

    /// Whether the leadership is over; then nothing is left of it.
    fn is_over(&self) -> bool {
        {
            let lead = self.lead.read().unwrap_or_else(PoisonError::into_inner);
            if lead.as_ref().is_some_and(|lead| !lead.leadership.is_lost()) {
                return false;
            }
        }
        let lost = self.lead.write().unwrap_or_else(PoisonError::into_inner).take();
        self.published.send_modify(|now| *now = Arc::new(Published { term_led: None, ..(**now).clone() }));
        // Its renewal may be in a request: this thread may wait for that.
        drop(lost);
        true
    }
}

/// Leads when it can, and follows else, until the manager ends.
pub(crate) async fn follow(app: Arc<App>) {
    let inner = app.store.inner.clone();
    let mut stop = app.stop.subscribe();
    while !*stop.borrow_and_update() {
        let leads = app.store.now().leads();
        let work = inner.clone();
        let step = tokio::task::spawn_blocking(move || -> Result<bool, StoreError> {
            if leads {
                return Ok(!work.is_over());
            }
            let leads = work.campaign()?;
            if !leads {
                work.wait(FOLLOW_PERIOD)?;
            }
            Ok(leads)
        });
        let step = step.await.unwrap_or_else(|_| Err(StoreError::Broken("a step was not finished".into())));
        if !leads || step.is_err() {
            inner.note_trouble(step.as_ref().err());
        }
        let pause = match step {
            Ok(now_leads) => {
                if now_leads != leads {
                    turned(&app, now_leads);
                }
                if now_leads { LEAD_PERIOD } else { Duration::ZERO }
            }
            Err(error) => {
                eprintln!("oxidis manager: {}: {error}", inner.coordinator.describe());
                TROUBLE_PAUSE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => {}
        }
    }
}

/// This manager began to lead, or leads no more.
fn turned(app: &App, leads: bool) {
    // Whoever follows hears of nobody; whoever leads hears anew.
    app.members.clear();
    let (action, object) =
        if leads { ("manager.leads", app.url.clone()) } else { ("manager.follows", app.url.clone()) };
    let term = app.store.term();
    app.events.write(Note { term, ..Note::event(action, object, format!("term {term}")) });
}
