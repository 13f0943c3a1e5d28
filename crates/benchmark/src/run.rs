//! From a command line to an exit code: what redis-benchmark's main function does, in its order.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    cluster::Cluster,
    engine::{self, Aborted, Form, Settings, Setup, Source},
    extended::{ErrorBudget, Output, Rate, ValueKind},
    formats, help,
    keys::{Distribution, Keys},
    options::{self, Options, Parsed},
    places::Places,
    preflight::{Connection, Failure, Server},
    progress::Progress,
    prometheus::{self, Metrics},
    report::{self, Configuration},
    results::Outcome,
    search,
    suite::{self, Test, ValueStream},
    template::Substitution,
    workload,
};

/// Runs the load generator with `arguments` (without the program's name). `program` is the name
/// it was called by, for its messages.
///
/// Exit codes: 0 all well; 1 a mistake in the options, no connection, refused, or the first error
/// reply; 3 an assertion or the baseline does not hold; 4 more errors than allowed; 130 interrupted.
pub fn run(arguments: &[OsString], program: &str) -> ExitCode {
    match options::parse(arguments) {
        Parsed::Help(task) => {
            put(&help::text(program, task.as_deref()));
            ExitCode::SUCCESS
        }
        Parsed::Version => {
            put(&format!("redis-benchmark {} ({NAME} {VERSION})\n", help::REDIS_VERSION));
            ExitCode::SUCCESS
        }
        Parsed::Invalid(option) => {
            put(&format!("Invalid option \"{option}\" or option argument missing\n\n"));
            put(&help::text(program, None));
            if let Some(meant) = ::options::suggestion(&help::tool(), &option) {
                eprintln!("{meant}");
            }
            ExitCode::from(1)
        }
        Parsed::Fatal(text) => {
            eprintln!("{text}");
            ExitCode::from(1)
        }
        Parsed::Run(options, warnings) => {
            for warning in warnings {
                eprintln!("{warning}");
            }
            ExitCode::from(start(*options, arguments))
        }
    }
}

/// Everything known before the first test.
pub(crate) struct Session {
    pub(crate) options: Options,
    pub(crate) configuration: Configuration,
    servers: Vec<Server>,
    places: Places,
    cluster: Option<Arc<Cluster>>,
    pub(crate) threads_shown: usize,
    seed: u32,
    tests_run: u32,
    interrupted: Arc<AtomicBool>,
    pub(crate) info: formats::ServerInfo,
    /// Phase of the workload file; it is put before the titles.
    phase: Option<String>,
    metrics: Option<Arc<Metrics>>,
}

/// Runs the command line, or the phases of its workload file.
fn start(options: Options, arguments: &[OsString]) -> u8 {
    let metrics = match &options.extended.prometheus {
        None => None,
        Some(address) => {
            let metrics = Arc::new(Metrics::default());
            if let Err(text) = prometheus::serve(address, Arc::clone(&metrics)) {
                eprintln!("{text}");
                return 1;
            }
            Some(metrics)
        }
    };
    let phases = match phases(options, arguments) {
        Ok(phases) => phases,
        Err(text) => {
            eprintln!("{text}");
            return 1;
        }
    };
    let mut report: Option<formats::Report> = None;
    let mut last: Option<Session> = None;
    let mut code = 0;
    for (name, mut options) in phases {
        if options.argument_from_stdin && !options.command.is_empty() {
            let mut argument = Vec::new();
            if let Err(error) = io::stdin().lock().read_to_end(&mut argument) {
                eprintln!("Error: cannot read standard input: {error}");
                return 1;
            }
            options.command.push(argument);
        }
        let mut session = match Session::open(options, name, metrics.clone()) {
            Ok(session) => session,
            Err(Failure(text)) => {
                eprint!("{text}");
                return 1;
            }
        };
        if session.options.idle {
            return session.hold_idle();
        }
        let report = report.get_or_insert_with(|| formats::Report::new(arguments, &session));
        code = code.max(session.run_all(report));
        last = Some(session);
        if matches!(code, 1 | INTERRUPTED) {
            break;
        }
    }
    if let (Some(report), Some(session)) = (report, last)
        && let Err(text) = report.finish(&session)
    {
        eprintln!("{text}");
        return code.max(1);
    }
    code
}

/// What is to be run one after the other, each with the name of its phase. The command line's
/// options hold for all phases of a workload file; a phase may override them.
fn phases(options: Options, arguments: &[OsString]) -> Result<Vec<(Option<String>, Options)>, String> {
    let Some(path) = &options.extended.script else {
        return Ok(vec![(None, options)]);
    };
    if !options.command.is_empty() {
        return Err("--script and a command exclude each other".to_owned());
    }
    let mut phases = Vec::new();
    for phase in workload::read(path)? {
        let all: Vec<OsString> = arguments.iter().chain(&phase.arguments).cloned().collect();
        match options::parse(&all) {
            Parsed::Run(options, _) => phases.push((Some(phase.name), *options)),
            Parsed::Fatal(text) => return Err(format!("phase {}: {text}", phase.name)),
            Parsed::Invalid(option) => {
                return Err(format!("phase {}: invalid option {option}", phase.name));
            }
            Parsed::Help(_) | Parsed::Version => {
                return Err(format!("phase {}: an option that runs nothing", phase.name));
            }
        }
    }
    Ok(phases)
}

impl Session {
    fn open(options: Options, phase: Option<String>, metrics: Option<Arc<Metrics>>) -> Result<Session, Failure> {
        let (mut out, mut warnings) = (String::new(), String::new());
        let mut info = formats::ServerInfo::default();
        let mut threads_shown = options.threads;
        let (configuration, servers, cluster) = if options.cluster {
            let cluster = Cluster::fetch(&options, &mut out, &mut warnings)?;
            if threads_shown == 0 {
                threads_shown = cluster.primaries.len();
            }
            let configuration = Configuration::Cluster(cluster.configs.clone());
            (configuration, cluster.servers.clone(), Some(Arc::new(cluster)))
        } else {
            let mut servers = Vec::new();
            let mut config = None;
            let endpoints: Vec<Option<(&str, u16)>> = match options.extended.targets.as_slice() {
                [] => vec![None],
                targets => targets.iter().map(|(host, port)| Some((host.as_str(), *port))).collect(),
            };
            for endpoint in endpoints {
                let (mut connection, server) = Connection::open(&options, endpoint)?;
                config = connection.config(&server)?;
                info = formats::ServerInfo::ask(&mut connection, &options);
                servers.push(server);
            }
            if config.is_none() {
                warnings.push_str("WARNING: Could not fetch server CONFIG\n");
            }
            (Configuration::Standalone(config), servers, None)
        };
        put(&out);
        eprint!("{warnings}");
        if options.keep_alive == 0 {
            eprintln!(
                "WARNING: Keepalive disabled. You probably need 'echo 1 > \
                 /proc/sys/net/ipv4/tcp_tw_reuse' for Linux and 'sudo sysctl -w \
                 net.inet.tcp.msl=1000' for Mac OS X in order to use a lot of clients/requests"
            );
        }
        if !options.command.is_empty() && options.tests.is_some() {
            eprintln!("WARNING: Option -t is ignored.");
        }
        let places = Places::find(&options, threads_shown, &servers)?;
        if places.private_tables {
            threads_shown = places.threads;
        }
        let seed = options.seed.unwrap_or_else(time_seed);
        let interrupted = Arc::new(AtomicBool::new(false));
        // The first Ctrl-C ends the test and reports, the second ends the process as usual.
        let watched =
            signal_hook::flag::register_conditional_default(signal_hook::consts::SIGINT, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted)));
        if watched.is_err() {
            eprintln!("WARNING: Ctrl-C will end the run without a report");
        }
        Ok(Session {
            options,
            configuration,
            servers,
            places,
            cluster,
            threads_shown,
            seed,
            tests_run: 0,
            interrupted,
            info,
            phase,
            metrics,
        })
    }

    /// Runs the command, the mix or the suite, as often as asked for. Returns the exit code.
    fn run_all(&mut self, report: &mut formats::Report) -> u8 {
        let redis_output = self.options.extended.output == Output::Redis;
        if self.options.csv && redis_output && !self.options.extended.legacy_output {
            put(&format!("{}\n", report::CSV_HEADER));
        }
        let mut values = ValueStream::new();
        let mut code = 0;
        loop {
            let sizes = match self.options.extended.sizes.as_slice() {
                [] => vec![self.options.value_bytes],
                sizes => sizes.to_vec(),
            };
            let values: Vec<Vec<u8>> = sizes.iter().map(|size| values.take(*size)).collect();
            let forms = match self.tests(&values) {
                Ok(forms) => forms,
                Err(text) => {
                    eprintln!("{text}");
                    return 1;
                }
            };
            for forms in &forms {
                let test_code = match self.run_forms(forms, report) {
                    Ok(code) => code,
                    Err(aborted) => return give_up(&aborted),
                };
                code = code.max(test_code);
                if self.interrupted.load(Ordering::Relaxed) {
                    eprintln!("Interrupted: the figures are those up to here.");
                    return INTERRUPTED;
                }
            }
            let is_suite = self.options.command.is_empty() && self.options.extended.mix.is_none();
            if is_suite && !self.options.csv && redis_output {
                put("\n");
            }
            if !self.options.endless_suite {
                return code;
            }
        }
    }

    /// The tests to run, each once per value size.
    fn tests(&self, values: &[Vec<u8>]) -> Result<Vec<Vec<Form>>, String> {
        let options = &self.options;
        let mut tests: Vec<Vec<Form>> = Vec::new();
        for value in values {
            let list = if let Some(mix) = &options.extended.mix {
                vec![suite::mix(mix, options, value)?]
            } else if options.command.is_empty() {
                suite::default_suite(options, value)
            } else {
                vec![suite::custom(&options.command, value)?]
            };
            tests.resize_with(list.len(), Vec::new);
            for (forms, test) in tests.iter_mut().zip(list) {
                forms.push(Form { test, value: value.clone() });
            }
        }
        Ok(tests)
    }

    fn run_forms(&mut self, forms: &[Form], report: &mut formats::Report) -> Result<u8, Aborted> {
        if let Some(objective) = self.options.extended.find_max.clone() {
            return search::find_max(self, forms, &objective, report);
        }
        let steps = self.options.extended.rate_steps.clone();
        if steps.is_empty() {
            let outcome = self.measure(forms, self.options.extended.rate)?;
            return Ok(self.conclude(forms, &outcome, report));
        }
        let mut code = 0;
        for per_second in steps {
            let rate = search::rate_of(&self.options, per_second);
            let mut outcome = self.measure(forms, Some(rate))?;
            outcome.title = format!("{} @ {per_second:.0}/s", outcome.title);
            code = code.max(self.conclude(forms, &outcome, report));
            if outcome.interrupted {
                break;
            }
        }
        Ok(code)
    }

    /// Runs one test.
    pub(crate) fn measure(&mut self, forms: &[Form], rate: Option<Rate>) -> Result<Outcome, Aborted> {
        let options = &self.options;
        let extended = &options.extended;
        let Some(Form { test, .. }) = forms.first() else {
            return Err(Aborted { text: "Error: there is nothing to send".to_owned(), finished: 0 });
        };
        let span = match (extended.key_max, options.keyspace) {
            (Some(max), _) => Some((max - extended.key_min).saturating_add(1)),
            (None, span) => span,
        };
        let seed = self.seed.wrapping_add(self.tests_run);
        self.tests_run += 1;
        let keys = Keys::new(extended.keys.unwrap_or(Distribution::Uniform), extended.key_min, span.unwrap_or(0), seed);
        let value_bytes_max = forms.iter().map(|form| form.value.len()).max().unwrap_or(0);
        let value_pool = value_pool(extended.value, value_bytes_max);
        let substitution = Substitution {
            numbers: span.is_some(),
            tags: options.cluster,
            value_bytes: if value_pool.is_empty() { 0 } else { value_bytes_max },
        };
        let source = Source::new(forms, options.pipeline, substitution);
        let setup = Setup {
            threads: self.threads_shown.max(1),
            places: self.places.clone(),
            servers: self.servers.clone(),
            cluster: self.cluster.clone(),
            keys,
            seed,
            value_pool,
            operation_names: test.operations.iter().map(|o| o.name.clone()).collect(),
            rate,
            idle: false,
        };
        let settings = Arc::new(Settings::new(options, setup));
        let mut progress = Progress::new(options, self.metrics.clone());
        let title = match &self.phase {
            Some(phase) => format!("{phase}: {}", test.title),
            None => test.title.clone(),
        };
        let outcome = engine::run_test(settings, &source, &title, test.payload_bytes, &mut progress, &self.interrupted);
        let blank = progress.end();
        if outcome.is_ok() && !options.csv {
            put(&blank);
        }
        outcome
    }

    /// Reports a finished test and judges it. Returns its exit code.
    pub(crate) fn conclude(&self, forms: &[Form], outcome: &Outcome, report: &mut formats::Report) -> u8 {
        let options = &self.options;
        if options.extended.output == Output::Redis {
            let text = if options.extended.legacy_output {
                report::text_of_redis_4(options, outcome)
            } else if options.csv {
                report::csv(options, outcome)
            } else if options.quiet {
                report::quiet(options, outcome)
            } else {
                report::text(options, self.threads_shown, &self.configuration, outcome)
            };
            report.redis_text(&text);
            if outcome.response.is_some() && !options.csv {
                report.redis_text(&formats::open_loop_lines(outcome));
            }
            if let Some(microseconds) = outcome.server_cpu_us()
                && !options.csv
            {
                report.redis_text(&format!("  server CPU: {microseconds:.3} µs per request\n"));
            }
            if options.reports_fairness() && options.keep_alive != 0 && !options.csv {
                report.redis_text(&outcome.fairness.line());
            }
        }
        eprint!("{}", formats::notes(outcome));
        let test: Option<&Test> = forms.first().map(|form| &form.test);
        report.add(self, test, outcome);
        self.judge(outcome, report)
    }

    fn judge(&self, outcome: &Outcome, report: &formats::Report) -> u8 {
        let extended = &self.options.extended;
        let failures = outcome.errors.total() - outcome.errors.redirects();
        let over_budget = match extended.max_errors {
            None => failures > 0,
            Some(ErrorBudget::Count(allowed)) => failures > allowed,
            Some(ErrorBudget::Percent(allowed)) => outcome.error_share() * 100.0 > allowed,
        };
        let mut code = if over_budget { OVER_BUDGET } else { 0 };
        for assertion in &extended.assertions {
            let (value, holds) = assertion.check(outcome);
            if !holds {
                eprintln!("FAILED: {}: {assertion}, measured {value:.3}", outcome.title);
                code = code.max(ASSERTION_FAILED);
            }
        }
        if let Some(text) = report.worse_than_baseline(self, outcome) {
            eprintln!("FAILED: {}: {text}", outcome.title);
            code = code.max(ASSERTION_FAILED);
        }
        code
    }

    fn hold_idle(&mut self) -> u8 {
        let clients = self.options.clients;
        put(&format!("Creating {clients} idle connections and waiting forever (Ctrl+C when done)\n"));
        let setup = Setup {
            threads: self.threads_shown.max(1),
            places: self.places.clone(),
            servers: self.servers.clone(),
            cluster: self.cluster.clone(),
            keys: Keys::new(Distribution::Uniform, 0, 0, self.seed),
            seed: self.seed,
            value_pool: Vec::new(),
            operation_names: Vec::new(),
            rate: None,
            idle: true,
        };
        let settings = Arc::new(Settings::new(&self.options, setup));
        let source = Source::new(&[], 1, Substitution::default());
        let mut progress = Progress::new(&self.options, self.metrics.clone());
        match engine::run_test(settings, &source, "", 0, &mut progress, &self.interrupted) {
            Ok(_) => INTERRUPTED,
            Err(aborted) => give_up(&aborted),
        }
    }
}

/// Prints to stdout. Redis: a closed pipe is not an error of the run.
pub(crate) fn put(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn give_up(aborted: &Aborted) -> u8 {
    eprintln!("{}", aborted.text);
    if aborted.finished > 0 {
        eprintln!("({} requests had been completed.)", aborted.finished);
    }
    1
}

/// Bytes that varying values are cut from; empty when values do not vary.
fn value_pool(kind: ValueKind, value_bytes: usize) -> Vec<u8> {
    let repeated = match kind {
        ValueKind::Fixed => return Vec::new(),
        ValueKind::Random => 0.0,
        ValueKind::Compressible(share) => share,
    };
    let mut random = fastrand::Rng::with_seed(VALUE_POOL_SEED);
    let length = value_bytes * 2 + VALUE_POOL_SPARE_BYTES;
    let mut pool = Vec::with_capacity(length);
    while pool.len() < length {
        let is_repeated = random.f64() < repeated;
        let block = VALUE_BLOCK_BYTES.min(length - pool.len());
        pool.extend((0..block).map(|_| if is_repeated { b'x' } else { random.u8(b'0'..=b'o') }));
    }
    pool
}

fn time_seed() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are those that differ")]
    let seconds = now.as_secs() as u32;
    seconds ^ now.subsec_nanos() ^ std::process::id()
}

const NAME: &str = "oxidis benchmark";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const ASSERTION_FAILED: u8 = 3;
const OVER_BUDGET: u8 = 4;
const INTERRUPTED: u8 = 130;
const VALUE_POOL_SEED: u64 = 0x0b1d_15ea_5e00;
const VALUE_POOL_SPARE_BYTES: usize = 64 * 1024;
const VALUE_BLOCK_BYTES: usize = 64;
