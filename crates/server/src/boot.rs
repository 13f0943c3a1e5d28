//! From the command line to running workers, and down again.

use crate::config::{self, Config, Invocation, Startup};
use crate::durability::load::{LoadingState, load_at_start};
use crate::log;
use crate::process::log::Level;
use crate::process::signals::ShutdownSignal;
use crate::process::{banner, crash, daemon, limits, listen, signals, supervise, system, title};
use crate::secure::Secure;
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use net::{Builder, Listener, SocketOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Runs `oxidis server` with the arguments after the subcommand; returns the exit code.
pub fn run(program: &str, arguments: &[std::ffi::OsString]) -> i32 {
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.clone().into_vec()).collect();
    let exists = |name: &[u8]| commands::table::lookup(name).is_some();
    match config::load(&arguments, &mut std::io::stdin().lock(), &exists) {
        Err(failure) => {
            failure.report();
            1
        }
        Ok(Invocation::Print { text, to_stdout, code }) => {
            print(&text, to_stdout);
            code
        }
        Ok(Invocation::Help) => help(program),
        Ok(Invocation::CheckSystem) => {
            let (text, fine) = system::check();
            print(&text, true);
            i32::from(!fine)
        }
        Ok(Invocation::TestMemory { mebibytes }) => test_memory(mebibytes),
        Ok(Invocation::Run(startup)) => serve(program, *startup),
    }
}

/// Redis: help is an error, on standard error. It stays so for those who call the server by its old name.
fn help(program: &str) -> i32 {
    let is_old_name = program.starts_with("redis-");
    let look = if is_old_name { options::Look::PLAIN } else { options::Look::of_stdout() };
    let text = options::help(&crate::command_line::tool(), program, None, look).unwrap_or_default();
    print(&text, !is_old_name);
    i32::from(is_old_name)
}

fn print(text: &str, to_stdout: bool) {
    use std::io::Write;
    // Nobody is left to tell if the stream is closed.
    let _ = if to_stdout {
        std::io::stdout().write_all(text.as_bytes())
    } else {
        std::io::stderr().write_all(text.as_bytes())
    };
}

fn test_memory(mebibytes: u64) -> i32 {
    match system::test_memory(mebibytes, 50, &mut |pass| print(&format!("pass {pass} of 50\r"), true)) {
        Ok(0) => {
            print("\nYour memory passed this test.\n", true);
            0
        }
        Ok(errors) => {
            print(&format!("\n{errors} faults found: replace the memory of this machine.\n"), true);
            1
        }
        Err(message) => {
            print(&format!("{message}\n"), false);
            1
        }
    }
}

fn serve(program: &str, startup: Startup) -> i32 {
    let Startup { mut config, config_file, had_arguments, renamed_commands, users, notices } = startup;
    crate::process::log::configure(&config);
    crash::install();
    crash::set_enabled(config.crash_log_enabled);
    system::warn_about_memory(&config);
    let supervisor = supervise::announce_start(config.supervised);
    let is_background = config.daemonize && supervisor.is_none();
    if is_background && let Err(error) = daemon::daemonize() {
        log!(Level::Warning, "Can't go to the background: {error}");
        return 1;
    }
    banner::log_start(had_arguments, program);
    for (level, line) in notices {
        log!(level, "{line}");
    }
    let Ok(descriptors) = limits::fit_open_files(config.maxclients, config.io_threads) else { return 1 };
    config.maxclients = descriptors.maxclients;
    config.io_threads = descriptors.workers;
    let secure = Secure::default();
    if Secure::is_needed(&config) && secure.configure(&config).is_err() {
        log!(Level::Warning, "Failed to configure TLS. Check logs for more info.");
        return 1;
    }
    let Some(listeners) = open_listeners(&config, &secure) else { return 1 };
    let pid_file = daemon::write_pid_file(&config, is_background);
    let file_text = config_file.as_deref().map(|path| path.as_os_str().as_bytes().to_vec());
    title::show(&config, program.as_bytes(), file_text.as_deref());
    banner::log_mode(&config);
    if system::set_oom_score(&config, system::OomRole::Primary).is_err() {
        log!(Level::Warning, "Cannot set oom_score_adj: the kernel may choose this process first when memory runs out");
    }
    system::warn_about_backlog(&config);
    if config.maxclients >= MANY_CLIENTS {
        log_doctor(&config);
    }
    system::warn_about_maxmemory(&config);
    if crate::process::allocator::set_threads(config.jemalloc_bg_thread).is_err() {
        log!(Level::Warning, "The allocator has no background threads: freed memory goes back to the system later");
    }
    let socket_path = config.unixsocket.clone();
    let kinds: Vec<&str> =
        [("tcp", config.port != 0), ("unix", !socket_path.is_empty()), ("tls", config.tls_port != 0)]
            .iter()
            .filter(|(_, on)| *on)
            .map(|(kind, _)| *kind)
            .collect();
    let mut shared = Shared::new(config, config_file.as_deref(), &renamed_commands);
    shared.secure = secure;
    let shared = Arc::new(shared);
    let started = shared.config.snapshot();
    if !shared.acl.load_at_start(&users, &started.aclfile, started.acl_pubsub_default.allows_all()) {
        return 1;
    }
    crate::scripting::functions::join_files(&shared);
    shared.aof.adopt(&shared.config.snapshot());
    let _ = shared.program.set(program.as_bytes().to_vec());
    crate::ticks::per_microsecond();
    let code = match run_workers(&shared, listeners, descriptors.private_tables, || {
        banner::log_ready(&kinds);
        supervise::announce_ready(supervisor, false);
    }) {
        Ok(()) => i32::try_from(shared.exit_code.load(Ordering::Relaxed)).unwrap_or(1),
        Err(error) => {
            log!(Level::Warning, "Cannot run the event loop: {error}");
            1
        }
    };
    supervise::announce_stop(supervisor);
    if let Some(pid_file) = pid_file {
        pid_file.remove();
    }
    if !socket_path.is_empty() {
        banner::log_unix_socket_removed();
        let _ = std::fs::remove_file(Path::new(std::ffi::OsStr::from_bytes(&socket_path)));
    }
    banner::log_exit();
    code
}

/// One list of listeners for each worker. `None`: the server cannot start; the reason is in the log.
fn open_listeners(config: &Config, secure: &Secure) -> Option<Vec<Vec<Listener>>> {
    let workers = config.io_threads as usize;
    let (mut all, mut opened) = open_tcp_listeners(config, secure, TcpKind::Plain, workers, true)?;
    if !config.unixsocket.is_empty() {
        let path = Path::new(std::ffi::OsStr::from_bytes(&config.unixsocket));
        let _ = std::fs::remove_file(path);
        let mode = (config.unixsocketperm != 0).then_some(config.unixsocketperm);
        match Listener::unix(path, backlog(config), mode) {
            Ok(listener) => {
                if let Some(first) = all.first_mut() {
                    first.push(listener);
                    opened += 1;
                }
            }
            Err(error) => {
                log!(Level::Warning, "Failed opening Unix socket: bind: {}", crate::process::error_text(&error));
                return None;
            }
        }
    }
    let (of_tls, opened_tls) = open_tcp_listeners(config, secure, TcpKind::Secure, workers, true)?;
    for (listeners, more) in all.iter_mut().zip(of_tls) {
        listeners.extend(more);
    }
    if opened + opened_tls == 0 {
        listen::log_nowhere();
        return None;
    }
    Some(all)
}

/// Kinds of TCP listeners, each with a port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpKind {
    /// `port`
    Plain,
    /// `tls-port`
    Secure,
}

impl TcpKind {
    /// Its port in a configuration; 0 is none.
    pub(crate) fn port(self, config: &Config) -> u16 {
        match self {
            TcpKind::Plain => config.port,
            TcpKind::Secure => config.tls_port,
        }
    }

    fn name(self) -> &'static str {
        match self {
            TcpKind::Plain => "tcp",
            TcpKind::Secure => "tls",
        }
    }
}

/// The TCP listeners of a kind, of each worker, and how many they are; none if there is no port. With `is_new_port` a port that
/// another program holds is noticed. `None`: an address that must be there cannot be opened; the reason is in the log.
pub(crate) fn open_tcp_listeners(
    config: &Config,
    secure: &Secure,
    kind: TcpKind,
    workers: usize,
    is_new_port: bool,
) -> Option<(Vec<Vec<Listener>>, usize)> {
    let mut all: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
    let mut opened = 0;
    let port = kind.port(config);
    if port == 0 {
        return Some((all, opened));
    }
    let acceptor = match kind {
        TcpKind::Plain => None,
        TcpKind::Secure => Some(secure.acceptor()?),
    };
    let Ok(addresses) = listen::addresses(config, port) else {
        listen::log_giving_up(port, kind.name());
        return None;
    };
    for address in &addresses {
        for (index, listeners) in all.iter_mut().enumerate() {
            match open_tcp(address.address, config, index == 0 && is_new_port) {
                Ok(listener) => {
                    listeners.push(match &acceptor {
                        Some(acceptor) => listener.secured_by(acceptor.clone()),
                        None => listener,
                    });
                    opened += 1;
                }
                Err(error) => {
                    if listen::judge_failure(address, &error).is_err() {
                        listen::log_giving_up(port, kind.name());
                        return None;
                    }
                    break;
                }
            }
        }
    }
    if opened == 0 && !config.bind.is_empty() {
        listen::log_giving_up(port, kind.name());
        return None;
    }
    Some((all, opened))
}

/// To tell whether another program holds the port, it is opened without port sharing first.
fn open_tcp(address: std::net::SocketAddr, config: &Config, is_checked: bool) -> std::io::Result<Listener> {
    if is_checked && address.port() != 0 {
        drop(Listener::tcp(address, backlog(config), false)?);
    }
    Listener::tcp(address, backlog(config), true)
}

/// What about the machine stands in the way of so many clients, a line each; `oxidis doctor` tells more.
fn log_doctor(config: &Config) {
    for (verdict, sentence) in doctor::brief(u64::from(config.maxclients)) {
        let level = if verdict == doctor::Verdict::Stops { Level::Warning } else { Level::Notice };
        log!(level, "{} clients: {sentence}", config.maxclients);
    }
}

/// Clients that may wait to be accepted. Where very many are expected they also come at once, and one that finds no room
/// tries again only after a second: there it is as many as the kernel allows.
fn backlog(config: &Config) -> i32 {
    if config.maxclients >= MANY_CLIENTS { config.tcp_backlog.max(BACKLOG_MAX) } else { config.tcp_backlog }
}

/// From this `maxclients` on the server prepares for crowds.
const MANY_CLIENTS: u32 = 20_000;
/// What the kernel keeps of a backlog is at most `somaxconn`.
const BACKLOG_MAX: i32 = 65_535;

/// The options of accepted connections.
pub(crate) fn socket_options(config: &Config) -> SocketOptions {
    let keepalive = u64::try_from(config.tcp_keepalive).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
    SocketOptions { nodelay: true, keepalive, congestion: None }
}

fn run_workers(
    shared: &Arc<Shared>,
    listeners: Vec<Vec<Listener>>,
    private_tables: bool,
    ready: impl FnOnce(),
) -> std::io::Result<()> {
    shared.private_tables.store(private_tables, Ordering::Relaxed);
    let options = socket_options(&shared.config.snapshot());
    let mut builders = Vec::new();
    for of_worker in listeners {
        let mut builder = Builder::<Worker>::new()?.options(options);
        for listener in of_worker {
            builder = builder.listener(listener);
        }
        builders.push(builder);
    }
    let mailboxes = builders.iter().map(Builder::mailbox).collect();
    let _ = shared.mailboxes.set(mailboxes);
    let waker = shared.clone();
    shared.keyspace.parking.install(Box::new(move |worker, token| waker.post(worker, Message::Wake(token))));
    let signalled = shared.clone();
    let watch = signals::watch(move |signal| {
        let config = signalled.config.snapshot();
        let flags = match signal {
            ShutdownSignal::Term => config.shutdown_on_sigterm,
            ShutdownSignal::Int => config.shutdown_on_sigint,
        };
        signalled.shut_down(flags.into(), None);
    })?;
    let _ = shared.durability.signal_request.set(watch.request());
    // From the first connection on clients are told to wait.
    let loading = LoadingState::begin(shared, 0);
    shared.startup_memory.store(keyspace::memory::used_bytes(), Ordering::Relaxed);
    // A member of a cluster serves nothing before it knows what is its own.
    let kept = crate::cluster::store::load(&shared.config.snapshot());
    let is_member = kept.is_some();
    if let Some(kept) = kept {
        shared.control_waiting(move |control| control.become_member(kept));
    }
    let mut threads = Vec::new();
    for (index, builder) in builders.into_iter().enumerate() {
        let shared = shared.clone();
        #[allow(clippy::cast_possible_truncation)]
        let worker_index = index as u16;
        let thread = std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .stack_size(crate::scripting::STACK_BYTES)
            .spawn(move || {
                if private_tables {
                    // All loops and listeners stand already, so every table has every mailbox.
                    crate::process::limits::use_private_table()?;
                }
                builder.run(Worker::new(worker_index, shared)).map(drop)
            })?;
        threads.push(thread);
    }
    banner::log_initialized();
    let of_history = Arc::downgrade(shared);
    let _ = shared
        .durability
        .at_instant
        .set(Box::new(move || of_history.upgrade().and_then(|shared| crate::replication::file_history(&shared))));
    if load_at_start(shared, loading) {
        shared.follow_at_start();
        if is_member && let Some(Err(error)) = shared.control_waiting(|control| control.start_agent()) {
            log!(Level::Warning, "This server cannot take part in its cluster: {error}");
        }
        ready();
    } else if !shared.stopping.load(Ordering::Relaxed) {
        shared.stop(1);
    }
    let mut result = Ok(());
    for thread in threads {
        match thread.join() {
            Ok(ended) => result = result.and(ended),
            Err(_) => result = Err(std::io::Error::other("a worker came down; see the crash report above")),
        }
    }
    watch.close();
    // No worker can write any more: what they have answered is in the journal.
    shared.finish_aof();
    result
}
