//! What the append only file costs: pipelined SET with `everysec` against the same server without it, and SET of fifty
//! clients with `always` beside redis-server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::Launch;

use super::persistence::write;
use super::{Options, Row, median, show};

const KEYS: usize = 100_000;
const WRITERS: usize = 8;
/// Clients that write with `always`, one command at a time each.
const CLIENTS: usize = 50;

/// Largest time per command with `everysec`, in that without.
const EVERYSEC_TARGET: f64 = 1.0 / 0.92;
/// Largest time per command with `always`, in redis-server's.
const ALWAYS_TARGET: f64 = 0.5;

pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let rounds = if options.quick { 3 } else { options.rounds.max(5) };
    let length = Duration::from_secs_f64(if options.quick { 1.0 } else { options.seconds });
    let log = ["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--appendfsync"];
    let (mut with, mut without, mut redis_with, mut redis_without) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        without.push(pipelined(options.oxidis(), length)?);
        with.push(pipelined(options.oxidis().args(&log).args(&["everysec"]), length)?);
        redis_without.push(pipelined(options.peer(), length)?);
        redis_with.push(pipelined(options.peer().args(&log).args(&["everysec"]), length)?);
    }
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..rounds {
        ours.push(single(options.oxidis().args(&log).args(&["always"]), length)?);
        theirs.push(single(options.peer().args(&log).args(&["always"]), length)?);
    }
    let row = |name: &str, ours: &[f64], other: (&str, &[f64]), target| {
        let other = Some((other.0.to_owned(), median(other.1)));
        show(Row { name: name.to_owned(), unit: "µs", ours: median(ours), other, target })
    };
    Ok(vec![
        row("SET -P 16, appendfsync everysec", &with, ("without", &without), Some(EVERYSEC_TARGET)),
        row("redis-server: the same", &redis_with, ("without", &redis_without), None),
        row("SET, 50 clients, appendfsync always", &ours, ("redis-server", &theirs), Some(ALWAYS_TARGET)),
    ])
}

/// Microseconds of time per command, over all clients.
fn microseconds(sent: &AtomicU64, took: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let count = sent.load(Ordering::Relaxed).max(1) as f64;
    took.as_secs_f64() * 1e6 / count
}

fn pipelined(launch: Launch, length: Duration) -> Result<f64> {
    let server = launch.args(&["--save", ""]).try_start()?;
    let port = server.port();
    drive(WRITERS, length, |seed, stop, sent| write(port, seed as u64 + 1, KEYS, stop, sent))
}

fn single(launch: Launch, length: Duration) -> Result<f64> {
    let server = launch.args(&["--save", ""]).try_start()?;
    let port = server.port();
    drive(CLIENTS, length, |id, stop, sent| {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let request = format!("*3\r\n$3\r\nSET\r\n$5\r\nk{id:04}\r\n$3\r\nxyz\r\n");
        let mut reply = [0_u8; 5];
        while !stop.load(Ordering::Relaxed) {
            stream.write_all(request.as_bytes())?;
            stream.read_exact(&mut reply)?;
            ensure!(&reply == b"+OK\r\n", "SET: {}", String::from_utf8_lossy(&reply));
            sent.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })
}

/// Runs clients for a time.
fn drive(
    clients: usize,
    length: Duration,
    client: impl Fn(usize, &AtomicBool, &AtomicU64) -> Result<()> + Sync,
) -> Result<f64> {
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (client, stop, sent) = (&client, &stop, &sent);
        let threads: Vec<_> = (0..clients).map(|id| scope.spawn(move || client(id, stop, sent))).collect();
        // What it takes to get going is not counted.
        std::thread::sleep(length / 4);
        sent.store(0, Ordering::Relaxed);
        let started = Instant::now();
        std::thread::sleep(length);
        let result = microseconds(sent, started.elapsed());
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(result)
    })
}
