//! The log on a disk that fails and loses what was not forced to it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::durability::claim::{Claim, Purpose};
use crate::exec::single;
use crate::session::{ClientId, Session};
use crate::worker::Worker;
use net::ConnId;
use persistence::disk::{Fault, Operation, SimulatedDisk};
use resp::{Args, Proto};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A server without a network.
struct Bench {
    shared: Arc<Shared>,
    worker: Worker,
    session: Session,
}

impl Bench {
    /// Loads what the disk holds and opens the log. `None`: it could not start.
    fn start(disk: &SimulatedDisk) -> Option<Bench> {
        let config = Config {
            appendonly: true,
            appendfsync: AppendFsync::Always,
            io_threads: 1,
            save: Vec::new(),
            ..Config::default()
        };
        let mut shared = Shared::new(config, None, &[]);
        shared.durability.disk = Arc::new(disk.clone());
        let shared = Arc::new(shared);
        let config = shared.config.snapshot();
        shared.aof.adopt(&config);
        let mut claim = Claim::new(&shared, Purpose::Loading).unwrap();
        let loaded = load::load(&shared, &config, &mut claim);
        drop(claim);
        loaded.and_then(|_| load::open(&shared, &config)).ok()?;
        let mut worker = Worker::new(0, shared.clone());
        worker.reply.set_proto(Proto::Resp2);
        Some(Bench { shared, worker, session: Session::new(ClientId(1), 0, true, None) })
    }

    fn run(&mut self, command: &str) -> String {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.worker.reply.clear();
        self.worker.locks.enter();
        single::run(&mut self.worker, ConnId::from_u64(0), &mut self.session, Args::from_slices(&words));
        self.worker.locks.leave();
        String::from_utf8_lossy(self.worker.reply.as_slice()).trim_end().to_owned()
    }

    /// Whether all that was recorded comes to be on disk soon.
    fn is_durable(&self) -> bool {
        let end = self.shared.keyspace.journal.end();
        self.soon(|shared| {
            shared.aof.ring(true, true);
            shared.aof.durable() >= end || shared.aof.errno().is_some()
        });
        self.shared.aof.durable() >= end
    }

    fn soon(&self, is_so: impl Fn(&Shared) -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if is_so(&self.shared) {
                return true;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        false
    }

    fn rewrite(&self) {
        self.shared.start_rewrite();
        assert!(self.soon(|shared| !shared.aof.rewrite.is_running() && shared.durability.claims.purpose().is_none()));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.shared.end_rewrite();
        self.shared.aof.end_threads();
    }
}

#[test]
fn a_failed_sync_is_mended_by_new_files_alone() {
    let disk = SimulatedDisk::new();
    let mut bench = Bench::start(&disk).unwrap();
    assert_eq!(bench.run("SET a 1"), "+OK");
    assert!(bench.is_durable());
    disk.set_fault(Some(Fault::Every(Operation::Sync, EIO)));
    assert_eq!(bench.run("SET b 1"), "+OK");
    assert!(!bench.is_durable());
    let refused = "-MISCONF Errors writing to the AOF file: Input/output error";
    assert_eq!(bench.run("SET c 1"), refused);
    assert_eq!(bench.run("PING"), refused);
    assert_eq!(bench.run("GET b"), "$1\r\n1");
    disk.set_fault(None);
    // The disk is well again, but who syncs the old file learns nothing of what it has lost.
    bench.shared.aof.ring(true, true);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(bench.run("SET c 1"), refused);
    bench.shared.rewrite_if_due(&bench.shared.config.snapshot());
    assert!(bench.soon(|shared| shared.aof.errno().is_none()));
    assert_eq!(bench.run("SET c 1"), "+OK");
    assert!(bench.is_durable());
    let after = disk.crash(|_| 0);
    let mut bench = Bench::start(&after).unwrap();
    assert_eq!(bench.run("MGET a b c"), "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1");
}

#[test]
fn a_full_disk_refuses_writes_and_recovers() {
    let disk = SimulatedDisk::new();
    let mut bench = Bench::start(&disk).unwrap();
    disk.set_fault(Some(Fault::Room(10)));
    assert_eq!(bench.run("SET a 1"), "+OK");
    assert!(!bench.is_durable(), "and so it was not acknowledged");
    assert_eq!(bench.run("SET b 1"), "-MISCONF Errors writing to the AOF file: No space left on device");
    disk.set_fault(None);
    assert!(bench.soon(|shared| shared.aof.errno().is_none()), "it tries again by itself");
    assert!(bench.is_durable());
    assert_eq!(bench.run("SET b 1"), "+OK");
    assert!(bench.is_durable());
    let mut bench = Bench::start(&disk.crash(|_| 0)).unwrap();
    assert_eq!(bench.run("MGET a b"), "*2\r\n$1\r\n1\r\n$1\r\n1");
}

/// The k-th call on files fails, for every k; then the power goes. Nothing that was on disk is lost, and what is there can
/// be loaded.
#[test]
fn whichever_call_fails_nothing_acknowledged_is_lost() {
    let mut rng = fastrand::Rng::with_seed(3);
    for call in 0..70 {
        let disk = SimulatedDisk::new();
        // A log that is there already, so that starting on it is part of the test.
        let mut bench = Bench::start(&disk).unwrap();
        bench.run("SET n 1");
        assert!(bench.is_durable());
        drop(bench);
        let errno = if rng.bool() { EIO } else { ENOSPC };
        disk.set_fault(Some(Fault::Call(call, errno)));
        let mut acknowledged = 1;
        if let Some(mut bench) = Bench::start(&disk) {
            for number in 2..8 {
                if number == 4 || number == 6 {
                    bench.rewrite();
                }
                let reply = bench.run(&format!("SET n {number}"));
                if reply == "+OK" && bench.is_durable() {
                    acknowledged = number;
                }
            }
        }
        disk.set_fault(None);
        let after = disk.crash(|most| rng.usize(..=most));
        let mut bench = Bench::start(&after).unwrap_or_else(|| panic!("call {call}: it does not start"));
        let text = bench.run("GET n");
        let there: i32 = text.rsplit("\r\n").next().unwrap().parse().unwrap();
        assert!(there >= acknowledged, "call {call}: {acknowledged} was acknowledged, {there} is there");
    }
}
