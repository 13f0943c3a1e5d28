//! Mailboxes, timers and the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::service::{Job, Lines, Running};
use crate::*;

#[test]
fn no_message_is_lost_and_senders_keep_their_order() {
    const SENDERS: usize = 4;
    const MESSAGES: u64 = 50_000;
    let running = Running::start(Lines::new());
    let received: Arc<[AtomicU64; SENDERS]> = Arc::default();
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mailbox = running.handle.mailbox().clone();
            let received = Arc::clone(&received);
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    let received = Arc::clone(&received);
                    mailbox.send(Job(Box::new(move |_, _, _| {
                        assert_eq!(received[sender].fetch_add(1, Ordering::Relaxed), message);
                    })));
                    // Gives the loop a chance to fall asleep in between.
                    if message % 1000 == 0 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
            });
        }
    });
    let deadline = Instant::now() + Duration::from_secs(20);
    while received.iter().any(|count| count.load(Ordering::Relaxed) < MESSAGES) {
        assert!(Instant::now() < deadline, "{received:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_single_message_wakes_a_sleeping_loop() {
    let running = Running::start(Lines::new());
    for _ in 0..5_000 {
        running.ask(|_, _, _| ());
    }
}

#[test]
fn the_manual_clock_is_what_services_see() {
    struct Nothing(Vec<u64>, ManualClock);
    impl Service for Nothing {
        type State = ();
        type Message = ();
        fn accepted(&mut self, _: &mut Context<()>, _: ConnId, _: &Peer) -> Result<(), Vec<u8>> {
            Ok(())
        }
        fn data(&mut self, _: &mut Context<()>, _: ConnId, _: &mut (), _: &[u8], _: &mut Vec<u8>) -> Flow {
            Flow { consumed: 0, then: Then::CloseNow }
        }
        fn closed(&mut self, _: &mut Context<()>, _: ConnId, (): (), _: CloseReason) {}
        fn message(&mut self, _: &mut Context<()>, _: &mut Conns<Self>, (): ()) {}
        fn turn(&mut self, cx: &mut Context<()>, _: &mut Conns<Self>) -> Option<Duration> {
            self.0.push(cx.now_ms());
            self.1.advance(Duration::from_millis(250));
            if self.0.len() == 3 {
                cx.stop();
            }
            Some(Duration::ZERO)
        }
    }
    let clock = ManualClock::new(7_000_000);
    let start = clock.now();
    let service = Builder::new().unwrap().clock(clock.clone()).run(Nothing(Vec::new(), clock.clone())).unwrap();
    assert_eq!(service.0, [7000, 7250, 7500]);
    assert_eq!(clock.now() - start, Duration::from_millis(750));
}

#[test]
fn a_hundred_thousand_timers() {
    let start = Instant::now();
    let mut timers = Timers::new();
    let at = |ms: u64| start + Duration::from_millis(ms);
    for key in 0..100_000_u64 {
        timers.set(key, at(key * 7919 % 100_000));
    }
    for key in (0..100_000).step_by(2) {
        timers.cancel(key);
    }
    let mut due = 0;
    while timers.pop_due(at(49_999)).is_some() {
        due += 1;
    }
    assert_eq!((due, timers.len()), (25_000, 25_000));
    assert_eq!(timers.next_in(at(60_000)), Some(Duration::ZERO));
}

proptest! {
    #[test]
    fn timers_act_like_a_sorted_list(steps in proptest::collection::vec((0_u8..4, 0_u8..10, 0_u64..50), 0..100)) {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut timers = Timers::new();
        let mut model: Vec<(Instant, u8)> = Vec::new();
        for (step, key, ms) in steps {
            match step {
                0 | 1 => {
                    timers.set(key, at(ms));
                    model.retain(|&(_, other)| other != key);
                    model.push((at(ms), key));
                    model.sort();
                }
                2 => {
                    let known = model.iter().find(|(_, other)| *other == key).map(|&(when, _)| when);
                    model.retain(|&(_, other)| other != key);
                    prop_assert_eq!(timers.cancel(key), known);
                }
                _ => {
                    let due = model.first().copied().filter(|&(when, _)| when <= at(ms));
                    if due.is_some() {
                        model.remove(0);
                    }
                    prop_assert_eq!(timers.pop_due(at(ms)), due.map(|(_, key)| key));
                }
            }
            prop_assert_eq!(timers.len(), model.len());
            prop_assert_eq!(timers.next_in(start), model.first().map(|(when, _)| *when - start));
        }
    }
}
