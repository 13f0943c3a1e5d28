//! What a member knows, readable by any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use topology::lease::HeldLease;
use topology::{Epoch, Newness, View};

/// How the member stands with the manager.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Contact {
    /// No manager has answered yet.
    #[default]
    None,
    /// This one granted the last lease.
    Granted {
        /// Its URL.
        manager: String,
    },
    /// The last attempt came to nothing.
    Lost {
        /// Why.
        reason: String,
    },
    /// The manager does not know this member: it was removed, or never added.
    Unknown {
        /// The manager's URL.
        manager: String,
    },
}

/// What a member knows: the newest view, and until when its lease is valid.
#[derive(Debug)]
pub struct Membership {
    view: ArcSwapOption<View>,
    /// By `began`; 0 before the first lease.
    deadline_ms: AtomicU64,
    /// No view of an earlier epoch is taken.
    floor: AtomicU64,
    contact: ArcSwap<Contact>,
    began: Instant,
}

impl Membership {
    /// One without view and lease, on a clock that counts from `began`.
    pub fn new(began: Instant) -> Membership {
        Membership {
            view: ArcSwapOption::empty(),
            deadline_ms: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            contact: ArcSwap::default(),
            began,
        }
    }

    /// The newest view; none before the first.
    pub fn view(&self) -> Option<Arc<View>> {
        self.view.load_full()
    }

    /// How new the view is; the least of all without one.
    pub fn newness(&self) -> Newness {
        self.view.load().as_ref().map_or(Newness::default(), |view| view.newness())
    }

    /// Milliseconds of the clock that deadlines are counted by.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Until when the lease is valid, by [`Membership::now_ms`]; 0 before the first. Hot path: one relaxed load.
    #[inline]
    pub fn deadline_ms(&self) -> u64 {
        // Relaxed: the number stands for itself, and who reads an old one holds an earlier deadline, the safe side.
        self.deadline_ms.load(Ordering::Relaxed)
    }

    /// What is left of the lease, in milliseconds; 0 without one.
    pub fn lease_left_ms(&self) -> u64 {
        self.deadline_ms().saturating_sub(self.now_ms())
    }

    /// How the member stands with the manager.
    pub fn contact(&self) -> Arc<Contact> {
        self.contact.load_full()
    }

    /// From now on no view of an earlier epoch is taken: for a source that holds slots, a target that confirmed them, and
    /// whoever kept an epoch on disk.
    pub fn refuse_before(&self, epoch: Epoch) {
        self.floor.fetch_max(epoch.0, Ordering::Relaxed);
    }

    /// Takes a view if it is newer than what is there and not refused. For the agent, and for a member that is given a view by
    /// other ways.
    pub fn take(&self, view: View) -> Option<Arc<View>> {
        let view = Arc::new(view);
        let mut taken = false;
        self.view.rcu(|kept| {
            taken = view.epoch.0 >= self.floor.load(Ordering::Relaxed) && view.replaces(kept.as_deref());
            if taken { Some(Arc::clone(&view)) } else { kept.clone() }
        });
        taken.then_some(view)
    }

    /// Notes a lease that was asked for at that time.
    pub(crate) fn granted(&self, asked_ms: u64, lease_ms: u64) {
        let deadline = HeldLease::default().granted(asked_ms, lease_ms).deadline_ms();
        self.deadline_ms.fetch_max(deadline, Ordering::Relaxed);
    }

    pub(crate) fn set_contact(&self, contact: Contact) {
        if **self.contact.load() != contact {
            self.contact.store(Arc::new(contact));
        }
    }
}

#[cfg(test)]
mod tests {
    use topology::{SlotSpace, Term, Topology};

    use super::*;

    fn view(term: u64, epoch: u64) -> View {
        View { term: Term(term), epoch: Epoch(epoch), ..View::of(&Topology::new("c", SlotSpace::Redis)) }
    }

    #[test]
    fn only_newer_views_are_taken() {
        let membership = Membership::new(Instant::now());
        assert!(membership.take(view(1, 5)).is_some());
        assert!(membership.take(view(1, 5)).is_none());
        assert!(membership.take(view(1, 4)).is_none());
        assert!(membership.take(view(2, 6)).is_some());
        assert!(membership.take(view(1, 99)).is_none());
        membership.refuse_before(Epoch(10));
        membership.refuse_before(Epoch(3));
        assert!(membership.take(view(2, 9)).is_none());
        assert!(membership.take(view(2, 10)).is_some());
        assert_eq!(membership.newness(), view(2, 10).newness());
    }

    #[test]
    fn a_lease_counts_from_the_asking_and_never_shrinks() {
        let membership = Membership::new(Instant::now());
        assert_eq!(membership.lease_left_ms(), 0);
        membership.granted(10, 3_000);
        membership.granted(5, 3_000);
        assert_eq!(membership.deadline_ms(), 3_010);
        assert!(membership.lease_left_ms() > 0);
    }
}
