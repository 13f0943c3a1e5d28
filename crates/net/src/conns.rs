//! The connections of a loop.
//!
//! ```text
//! entry   descriptor 4 · generation 4 · flags 2 · held 8 (null while nothing is pending) · the application's state
//! held    input [start..] and the bytes it needs · output [start..] · the session, if it is encrypted
//! ```
//!
//! Calls from a service only change the entry and put the connection on a list; the loop does the system calls at the end
//! of its turn. So a call never re-enters the service.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::net::{SendFlags, getpeername, getsockname};
use slab::Slab;

use crate::listener::{Address, Listener, Peer, SocketOptions, start_connect};
use crate::service::Service;
use crate::tls::session::Session;
use crate::tls::{Acceptor, Connector};

/// Names a connection of a loop. Unlike a descriptor it is not used again: after the connection is gone, calls with it do
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(u64);

impl ConnId {
    pub(crate) fn new(index: u32, generation: u32) -> Self {
        ConnId(u64::from(generation) << 32 | u64::from(index))
    }

    /// The number itself.
    #[inline]
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The id that [`ConnId::as_u64`] came from.
    #[inline]
    pub fn from_u64(number: u64) -> Self {
        ConnId(number)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "cut to 32 bits on purpose")]
    fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits, see below")]
    pub(crate) fn token(self) -> Token {
        Token(self.0 as usize)
    }
}

const _: () = assert!(usize::BITS == 64, "a token holds a whole ConnId");

/// States of a connection, as bits.
pub(crate) mod flag {
    /// The kernel may have more to read.
    pub(crate) const READABLE: u16 = 1;
    /// The peer has closed its side: read until the end is seen.
    pub(crate) const READ_CLOSED: u16 = 1 << 1;
    /// Input is kept that the service has not seen since it asked for a pause or yielded.
    pub(crate) const RUNNABLE: u16 = 1 << 2;
    /// Neither read nor run until resumed.
    pub(crate) const PAUSED: u16 = 1 << 3;
    /// On one of the lists for a further round.
    pub(crate) const QUEUED: u16 = 1 << 4;
    /// On the list of connections with something to do at the end of the turn.
    pub(crate) const DIRTY: u16 = 1 << 5;
    /// To be closed when the output is sent.
    pub(crate) const CLOSING: u16 = 1 << 6;
    /// To be closed at the end of the turn.
    pub(crate) const DEAD: u16 = 1 << 7;
    /// The kernel took less than it was given; it will say when it takes more.
    pub(crate) const BLOCKED: u16 = 1 << 8;
    /// Registered for writability too.
    pub(crate) const WRITE_INTEREST: u16 = 1 << 9;
    /// `connect` has not finished.
    pub(crate) const CONNECTING: u16 = 1 << 10;
    /// A Unix socket.
    pub(crate) const UNIX: u16 = 1 << 11;
    /// Output is kept until the service releases it.
    pub(crate) const CORKED: u16 = 1 << 12;
    /// Encrypted: `held` has its session.
    pub(crate) const SECURE: u16 = 1 << 13;
    /// With one of these, output is not sent before the end of the turn.
    pub(crate) const NOT_AT_ONCE: u16 = CLOSING | DEAD | BLOCKED | CONNECTING | CORKED | SECURE;
    /// With none of these, a connection that gets bytes is simply read and served.
    pub(crate) const BUSY: u16 = READABLE
        | READ_CLOSED
        | RUNNABLE
        | PAUSED
        | QUEUED
        | DIRTY
        | CLOSING
        | DEAD
        | BLOCKED
        | CONNECTING
        | CORKED
        | SECURE;
}

pub(crate) struct Conn<T> {
    pub(crate) socket: OwnedFd,
    generation: u32,
    flags: u16,
    pub(crate) held: Option<Box<Held>>,
    pub(crate) state: T,
}

impl<T> Conn<T> {
    #[inline]
    pub(crate) fn has(&self, any_of: u16) -> bool {
        self.flags & any_of != 0
    }

    #[inline]
    pub(crate) fn add(&mut self, flags: u16) {
        self.flags |= flags;
    }

    #[inline]
    pub(crate) fn remove(&mut self, flags: u16) {
        self.flags &= !flags;
    }

    /// Whether nothing is kept or planned for it.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.flags & flag::BUSY == 0 && self.held.is_none()
    }

    #[inline]
    pub(crate) fn pending_output(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.pending_output())
    }

    #[inline]
    pub(crate) fn pending_input(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.input.len() - held.input_start)
    }

    /// What is kept for it.
    #[inline]
    fn kept(&self) -> Kept {
        self.held.as_ref().map_or_else(Kept::default, |held| Kept {
            input_bytes: held.input.len().saturating_sub(held.input_start),
            output_bytes: held.pending_output(),
            memory_bytes: held.memory_bytes(),
        })
    }

    pub(crate) fn held_mut(&mut self) -> &mut Held {
        self.held.get_or_insert_default()
    }

    /// Gives the buffers back when nothing is in them.
    #[inline]
    pub(crate) fn release_if_drained(&mut self) {
        if let Some(held) = &self.held
            && held.session.is_none()
            && held.pending_output() == 0
            && held.unused_input().is_empty()
        {
            self.held = None;
        }
    }

    /// The session of an encrypted connection.
    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        self.held.as_mut()?.session.as_deref_mut()
    }

    pub(crate) fn socket_and_session(&mut self) -> Option<(&OwnedFd, &mut Session)> {
        Some((&self.socket, self.held.as_mut()?.session.as_deref_mut()?))
    }

    /// Makes it encrypted from now on.
    fn secure(&mut self, session: Session) {
        self.held_mut().session = Some(Box::new(session));
        self.add(flag::SECURE);
    }
}

/// What a loop keeps for a connection: nothing for most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Input that the service has not used.
    pub input_bytes: usize,
    /// Output that the kernel has not taken.
    pub output_bytes: usize,
    /// Memory of the buffers of both.
    pub memory_bytes: usize,
}

/// The buffers of a connection with something pending.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) input: Vec<u8>,
    pub(crate) input_start: usize,
    /// Bytes of input that must be there before the service is called again.
    pub(crate) need: usize,
    pub(crate) output: Vec<u8>,
    pub(crate) output_start: usize,
    /// Of an encrypted connection, which keeps this struct all its life.
    pub(crate) session: Option<Box<Session>>,
}

impl Held {
    fn pending_output(&self) -> usize {
        let encrypted = self.session.as_ref().map_or(0, |session| session.unsent());
        self.output.len().saturating_sub(self.output_start) + encrypted
    }

    fn memory_bytes(&self) -> usize {
        let session = self.session.as_ref().map_or(0, |session| session.memory_bytes());
        self.input.capacity() + self.output.capacity() + size_of::<Held>() + session
    }

    pub(crate) fn unused_input(&self) -> &[u8] {
        self.input.get(self.input_start..).unwrap_or(&[])
    }

    pub(crate) fn unsent_output(&self) -> &[u8] {
        self.output.get(self.output_start..).unwrap_or(&[])
    }

    /// Marks the first `len` unused bytes as used, and gives memory back when little is left of much.
    pub(crate) fn use_input(&mut self, len: usize) {
        self.input_start += len;
        let left = self.input.len().saturating_sub(self.input_start);
        if left == 0 {
            self.input = Vec::new();
            self.input_start = 0;
        } else if self.input.capacity() > 4096 && left < self.input.capacity() / 4 {
            self.input = self.unused_input().to_vec();
            self.input_start = 0;
        }
    }

    /// Moves the unused input to the start of its buffer.
    pub(crate) fn compact_input(&mut self) {
        if self.input_start > 0 {
            self.input.drain(..self.input_start);
            self.input_start = 0;
        }
    }

    pub(crate) fn append_output(&mut self, bytes: &[u8]) {
        // Sent bytes are dropped only when they are the larger part, so that each byte moves at most once.
        if self.output_start > self.output.len() / 2 {
            self.output.drain(..self.output_start);
            self.output_start = 0;
        }
        self.output.extend_from_slice(bytes);
    }

    /// Marks the first `len` unsent bytes as sent.
    pub(crate) fn sent_output(&mut self, len: usize) {
        self.output_start += len;
        if self.output_start >= self.output.len() {
            self.output = Vec::new();
            self.output_start = 0;
        }
    }
}

/// The connections and listeners of a loop.
pub struct Conns<S: Service> {
    pub(crate) poll: Poll,
    slab: Slab<Conn<S::State>>,
    next_generation: u32,
    pub(crate) listeners: Vec<Option<Listener>>,
    pub(crate) options: SocketOptions,
    /// Connections that get a further round in this turn.
    pub(crate) round: Vec<ConnId>,
    /// Connections that get a round in the next turn.
    pub(crate) next_round: Vec<ConnId>,
    /// Connections with output or a close to be done at the end of the turn.
    pub(crate) dirty: Vec<ConnId>,
    /// Connections that have something to read and shake hands: a share of them is read each turn.
    pub(crate) handshakes: VecDeque<ConnId>,
    /// Clients that may still shake hands, with when they came, the longest there first.
    pub(crate) shaking_since: VecDeque<(Instant, ConnId)>,
    /// What [`Conns::send`] has done in this turn, to be added to the loop's counters.
    pub(crate) sent: Sent,
}

/// Calls of `send` and bytes that the kernel took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
}

impl<S: Service> Conns<S> {
    pub(crate) fn new(poll: Poll, options: SocketOptions) -> Self {
        Conns {
            poll,
            slab: Slab::new(),
            next_generation: 1,
            listeners: Vec::new(),
            options,
            round: Vec::new(),
            next_round: Vec::new(),
            dirty: Vec::new(),
            handshakes: VecDeque::new(),
            shaking_since: VecDeque::new(),
            sent: Sent::default(),
        }
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    /// Whether the connection is still there.
    pub fn contains(&self, id: ConnId) -> bool {
        self.get(id).is_some()
    }

    /// The state of a connection.
    pub fn state(&self, id: ConnId) -> Option<&S::State> {
        self.get(id).map(|conn| &conn.state)
    }

    /// The state of a connection, to change.
    pub fn state_mut(&mut self, id: ConnId) -> Option<&mut S::State> {
        self.get_mut(id).map(|conn| &mut conn.state)
    }

    /// All connections, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (ConnId, &S::State)> {
        self.slab.iter().map(|(index, conn)| (Self::id_of(index, conn), &conn.state))
    }

    /// All connections with their states to change, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ConnId, &mut S::State)> {
        self.slab.iter_mut().map(|(index, conn)| (Self::id_of(index, conn), &mut conn.state))
    }

    /// Shows up to `most` places from place `from` on, of which some may be empty, and returns the place to go on at;
    /// `None` when all were seen. For walks in portions: the places lie side by side, so that a look costs some
    /// nanoseconds, and who comes or goes meanwhile does not disturb the walk.
    pub fn visit(
        &mut self,
        from: usize,
        most: usize,
        mut look: impl FnMut(ConnId, &mut S::State, Kept),
    ) -> Option<usize> {
        let end = from.saturating_add(most).min(self.slab.capacity());
        for index in from..end {
            let Some(conn) = self.slab.get_mut(index) else {
                continue;
            };
            let id = Self::id_of(index, conn);
            let kept = conn.kept();
            look(id, &mut conn.state, kept);
        }
        (end < self.slab.capacity()).then_some(end)
    }

    /// Appends output to a connection; it is sent at the end of the turn. `false` if the connection is gone or being
    /// closed.
    pub fn write(&mut self, id: ConnId, bytes: &[u8]) -> bool {
        match self.get_mut(id) {
            Some(conn) if !conn.has(flag::CLOSING | flag::DEAD) => {
                if !bytes.is_empty() {
                    conn.held_mut().append_output(bytes);
                    self.mark_dirty(id);
                }
                true
            }
            _ => false,
        }
    }

    /// As [`Conns::write`], without copying when nothing else waits to be sent: for megabytes of output.
    pub fn write_owned(&mut self, id: ConnId, bytes: Vec<u8>) -> bool {
        match self.get_mut(id) {
            Some(conn) if !conn.has(flag::CLOSING | flag::DEAD) => {
                if !bytes.is_empty() {
                    if conn.held_mut().unsent_output().is_empty() {
                        let held = conn.held_mut();
                        held.output = bytes;
                        held.output_start = 0;
                    } else {
                        conn.held_mut().append_output(&bytes);
                    }
                    self.mark_dirty(id);
                }
                true
            }
            _ => false,
        }
    }

    /// As [`Conns::write`], but what the kernel takes at once is sent at once, from where it lies: for output that a
    /// service has gathered for a connection in a turn. A failure shows at the end of the turn, as with `write`.
    pub fn send(&mut self, id: ConnId, bytes: &[u8]) -> bool {
        let Some(conn) = self.get_mut(id) else { return false };
        let is_behind = conn.held.as_ref().is_some_and(|held| held.pending_output() > 0);
        if is_behind || conn.has(flag::NOT_AT_ONCE) || bytes.is_empty() {
            return self.write(id, bytes);
        }
        let asked = bytes.len().min(crate::worker::WRITE_BYTES);
        let sent = rustix::net::send(&conn.socket, bytes.get(..asked).unwrap_or(&[]), SendFlags::NOSIGNAL);
        let sent = sent.unwrap_or(0);
        self.sent.writes += 1;
        self.sent.bytes += sent as u64;
        match bytes.get(sent..) {
            None | Some([]) => true,
            // The next try, at the end of the turn, tells why.
            Some(rest) => self.write(id, rest),
        }
    }

    /// Lets a paused connection go on: with the input it kept, then with new input.
    pub fn resume(&mut self, id: ConnId) {
        let Some(conn) = self.get_mut(id) else { return };
        if !conn.has(flag::PAUSED) {
            return;
        }
        conn.remove(flag::PAUSED);
        if conn.pending_input() > 0 {
            conn.add(flag::RUNNABLE);
        }
        self.queue_if_ready(id, Round::Next);
    }

    /// Keeps the output of a connection from being sent until [`Conns::uncork`], whoever writes it. Input goes on.
    pub fn cork(&mut self, id: ConnId) {
        if let Some(conn) = self.get_mut(id) {
            conn.add(flag::CORKED);
        }
    }

    /// Lets the output of a connection be sent again.
    pub fn uncork(&mut self, id: ConnId) {
        if let Some(conn) = self.get_mut(id)
            && conn.has(flag::CORKED)
        {
            conn.remove(flag::CORKED);
            self.mark_dirty(id);
        }
    }

    /// Stops reading from a connection until [`Conns::resume`], as [`crate::Then::Pause`] does.
    pub fn pause(&mut self, id: ConnId) {
        if let Some(conn) = self.get_mut(id) {
            conn.add(flag::PAUSED);
        }
    }

    /// Closes a connection at the end of the turn, or, with `after_flush`, when its output is sent. It uses no more input.
    pub fn close(&mut self, id: ConnId, after_flush: bool) {
        let Some(conn) = self.get_mut(id) else { return };
        conn.add(if after_flush { flag::CLOSING } else { flag::DEAD });
        self.mark_dirty(id);
    }

    /// Bytes of output that the kernel has not taken yet.
    pub fn pending_output(&self, id: ConnId) -> usize {
        self.get(id).map_or(0, Conn::pending_output)
    }

    /// Bytes of input that are kept.
    pub fn pending_input(&self, id: ConnId) -> usize {
        self.get(id).map_or(0, Conn::pending_input)
    }

    /// Bytes of memory of the buffers that are kept for a connection.
    pub fn held_bytes(&self, id: ConnId) -> usize {
        let held = self.get(id).and_then(|conn| conn.held.as_ref());
        held.map_or(0, |held| held.memory_bytes())
    }

    /// The peer's address, asked of the kernel; `None` when the connection is gone.
    pub fn peer(&self, id: ConnId) -> Option<Peer> {
        let conn = self.get(id)?;
        if conn.has(flag::UNIX) {
            return Some(Peer::Unix);
        }
        getpeername(conn.socket.as_fd()).ok().map(Peer::from_any)
    }

    /// Our own address of a connection, asked of the kernel; `None` when the connection is gone.
    pub fn local_addr(&self, id: ConnId) -> Option<Peer> {
        let conn = self.get(id)?;
        getsockname(conn.socket.as_fd()).ok().map(|address| Peer::from_any(Some(address)))
    }

    /// Whether small pieces of output of a TCP connection are sent at once rather than gathered by the kernel.
    pub fn set_nodelay(&self, id: ConnId, at_once: bool) {
        if let Some(conn) = self.get(id).filter(|conn| !conn.has(flag::UNIX)) {
            // It is a matter of speed only.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&conn.socket, at_once);
        }
    }

    /// The descriptor's number, for display.
    pub fn fd(&self, id: ConnId) -> Option<RawFd> {
        self.get(id).map(|conn| conn.socket.as_raw_fd())
    }

    /// Starts a connection; [`Service::connected`] tells how it went. Output may be given at once.
    ///
    /// # Errors
    /// When it fails at once, for example for want of descriptors.
    pub fn connect(&mut self, address: impl Into<Address>, state: S::State) -> io::Result<ConnId> {
        let address = address.into();
        let socket = start_connect(&address)?;
        let mut flags = flag::CONNECTING | flag::WRITE_INTEREST;
        match address {
            Address::Unix(_) => flags |= flag::UNIX,
            Address::Tcp(_) => self.options.apply(socket.as_fd()),
        }
        let id = self.register(&socket, Interest::READABLE | Interest::WRITABLE)?;
        self.insert(id, socket, flags, state);
        Ok(id)
    }

    /// Takes over a non-blocking TCP socket whose `connect` is under way, for example one bound to a local address;
    /// [`Service::connected`] tells how it went.
    ///
    /// # Errors
    /// When it cannot be registered.
    pub fn adopt_connecting(&mut self, socket: impl Into<OwnedFd>, state: S::State) -> io::Result<ConnId> {
        let socket = socket.into();
        self.options.apply(socket.as_fd());
        let id = self.register(&socket, Interest::READABLE | Interest::WRITABLE)?;
        self.insert(id, socket, flag::CONNECTING | flag::WRITE_INTEREST, state);
        Ok(id)
    }

    /// Makes a connection that was just begun by [`Conns::connect`] or [`Conns::adopt_connecting`] an encrypted one:
    /// [`Service::connected`] then tells how the handshake went. Output that is given before waits for it.
    ///
    /// # Errors
    /// When no session can be made; the connection is to be closed then.
    pub fn secure(&mut self, id: ConnId, connector: &Connector) -> io::Result<()> {
        let session = Session::connect(connector).map_err(io::Error::other)?;
        if let Some(conn) = self.get_mut(id) {
            conn.secure(session);
        }
        Ok(())
    }

    /// Whether a connection is encrypted.
    pub fn is_secure(&self, id: ConnId) -> bool {
        self.get(id).is_some_and(|conn| conn.has(flag::SECURE))
    }

    /// Makes an accepted connection encrypted. `false`: there is no session to be had.
    pub(crate) fn secure_accepted(&mut self, id: ConnId, acceptor: &Acceptor, now: Instant) -> bool {
        let Ok(session) = Session::accept(acceptor) else {
            return false;
        };
        if let Some(conn) = self.get_mut(id) {
            conn.secure(session);
            self.shaking_since.push_back((now, id));
        }
        true
    }

    /// Takes over a connected stream socket, for example one on which a handshake was made elsewhere.
    ///
    /// # Errors
    /// When it cannot be made non-blocking or registered.
    pub fn adopt(&mut self, socket: impl Into<OwnedFd>, state: S::State) -> io::Result<ConnId> {
        let socket = socket.into();
        rustix::io::ioctl_fionbio(&socket, true)?;
        let is_tcp = Peer::from_any(Some(getsockname(&socket)?)).tcp().is_some();
        let id = self.register(&socket, Interest::READABLE)?;
        self.insert(id, socket, if is_tcp { 0 } else { flag::UNIX }, state);
        Ok(id)
    }

    /// Adds a listener to the running loop.
    ///
    /// # Errors
    /// When it cannot be registered.
    pub fn listen(&mut self, listener: Listener) -> io::Result<()> {
        // Tokens below 2^32 name no connection: 0 is the mailbox, then come the listeners.
        let token = Token(self.listeners.len() + 1);
        // What a client connects to is what its connection begins with, so five calls per client are saved.
        if listener.is_tcp {
            self.options.apply(listener.socket.as_fd());
        }
        let fd = listener.socket.as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        self.listeners.push(Some(listener));
        Ok(())
    }

    /// Closes all listeners. Connections stay.
    pub fn close_listeners(&mut self) {
        for listener in &mut self.listeners {
            *listener = None;
        }
    }

    /// Closes the TCP listeners, those of encrypted connections or the others. Connections and Unix sockets stay.
    pub fn close_tcp_listeners(&mut self, secure: bool) {
        for listener in &mut self.listeners {
            if let Some(tcp) = listener.take_if(|listener| listener.is_tcp && listener.acceptor.is_some() == secure) {
                // Closing alone would leave it listening where another descriptor table has a copy.
                let _ = rustix::net::shutdown(&tcp.socket, rustix::net::Shutdown::Both);
            }
        }
    }

    /// Sets the options for TCP connections from now on.
    pub fn set_options(&mut self, options: SocketOptions) {
        self.options = options;
        for listener in self.listeners.iter().flatten().filter(|listener| listener.is_tcp) {
            self.options.apply(listener.socket.as_fd());
        }
    }

    fn id_of(index: usize, conn: &Conn<S::State>) -> ConnId {
        // Descriptors are C ints, so there are never 2^32 entries.
        ConnId::new(u32::try_from(index).unwrap_or(u32::MAX), conn.generation)
    }

    #[inline]
    pub(crate) fn get(&self, id: ConnId) -> Option<&Conn<S::State>> {
        self.slab.get(id.index()).filter(|conn| conn.generation == id.generation())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn<S::State>> {
        self.slab.get_mut(id.index()).filter(|conn| conn.generation == id.generation())
    }

    /// Chooses the id of the next connection and registers its socket under it.
    pub(crate) fn register(&mut self, socket: &OwnedFd, interest: Interest) -> io::Result<ConnId> {
        let index = u32::try_from(self.slab.vacant_key()).map_err(io::Error::other)?;
        let id = ConnId::new(index, self.next_generation);
        let fd = socket.as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&fd), id.token(), interest)?;
        self.next_generation = self.next_generation.checked_add(1).unwrap_or(1);
        Ok(id)
    }

    /// Puts in the connection that `register` gave the id for.
    pub(crate) fn insert(&mut self, id: ConnId, socket: OwnedFd, flags: u16, state: S::State) {
        let generation = id.generation();
        let index = self.slab.insert(Conn { socket, generation, flags, held: None, state });
        debug_assert_eq!(index, id.index(), "nothing was inserted since `register`");
    }

    pub(crate) fn set_write_interest(&mut self, id: ConnId, wanted: bool) -> io::Result<()> {
        let Some(conn) = self.slab.get_mut(id.index()) else {
            return Ok(());
        };
        if conn.has(flag::WRITE_INTEREST) == wanted {
            return Ok(());
        }
        let fd = conn.socket.as_raw_fd();
        let interest = if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        self.poll.registry().reregister(&mut SourceFd(&fd), id.token(), interest)?;
        if wanted {
            conn.add(flag::WRITE_INTEREST);
        } else {
            conn.remove(flag::WRITE_INTEREST);
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, id: ConnId) -> Option<Conn<S::State>> {
        self.get(id)?;
        self.slab.try_remove(id.index())
    }

    pub(crate) fn ids(&self) -> Vec<ConnId> {
        self.slab.iter().map(|(index, conn)| Self::id_of(index, conn)).collect()
    }

    pub(crate) fn mark_dirty(&mut self, id: ConnId) {
        let Some(conn) = self.get_mut(id) else { return };
        if !conn.has(flag::DIRTY) {
            conn.add(flag::DIRTY);
            self.dirty.push(id);
        }
    }

    /// Queues a connection that has input to run or to read and may do so.
    #[inline]
    pub(crate) fn queue_if_ready(&mut self, id: ConnId, round: Round) {
        let Some(conn) = self.get_mut(id) else { return };
        if !conn.has(flag::RUNNABLE | flag::READABLE)
            || conn.has(flag::PAUSED | flag::CLOSING | flag::DEAD | flag::QUEUED | flag::CONNECTING)
        {
            return;
        }
        conn.add(flag::QUEUED);
        // A second read has to wait for the next turn.
        if round == Round::This && conn.has(flag::RUNNABLE) {
            self.round.push(id);
        } else {
            self.next_round.push(id);
        }
    }
}

/// When a queued connection is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    This,
    Next,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_costs_24_bytes_and_its_state() {
        assert_eq!(size_of::<Conn<()>>(), 24);
        assert_eq!(size_of::<Option<Conn<()>>>(), 24, "the slab finds its tag in the descriptor");
    }
}
