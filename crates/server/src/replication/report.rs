//! What INFO tells of replication, in Redis' order.

use super::{Phase, kept};
use crate::config::Config;
use crate::process::now_ms;
use crate::replication::primary::Stage;
use crate::shared::Shared;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// The lines of the section.
pub(crate) fn write(text: &mut String, shared: &Shared, config: &Config) {
    let replication = &shared.replication;
    let journal = &shared.keyspace.journal;
    let now_s = now_ms() / 1000;
    let mut field = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{name}:{value}\r\n");
    };
    let target = replication.target();
    field("role", &if target.is_some() { "slave" } else { "master" });
    if let Some(target) = &target {
        let (link, phase) = (&replication.link, replication.phase());
        let is_up = phase == Phase::Connected;
        let last_io_s = link.last_io_s.load(Ordering::Relaxed);
        field("master_host", &target.host);
        field("master_port", &target.port);
        field("master_link_status", &if is_up { "up" } else { "down" });
        field("master_last_io_seconds_ago", &if is_up { (now_s - last_io_s).max(0) } else { -1 });
        field("master_sync_in_progress", &u8::from(phase == Phase::Transfer));
        let applied = journal.end();
        field("slave_read_repl_offset", &link.read_offset.load(Ordering::Relaxed).max(applied));
        field("slave_repl_offset", &applied);
        if phase == Phase::Transfer {
            let (total, read) = (link.total_bytes.load(Ordering::Relaxed), link.read_bytes.load(Ordering::Relaxed));
            #[allow(clippy::cast_precision_loss)]
            let percent = if total == 0 { 0.0 } else { read as f64 / total as f64 * 100.0 };
            field("master_sync_total_bytes", &total);
            field("master_sync_read_bytes", &read);
            let left = i64::try_from(total).unwrap_or(0) - i64::try_from(read).unwrap_or(0);
            field("master_sync_left_bytes", &left);
            field("master_sync_perc", &format_args!("{percent:.2}"));
            field("master_sync_last_io_seconds_ago", &(now_s - last_io_s).max(0));
        }
        if !is_up {
            let since_s = link.down_since_s.load(Ordering::Relaxed);
            field("master_link_down_since_seconds", &if since_s == 0 { -1 } else { now_s - since_s });
        }
        field("slave_priority", &config.replica_priority);
        field("slave_read_only", &u8::from(config.replica_read_only));
        field("replica_announced", &u8::from(config.replica_announced));
    }
    let replicas = replication.replicas();
    field("connected_slaves", &replicas.len());
    if config.min_replicas_to_write > 0 && config.min_replicas_max_lag > 0 {
        field("min_slaves_good_slaves", &replication.good.load(Ordering::Relaxed));
    }
    for (index, replica) in replicas.iter().enumerate() {
        let stage = replica.stage();
        let lag_s = if stage == Stage::Online { replica.lag_s() } else { 0 };
        field(
            &format!("slave{index}"),
            &format_args!(
                "ip={},port={},state={},offset={},lag={lag_s}",
                replica.host,
                replica.port(),
                stage.name(),
                replica.acked.load(Ordering::Relaxed)
            ),
        );
    }
    let (history, failover) = {
        let state = replication.state.lock();
        (state.history.clone(), state.failover.name())
    };
    field("master_failover_state", &failover);
    field("master_replid", &history.id);
    field("master_replid2", &history.second_id);
    field("master_repl_offset", &journal.end());
    field("second_repl_offset", &history.second_offset);
    let kept = kept(shared);
    field("repl_backlog_active", &u8::from(kept.is_some()));
    field("repl_backlog_size", &config.repl_backlog_size);
    field("repl_backlog_first_byte_offset", &kept.map_or(0, |kept| kept.first));
    field("repl_backlog_histlen", &kept.map_or(0, |kept| kept.next - kept.first));
}
