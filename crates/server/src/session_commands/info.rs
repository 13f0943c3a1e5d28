//! INFO: every field of Redis 7.2's, in its order, and a few of our own at the end of the first section.
//!
//! Cheap to ask: the counters of all workers are summed, the allocator's figures are at most a tenth of a second old,
//! and what needs a walk over the keys was found by the workers on their rounds.

use super::key_stats::SHOWN;
use super::latency;
use crate::acl::log::Reason;
use crate::durability::claim::Purpose;
use crate::durability::load::Loading;
use crate::exec::Step;
use crate::key_stats::TYPES;
use crate::memory_report::human;
use crate::process::usage::{self, Whose};
use crate::shared::Shared;
use crate::stats::{CommandStats, LatencyHistogram};
use crate::ticks;
use crate::worker::Worker;
use commands::table;
use keyspace::Slot;
use resp::Args;
use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

/// A section: its name in requests, whether it is among those given without a request, and what writes it.
type Section = (&'static str, bool, fn(&mut Report<'_>));

const SECTIONS: [Section; 14] = [
    ("server", true, server),
    ("clients", true, clients),
    ("memory", true, memory),
    ("persistence", true, persistence),
    ("stats", true, stats),
    ("replication", true, replication),
    ("cpu", true, cpu),
    ("modules", true, modules),
    ("commandstats", false, command_stats),
    ("errorstats", true, error_stats),
    ("latencystats", false, latency_stats),
    ("cluster", true, cluster),
    ("keyspace", true, keyspace),
    ("keystats", false, key_stats),
];

/// The text in the making.
struct Report<'w> {
    worker: &'w mut Worker,
    text: String,
}

impl Report<'_> {
    fn field(&mut self, name: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    fn fields(&mut self, fields: &[(&str, u64)]) {
        for (name, value) in fields {
            self.field(name, value);
        }
    }

    fn shared(&self) -> &Shared {
        &self.worker.shared
    }
}

/// INFO [section …].
pub(crate) fn run(worker: &mut Worker, args: Args<'_>) -> Step {
    let wanted: Vec<String> =
        args.slice(1).iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let is_named = |name: &str| wanted.iter().any(|word| word == name);
    let all = is_named("all") || is_named("everything");
    let default = wanted.is_empty() || is_named("default");
    let mut report = Report { worker, text: String::with_capacity(8 * 1024) };
    for (name, is_default, write) in SECTIONS {
        let is_wanted =
            all || (default && is_default) || is_named(name) || (name == "modules" && is_named("module_list"));
        if !is_wanted {
            continue;
        }
        if !report.text.is_empty() {
            report.text.push_str("\r\n");
        }
        let title = if name == "cpu" { "CPU".to_owned() } else { capitalized(name) };
        let _ = write!(report.text, "# {title}\r\n");
        write(&mut report);
    }
    let Report { worker, text } = report;
    worker.reply.verbatim(&text, "txt");
    Step::Done
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn server(report: &mut Report<'_>) {
    let system = rustix::system::uname();
    let config = report.worker.config.clone();
    let workers = report.shared().workers();
    let uptime_s = report.shared().started.elapsed().as_secs();
    let run_id = report.shared().run_id.clone();
    let (executable, config_file) = (report.shared().executable.clone(), report.shared().config_file.clone());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    report.field("redis_version", crate::process::REDIS_VERSION);
    report.field("redis_git_sha1", "00000000");
    report.field("redis_git_dirty", 0);
    report.field("redis_build_id", build_id());
    report.field("redis_mode", if report.shared().cluster.is_managed() { "cluster" } else { "standalone" });
    report
        .field("os", format_args!("{} {} {}", text(system.sysname()), text(system.release()), text(system.machine())));
    report.field("arch_bits", usize::BITS);
    report.field("monotonic_clock", "POSIX clock_gettime");
    report.field("multiplexing_api", "epoll");
    report.field("atomicvar_api", "c11-builtin");
    // Redis: what a build without GCC says.
    report.field("gcc_version", "0.0.0");
    report.field("process_id", std::process::id());
    report.field("process_supervised", supervision(&config));
    report.field("run_id", run_id);
    report.field("tcp_port", if config.port == 0 { config.tls_port } else { config.port });
    report.field("server_time_usec", now.as_micros());
    report.field("uptime_in_seconds", uptime_s);
    report.field("uptime_in_days", uptime_s / 86_400);
    report.field("hz", config.hz);
    report.field("configured_hz", config.hz);
    report.field("lru_clock", now.as_secs() & 0xFF_FFFF);
    report.field("executable", executable);
    report.field("config_file", config_file);
    report.field("io_threads_active", u8::from(workers > 1));
    let addresses: String =
        config.bind.iter().map(|address| format!(",bind={}", String::from_utf8_lossy(address))).collect();
    if config.port != 0 {
        report.field("listener0", format_args!("name=tcp{addresses},port={}", config.port));
    }
    if !config.unixsocket.is_empty() {
        report.field("listener1", format_args!("name=unix,bind={}", String::from_utf8_lossy(&config.unixsocket)));
    }
    if config.tls_port != 0 {
        report.field("listener2", format_args!("name=tls{addresses},port={}", config.tls_port));
    }
    report.field("oxidis_version", env!("CARGO_PKG_VERSION"));
    report.field("oxidis_workers", workers);
}

/// 16 hexadecimal digits that differ between versions of the program.
fn build_id() -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in env!("CARGO_PKG_VERSION").bytes().chain(crate::process::REDIS_VERSION.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    format!("{hash:016x}")
}

fn supervision(config: &crate::config::Config) -> &'static str {
    use crate::config::Supervised;
    match config.supervised {
        Supervised::No => "no",
        Supervised::Upstart => "upstart",
        Supervised::Systemd => "systemd",
        Supervised::Auto if std::env::var_os("UPSTART_JOB").is_some() => "upstart",
        Supervised::Auto if std::env::var_os("NOTIFY_SOCKET").is_some() => "systemd",
        Supervised::Auto => "no",
    }
}

fn clients(report: &mut Report<'_>) {
    let shared = report.worker.shared.clone();
    let most = |counter: fn(&crate::stats::WorkerStats) -> u64| {
        shared.stats.iter().map(|stats| counter(stats)).max().unwrap_or(0)
    };
    let blocked = shared.sum(|stats| stats.blocked.get());
    // Redis counts replicas apart.
    let replicas = shared.replication.replicas().len();
    let blocking_keys = if blocked == 0 { 0 } else { count_blocking_keys(report.worker) };
    report.fields(&[
        ("connected_clients", shared.clients.load(Ordering::Relaxed).saturating_sub(replicas) as u64),
        ("cluster_connections", 0),
        ("maxclients", u64::from(report.worker.config.maxclients)),
        ("client_recent_max_input_buffer", most(|stats| stats.recent_max_input.get())),
        ("client_recent_max_output_buffer", most(|stats| stats.recent_max_output.get())),
        ("blocked_clients", blocked),
        ("tracking_clients", shared.tracking_clients()),
        ("clients_in_timeout_table", shared.sum(|stats| stats.timers.get())),
        ("total_blocking_keys", blocking_keys),
        ("total_blocking_keys_on_nokey", 0),
    ]);
}

/// Keys that somebody waits for. Slots that are busy at this moment count as having none.
fn count_blocking_keys(worker: &mut Worker) -> u64 {
    // Within a transaction other slots are held, which must stay so.
    if worker.locks.held() > 0 {
        return 0;
    }
    let mut count = 0;
    for slot in 0..worker.locks.keyspace().space().count() {
        let slot = Slot::new(slot);
        if worker.locks.try_lock(slot) {
            count += worker.locks.slot(slot).waited_keys() as u64;
            worker.locks.unlock_all();
        }
    }
    count
}

fn memory(report: &mut Report<'_>) {
    let figures = report.shared().memory_report();
    let lazy = (report.shared().keyspace.reclaimer.pending(), report.shared().keyspace.reclaimer.freed());
    let config = report.worker.config.clone();
    let total = usage::machine_bytes();
    let with_human = |report: &mut Report<'_>, name: &str, bytes: u64| {
        report.field(name, bytes);
        report.field(&format!("{name}_human"), human(bytes));
    };
    let allocator = figures.allocator;
    with_human(report, "used_memory", figures.used as u64);
    with_human(report, "used_memory_rss", allocator.rss as u64);
    with_human(report, "used_memory_peak", figures.peak as u64);
    report.field("used_memory_peak_perc", format_args!("{:.2}%", figures.peak_percent));
    report.field("used_memory_overhead", figures.overhead);
    report.field("used_memory_startup", figures.startup);
    report.field("used_memory_dataset", figures.dataset);
    report.field("used_memory_dataset_perc", format_args!("{:.2}%", figures.dataset_percent));
    report.field("allocator_allocated", allocator.allocated);
    report.field("allocator_active", allocator.active);
    report.field("allocator_resident", allocator.resident);
    with_human(report, "total_system_memory", total);
    let scripts = crate::scripting::functions::Figures::of(&report.worker.shared);
    let figure = |bytes: usize| bytes as u64;
    report.fields(&[("used_memory_lua", figure(scripts.vm_eval)), ("used_memory_vm_eval", figure(scripts.vm_eval))]);
    report.field("used_memory_lua_human", human(figure(scripts.vm_eval)));
    report.fields(&[
        ("used_memory_scripts_eval", figure(scripts.scripts_eval)),
        ("number_of_cached_scripts", figure(scripts.cached_scripts)),
        ("number_of_functions", figure(scripts.functions)),
        ("number_of_libraries", figure(scripts.libraries)),
        ("used_memory_vm_functions", figure(scripts.vm_functions)),
    ]);
    with_human(report, "used_memory_vm_total", figure(scripts.vm_eval + scripts.vm_functions));
    report.field("used_memory_functions", scripts.functions_bytes);
    with_human(report, "used_memory_scripts", figure(scripts.functions_bytes + scripts.scripts_eval));
    with_human(report, "maxmemory", config.maxmemory);
    let policy =
        crate::config::find(b"maxmemory-policy").map(|named| named.directive.print(&config)).unwrap_or_default();
    report.field("maxmemory_policy", String::from_utf8_lossy(&policy));
    let excesses = [
        ("allocator_frag_ratio", "allocator_frag_bytes", figures.allocator_fragmentation),
        ("allocator_rss_ratio", "allocator_rss_bytes", figures.allocator_rss),
        ("rss_overhead_ratio", "rss_overhead_bytes", figures.rss_overhead),
        ("mem_fragmentation_ratio", "mem_fragmentation_bytes", figures.fragmentation),
    ];
    for (ratio, bytes, excess) in excesses {
        report.field(ratio, format_args!("{:.2}", excess.ratio));
        report.field(bytes, excess.bytes);
    }
    let log_bytes = report.worker.shared.aof_report().buffer_bytes;
    let journal = &report.shared().keyspace.journal;
    let backlog = if journal.backlog().is_some() { journal.kept_bytes() } else { 0 };
    report.fields(&[
        ("mem_not_counted_for_evict", log_bytes),
        ("mem_replication_backlog", backlog),
        ("mem_total_replication_buffers", backlog),
        ("mem_clients_slaves", 0),
        ("mem_clients_normal", figures.clients as u64),
        ("mem_cluster_links", 0),
        ("mem_aof_buffer", log_bytes),
    ]);
    report.field("mem_allocator", crate::process::allocator::name());
    report.fields(&[("active_defrag_running", 0), ("lazyfree_pending_objects", lazy.0), ("lazyfreed_objects", lazy.1)]);
}

/// The fields of the append only file that are always there.
fn append_only_file(report: &mut Report<'_>) {
    let shared = report.worker.shared.clone();
    let (aof, rewrite) = (&shared.aof, &shared.aof.rewrite);
    report.fields(&[
        ("aof_enabled", u64::from(aof.state() != crate::aof::State::Off)),
        ("aof_rewrite_in_progress", u64::from(rewrite.is_running())),
        ("aof_rewrite_scheduled", u64::from(rewrite.is_scheduled())),
    ]);
    report.field("aof_last_rewrite_time_sec", rewrite.last_took_s());
    report.field("aof_current_rewrite_time_sec", rewrite.running_s());
    report.field("aof_last_bgrewrite_status", rewrite.status());
    report.fields(&[
        ("aof_rewrites", rewrite.count.load(Ordering::Relaxed)),
        ("aof_rewrites_consecutive_failures", rewrite.failures.load(Ordering::Relaxed)),
    ]);
    report.field("aof_last_write_status", if aof.errno().is_some() { "err" } else { "ok" });
    report.field("aof_last_cow_size", rewrite.copied_bytes.load(Ordering::Relaxed));
}

fn persistence(report: &mut Report<'_>) {
    let shared = report.worker.shared.clone();
    let durability = &shared.durability;
    let running = durability.claims.running();
    let saving = running.as_ref().filter(|running| running.purpose == Purpose::File);
    let (handed_over, done, total) = running.as_ref().map_or((0, 0, 0), |running| {
        let snapshot = &running.snapshot;
        (snapshot.handed_over_bytes(), snapshot.keys_done(), snapshot.keys_total)
    });
    report.fields(&[
        ("loading", u64::from(durability.loading.is_on())),
        ("async_loading", 0),
        ("current_cow_peak", handed_over),
        ("current_cow_size", handed_over),
        ("current_cow_size_age", 0),
    ]);
    #[allow(clippy::cast_precision_loss)]
    let percent = if total == 0 { 0.0 } else { done as f64 * 100.0 / total as f64 };
    report.field("current_fork_perc", format_args!("{percent:.2}"));
    report.fields(&[
        ("current_save_keys_processed", done),
        ("current_save_keys_total", total),
        ("rdb_changes_since_last_save", shared.unsaved_changes()),
        ("rdb_bgsave_in_progress", u64::from(saving.is_some())),
    ]);
    report.field("rdb_last_save_time", shared.last_save_s.load(Ordering::Relaxed));
    let has_failed = durability.has_failed.load(Ordering::Relaxed);
    report.field("rdb_last_bgsave_status", if has_failed { "err" } else { "ok" });
    report.field("rdb_last_bgsave_time_sec", durability.last_took_s.load(Ordering::Relaxed));
    let current_s = saving.map_or(-1, |running| i64::try_from(running.since.elapsed().as_secs()).unwrap_or(0));
    report.field("rdb_current_bgsave_time_sec", current_s);
    report.fields(&[
        ("rdb_saves", durability.saves.load(Ordering::Relaxed)),
        ("rdb_last_cow_size", durability.last_handed_over.load(Ordering::Relaxed)),
        ("rdb_last_load_keys_expired", durability.loading.expired.load(Ordering::Relaxed)),
        ("rdb_last_load_keys_loaded", durability.loading.keys.load(Ordering::Relaxed)),
    ]);
    append_only_file(report);
    report.fields(&[("module_fork_in_progress", 0), ("module_fork_last_cow_size", 0)]);
    if shared.aof.state() != crate::aof::State::Off {
        let log = shared.aof_report();
        report.fields(&[
            ("aof_current_size", log.bytes),
            ("aof_base_size", log.base_bytes),
            ("aof_pending_rewrite", u64::from(shared.aof.rewrite.is_scheduled())),
            ("aof_buffer_length", log.buffer_bytes),
            ("aof_pending_bio_fsync", log.pending_syncs),
            ("aof_delayed_fsync", log.delayed),
            ("aof_disk_stalled", u64::from(log.is_stalled)),
        ]);
    }
    if durability.loading.is_on() {
        loading(report, &durability.loading);
    }
}

fn loading(report: &mut Report<'_>, loading: &Loading) {
    let total = loading.total_bytes.load(Ordering::Relaxed);
    let done = loading.progress().bytes.load(Ordering::Relaxed);
    let started_s = loading.started_s.load(Ordering::Relaxed);
    let elapsed_s = u64::try_from(crate::process::now_ms() / 1000 - started_s).unwrap_or(0);
    // Redis: in the first second nothing is known.
    let left = total.saturating_sub(done);
    let eta_s = if elapsed_s == 0 { 1 } else { elapsed_s.saturating_mul(left) / (done + 1) };
    #[allow(clippy::cast_precision_loss)]
    let percent = if total == 0 { 0.0 } else { done as f64 * 100.0 / total as f64 };
    report.field("loading_start_time", started_s);
    report.fields(&[
        ("loading_total_bytes", total),
        ("loading_rdb_used_mem", loading.used_memory.load(Ordering::Relaxed)),
        ("loading_loaded_bytes", done),
    ]);
    report.field("loading_loaded_perc", format_args!("{percent:.2}"));
    report.field("loading_eta_seconds", eta_s);
}

fn stats(report: &mut Report<'_>) {
    use crate::pubsub::Kind;
    let shared = report.worker.shared.clone();
    let rates = *shared.rates.lock();
    let command_ticks: u64 =
        shared.stats.iter().flat_map(|stats| stats.commands.iter()).map(|command| command.ticks.get()).sum();
    let replicated = |figure: &std::sync::atomic::AtomicU64| figure.load(Ordering::Relaxed);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = |rate: f64| rate.round() as u64;
    report.fields(&[
        ("total_connections_received", shared.sum(|stats| stats.connections.get())),
        ("total_commands_processed", shared.sum(|stats| stats.processed.get())),
        ("instantaneous_ops_per_sec", whole(rates.ops)),
        ("total_net_input_bytes", shared.sum(|stats| stats.bytes_in.get())),
        ("total_net_output_bytes", shared.sum(|stats| stats.bytes_out.get())),
        ("total_net_repl_input_bytes", replicated(&shared.replication.figures.input_bytes)),
        ("total_net_repl_output_bytes", replicated(&shared.replication.figures.output_bytes)),
    ]);
    report.field("instantaneous_input_kbps", format_args!("{:.2}", rates.in_kbps));
    report.field("instantaneous_output_kbps", format_args!("{:.2}", rates.out_kbps));
    report.field("instantaneous_input_repl_kbps", "0.00");
    report.field("instantaneous_output_repl_kbps", "0.00");
    report.fields(&[
        ("rejected_connections", shared.sum(|stats| stats.rejected.get())),
        ("sync_full", replicated(&shared.replication.figures.full)),
        ("sync_partial_ok", replicated(&shared.replication.figures.partial_ok)),
        ("sync_partial_err", replicated(&shared.replication.figures.partial_err)),
        ("expired_subkeys", shared.sum(|stats| stats.expired_fields.get())),
        ("expired_keys", shared.sum(|stats| stats.expired.get())),
    ]);
    report.field("expired_stale_perc", "0.00");
    report.fields(&[
        ("expired_time_cap_reached_count", shared.sum(|stats| stats.expire_capped.get())),
        ("expire_cycle_cpu_milliseconds", shared.sum(|stats| stats.expire_us.get()) / 1000),
        ("evicted_keys", shared.sum(|stats| stats.evicted.get())),
        ("evicted_clients", shared.sum(|stats| stats.evicted_clients.get())),
        ("total_eviction_exceeded_time", 0),
        ("current_eviction_exceeded_time", 0),
        ("keyspace_hits", shared.sum(|stats| stats.hits.get())),
        ("keyspace_misses", shared.sum(|stats| stats.misses.get())),
        ("pubsub_channels", shared.pubsub.names(Kind::Channel) as u64),
        ("pubsub_patterns", shared.pubsub.names(Kind::Pattern) as u64),
        ("pubsubshard_channels", shared.pubsub.names(Kind::Shard) as u64),
        ("latest_fork_usec", 0),
        ("total_forks", 0),
        ("migrate_cached_sockets", shared.targets.len() as u64),
        ("slave_expires_tracked_keys", 0),
        ("active_defrag_hits", 0),
        ("active_defrag_misses", 0),
        ("active_defrag_key_hits", 0),
        ("active_defrag_key_misses", 0),
        ("total_active_defrag_time", 0),
        ("current_active_defrag_time", 0),
        ("tracking_total_keys", shared.keyspace.tracking.keys()),
        ("tracking_total_items", shared.keyspace.tracking.items()),
        ("tracking_total_prefixes", shared.tracking.prefix_count() as u64),
        ("unexpected_error_replies", 0),
        ("oxidis_panics", shared.sum(|stats| stats.panics.get())),
        ("total_error_replies", shared.sum(|stats| stats.errors.get())),
        ("dump_payload_sanitizations", 0),
        ("total_reads_processed", shared.sum(|stats| stats.reads.get())),
        ("total_writes_processed", shared.sum(|stats| stats.writes.get())),
        ("io_threaded_reads_processed", 0),
        ("io_threaded_writes_processed", 0),
        ("reply_buffer_shrinks", 0),
        ("reply_buffer_expands", 0),
        ("eventloop_cycles", shared.sum(|stats| stats.turns.get())),
        ("eventloop_duration_sum", shared.sum(|stats| stats.turn_us.get())),
        ("eventloop_duration_cmd_sum", ticks::to_microseconds(command_ticks)),
        ("instantaneous_eventloop_cycles_per_sec", whole(rates.turns)),
        ("instantaneous_eventloop_duration_usec", whole(rates.turn_us)),
        ("acl_access_denied_auth", shared.acl.log.count(Reason::Auth)),
        ("acl_access_denied_cmd", shared.acl.log.count(Reason::Command)),
        ("acl_access_denied_key", shared.acl.log.count(Reason::Key)),
        ("acl_access_denied_channel", shared.acl.log.count(Reason::Channel)),
    ]);
}

fn replication(report: &mut Report<'_>) {
    let (shared, config) = (report.worker.shared.clone(), report.worker.config.clone());
    crate::replication::report::write(&mut report.text, &shared, &config);
}

fn cpu(report: &mut Report<'_>) {
    let times = [(Whose::Process, ""), (Whose::Children, "_children"), (Whose::Thread, "_main_thread")];
    for (whose, suffix) in times {
        let time = usage::processor_time(whose);
        let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        report.field(&format!("used_cpu_sys{suffix}"), seconds(time.system_us));
        report.field(&format!("used_cpu_user{suffix}"), seconds(time.user_us));
    }
}

fn modules(_: &mut Report<'_>) {}

fn command_stats(report: &mut Report<'_>) {
    let shared = report.worker.shared.clone();
    for spec in table::all() {
        let sum = |counter: fn(&CommandStats) -> u64| shared.sum(|stats| counter(&stats.commands[spec.id.index()]));
        let (calls, rejected, failed) =
            (sum(|stats| stats.calls.get()), sum(|stats| stats.rejected.get()), sum(|stats| stats.failed.get()));
        if calls + rejected + failed == 0 {
            continue;
        }
        let ticks = sum(|stats| stats.ticks.get());
        #[allow(clippy::cast_precision_loss)]
        let mean = if calls == 0 { 0.0 } else { ticks as f64 / ticks::per_microsecond() as f64 / calls as f64 };
        report.field(
            &format!("cmdstat_{}", spec.name),
            format_args!(
                "calls={calls},usec={},usec_per_call={mean:.2},rejected_calls={rejected},failed_calls={failed}",
                ticks::to_microseconds(ticks)
            ),
        );
    }
}

fn error_stats(report: &mut Report<'_>) {
    let counts = report.shared().error_counts.lock().clone();
    for (code, count) in counts {
        report.field(&format!("errorstat_{}", safe(&code)), format_args!("count={count}"));
    }
}

/// A code made up by a client may hold what separates fields.
fn safe(code: &str) -> String {
    code.chars().map(|letter| if matches!(letter, '#' | ':' | '\n' | '\r') { '_' } else { letter }).collect()
}

fn latency_stats(report: &mut Report<'_>) {
    let config = report.worker.config.clone();
    if !config.latency_tracking {
        return;
    }
    for spec in table::all() {
        let buckets = latency::buckets(report.shared(), spec.id);
        let calls: u64 = buckets.iter().sum();
        if calls == 0 {
            continue;
        }
        let percentiles: Vec<String> = config
            .latency_tracking_info_percentiles
            .iter()
            .map(|percentile| {
                let end_ns = LatencyHistogram::bucket_end_ns(bucket_at(&buckets, calls, *percentile));
                #[allow(clippy::cast_precision_loss)]
                let end_us = end_ns as f64 / 1000.0;
                format!("p{}={end_us:.3}", percentile_label(*percentile))
            })
            .collect();
        report.field(&format!("latency_percentiles_usec_{}", spec.name), percentiles.join(","));
    }
}

/// The bucket in which the call of a percentile lies.
fn bucket_at(buckets: &[u64], calls: u64, percentile: f64) -> usize {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let wanted = ((calls as f64 * percentile / 100.0).ceil() as u64).clamp(1, calls);
    let mut cumulative = 0;
    buckets
        .iter()
        .position(|count| {
            cumulative += count;
            cumulative >= wanted
        })
        .unwrap_or(0)
}

/// `99.900000` without the zeros at its end.
fn percentile_label(percentile: f64) -> String {
    let text = format!("{percentile:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn cluster(report: &mut Report<'_>) {
    report.field("cluster_enabled", u8::from(report.shared().cluster.is_managed()));
}

fn keyspace(report: &mut Report<'_>) {
    let survey = report.shared().survey();
    for db in 0..report.shared().keyspace.databases() {
        let (keys, expiring) = report.shared().key_counts(db, &survey);
        if keys == 0 {
            continue;
        }
        let found = survey.get(db as usize).copied().unwrap_or_default();
        let mean_ttl_ms = if expiring == 0 { 0 } else { found.ttl_ms.checked_div(found.ttl_samples).unwrap_or(0) };
        report.field(&format!("db{db}"), format_args!("keys={keys},expires={expiring},avg_ttl={mean_ttl_ms}"));
    }
}

/// Hot and big keys; not in Redis, and not shown unless asked for.
fn key_stats(report: &mut Report<'_>) {
    let text = |key: &[u8]| String::from_utf8_lossy(&resp::quote_repr(key)).into_owned();
    for (index, hot) in report.worker.hot_keys(SHOWN).iter().enumerate() {
        report.field(
            &format!("hot_key_{index}"),
            format_args!(
                "db={},ops_per_sec={:.0},percent={:.1},key={}",
                hot.db.0,
                hot.per_second,
                hot.percent,
                text(&hot.key)
            ),
        );
    }
    let mut of_type = [0; TYPES.len()];
    for big in report.worker.big_keys(SHOWN, None) {
        let index = of_type[big.kind];
        of_type[big.kind] += 1;
        report.field(
            &format!("big_{}_{index}", TYPES[big.kind]),
            format_args!("db={},size={},key={}", big.db.0, big.size, text(&big.key)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_as_redis_names_them() {
        assert_eq!(percentile_label(50.0), "50");
        assert_eq!(percentile_label(99.9), "99.9");
        assert_eq!(percentile_label(100.0), "100");
        assert_eq!(percentile_label(0.0), "0");
    }

    #[test]
    fn percentiles_fall_into_buckets() {
        let buckets = [90, 9, 0, 1];
        assert_eq!(bucket_at(&buckets, 100, 50.0), 0);
        assert_eq!(bucket_at(&buckets, 100, 99.0), 1);
        assert_eq!(bucket_at(&buckets, 100, 99.9), 3);
        assert_eq!(bucket_at(&buckets, 100, 0.0), 0);
    }

    #[test]
    fn section_titles_are_redis() {
        assert_eq!(capitalized("commandstats"), "Commandstats");
        assert_eq!(safe("A:B#C"), "A_B_C");
    }
}
