//! Messages from other threads to a loop.
//!
//! A send is a push to a lock-free queue. The wake-up, a write to an eventfd, is made only when the loop sleeps: the loop
//! sets `sleeping` and then looks at the queue once more, the sender pushes and then looks at `sleeping`. A full fence
//! between the two steps on both sides makes it impossible that both miss the other (Dekker's pattern).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use mio::Waker;

/// A handle for sending messages to a loop. Clones send to the same loop.
pub struct Mailbox<M> {
    shared: Arc<Shared<M>>,
}

struct Shared<M> {
    queue: SegQueue<M>,
    sleeping: CachePadded<AtomicBool>,
    stop: AtomicBool,
    waker: Waker,
}

impl<M> Mailbox<M> {
    pub(crate) fn new(waker: Waker) -> Self {
        let sleeping = CachePadded::new(AtomicBool::new(false));
        let stop = AtomicBool::new(false);
        Mailbox { shared: Arc::new(Shared { queue: SegQueue::new(), sleeping, stop, waker }) }
    }

    /// Sends a message. It is never lost while the loop runs; after the loop has ended nobody will read it.
    pub fn send(&self, message: M) {
        self.shared.queue.push(message);
        self.wake();
    }

    /// Wakes the loop if it sleeps, so that it takes a turn.
    pub fn wake(&self) {
        // Pairs with the fence in `prepare_sleep`.
        fence(Ordering::SeqCst);
        // Of several senders, the one that takes the flag down makes the system call.
        if self.shared.sleeping.load(Ordering::Relaxed) && self.shared.sleeping.swap(false, Ordering::AcqRel) {
            // This fails only when the descriptor is gone, and with it the loop.
            let _ = self.shared.waker.wake();
        }
    }

    /// Messages waiting.
    pub fn len(&self) -> usize {
        self.shared.queue.len()
    }

    /// Whether no message is waiting.
    pub fn is_empty(&self) -> bool {
        self.shared.queue.is_empty()
    }

    pub(crate) fn request_stop(&self) {
        // The fence in `wake` orders this before the look at `sleeping`.
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    pub(crate) fn receive(&self) -> Option<M> {
        self.shared.queue.pop()
    }

    /// Announces that the loop will sleep; `false` when there is something to do after all.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.shared.sleeping.store(true, Ordering::Relaxed);
        // Pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        if self.shared.queue.is_empty() && !self.shared.stop.load(Ordering::Relaxed) {
            return true;
        }
        self.awake();
        false
    }

    /// The loop is awake: senders need not wake it.
    pub(crate) fn awake(&self) {
        // A sender that still sees `true` makes one wake-up too many, which does no harm.
        self.shared.sleeping.store(false, Ordering::Relaxed);
    }
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        Mailbox { shared: Arc::clone(&self.shared) }
    }
}

impl<M> std::fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("waiting", &self.len()).finish()
    }
}
