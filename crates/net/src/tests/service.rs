//! A service that speaks a protocol of lines, to be driven over real sockets.
//!
//! `echo X` answers `X`; `big N` answers N bytes; `need N` takes N bytes and a newline behind it and answers their number;
//! `pause`, `close` and `abort` do what they say. Anything else ends the connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::*;

type Work = dyn FnOnce(&mut Lines, &mut Context<Job>, &mut Conns<Lines>) + Send;

/// What tests send: something to do on the loop's thread.
pub(super) struct Job(pub(super) Box<Work>);

#[derive(Default)]
pub(super) struct Lines {
    pub(super) log: Arc<Mutex<Vec<String>>>,
    /// Lines served per call; more make it yield.
    pub(super) share: usize,
    pub(super) refuse: bool,
    pub(super) output_limit: usize,
    pub(super) keep_half_closed: bool,
    pub(super) calls: u64,
    pub(super) opened: Vec<ConnId>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Lines { share: usize::MAX, output_limit: usize::MAX, ..Lines::default() }
    }

    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }
}

impl Service for Lines {
    type State = ();
    type Message = Job;

    fn accepted(&mut self, _: &mut Context<Job>, id: ConnId, peer: &Peer) -> Result<(), Vec<u8>> {
        if self.refuse {
            return Err(b"-no\n".to_vec());
        }
        self.opened.push(id);
        self.note(match peer {
            Peer::Tcp(_) => "accepted tcp".into(),
            Peer::Unix => "accepted unix".into(),
        });
        Ok(())
    }

    fn connected(&mut self, _: &mut Context<Job>, _: ConnId, _: &mut (), result: std::io::Result<()>) {
        self.note(format!("connected {:?}", result.map_err(|error| error.kind())));
    }

    fn handshake_failed(&mut self, _: &mut Context<Job>, _: Option<Peer>, _: Option<Peer>, why: &str) {
        self.note(format!("refused: {why}"));
    }

    fn data(&mut self, _: &mut Context<Job>, _: ConnId, _: &mut (), input: &[u8], out: &mut Vec<u8>) -> Flow {
        self.calls += 1;
        let mut consumed = 0;
        for _ in 0..self.share {
            let rest = &input[consumed..];
            let flow = |consumed, then| Flow { consumed, then };
            let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                return flow(consumed, Then::Continue);
            };
            let line = std::str::from_utf8(&rest[..end]).unwrap();
            let mut after = consumed + end + 1;
            match line.split_once(' ').unwrap_or((line, "")) {
                ("echo", text) => out.extend_from_slice(format!("{text}\n").as_bytes()),
                ("big", len) => out.resize(out.len() + len.parse::<usize>().unwrap(), b'x'),
                ("need", len) => {
                    let need = end + 2 + len.parse::<usize>().unwrap();
                    if rest.len() < need {
                        return flow(consumed, Then::NeedMore(need));
                    }
                    out.extend_from_slice(format!("got {len}\n").as_bytes());
                    after = consumed + need;
                }
                ("pause", _) => return flow(after, Then::Pause),
                ("close", _) => return flow(after, Then::Close),
                _ => return flow(after, Then::CloseNow),
            }
            consumed = after;
        }
        Flow { consumed, then: Then::Yield }
    }

    fn closed(&mut self, _: &mut Context<Job>, _: ConnId, (): (), why: CloseReason) {
        self.note(format!("closed {why:?}"));
    }

    fn message(&mut self, cx: &mut Context<Job>, conns: &mut Conns<Self>, job: Job) {
        job.0(self, cx, conns);
    }

    fn turn(&mut self, _: &mut Context<Job>, _: &mut Conns<Self>) -> Option<Duration> {
        None
    }

    fn output_pending(&mut self, _: &mut Context<Job>, _: ConnId, _: &mut (), pending: usize) -> bool {
        pending <= self.output_limit
    }

    fn half_closed(&mut self, _: &mut Context<Job>, _: ConnId, _: &mut ()) -> bool {
        !self.keep_half_closed
    }
}

/// A loop on its own thread; ends with the test.
pub(super) struct Running {
    pub(super) handle: LoopHandle<Job>,
    pub(super) address: SocketAddr,
    pub(super) log: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(super) fn start(service: Lines) -> Running {
        Running::start_on(service, |listener| listener)
    }

    pub(super) fn start_on(service: Lines, adapt: impl FnOnce(Listener) -> Listener) -> Running {
        let listener = adapt(Listener::tcp("127.0.0.1:0".parse().unwrap(), 511, true).unwrap());
        let address = listener.local_addr().unwrap().tcp().unwrap();
        let builder = Builder::new().unwrap().listener(listener);
        let (handle, log) = (builder.handle(), Arc::clone(&service.log));
        let thread = std::thread::spawn(move || {
            builder.run(service).unwrap();
        });
        Running { handle, address, log, thread: Some(thread) }
    }

    pub(super) fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }

    /// Runs `job` on the loop's thread and gives its result.
    pub(super) fn ask<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Lines, &mut Context<Job>, &mut Conns<Lines>) -> R + Send + 'static,
    ) -> R {
        let (sender, receiver): (Sender<R>, Receiver<R>) = channel();
        self.handle.mailbox().send(Job(Box::new(move |service, cx, conns| {
            let _ = sender.send(job(service, cx, conns));
        })));
        receiver.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// Waits until `condition` holds on the loop's thread.
    pub(super) fn wait(
        &self,
        what: &str,
        condition: impl Fn(&mut Lines, &mut Conns<Lines>) -> bool + Send + Clone + 'static,
    ) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let condition = condition.clone();
            if self.ask(move |service, _, conns| condition(service, conns)) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}; log: {:?}", self.log.lock().unwrap());
            std::thread::yield_now();
        }
    }

    /// Waits until the log has this line.
    pub(super) fn wait_log(&self, line: &'static str) {
        self.wait(line, move |service, _| service.log.lock().unwrap().iter().any(|seen| seen == line));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the loop panicked");
        }
    }
}

pub(super) struct Client(pub(super) TcpStream);

impl Client {
    pub(super) fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn expect(&mut self, text: &str) {
        let mut got = vec![0; text.len()];
        if let Err(error) = self.0.read_exact(&mut got) {
            panic!("waiting for {text:?}: {error}");
        }
        assert_eq!(String::from_utf8_lossy(&got), text);
    }

    pub(super) fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}
