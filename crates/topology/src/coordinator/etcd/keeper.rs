//! The renewal of a leader's lease: a thread that does nothing else and that nothing else blocks.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

use super::gateway::{Gateway, number};
use super::*;
use crate::lease;

/// Renews a lease until it is dropped.
pub(super) struct Keeper {
    /// Dropped to stop the thread. Behind a lock only because a channel's end is not shared otherwise.
    stop: Mutex<Option<Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    pub(super) fn start(options: &EtcdOptions, lease: i64, state: Arc<LeadershipState>) -> Result<Keeper, StoreError> {
        let (stop, stopped) = channel();
        let every = Duration::from_secs(options.lease_seconds.max(1)) / 3;
        // Endpoints of its own; two may hang before the next renewal is due.
        let gateway = Gateway::new(&options.endpoints, (every / 2).min(options.request_limit));
        let run = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if !renew(&gateway, lease, &state) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("etcd-lease".to_string()).spawn(run);
        let thread = thread.map_err(|error| StoreError::Broken(format!("cannot start a thread: {error}")))?;
        Ok(Keeper { stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It is in a request at most as long as one may take.
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Renews once; whether there is still something to renew.
fn renew(gateway: &Gateway, lease: i64, state: &LeadershipState) -> bool {
    let asked_ms = state.now_ms();
    let Ok(answer) = gateway.call("lease/keepalive", &json!({ "ID": lease.to_string() })) else { return true };
    let result = answer.get("result").unwrap_or(&answer);
    // A lease that etcd has no more is answered without a time.
    match number(result, "TTL") {
        Ok(seconds) if seconds > 0 => {
            state.deadline_ms.fetch_max(deadline_ms(asked_ms, seconds), Ordering::Relaxed);
            true
        }
        Ok(_) => {
            state.lost.store(true, Ordering::Relaxed);
            false
        }
        Err(_) => true,
    }
}

/// Until when a lease surely holds that was asked for then: etcd counts from later, but by its own clock.
pub(super) fn deadline_ms(asked_ms: u64, seconds: i64) -> u64 {
    let lease_ms = u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000);
    asked_ms.saturating_add(lease_ms.saturating_sub(lease::margin_ms(lease_ms)))
}
