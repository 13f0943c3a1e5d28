//! A member of a cluster (a server, a proxy): a thread that holds the member's lease at the manager and receives views.
//!
//! ```text
//! agent's thread ── POST …/lease ──▶ manager (the one that leads; the others name it)
//!       │  ◀── lease, and the view when there is a newer one
//!       ▼
//! Membership: ArcSwap of the view, atomic deadline ◀── read by any thread
//! ```
//!
//! Start reading at [`Agent`] and [`Membership`]. Knows nothing of what a member does with a view.
//!
//! A view is taken before the lease that came with it is: whoever acts by a lease acts by the view it was given for.
#![forbid(unsafe_code)]

mod agent;
mod membership;

pub use agent::{Agent, Settings};
pub use membership::{Contact, Membership};
