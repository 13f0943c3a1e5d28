use super::*;

#[test]
fn prefix_commands_come_in_redis_order() {
    let options = Options {
        password: Some(b"pw".to_vec()),
        user: Some(b"bob".to_vec()),
        tracking: true,
        database: 5,
        resp3: true,
        ..Options::default()
    };
    let (bytes, replies) = prefix_commands(&options);
    assert_eq!(replies, 4);
    assert_eq!(
        String::from_utf8_lossy(&bytes),
        "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$2\r\npw\r\n\
         *3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\non\r\n\
         *2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
    );
    let cluster = Options { database: 5, cluster: true, ..Options::default() };
    assert_eq!(prefix_commands(&cluster).1, 0);
}

fn shared(threads: usize, limit: Option<u64>) -> Shared {
    Shared {
        clock: Instant::now(),
        state: AtomicU8::new(State::Connect as u8),
        started_at: AtomicU64::new(0),
        ready_threads: AtomicUsize::new(0),
        threads,
        issued: AtomicU64::new(0),
        server_cpu: [AtomicU64::new(0), AtomicU64::new(0)],
        server_pid: None,
        waits_for_start: false,
        is_resting: AtomicBool::new(false),
        limit,
        stats: Vec::new(),
        failure: Mutex::new(None),
        live: None,
    }
}

#[test]
fn quotas_add_up_exactly() {
    for threads in [1, 2, 7] {
        let shared = shared(threads, Some(10_010));
        let mut total = 0;
        loop {
            match shared.take_quota(16) {
                0 => break,
                block => total += block,
            }
        }
        assert_eq!(total, 10_010, "{threads} threads");
    }
    assert_eq!(shared(1, None).take_quota(1), UNLIMITED_BLOCK);
}

#[test]
fn the_last_ready_thread_starts_the_test() {
    let shared = shared(2, None);
    shared.thread_is_ready();
    assert_eq!(shared.state(), State::Connect);
    shared.thread_is_ready();
    assert_eq!(shared.state(), State::Run);
    shared.fail("first");
    shared.fail("second");
    assert_eq!((shared.state(), shared.failure().as_deref()), (State::Stop, Some("first")));
}

#[test]
fn clients_are_dealt_to_threads() {
    assert_eq!(std::mem::align_of::<ThreadStats>(), 128);
    assert!(std::mem::size_of::<client::Client>() <= 176);
}
