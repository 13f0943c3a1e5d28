//! What every request passes: who is it, may it, and what became of it.
//!
//! Where no tokens are needed everyone who reaches the port may do everything, so what a web page could send there is
//! refused: changes need `Content-Type: application/json` (which a page of another origin cannot send unasked), an
//! `Origin` must be our own, and the `Host` must be a name of this machine (or another name was pointed here).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Json, RequestExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::auth::{Person, Role};
use crate::events::{Kind, Note};

use super::problem::Problem;
use super::routes::{Needs, Route};

/// Longest that a request may take, whatever it waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a change was made to, for the audit log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    pub(crate) object: String,
    pub(crate) detail: String,
}

/// A change that was made.
#[derive(Debug)]
pub(crate) struct Done<T> {
    pub(crate) status: StatusCode,
    pub(crate) body: T,
    pub(crate) audit: Audit,
}

impl<T> Done<T> {
    pub(crate) fn new(body: T, object: impl Into<String>, detail: impl Into<String>) -> Done<T> {
        Done { status: StatusCode::OK, body, audit: Audit { object: object.into(), detail: detail.into() } }
    }

    /// Something is there that was not.
    pub(crate) fn created(self) -> Done<T> {
        Done { status: StatusCode::CREATED, ..self }
    }
}

impl<T: Serialize> IntoResponse for Done<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        response.extensions_mut().insert(self.audit);
        response
    }
}

/// The error of a response, for the audit log.
#[derive(Clone, Debug)]
pub(crate) struct Failed(pub(crate) String);

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> axum::extract::FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let bytes: axum::body::Bytes = request.extract().await.map_err(|_| {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too big, or broke off", "send less than 1 MiB")
        })?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Body).map_err(|error| {
            Problem::invalid(
                format!("the body is not as expected: {error}"),
                "/api/v1/openapi.json says what it may hold",
            )
        })
    }
}

/// Lets a request through to its handler, or not, and notes what became of it.
pub(super) async fn guard(
    State((app, route)): State<(Arc<App>, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let person = match admit(&app, route, request.headers()) {
        Ok(person) => person,
        Err(problem) => {
            // Changes that were refused are told; whoever is asked to look elsewhere was not refused.
            if route.is_audited() && problem.leader.is_none() {
                note(&app, route, None, from, &Audit::default(), &problem.error);
            }
            let response = refused(problem);
            app.metrics.request(route.path, response.status().as_u16(), began.elapsed());
            return response;
        }
    };
    request.extensions_mut().insert(person.clone());
    let response = match tokio::time::timeout(PATIENCE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "it took too long and was given up",
            "look at /topology for what was done of it",
        )
        .into_response(),
    };
    if route.is_audited() {
        let audit = response.extensions().get::<Audit>().cloned().unwrap_or_default();
        let failed = response.extensions().get::<Failed>().map(|failed| failed.0.clone());
        let result = failed.unwrap_or_else(|| {
            if response.status().is_success() { "ok".into() } else { response.status().to_string() }
        });
        note(&app, route, Some(&person), from, &audit, &result);
    }
    app.metrics.request(route.path, response.status().as_u16(), began.elapsed());
    response
}

fn refused(problem: Problem) -> Response {
    let is_unknown = problem.status == StatusCode::UNAUTHORIZED;
    let mut response = problem.into_response();
    if is_unknown {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn note(app: &App, route: &Route, person: Option<&Person>, from: Option<SocketAddr>, audit: &Audit, result: &str) {
    app.events.write(Note {
        kind: Kind::Audit,
        who: person.map_or_else(|| "unknown".into(), ToString::to_string),
        from: from.map(|from| from.ip().to_string()).unwrap_or_default(),
        action: route.action,
        object: audit.object.clone(),
        detail: audit.detail.clone(),
        result: result.to_owned(),
        term: app.store.term(),
    });
}

/// Who it is, if it may.
fn admit(app: &App, route: &Route, headers: &HeaderMap) -> Result<Person, Problem> {
    if route.needs == Needs::Nothing {
        return Ok(Person { name: "anyone".into(), role: Role::Viewer });
    }
    let tokens = app.tokens();
    let person = if tokens.are_needed() {
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let person = shown.and_then(|shown| tokens.find(shown)).cloned().ok_or_else(|| {
            Problem::new(
                StatusCode::UNAUTHORIZED,
                if shown.is_some() { "the token is not known" } else { "a token is needed" },
                "send 'Authorization: Bearer TOKEN'; oxidis admin takes it from --token-file FILE",
            )
        })?;
        if !person.role.may(route.role()) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                format!("{} may not do that", person.role.name()),
                format!("it needs the role {}", route.role().name()),
            ));
        }
        person
    } else {
        is_from_here(headers)?;
        Person { name: "local".into(), role: Role::Admin }
    };
    if route.is_change() {
        is_meant(headers)?;
    }
    if route.needs_leader {
        app.store.must_lead()?;
    }
    Ok(person)
}

/// Where no tokens are needed: the name that was asked for is one of this machine.
fn is_from_here(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return Ok(());
    };
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let name = name.trim_matches(['[', ']']);
    let is_ours =
        name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if is_ours {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "this manager needs no token, so it answers to 127.0.0.1 and localhost only",
        "start it with --token-file FILE to reach it by other names",
    ))
}

/// A change was sent by a program, or by a page of ours.
fn is_meant(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let has_body =
        text(header::CONTENT_LENGTH).is_some_and(|length| length != "0") || text(header::TRANSFER_ENCODING).is_some();
    let is_json = text(header::CONTENT_TYPE).is_some_and(|kind| kind.trim_start().starts_with("application/json"));
    if has_body && !is_json {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be JSON",
            "send 'Content-Type: application/json'",
        ));
    }
    let is_other = match (text(header::ORIGIN), text(header::HOST)) {
        (Some(origin), Some(host)) => origin.split_once("://").is_none_or(|(_, place)| place != host),
        (Some(_), None) => true,
        (None, _) => false,
    };
    let is_cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    if is_other || is_cross_site {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "a page of another site may not change anything here",
            "use oxidis admin, or the page of this manager",
        ));
    }
    Ok(())
}
