//! Tests of the process pieces that can be tried without becoming a server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use super::{banner, daemon, error_text, file_mode_mask, limits, listen, log, signals, supervise, system, title};
use crate::config::{Config, LogLevel};

#[test]
fn errors_read_as_in_c() {
    assert_eq!(error_text(&io::Error::from_raw_os_error(libc::EADDRINUSE)), "Address already in use");
    assert_eq!(error_text(&io::Error::other("odd")), "odd");
}

#[test]
fn umask_is_found() {
    let shell = Command::new("sh").args(["-c", "umask"]).output().unwrap();
    let shell = String::from_utf8(shell.stdout).unwrap();
    assert_eq!(u32::from_str_radix(shell.trim(), 8).unwrap(), file_mode_mask());
}

#[test]
fn bind_addresses_are_resolved() {
    let config = Config {
        bind: ["*", "-::*", "127.0.0.1", "-::1", "localhost"].map(|host| host.as_bytes().to_vec()).to_vec(),
        ..Config::default()
    };
    let found = listen::addresses(&config, 7000).unwrap();
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let expected = ["0.0.0.0:7000", "[::]:7000", "127.0.0.1:7000", "[::1]:7000", "127.0.0.1:7000"].map(address);
    assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), expected);
    assert_eq!(found.iter().map(|found| found.is_optional).collect::<Vec<_>>(), [false, true, false, true, false]);
    assert_eq!(found[1].host, "::*");
    assert!(listen::addresses(&config, 0).unwrap().is_empty());
    let config = Config { bind: vec![b"no.such.host.invalid".to_vec()], ..Config::default() };
    assert!(listen::addresses(&config, 7000).is_err());

    let missing = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
    assert!(listen::judge_failure(&found[1], &missing).is_ok());
    assert!(listen::judge_failure(&found[0], &missing).is_err());
    assert!(listen::judge_failure(&found[1], &io::Error::from_raw_os_error(libc::EADDRINUSE)).is_err());
    assert!(listen::judge_failure(&found[0], &io::Error::from_raw_os_error(libc::EAFNOSUPPORT)).is_ok());
}

#[test]
fn titles_expand() {
    let expand = |template: &str, config: Config| {
        let config = Config { proc_title_template: template.as_bytes().to_vec(), ..config };
        title::expand(&config, b"oxidis", None).map(|title| String::from_utf8(title).unwrap())
    };
    let standard = "{title} {listen-addr} {server-mode}";
    assert_eq!(expand(standard, Config::default()).unwrap(), "oxidis *:6379");
    let cluster = Config { cluster_enabled: true, bind: vec![b"1.2.3.4".to_vec()], ..Config::default() };
    assert_eq!(expand(standard, cluster).unwrap(), "oxidis 1.2.3.4:6379 [cluster]");
    let unix = Config { port: 0, unixsocket: b"/s".to_vec(), ..Config::default() };
    assert_eq!(expand("{listen-addr} {{x} {config-file}", unix).unwrap(), "unixsocket:/s {x} -");
    assert_eq!(expand("{nothing}", Config::default()), None);
    assert!(title::is_valid(b"x"));
    assert!(!title::is_valid(b"") && !title::is_valid(b"{title}") && !title::is_valid(b"{title"));
}

#[test]
fn processor_lists_are_read() {
    assert_eq!(system::parse_processors(b"0,2-6:2 9"), Some(vec![0, 2, 4, 6, 9]));
    for bad in ["x", "3-1", "1:0", "0-99999999", "-1"] {
        assert_eq!(system::parse_processors(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn supervisor_gets_its_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    supervise::send(path.to_str().unwrap().as_bytes(), "READY=1\n").unwrap();
    let mut buffer = [0; 32];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"READY=1\n");
    assert!(supervise::send(b"/does/not/exist", "x").is_err());
}

#[test]
fn memory_test_finds_no_fault() {
    let mut passes = Vec::new();
    assert_eq!(system::test_memory(1, 4, &mut |pass| passes.push(pass)), Ok(0));
    assert_eq!(passes, [1, 2, 3, 4]);
    assert!(system::test_memory(u64::MAX, 1, &mut |_| ()).is_err());
}

#[test]
fn system_check_reports_each_check() {
    let (report, _) = system::check();
    for name in ["slow-clocksource", "xen-clocksource", "overcommit", "THP"] {
        assert!(report.contains(&format!("[{name}]...")), "{report}");
    }
}

#[test]
fn open_files_that_fit_change_nothing() {
    let fits = limits::Descriptors { maxclients: 1, workers: 2, private_tables: false };
    assert_eq!(limits::fit_open_files(1, 2), Ok(fits));
    assert!(limits::too_many_clients(7).ends_with("try with 7"));
}

#[test]
fn version_line_is_readable_by_tools() {
    assert!(banner::version_line().starts_with("Redis server v=7.2.5 sha=00000000:0 malloc=jemalloc"));
}

/// The pieces that touch the whole process run in a process of their own: this test starts itself.
#[test]
fn whole_process_pieces() {
    const MARK: &str = "OXIDIS_PROCESS_TEST";
    if let Some(folder) = std::env::var_os(MARK) {
        child(std::path::Path::new(&folder));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["process::tests::whole_process_pieces", "--exact", "--nocapture"])
        .env(MARK, folder.path())
        .output()
        .unwrap();
    let text = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    assert!(text.contains(":M "), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        " * oO0OoO0OoO0Oo Oxidis is starting oO0OoO0OoO0Oo\n",
        " * Redis version=7.2.5, bits=64, commit=00000000, modified=0, pid=",
        " * Configuration loaded\n",
        "      PID: ",
        " * Server initialized\n",
        " * Ready to accept connections tcp\n",
        " * Ready to accept connections unix\n",
        ":S ",
        ":signal-handler (",
        ") Received SIGTERM scheduling shutdown...\n",
        ") Received SIGINT scheduling shutdown...\n",
        "=== REDIS BUG REPORT START",
        "a fault for the test, at ",
        " * Removing the pid file.\n",
        " # Redis is now ready to exit, bye bye...\n",
        ") You insist... exiting now.\n",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    assert!(!text.contains("too quiet"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

fn child(folder: &std::path::Path) {
    let path = |name: &str| folder.join(name).to_str().unwrap().as_bytes().to_vec();
    let config = Config {
        logfile: path("log"),
        pidfile: path("pid"),
        always_show_logo: true,
        loglevel: LogLevel::Notice,
        ..Config::default()
    };
    log::configure(&config);
    banner::log_start(true, "oxidis server");
    banner::log_mode(&config);
    crate::log!(log::Level::Verbose, "too quiet");
    let pid_file = daemon::write_pid_file(&config, false).unwrap();
    let written = std::fs::read_to_string(folder.join("pid")).unwrap();
    assert_eq!(written, format!("{}\n", std::process::id()));

    title::show(&config, b"ox", None);
    let shown = std::fs::read("/proc/self/cmdline").unwrap();
    assert!(shown.starts_with(b"ox *:6379\0"), "{}", String::from_utf8_lossy(&shown));

    banner::log_initialized();
    banner::log_ready(&["tcp", "unix"]);
    log::set_role(log::Role::Replica);
    crate::log!(log::Level::Warning, "following");
    // Threads exist here, so going to the background must be refused.
    assert!(daemon::daemonize().is_err());

    super::crash::install();
    let fault = std::thread::spawn(|| panic!("a fault for the test")).join();
    assert!(fault.is_err());

    let (sender, receiver) = mpsc::channel();
    let watch = signals::watch(move |signal| sender.send(signal).unwrap()).unwrap();
    let send = |signal| rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
    send(rustix::process::Signal::TERM);
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(signals::ShutdownSignal::Term));
    send(rustix::process::Signal::HUP);
    pid_file.remove();
    assert!(!folder.join("pid").exists());
    banner::log_exit();
    // A SIGINT ends the process at once only while a request is pending.
    watch.forget_request();
    send(rustix::process::Signal::INT);
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(signals::ShutdownSignal::Int));
    send(rustix::process::Signal::INT);
    std::thread::sleep(Duration::from_secs(10));
}
