//! The manager's API from a program that may wait: what `oxidis admin` and `oxidis up` speak.
//!
//! A manager that does not lead names the leader; the client then asks that one, and stays with it.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::shapes::ErrorBody;

/// Leaders that are followed for one request.
const HOPS_MAX: usize = 3;
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status; none if no answer came.
    pub(crate) status: Option<u16>,
    pub(crate) error: String,
    pub(crate) hint: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        if !self.hint.is_empty() {
            write!(f, "\n  {}", self.hint)?;
        }
        Ok(())
    }
}

/// A manager.
pub(crate) struct Client {
    base: RefCell<String>,
    token: Option<String>,
    agent: ureq::Agent,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Client {
    /// A client of the manager at `url`, as `http://host:port`; each request may take `patience`.
    pub(crate) fn new(url: &str, token: Option<String>, patience: Duration) -> Client {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(patience))
            // A proxy of the environment is for the world outside.
            .proxy(None)
            .user_agent(concat!("oxidis-admin/", env!("CARGO_PKG_VERSION")))
            .build();
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        Client { base: RefCell::new(url.trim_end_matches('/').to_owned()), token, agent: config.into() }
    }

    /// Where requests go now.
    pub(crate) fn base(&self) -> String {
        self.base.borrow().clone()
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.typed(Method::Get, path, None)
    }

    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let body = serde_json::to_value(body).unwrap_or_default();
        self.typed(Method::Post, path, Some(body))
    }

    fn typed<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Value>) -> Result<T, Failure> {
        let value = self.call(method, path, body)?;
        serde_json::from_value(value).map_err(|error| Failure {
            status: None,
            error: format!("the answer of {} is not as expected: {error}", self.base()),
            hint: "is it an oxidis manager of this version?".into(),
        })
    }

    /// Sends a request to `/api/v1` and `path`; null for an answer without a body.
    pub(crate) fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Failure> {
        for _ in 0..HOPS_MAX {
            let (status, text) = self.send(method, &format!("{}/api/v1{path}", self.base()), body.as_ref())?;
            if (200..300).contains(&status) {
                return if text.trim().is_empty() {
                    Ok(Value::Null)
                } else {
                    serde_json::from_str(&text).map_err(|_| self.strange(status))
                };
            }
            let Ok(told) = serde_json::from_str::<ErrorBody>(&text) else {
                return Err(self.strange(status));
            };
            match told.leader.map(|leader| leader.trim_end_matches('/').to_owned()) {
                Some(leader) if !leader.is_empty() && leader != self.base() => *self.base.borrow_mut() = leader,
                _ => return Err(Failure { status: Some(status), error: told.error, hint: told.hint }),
            }
        }
        Err(Failure {
            status: None,
            error: "the managers name each other as the leader".into(),
            hint: "they are about to choose one: try again in some seconds".into(),
        })
    }

    fn strange(&self, status: u16) -> Failure {
        Failure {
            status: Some(status),
            error: format!("{} answered with status {status}, not as a manager does", self.base()),
            hint: "--manager URL names the manager, such as http://127.0.0.1:7080".into(),
        }
    }

    fn send(&self, method: Method, url: &str, body: Option<&Value>) -> Result<(u16, String), Failure> {
        let authorization = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let text = body.map(Value::to_string).unwrap_or_default();
        let answer = match method {
            Method::Get | Method::Delete => {
                let request = if method == Method::Get { self.agent.get(url) } else { self.agent.delete(url) };
                let request = match &authorization {
                    Some(authorization) => request.header("authorization", authorization),
                    None => request,
                };
                request.call()
            }
            Method::Post | Method::Put => {
                let request = if method == Method::Post { self.agent.post(url) } else { self.agent.put(url) };
                let request = match &authorization {
                    Some(authorization) => request.header("authorization", authorization),
                    None => request,
                };
                request.header("content-type", "application/json").send(text)
            }
        };
        let unreachable = |error: ureq::Error| Failure {
            status: None,
            error: format!("cannot ask the manager at {}: {error}", self.base()),
            hint: "--manager URL (or OXIDIS_MANAGER) names it; 'oxidis up' starts a whole cluster, 'oxidis manager' \
                   a manager alone"
                .into(),
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().map_err(unreachable)?;
        Ok((status, text))
    }
}
