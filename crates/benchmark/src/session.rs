//! One command line, or one phase of a workload file: the servers it has looked at, and the tests it runs on them.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use resp::Value;

use crate::{
    agents::{
        Portion, TestOrder,
        coordinator::{Fleet, TestSettings},
    },
    cleanup::Made,
    cluster::{self, Cluster},
    dataset::Dataset,
    engine::{self, Aborted, Settings, Setup, Source},
    extended::{ErrorBudget, HashTag, Output, Rate},
    formats,
    keys::{Distribution, Keys},
    options::Options,
    places::Places,
    preflight::{self, Connection, Failure, Server},
    progress::Progress,
    prometheus::Metrics,
    replay::Log,
    report::{self, Configuration},
    results::Outcome,
    run::{AGENT_LOST, INTERRUPTED, put, tell},
    safety, search,
    suite::{self, Test, ValueStream},
    template::Substitution,
    values,
};

/// Everything known before the first test.
pub(crate) struct Session {
    pub(crate) options: Options,
    pub(crate) configuration: Configuration,
    servers: Vec<Server>,
    places: Places,
    cluster: Option<Arc<Cluster>>,
    pub(crate) threads_shown: usize,
    /// Threads before more were needed for descriptors.
    threads_asked: usize,
    seed: u32,
    tests_run: u32,
    interrupted: Arc<AtomicBool>,
    pub(crate) info: formats::ServerInfo,
    /// Phase of the workload file; it is put before the titles.
    phase: Option<String>,
    metrics: Option<Arc<Metrics>>,
    /// The part of the load that is this agent's.
    share: Option<Share>,
    /// The agents that run the tests instead of this process.
    pub(crate) fleet: Option<Fleet>,
    tags: Arc<[[u8; 3]]>,
    dataset: Option<Dataset>,
    replay: Option<Arc<Log>>,
    /// Where the suite's values come from; they go on from round to round.
    values: RefCell<ValueStream>,
}

/// What a session needs beside its options.
pub(crate) struct Opening {
    /// Phase of the workload file.
    pub(crate) phase: Option<String>,
    /// Where figures for scrapers go.
    pub(crate) metrics: Option<Arc<Metrics>>,
    /// Set when the tests are to end.
    pub(crate) interrupted: Arc<AtomicBool>,
    /// The part of the load, when this is an agent.
    pub(crate) share: Option<Share>,
}

/// An agent's part of a joined run.
pub(crate) struct Share {
    /// Its place among all.
    pub(crate) portion: Portion,
    /// Clients of all agents.
    pub(crate) clients: usize,
    /// Requests of all agents, if they are counted together.
    pub(crate) requests: Option<u64>,
}

impl Share {
    /// Leaves of the options for all what is this agent's.
    fn take_part(&self, options: &mut Options) {
        let part = |total: u64| self.portion.of(total).count;
        if options.requests > 0 {
            options.requests = part(options.requests).max(1);
        }
        options.clients = i64::try_from(part(options.client_count() as u64).max(1)).unwrap_or(i64::MAX);
        if let Some(rate) = &mut options.extended.connect_rate {
            *rate = self.portion.of_rate(*rate);
        }
    }
}

impl Session {
    /// Looks at the servers and prepares everything that the tests share.
    pub(crate) fn open(mut options: Options, opening: Opening) -> Result<Session, Failure> {
        if let Some(share) = &opening.share {
            share.take_part(&mut options);
        }
        let is_agent = opening.share.is_some();
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
        if !is_agent {
            put(&out);
            if !warnings.is_empty() {
                tell(format_args!("{}", warnings.trim_end_matches('\n')));
            }
        }
        if options.keep_alive == 0 && !is_agent {
            tell(format_args!(
                "WARNING: Keepalive disabled. You probably need 'echo 1 > \
                 /proc/sys/net/ipv4/tcp_tw_reuse' for Linux and 'sudo sysctl -w \
                 net.inet.tcp.msl=1000' for Mac OS X in order to use a lot of clients/requests"
            ));
        }
        if !options.command.is_empty() && options.tests.is_some() && !is_agent {
            tell(format_args!("WARNING: Option -t is ignored."));
        } else if !is_agent {
            for (name, meant) in suite::unknown_tests(&options) {
                let hint = meant.map(|meant| format!(" Did you mean '{meant}'?")).unwrap_or_default();
                tell(format_args!("NOTE: no test is called '{name}'.{hint}"));
            }
        }
        let threads_asked = threads_shown;
        // With agents this machine opens no connection of the load.
        let places = match options.extended.agents.is_empty() {
            true => Places::find(&options, threads_shown, &servers)?,
            false => Places { threads: threads_shown, ..Places::default() },
        };
        if places.private_tables {
            threads_shown = places.threads;
        }
        let dataset = match &options.extended.dataset {
            Some(path) => Some(Dataset::read(path, options.extended.dataset_rows_max).map_err(Failure)?),
            None => None,
        };
        let replay = match &options.extended.replay {
            Some(path) => Some(Arc::new(Log::read(path, options.client_count()).map_err(Failure)?)),
            None => None,
        };
        let seed = options.seed.unwrap_or_else(time_seed);
        let tags = match options.extended.hash_tag {
            Some(HashTag::Spread) if !options.cluster => cluster::tag_table().into(),
            _ => Arc::from([]),
        };
        Ok(Session {
            options,
            configuration,
            servers,
            places,
            cluster,
            threads_shown,
            threads_asked,
            seed,
            tests_run: 0,
            interrupted: opening.interrupted,
            info,
            phase: opening.phase,
            metrics: opening.metrics,
            share: opening.share,
            fleet: None,
            tags,
            dataset,
            replay,
            values: RefCell::new(ValueStream::new()),
        })
    }

    /// Seed of the random numbers, given or chosen.
    pub(crate) fn seed(&self) -> u32 {
        self.seed
    }

    /// The servers that the load goes to.
    pub(crate) fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Runs the command, the mix or the suite, as often as asked for. Returns the exit code.
    pub(crate) fn run_all(&mut self, report: &mut formats::Report, made: &mut Made) -> u8 {
        let redis_output = self.options.extended.output == Output::Redis;
        if self.options.csv && redis_output && !self.options.extended.legacy_output {
            put(&format!("{}\n", report::CSV_HEADER));
        }
        let mut code = 0;
        loop {
            let tests = match self.tests().and_then(|tests| safety::check(self, &tests).map(|()| tests)) {
                Ok(tests) => tests,
                Err(text) => {
                    tell(format_args!("{text}"));
                    return 1;
                }
            };
            safety::notes(self, &tests);
            for (index, test) in tests.iter().enumerate() {
                if self.options.extended.cleanup {
                    made.note(self, test);
                }
                match self.run_test(index, test, report) {
                    Ok(test_code) => code = code.max(test_code),
                    Err(aborted) => return self.give_up(test, aborted, report),
                }
                if self.interrupted.load(Ordering::Relaxed) {
                    tell(format_args!("Interrupted: the figures are those up to here."));
                    return INTERRUPTED;
                }
                if self.fleet.as_ref().is_some_and(Fleet::is_broken) {
                    return AGENT_LOST;
                }
            }
            let is_suite = self.options.command.is_empty()
                && self.options.extended.mix.is_none()
                && self.options.extended.operations.is_empty()
                && self.replay.is_none();
            if is_suite && !self.options.csv && redis_output {
                put("\n");
            }
            if !self.options.endless_suite {
                return code;
            }
        }
    }

    /// The tests to run.
    pub(crate) fn tests(&self) -> Result<Vec<Test>, String> {
        let options = &self.options;
        if let (Some(log), Some(path)) = (&self.replay, &options.extended.replay) {
            if log.skipped > 0 {
                tell(format_args!(
                    "NOTE: {} recorded commands are left out: they make no sense from here",
                    log.skipped
                ));
            }
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            return Ok(vec![suite::recorded(&format!("REPLAY {name}"), log.names())]);
        }
        let mut values = self.values.borrow_mut();
        let extended = &options.extended;
        let payloads = suite::payloads(&extended.sizes, options.value_bytes, &extended.ttls, &mut values);
        suite::tests(options, &payloads, self.dataset.as_ref())
    }

    fn run_test(&mut self, index: usize, test: &Test, report: &mut formats::Report) -> Result<u8, Aborted> {
        if let Some(words) = &test.setup {
            self.set_up(words).map_err(Aborted::before_start)?;
        }
        if let Some(objective) = self.options.extended.find_max.clone() {
            return search::find_max(self, (index, test), &objective, report);
        }
        let mut code = 0;
        let rates = self.options.extended.rate_steps.clone();
        for per_second in &rates {
            let rate = search::rate_of(&self.options, *per_second);
            let mut outcome = self.measure(index, test, Some(rate))?;
            outcome.title = format!("{} @ {per_second:.0}/s", outcome.title);
            code = code.max(self.conclude(test, &outcome, report));
            if outcome.interrupted {
                return Ok(code);
            }
        }
        let counts = self.options.extended.ramp_clients.clone();
        for clients in &counts {
            self.options.clients = i64::try_from(*clients).unwrap_or(i64::MAX);
            self.options.extended.duration = Some(self.options.extended.ramp_step);
            let mut outcome = self.measure(index, test, self.options.extended.rate)?;
            outcome.title = format!("{} @ {clients} clients", outcome.title);
            code = code.max(self.conclude(test, &outcome, report));
            if outcome.interrupted {
                return Ok(code);
            }
        }
        if rates.is_empty() && counts.is_empty() {
            let outcome = self.measure(index, test, self.options.extended.rate)?;
            code = self.conclude(test, &outcome, report);
        }
        Ok(code)
    }

    /// Sends a command that a test needs to every server. The error is a sentence for stderr.
    fn set_up(&self, words: &[String]) -> Result<(), String> {
        for server in &self.servers {
            let mut connection = Connection::to(&self.options, server).map_err(|failure| failure.0)?;
            match connection.ask(words) {
                Ok(Value::Error(text)) => {
                    return Err(format!("Error from server {}: {}", server.name, String::from_utf8_lossy(&text)));
                }
                Ok(_) => {}
                Err(error) => return Err(format!("Error: {}: {}", server.name, preflight::reason(&error))),
            }
        }
        Ok(())
    }

    /// Runs one test, here or on the agents.
    pub(crate) fn measure(&mut self, index: usize, test: &Test, rate: Option<Rate>) -> Result<Outcome, Aborted> {
        let title = match &self.phase {
            Some(phase) => format!("{phase}: {}", test.title),
            None => test.title.clone(),
        };
        let mut progress = Progress::new(&self.options, self.metrics.clone());
        let outcome = match self.fleet.take() {
            None => {
                let turn = self.tests_run;
                self.run_here(test, &title, rate, turn, &mut progress)
            }
            Some(mut fleet) => {
                let extended = &self.options.extended;
                let order = TestOrder {
                    index,
                    turn: self.tests_run,
                    clients: self.options.client_count(),
                    duration: extended.duration,
                    rate,
                    seed: self.seed,
                };
                let settings = TestSettings {
                    title: &title,
                    payload_bytes: test.payload_bytes,
                    precision: self.options.precision,
                    duration: extended.duration.map(|time| extended.warmup + time + extended.cooldown),
                    requests: self.options.request_total(),
                };
                let outcome = fleet.run_test(&order, &settings, &mut progress, &self.interrupted);
                self.fleet = Some(fleet);
                outcome
            }
        };
        self.tests_run += 1;
        let blank = progress.end();
        if outcome.is_ok() && !self.options.csv {
            put(&blank);
        }
        outcome
    }

    /// Runs this agent's part of a test.
    pub(crate) fn measure_share(
        &mut self,
        test: &Test,
        order: &TestOrder,
        progress: &mut Progress<'_>,
    ) -> Result<Outcome, Aborted> {
        let Some(share) = &mut self.share else {
            return Err(Aborted::before_start("there is no share of the load".to_owned()));
        };
        share.clients = order.clients;
        let clients = share.portion.of(order.clients as u64).count;
        if clients == 0 {
            return Err(Aborted::before_start("too few clients for all agents".to_owned()));
        }
        self.options.clients = i64::try_from(clients).unwrap_or(i64::MAX);
        self.options.extended.duration = order.duration;
        let rate = order.rate.map(|rate| Rate {
            per_second: share.portion.of_rate(rate.per_second),
            max_backlog: share.portion.of(rate.max_backlog).count.max(1),
            ..rate
        });
        // Generators draw other numbers, as threads do.
        let part = u32::try_from(share.portion.index).unwrap_or(0);
        self.seed = order.seed.wrapping_add(part << 20);
        let places = Places::find(&self.options, self.threads_asked, &self.servers);
        self.places = places.map_err(|failure| Aborted::before_start(failure.0.trim_end().to_owned()))?;
        self.threads_shown = if self.places.private_tables { self.places.threads } else { self.threads_asked };
        self.run_here(test, &test.title, rate, order.turn, progress)
    }

    /// Runs a test on this machine.
    fn run_here(
        &self,
        test: &Test,
        title: &str,
        rate: Option<Rate>,
        turn: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Outcome, Aborted> {
        if test.operations.is_empty() {
            return Err(Aborted::before_start("Error: there is nothing to send".to_owned()));
        }
        let options = &self.options;
        let extended = &options.extended;
        let distribution = extended.keys.unwrap_or(Distribution::Uniform);
        let seed = self.seed.wrapping_add(turn);
        let span = self.key_span(test);
        let mut keys = Keys::new(distribution, extended.key_min, span.unwrap_or(0), self.common_seed(seed));
        let value_pool = values::pool(extended.value, test.value_bytes_max());
        let substitution = Substitution {
            numbers: span.is_some(),
            tags: options.cluster || !self.tags.is_empty(),
            value_bytes: if value_pool.is_empty() && !extended.verify { 0 } else { test.value_bytes_max() },
            checked: extended.verify,
        };
        let mut source = match &self.replay {
            Some(log) => Source::Recorded(Arc::clone(log)),
            None => Source::new(test, options.pipeline, substitution, self.common_seed(seed)),
        };
        let mut client_keys = None;
        if let Some(span) = span {
            let (clients, first) = match &self.share {
                Some(share) => (share.clients as u64, share.portion.of(share.clients as u64).first),
                None => (options.client_count() as u64, 0),
            };
            let each = (span / clients.max(1)).max(1);
            client_keys = (distribution == Distribution::PerClient).then_some((first * each, each));
        }
        if let Some(share) = &self.share {
            keys = keys.for_thread(seed);
            keys.restrict(share.portion.of(keys.span()));
            source.each_keys(|keys| {
                *keys = keys.for_thread(seed);
                keys.restrict(share.portion.of(keys.span()));
            });
        }
        let setup = Setup {
            threads: self.threads_shown.max(1),
            places: self.places.clone(),
            servers: self.servers.clone(),
            cluster: self.cluster.clone(),
            keys,
            seed,
            value_pool,
            operation_names: test.operation_names(),
            rate,
            idle: false,
            tags: Arc::clone(&self.tags),
            replay: self.replay.clone(),
            client_keys,
        };
        let settings = Arc::new(Settings::new(options, setup));
        engine::run_test(settings, &source, title, test.payload_bytes, progress, &self.interrupted)
    }

    /// The seed of what all generators of a joined run must have in common, such as the order of `unique`.
    fn common_seed(&self, seed: u32) -> u32 {
        match &self.share {
            Some(share) => seed.wrapping_sub(u32::try_from(share.portion.index).unwrap_or(0) << 20),
            None => seed,
        }
    }

    /// How many keys there are; `None` when keys carry no number.
    pub(crate) fn key_span(&self, test: &Test) -> Option<u64> {
        let (options, extended) = (&self.options, &self.options.extended);
        if let Some(max) = extended.key_max {
            return Some((max - extended.key_min).saturating_add(1));
        }
        if options.keyspace.is_some() {
            return options.keyspace;
        }
        if !extended.keys.is_some_and(Distribution::is_without_repeats) {
            return None;
        }
        // As many keys as there are requests, of all generators.
        let requests = match (&self.share, extended.per_client) {
            (Some(share), Some(each)) => Some(each.saturating_mul(share.clients as u64)),
            (Some(share), None) => share.requests,
            (None, _) => options.request_total(),
        };
        Some(requests.unwrap_or(0).saturating_mul(test.numbers_per_command()))
    }

    /// Reports a finished test and judges it. Returns its exit code.
    pub(crate) fn conclude(&self, test: &Test, outcome: &Outcome, report: &mut formats::Report) -> u8 {
        self.add_to(test, outcome, report);
        self.judge(outcome, report)
    }

    fn add_to(&self, test: &Test, outcome: &Outcome, report: &mut formats::Report) {
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
            if !options.csv {
                report.redis_text(&formats::further_lines(options, outcome));
            }
        }
        let notes = formats::notes(outcome);
        if !notes.is_empty() {
            tell(format_args!("{}", notes.trim_end_matches('\n')));
        }
        report.add(self, test, outcome);
    }

    /// A test has ended by an error: reports what was measured until then. Returns the exit code.
    fn give_up(&self, test: &Test, aborted: Aborted, report: &mut formats::Report) -> u8 {
        tell(format_args!("{}", aborted.text));
        if let Some(outcome) = &aborted.partial {
            self.add_to(test, outcome, report);
            tell(format_args!(
                "({} requests had been completed; the figures are those up to the error.)",
                outcome.finished
            ));
            if outcome.agents.iter().any(|agent| agent.is_lost) {
                return AGENT_LOST;
            }
        }
        1
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
                tell(format_args!("FAILED: {}: {assertion}, measured {value:.3}{}", outcome.title, assertion.unit()));
                code = code.max(ASSERTION_FAILED);
            }
        }
        if outcome.agents.iter().any(|agent| agent.is_lost) {
            code = AGENT_LOST;
        }
        if let Some(text) = report.worse_than_baseline(self, outcome) {
            tell(format_args!("FAILED: {}: {text}", outcome.title));
            code = code.max(ASSERTION_FAILED);
        }
        code
    }

    /// Only holds idle connections (`-I`). Returns the exit code.
    pub(crate) fn hold_idle(&mut self) -> u8 {
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
            tags: Arc::from([]),
            replay: None,
            client_keys: None,
        };
        let settings = Arc::new(Settings::new(&self.options, setup));
        let source = Source::empty();
        let mut progress = Progress::new(&self.options, self.metrics.clone());
        match engine::run_test(settings, &source, "", 0, &mut progress, &self.interrupted) {
            Ok(_) => INTERRUPTED,
            Err(aborted) => {
                tell(format_args!("{}", aborted.text));
                1
            }
        }
    }
}

fn time_seed() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are those that differ")]
    let seconds = now.as_secs() as u32;
    seconds ^ now.subsec_nanos() ^ std::process::id()
}

/// Exit code when an assertion or the baseline does not hold.
const ASSERTION_FAILED: u8 = 3;
/// Exit code when there were more errors than allowed.
const OVER_BUDGET: u8 = 4;
