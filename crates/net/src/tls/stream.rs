//! An encrypted connection for those who block, with the timeouts of its socket. On a non-blocking socket it does not block.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustls::ClientConnection;

use super::settings::Connector;

/// Why a handshake that timed out may have done so.
const SILENT: &str = "no answer to the handshake; does that port speak TLS?";

/// A TCP connection to a server, encrypted.
pub struct Stream {
    session: ClientConnection,
    socket: TcpStream,
}

impl Stream {
    /// Shakes hands over a connected socket.
    ///
    /// # Errors
    /// When the socket fails or is silent for longer than its timeout, or when the other side is not one to trust; the
    /// text says why.
    pub fn connect(mut socket: TcpStream, connector: &Connector) -> io::Result<Stream> {
        let mut session =
            ClientConnection::new(connector.config.clone(), connector.name.clone()).map_err(io::Error::other)?;
        while session.is_handshaking() {
            match session.complete_io(&mut socket) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    // A plain server waits for more of what it takes for a command.
                    return Err(io::Error::new(io::ErrorKind::TimedOut, SILENT));
                }
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        let mut stream = Stream { session, socket };
        stream.flush()?;
        Ok(stream)
    }

    /// The socket below: for its options and its end, not for bytes.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether bytes that were taken have not been sent: they go with the next write or flush.
    pub fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Reads from the socket once at most. `None`: what came has brought nothing to read yet.
    ///
    /// # Errors
    /// When the socket fails or would block, or the other side breaks the protocol.
    pub fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some(read) = self.take(buffer)? {
            return Ok(Some(read));
        }
        let got = self.session.read_tls(&mut self.socket)?;
        if let Err(error) = self.session.process_new_packets() {
            // The other side is to know why.
            let _ = self.session.write_tls(&mut self.socket);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        let taken = self.take(buffer)?;
        // Servers of Redis' kind may end without a word, as plain ones do.
        Ok(if got == 0 { taken.or(Some(0)) } else { taken })
    }

    /// What is decrypted already; 0 is the end.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.session.reader().read(buffer) {
            Ok(read) => Ok(Some(read)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                io::ErrorKind::UnexpectedEof => Ok(Some(0)),
                _ => Err(error),
            },
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.read_once(buffer)? {
                return Ok(read);
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.session.writer().write(bytes)?;
        match self.flush() {
            // They are taken, so the next call is to tell.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && taken > 0 => Ok(taken),
            Err(error) => Err(error),
            Ok(()) => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.session.send_close_notify();
        // The other side may be gone, or take nothing more.
        let _ = self.socket.set_nonblocking(true);
        let _ = self.flush();
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("socket", &self.socket).finish_non_exhaustive()
    }
}
