//! An encrypted connection for those who block, with the timeouts of its socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use rustls::{ClientConnection, StreamOwned};

use super::settings::Connector;

/// A TCP connection to a server, encrypted.
pub struct Stream {
    inner: StreamOwned<ClientConnection, TcpStream>,
}

impl Stream {
    /// Shakes hands over a connected socket.
    ///
    /// # Errors
    /// When the socket fails or is silent for longer than its timeout, or when the other side is not one to trust; the
    /// text says why.
    pub fn connect(socket: TcpStream, connector: &Connector) -> io::Result<Stream> {
        let session =
            ClientConnection::new(connector.config.clone(), connector.name.clone()).map_err(io::Error::other)?;
        let mut inner = StreamOwned::new(session, socket);
        while inner.conn.is_handshaking() {
            match inner.conn.complete_io(&mut inner.sock) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Stream { inner })
    }

    /// The socket below: for its options and its end, not for bytes.
    pub fn socket(&self) -> &TcpStream {
        &self.inner.sock
    }

    /// Whether bytes can be read without asking the socket.
    pub fn has_buffered(&mut self) -> bool {
        self.inner.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            // Servers of Redis' kind end without a word, as plain ones do.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.inner.write(bytes)?;
        // What rustls has kept would wait for the next call.
        self.inner.flush()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.sock.as_fd()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.inner.conn.send_close_notify();
        // The other side may be gone.
        let _ = self.inner.conn.write_tls(&mut self.inner.sock);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("socket", &self.inner.sock).finish_non_exhaustive()
    }
}
