//! A TCP proxy on a port of its own that can cut, hold and slow its connections: a bad network for tests.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// See the module. Dropping it ends all connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    streams: Mutex<Vec<TcpStream>>,
    /// New connections are closed at once.
    refuses: AtomicBool,
    /// Nothing is passed on.
    holds: AtomicBool,
    /// Connections are cut after so many more bytes from the server, once; `u64::MAX`: not.
    cut_after: AtomicU64,
    /// Milliseconds before each piece is passed on.
    delay_ms: AtomicU64,
    accepted: AtomicU64,
    ended: AtomicBool,
}

impl Proxy {
    /// Begins to pass connections on to a port of 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(target: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { cut_after: AtomicU64::new(u64::MAX), ..Shared::default() });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if of_thread.ended.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                of_thread.accepted.fetch_add(1, Ordering::SeqCst);
                if of_thread.refuses.load(Ordering::SeqCst) {
                    continue;
                }
                // A failure is a connection that ends, which is what this is for.
                let _ = of_thread.join(client, target);
            }
        });
        Ok(Proxy { port, shared })
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections made so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Ends all present connections.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Ends all connections when so many more bytes have come from the server.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.cut_after.store(bytes, Ordering::SeqCst);
    }

    /// Refuses new connections, or takes them again.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
    }

    /// Passes nothing on, or goes on.
    pub fn hold(&self, holds: bool) {
        self.shared.holds.store(holds, Ordering::SeqCst);
    }

    /// Delays each piece.
    pub fn delay(&self, delay: Duration) {
        self.shared.delay_ms.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.cut();
        // Has the listening thread look.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn cut(&self) {
        if let Ok(mut streams) = self.streams.lock() {
            for stream in streams.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    fn join(self: &Arc<Self>, client: TcpStream, target: u16) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", target))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        if let Ok(mut streams) = self.streams.lock() {
            streams.push(client.try_clone()?);
            streams.push(server.try_clone()?);
        }
        let (up, down) = (self.clone(), self.clone());
        let (client_reads, server_writes) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || up.pass(client_reads, server_writes, false));
        std::thread::spawn(move || down.pass(server, client, true));
        Ok(())
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, is_server: bool) {
        let mut piece = vec![0; 16 << 10];
        while let Ok(got) = from.read(&mut piece) {
            let delay_ms = self.delay_ms.load(Ordering::SeqCst);
            if delay_ms > 0 {
                std::thread::sleep(Duration::from_millis(delay_ms));
            }
            while self.holds.load(Ordering::SeqCst) && !self.ended.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut passed = got;
            let left = self.cut_after.load(Ordering::SeqCst);
            let is_cut = is_server && left <= got as u64;
            if is_cut {
                passed = usize::try_from(left).unwrap_or(0);
                self.cut_after.store(u64::MAX, Ordering::SeqCst);
            } else if is_server && left != u64::MAX {
                self.cut_after.store(left - got as u64, Ordering::SeqCst);
            }
            if got == 0 || to.write_all(&piece[..passed]).is_err() {
                break;
            }
            if is_cut {
                self.cut();
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
