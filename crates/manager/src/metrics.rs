//! Metrics as OpenMetrics text. Those of servers have the names that redis_exporter gives them, so that common boards
//! fit; those of the cluster begin with `oxidis_`.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::api::shown;
use crate::app::App;
use crate::shapes::Status;

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Upper bounds of the buckets of request times, in seconds. Leases are held for up to half their length.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 10.0];

/// Facts of members, as metrics: the fact, the metric's name, its help.
const FACTS: &[(&str, &str, &str)] = &[
    ("used_memory", "redis_memory_used_bytes", "Bytes of the keyspace and what belongs to it"),
    ("maxmemory", "redis_memory_max_bytes", "Most bytes that may be used"),
    ("keys", "redis_db_keys", "Keys"),
    ("clients", "redis_connected_clients", "Clients"),
    ("ops", "redis_instantaneous_ops_per_sec", "Commands per second of late"),
    ("offset", "redis_master_repl_offset", "Offset of the replication stream"),
    ("uptime", "redis_uptime_in_seconds", "Seconds since the start"),
];

/// What is counted in this process.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Family<Labels, Counter>,
    times: Histogram,
    moves: Family<Labels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics { requests: Family::default(), times: Histogram::new(BUCKETS), moves: Family::default() }
    }
}

impl Metrics {
    /// Counts a request.
    pub(crate) fn request(&self, path: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&vec![("path", path.to_owned()), ("status", status.to_string())]).inc();
        self.times.observe(took.as_secs_f64());
    }

    /// Counts a move that ended.
    pub(crate) fn move_ended(&self, stage: &str) {
        self.moves.get_or_create(&vec![("stage", stage.to_owned())]).inc();
    }

    /// The text for a scraper.
    pub(crate) fn text(&self, app: &App) -> String {
        let mut registry = Registry::default();
        registry.register("oxidis_manager_requests", "Requests of the API", self.requests.clone());
        registry.register("oxidis_manager_request_seconds", "Time of requests of the API", self.times.clone());
        registry.register("oxidis_moves_ended", "Moves that ended under this manager", self.moves.clone());
        self.cluster(app, &mut registry);
        let mut text = String::new();
        // A String takes all.
        let _ = encode(&mut text, &registry);
        text
    }

    fn cluster(&self, app: &App, registry: &mut Registry) {
        let now = app.store.now();
        let topology = &now.topology;
        let mut single = |name: &str, help: &str, value: f64| {
            let gauge = Gauge::<f64, AtomicU64>::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        };
        single("oxidis_manager_leads", "Whether this manager leads", f64::from(u8::from(now.leads())));
        single("oxidis_term", "Term of the record", topology.term.0 as f64);
        single("oxidis_epoch", "Epoch of the record", topology.epoch.0 as f64);
        single("oxidis_slots_unassigned", "Slots that no group owns", f64::from(shown::count(&topology.unowned())));
        let slots = Gauges::default();
        for group in &topology.groups {
            slots.get_or_create(&vec![("group", group.id.to_string())]).set(f64::from(shown::count(&group.slots)));
        }
        registry.register("oxidis_group_slots", "Slots of a group", slots);
        let moves = Gauges::default();
        for one in topology.open_moves() {
            moves.get_or_create(&vec![("stage", one.stage.name().to_owned())]).inc();
        }
        registry.register("oxidis_moves_open", "Moves that are not over", moves);
        let up = Gauges::default();
        let proxy_up = Gauges::default();
        let families: Vec<Gauges> = FACTS.iter().map(|_| Gauges::default()).collect();
        let (lease, at) = (shown::lease(topology), Instant::now());
        let is_up = |status: &Status| f64::from(u8::from(status.state == "up"));
        for (group, server) in topology.servers() {
            let status = app.members.status(&server.id, at, lease);
            let labels = vec![
                ("addr", server.address.clone()),
                ("group", group.id.to_string()),
                ("role", shown::role(server.role).to_owned()),
            ];
            up.get_or_create(&labels).set(is_up(&status));
            for ((fact, ..), family) in FACTS.iter().zip(&families) {
                if let Some(value) = status.number(fact) {
                    family.get_or_create(&labels).set(value as f64);
                }
            }
        }
        for proxy in &topology.proxies {
            let status = app.members.status(&proxy.id, at, lease);
            let labels = vec![("addr", proxy.address.clone()), ("proxy", proxy.id.clone())];
            proxy_up.get_or_create(&labels).set(is_up(&status));
        }
        registry.register("redis_up", "Whether the server's lease holds", up);
        registry.register("oxidis_proxy_up", "Whether the proxy's lease holds", proxy_up);
        for ((_, name, help), family) in FACTS.iter().zip(families) {
            registry.register(*name, *help, family);
        }
    }
}
