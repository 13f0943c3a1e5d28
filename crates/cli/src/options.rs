//! The command line and the environment.
//!
//! Options come first; the first word that is none starts the command. An option that needs a value and is the last
//! word counts as unknown, as in redis-cli. Source of behaviour: redis-cli 7.2.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ::options::{Item, Look, Reader, suggestion};
use net::tls::{ClientSettings, Connector, Verify};

use crate::connection::Family;
use crate::format::{Decoder, Format, Style};
use crate::output::{Exit, Outcome, complain, fail, os_text, print, text};
use crate::uri;

mod profile;
mod table;
#[cfg(test)]
mod tests;

pub use table::tool;
pub(crate) use table::{CLIENT, VERSION};

/// Where the server is and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// `-h`.
    pub(crate) host: String,
    /// `-p`.
    pub(crate) port: u16,
    /// `-s`: a Unix socket instead of host and port.
    pub(crate) socket: Option<PathBuf>,
    /// `--user`.
    pub(crate) user: Option<Vec<u8>>,
    /// `-a`, `--pass-file`, `--askpass` or the environment.
    pub(crate) password: Option<Vec<u8>>,
    /// `-n`.
    pub(crate) database: i64,
    /// `-4`, `-6`.
    pub(crate) family: Family,
    /// `-t`.
    pub(crate) connect_timeout: Option<Duration>,
    /// `--name`.
    pub(crate) name: Option<Vec<u8>>,
    /// `--tls` and its companions: what makes the connection encrypted.
    pub(crate) connector: Option<Connector>,
}

/// Which protocol the session starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// What the server starts with; nothing is sent.
    Default,
    /// `-2`.
    Resp2,
    /// `-3`: without it there is no session.
    Resp3,
    /// `--json` wants RESP3, but takes RESP2.
    Resp3IfPossible,
}

/// What the program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Runs the command, or asks for commands.
    Commands,
    /// `--rdb` or `--functions-rdb`, and where to.
    Snapshot {
        /// The file; `-` is standard output.
        path: PathBuf,
        /// Functions without keys.
        functions_only: bool,
    },
    /// `--replica`.
    Replica,
    /// `--latency`.
    Latency,
    /// `--latency-history`.
    LatencyHistory,
    /// `--latency-dist`.
    LatencyDistribution,
    /// `--intrinsic-latency` seconds.
    IntrinsicLatency(u64),
    /// `--lru-test` keys.
    LruTest(u64),
    /// `--stat`.
    Stat,
    /// `--scan`.
    Scan,
    /// `--bigkeys`.
    BigKeys,
    /// `--memkeys`, `--memkeys-samples`: elements looked at per key, or the server's choice.
    MemoryKeys(Option<u64>),
    /// `--keystats`, `--keystats-samples`.
    KeyStatistics(Option<u64>),
    /// `--hotkeys`.
    HotKeys,
    /// `--pipe`.
    Pipe,
    /// `--eval` file.
    Eval(PathBuf),
    /// `--cluster`: the subcommand and its words.
    Cluster(Vec<Vec<u8>>),
    /// An option of redis-cli that this version does not have.
    Missing(String),
}

/// Which word of the command comes from standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StdinArgument {
    /// None.
    None,
    /// `-x`: one more at the end.
    Last,
    /// `-X`: the one that equals this.
    Tag(Vec<u8>),
}

/// Nodes that `--cluster call` asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClusterScope {
    /// All.
    #[default]
    All,
    /// `--cluster-only-masters`.
    Primaries,
    /// `--cluster-only-replicas`.
    Replicas,
}

/// The whole command line.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) server: Server,
    pub(crate) protocol: Protocol,
    pub(crate) mode: Mode,
    pub(crate) style: Style,
    /// Whether messages that answer no command are shown.
    pub(crate) show_pushes: bool,
    /// `-r`: negative for ever.
    pub(crate) repeat: i64,
    /// `-i`.
    pub(crate) interval: Option<Duration>,
    pub(crate) stdin_argument: StdinArgument,
    pub(crate) quoted_input: bool,
    /// `-c`: follow redirections.
    pub(crate) follow_redirects: bool,
    /// `-e`: an error reply ends the program with code 1.
    pub(crate) error_code: bool,
    pub(crate) verbose: bool,
    /// `--legacy-connect`: a failed AUTH or SELECT is a warning only.
    pub(crate) legacy_connect: bool,
    /// `--yes`: no questions before dangerous commands.
    pub(crate) yes: bool,
    /// `--readonly`: commands that write are refused here.
    pub(crate) readonly: bool,
    /// `--red-prompt`: a server where mistakes hurt.
    pub(crate) red_prompt: bool,
    /// `--pattern`.
    pub(crate) pattern: Option<Vec<u8>>,
    /// `--count`.
    pub(crate) count: i64,
    /// `--cursor`.
    pub(crate) cursor: u64,
    /// `--top`: keys listed per type.
    pub(crate) top: Option<usize>,
    /// `--hotkeys-count`.
    pub(crate) hotkeys_count: usize,
    /// `--mono`.
    pub(crate) monochrome: bool,
    /// `--latency-percentiles`.
    pub(crate) percentiles: bool,
    /// `--pipe-timeout`; 0 waits for ever.
    pub(crate) pipe_timeout: u64,
    pub(crate) cluster_scope: ClusterScope,
    /// `--cluster-search-multiple-owners`.
    pub(crate) search_multiple_owners: bool,
    /// The command.
    pub(crate) words: Vec<Vec<u8>>,
}

impl Options {
    /// Reads the words behind the program's name.
    pub(crate) fn parse(program: &str, arguments: &[OsString]) -> Outcome<Options> {
        let mut reader = Reader::new(&CLIENT, arguments);
        let mut parser = Parser::new(program);
        while let Some(item) = reader.read() {
            match item {
                Item::Option { row, name, value: None } => parser.switch(row.key(), &name)?,
                Item::Option { row, value: Some(value), .. } if row.key() == "--profile" => {
                    reader.insert(profile::words(&value)?);
                }
                Item::Option { row, name, value: Some(value) } => parser.valued(row.key(), &name, value)?,
                Item::NoValue(name) if name == "-h" => return parser.help(),
                Item::NoValue(name) | Item::Unknown(name) | Item::NeedlessValue(name) => {
                    complain(format_args!("Unrecognized option or bad number of args for: '{name}'"));
                    if let Some(suggestion) = suggestion(&CLIENT, &name).filter(|_| CLIENT.find(&name).is_none()) {
                        complain(format_args!("{suggestion}"));
                    }
                    return Err(Exit(1));
                }
                Item::Word(word) => match &mut parser.options.mode {
                    Mode::Cluster(words) => words.push(word),
                    _ => {
                        parser.options.words = reader.from_last();
                        break;
                    }
                },
            }
        }
        parser.finish()
    }
}

/// Whether replies are shown for eyes by default.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal() || std::env::var_os("FAKETTY").is_some()
}

struct Parser {
    program: String,
    options: Options,
    ask_password: bool,
    warn: bool,
    /// A password stands on the command line.
    has_bare_password: bool,
    resp2: bool,
    /// A second mode was asked for.
    has_mode: bool,
    tls: bool,
    secure: ClientSettings,
    /// Options of `--cluster` that act in subcommands which are not there.
    idle: Vec<String>,
}

impl Parser {
    fn new(program: &str) -> Self {
        let terminal = stdout_is_terminal();
        Parser {
            program: program.to_string(),
            options: Options {
                server: Server {
                    host: "127.0.0.1".to_string(),
                    port: 6379,
                    socket: None,
                    user: None,
                    password: None,
                    database: 0,
                    family: Family::Any,
                    connect_timeout: None,
                    name: None,
                    connector: None,
                },
                protocol: Protocol::Default,
                mode: Mode::Commands,
                style: Style {
                    format: if terminal { Format::Standard } else { Format::Raw },
                    element_delimiter: b"\n".to_vec(),
                    reply_delimiter: b"\n".to_vec(),
                    decoder: Default::default(),
                },
                show_pushes: terminal,
                repeat: 1,
                interval: None,
                stdin_argument: StdinArgument::None,
                quoted_input: false,
                follow_redirects: false,
                error_code: false,
                verbose: false,
                legacy_connect: false,
                yes: false,
                readonly: false,
                red_prompt: false,
                pattern: None,
                count: 10,
                cursor: 0,
                top: None,
                hotkeys_count: 16,
                monochrome: false,
                percentiles: false,
                pipe_timeout: 30,
                cluster_scope: ClusterScope::All,
                search_multiple_owners: false,
                words: Vec::new(),
            },
            ask_password: false,
            warn: true,
            has_bare_password: false,
            resp2: false,
            has_mode: false,
            tls: false,
            secure: ClientSettings::default(),
            idle: Vec::new(),
        }
    }

    fn help<T>(&self) -> Outcome<T> {
        print(::options::help(&CLIENT, &self.program, None, Look::of_stdout()).unwrap_or_default())?;
        Err(Exit(0))
    }

    /// Options without a value. `key` is the first name of the row, `name` the one that was used.
    fn switch(&mut self, key: &str, name: &str) -> Outcome<()> {
        let options = &mut self.options;
        match key {
            "--help" => return self.help(),
            "-v" => {
                print(format!("{VERSION}\n"))?;
                return Err(Exit(0));
            }
            "-x" => self.stdin_argument(StdinArgument::Last)?,
            "--no-auth-warning" => self.warn = false,
            "--askpass" => self.ask_password = true,
            "--raw" => options.style.format = Format::Raw,
            "--no-raw" => options.style.format = Format::Standard,
            "--quoted-input" => options.quoted_input = true,
            "--csv" => options.style.format = Format::Csv,
            "--csv-strict" => options.style.format = Format::CsvStrict,
            "--json" => self.json(Format::Json),
            "--quoted-json" => self.json(Format::QuotedJson),
            "--json-strict" => self.json(Format::JsonStrict),
            "--ndjson" => self.json(Format::Ndjson),
            "--latency" => self.mode(Mode::Latency),
            "--latency-history" => self.mode(Mode::LatencyHistory),
            "--latency-dist" => self.mode(Mode::LatencyDistribution),
            "--latency-percentiles" => options.percentiles = true,
            "--mono" => options.monochrome = true,
            "--stat" => self.mode(Mode::Stat),
            "--scan" => self.mode(Mode::Scan),
            "--bigkeys" => self.mode(Mode::BigKeys),
            "--memkeys" => self.mode(Mode::MemoryKeys(None)),
            "--keystats" => self.mode(Mode::KeyStatistics(None)),
            "--hotkeys" => self.mode(Mode::HotKeys),
            "--pipe" => self.mode(Mode::Pipe),
            "--slave" | "--replica" => self.mode(Mode::Replica),
            "--ldb" | "--ldb-sync-mode" => self.missing(key),
            "-c" => options.follow_redirects = true,
            "-e" => options.error_code = true,
            "--verbose" => options.verbose = true,
            "--legacy-connect" => options.legacy_connect = true,
            "--yes" | "--cluster-yes" => options.yes = true,
            "--readonly" => options.readonly = true,
            "--red-prompt" => options.red_prompt = true,
            "-2" => self.resp2 = true,
            "-3" => options.protocol = Protocol::Resp3,
            "-4" => options.server.family = Family::V4,
            "-6" => options.server.family = Family::V6,
            "--tls" => self.tls = true,
            "--insecure" => self.secure.verify = Verify::Nothing,
            "--cluster-only-masters" => options.cluster_scope = ClusterScope::Primaries,
            "--cluster-only-replicas" => options.cluster_scope = ClusterScope::Replicas,
            "--cluster-search-multiple-owners" => options.search_multiple_owners = true,
            "--cluster-from-askpass"
            | "--cluster-simulate"
            | "--cluster-replace"
            | "--cluster-copy"
            | "--cluster-slave"
            | "--cluster-use-empty-masters"
            | "--cluster-fix-with-unreachable-masters" => self.idle.push(name.to_string()),
            _ => return unread(key),
        }
        Ok(())
    }

    /// Options with a value.
    fn valued(&mut self, key: &str, name: &str, value: Vec<u8>) -> Outcome<()> {
        let options = &mut self.options;
        let server = &mut options.server;
        match key {
            "-h" => server.host = text(&value).into_owned(),
            "-p" => {
                let Ok(port) = text(&value).parse() else {
                    return fail(format_args!("Invalid server port."));
                };
                server.port = port;
            }
            "-s" => server.socket = Some(path(value)),
            "-a" => {
                server.password = Some(value);
                self.has_bare_password = true;
            }
            "--pass-file" => server.password = Some(password_file(value)?),
            "--user" => server.user = Some(value),
            "--name" => server.name = Some(value),
            "-u" => {
                self.tls |= uri::apply(&text(&value), server)?;
                self.has_bare_password = true;
            }
            "-n" => server.database = number(name, &value)?,
            "-t" => server.connect_timeout = seconds(name, &value)?,
            "-r" => options.repeat = number(name, &value)?,
            "-i" => options.interval = seconds(name, &value)?,
            "-X" => self.stdin_argument(StdinArgument::Tag(value))?,
            "-d" => options.style.element_delimiter = value,
            "-D" => options.style.reply_delimiter = value,
            "--decode" => match Decoder::named(&text(&value)) {
                Some(decoder) => options.style.decoder = decoder,
                None => {
                    return fail(format_args!("Unknown decoder '{}': none, utf8, json, msgpack or hex", text(&value)));
                }
            },
            "--pattern" => options.pattern = Some(value),
            "--quoted-pattern" => match unquote(&value) {
                Some(pattern) => options.pattern = Some(pattern),
                None => return fail(format_args!("Invalid quoted string specified for --quoted-pattern.")),
            },
            "--count" => options.count = number(name, &value)?,
            "--cursor" => options.cursor = number(name, &value)?,
            "--top" => options.top = Some(number(name, &value)?),
            "--hotkeys-count" => {
                options.hotkeys_count = number(name, &value)?;
                self.mode(Mode::HotKeys);
            }
            "--show-pushes" => match value.first().map(u8::to_ascii_lowercase) {
                Some(b'n') => options.show_pushes = false,
                Some(b'y') => options.show_pushes = true,
                _ => complain(format_args!("Unknown --show-pushes value '{}' (valid: '[y]es', '[n]o')", text(&value))),
            },
            "--pipe-timeout" => options.pipe_timeout = number(name, &value)?,
            "--memkeys-samples" => {
                let samples = number(name, &value)?;
                self.mode(Mode::MemoryKeys(Some(samples)));
            }
            "--keystats-samples" => {
                let samples = number(name, &value)?;
                self.mode(Mode::KeyStatistics(Some(samples)));
            }
            "--intrinsic-latency" => {
                let seconds = number(name, &value)?;
                self.mode(Mode::IntrinsicLatency(seconds));
            }
            "--lru-test" => {
                let keys = number(name, &value)?;
                self.mode(Mode::LruTest(keys));
            }
            "--eval" => self.mode(Mode::Eval(path(value))),
            "--rdb" => self.mode(Mode::Snapshot { path: path(value), functions_only: false }),
            "--functions-rdb" => self.mode(Mode::Snapshot { path: path(value), functions_only: true }),
            "--vset-recall" | "--vset-recall-count" | "--vset-recall-ef" | "--vset-recall-ele" => self.missing(key),
            "--cluster" => self.mode(Mode::Cluster(vec![value])),
            "--cluster-replicas"
            | "--cluster-master-id"
            | "--cluster-from"
            | "--cluster-to"
            | "--cluster-from-user"
            | "--cluster-from-pass"
            | "--cluster-slots"
            | "--cluster-timeout"
            | "--cluster-pipeline"
            | "--cluster-threshold"
            | "--cluster-weight" => self.idle.push(name.to_string()),
            _ if self.secure.option(key, value) => {}
            _ => return unread(key),
        }
        Ok(())
    }

    fn json(&mut self, format: Format) {
        self.options.style.format = format;
        if self.options.protocol == Protocol::Default {
            self.options.protocol = Protocol::Resp3IfPossible;
        }
    }

    /// The first mode counts; some refine it.
    fn mode(&mut self, mode: Mode) {
        let refines = matches!(
            (&self.options.mode, &mode),
            (Mode::Latency, Mode::LatencyHistory)
                | (Mode::MemoryKeys(_), Mode::MemoryKeys(Some(_)))
                | (Mode::KeyStatistics(_), Mode::KeyStatistics(Some(_)))
        );
        if refines || !self.has_mode {
            self.options.mode = mode;
        }
        self.has_mode = true;
    }

    fn stdin_argument(&mut self, argument: StdinArgument) -> Outcome<()> {
        let before = std::mem::replace(&mut self.options.stdin_argument, argument);
        let one_kind = std::mem::discriminant(&before) == std::mem::discriminant(&self.options.stdin_argument);
        if before != StdinArgument::None && !one_kind {
            return fail(format_args!("Options -x and -X are mutually exclusive."));
        }
        Ok(())
    }

    fn missing(&mut self, name: &str) {
        self.has_mode = true;
        self.options.mode = Mode::Missing(name.to_string());
    }

    fn finish(self) -> Outcome<Options> {
        let mut options = self.options;
        if options.server.socket.is_some() && options.follow_redirects {
            return fail(format_args!("Options -c and -s are mutually exclusive."));
        }
        if self.resp2 {
            if options.protocol == Protocol::Resp3 {
                return fail(format_args!("Options -2 and -3 are mutually exclusive."));
            }
            options.protocol = Protocol::Resp2;
        }
        if self.warn && self.has_bare_password && options.server.password.is_some() {
            complain(format_args!(
                "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe."
            ));
        }
        if self.tls {
            match self.secure.load() {
                Ok(connector) => options.server.connector = Some(connector),
                Err(error) => {
                    return fail(format_args!("Could not negotiate a TLS connection: {}", error.for_client()));
                }
            }
        }
        if options.server.password.is_none() {
            options.server.password = variable("AUTH").map(OsString::into_vec);
        }
        if variable("CLUSTER_YES").is_some_and(|value| value == "1") {
            options.yes = true;
        }
        for option in self.idle {
            complain(format_args!(
                "{option} changes nothing: it belongs to a subcommand of --cluster that this version does not have yet."
            ));
        }
        if self.ask_password {
            options.server.password = Some(crate::terminal::ask_password("Please input password: ")?);
        }
        Ok(options)
    }
}

/// A variable of the environment, `REDISCLI_…` or else `VALKEYCLI_…`.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(format!("REDISCLI_{name}")).or_else(|| std::env::var_os(format!("VALKEYCLI_{name}")))
}

/// A row of the table that nothing reads: a mistake of ours, which a test finds.
fn unread(key: &str) -> Outcome<()> {
    fail(format_args!("{key} is not read"))
}

/// A word in the quoting rules of the prompt, if it is exactly one.
pub(crate) fn unquote(word: &[u8]) -> Option<Vec<u8>> {
    match resp::split_args(word)?.as_mut_slice() {
        [one] => Some(std::mem::take(one)),
        _ => None,
    }
}

fn number<T: FromStr>(name: &str, value: &[u8]) -> Outcome<T> {
    match text(value).trim().parse() {
        Ok(number) => Ok(number),
        Err(_) => fail(format_args!("Invalid value for '{name}': '{}'", text(value))),
    }
}

/// Seconds with a fraction; 0 is none.
fn seconds(name: &str, value: &[u8]) -> Outcome<Option<Duration>> {
    let seconds: f64 = number(name, value)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => Ok((!duration.is_zero()).then_some(duration)),
        Err(_) => fail(format_args!("Invalid value for '{name}': '{}'", text(value))),
    }
}

fn path(value: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(value))
}

/// The first line of a file.
fn password_file(value: Vec<u8>) -> Outcome<Vec<u8>> {
    let path = path(value);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default().to_vec()),
        Err(error) => fail(format_args!("Can't read password file '{}': {}", path.display(), os_text(&error))),
    }
}
