//! Waiting for a newer document with etcd's watch, which sends a JSON object a line.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::gateway::{encoded, positive, revision};
use super::*;

/// A watch is opened anew after this time, so that an endpoint that hangs is noticed.
const WATCH_LIMIT: Duration = Duration::from_secs(5);
/// The longest line that is read.
const LINE_BYTES: u64 = 16 << 20;

/// What a watch ended with.
enum Ended {
    /// Something happened, or the past that was asked for is gone: look at the key.
    Look,
    /// Its time was over.
    Quiet,
    /// The endpoint never said that it watches.
    Deaf,
}

impl Etcd {
    /// Looks at the document, then watches it for a while.
    pub(super) fn wait_once(
        &self,
        name: &str,
        key: &str,
        known: Version,
        end: Instant,
    ) -> Result<Option<Document>, StoreError> {
        let answer = self.gateway.call("kv/range", &json!({ "key": encoded(key) }))?;
        let newer = |document: &Document| document.version > known;
        let found = gateway::first_key(&answer)?;
        let found = found.map(|found| Document { text: found.value, version: Version(found.mod_revision) });
        if let Some(document) = found.filter(newer) {
            return Ok(Some(document));
        }
        let limit = end.saturating_duration_since(Instant::now()).min(WATCH_LIMIT);
        if limit.is_zero() {
            return Ok(None);
        }
        // From the revision just seen: nothing between the look and the watch is missed. Should etcd have forgotten it
        // meanwhile (compaction), the watch says so and the key is looked at again.
        match self.watch(key, revision(&answer)?.saturating_add(1), limit)? {
            Ended::Look => Ok(self.load(name)?.filter(newer)),
            Ended::Quiet => Ok(None),
            // It was just looked at, and there was no time for more.
            Ended::Deaf if limit < self.options.request_limit => Ok(None),
            Ended::Deaf => {
                let text = format!("{} does not watch", self.gateway.endpoint());
                self.gateway.next_endpoint();
                Err(StoreError::Unreachable(text))
            }
        }
    }

    fn watch(&self, key: &str, from: u64, limit: Duration) -> Result<Ended, StoreError> {
        let body = json!({ "create_request": { "key": encoded(key), "start_revision": from.to_string() } });
        let began = Instant::now();
        let reader = match self.gateway.stream("watch", &body, limit) {
            Ok(reader) => reader,
            // The answer's head comes with its first line.
            Err(_) if began.elapsed() >= limit.min(self.options.request_limit) => return Ok(Ended::Deaf),
            Err(error) => {
                self.gateway.next_endpoint();
                return Err(error);
            }
        };
        let mut lines = BufReader::new(reader.take(LINE_BYTES));
        let mut watching = false;
        loop {
            let mut line = String::new();
            match lines.read_line(&mut line) {
                Ok(0) | Err(_) if watching => return Ok(Ended::Quiet),
                Ok(0) | Err(_) => return Ok(Ended::Deaf),
                Ok(_) => {}
            }
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            let Some(result) = said.get("result") else { return Ok(Ended::Deaf) };
            watching = true;
            let gone = positive(result, "compact_revision")? > 0;
            let canceled = result.get("canceled").and_then(Value::as_bool) == Some(true);
            let events = result.get("events").and_then(Value::as_array).is_some_and(|events| !events.is_empty());
            if gone || canceled || events {
                return Ok(Ended::Look);
            }
        }
    }
}
