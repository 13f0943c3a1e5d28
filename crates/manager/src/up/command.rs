//! The command line of `oxidis up`, and its life: start, watch, stop.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use options::{Look, Operands, Reader, Row, Rules, Section, Tool, folder, help, row, section};

use crate::http::Client;

use super::bootstrap;
use super::child::{Child, Found};
use super::layout::{Layout, Wish};

/// Longest wait for everything to be ready.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const PERIOD: Duration = Duration::from_millis(20);

/// `oxidis up` as a tool.
#[must_use]
pub fn tool() -> Tool {
    Tool {
        name: "up",
        links: &[],
        summary: "a whole cluster on this machine in one command",
        usage: &["PROGRAM [OPTIONS]"],
        about: "Starts a manager, proxies and groups of servers on the loopback address as one tree of processes, tells \
                how to reach them, and stops them all at Ctrl-C. A second start in the same folder finds the cluster as \
                it was left.\n\nProxies listen on the port and those after it, the manager on port + 80, server m of \
                group g on port + 100 + 10 (g - 1) + m. A process that crashes is told of and started again.",
        sections: Cow::Borrowed(SECTIONS),
        operands: Operands::None,
        rules: Rules::FREE,
        examples: &[
            ("PROGRAM", "Three groups of two servers behind two proxies, on ports 7000 to 7122."),
            ("PROGRAM --groups 6 --replicas 0 --dir /tmp/six", "Six groups without replicas."),
            ("PROGRAM --groups 4", "In a folder with three: a fourth, ready for 'oxidis admin rebalance'."),
        ],
        files: &[
            ("DIR/up.json", "How many of what, for the next start."),
            ("DIR/logs", "What the processes say."),
            ("DIR/servers, DIR/manager", "Their data."),
        ],
        exit_codes: &[
            ("0", "Stopped as asked."),
            ("1", "It could not be started; nothing is left running."),
            ("2", "A mistake in the command line."),
        ],
        ..Tool::EMPTY
    }
}

const SECTIONS: &[Section] = &[section("options", "Options", OPTIONS)];

const OPTIONS: &[Row] = &[
    row("--groups <n>", "Groups of servers (3)."),
    row("--proxies <n>", "Proxies (2)."),
    row("--replicas <n>", "Replicas of each group (1)."),
    row("--etcd <addresses>", "Keep the cluster's record in etcd, as host:port,… (in the manager's own file)."),
    folder("--dir <folder>", "Where everything is kept (./oxidis-up)."),
    row("--port <n>", "The first port (7000)."),
    row("-h, --help", "This help."),
];

#[derive(Debug, Default)]
struct Options {
    wish: Wish,
    folder: Option<String>,
    wants_help: bool,
}

/// Runs `oxidis up` with the arguments after the subcommand; returns the exit code.
pub fn run(program: &str, arguments: &[OsString]) -> i32 {
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{program}: {error}; see {program} --help");
            return 2;
        }
    };
    if options.wants_help {
        print(&help(&tool(), program, None, Look::of_stdout()).unwrap_or_default());
        return 0;
    }
    let folder = options.folder.unwrap_or_else(|| "oxidis-up".into());
    match live(program, Path::new(&folder), &options.wish) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{program}: {error}");
            1
        }
    }
}

fn parse(arguments: &[OsString]) -> Result<Options, String> {
    let mut options = Options::default();
    let tool = tool();
    let mut reader = Reader::new(&tool, arguments);
    while let Some((row, value)) = reader.option()? {
        let number = || value.parse::<u16>().map_err(|_| format!("{} takes a number, not '{value}'", row.key()));
        match row.key() {
            "--groups" => options.wish.groups = Some(number()?),
            "--proxies" => options.wish.proxies = Some(number()?),
            "--replicas" => options.wish.replicas = Some(number()?),
            "--etcd" => options.wish.etcd = Some(value),
            "--dir" => options.folder = Some(value),
            "--port" => options.wish.port = Some(number()?),
            "-h" => options.wants_help = true,
            key => return Err(format!("{key} is not read")),
        }
    }
    Ok(options)
}

/// Signals to stop: one asks politely, a second one is urgent.
#[derive(Clone, Debug)]
struct Stop {
    is_wanted: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
}

impl Stop {
    fn listen() -> Result<Stop, String> {
        let stop = Stop { is_wanted: Arc::default(), count: Arc::default() };
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, stop.is_wanted.clone()).map_err(|error| error.to_string())?;
        }
        Ok(stop)
    }

    /// Whether somebody asked to stop, and whether more than once.
    fn asked(&self) -> usize {
        // The flag stands for itself alone.
        if self.is_wanted.swap(false, Ordering::Relaxed) {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        self.count.load(Ordering::Relaxed)
    }
}

/// The processes, in the order in which they start.
struct Tree {
    servers: Vec<Child>,
    manager: Option<Child>,
    proxies: Vec<Child>,
}

impl Tree {
    fn all(&mut self) -> impl Iterator<Item = &mut Child> {
        self.servers.iter_mut().chain(&mut self.manager).chain(&mut self.proxies)
    }

    /// Stops all in order; the names of those that had to be killed.
    fn stop(&mut self, stop: &Stop, primaries: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut killed = Vec::new();
        let (first, last): (Vec<&mut Child>, Vec<&mut Child>) =
            self.servers.iter_mut().partition(|server| primaries(&server.name));
        for mut step in [self.proxies.iter_mut().collect(), self.manager.iter_mut().collect(), first, last] {
            step.iter_mut().for_each(|child| child.ask_to_stop());
            for child in step {
                if !child.wait(|| stop.asked() > 1) {
                    killed.push(child.name.clone());
                }
            }
        }
        killed
    }
}

fn live(program: &str, folder: &Path, wish: &Wish) -> Result<(), String> {
    let began = Instant::now();
    let stop = Stop::listen()?;
    let is_new = !folder.exists();
    let before = Layout::load(folder)?;
    let layout = Layout::of(before.as_ref(), wish)?;
    // Before anything is written: a taken port leaves no trace.
    let taken = layout.taken_ports();
    if !taken.is_empty() {
        let list: Vec<String> = taken.iter().map(u16::to_string).collect();
        return Err(format!(
            "port {} is taken on 127.0.0.1; stop what listens there ('ss -ltnp' shows it), or choose other ports with \
             --port N",
            list.join(", ")
        ));
    }
    let said = |what: &'static str| move |error: std::io::Error| format!("cannot {what}: {error}");
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let folder = fs::canonicalize(folder).map_err(said("find the folder"))?;
    let _lock = lock(&folder)?;
    let logs = folder.join("logs");
    fs::create_dir_all(&logs).map_err(said("make the folder of logs"))?;
    let client = Client::new(&layout.manager_url(), None, Duration::from_secs(30));
    let mut tree = Tree { servers: Vec::new(), manager: None, proxies: Vec::new() };
    let primary_names = primary_names(&layout);
    let is_primary = |name: &str| primary_names.iter().any(|known| known == name);
    let started = start(&mut tree, &layout, &folder, &logs, &client, &stop);
    let notes = match started {
        Ok(notes) => notes,
        Err(error) => {
            tree.stop(&stop, &is_primary);
            drop(tree);
            if is_new && stop.asked() == 0 {
                return Err(format!("{error}\nEverything was stopped; the logs are in {}", logs.display()));
            }
            return if stop.asked() > 0 { Ok(()) } else { Err(error) };
        }
    };
    layout.save(&folder).map_err(said("remember the layout"))?;
    print(&welcome(program, &layout, &folder, before.is_some(), began.elapsed()));
    for note in notes.iter().filter(|_| before.is_some()) {
        print(&format!("{note}\n"));
    }
    watch(&mut tree, &stop);
    println!("\nstopping …");
    let killed = tree.stop(&stop, &is_primary);
    for name in &killed {
        eprintln!("{name} did not stop by itself and was killed");
    }
    println!("stopped; the cluster is kept in {}", folder.display());
    Ok(())
}

fn primary_names(layout: &Layout) -> Vec<String> {
    let places = layout.servers();
    places.iter().filter(|place| place.member == 1).map(|place| server_name(place.port)).collect()
}

fn server_name(port: u16) -> String {
    format!("server-{port}")
}

/// One `up` at a time works on a folder.
fn lock(folder: &Path) -> Result<File, String> {
    let path = folder.join("up.lock");
    let file = File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(format!("another 'oxidis up' runs on {}: stop it, or take another --dir", folder.display()))
        }
        Err(TryLockError::Error(error)) => Err(format!("cannot lock {}: {error}", path.display())),
    }
}

/// Starts everything and waits until it is ready. What was told to the manager.
fn start(
    tree: &mut Tree,
    layout: &Layout,
    folder: &Path,
    logs: &Path,
    client: &Client,
    stop: &Stop,
) -> Result<Vec<String>, String> {
    let not_started = |name: String| move |error: std::io::Error| format!("cannot start {name}: {error}");
    let make = |path: PathBuf| {
        fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok::<String, String>(path.display().to_string())
    };
    let end = Instant::now() + START_PATIENCE;
    for place in layout.servers() {
        let name = server_name(place.port);
        let data = make(folder.join("servers").join(place.port.to_string()))?;
        let port = place.port.to_string();
        // Workers for one core each: there are many servers on this machine.
        let words = [
            "server",
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--dir",
            &data,
            "--appendonly",
            "yes",
            "--save",
            "",
            "--io-threads",
            "1",
            // Nobody else is about to come for the same snapshot.
            "--repl-diskless-sync-delay",
            "0",
        ];
        tree.servers.push(Child::start(&name, &words, logs).map_err(not_started(name))?);
    }
    let data = make(folder.join("manager"))?;
    let listen = format!("127.0.0.1:{}", layout.manager_port());
    let mut words = vec!["manager", "--listen", &listen, "--dir", &data, "--cluster", "up"];
    if !layout.etcd.is_empty() {
        words.extend(["--etcd", &layout.etcd]);
    }
    tree.manager = Some(Child::start("manager", &words, logs).map_err(not_started("the manager".into()))?);
    for place in layout.servers() {
        wait(tree, stop, end, &server_name(place.port), || bootstrap::answers(place.port, &["PING"]))?;
    }
    wait(tree, stop, end, "manager", || bootstrap::leads(client))?;
    let notes = bootstrap::tell(client, layout)
        .map_err(|failure| format!("the manager does not take the servers: {failure}"))?;
    for port in layout.proxy_ports() {
        let (name, port_text) = (format!("proxy-{port}"), port.to_string());
        let data = make(folder.join("proxies").join(&port_text))?;
        let topology = format!("manager {}", layout.manager_url());
        let words = super::proxy_arguments(&port_text, &data, &topology);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        tree.proxies.push(Child::start(&name, &words, logs).map_err(not_started(name))?);
    }
    for port in layout.proxy_ports() {
        // DBSIZE asks every group.
        wait(tree, stop, end, &format!("proxy-{port}"), || bootstrap::answers(port, &["DBSIZE"]))?;
    }
    Ok(notes)
}

/// Waits for `is_ready`, as long as everything runs.
fn wait(tree: &mut Tree, stop: &Stop, end: Instant, name: &str, is_ready: impl Fn() -> bool) -> Result<(), String> {
    loop {
        if is_ready() {
            return Ok(());
        }
        if stop.asked() > 0 {
            return Err("stopped while starting".into());
        }
        for child in tree.all() {
            if let Some(how) = child.ended() {
                return Err(format!("{} could not be started: {how}", child.name));
            }
        }
        if Instant::now() >= end {
            let log = tree.all().find(|child| child.name == name).map(|child| child.log().display().to_string());
            return Err(format!(
                "{name} is not ready after {} s; its log is {}",
                START_PATIENCE.as_secs(),
                log.unwrap_or_default()
            ));
        }
        std::thread::sleep(PERIOD);
    }
}

/// Watches the processes until somebody asks to stop.
fn watch(tree: &mut Tree, stop: &Stop) {
    while stop.asked() == 0 {
        for child in tree.all() {
            match child.look() {
                Found::Same => {}
                Found::Crashed(how) => eprintln!("{}: {how}\n  it is started again in a moment", child.name),
                Found::Restarted => {
                    eprintln!("{} was started again (process {})", child.name, child.pid().unwrap_or_default());
                }
                Found::NotStarted(error) => eprintln!("{} cannot be started again: {error}", child.name),
            }
        }
        std::thread::sleep(PERIOD * 5);
    }
}

/// What one wants to know of a cluster that is up.
fn welcome(program: &str, layout: &Layout, folder: &Path, was_there: bool, took: Duration) -> String {
    let oxidis = program.rsplit_once(' ').map_or("oxidis", |(name, _)| name);
    let replicas = match layout.replicas {
        0 => "a primary each".to_owned(),
        1 => "a primary and a replica each".to_owned(),
        count => format!("a primary and {count} replicas each"),
    };
    let ports: Vec<String> = layout.proxy_ports().map(|port| format!("127.0.0.1:{port}")).collect();
    let manager = layout.manager_url();
    let at = if layout.manager_port() == 7080 { String::new() } else { format!(" -m {manager}") };
    let first = layout.proxy_ports().next().unwrap_or(layout.port + 101);
    let found = if was_there { " (found as it was left)" } else { "" };
    format!(
        "Oxidis is up after {:.1} s{found}: {} groups ({replicas}), {} proxies\n\n\
         \x20 clients   {}   any Redis client, no cluster support needed\n\
         \x20 manager   {manager}/api/v1/topology\n\
         \x20 data      {}\n\
         \x20 logs      {}\n\n\
         In another terminal:\n\
         \x20 {oxidis} cli -p {first} set greeting hello\n\
         \x20 {oxidis} admin{at} topology\n\
         \x20 {oxidis} benchmark -p {first} -t set,get -n 200000 -r 100000 -P 16 -q\n\
         \x20 {oxidis} admin{at} move start 0-99 {} --watch\n\n\
         Ctrl-C stops all of it.\n",
        took.as_secs_f64(),
        layout.groups,
        layout.proxies,
        if ports.is_empty() { format!("127.0.0.1:{first}") } else { ports.join("  ") },
        folder.display(),
        folder.join("logs").display(),
        layout.groups,
    )
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to tell if the pipe is closed.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_is_read() {
        for row in tool().rows() {
            let words = [row.key(), "1"].map(OsString::from);
            let words = if row.needs_value() { &words[..] } else { &words[..1] };
            assert!(parse(words).is_ok(), "{}", row.key());
        }
        assert!(parse(&["--groups", "many"].map(OsString::from)).is_err());
        assert!(parse(&["three"].map(OsString::from)).is_err());
    }

    #[test]
    fn a_folder_has_one_up_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        assert!(lock(folder.path()).unwrap_err().contains("another 'oxidis up'"));
        drop(first);
        lock(folder.path()).unwrap();
    }

    #[test]
    fn the_welcome_names_addresses_and_commands() {
        let layout = Layout::of(None, &Wish::default()).unwrap();
        let text = welcome("oxidis up", &layout, Path::new("/data"), false, Duration::from_millis(1500));
        for part in ["after 1.5 s", "127.0.0.1:7000  127.0.0.1:7001", "http://127.0.0.1:7080/", "oxidis admin topology"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
