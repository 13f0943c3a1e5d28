//! The loop.
//!
//! Hot path: per request that comes alone one `recv` and one `send`; no allocation, no lock, no clock read.
//!
//! ```text
//! turn:  epoll_wait · clock · events (accept, read + serve + send) · rounds (yielded, resumed, full reads)
//!        · messages · service.turn · output and closes asked for by the service
//! ```
//!
//! Reading: epoll is edge-triggered, so an event is only a hint to try. A read that fills less than it was given has
//! emptied the kernel's buffer, and later bytes raise a new event; a full read leaves the connection marked readable, and
//! it is read again in the next turn. When the event says that the peer has closed its side, reading goes on until the end
//! is seen.
//!
//! Writing: a connection is registered for writability only after the kernel took less than it was given. TCP connections
//! then stay so, since the kernel raises that event only after a short write; a Unix socket raises it whenever the peer
//! reads, so there the registration is taken back.

mod accept;
mod output;
mod secure;

pub(crate) use output::WRITE_BYTES;

use std::io;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::clock::{Clock, SystemClock};
use crate::conns::{ConnId, Conns, Round, flag};
use crate::context::Context;
use crate::listener::{Listener, SocketOptions};
use crate::mailbox::Mailbox;
use crate::service::{CloseReason, Flow, Service, Then};

/// Bytes of the loop's read buffer, and so of one read.
const READ_BYTES: usize = 64 * 1024;
/// A partial request up to this size is put in front of the loop's read buffer; a bigger one is read into its own.
const SMALL_PARTIAL: usize = 16 * 1024;
/// Events taken from the kernel per turn.
const EVENTS_PER_TURN: usize = 1024;
/// Messages taken from the mailbox per turn.
const MESSAGES_PER_TURN: usize = 4096;

const MAILBOX_TOKEN: Token = Token(0);

/// A loop that is not running yet. Build it on any thread, run it on the thread that shall own its connections.
pub struct Builder<S: Service> {
    poll: Poll,
    mailbox: Mailbox<S::Message>,
    listeners: Vec<Listener>,
    options: SocketOptions,
    clock: Box<dyn Clock>,
}

/// Reaches a loop from other threads.
pub struct LoopHandle<M> {
    mailbox: Mailbox<M>,
}

impl<M> LoopHandle<M> {
    /// The loop's mailbox.
    pub fn mailbox(&self) -> &Mailbox<M> {
        &self.mailbox
    }

    /// Ends the loop after its present turn.
    pub fn stop(&self) {
        self.mailbox.request_stop();
    }
}

impl<M> Clone for LoopHandle<M> {
    fn clone(&self) -> Self {
        LoopHandle { mailbox: self.mailbox.clone() }
    }
}

impl<S: Service> Builder<S> {
    /// Prepares a loop.
    ///
    /// # Errors
    /// When there are no descriptors left for its epoll and eventfd.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), MAILBOX_TOKEN)?;
        Ok(Builder {
            poll,
            mailbox: Mailbox::new(waker),
            listeners: Vec::new(),
            options: SocketOptions::default(),
            clock: Box::new(SystemClock),
        })
    }

    /// The mailbox of the loop.
    pub fn mailbox(&self) -> Mailbox<S::Message> {
        self.mailbox.clone()
    }

    /// A handle to stop the loop with.
    pub fn handle(&self) -> LoopHandle<S::Message> {
        LoopHandle { mailbox: self.mailbox.clone() }
    }

    /// Adds a listener.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Sets the options for TCP connections.
    #[must_use]
    pub fn options(mut self, options: SocketOptions) -> Self {
        self.options = options;
        self
    }

    /// Puts another clock in.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Runs the loop on this thread until it is stopped, and gives the service back.
    ///
    /// # Errors
    /// When a listener cannot be registered or epoll itself fails.
    pub fn run(self, service: S) -> io::Result<S> {
        let mut conns = Conns::new(self.poll, self.options);
        for listener in self.listeners {
            conns.listen(listener)?;
        }
        let mut worker = Worker {
            service,
            cx: Context::new(self.clock, self.mailbox.clone()),
            conns,
            mailbox: self.mailbox,
            read_buffer: vec![0; READ_BYTES],
            out: Vec::new(),
            plain: Vec::new(),
            scratch: Vec::new(),
            blocked_listeners: Vec::new(),
            accept_again: None,
        };
        worker.run()?;
        Ok(worker.service)
    }
}

pub(crate) struct Worker<S: Service> {
    service: S,
    cx: Context<S::Message>,
    conns: Conns<S>,
    mailbox: Mailbox<S::Message>,
    read_buffer: Vec<u8>,
    /// Replies of the connection being served.
    out: Vec<u8>,
    /// What was decrypted for the connection being served.
    plain: Vec<u8>,
    /// Where output is encrypted.
    scratch: Vec<u8>,
    /// Listeners with clients waiting: over the share of a turn, or without descriptors for them.
    blocked_listeners: Vec<usize>,
    /// When to accept again after descriptors ran out.
    accept_again: Option<Instant>,
}

impl<S: Service> Worker<S> {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        while !self.cx.is_stopping() {
            self.take_messages();
            let wait = self.service.turn(&mut self.cx, &mut self.conns);
            let sent = std::mem::take(&mut self.conns.sent);
            self.cx.stats.writes += sent.writes;
            self.cx.stats.written_bytes += sent.bytes;
            self.finish_turn();
            if self.mailbox.stop_requested() {
                self.cx.stop();
            }
            let wait = self.time_to_sleep(wait);
            match self.conns.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.mailbox.awake();
            self.cx.refresh();
            self.cx.stats.turns += 1;
            let Conns { round, next_round, .. } = &mut self.conns;
            round.append(next_round);
            for event in &events {
                self.event(event);
            }
            self.accept_more();
            self.rounds();
            self.handshakes();
            self.end_late_handshakes();
        }
        self.close_all();
        Ok(())
    }

    /// How long the kernel may keep us; announces the sleep to the mailbox if it is one.
    fn time_to_sleep(&self, wait: Option<Duration>) -> Option<Duration> {
        let is_busy = self.cx.is_stopping()
            || !self.conns.next_round.is_empty()
            || !self.conns.dirty.is_empty()
            || !self.conns.handshakes.is_empty()
            || (!self.blocked_listeners.is_empty() && self.accept_again.is_none());
        if is_busy || wait == Some(Duration::ZERO) || !self.mailbox.prepare_sleep() {
            return Some(Duration::ZERO);
        }
        let until = |at: Instant| at.saturating_duration_since(self.cx.now());
        let own = self.accept_again.into_iter().chain(self.next_late_handshake()).map(until).min();
        wait.into_iter().chain(own).min()
    }

    fn take_messages(&mut self) {
        for _ in 0..MESSAGES_PER_TURN {
            let Some(message) = self.mailbox.receive() else {
                return;
            };
            self.cx.stats.messages += 1;
            self.service.message(&mut self.cx, &mut self.conns, message);
        }
    }

    fn event(&mut self, event: &Event) {
        let id = ConnId::from_u64(event.token().0 as u64);
        if id.generation() == 0 {
            if event.token() != MAILBOX_TOKEN {
                self.accept(event.token().0 - 1);
            }
            return;
        }
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.is_idle() && event.is_readable() && !event.is_read_closed() && !event.is_error() {
            return self.serve_idle(id);
        }
        if conn.has(flag::CONNECTING) {
            return self.finish_connect(id, event);
        }
        if conn.has(flag::BLOCKED) && event.is_writable() {
            conn.remove(flag::BLOCKED);
            self.flush(id);
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.readable_event(id, event);
        }
    }

    /// The common case, on one look-up of the connection: nothing is kept for it, all that it sends is used, and the
    /// kernel takes the whole reply. The first step that goes otherwise is left to the general functions.
    #[inline]
    fn serve_idle(&mut self, id: ConnId) {
        let Worker { service, cx, conns, read_buffer, out, .. } = self;
        let Some(conn) = conns.get_mut(id) else {
            return;
        };
        let got = rustix::net::recv(&conn.socket, &mut read_buffer[..], RecvFlags::empty());
        let len = match got {
            Ok((len, _)) if len > 0 && len < READ_BYTES => len,
            got => {
                conn.add(flag::READABLE);
                if let Some(len) = self.after_read(id, got.map(|(len, _)| len), READ_BYTES) {
                    self.serve_buffer(id, len);
                }
                return;
            }
        };
        cx.stats.reads += 1;
        cx.stats.read_bytes += len as u64;
        out.clear();
        let input = &read_buffer[..len];
        let flow = service.data(cx, id, &mut conn.state, input, out);
        let left = len.saturating_sub(flow.consumed);
        if left > 0 {
            conn.held_mut().input.extend_from_slice(&input[len - left..]);
        }
        if left > 0 || flow.then != Then::Continue || out.len() > output::WRITE_BYTES || cx.holds {
            return self.after_data(id, flow, left, Round::This);
        }
        if out.is_empty() {
            return;
        }
        let sent = rustix::net::send(&conn.socket, out, SendFlags::NOSIGNAL);
        cx.stats.writes += 1;
        if sent == Ok(out.len()) {
            cx.stats.written_bytes += out.len() as u64;
        } else {
            let asked = self.out.len();
            self.sent_in_part(id, sent, asked);
        }
    }

    #[inline]
    fn readable_event(&mut self, id: ConnId, event: &Event) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        conn.add(flag::READABLE);
        if event.is_read_closed() {
            conn.add(flag::READ_CLOSED);
        }
        if conn.has(flag::PAUSED | flag::CLOSING | flag::DEAD | flag::QUEUED) {
            return self.event_out_of_turn(id, event);
        }
        self.read(id);
    }

    /// An event for a connection that must not be read now.
    #[cold]
    fn event_out_of_turn(&mut self, id: ConnId, event: &Event) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.has(flag::DEAD) {
            return;
        }
        if event.is_error() || (event.is_read_closed() && event.is_write_closed()) {
            if conn.has(flag::PAUSED | flag::CLOSING) {
                let why = match rustix::net::sockopt::socket_error(&conn.socket) {
                    Ok(Err(errno)) => CloseReason::Failed(io::Error::from(errno).kind()),
                    _ => CloseReason::Peer,
                };
                self.remove(id, why);
            }
        } else if event.is_read_closed()
            && conn.has(flag::PAUSED)
            && !conn.has(flag::CLOSING)
            && self.service.half_closed(&mut self.cx, id, &mut conn.state)
        {
            self.peer_closed(id);
        }
    }

    /// Serves the connections that are due for a further round.
    fn rounds(&mut self) {
        let mut round = std::mem::take(&mut self.conns.round);
        for id in round.drain(..) {
            let Some(conn) = self.conns.get_mut(id) else {
                continue;
            };
            conn.remove(flag::QUEUED);
            if conn.has(flag::PAUSED | flag::CLOSING | flag::DEAD) {
                continue;
            }
            if conn.has(flag::RUNNABLE) {
                conn.remove(flag::RUNNABLE);
                self.serve_held(id, Round::Next);
            } else if conn.has(flag::READABLE) {
                self.read(id);
            }
        }
        // Nothing was queued for this turn meanwhile, so the list can keep its memory.
        if self.conns.round.is_empty() {
            self.conns.round = round;
        }
    }

    /// One read of a connection, then the service.
    #[inline]
    fn read(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.held.as_ref().is_some_and(|held| held.session.is_some() || !held.input.is_empty()) {
            return self.read_behind_partial(id);
        }
        let got = rustix::net::recv(&conn.socket, &mut self.read_buffer[..], RecvFlags::empty());
        let got = got.map(|(len, _)| len);
        if let Some(len) = self.after_read(id, got, READ_BYTES) {
            self.serve_buffer(id, len);
        }
    }

    /// Reads for a connection that has kept a partial request.
    fn read_behind_partial(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let Some(held) = conn.held.as_mut() else {
            return;
        };
        if held.session.is_some() {
            return self.read_secure(id);
        }
        let kept = held.unused_input().len();
        if kept > SMALL_PARTIAL || held.need > READ_BYTES {
            return self.read_into_own(id);
        }
        self.read_buffer[..kept].copy_from_slice(held.unused_input());
        let need = held.need;
        let free = &mut self.read_buffer[kept..];
        let asked = free.len();
        let got = rustix::net::recv(&conn.socket, free, RecvFlags::empty());
        let got = got.map(|(len, _)| len);
        let Some(len) = self.after_read(id, got, asked) else {
            return;
        };
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let held = conn.held_mut();
        if kept + len < need {
            held.input.extend_from_slice(&self.read_buffer[kept..kept + len]);
            return self.conns.queue_if_ready(id, Round::This);
        }
        held.input.clear();
        held.input_start = 0;
        self.serve_buffer(id, kept + len);
    }

    /// Reads a big request into the connection's own buffer, which grows with what arrives, not with what was announced.
    fn read_into_own(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let Some(held) = conn.held.as_mut() else {
            return;
        };
        held.compact_input();
        let kept = held.input.len();
        let missing = held.need.saturating_sub(kept).max(1);
        // At most doubles, and does not double for the last piece.
        let wanted = missing.min(kept.max(READ_BYTES));
        if held.input.capacity() - kept < wanted {
            if missing < READ_BYTES {
                // More arguments will follow those that are announced: reading only these would be a read for each.
                held.input.reserve(READ_BYTES);
            } else {
                held.input.reserve_exact(wanted);
            }
        }
        let asked = held.input.capacity() - kept;
        let spare = spare_capacity(&mut held.input);
        let got = rustix::net::recv(&conn.socket, spare, RecvFlags::empty()).map(|(len, _)| len);
        let need = held.need;
        let Some(len) = self.after_read(id, got, asked) else {
            return;
        };
        if kept + len < need {
            return self.conns.queue_if_ready(id, Round::This);
        }
        self.serve_held(id, Round::This);
    }

    /// Judges the result of a read; gives the bytes read, if any.
    #[inline]
    fn after_read(&mut self, id: ConnId, got: Result<usize, Errno>, asked: usize) -> Option<usize> {
        self.cx.stats.reads += 1;
        let conn = self.conns.get_mut(id)?;
        match got {
            Ok(len) if len > 0 => {
                self.cx.stats.read_bytes += len as u64;
                if len < asked && !conn.has(flag::READ_CLOSED) {
                    conn.remove(flag::READABLE);
                }
                Some(len)
            }
            Ok(_) => {
                self.peer_closed(id);
                None
            }
            Err(errno) => {
                self.read_failed(id, errno);
                None
            }
        }
    }

    #[cold]
    fn read_failed(&mut self, id: ConnId, errno: Errno) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if errno == Errno::INTR {
            self.conns.queue_if_ready(id, Round::Next);
        } else if errno == Errno::AGAIN {
            conn.remove(flag::READABLE);
        } else {
            self.remove(id, CloseReason::Failed(io::Error::from(errno).kind()));
        }
    }

    /// The peer will send nothing more: close, but let it have what it has asked for.
    #[cold]
    fn peer_closed(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.has(flag::PAUSED) {
            // The service has said already that it is to end.
        } else if self.service.awaits_answers(&mut self.cx, id, &mut conn.state) {
            conn.add(flag::PAUSED | flag::READ_CLOSED);
            return;
        }
        if conn.pending_output() == 0 {
            return self.remove(id, CloseReason::Peer);
        }
        conn.add(flag::CLOSING);
        self.conns.mark_dirty(id);
    }

    /// Gives the service the first `len` bytes of the loop's buffer.
    #[inline]
    fn serve_buffer(&mut self, id: ConnId, len: usize) {
        let Worker { service, cx, conns, read_buffer, out, .. } = self;
        let Some(conn) = conns.get_mut(id) else {
            return;
        };
        out.clear();
        let input = &read_buffer[..len];
        let flow = service.data(cx, id, &mut conn.state, input, out);
        let left = len.saturating_sub(flow.consumed);
        if left > 0 {
            let held = conn.held_mut();
            held.input.extend_from_slice(&input[len - left..]);
        }
        self.after_data(id, flow, left, Round::This);
    }

    /// Gives the service the input that the connection has kept.
    fn serve_held(&mut self, id: ConnId, round: Round) {
        let Worker { service, cx, conns, out, .. } = self;
        let Some(conn) = conns.get_mut(id) else {
            return;
        };
        let Some(held) = conn.held.as_mut() else {
            return;
        };
        out.clear();
        let input = held.unused_input();
        let len = input.len();
        let flow = service.data(cx, id, &mut conn.state, input, out);
        held.use_input(flow.consumed.min(len));
        self.after_data(id, flow, len.saturating_sub(flow.consumed), round);
    }

    /// Sends what the service answered and does what it asked for; `left` bytes of input were not used.
    #[inline]
    fn after_data(&mut self, id: ConnId, flow: Flow, left: usize, round: Round) {
        if std::mem::take(&mut self.cx.holds) {
            self.conns.cork(id);
        }
        if flow.then == Then::CloseNow {
            return self.remove(id, CloseReason::Service);
        }
        if !self.out.is_empty() && !self.send_out(id) {
            return;
        }
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        match flow.then {
            Then::Continue | Then::NeedMore(_) if left == 0 => {}
            Then::Continue => conn.held_mut().need = 0,
            Then::NeedMore(need) => conn.held_mut().need = need,
            Then::Pause => {
                conn.add(flag::PAUSED);
                return self.paused(id);
            }
            Then::Yield if left == 0 => {}
            Then::Yield => conn.add(flag::RUNNABLE),
            Then::Close | Then::CloseNow => {
                if conn.pending_output() == 0 {
                    return self.remove(id, CloseReason::Service);
                }
                conn.add(flag::CLOSING);
                return;
            }
        }
        conn.release_if_drained();
        if conn.has(flag::RUNNABLE | flag::READABLE) {
            self.conns.queue_if_ready(id, round);
        }
    }

    /// A connection has just been paused; its peer may have closed already.
    fn paused(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if let Some(held) = conn.held.as_mut() {
            held.need = 0;
        }
        conn.release_if_drained();
        if conn.has(flag::READ_CLOSED) && self.service.half_closed(&mut self.cx, id, &mut conn.state) {
            self.peer_closed(id);
        }
    }

    /// Does what the service asked for through [`Conns`].
    fn finish_turn(&mut self) {
        let mut dirty = std::mem::take(&mut self.conns.dirty);
        for id in dirty.drain(..) {
            let Some(conn) = self.conns.get_mut(id) else {
                continue;
            };
            conn.remove(flag::DIRTY);
            if conn.has(flag::DEAD) {
                self.remove(id, CloseReason::Service);
            } else {
                self.flush(id);
            }
        }
        if self.conns.dirty.is_empty() {
            self.conns.dirty = dirty;
        }
    }

    /// Takes a connection out and tells the service.
    fn remove(&mut self, id: ConnId, why: CloseReason) {
        let Some(mut conn) = self.conns.take(id) else {
            return;
        };
        let mut why = why;
        if let Some((socket, session)) = conn.socket_and_session() {
            session.say_goodbye(socket);
            if session.is_client() && !session.is_announced && !matches!(why, CloseReason::ConnectFailed(_)) {
                let (kind, text) = match why {
                    CloseReason::Failed(kind) => (kind, "the connection failed during the handshake"),
                    _ => (io::ErrorKind::UnexpectedEof, "the connection was closed during the handshake"),
                };
                why = CloseReason::ConnectFailed(kind);
                self.service.connected(&mut self.cx, id, &mut conn.state, Err(io::Error::new(kind, text)));
            }
        }
        drop(conn.socket);
        // A descriptor is free again.
        self.accept_again = None;
        self.service.closed(&mut self.cx, id, conn.state, why);
    }

    fn close_all(&mut self) {
        self.conns.close_listeners();
        for id in self.conns.ids() {
            self.flush(id);
            self.remove(id, CloseReason::Stopped);
        }
    }
}
