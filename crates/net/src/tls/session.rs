//! The session of one connection: rustls between what the service sees and what the socket carries.
//!
//! Plain input is taken out of rustls as soon as it is there, plain output is given to it only when the kernel takes more;
//! so what waits, waits where that of a plain connection would, and limits see it. What is encrypted and not sent yet is at
//! most one piece of [`PIECE_BYTES`].

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::SendFlags;
use rustls::{ClientConnection, Connection, ServerConnection};

use super::settings::{Acceptor, Connector};
use crate::context::Stats;

/// Plain bytes encrypted for one system call: four records.
const PIECE_BYTES: usize = 64 * 1024;
/// What rustls keeps for a session that stands and has nothing under way, beside the struct itself. Measured.
const HEAP_BYTES: usize = 8 * 1024;

/// See the module.
pub(crate) struct Session {
    tls: Connection,
    /// Encrypted output that the kernel has not taken.
    cipher: Vec<u8>,
    cipher_start: usize,
    /// On the list of those that wait for their share of handshakes.
    pub(crate) is_queued: bool,
    /// The service knows that the session stands.
    pub(crate) is_announced: bool,
    /// The other side has said that it sends nothing more.
    pub(crate) has_ended: bool,
    /// It must not be gone on with.
    has_failed: bool,
}

/// What came out of a read.
pub(crate) enum Received {
    /// Plain bytes, as many as were appended.
    Fine,
    /// The other side breaks the protocol, or is not to be trusted. Plain bytes from before may have been appended.
    Failed(rustls::Error),
}

/// What came out of sending.
pub(crate) struct Sent {
    /// Plain bytes that were taken.
    pub(crate) taken: usize,
    /// The kernel takes no more for now.
    pub(crate) is_full: bool,
}

impl Session {
    pub(crate) fn accept(acceptor: &Acceptor) -> Result<Session, rustls::Error> {
        ServerConnection::new(acceptor.config()).map(|tls| Session::new(tls.into()))
    }

    pub(crate) fn connect(connector: &Connector) -> Result<Session, rustls::Error> {
        ClientConnection::new(connector.config.clone(), connector.name.clone()).map(|tls| Session::new(tls.into()))
    }

    fn new(tls: Connection) -> Session {
        Session {
            tls,
            cipher: Vec::new(),
            cipher_start: 0,
            is_queued: false,
            is_announced: false,
            has_ended: false,
            has_failed: false,
        }
    }

    /// Whether the handshake is not over.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(crate) fn is_client(&self) -> bool {
        matches!(self.tls, Connection::Client(_))
    }

    /// Encrypted bytes that wait for the kernel.
    pub(crate) fn unsent(&self) -> usize {
        self.cipher.len().saturating_sub(self.cipher_start)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Session>() + HEAP_BYTES + self.cipher.capacity()
    }

    /// Takes what the socket gave; appends what it means to `plain`.
    pub(crate) fn receive(&mut self, mut cipher: &[u8], plain: &mut Vec<u8>) -> Received {
        while !cipher.is_empty() && !self.has_ended {
            match self.tls.read_tls(&mut cipher) {
                Ok(1..) => {}
                // Only after the end, which is looked for below, or when rustls' buffers are full, which they are not since
                // they are emptied each time.
                _ => return self.failed(rustls::Error::General("the session takes no more".to_owned())),
            }
            let state = self.tls.process_new_packets();
            self.take_plain(plain);
            match state {
                Ok(state) => self.has_ended = state.peer_has_closed(),
                Err(error) => return self.failed(error),
            }
        }
        Received::Fine
    }

    fn failed(&mut self, error: rustls::Error) -> Received {
        self.has_failed = true;
        Received::Failed(error)
    }

    fn take_plain(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.tls.reader();
        let mut chunk = [0; 4096];
        // Ends with an error of the kind "would block" when there is no more, and with 0 after the end.
        while let Ok(len @ 1..) = reader.read(&mut chunk) {
            plain.extend_from_slice(chunk.get(..len).unwrap_or_default());
        }
    }

    /// Moves what rustls wants to be sent behind what waits.
    fn collect(&mut self) {
        while self.tls.wants_write() {
            // Into memory this cannot fail.
            if self.tls.write_tls(&mut self.cipher).is_err() {
                return;
            }
        }
    }

    /// Sends what waits, then `plain` as far as the kernel takes it; none of it before the handshake is over. `scratch` is
    /// a buffer to encrypt into, empty before and after.
    pub(crate) fn send(
        &mut self,
        socket: &OwnedFd,
        plain: &[u8],
        scratch: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> Result<Sent, Errno> {
        if self.cipher.is_empty() {
            std::mem::swap(&mut self.cipher, scratch);
        }
        let sent = self.send_pieces(socket, plain, stats);
        if self.unsent() == 0 {
            self.cipher.clear();
            self.cipher_start = 0;
            if scratch.capacity() == 0 {
                std::mem::swap(&mut self.cipher, scratch);
            } else {
                self.cipher = Vec::new();
            }
        }
        sent
    }

    fn send_pieces(&mut self, socket: &OwnedFd, plain: &[u8], stats: &mut Stats) -> Result<Sent, Errno> {
        let mut taken = 0;
        loop {
            self.collect();
            let waiting = self.cipher.get(self.cipher_start..).unwrap_or_default();
            if !waiting.is_empty() {
                stats.writes += 1;
                let len = match rustix::net::send(socket, waiting, SendFlags::NOSIGNAL) {
                    Ok(len) => len,
                    Err(Errno::AGAIN) => return Ok(Sent { taken, is_full: true }),
                    Err(Errno::INTR) => return Ok(Sent { taken, is_full: false }),
                    Err(errno) => return Err(errno),
                };
                stats.written_bytes += len as u64;
                self.cipher_start += len;
                if self.unsent() > 0 {
                    return Ok(Sent { taken, is_full: true });
                }
                self.cipher.clear();
                self.cipher_start = 0;
            }
            let left = plain.get(taken..).unwrap_or_default();
            if left.is_empty() || self.is_handshaking() {
                return Ok(Sent { taken, is_full: false });
            }
            let piece = left.get(..PIECE_BYTES).unwrap_or(left);
            match self.tls.writer().write(piece) {
                Ok(len @ 1..) => taken += len,
                // Nothing can be sent behind our own end.
                _ => return Err(Errno::PIPE),
            }
        }
    }

    /// Says that nothing more will be sent, as far as the kernel takes it at once.
    pub(crate) fn say_goodbye(&mut self, socket: &OwnedFd) {
        if !self.is_handshaking() && !self.has_failed {
            self.tls.send_close_notify();
        }
        self.collect();
        if let Some(waiting) = self.cipher.get(self.cipher_start..).filter(|waiting| !waiting.is_empty()) {
            let _ = rustix::net::send(socket, waiting, SendFlags::NOSIGNAL);
        }
    }
}
