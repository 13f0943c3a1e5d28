//! Accepting clients, and finishing connections of our own.

use std::io;
use std::time::Duration;

use mio::Interest;
use mio::event::Event;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with, getpeername};

use super::Worker;
use crate::conns::{ConnId, flag};
use crate::listener::Peer;
use crate::service::{CloseReason, Service};
use crate::tls::Acceptor;

/// Clients accepted per listener and turn: about half a millisecond's work, so that those who are there already hardly
/// feel ten thousand who come at once.
const ACCEPTS_PER_TURN: usize = 32;
/// Pause after a full share, in times of what the share took: with many workers accepting a crowd on few cores, all of
/// them would else be runnable all the time, and the requests of those who are there would wait for their worker's turn
/// behind the others'. What is taken longer, because the machine is busy, is paused longer.
const CROWD_PAUSE: u32 = 3;
/// The shortest and the longest such pause.
const CROWD_PAUSE_BOUNDS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));
/// Pause after descriptors ran out, unless a connection is closed before.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl<S: Service> Worker<S> {
    /// A listener has clients waiting.
    pub(super) fn accept(&mut self, listener: usize) {
        // Those on the list have their share in `accept_more`.
        if !self.blocked_listeners.contains(&listener) {
            self.blocked_listeners.push(listener);
        }
    }

    /// Accepts a share of the waiting clients of each listener.
    pub(super) fn accept_more(&mut self) {
        if self.blocked_listeners.is_empty() {
            return;
        }
        if self.accept_again.is_some_and(|again| again > self.cx.now()) {
            return;
        }
        self.accept_again = None;
        let mut waiting = std::mem::take(&mut self.blocked_listeners);
        let began = self.cx.fresh_now();
        waiting.retain(|&listener| self.accept_share(listener));
        self.blocked_listeners = waiting;
        if !self.blocked_listeners.is_empty() && self.accept_again.is_none() {
            let ended = self.cx.fresh_now();
            let (least, most) = CROWD_PAUSE_BOUNDS;
            let pause = (ended.saturating_duration_since(began) * CROWD_PAUSE).clamp(least, most);
            self.accept_again = Some(ended + pause);
        }
    }

    /// `true` if more clients may be waiting.
    fn accept_share(&mut self, index: usize) -> bool {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(Some(listener)) = self.conns.listeners.get(index) else {
                return false;
            };
            let (is_tcp, acceptor) = (listener.is_tcp, listener.acceptor.clone());
            match acceptfrom_with(&listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((socket, peer)) => {
                    let peer = if is_tcp { Peer::from_any(peer) } else { Peer::Unix };
                    self.cx.stats.accepted += 1;
                    self.accepted(socket, &peer, acceptor.as_deref());
                }
                Err(Errno::AGAIN) => return false,
                // The client gave up while it waited, or a signal came.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(errno) => {
                    self.accept_again = Some(self.cx.now() + ACCEPT_PAUSE);
                    self.service.accept_failed(&mut self.cx, errno.into());
                    return true;
                }
            }
        }
        true
    }

    fn accepted(&mut self, socket: std::os::fd::OwnedFd, peer: &Peer, acceptor: Option<&Acceptor>) {
        let flags = match peer {
            // Its options are those of the listener.
            Peer::Tcp(_) => 0,
            Peer::Unix => flag::UNIX,
        };
        let id = match self.conns.register(&socket, Interest::READABLE) {
            Ok(id) => id,
            Err(error) => return self.service.accept_failed(&mut self.cx, error),
        };
        match self.service.accepted(&mut self.cx, id, peer) {
            Ok(state) => {
                self.conns.insert(id, socket, flags, state);
                if let Some(acceptor) = acceptor
                    && !self.conns.secure_accepted(id, acceptor, self.cx.now())
                {
                    self.remove(id, CloseReason::Failed(io::ErrorKind::Other));
                }
            }
            Err(_) if acceptor.is_some() => {}
            Err(refusal) => {
                // Best effort: the client is refused whether it reads why or not.
                let _ = rustix::net::send(&socket, &refusal, SendFlags::NOSIGNAL);
            }
        }
    }

    /// An event for a connection of ours that does not stand yet.
    #[cold]
    pub(super) fn finish_connect(&mut self, id: ConnId, event: &Event) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let result = match rustix::net::sockopt::socket_error(&conn.socket) {
            Ok(Ok(())) => match getpeername(&conn.socket) {
                Ok(_) => Ok(()),
                // Not yet: there will be another event.
                Err(Errno::NOTCONN) if !event.is_error() => return,
                Err(errno) => Err(errno),
            },
            Ok(Err(errno)) | Err(errno) => Err(errno),
        };
        conn.remove(flag::CONNECTING);
        let kind = result.map_err(|errno| io::Error::from(errno).kind());
        if kind.is_ok() && conn.has(flag::SECURE) {
            // The service is told when hands were shaken.
            self.flush(id);
            if event.is_readable() || event.is_read_closed() {
                self.readable_event(id, event);
            }
            return;
        }
        self.service.connected(&mut self.cx, id, &mut conn.state, result.map_err(io::Error::from));
        if let Err(kind) = kind {
            return self.remove(id, CloseReason::ConnectFailed(kind));
        }
        self.flush(id);
        if event.is_readable() || event.is_read_closed() {
            self.readable_event(id, event);
        }
    }
}
