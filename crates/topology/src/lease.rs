//! Leases, as arithmetic on clocks that are handed in.
//!
//! ```text
//! member    asks at t ──────────────────────────▶ valid until t + lease      (its clock)
//!                \                       ▲
//! manager         arrives at a ──grants──┘  ───────────▶ over at a + lease + margin   (its clock)
//! ```
//!
//! `a` is never before `t`, so were the clocks equally fast the member's lease would always end first. The margin covers
//! clocks that differ: as long as each is right to [`CLOCK_ERROR_PERCENT`], whoever sees a member's lease run out at the
//! manager may rely on it that the member knows.

/// How wrong a clock's rate may be, in percent of true time.
pub const CLOCK_ERROR_PERCENT: u64 = 1;

/// A member's side: until when it may act by its lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeldLease {
    /// By the member's clock; 0 for none.
    deadline_ms: u64,
}

impl HeldLease {
    /// The lease after a grant: `asked_at_ms` is the member's clock before the request left. A late answer never shortens it.
    #[must_use]
    pub fn granted(self, asked_at_ms: u64, lease_ms: u64) -> HeldLease {
        HeldLease { deadline_ms: self.deadline_ms.max(asked_at_ms.saturating_add(lease_ms)) }
    }

    /// Until when it is valid, by the member's clock; 0 for never.
    pub const fn deadline_ms(self) -> u64 {
        self.deadline_ms
    }

    /// Whether the member may act.
    pub const fn is_valid(self, now_ms: u64) -> bool {
        now_ms < self.deadline_ms
    }
}

/// The manager's side: until when it must take it that the member acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrantedLease {
    over_ms: u64,
}

impl GrantedLease {
    /// The lease that is granted to a request which arrived at `arrived_at_ms` by the manager's clock. To be noted before the
    /// answer leaves.
    pub const fn new(arrived_at_ms: u64, lease_ms: u64) -> GrantedLease {
        GrantedLease { over_ms: arrived_at_ms.saturating_add(lease_ms).saturating_add(margin_ms(lease_ms)) }
    }

    /// With a further request of the same member. A shorter lease does not take back the longer one before.
    #[must_use]
    pub fn renewed(self, arrived_at_ms: u64, lease_ms: u64) -> GrantedLease {
        GrantedLease { over_ms: self.over_ms.max(GrantedLease::new(arrived_at_ms, lease_ms).over_ms) }
    }

    /// When it is over, by the manager's clock.
    pub const fn over_ms(self) -> u64 {
        self.over_ms
    }

    /// Whether the member surely holds it no more.
    pub const fn is_over(self, now_ms: u64) -> bool {
        now_ms > self.over_ms
    }
}

/// What the manager waits beyond the lease: for a clock that is too slow at the member and one too fast at the manager, and
/// for parts of milliseconds.
pub const fn margin_ms(lease_ms: u64) -> u64 {
    // (1 + e) / (1 - e) is less than 1 + 2.5 e for small e.
    lease_ms.saturating_mul(CLOCK_ERROR_PERCENT).saturating_mul(5).div_ceil(200).saturating_add(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A clock that is wrong by parts of ten thousand, and begins anywhere.
    #[derive(Clone, Copy, Debug)]
    struct Clock {
        rate: u64,
        start: u64,
    }

    impl Clock {
        fn at(self, true_us: u64) -> u64 {
            self.start + true_us * self.rate / 10_000 / 1_000
        }
    }

    fn clock() -> impl Strategy<Value = Clock> {
        (9_900u64..=10_100, 0u64..1_000_000).prop_map(|(rate, start)| Clock { rate, start })
    }

    /// Requests: how long after the one before (µs), how long on the way, how long back; `None` is lost.
    fn requests() -> impl Strategy<Value = Vec<(u64, Option<u64>, Option<u64>)>> {
        let delay = || proptest::option::weighted(0.8, prop_oneof![0u64..2_000, 0u64..5_000_000]);
        proptest::collection::vec((0u64..2_000_000, delay(), delay()), 1..30)
    }

    proptest! {
        #[test]
        fn no_member_acts_when_the_manager_sees_its_lease_over(
            member in clock(), manager in clock(), requests in requests(), lease_ms in 300u64..20_000,
        ) {
            let mut events = Vec::new();
            let mut now = 0;
            for (at, &(after, way, back)) in requests.iter().enumerate() {
                now += after;
                if let Some(way) = way {
                    events.push((now + way, at, false, now));
                    if let Some(back) = back {
                        events.push((now + way + back, at, true, now));
                    }
                }
            }
            events.sort_unstable();
            let mut held = HeldLease::default();
            let mut granted: Option<GrantedLease> = None;
            let mut probe = 0;
            let end = now + 30_000_000;
            for (time, _, is_answer, asked) in events.into_iter().chain([(end, 0, false, 0)]) {
                // Looked at every few milliseconds until the next event.
                while probe < time {
                    let valid = held.is_valid(member.at(probe));
                    let over = granted.is_none_or(|granted| granted.is_over(manager.at(probe)));
                    prop_assert!(!(valid && over), "at {} us: {:?} {:?}", probe, held, granted);
                    probe += 3_137;
                }
                if is_answer {
                    held = held.granted(member.at(asked), lease_ms);
                } else if time < end {
                    let arrived = manager.at(time);
                    granted = Some(granted.map_or(GrantedLease::new(arrived, lease_ms), |one| one.renewed(arrived, lease_ms)));
                }
            }
            prop_assert!(!held.is_valid(member.at(end)));
        }
    }

    #[test]
    fn a_lease_counts_from_the_asking() {
        let held = HeldLease::default();
        assert!(!held.is_valid(0));
        let held = held.granted(1_000, 3_000);
        assert!(held.is_valid(3_999) && !held.is_valid(4_000));
        assert_eq!(held.granted(500, 3_000), held);
        let granted = GrantedLease::new(1_000, 3_000);
        assert!(!granted.is_over(4_050) && granted.is_over(4_100));
    }
}
