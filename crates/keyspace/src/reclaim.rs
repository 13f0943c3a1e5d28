//! Frees big values and whole databases on a thread of its own, so that no worker pays for them.

use std::any::Any;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

/// Hands garbage to the background thread, which starts with the first use.
#[derive(Default)]
pub struct Reclaimer {
    sender: OnceLock<Option<Sender<Box<dyn Any + Send>>>>,
}

/// Objects handed over and not yet freed.
static PENDING: AtomicU64 = AtomicU64::new(0);
/// Objects freed since the start.
static FREED: AtomicU64 = AtomicU64::new(0);

impl Reclaimer {
    /// Frees `garbage` soon, elsewhere.
    pub fn free<T: Send + 'static>(&self, garbage: T) {
        let sender = self.sender.get_or_init(|| {
            let (sender, receiver) = channel::<Box<dyn Any + Send>>();
            let started = std::thread::Builder::new().name("lazy_free".into()).spawn(move || {
                for garbage in receiver {
                    drop(garbage);
                    PENDING.fetch_sub(1, Ordering::Relaxed);
                    FREED.fetch_add(1, Ordering::Relaxed);
                }
            });
            started.ok().map(|_| sender)
        });
        PENDING.fetch_add(1, Ordering::Relaxed);
        // Without a thread the garbage is dropped right here.
        if sender.as_ref().is_none_or(|sender| sender.send(Box::new(garbage)).is_err()) {
            PENDING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Objects waiting to be freed (INFO `lazyfree_pending_objects`).
    pub fn pending(&self) -> u64 {
        PENDING.load(Ordering::Relaxed)
    }

    /// Objects freed in the background since the start (INFO `lazyfreed_objects`).
    pub fn freed(&self) -> u64 {
        FREED.load(Ordering::Relaxed)
    }
}
