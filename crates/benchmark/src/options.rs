//! Command line of the load generator: redis-benchmark 7.2's options with their meanings and
//! defaults, Valkey's additions, and our own (long names only, so that no two can clash).
//!
//! What there is and which options take a value is read from the table that the help shows ([`help::tool`]). Parsing has
//! no side effects: warnings and early endings are values, printed by the caller.
//! Numbers of the old options go through [`atoi`], as they always did: text counts as zero.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use ::options::{Item, Reader};
use net::tls::{ClientSettings, Connector, SettingsError, Verify};

use crate::{
    extended::{self, Extended},
    fairness, help, uri,
};

/// What to do, from the command line. Times are in the unit their type says; sizes in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Server host name or address (`-h`).
    pub(crate) host: String,
    /// Server port (`-p`).
    pub(crate) port: u16,
    /// Path of a unix socket (`-s`); wins over host and port.
    pub(crate) socket: Option<PathBuf>,
    /// Password for AUTH (`-a` or a URI).
    pub(crate) password: Option<Vec<u8>>,
    /// User name for AUTH (`--user` or a URI); alone it sends nothing.
    pub(crate) user: Option<Vec<u8>>,
    /// TLS was asked for (`--tls`, `rediss://`).
    pub(crate) tls: bool,
    /// The companions of `--tls`.
    pub(crate) secure: ClientSettings,
    /// What is made of them when TLS was asked for.
    pub(crate) connector: Option<Connector>,
    /// Parallel connections as typed (`-c`); [`Options::client_count`] is what is opened.
    pub(crate) clients: i64,
    /// Requests of all clients together (`-n`); 0 runs without end.
    pub(crate) requests: u64,
    /// Whether `-n` was given.
    pub(crate) requests_given: bool,
    /// Value size in bytes (`-d`).
    pub(crate) value_bytes: usize,
    /// Number printed as `keep alive`; 0 opens a connection per batch (`-k`).
    pub(crate) keep_alive: i64,
    /// Upper bound (exclusive) of the random numbers that replace placeholders (`-r`).
    pub(crate) keyspace: Option<u64>,
    /// Requests per batch (`-P`).
    pub(crate) pipeline: usize,
    /// One line per test (`-q`).
    pub(crate) quiet: bool,
    /// Comma-separated report (`--csv`).
    pub(crate) csv: bool,
    /// Repeat for ever (`-l`).
    pub(crate) endless_suite: bool,
    /// Only open idle connections (`-I`).
    pub(crate) idle: bool,
    /// Chosen tests, lower case, with a comma at both ends (`-t`).
    pub(crate) tests: Option<String>,
    /// Append standard input as the last argument (`-x`).
    pub(crate) argument_from_stdin: bool,
    /// Speak RESP3 (`-3`).
    pub(crate) resp3: bool,
    /// Database to select (`--dbnum` or a URI).
    pub(crate) database: i64,
    /// Event-loop threads as typed (`--threads`); 0 reports `multi-thread: no`.
    pub(crate) threads: usize,
    /// Spread over the primaries of a Redis Cluster (`--cluster`).
    pub(crate) cluster: bool,
    /// Send CLIENT TRACKING on (`--enable-tracking`).
    pub(crate) tracking: bool,
    /// Significant digits of the histogram (`--precision`).
    pub(crate) precision: u8,
    /// Seed of the random numbers (`--seed`).
    pub(crate) seed: Option<u32>,
    /// The command to run instead of the suite: its words, as typed.
    pub(crate) command: Vec<Vec<u8>>,
    /// Everything that redis-benchmark 7.2 does not have.
    pub(crate) extended: Extended,
}

impl Options {
    /// Connections to open: at least one, whatever was typed.
    pub(crate) fn client_count(&self) -> usize {
        usize::try_from(self.clients).unwrap_or(1).max(1)
    }

    /// The number of requests of a whole test, if it has one.
    pub(crate) fn request_total(&self) -> Option<u64> {
        let extended = &self.extended;
        if extended.duration.is_some() || !extended.ramp_clients.is_empty() || extended.find_max.is_some() {
            return None;
        }
        match extended.per_client {
            Some(requests) => Some(requests.saturating_mul(self.client_count() as u64)),
            None => (self.requests > 0).then_some(self.requests),
        }
    }

    /// `host:port`, or the path of the socket, as error messages name the server.
    pub(crate) fn server_name(&self) -> String {
        match &self.socket {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    /// Whether the report tells how evenly the connections were served.
    pub(crate) fn reports_fairness(&self) -> bool {
        self.extended.fairness || self.client_count() >= fairness::SHOWN_FROM_CLIENTS
    }

    /// Whether the test called `name` is to be run.
    pub(crate) fn test_is_selected(&self, name: &str) -> bool {
        self.tests.as_ref().is_none_or(|tests| tests.contains(&format!(",{name},")))
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            socket: None,
            password: None,
            user: None,
            tls: false,
            secure: ClientSettings::default(),
            connector: None,
            clients: 50,
            requests: 100_000,
            requests_given: false,
            value_bytes: 3,
            keep_alive: 1,
            keyspace: None,
            pipeline: 1,
            quiet: false,
            csv: false,
            endless_suite: false,
            idle: false,
            tests: None,
            argument_from_stdin: false,
            resp3: false,
            database: 0,
            threads: 0,
            cluster: false,
            tracking: false,
            precision: DEFAULT_PRECISION,
            seed: None,
            command: Vec::new(),
            extended: Extended::default(),
        }
    }
}

/// Result of reading the command line.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Run with these options, after printing the warnings on stderr.
    Run(Box<Options>, Vec<String>),
    /// `--help`, or `--help TASK`.
    Help(Option<String>),
    /// `-v` or `--version`.
    Version,
    /// An unknown option or one without its value: stdout says so, then the help; exit 1.
    Invalid(String),
    /// Any other mistake: this text on stderr, exit 1.
    Fatal(String),
}

/// Reads the arguments (without the program's own name).
pub(crate) fn parse(arguments: &[OsString]) -> Parsed {
    parse_phase(arguments, &[])
}

/// Reads the arguments that hold for all phases, and behind them those of one phase, which win.
pub(crate) fn parse_phase(common: &[OsString], phase: &[OsString]) -> Parsed {
    let mut parser = Parser::default();
    match parser.run(common, phase) {
        Ok(()) => Parsed::Run(Box::new(parser.options), parser.warnings),
        Err(stop) => stop,
    }
}

#[derive(Default)]
struct Parser {
    options: Options,
    warnings: Vec<String>,
}

impl Parser {
    fn run(&mut self, common: &[OsString], phase: &[OsString]) -> Result<(), Parsed> {
        let tool = help::tool();
        self.read(Reader::new(&tool, common))?;
        // A phase that is bound by a time needs no regard to a number for all phases, and the other way round.
        let ends = ["-n", "--duration", "--per-client", "--ramp-clients"];
        if phase.iter().any(|word| ends.iter().any(|end| word == end)) {
            self.options.requests_given = false;
            self.options.extended.duration = None;
            self.options.extended.per_client = None;
        }
        self.read(Reader::new(&tool, phase))?;
        extended::check(&self.options).map_err(Parsed::Fatal)?;
        if self.options.tls {
            let refuse = |error: SettingsError| {
                Parsed::Fatal(format!("Could not negotiate a TLS connection: {}", error.for_client()))
            };
            self.options.connector = Some(self.options.secure.load().map_err(refuse)?);
        }
        Ok(())
    }

    /// Reads options up to the command.
    fn read(&mut self, mut reader: Reader<'_>) -> Result<(), Parsed> {
        while let Some(item) = reader.read() {
            match item {
                Item::Option { name, value, .. } => self.option(&name, value.unwrap_or_default())?,
                Item::Unknown(dashes) if dashes == "--" => {
                    self.options.command = reader.rest();
                    break;
                }
                // Redis: a lone dash is an option, and none that is known.
                Item::Word(word) if word == b"-" => return Err(Parsed::Invalid(text(&word))),
                Item::Word(_) => {
                    self.options.command = reader.from_last();
                    break;
                }
                Item::Unknown(name) | Item::NoValue(name) | Item::NeedlessValue(name) => {
                    return Err(Parsed::Invalid(name));
                }
            }
        }
        Ok(())
    }

    /// Takes over one option; the value of one without a value is empty.
    fn option(&mut self, name: &str, value: Vec<u8>) -> Result<(), Parsed> {
        if extended::is_ours(name) {
            let value = text(&value);
            if name == "--output" && value == "csv" {
                self.options.csv = true;
            }
            return extended::apply(&mut self.options.extended, name, &value).map_err(Parsed::Fatal);
        }
        match name {
            "--tls" => self.options.tls = true,
            "--insecure" => self.options.secure.verify = Verify::Nothing,
            "--sni" | "--cacert" | "--cacertdir" | "--cert" | "--key" | "--tls-ciphers" | "--tls-ciphersuites"
            | "--tls-verify-host" => {
                self.options.secure.option(name, value);
            }
            _ => self.compatible(name, &value)?,
        }
        Ok(())
    }

    /// The options of redis-benchmark 7.2 apart from TLS.
    fn compatible(&mut self, name: &str, value: &[u8]) -> Result<(), Parsed> {
        let number = atoi(value);
        match name {
            "-c" => self.options.clients = number,
            "-v" | "--version" => return Err(Parsed::Version),
            "--help" => return Err(Parsed::Help((!value.is_empty()).then(|| text(value)))),
            "-n" => {
                self.options.requests = u64::try_from(number).unwrap_or(0);
                self.options.requests_given = true;
            }
            "-k" => self.options.keep_alive = number,
            "-h" => self.options.host = text(value),
            "-p" => self.options.port = port(number)?,
            "-s" => self.options.socket = Some(PathBuf::from(text(value))),
            "-x" => self.options.argument_from_stdin = true,
            "-a" => self.options.password = Some(value.to_vec()),
            "--user" => self.options.user = Some(value.to_vec()),
            "-u" => self.server_uri(&text(value))?,
            "-3" => self.options.resp3 = true,
            "-d" => self.options.value_bytes = usize::try_from(number.clamp(1, VALUE_BYTES_MAX)).unwrap_or(1),
            "-P" => self.options.pipeline = usize::try_from(number).unwrap_or(1).max(1),
            "-r" => {
                // Redis: a dash must be followed by a digit, so that `-r -q` is caught.
                if value.first() == Some(&b'-') && !value.get(1).is_some_and(u8::is_ascii_digit) {
                    return Err(Parsed::Invalid(text(value)));
                }
                self.options.keyspace = Some(u64::try_from(number).unwrap_or(0));
            }
            "-q" => self.options.quiet = true,
            "--csv" => self.options.csv = true,
            "-l" => self.options.endless_suite = true,
            "-I" => self.options.idle = true,
            "-e" => self.warnings.push(
                "WARNING: -e option has no effect. We now immediately exit on error to avoid \
                 false results."
                    .to_owned(),
            ),
            #[expect(clippy::cast_possible_truncation, reason = "srandom() took an int")]
            "--seed" => self.options.seed = Some(number as u32),
            "-t" => self.options.tests = Some(format!(",{},", text(value).to_ascii_lowercase())),
            "--dbnum" => self.options.database = number,
            "--precision" => {
                self.options.precision = match number {
                    digits if digits < 0 => DEFAULT_PRECISION,
                    digits => u8::try_from(digits.clamp(1, PRECISION_MAX)).unwrap_or(1),
                };
            }
            "--threads" => {
                if number > THREADS_MAX {
                    self.warnings.push(format!("WARNING: Too many threads, limiting threads to {THREADS_MAX}."));
                }
                self.options.threads = usize::try_from(number.clamp(0, THREADS_MAX)).unwrap_or(0);
            }
            "--cluster" => self.options.cluster = true,
            "--enable-tracking" => self.options.tracking = true,
            _ => return Err(Parsed::Invalid(name.to_owned())),
        }
        Ok(())
    }

    fn server_uri(&mut self, value: &str) -> Result<(), Parsed> {
        let parsed = uri::parse(value).map_err(|error| Parsed::Fatal(error.to_owned()))?;
        let options = &mut self.options;
        options.tls |= parsed.tls;
        options.user = parsed.user.or(options.user.take());
        options.password = parsed.password.or(options.password.take());
        if let Some(host) = parsed.host {
            options.host = host;
        }
        if let Some(number) = parsed.port {
            options.port = port(number)?;
        }
        if let Some(database) = parsed.database {
            options.database = database;
        }
        Ok(())
    }
}

fn port(number: i64) -> Result<u16, Parsed> {
    u16::try_from(number).map_err(|_| Parsed::Fatal("Invalid server port.".to_owned()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// C's reading of a decimal number: blanks, a sign, digits; anything else ends it, nothing is 0.
/// Saturates where C would overflow.
pub(crate) fn atoi(word: &[u8]) -> i64 {
    let word = word.trim_ascii_start();
    let (negative, digits) = match word.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, word),
    };
    let magnitude = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |sum, byte| sum.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    if negative { -magnitude } else { magnitude }
}

/// Reads `250ms`, `10s`, `5m`, `1h` or a bare number of seconds.
pub(crate) fn duration(value: &str) -> Option<Duration> {
    let split = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

const DEFAULT_PRECISION: u8 = 3;
const PRECISION_MAX: i64 = 4;
const THREADS_MAX: i64 = 500;
const VALUE_BYTES_MAX: i64 = 1 << 30;

#[cfg(test)]
mod tests;
