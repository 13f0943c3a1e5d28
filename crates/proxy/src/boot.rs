//! From the command line to running workers, and down again.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use net::{Builder, Listener, SocketOptions};
use server::log;
use server::process::log::Level;
use server::process::{crash, daemon, error_text, limits, listen, signals, supervise, title};

use crate::config::{self, Config, Invocation, Startup};
use crate::service::Worker;
use crate::shared::Shared;
use crate::slots::MapHandle;
use crate::topology::Topology;

/// Runs `oxidis proxy` with the arguments after the subcommand; gives the exit code.
pub fn run(program: &str, arguments: &[std::ffi::OsString]) -> i32 {
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.clone().into_vec()).collect();
    match config::load(&arguments) {
        Err(why) => {
            eprintln!("oxidis proxy: {why}");
            1
        }
        Ok(Invocation::Help) => {
            use std::io::Write as _;
            let text = options::help(&crate::tool(), program, None, options::Look::of_stdout()).unwrap_or_default();
            // Nobody is left to tell if the stream is closed.
            let _ = std::io::stdout().write_all(text.as_bytes());
            0
        }
        Ok(Invocation::Version) => {
            println!("Oxidis proxy v={}", env!("CARGO_PKG_VERSION"));
            0
        }
        Ok(Invocation::Run(startup)) => match serve(program, *startup) {
            Ok(()) => 0,
            Err(why) => {
                log!(Level::Warning, "{why}");
                1
            }
        },
    }
}

fn serve(program: &str, startup: Startup) -> Result<(), String> {
    let Startup { mut config, config_file, users, notices } = startup;
    server::process::log::configure(&config.base);
    crash::install();
    crash::set_enabled(config.base.crash_log_enabled);
    let topology = String::from_utf8_lossy(&config.topology).into_owned();
    let topology = Topology::parse(&topology).map_err(|why| format!("topology: {why}"))?;
    let supervisor = supervise::announce_start(config.base.supervised);
    let is_background = config.base.daemonize && supervisor.is_none();
    if is_background {
        daemon::daemonize().map_err(|error| format!("Can't go to the background: {}", error_text(&error)))?;
    }
    log!(Level::Notice, "Oxidis proxy {} is starting, pid={}", env!("CARGO_PKG_VERSION"), std::process::id());
    for (level, line) in notices {
        log!(level, "{line}");
    }
    let descriptors = limits::fit_open_files(config.base.maxclients, config.base.io_threads)
        .map_err(|limits::TooFewFiles| "the limit of open files is too low".to_owned())?;
    config.base.maxclients = descriptors.maxclients;
    config.base.io_threads = descriptors.workers;
    let map = topology.first_map(space_of(&config)).map_err(|why| format!("topology: {why}"))?;
    let listeners = open_listeners(&config)?;
    let pid_file = daemon::write_pid_file(&config.base, is_background);
    let file_text = config_file.as_deref().map(|path| path.as_os_str().as_bytes().to_vec());
    title::show(&config.base, program.as_bytes(), file_text.as_deref());
    let socket_path = config.base.unixsocket.clone();
    let run_id: String = (0..40).map(|_| char::from_digit(fastrand::u32(0..16), 16).unwrap_or('0')).collect();
    let shared =
        Arc::new(Shared::new(config, config_file.as_deref().map(Path::to_path_buf), MapHandle::new(map), run_id));
    let started = shared.config.snapshot();
    let all_channels = started.base.acl_pubsub_default.allows_all();
    if !shared.acl.load_at_start(&users, &started.base.aclfile, all_channels) {
        return Err("the users cannot be loaded".to_owned());
    }
    let follower = follow(&shared, &topology)?;
    await_first_map(&shared, &topology);
    let ended = run_workers(&shared, listeners, descriptors.private_tables, || {
        log!(Level::Notice, "Ready to accept connections on port {}", started.base.port);
        supervise::announce_ready(supervisor, false);
    });
    supervise::announce_stop(supervisor);
    shared.map.close();
    follower.end();
    if let Some(pid_file) = pid_file {
        pid_file.remove();
    }
    if !socket_path.is_empty() {
        // It may be gone already.
        let _ = std::fs::remove_file(Path::new(std::ffi::OsStr::from_bytes(&socket_path)));
    }
    log!(Level::Notice, "The proxy has ended");
    ended.map_err(|error| format!("Cannot run the event loop: {}", error_text(&error)))
}

/// Who follows the topology.
enum Follower {
    /// It does not change.
    Nobody,
    /// A thread that asks a stock cluster.
    Thread(std::thread::JoinHandle<()>),
    /// The agent at the manager.
    Agent(member::Agent),
}

impl Follower {
    fn end(self) {
        match self {
            Follower::Nobody => {}
            // It has nothing to tell.
            Follower::Thread(thread) => drop(thread.join()),
            // Its thread ends by itself; a request to the manager that is held is not waited for.
            Follower::Agent(agent) => drop(agent),
        }
    }
}

/// Starts who follows the topology, if this can change.
fn follow(shared: &Arc<Shared>, topology: &Topology) -> Result<Follower, String> {
    match topology {
        Topology::Server(_) | Topology::Static(_) => Ok(Follower::Nobody),
        Topology::Cluster(seeds) => {
            let (shared, seeds) = (shared.clone(), seeds.clone());
            let thread = std::thread::Builder::new().name("topology".to_owned());
            let thread = thread.spawn(move || crate::map::follow::follow(&shared, &seeds));
            thread.map(Follower::Thread).map_err(|error| format!("cannot start a thread: {}", error_text(&error)))
        }
        Topology::Manager(managers) => crate::manager::follow(shared, managers).map(Follower::Agent),
    }
}

/// How long the start waits for the topology to be known, so that the first clients find it.
const FIRST_MAP_WAIT: Duration = Duration::from_secs(2);

fn await_first_map(shared: &Shared, topology: &Topology) {
    if matches!(topology, Topology::Server(_) | Topology::Static(_)) {
        return;
    }
    let end = std::time::Instant::now() + FIRST_MAP_WAIT;
    while shared.map.load().backends.is_empty() {
        if std::time::Instant::now() >= end {
            log!(Level::Warning, "Nobody has told the topology yet: requests are refused until somebody does");
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn space_of(config: &Config) -> keyspace::slot::SlotSpace {
    match config.base.slot_space {
        server::config::SlotSpace::Redis => keyspace::slot::SlotSpace::Redis,
        server::config::SlotSpace::Codis => keyspace::slot::SlotSpace::Codis,
    }
}

/// From this `maxclients` on the proxy prepares for crowds that come at once.
const MANY_CLIENTS: u32 = 20_000;
const BACKLOG_MAX: i32 = 65_535;

/// One list of listeners for each worker.
fn open_listeners(config: &Config) -> Result<Vec<Vec<Listener>>, String> {
    let base = &config.base;
    let backlog = if base.maxclients >= MANY_CLIENTS { base.tcp_backlog.max(BACKLOG_MAX) } else { base.tcp_backlog };
    let mut all: Vec<Vec<Listener>> = (0..base.io_threads.max(1)).map(|_| Vec::new()).collect();
    let addresses = listen::addresses(base, base.port).map_err(|listen::CannotListen| "cannot listen".to_owned())?;
    let mut opened = 0;
    for address in &addresses {
        for (index, listeners) in all.iter_mut().enumerate() {
            let open = || {
                if index == 0 {
                    // Without sharing first, to see whether another program has the port.
                    drop(Listener::tcp(address.address, backlog, false)?);
                }
                Listener::tcp(address.address, backlog, true)
            };
            match open() {
                Ok(listener) => {
                    listeners.push(listener);
                    opened += 1;
                }
                Err(error) => {
                    listen::judge_failure(address, &error)
                        .map_err(|listen::CannotListen| "cannot listen".to_owned())?;
                    break;
                }
            }
        }
    }
    if !base.unixsocket.is_empty()
        && let Some(first) = all.first_mut()
    {
        let path = Path::new(std::ffi::OsStr::from_bytes(&base.unixsocket));
        let mode = (base.unixsocketperm != 0).then_some(base.unixsocketperm);
        let listener = Listener::unix(path, backlog, mode);
        first.push(listener.map_err(|error| format!("Failed opening Unix socket: {}", error_text(&error)))?);
        opened += 1;
    }
    if opened == 0 { Err("Configured to not listen anywhere, exiting.".to_owned()) } else { Ok(all) }
}

/// The options of connections, to clients and to backends.
fn socket_options(config: &Config) -> SocketOptions {
    let seconds = u64::try_from(config.base.tcp_keepalive).ok().filter(|seconds| *seconds > 0);
    SocketOptions { nodelay: true, keepalive: seconds.map(Duration::from_secs), congestion: None }
}

fn run_workers(
    shared: &Arc<Shared>,
    listeners: Vec<Vec<Listener>>,
    private_tables: bool,
    ready: impl FnOnce(),
) -> std::io::Result<()> {
    let options = socket_options(&shared.config.snapshot());
    let mut builders = Vec::new();
    for of_worker in listeners {
        let mut builder = Builder::<Worker>::new()?.options(options);
        for listener in of_worker {
            builder = builder.listener(listener);
        }
        builders.push(builder);
    }
    let _ = shared.mailboxes.set(builders.iter().map(Builder::mailbox).collect());
    let signalled = shared.clone();
    let watch = signals::watch(move |_| signalled.drain())?;
    let mut threads = Vec::new();
    for (index, builder) in builders.into_iter().enumerate() {
        let shared = shared.clone();
        let thread = std::thread::Builder::new().name(format!("proxy-{index}")).spawn(move || {
            if private_tables {
                // All loops and listeners stand already, so every table has every mailbox.
                limits::use_private_table()?;
            }
            builder.run(Worker::new(index, shared)).map(drop)
        })?;
        threads.push(thread);
    }
    ready();
    let mut result = Ok(());
    for thread in threads {
        match thread.join() {
            Ok(ended) => result = result.and(ended),
            Err(_) => result = Err(std::io::Error::other("a worker came down; see the crash report above")),
        }
    }
    watch.close();
    shared.map.close();
    result
}
