//! The workers' part: writing at the end of a turn, and replies that are held back until what they acknowledge is safe.

use super::{HOLD_MAX, HOLD_MAX_WRITING};
use crate::worker::Worker;
use net::{ConnId, Conns, Context};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a worker waits for another thread that is writing.
const WRITER_WAIT: Duration = Duration::from_micros(500);

/// Connections whose replies are held back, by the journal offset that they wait for.
#[derive(Default)]
pub(crate) struct Held {
    queue: VecDeque<(u64, ConnId, Instant)>,
    /// Up to where this worker has seen to it that the log is written.
    settled: u64,
}

impl Worker {
    /// After the commands of a connection, some of which were recorded: holds its replies back.
    #[inline(never)]
    pub(crate) fn hold_replies(&mut self, cx: &mut Context<crate::worker::Message>, id: ConnId, upto: u64) {
        if self.shared.aof.released() < upto {
            cx.hold_output();
            self.held.queue.push_back((upto, id, cx.now()));
        }
    }

    /// Holds back what was just written to a connection, for a command that another thread recorded up to `upto`.
    pub(crate) fn hold_connection(&mut self, conns: &mut Conns<Worker>, id: ConnId, upto: u64) {
        if upto == 0 {
            return;
        }
        let Some(session) = conns.state_mut(id) else { return };
        session.written_to = session.written_to.max(upto);
        if self.shared.aof.released() < upto {
            conns.cork(id);
            self.held.queue.push_back((upto, id, Instant::now()));
        }
    }

    /// At the end of a turn: brings what was recorded to the log and lets replies go. Gives when to look again.
    pub(crate) fn settle_log(&mut self, conns: &mut Conns<Worker>, now: Instant) -> Option<Duration> {
        let shared = self.shared.clone();
        let aof = &shared.aof;
        let upto = self.locks.effects.appended_to();
        let is_always = aof.is_always();
        if upto > self.held.settled && aof.written() < upto {
            if is_always {
                aof.ring(true, false);
            } else if aof.syncing.load(Ordering::Relaxed) || !self.write_log() {
                // The disk is at work: a write might have to wait for it.
                aof.ring(false, true);
            }
        }
        self.held.settled = upto;
        if aof.stalled.load(Ordering::Relaxed)
            && shared.keyspace.journal.end().saturating_sub(aof.written()) > self.config.aof_stalled_buffer_limit
        {
            aof.full.store(true, Ordering::SeqCst);
            aof.ring(false, true);
        }
        if self.held.queue.is_empty() {
            return None;
        }
        if self.release(conns) {
            return None;
        }
        // Said before the last look, so that who makes progress after it sees that it is waited for.
        aof.waiting.fetch_or(1 << (self.index % 64), Ordering::SeqCst);
        if self.release(conns) {
            return None;
        }
        aof.ring(is_always, !is_always);
        if is_always {
            return Some(HOLD_MAX_WRITING);
        }
        let oldest = self.held.queue.front().map_or(now, |(.., since)| *since);
        let most = if aof.syncing.load(Ordering::Relaxed) { HOLD_MAX } else { HOLD_MAX_WRITING };
        let left = most.saturating_sub(oldest.elapsed());
        if left.is_zero() {
            aof.stalled.store(true, Ordering::SeqCst);
            aof.figures.delayed.fetch_add(1, Ordering::Relaxed);
            crate::log!(
                crate::process::log::Level::Notice,
                "Asynchronous AOF fsync is taking too long (disk is busy?). Clients are answered without waiting for the log to be written."
            );
            self.release(conns);
            return None;
        }
        // The file may come to be forced to disk meanwhile.
        Some(left.min(HOLD_MAX))
    }

    /// Writes the log, unless another thread is at it for long. True: it is written.
    fn write_log(&mut self) -> bool {
        let shared = self.shared.clone();
        match shared.aof.writer.try_lock_for(WRITER_WAIT) {
            Some(mut writer) => shared.write_pending(&mut writer),
            None => false,
        }
    }

    /// Lets the replies go that may. True: none is held back any more.
    fn release(&mut self, conns: &mut Conns<Worker>) -> bool {
        let released = self.shared.aof.released();
        while let Some((upto, id, _)) = self.held.queue.front().copied() {
            if upto > released {
                return false;
            }
            self.held.queue.pop_front();
            // A later write of the same connection stands further behind in the queue.
            if conns.state(id).is_some_and(|session| session.written_to <= released) {
                conns.uncork(id);
            }
        }
        true
    }
}
