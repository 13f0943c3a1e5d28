//! The command line of `oxidis manager`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use options::{Look, Operands, Reader, Row, Rules, Section, Tool, choice, file, folder, help, row, section};
use topology::SlotSpace;

use crate::admin;
use crate::auth::{self, Tokens};
use crate::serve;
use crate::shapes::Settings;
use crate::wire::Login;

const DEFAULT_LISTEN: &str = "127.0.0.1:7080";

/// The manager as a tool.
#[must_use]
pub fn tool() -> Tool {
    Tool {
        name: "manager",
        links: &[],
        summary: "looks after a cluster: topology, moves, a REST API",
        usage: &["PROGRAM [OPTIONS]"],
        about: "Keeps the record of a cluster (groups, servers, slots, moves), gives servers and proxies their leases \
                and views, and moves slots. One manager keeps the record in a file of its own; several share it in etcd: \
                one of them leads, all answer reads.\n\nThe data path does not need it: while it is away clients are \
                served, and nothing moves.",
        sections: Cow::Borrowed(SECTIONS),
        operands: Operands::None,
        rules: Rules::FREE,
        examples: &[
            ("PROGRAM --dir /var/lib/oxidis-manager", "One manager, for programs of this machine."),
            ("PROGRAM --new-token-file /etc/oxidis/tokens", "Makes a token for each role."),
            (
                "PROGRAM --listen 10.0.0.1:7080 --token-file /etc/oxidis/tokens --etcd 10.0.0.1:2379,10.0.0.2:2379",
                "One of several managers.",
            ),
        ],
        files: &[
            ("DIR/manager.redb", "The record of the cluster, without --etcd."),
            ("DIR/events.ndjson", "The log of events: who did what, and what happened."),
        ],
        exit_codes: &[
            ("0", "Stopped as asked."),
            ("1", "It cannot start, or cannot go on."),
            ("2", "A mistake in the command line."),
        ],
        ..Tool::EMPTY
    }
}

const SECTIONS: &[Section] = &[
    section("serve", "Where and for whom", SERVE),
    section("cluster", "The cluster", CLUSTER),
    section("moves", "Moves of slots", MOVES),
];

const SERVE: &[Row] = &[
    row("--listen <address>", "Where to listen (127.0.0.1:7080); may be given several times."),
    row("--advertise <url>", "Where others reach this manager, if not at the first --listen."),
    row("--managers <urls>", "All managers, separated by commas, as servers are told them (this one)."),
    file("--token-file <file>", "Lines of ROLE NAME TOKEN. Needed unless all listens are on loopback."),
    file("--new-token-file <file>", "Writes such a file with new tokens, and ends."),
    row("-h, --help", "This help."),
];

const CLUSTER: &[Row] = &[
    folder("--dir <folder>", "Where to keep the record and the log of events (./oxidis-manager)."),
    row("--etcd <addresses>", "Keep the record in etcd, as host:port,…"),
    row("--cluster <name>", "The cluster's name (oxidis)."),
    choice("--slot-space <space>", &["redis", "codis"], "How keys are hashed, for a new cluster (redis)."),
    row("--lease-ms <n>", "How long members' leases are, 300 to 600000 (3000 for a new cluster)."),
    row("--server-user <name>", "The user to log in at servers as."),
    file("--server-pass-file <file>", "The password for servers."),
];

const MOVES: &[Row] = &[
    row("--moves-per-group <n>", "Moves that a group takes part in at the same time (2)."),
    row("--move-rate <bytes>", "Most bytes per second of a move that says nothing itself, such as 20mb (no limit)."),
    row("--freeze-ms <n>", "Longest that commands are held back at the cut-over of a move (500)."),
];

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) url: String,
    pub(crate) managers: Vec<String>,
    pub(crate) tokens: Tokens,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) folder: PathBuf,
    pub(crate) etcd: Vec<String>,
    pub(crate) cluster: String,
    pub(crate) slot_space: SlotSpace,
    pub(crate) lease_ms: Option<u64>,
    pub(crate) login: Login,
    pub(crate) settings: Settings,
}

/// What is to be done.
#[derive(Debug)]
enum Wish {
    Serve(Box<Options>),
    NewTokens(PathBuf),
    Help,
}

/// Runs `oxidis manager` with the arguments after the subcommand; returns the exit code.
pub fn run(program: &str, arguments: &[OsString]) -> i32 {
    let options = match parse(arguments) {
        Ok(Wish::Serve(options)) => options,
        Ok(Wish::Help) => {
            // Nobody is left to tell if the pipe is closed.
            let text = help(&tool(), program, None, Look::of_stdout()).unwrap_or_default();
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            return 0;
        }
        Ok(Wish::NewTokens(path)) => {
            return match auth::write_new_tokens(&path) {
                Ok(()) => {
                    println!("{} holds a new token for each role; give each to whom it belongs", path.display());
                    0
                }
                Err(error) => {
                    eprintln!("{program}: cannot write {}: {error}", path.display());
                    1
                }
            };
        }
        Err(error) => {
            eprintln!("{program}: {error}; see {program} --help");
            return 2;
        }
    };
    match serve::run(*options) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{program}: {error}");
            1
        }
    }
}

/// The words as they were given.
#[derive(Default)]
struct Given {
    listen: Vec<String>,
    advertise: Option<String>,
    managers: Option<String>,
    token_file: Option<PathBuf>,
    new_token_file: Option<PathBuf>,
    folder: Option<PathBuf>,
    etcd: Option<String>,
    cluster: Option<String>,
    slot_space: Option<SlotSpace>,
    lease_ms: Option<u64>,
    server_user: String,
    server_pass_file: Option<PathBuf>,
    settings: Settings,
    wants_help: bool,
}

fn parse(arguments: &[OsString]) -> Result<Wish, String> {
    let given = read(arguments)?;
    if given.wants_help {
        return Ok(Wish::Help);
    }
    if let Some(path) = given.new_token_file {
        return Ok(Wish::NewTokens(path));
    }
    let listen = addresses(&given.listen)?;
    let tokens = match &given.token_file {
        Some(path) => {
            let (tokens, advice) = Tokens::load(path)?;
            if let Some(advice) = advice {
                eprintln!("warning: {advice}");
            }
            tokens
        }
        None => Tokens::default(),
    };
    if let Some(open) = listen.iter().find(|address| !address.ip().is_loopback() && !tokens.are_needed()) {
        return Err(format!(
            "--listen {open} can be reached from elsewhere, so a --token-file is needed; --new-token-file FILE makes one"
        ));
    }
    let url = match given.advertise {
        Some(url) if url.starts_with("http://") => url.trim_end_matches('/').to_owned(),
        Some(url) => return Err(format!("--advertise takes http://host:port, not '{url}'")),
        None => {
            let first = listen.first().copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7080)));
            if first.ip().is_unspecified() {
                return Err(format!(
                    "--listen {first} is no address that others can use: say --advertise http://host:port"
                ));
            }
            format!("http://{first}")
        }
    };
    let managers = match given.managers {
        Some(list) => urls(&list)?,
        None => vec![url.clone()],
    };
    let password = match &given.server_pass_file {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            text.map_err(|error| format!("cannot read {}: {error}", path.display()))?.trim_end().to_owned()
        }
        None => String::new(),
    };
    if given.lease_ms.is_some_and(|ms| !(300..=600_000).contains(&ms)) {
        return Err("--lease-ms is 300 to 600000".into());
    }
    Ok(Wish::Serve(Box::new(Options {
        listen,
        url,
        managers,
        tokens,
        token_file: given.token_file,
        folder: given.folder.unwrap_or_else(|| PathBuf::from("oxidis-manager")),
        etcd: given.etcd.map(|list| list.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        cluster: given.cluster.unwrap_or_else(|| "oxidis".into()),
        slot_space: given.slot_space.unwrap_or_default(),
        lease_ms: given.lease_ms,
        login: Login { user: given.server_user, password },
        settings: Settings {
            moves_per_group: given.settings.moves_per_group.or(Some(2)),
            move_rate: given.settings.move_rate.or(Some(0)),
            freeze_ms: given.settings.freeze_ms.or(Some(500)),
        },
    })))
}

fn read(arguments: &[OsString]) -> Result<Given, String> {
    let mut given = Given::default();
    let tool = tool();
    let mut reader = Reader::new(&tool, arguments);
    while let Some((row, value)) = reader.option()? {
        let path = || Some(Path::new(&value).to_owned());
        let number = || value.parse::<u64>().map_err(|_| format!("{} takes a number, not '{value}'", row.key()));
        match row.key() {
            "--listen" => given.listen.push(value),
            "--advertise" => given.advertise = Some(value),
            "--managers" => given.managers = Some(value),
            "--token-file" => given.token_file = path(),
            "--new-token-file" => given.new_token_file = path(),
            "--dir" => given.folder = path(),
            "--etcd" => given.etcd = Some(value),
            "--cluster" => given.cluster = Some(value),
            "--slot-space" => given.slot_space = Some(value.parse().map_err(|error| format!("{error}"))?),
            "--lease-ms" => given.lease_ms = Some(number()?),
            "--server-user" => given.server_user = value,
            "--server-pass-file" => given.server_pass_file = path(),
            "--moves-per-group" => match u32::try_from(number()?) {
                Ok(count @ 1..=64) => given.settings.moves_per_group = Some(count),
                _ => return Err("--moves-per-group is 1 to 64".into()),
            },
            "--move-rate" => given.settings.move_rate = Some(admin::bytes(&value)?),
            "--freeze-ms" => match number()? {
                ms @ 10..=10_000 => given.settings.freeze_ms = Some(ms),
                _ => return Err("--freeze-ms is 10 to 10000".into()),
            },
            "-h" => given.wants_help = true,
            key => return Err(format!("{key} is not read")),
        }
    }
    Ok(given)
}

fn addresses(given: &[String]) -> Result<Vec<SocketAddr>, String> {
    let given = if given.is_empty() { &[DEFAULT_LISTEN.to_owned()] } else { given };
    let mut all = Vec::new();
    for text in given {
        let found =
            text.to_socket_addrs().map_err(|error| format!("--listen takes host:port, not '{text}' ({error})"))?;
        let before = all.len();
        all.extend(found);
        if all.len() == before {
            return Err(format!("--listen {text}: the host has no address"));
        }
    }
    Ok(all)
}

fn urls(list: &str) -> Result<Vec<String>, String> {
    let urls: Vec<String> = list.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
    match urls.iter().find(|url| !url.starts_with("http://")) {
        Some(wrong) => Err(format!("--managers takes http://host:port,…, not '{wrong}'")),
        None => Ok(urls),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        match parse(&words)? {
            Wish::Serve(options) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_manager_alone_needs_no_options() {
        let options = parsed(&[]).unwrap();
        assert_eq!(options.url, "http://127.0.0.1:7080");
        assert_eq!(options.managers, ["http://127.0.0.1:7080"]);
        assert!(options.etcd.is_empty() && !options.tokens.are_needed());
    }

    #[test]
    fn tokens_are_needed_where_others_can_reach_it() {
        let error = parsed(&["--listen", "0.0.0.0:7080"]).unwrap_err();
        assert!(error.contains("--new-token-file"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        auth::write_new_tokens(&path).unwrap();
        let path = path.to_str().unwrap();
        let error = parsed(&["--listen", "0.0.0.0:7080", "--token-file", path]).unwrap_err();
        assert!(error.contains("--advertise"), "{error}");
        let words = ["--listen", "0.0.0.0:7080", "--token-file", path, "--advertise", "http://10.0.0.1:7080/"];
        assert_eq!(parsed(&words).unwrap().url, "http://10.0.0.1:7080");
    }

    #[test]
    fn every_row_is_read() {
        for row in tool().rows() {
            let value = match row.key() {
                "--slot-space" => "codis",
                "--freeze-ms" => "100",
                _ => "1",
            };
            let words = [row.key(), value].map(OsString::from);
            let words = if row.needs_value() { &words[..] } else { &words[..1] };
            assert!(read(words).is_ok(), "{}", row.key());
        }
        assert!(read(&["--moves-per-group", "0"].map(OsString::from)).is_err());
    }
}
