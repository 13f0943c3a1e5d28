//! Connections to backends.
//!
//! A [`Lane`] is one connection of one worker to one backend, for one protocol version and one database. All clients of the
//! worker whose sessions have this protocol and database share it: their requests follow each other in it, and its replies
//! come in the same order. So no client ever changes what another one's requests mean, replies need no translation, and
//! nobody's SELECT costs anything: a lane is opened when the first session needs it, and closed when none has for a while.

pub mod greeting;
pub mod lane;

pub use lane::{Lane, LaneState, Record, To};

use crate::measure::Histogram;
use resp::Proto;
use std::net::SocketAddr;
use std::sync::Arc;

/// What the requests in a lane have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneKind(u32);

impl LaneKind {
    /// Protocol 2, database 0: what nearly all clients use.
    pub const PLAIN: LaneKind = LaneKind(0);

    /// The kind for a session.
    pub fn new(proto: Proto, db: u32) -> LaneKind {
        LaneKind(db << 1 | u32::from(proto == Proto::Resp3))
    }

    /// The protocol version.
    pub fn proto(self) -> Proto {
        if self.0 & 1 == 1 { Proto::Resp3 } else { Proto::Resp2 }
    }

    /// The database.
    pub fn db(self) -> u32 {
        self.0 >> 1
    }
}

/// A backend as one worker sees it.
pub struct Backend {
    /// `host:port`, for texts.
    pub name: String,
    /// Where to connect to.
    pub address: SocketAddr,
    /// How long requests took that went there.
    pub histogram: Arc<Histogram>,
    /// Its shared lanes by kind and stripe; nearly always one.
    lanes: Vec<(LaneKind, u16, u32)>,
}

impl Backend {
    /// A backend without connections.
    pub fn new(name: String, address: SocketAddr) -> Backend {
        Backend { name, address, histogram: Arc::default(), lanes: Vec::new() }
    }

    /// Its lane for sessions of a kind.
    #[inline]
    pub fn lane(&self, kind: LaneKind, stripe: u16) -> Option<u32> {
        self.lanes.iter().find(|(of, number, _)| *of == kind && *number == stripe).map(|(_, _, lane)| *lane)
    }

    /// Adds a shared lane.
    pub fn add(&mut self, kind: LaneKind, stripe: u16, lane: u32) {
        self.lanes.push((kind, stripe, lane));
    }

    /// Takes a lane out.
    pub fn remove(&mut self, lane: u32) {
        self.lanes.retain(|(_, _, other)| *other != lane);
    }
}
