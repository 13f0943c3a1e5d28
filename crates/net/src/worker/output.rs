//! Sending.

use std::io;

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::Worker;
use crate::conns::{ConnId, flag};
use crate::service::{CloseReason, Service};

/// Most bytes sent for one connection per turn.
pub(crate) const WRITE_BYTES: usize = 256 * 1024;
/// Unsent bytes from which on the loop's buffer itself is given to the connection instead of a copy.
const SWAP_BYTES: usize = 32 * 1024;
/// Capacity that the loop's buffer keeps.
const KEPT_OUT: usize = 1024 * 1024;

impl<S: Service> Worker<S> {
    /// Sends the loop's buffer behind what the connection still has to send. `false` if the connection is gone.
    #[inline]
    pub(super) fn send_out(&mut self, id: ConnId) -> bool {
        let Some(conn) = self.conns.get_mut(id) else {
            return false;
        };
        if conn.has(flag::SECURE) {
            return self.send_out_secure(id);
        }
        if conn.has(flag::CORKED) || conn.held.as_ref().is_some_and(|held| !held.output.is_empty()) {
            conn.held_mut().append_output(&self.out);
            return self.keep_output(id);
        }
        let asked = self.out.len().min(WRITE_BYTES);
        let sent = rustix::net::send(&conn.socket, &self.out[..asked], SendFlags::NOSIGNAL);
        self.cx.stats.writes += 1;
        match sent {
            Ok(sent) if sent == self.out.len() => {
                self.cx.stats.written_bytes += sent as u64;
                self.shrink_out()
            }
            sent => self.sent_in_part(id, sent, asked),
        }
    }

    /// Gives memory of the loop's buffer back when it has grown big; always `true`, for the connection is fine.
    #[inline]
    pub(super) fn shrink_out(&mut self) -> bool {
        if self.out.capacity() > KEPT_OUT {
            self.out = Vec::new();
        }
        true
    }

    /// The kernel did not take all of the loop's buffer.
    #[cold]
    pub(super) fn sent_in_part(&mut self, id: ConnId, sent: Result<usize, Errno>, asked: usize) -> bool {
        let sent = match sent {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => 0,
            // Nothing was sent, and the next try is at the end of the turn.
            Err(Errno::INTR) => return self.keep_out(id, 0),
            Err(errno) => {
                self.remove(id, CloseReason::Failed(io::Error::from(errno).kind()));
                return false;
            }
        };
        self.cx.stats.written_bytes += sent as u64;
        if sent < asked && !self.block(id) {
            return false;
        }
        self.keep_out(id, sent)
    }

    /// Keeps the loop's buffer from `sent` on for the connection.
    pub(super) fn keep_out(&mut self, id: ConnId, sent: usize) -> bool {
        let Some(conn) = self.conns.get_mut(id) else {
            return false;
        };
        let held = conn.held_mut();
        if self.out.len() - sent >= SWAP_BYTES {
            held.output = std::mem::take(&mut self.out);
            held.output_start = sent;
        } else {
            held.output = self.out[sent..].to_vec();
            held.output_start = 0;
        }
        self.keep_output(id)
    }

    /// The connection has unsent output: sees to it that it is sent some time, and asks the service whether to keep it.
    pub(super) fn keep_output(&mut self, id: ConnId) -> bool {
        let Some(conn) = self.conns.get_mut(id) else {
            return false;
        };
        let pending = conn.pending_output();
        if !self.service.output_pending(&mut self.cx, id, &mut conn.state, pending) {
            self.remove(id, CloseReason::OutputLimit);
            return false;
        }
        let is_shaking = conn.has(flag::SECURE) && conn.session_mut().is_some_and(|session| session.is_handshaking());
        if !conn.has(flag::BLOCKED | flag::CORKED) && !is_shaking {
            self.conns.mark_dirty(id);
        }
        true
    }

    /// The kernel takes no more: waits for it to say so. `false` if the connection is gone.
    pub(super) fn block(&mut self, id: ConnId) -> bool {
        let Some(conn) = self.conns.get_mut(id) else {
            return false;
        };
        conn.add(flag::BLOCKED);
        if let Err(error) = self.conns.set_write_interest(id, true) {
            self.remove(id, CloseReason::Failed(error.kind()));
            return false;
        }
        true
    }

    /// Sends what a connection has kept, as far as the kernel and the share of a turn allow, and closes it if that was
    /// what it waited for.
    pub(super) fn flush(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.has(flag::CONNECTING) {
            // Only a close cannot wait for the connection to stand.
            if conn.has(flag::CLOSING) {
                self.remove(id, CloseReason::Service);
            }
            return;
        }
        if conn.has(flag::SECURE) {
            return self.flush_secure(id);
        }
        let pending = conn.pending_output();
        if pending > 0 {
            if conn.has(flag::BLOCKED | flag::CORKED) {
                self.keep_output(id);
                return;
            }
            let Some(held) = conn.held.as_mut() else {
                return;
            };
            let asked = pending.min(WRITE_BYTES);
            let bytes = held.unsent_output().get(..asked).unwrap_or(&[]);
            let sent = rustix::net::send(&conn.socket, bytes, SendFlags::NOSIGNAL);
            self.cx.stats.writes += 1;
            let (sent, is_full) = match sent {
                Ok(sent) => (sent, sent < asked),
                Err(Errno::AGAIN) => (0, true),
                Err(Errno::INTR) => (0, false),
                Err(errno) => {
                    let why = CloseReason::Failed(io::Error::from(errno).kind());
                    return self.remove(id, why);
                }
            };
            self.cx.stats.written_bytes += sent as u64;
            held.sent_output(sent);
            if is_full && !self.block(id) {
                return;
            }
            if sent < pending {
                self.keep_output(id);
                return;
            }
        }
        self.drained(id);
    }

    /// All output of the connection is sent.
    pub(super) fn drained(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.has(flag::CLOSING) {
            let is_peer = conn.has(flag::READ_CLOSED);
            return self.remove(id, if is_peer { CloseReason::Peer } else { CloseReason::Service });
        }
        conn.release_if_drained();
        if conn.has(flag::UNIX)
            && let Err(error) = self.conns.set_write_interest(id, false)
        {
            self.remove(id, CloseReason::Failed(error.kind()));
        }
    }
}
