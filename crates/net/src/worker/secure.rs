//! Encrypted connections on the loop.
//!
//! They take the general functions' way, never that of `serve_idle`: each is marked, and holds its session where a plain
//! connection with something pending holds its buffers.
//!
//! A handshake costs a thousand times what a request costs. So reads of connections that shake hands wait on a list of
//! their own, of which each turn takes a share measured in time; those who are there already hardly feel ten thousand who
//! come at once. A handshake that does not end is given up after [`HANDSHAKE_LIMIT`].

use std::io;
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;

use super::output::WRITE_BYTES;
use super::{READ_BYTES, Worker};
use crate::conns::{ConnId, Round, flag};
use crate::service::{CloseReason, Service};
use crate::tls::session::{Received, Sent};

/// Time for handshakes per turn; the last one begun is finished.
const HANDSHAKES_SHARE: Duration = Duration::from_micros(500);
/// How long a client may take to shake hands.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

impl<S: Service> Worker<S> {
    /// Reads for an encrypted connection: at once, or when it has its share if it shakes hands.
    #[cold]
    pub(super) fn read_secure(&mut self, id: ConnId) {
        let Some(session) = self.conns.get_mut(id).and_then(|conn| conn.session_mut()) else {
            return;
        };
        if session.has_ended {
            return self.peer_closed(id);
        }
        if session.is_handshaking() {
            if !std::mem::replace(&mut session.is_queued, true) {
                self.conns.handshakes.push_back(id);
            }
            return;
        }
        self.receive_secure(id);
    }

    /// The share of this turn for those who shake hands.
    pub(super) fn handshakes(&mut self) {
        if self.conns.handshakes.is_empty() {
            return;
        }
        let begun = self.cx.fresh_now();
        // Who comes on the list meanwhile waits for the next turn.
        for _ in 0..self.conns.handshakes.len() {
            let Some(id) = self.conns.handshakes.pop_front() else { break };
            let Some(conn) = self.conns.get_mut(id) else { continue };
            let is_stopped = conn.has(flag::PAUSED | flag::CLOSING | flag::DEAD | flag::CONNECTING);
            let Some(session) = conn.session_mut() else { continue };
            session.is_queued = false;
            if !is_stopped {
                self.receive_secure(id);
                if self.cx.fresh_now().saturating_duration_since(begun) >= HANDSHAKES_SHARE {
                    break;
                }
            }
        }
    }

    /// Gives up handshakes that take too long; they are in the order of their begin.
    pub(super) fn end_late_handshakes(&mut self) {
        while let Some((since, id)) = self.conns.shaking_since.front().copied() {
            let shakes =
                self.conns.get_mut(id).and_then(|conn| conn.session_mut()).is_some_and(|session| !session.is_announced);
            if shakes && self.cx.now().saturating_duration_since(since) < HANDSHAKE_LIMIT {
                return;
            }
            self.conns.shaking_since.pop_front();
            if shakes {
                self.handshake_failed(id, "the handshake takes too long");
                self.remove(id, CloseReason::Failed(io::ErrorKind::TimedOut));
            }
        }
    }

    /// When the next handshake is to be given up.
    pub(super) fn next_late_handshake(&self) -> Option<Instant> {
        self.conns.shaking_since.front().map(|(since, _)| *since + HANDSHAKE_LIMIT)
    }

    fn receive_secure(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let got = rustix::net::recv(&conn.socket, &mut self.read_buffer[..], RecvFlags::empty());
        let Some(len) = self.after_read(id, got.map(|(len, _)| len), READ_BYTES) else {
            return;
        };
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let Some(session) = conn.session_mut() else {
            return;
        };
        let was_shaking = session.is_handshaking();
        self.plain.clear();
        let received = session.receive(self.read_buffer.get(..len).unwrap_or_default(), &mut self.plain);
        let (is_over, has_ended) = (was_shaking && !session.is_handshaking(), session.has_ended);
        if has_ended {
            conn.add(flag::READ_CLOSED | flag::READABLE);
        }
        if is_over {
            self.announce(id);
        }
        // What the handshake answers, and answers of the protocol itself.
        self.flush(id);
        if !self.plain.is_empty() {
            self.serve_plain(id);
        }
        if let Received::Failed(error) = received {
            if was_shaking && !is_over {
                self.handshake_failed(id, &error.to_string());
            }
            // The alert goes with the goodbye.
            return self.remove(id, CloseReason::Failed(io::ErrorKind::InvalidData));
        }
        if self.plain.is_empty() {
            self.conns.queue_if_ready(id, Round::Next);
        }
    }

    /// The session stands.
    fn announce(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let Some(session) = conn.session_mut() else {
            return;
        };
        session.is_announced = true;
        if session.is_client() {
            self.service.connected(&mut self.cx, id, &mut conn.state, Ok(()));
        }
    }

    fn handshake_failed(&mut self, id: ConnId, why: &str) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let Some(session) = conn.session_mut() else {
            return;
        };
        if !session.is_client() {
            let peer = self.conns.peer(id);
            let local = self.conns.local_addr(id);
            return self.service.handshake_failed(&mut self.cx, peer, local, why);
        }
        // `remove` need not tell it again.
        session.is_announced = true;
        let error = io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        self.service.connected(&mut self.cx, id, &mut conn.state, Err(error));
    }

    /// Gives the service what was decrypted, behind what the connection has kept.
    fn serve_plain(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let held = conn.held_mut();
        if held.unused_input().is_empty() {
            let plain = std::mem::take(&mut self.plain);
            let Worker { service, cx, conns, out, .. } = self;
            let Some(conn) = conns.get_mut(id) else {
                return;
            };
            out.clear();
            let flow = service.data(cx, id, &mut conn.state, &plain, out);
            let left = plain.len().saturating_sub(flow.consumed);
            if left > 0 {
                let held = conn.held_mut();
                held.input.clear();
                held.input_start = 0;
                held.input.extend_from_slice(plain.get(plain.len() - left..).unwrap_or_default());
            }
            self.plain = plain;
            return self.after_data(id, flow, left, Round::This);
        }
        held.compact_input();
        held.input.extend_from_slice(&self.plain);
        if held.input.len() < held.need {
            return self.conns.queue_if_ready(id, Round::This);
        }
        self.serve_held(id, Round::This);
    }

    /// As `send_out`, for an encrypted connection.
    #[cold]
    pub(super) fn send_out_secure(&mut self, id: ConnId) -> bool {
        let Worker { cx, conns, out, scratch, .. } = self;
        let Some(conn) = conns.get_mut(id) else {
            return false;
        };
        if conn.has(flag::CORKED | flag::BLOCKED) || conn.pending_output() > 0 {
            conn.held_mut().append_output(out);
            return self.keep_output(id);
        }
        let Some((socket, session)) = conn.socket_and_session() else {
            return false;
        };
        let piece = out.get(..WRITE_BYTES).unwrap_or(out);
        match session.send(socket, piece, scratch, &mut cx.stats) {
            Err(errno) => {
                self.remove(id, CloseReason::Failed(io::Error::from(errno).kind()));
                false
            }
            Ok(Sent { taken, is_full }) => {
                let is_all = taken == out.len() && session.unsent() == 0;
                if is_full && !self.block(id) {
                    return false;
                }
                if is_all { self.shrink_out() } else { self.keep_out(id, taken) }
            }
        }
    }

    /// As `flush`, for an encrypted connection.
    #[cold]
    pub(super) fn flush_secure(&mut self, id: ConnId) {
        let Worker { cx, conns, scratch, .. } = self;
        let Some(conn) = conns.get_mut(id) else {
            return;
        };
        if conn.has(flag::BLOCKED) {
            if conn.pending_output() > 0 {
                self.keep_output(id);
            }
            return;
        }
        let is_corked = conn.has(flag::CORKED);
        let Some(held) = conn.held.as_mut() else {
            return;
        };
        let Some(session) = held.session.as_mut() else {
            return;
        };
        let plain = if is_corked { &[] } else { held.output.get(held.output_start..).unwrap_or_default() };
        let plain = plain.get(..WRITE_BYTES).unwrap_or(plain);
        let sent = session.send(&conn.socket, plain, scratch, &mut cx.stats);
        let is_shaking = session.is_handshaking();
        match sent {
            Err(errno) => self.remove(id, CloseReason::Failed(io::Error::from(errno).kind())),
            Ok(Sent { taken, is_full }) => {
                held.sent_output(taken);
                if is_full && !self.block(id) {
                    return;
                }
                let Some(conn) = self.conns.get_mut(id) else {
                    return;
                };
                if conn.pending_output() > 0 {
                    if conn.has(flag::CLOSING) && is_shaking {
                        // What waits for the end of a handshake that is not read on would wait for ever.
                        return self.remove(id, CloseReason::Service);
                    }
                    self.keep_output(id);
                    return;
                }
                self.drained(id);
            }
        }
    }
}
