//! Which server has which slots, from CLUSTER SLOTS. A proxy answers it as a cluster does.

use std::fmt;

use resp::Value;

use crate::output::{Outcome, text};
use crate::session::Session;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Name or address.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Slots from first to last, and who has them.
pub(crate) struct Range {
    /// First slot.
    pub(crate) first: i64,
    /// Last slot, included.
    pub(crate) last: i64,
    /// The primary.
    pub(crate) primary: Place,
    /// How many replicas it has.
    pub(crate) replicas: usize,
}

/// All ranges; `None` if the server is not part of a cluster.
pub(crate) fn ranges(session: &mut Session) -> Outcome<Option<Vec<Range>>> {
    let Value::Array(rows) = session.call(&["CLUSTER", "SLOTS"])? else {
        return Ok(None);
    };
    let here = session.options.server.host.clone();
    let range = |row: &Value| match row.as_elements()? {
        [Value::Int(first), Value::Int(last), primary, replicas @ ..] => {
            let primary = primary.as_elements()?;
            let host = text(primary.first()?.as_bytes().unwrap_or_default()).into_owned();
            let Value::Int(port) = primary.get(1)? else {
                return None;
            };
            // Redis: no name means the one that was connected to.
            let host = if matches!(host.as_str(), "" | "?") { here.clone() } else { host };
            let primary = Place { host, port: u16::try_from(*port).ok()? };
            Some(Range { first: *first, last: *last, primary, replicas: replicas.len() })
        }
        _ => None,
    };
    Ok(Some(rows.iter().filter_map(range).collect()))
}

/// Every primary once, in the order of slots; none if the server is not part of a cluster.
pub(crate) fn primaries(session: &mut Session) -> Outcome<Vec<Place>> {
    let mut ranges = ranges(session)?.unwrap_or_default();
    ranges.sort_unstable_by_key(|range| range.first);
    let mut places = Vec::new();
    for range in ranges {
        if !places.contains(&range.primary) {
            places.push(range.primary);
        }
    }
    Ok(places)
}
