//! What goes wrong at the API: a status, what is wrong, and what to do. Nothing of the inside is told.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use topology::change::{Refused, RefusedKind};

use crate::shapes::ErrorBody;

use super::guard::Failed;

/// An answer that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
    pub(crate) hint: String,
    /// The leading manager, where the answer is to ask that one.
    pub(crate) leader: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { status, error: error.into(), hint: hint.into(), leader: None }
    }

    /// The request makes no sense.
    pub(crate) fn invalid(error: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, error, hint)
    }

    /// What it names is not there.
    pub(crate) fn missing(error: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, error, hint)
    }

    /// It cannot be as things are.
    pub(crate) fn conflict(error: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, error, hint)
    }

    /// Somebody else did not do their part.
    pub(crate) fn upstream(error: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_GATEWAY, error, hint)
    }

    /// This manager cannot do it now.
    pub(crate) fn unavailable(error: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, error, hint)
    }

    /// Another manager leads, or none does (then the URL is empty).
    pub(crate) fn not_leader(leader: &str) -> Problem {
        let hint = if leader.is_empty() {
            "no manager leads right now; one will in some seconds: try again".to_owned()
        } else {
            format!("ask {leader}")
        };
        Problem { leader: Some(leader.to_owned()), ..Problem::conflict("this manager does not lead", hint) }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let status = match refused.kind {
            RefusedKind::Missing => StatusCode::NOT_FOUND,
            RefusedKind::Conflict => StatusCode::CONFLICT,
            RefusedKind::Invalid => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, refused.error, refused.hint)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let failed = Failed(self.error.clone());
        let body = ErrorBody { error: self.error, hint: self.hint, leader: self.leader };
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(failed);
        response
    }
}
