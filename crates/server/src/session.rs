//! What the server knows of one client. Small: an idle client is one of these and a descriptor.

use crate::acl::User;
use crate::tracking::ClientTracking;
use commands::CommandId;
use keyspace::DbIndex;
use keyspace::waiters::{Waiter, WatchFlag};
use resp::{OwnedArgs, ParseState, Proto};
use std::net::SocketAddr;
use std::sync::Arc;

/// Number of a client, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(pub u64);

/// State bits of a session. With none of them set, commands may take the fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State(u32);

#[allow(missing_docs)]
impl State {
    pub const UNAUTHENTICATED: State = State(1 << 0);
    pub const IN_MULTI: State = State(1 << 1);
    pub const SUBSCRIBED: State = State(1 << 2);
    pub const BLOCKED: State = State(1 << 3);
    pub const MONITOR: State = State(1 << 4);
    pub const NO_TOUCH: State = State(1 << 5);
    pub const NO_EVICT: State = State(1 << 6);
    pub const REPLY_OFF: State = State(1 << 7);
    pub const REPLY_SKIP: State = State(1 << 8);
    pub const REPLY_SKIP_NEXT: State = State(1 << 9);
    pub const CLOSE_AFTER: State = State(1 << 10);
    pub const OFFLOADED: State = State(1 << 11);
    pub const PAUSED: State = State(1 << 12);
    pub const WATCHING: State = State(1 << 13);
    /// Its user may not do everything: each command is checked.
    pub const RESTRICTED: State = State(1 << 14);
    /// Its user was removed; it is about to be closed.
    pub const USER_GONE: State = State(1 << 15);
    /// CLIENT TRACKING is on.
    pub const TRACKING: State = State(1 << 16);
    /// It follows us.
    pub const REPLICA: State = State(1 << 17);
    /// READONLY: it reads slots that this server keeps for another one.
    pub const READS_REPLICA: State = State(1 << 18);
    /// It is a proxy of the cluster.
    pub const PROXY: State = State(1 << 19);

    /// Whether all bits of `other` are set.
    #[inline]
    pub fn has(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those of the bits of `other` that are set.
    #[must_use]
    pub fn only(self, other: State) -> State {
        State(self.0 & other.0)
    }

    /// Sets bits.
    pub fn insert(&mut self, other: State) {
        self.0 |= other.0;
    }

    /// Clears bits.
    pub fn remove(&mut self, other: State) {
        self.0 &= !other.0;
    }

    /// Whether commands of this session need more than the fast path looks at.
    #[inline]
    pub fn is_plain(self) -> bool {
        // Watching alone changes nothing until EXEC; eviction protection neither. Rights are looked at there, too.
        // So are the slots that a cluster gives to this server.
        let looked_at =
            State::WATCHING.0 | State::NO_EVICT.0 | State::RESTRICTED.0 | State::READS_REPLICA.0 | State::PROXY.0;
        self.0 & !looked_at == 0
    }
}

/// One client.
pub struct Session {
    /// Its number.
    pub id: ClientId,
    /// Selected database.
    pub db: DbIndex,
    /// Protocol of replies.
    pub proto: Proto,
    /// State bits.
    pub state: State,
    /// Where the parser stands in a partial request.
    pub parse: ParseState,
    /// Last command, for CLIENT LIST.
    pub last_command: Option<CommandId>,
    /// Unix seconds of the last command.
    pub last_active_s: u32,
    /// Unix seconds of the connect.
    pub connected_s: u32,
    /// Since when its output is above the soft limit, Unix seconds; 0: it is not.
    pub soft_limit_since_s: u32,
    /// Requests refused so far while it had not authenticated.
    pub refused: u16,
    /// The version of the users by which its rights were read; 0: not yet.
    pub rights_version: u32,
    /// Its user; `None`: the default user.
    pub user: Option<Arc<User>>,
    /// Where the last of its commands that was recorded ends in the journal.
    pub written_to: u64,
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
    /// Queued commands of MULTI.
    pub multi: Option<Multi>,
    /// Watched keys.
    pub watch: Option<Watch>,
    /// What the client has said of itself as a replica.
    pub replica: Option<Box<crate::replication::primary::Claimed>>,
    /// When the WAIT or WAITAOF that is being waited on gives up, Unix ms; `i64::MAX` never.
    pub wait_until_ms: Option<i64>,
    /// The blocking command that waits.
    pub blocked: Option<Blocked>,
    /// Channels subscribed to, in order.
    pub channels: Vec<Arc<[u8]>>,
    /// Patterns subscribed to, in order.
    pub patterns: Vec<Arc<[u8]>>,
    /// Shard channels subscribed to, in order.
    pub shard_channels: Vec<Arc<[u8]>>,
    /// CLIENT TRACKING.
    pub tracking: Option<Box<ClientTracking>>,
    /// The move whose slots the connection brings.
    pub importing: Option<u64>,
}

/// Commands queued by MULTI.
#[derive(Default)]
pub struct Multi {
    /// In order.
    pub queued: Vec<(CommandId, OwnedArgs)>,
    /// Bytes of their arguments.
    pub bytes: usize,
    /// An error came while queueing: EXEC answers EXECABORT.
    pub aborted: bool,
}

/// Keys under WATCH.
pub struct Watch {
    /// Set when one of them changes.
    pub flag: WatchFlag,
    /// Database, key, and whether it was already past its expiry when watched.
    pub keys: Vec<(DbIndex, Vec<u8>, bool)>,
}

/// A blocking command that waits for keys.
pub struct Blocked {
    /// Its place in the keys' queues.
    pub waiter: Arc<Waiter>,
    /// The keys.
    pub keys: Vec<Vec<u8>>,
    /// Answered when time is over.
    pub timeout_reply: commands::ctx::TimeoutReply,
    /// Unix ms of the timeout; `None`: never.
    pub deadline_ms: Option<i64>,
}

impl Session {
    /// A client that has just connected.
    pub fn new(id: ClientId, now_s: u32, authenticated: bool, address: Option<SocketAddr>) -> Session {
        let mut state = State::default();
        if !authenticated {
            state.insert(State::UNAUTHENTICATED);
        }
        Session {
            id,
            db: DbIndex(0),
            proto: Proto::Resp2,
            state,
            parse: ParseState::default(),
            last_command: None,
            last_active_s: now_s,
            connected_s: now_s,
            soft_limit_since_s: 0,
            refused: 0,
            rights_version: 0,
            user: None,
            written_to: 0,
            address,
            extra: None,
        }
    }

    /// The rare part, made when missing.
    pub fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The open MULTI, if any.
    pub fn multi_mut(&mut self) -> Option<&mut Multi> {
        self.extra.as_mut()?.multi.as_mut()
    }

    /// Bytes of memory of the session, without the loop's buffers. An estimate: containers count their elements.
    pub fn used_bytes(&self) -> usize {
        let extra = self.extra.as_ref().map_or(0, |extra| {
            let names = extra.channels.len() + extra.patterns.len() + extra.shard_channels.len();
            let watched =
                extra.watch.as_ref().map_or(0, |watch| watch.keys.iter().map(|(_, key, _)| key.len() + 48).sum());
            let queued = extra.multi.as_ref().map_or(0, |multi| multi.bytes + multi.queued.len() * 64);
            size_of::<Extra>()
                + extra.name.len()
                + extra.lib_name.len()
                + extra.lib_version.len()
                + names * 32
                + watched
                + queued
        });
        size_of::<Session>() + extra
    }

    /// Whether the client connects from this machine.
    pub fn is_local(&self) -> bool {
        self.address.is_none_or(|address| address.ip().to_canonical().is_loopback())
    }

    /// How many channels, patterns and shard channels.
    pub fn subscriptions(&self) -> (usize, usize, usize) {
        self.extra
            .as_ref()
            .map_or((0, 0, 0), |extra| (extra.channels.len(), extra.patterns.len(), extra.shard_channels.len()))
    }
}

/// Address texts of a client as CLIENT LIST prints them.
pub fn address_text(address: Option<SocketAddr>, unix_path: &str) -> String {
    match address {
        Some(SocketAddr::V4(v4)) => format!("{}:{}", v4.ip(), v4.port()),
        Some(SocketAddr::V6(v6)) => format!("[{}]:{}", v6.ip(), v6.port()),
        None => format!("{unix_path}:0"),
    }
}
