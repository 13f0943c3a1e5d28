//! What a cluster is and how it changes, without sockets to its members: those belong to the manager.
//!
//! - [`slots`]: sets of slots and their text form.
//! - [`model`]: the record of a cluster: groups, servers, proxies, moves, term and epoch.
//! - [`view`]: what members are told, and the table they look slots up in.
//! - [`change`]: every way the record changes, checked.
//! - [`plan`]: what to assign or move, as pure functions.
//! - [`driver`]: what is to be done next with a move, as a state machine.
//! - [`lease`]: until when members may act, as arithmetic.
//! - [`coordinator`]: the store that managers share: one file, or etcd.
//! - [`wire`]: what members, servers and managers say to each other.
//!
//! Knows nothing of keys, servers, proxies or the manager's interface.
#![forbid(unsafe_code)]

pub mod change;
pub mod coordinator;
pub mod driver;
pub mod lease;
pub mod model;
pub mod plan;
pub mod slots;
pub mod view;
pub mod wire;

pub use change::{Change, NewMove, Refused, RefusedKind};
pub use coordinator::{Coordinator, Leadership, StoreError};
pub use model::{Epoch, Group, GroupId, Move, MoveId, Newness, Proxy, Role, Server, Stage, Term, Topology};
pub use slots::{SlotSet, SlotSpace};
pub use view::{SlotTable, View, ViewMove};
