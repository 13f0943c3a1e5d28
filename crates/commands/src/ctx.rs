//! What a command function gets.

use keyspace::DbView;
use resp::Reply;

/// Settings of the server that commands follow; one copy a worker, renewed when the config changes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `hash-max-listpack-*`.
    pub hash: keyspace::hash::Limits,
    /// `set-max-intset-entries`, `set-max-listpack-*`.
    pub set: keyspace::set::Limits,
    /// `zset-max-listpack-*`.
    pub zset: keyspace::zset::ZSetLimits,
    /// `list-max-listpack-size` and DEBUG QUICKLIST-PACKED-THRESHOLD.
    pub list: keyspace::list::ListLimits,
    /// `hll-sparse-max-bytes`: the size up to which a HyperLogLog stays sparse, with its header.
    pub hll_sparse_max_bytes: usize,
    /// `stream-node-max-*`.
    pub stream: keyspace::stream::StreamLimits,
    /// `proto-max-bulk-len`: the longest string a command may make.
    pub max_bulk: usize,
    /// `maxmemory-policy`.
    pub policy: keyspace::eviction::Policy,
}

/// What a blocking command asks for when it found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Keys to wait for, as argument indices.
    pub keys: std::ops::Range<usize>,
    /// Unix time in ms at which it gives up; `None`: never.
    pub deadline_ms: Option<i64>,
    /// What is answered then.
    pub timeout_reply: TimeoutReply,
    /// Arguments, by index, that are to be others when the command is run again.
    pub replaced: Vec<(usize, Vec<u8>)>,
}

/// The reply of a blocking command whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReply {
    /// `*-1` (RESP3 `_`).
    NullArray,
    /// `$-1` (RESP3 `_`).
    Null,
}

/// The world as a command sees it: its database under locks, the reply to write, the settings.
///
/// The fields are apart so that a value borrowed from `db` can be written to `out`.
pub struct Ctx<'a> {
    /// The selected database; the slots of the command's keys are locked.
    pub db: DbView<'a>,
    /// Where the reply goes.
    pub out: &'a mut Reply,
    /// The server's settings.
    pub settings: &'a Settings,
    /// The command may ask to be blocked (not inside MULTI or a script).
    pub may_block: bool,
    /// Set by a blocking command instead of a reply.
    pub block: Option<Block>,
}

impl Ctx<'_> {
    /// Asks the executor to block the client. The function returns `Ok` right after, without a reply.
    pub fn wait_for(&mut self, block: Block) {
        debug_assert!(self.may_block);
        self.block = Some(block);
    }
}
