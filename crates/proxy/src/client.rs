//! What the proxy knows of one client. Small: an idle client is one of these and a descriptor.

use std::net::SocketAddr;
use std::sync::Arc;

use commands::CommandId;
use net::ConnId;
use resp::{ParseState, Proto};
use server::acl::User;

use crate::backend::LaneKind;
use crate::join::Join;
use crate::order::Order;

/// State bits of a session. With none of them, its plain requests take the fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State(u16);

impl State {
    /// It has not logged in, and must.
    pub const UNAUTHENTICATED: State = State(1);
    /// Its user may not do everything: each command is checked.
    pub const RESTRICTED: State = State(1 << 1);
    /// To be closed when all is answered; no more input is used.
    pub const CLOSING: State = State(1 << 2);
    /// Its requests go to a connection of its own, or are queued: the module for sessions decides on each.
    pub const PINNED: State = State(1 << 3);
    /// Some of its replies are not to be sent (CLIENT REPLY).
    pub const MUTED: State = State(1 << 4);
    /// It listens to channels.
    pub const SUBSCRIBED: State = State(1 << 5);

    /// Whether all bits of `other` are set.
    #[inline]
    pub fn has(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets bits.
    pub fn insert(&mut self, other: State) {
        self.0 |= other.0;
    }

    /// Clears bits.
    pub fn remove(&mut self, other: State) {
        self.0 &= !other.0;
    }

    /// Whether plain requests may take the fast path; rights are looked at there, too.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & !State::RESTRICTED.0 == 0
    }
}

/// Why a client is not read from. It goes on when no reason is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Too many of its requests are unanswered.
    InFlight,
    /// Too much is under way to a backend.
    Lane,
    /// Its next requests may overtake earlier ones until these are answered.
    Drain,
    /// It does not read its replies.
    Output,
    /// It waits for something of its own: a blocking command, a delay.
    Own,
}

impl Pause {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Reasons for a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pauses(u8);

impl Pauses {
    /// Whether there is one.
    #[inline]
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// Whether this one is there.
    pub fn has(self, reason: Pause) -> bool {
        self.0 & reason.bit() != 0
    }

    /// Adds one.
    pub fn add(&mut self, reason: Pause) {
        self.0 |= reason.bit();
    }

    /// Takes one away.
    pub fn remove(&mut self, reason: Pause) {
        self.0 &= !reason.bit();
    }
}

/// In [`Client::first_chunk`]: nothing was given to the client in this turn.
pub const NO_CHUNK: u32 = u32::MAX;

/// One client.
pub struct Client {
    /// Its connection.
    pub conn: ConnId,
    /// Its number, never used twice.
    pub id: u64,
    /// Tells it from those that had its place before.
    pub serial: u32,
    /// State bits.
    pub state: State,
    /// Why it is not read from.
    pub pauses: Pauses,
    /// Protocol and database: which lanes it uses.
    pub kind: LaneKind,
    /// Where the parser stands in a partial request.
    pub parse: ParseState,
    /// Its unanswered requests.
    pub order: Order<Join>,
    /// The version of the slot map by which its unanswered requests were sent.
    pub map_version: u64,
    /// What it gets in this turn: first and last piece.
    pub first_chunk: u32,
    /// See [`Client::first_chunk`].
    pub last_chunk: u32,
    /// Last command, for CLIENT LIST.
    pub last_command: Option<CommandId>,
    /// Unix seconds of the last command.
    pub last_active_s: u32,
    /// Unix seconds of the connect.
    pub connected_s: u32,
    /// Since when its output is above the soft limit, Unix seconds; 0: it is not.
    pub soft_limit_since_s: u32,
    /// Requests refused so far while it had not logged in.
    pub refused: u16,
    /// The version of the users by which its rights were read; 0: not yet.
    pub rights_version: u32,
    /// Its user; `None`: the default user.
    pub user: Option<Arc<User>>,
    /// Address of the peer; `None` for the Unix socket.
    pub address: Option<SocketAddr>,
    /// What most clients never have.
    pub extra: Option<Box<Extra>>,
}

/// The rare part of a session.
#[derive(Default)]
pub struct Extra {
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO LIB-NAME.
    pub lib_name: Vec<u8>,
    /// CLIENT SETINFO LIB-VER.
    pub lib_version: Vec<u8>,
    /// Transactions, blocking commands, subscriptions.
    pub pinned: Option<Box<crate::session::Pinned>>,
}

impl Client {
    /// A client that has just connected.
    pub fn new(conn: ConnId, id: u64, serial: u32, address: Option<SocketAddr>, now_s: u32) -> Client {
        Client {
            conn,
            id,
            serial,
            state: State::default(),
            pauses: Pauses::default(),
            kind: LaneKind::PLAIN,
            parse: ParseState::new(),
            order: Order::default(),
            map_version: 0,
            first_chunk: NO_CHUNK,
            last_chunk: NO_CHUNK,
            last_command: None,
            last_active_s: now_s,
            connected_s: now_s,
            soft_limit_since_s: 0,
            refused: 0,
            rights_version: 0,
            user: None,
            address,
            extra: None,
        }
    }

    /// The protocol version of its replies.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.kind.proto()
    }

    /// Its database.
    pub fn db(&self) -> u32 {
        self.kind.db()
    }

    /// The rare part, made when missing.
    pub fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The name of its user.
    pub fn user_name(&self) -> &[u8] {
        self.user.as_ref().map_or(server::acl::DEFAULT_USER, |user| &user.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_is_small() {
        assert!(size_of::<Client>() <= 256, "{} bytes", size_of::<Client>());
    }

    #[test]
    fn a_pause_ends_with_its_last_reason() {
        let mut pauses = Pauses::default();
        pauses.add(Pause::Drain);
        pauses.add(Pause::Output);
        pauses.remove(Pause::Drain);
        assert!(pauses.any() && pauses.has(Pause::Output) && !pauses.has(Pause::Drain));
        pauses.remove(Pause::Output);
        assert!(!pauses.any());
    }
}
