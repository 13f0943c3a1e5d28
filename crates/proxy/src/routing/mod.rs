//! Where a command goes: decided for each row of the command table, once.
//!
//! The proxy is an allow-list. [`Route::of`] names every [`CommandId`] in one `match` without a catch-all, so a command that
//! is added to the table does not compile here before somebody has decided; a name that is not in the table goes nowhere.
//! What a route means:
//!
//! | route | where it runs |
//! |---|---|
//! | `Slot` | the group of its keys' slot, on the shared connection; keys in several slots: CROSSSLOT |
//! | `Script` | like `Slot` by its declared keys; without keys the group of [`FIXED_SLOT`] |
//! | `Blocking` | like `Slot`, on a connection of its own while it may block |
//! | `Split` | each group gets its part, the replies become one |
//! | `Broadcast` | every group, the replies become one |
//! | `Kill` | every group, on connections of its own: the shared ones may be behind what is to be killed |
//! | `Scan`, `RandomKey`, `Publish`, `PubSub` | see [`crate::cursor`] |
//! | `Fixed` | the group of [`FIXED_SLOT`]: what is equal on all |
//! | `Local` | the proxy answers |
//! | `Transaction`, `Subscribe` | change the session at the proxy, never a shared connection |
//! | `Refused` | an error that says why, or what to do instead |
//!
//! The list is `docs/proxy-commands.md`, and a test holds both equal.
//!
//! Invariant: nothing that changes the state of a server connection (SELECT, HELLO, MULTI, WATCH, SUBSCRIBE, CLIENT …,
//! ASKING, READONLY) is ever forwarded for a client; what of it is needed, the proxy sends by itself.

pub mod plan;
pub mod split;
mod table;

#[cfg(test)]
mod tests;

pub use plan::{Plan, RouteError, plan, refusal, slot_of, slot_of_call};
pub use split::{Part, Parts};

use commands::CommandId;

/// The slot whose group runs what names no key and is equal, or meant to be, on every group.
pub const FIXED_SLOT: u16 = 0;

/// How the proxy treats a command. See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// All keys are in one slot.
    Slot,
    /// A script or function: by the keys that it declares, if any.
    Script,
    /// All keys are in one slot, and the command may wait for them.
    Blocking,
    /// Each group gets the keys that it owns.
    Split(Split),
    /// Every group gets it.
    Broadcast(Merge),
    /// Every group gets it past everything that waits.
    Kill,
    /// SCAN.
    Scan,
    /// RANDOMKEY: one group, chosen by the numbers of their keys.
    RandomKey,
    /// One group, always the same.
    Fixed,
    /// The proxy answers.
    Local,
    /// MULTI and what belongs to it.
    Transaction,
    /// SUBSCRIBE and its kin.
    Subscribe,
    /// PUBLISH.
    Publish,
    /// PUBSUB.
    PubSub,
    /// Never: the text says why, or what to do instead.
    Refused(&'static str),
}

impl Route {
    /// The word for it in lists.
    pub fn name(self) -> &'static str {
        match self {
            Route::Slot => "slot",
            Route::Script => "script",
            Route::Blocking => "blocking",
            Route::Split(_) => "split",
            Route::Broadcast(_) => "broadcast",
            Route::Kill => "kill",
            Route::Scan => "scan",
            Route::RandomKey => "random key",
            Route::Fixed => "fixed",
            Route::Local => "local",
            Route::Transaction => "transaction",
            Route::Subscribe => "subscribe",
            Route::Publish => "publish",
            Route::PubSub => "pubsub",
            Route::Refused(_) => "refused",
        }
    }

    /// How a command is treated.
    #[inline]
    pub const fn of(id: CommandId) -> Route {
        table::route_of(id)
    }
}

/// A command whose keys may lie in several groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// MGET: values in the order of the request.
    Values,
    /// MSET: pairs; `+OK` when every group said so.
    Pairs,
    /// DEL, UNLINK, EXISTS, TOUCH: the numbers added up.
    Sum,
}

impl Split {
    /// Arguments that belong to one key, the key included.
    #[inline]
    pub const fn stride(self) -> usize {
        match self {
            Split::Pairs => 2,
            Split::Values | Split::Sum => 1,
        }
    }
}

/// How the replies of all groups become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// Integers, added up.
    Sum,
    /// The first reply, if none is an error; else the first error.
    AllSucceeded,
    /// Arrays, one behind the other.
    Concat,
    /// Arrays of 0 and 1 of equal length: 1 where all say 1.
    And,
    /// The first that is no error; if all are errors, the first that is not about there being nothing to do.
    OneSucceeded,
}

impl Merge {
    /// The word for it in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Merge::Sum => "sum",
            Merge::AllSucceeded => "all succeeded",
            Merge::Concat => "joined",
            Merge::And => "logical and",
            Merge::OneSucceeded => "one succeeded",
        }
    }
}
