//! A server that answers as a test says: late, wrong, or not at all.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What to answer to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These bytes, after a while.
    After(Duration, Vec<u8>),
    /// Nothing, to this and all later requests of the connection.
    Never,
    /// These bytes, then the end of the connection.
    Cut(Vec<u8>),
}

type Respond = dyn Fn(&[Vec<u8>]) -> Answer + Send + Sync;

/// See the module. PING is answered by itself. Dropping it ends all connections.
pub struct Responder {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    respond: Box<Respond>,
    streams: Mutex<Vec<TcpStream>>,
    requests: AtomicU64,
    connections: AtomicU64,
    ended: AtomicBool,
}

impl Responder {
    /// Listens on a free port of 127.0.0.1. Requests of one connection are answered one after the other.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(respond: impl Fn(&[Vec<u8>]) -> Answer + Send + Sync + 'static) -> io::Result<Responder> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            respond: Box::new(respond),
            streams: Mutex::default(),
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.ended.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                of_thread.connections.fetch_add(1, Ordering::SeqCst);
                if let (Ok(mut streams), Ok(copy)) = (of_thread.streams.lock(), stream.try_clone()) {
                    streams.push(copy);
                }
                let shared = of_thread.clone();
                // The end of a connection is what an error means here.
                std::thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Ok(Responder { port, shared })
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Requests so far, PING not counted.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Ok(mut streams) = self.shared.streams.lock() {
            for stream in streams.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        // Has the listening thread look.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        let mut is_silent = false;
        while let Some(request) = read_request(&mut reader)? {
            if request.first().is_some_and(|name| name.eq_ignore_ascii_case(b"ping")) && !is_silent {
                writer.write_all(b"+PONG\r\n")?;
                continue;
            }
            self.requests.fetch_add(1, Ordering::SeqCst);
            if is_silent {
                continue;
            }
            match (self.respond)(&request) {
                Answer::After(delay, bytes) => {
                    if !delay.is_zero() {
                        std::thread::sleep(delay);
                    }
                    writer.write_all(&bytes)?;
                }
                Answer::Never => is_silent = true,
                Answer::Cut(bytes) => {
                    writer.write_all(&bytes)?;
                    return writer.shutdown(Shutdown::Both);
                }
            }
        }
        Ok(())
    }
}

/// One request in the multibulk form; `None` at the end.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Vec<Vec<u8>>>> {
    let Some(count) = read_header(reader, b'*')? else { return Ok(None) };
    let mut words = Vec::new();
    for _ in 0..count {
        let len = read_header(reader, b'$')?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut word = vec![0; len + 2];
        reader.read_exact(&mut word)?;
        word.truncate(len);
        words.push(word);
    }
    Ok(Some(words))
}

fn read_header(reader: &mut impl BufRead, mark: u8) -> io::Result<Option<usize>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let number = line.strip_prefix(char::from(mark)).and_then(|number| number.trim_end().parse().ok());
    number.map(Some).ok_or_else(|| io::Error::other(format!("no {} line: {line:?}", char::from(mark))))
}
