//! Requests to etcd's JSON gateway, over several endpoints.
//!
//! Keys and values are base64, 64-bit numbers are texts, and fields that are zero or false are left out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use ureq::Agent;

use super::StoreError;

/// A client of etcd. Each endpoint is tried once, from the one that answered last.
pub(super) struct Gateway {
    agent: Agent,
    endpoints: Vec<String>,
    current: AtomicUsize,
}

/// The longest answer that is read: a page of events is the biggest thing asked for.
const ANSWER_BYTES: u64 = 64 << 20;

impl Gateway {
    pub(super) fn new(endpoints: &[String], request_limit: Duration) -> Gateway {
        let config = Agent::config_builder()
            .timeout_global(Some(request_limit))
            .timeout_connect(Some(request_limit.min(Duration::from_secs(1))))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        Gateway { agent: config.into(), endpoints: endpoints.to_vec(), current: AtomicUsize::new(0) }
    }

    /// Asks the endpoints one after another until one answers well.
    pub(super) fn call(&self, path: &str, body: &Value) -> Result<Value, StoreError> {
        let mut troubles = Vec::new();
        for _ in 0..self.endpoints.len() {
            match self.call_one(path, body) {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Here(text)) => troubles.push(text),
                Err(Trouble::Everywhere(text)) => return Err(StoreError::Broken(text)),
            }
            self.next_endpoint();
        }
        Err(StoreError::Unreachable(troubles.join("; ")))
    }

    /// The endpoint that is used now.
    pub(super) fn endpoint(&self) -> &str {
        // Relaxed: any endpoint is right, the number only says which was good last.
        let at = self.current.load(Ordering::Relaxed) % self.endpoints.len().max(1);
        self.endpoints.get(at).map_or("", String::as_str)
    }

    /// The one in use does not answer: the next one is asked from now on.
    pub(super) fn next_endpoint(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }

    /// A request whose answer is read as it comes, for at most `limit`.
    pub(super) fn stream(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<ureq::BodyReader<'static>, StoreError> {
        let url = format!("{}/v3/{path}", self.endpoint());
        let request = self.agent.post(&url).config().timeout_global(Some(limit)).build();
        let answer = request.content_type("application/json").send(body.to_string());
        let answer = answer.map_err(|error| StoreError::Unreachable(format!("{url}: {error}")))?;
        if answer.status() != 200 {
            return Err(StoreError::Unreachable(format!("{url}: status {}", answer.status())));
        }
        Ok(answer.into_body().into_reader())
    }

    fn call_one(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        let url = format!("{}/v3/{path}", self.endpoint());
        let answer = self.agent.post(&url).content_type("application/json").send(body.to_string());
        let mut answer = answer.map_err(|error| Trouble::Here(format!("{url}: {error}")))?;
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_string();
        let text = text.map_err(|error| Trouble::Here(format!("{url}: {error}")))?;
        if status == 200 {
            return serde_json::from_str(&text).map_err(|error| Trouble::Here(format!("{url}: no JSON: {error}")));
        }
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = said.get("error").or(said.get("message")).and_then(Value::as_str).unwrap_or("no reason given");
        let text = format!("{url}: status {status}: {message}");
        // What etcd cannot do now, another of its servers may do; what it will not do, none of them does.
        if status.is_server_error() || status == 408 || status == 429 {
            Err(Trouble::Here(text))
        } else {
            Err(Trouble::Everywhere(text))
        }
    }
}

enum Trouble {
    /// Of this endpoint; another may do better.
    Here(String),
    /// Of the request.
    Everywhere(String),
}

/// A key with what etcd knows of it.
pub(super) struct KeyValue {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) create_revision: u64,
    pub(super) mod_revision: u64,
    pub(super) lease: i64,
}

impl KeyValue {
    /// The value of a counter.
    pub(super) fn as_number(&self) -> Result<u64, StoreError> {
        self.value.parse().map_err(|_| StoreError::Broken(format!("etcd: {} is not ours: no number", self.key)))
    }

    fn of(answer: &Value) -> Result<KeyValue, StoreError> {
        let text = |name: &str| {
            let bytes = answer.get(name).and_then(Value::as_str).unwrap_or_default();
            let bytes = STANDARD.decode(bytes).ok();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| odd(name))
        };
        Ok(KeyValue {
            key: text("key")?,
            value: text("value")?,
            create_revision: positive(answer, "create_revision")?,
            mod_revision: positive(answer, "mod_revision")?,
            lease: number(answer, "lease")?,
        })
    }
}

/// The keys of an answer to a range request.
pub(super) fn keys(answer: &Value) -> Result<Vec<KeyValue>, StoreError> {
    answer.get("kvs").and_then(Value::as_array).into_iter().flatten().map(KeyValue::of).collect()
}

pub(super) fn first_key(answer: &Value) -> Result<Option<KeyValue>, StoreError> {
    Ok(keys(answer)?.into_iter().next())
}

/// The store's revision when it answered.
pub(super) fn revision(answer: &Value) -> Result<u64, StoreError> {
    positive(answer.get("header").unwrap_or(&Value::Null), "revision")
}

/// A number that is left out when it is 0.
pub(super) fn number(answer: &Value, name: &str) -> Result<i64, StoreError> {
    match answer.get(name) {
        None => Ok(0),
        Some(Value::String(text)) => text.parse().map_err(|_| odd(name)),
        Some(value) => value.as_i64().ok_or_else(|| odd(name)),
    }
}

pub(super) fn positive(answer: &Value, name: &str) -> Result<u64, StoreError> {
    u64::try_from(number(answer, name)?).map_err(|_| odd(name))
}

fn odd(name: &str) -> StoreError {
    StoreError::Broken(format!("etcd: '{name}' in its answer is not what it should be"))
}

/// A key or value as the gateway wants it.
pub(super) fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}
