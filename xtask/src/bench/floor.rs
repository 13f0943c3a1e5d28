//! The floor: a bare epoll loop that answers a constant to each read. What it costs is what the
//! kernel costs; nothing that answers over sockets in this way can cost less.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::race::Runner;

/// A running floor, on core 0.
pub(super) struct Floor {
    child: Child,
    port: u16,
}

impl Floor {
    /// Starts this program once more as the floor.
    pub(super) fn start(answer: &str) -> Result<Floor> {
        let port = testkit::server::free_port()?;
        let child = Command::new("taskset")
            .args(["-c", "0"])
            .arg(std::env::current_exe()?)
            .args(["floor", &port.to_string(), answer])
            .spawn()
            .context("taskset")?;
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
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    let mut streams: HashMap<u64, OwnedFd> = HashMap::new();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(128);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in &events {
            let token = event.data.u64();
            let Some(stream) = streams.get(&token) else {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let stream = OwnedFd::from(stream);
                    let token = u64::try_from(stream.as_raw_fd())?;
                    epoll::add(&epoll, stream.as_fd(), epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
                    streams.insert(token, stream);
                }
                continue;
            };
            let count = rustix::io::read(stream, &mut buffer).unwrap_or(0);
            let request = &buffer[..count];
            if request.is_empty() {
                streams.remove(&token);
            } else if request.windows(6).any(|word| word == b"CONFIG") {
                // The generator asks for two settings first, and goes on without them.
                rustix::io::write(stream, b"-ERR none\r\n")?;
            } else {
                rustix::io::write(stream, &answer)?;
            }
        }
    }
}
