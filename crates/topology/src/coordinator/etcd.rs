//! The store of several managers: etcd version 3, spoken to as JSON over HTTP (its "gateway"), so that no code generated from
//! its protocol files is needed.
//!
//! ```text
//! {prefix}/documents/{name}    the text; its mod_revision is the version
//! {prefix}/leader              who leads, bound to a lease of etcd; its create_revision is the leadership's token
//! {prefix}/term                how many leaderships there were
//! {prefix}/events/{id}         an event, id with leading zeros
//! {prefix}/next_event          the number of the last event
//! ```
//!
//! Every writing is one transaction that compares what it relies on: the document's `mod_revision`, and the leader key's
//! `create_revision`. A leader whose lease ran out is refused by that, whatever its clock says.
//!
//! When an answer is lost nobody knows whether a transaction was done. It is sent again, to the next endpoint; if that finds
//! the document changed, and it reads as what was to be written, it was.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

mod gateway;
mod keeper;
mod watch;

use gateway::{Gateway, KeyValue, encoded, number};

/// How a store in etcd is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EtcdOptions {
    /// Like `http://127.0.0.1:2379`; the first that answers is used.
    pub endpoints: Vec<String>,
    /// What all keys begin with: one for each cluster.
    pub prefix: String,
    /// How long a leadership lasts without renewal, in whole seconds; etcd has a least of its own (2 s by default).
    pub lease_seconds: u64,
    /// How long a request to one endpoint may take.
    pub request_limit: Duration,
    /// How many events the audit log keeps.
    pub kept_events: u64,
}

impl EtcdOptions {
    /// The usual ones.
    pub fn new(endpoints: &[&str], prefix: &str) -> EtcdOptions {
        EtcdOptions {
            endpoints: endpoints.iter().map(|endpoint| endpoint.to_string()).collect(),
            prefix: prefix.to_string(),
            lease_seconds: 3,
            request_limit: Duration::from_secs(2),
            kept_events: KEPT_EVENTS,
        }
    }
}

/// A store in etcd.
pub struct Etcd {
    gateway: Gateway,
    options: EtcdOptions,
}

impl Etcd {
    /// A store at these endpoints. Nothing is sent yet.
    ///
    /// # Errors
    /// [`StoreError::Broken`] when an endpoint is none, or the prefix is empty.
    pub fn new(mut options: EtcdOptions) -> Result<Etcd, StoreError> {
        if options.endpoints.is_empty() {
            return Err(StoreError::Broken("no endpoint of etcd is named: give http://host:port".to_string()));
        }
        for endpoint in &mut options.endpoints {
            if endpoint.starts_with("https://") {
                return Err(StoreError::Broken(format!("{endpoint}: only http:// is spoken to etcd")));
            }
            if !endpoint.starts_with("http://") {
                *endpoint = format!("http://{endpoint}");
            }
            *endpoint = endpoint.trim_end_matches('/').to_string();
        }
        options.prefix = format!("/{}", options.prefix.trim_matches('/'));
        if options.prefix == "/" {
            return Err(StoreError::Broken("etcd needs a prefix for the cluster's keys: give its name".to_string()));
        }
        let gateway = Gateway::new(&options.endpoints, options.request_limit);
        Ok(Etcd { gateway, options })
    }

    fn key(&self, rest: &str) -> String {
        format!("{}/{rest}", self.options.prefix)
    }

    fn event_key(&self, id: u64) -> String {
        self.key(&format!("events/{id:020}"))
    }

    /// The key's value and revisions.
    fn get(&self, key: &str) -> Result<Option<KeyValue>, StoreError> {
        let answer = self.gateway.call("kv/range", &json!({ "key": encoded(key) }))?;
        gateway::first_key(&answer)
    }

    /// Puts events into a transaction: the comparison and the operations.
    fn note(
        &self,
        compare: &mut Vec<Value>,
        operations: &mut Vec<Value>,
        events: &[NewEvent],
    ) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let counter_key = self.key("next_event");
        let counter = self.get(&counter_key)?;
        let mut id = counter.as_ref().map_or(Ok(0), KeyValue::as_number)?;
        compare.push(same_revision(&counter_key, counter.map_or(0, |counter| counter.mod_revision)));
        for event in events {
            id = id.saturating_add(1);
            let text = serde_json::to_string(event).map_err(|error| StoreError::Broken(error.to_string()))?;
            operations.push(put(&self.event_key(id), &text));
            if let Some(old) = id.checked_sub(self.options.kept_events) {
                operations.push(json!({ "requestDeleteRange": { "key": encoded(&self.event_key(old)) } }));
            }
        }
        operations.push(put(&counter_key, &id.to_string()));
        Ok(())
    }

    /// Tries a transaction until it meets nobody else's events; `decide` says what a refusal means otherwise.
    fn transact<T>(
        &self,
        events: &[NewEvent],
        compare: &[Value],
        operations: &[Value],
        succeeded: impl Fn(&Value) -> Result<T, StoreError>,
        refused: impl Fn() -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..EVENT_RETRIES {
            let (mut compare, mut operations) = (compare.to_vec(), operations.to_vec());
            self.note(&mut compare, &mut operations, events)?;
            let answer = self.gateway.call("kv/txn", &json!({ "compare": compare, "success": operations }))?;
            if answer.get("succeeded").and_then(Value::as_bool) == Some(true) {
                return succeeded(&answer);
            }
            if let Some(value) = refused()? {
                return Ok(value);
            }
        }
        Err(StoreError::Unreachable("etcd: too many managers write events at once: try again".to_string()))
    }

    fn leader_key(&self) -> Result<Option<(Leader, KeyValue)>, StoreError> {
        let Some(found) = self.get(&self.key("leader"))? else { return Ok(None) };
        let leader = serde_json::from_str(&found.value)
            .map_err(|error| StoreError::Broken(format!("etcd: {} is not ours: {error}", self.key("leader"))))?;
        Ok(Some((leader, found)))
    }

    /// Becomes leader with this lease of etcd; none when another one leads.
    fn take_lead(&self, candidate: &Candidate, lease: i64) -> Result<Option<(Term, u64)>, StoreError> {
        let (term_key, leader_key) = (self.key("term"), self.key("leader"));
        let counter = self.get(&term_key)?;
        let last = counter.as_ref().map_or(Ok(0), KeyValue::as_number)?;
        let leader = Leader { candidate: candidate.clone(), term: Term(last.saturating_add(1)) };
        let text = serde_json::to_string(&leader).map_err(|error| StoreError::Broken(error.to_string()))?;
        let compare =
            [same_creation(&leader_key, 0), same_revision(&term_key, counter.map_or(0, |it| it.mod_revision))];
        let bound = json!({ "requestPut": {
            "key": encoded(&leader_key), "value": encoded(&text), "lease": lease.to_string(),
        } });
        let operations = [put(&term_key, &leader.term.to_string()), bound];
        let answer = self.gateway.call("kv/txn", &json!({ "compare": compare, "success": operations }))?;
        if answer.get("succeeded").and_then(Value::as_bool) == Some(true) {
            return Ok(Some((leader.term, gateway::revision(&answer)?)));
        }
        // Perhaps an earlier sending of the same transaction was done and its answer lost.
        let ours = self.leader_key()?.filter(|(_, found)| found.lease == lease);
        Ok(ours.map(|(leader, found)| (leader.term, found.create_revision)))
    }
}

impl Coordinator for Etcd {
    fn describe(&self) -> String {
        format!("etcd {} {}", self.options.endpoints.join(","), self.options.prefix)
    }

    fn load(&self, name: &str) -> Result<Option<Document>, StoreError> {
        let found = self.get(&self.key(&format!("documents/{name}")))?;
        Ok(found.map(|found| Document { text: found.value, version: Version(found.mod_revision) }))
    }

    fn replace(
        &self,
        leadership: &Leadership,
        name: &str,
        expected: Version,
        text: &str,
        events: &[NewEvent],
    ) -> Result<Version, StoreError> {
        if leadership.is_lost() {
            return Err(StoreError::NotLeader);
        }
        let key = self.key(&format!("documents/{name}"));
        let compare = [same_creation(&self.key("leader"), leadership.token), same_revision(&key, expected.0)];
        let written = |answer: &Value| gateway::revision(answer).map(Version);
        self.transact(events, &compare, &[put(&key, text)], written, || {
            let found = self.get(&key)?;
            if let Some(found) = &found
                && found.mod_revision > expected.0
                && found.value == text
            {
                return Ok(Some(Version(found.mod_revision)));
            }
            if self.leader_key()?.map(|(_, found)| found.create_revision) != Some(leadership.token) {
                leadership.state.lost.store(true, Ordering::Relaxed);
                return Err(StoreError::NotLeader);
            }
            if found.map_or(0, |found| found.mod_revision) != expected.0 {
                return Err(StoreError::Conflict);
            }
            Ok(None)
        })
    }

    fn wait_newer(&self, name: &str, known: Version, limit: Duration) -> Result<Option<Document>, StoreError> {
        let key = self.key(&format!("documents/{name}"));
        let end = Instant::now() + limit;
        loop {
            let outcome = self.wait_once(name, &key, known, end);
            let over = Instant::now() >= end;
            match outcome {
                Ok(None) if !over => {}
                Err(StoreError::Unreachable(_)) if !over => {
                    // Not faster than somebody could answer.
                    std::thread::sleep(RETRY_PAUSE.min(end.saturating_duration_since(Instant::now())));
                }
                outcome => return outcome,
            }
        }
    }

    fn append(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        self.transact(events, &[], &[], |_| Ok(()), || Ok(None))
    }

    fn events(&self, from: EventsFrom, limit: usize) -> Result<Vec<Event>, StoreError> {
        let (first, end, order) = match from {
            EventsFrom::After(id) => (self.event_key(id.saturating_add(1)), self.key("events0"), "ASCEND"),
            EventsFrom::Before(id) => (self.event_key(0), self.event_key(id), "DESCEND"),
        };
        let asked = json!({
            "key": encoded(&first), "range_end": encoded(&end), "limit": limit.to_string(),
            "sort_order": order, "sort_target": "KEY",
        });
        let answer = self.gateway.call("kv/range", &asked)?;
        let mut events = Vec::new();
        for found in gateway::keys(&answer)? {
            let id = found.key.rsplit('/').next().and_then(|id| id.parse().ok());
            let (Some(id), Ok(event)) = (id, serde_json::from_str(&found.value)) else {
                return Err(StoreError::Broken(format!("etcd: {} is not ours", found.key)));
            };
            events.push(Event { id, event });
        }
        Ok(events)
    }

    fn campaign(&self, candidate: &Candidate) -> Result<Standing, StoreError> {
        if let Some((leader, _)) = self.leader_key()? {
            return Ok(Standing::Follows(leader));
        }
        let began = Instant::now();
        let granted = self.gateway.call("lease/grant", &json!({ "TTL": self.options.lease_seconds.to_string() }))?;
        let (lease, seconds) = (number(&granted, "ID")?, number(&granted, "TTL")?);
        let Some((term, token)) = self.take_lead(candidate, lease)? else {
            let _ = self.gateway.call("lease/revoke", &json!({ "ID": lease.to_string() }));
            return match self.leader_key()? {
                Some((leader, _)) => Ok(Standing::Follows(leader)),
                None => Err(StoreError::Unreachable("etcd: an election is going on: try again".to_string())),
            };
        };
        let state = LeadershipState::new(began, keeper::deadline_ms(0, seconds));
        let keeper = keeper::Keeper::start(&self.options, lease, Arc::clone(&state))?;
        Ok(Standing::Leads(Leadership { term, token, state, _renewal: Some(Box::new(keeper)) }))
    }

    fn leader(&self) -> Result<Option<Leader>, StoreError> {
        Ok(self.leader_key()?.map(|(leader, _)| leader))
    }

    fn resign(&self, leadership: Leadership) {
        leadership.state.lost.store(true, Ordering::Relaxed);
        let key = self.key("leader");
        let compare = [same_creation(&key, leadership.token)];
        let operations = [json!({ "requestDeleteRange": { "key": encoded(&key) } })];
        // When it cannot be said the lease runs out by itself.
        let _ = self.gateway.call("kv/txn", &json!({ "compare": compare, "success": operations }));
    }
}

/// How often a writing may meet somebody else's event.
const EVENT_RETRIES: usize = 32;
/// Between two looks for an endpoint that answers.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

fn put(key: &str, value: &str) -> Value {
    json!({ "requestPut": { "key": encoded(key), "value": encoded(value) } })
}

/// That a key was last written by this revision; 0: that it is not there.
fn same_revision(key: &str, revision: u64) -> Value {
    json!({ "key": encoded(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision.to_string() })
}

/// That a key came to be by this revision; 0: that it is not there.
fn same_creation(key: &str, revision: u64) -> Value {
    json!({ "key": encoded(key), "target": "CREATE", "result": "EQUAL", "create_revision": revision.to_string() })
}
