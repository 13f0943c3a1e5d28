//! The floor: a bare epoll loop that answers a constant to each read. What it costs is what the
//! kernel costs; nothing that answers over sockets in this way can cost less.

use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use slab::Slab;

use super::race::Runner;

/// Clients of one thread: a little less than a table of 20,000 descriptors holds, since the kernel deals out unevenly.
const CLIENTS_PER_THREAD: usize = 18_500;

/// A running floor, on core 0.
pub(super) struct Floor {
    child: Child,
    port: u16,
}

impl Floor {
    /// Starts this program once more as the floor.
    pub(super) fn start(answer: &str) -> Result<Floor> {
        Floor::start_for(answer, 50)
    }

    /// As [`Floor::start`], with as many threads as so many clients take, each with a descriptor table of its own.
    pub(super) fn start_for(answer: &str, clients: usize) -> Result<Floor> {
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", "0"]).arg(std::env::current_exe()?);
        Floor::spawn(pinned, answer, clients.div_ceil(CLIENTS_PER_THREAD).max(1))
    }

    /// As [`Floor::start`], with so many threads on whatever cores there are.
    pub(super) fn start_threads(answer: &str, threads: usize) -> Result<Floor> {
        Floor::spawn(Command::new(std::env::current_exe()?), answer, threads)
    }

    fn spawn(mut command: Command, answer: &str, threads: usize) -> Result<Floor> {
        let port = testkit::server::free_port()?;
        let child =
            command.args(["floor", &port.to_string(), answer, &threads.to_string()]).spawn().context("the floor")?;
        let floor = Floor { child, port };
        let end = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > end {
                bail!("the floor does not listen on port {port}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(floor)
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// It, as something to load.
    pub(super) fn runner(&self) -> Runner {
        Runner { port: self.port, pid: self.child.id() }
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `xtask floor PORT ANSWER`, run by the bench only.
pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut words = parser.raw_args()?;
    let port: u16 = words.next().and_then(|word| word.to_str()?.parse().ok()).context("floor: no port")?;
    let answer = words.next().context("floor: no answer")?.into_encoded_bytes();
    let threads: usize = words.next().and_then(|word| word.to_str()?.parse().ok()).unwrap_or(1);
    if threads == 1 {
        serve(&listen(port)?, &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let listeners = (0..threads).map(|_| listen(port)).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let servers: Vec<_> = listeners
            .iter()
            .map(|listener| {
                scope.spawn(|| {
                    testkit::process::use_private_table()?;
                    serve(listener, &answer)
                })
            })
            .collect();
        servers.into_iter().try_for_each(|server| server.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A listener of one thread; the kernel deals connections out to all of a port.
fn listen(port: u16) -> Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &std::net::SocketAddr::from(([127, 0, 0, 1], port)))?;
    listen(&socket, 65_535)?;
    Ok(socket)
}

/// The listener's token; no place of a client is this far.
const LISTENER: u64 = u64::MAX;

fn serve(listener: &OwnedFd, answer: &[u8]) -> Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut streams: Slab<OwnedFd> = Slab::new();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(128);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in &events {
            let token = event.data.u64();
            let key = usize::try_from(token)?;
            let Some(stream) = streams.get(key) else {
                while let Ok(stream) = rustix::net::accept_with(listener, rustix::net::SocketFlags::NONBLOCK) {
                    rustix::net::sockopt::set_tcp_nodelay(&stream, true)?;
                    let place = streams.vacant_entry();
                    let token = epoll::EventData::new_u64(u64::try_from(place.key())?);
                    epoll::add(&epoll, stream.as_fd(), token, epoll::EventFlags::IN)?;
                    place.insert(stream);
                }
                continue;
            };
            let count = rustix::io::read(stream, &mut buffer).unwrap_or(0);
            let request = &buffer[..count];
            if request.is_empty() {
                streams.remove(key);
            } else if request.get(8..14) == Some(b"CONFIG") {
                // The generator asks for two settings first, and goes on without them.
                rustix::io::write(stream, b"-ERR none\r\n")?;
            } else {
                rustix::io::write(stream, answer)?;
            }
        }
    }
}
