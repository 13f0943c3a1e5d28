//! `--stat`: a line of figures from INFO per interval.

use std::thread::sleep;
use std::time::Duration;

use super::{info, info_number};
use crate::output::{Outcome, print};
use crate::session::Session;

const INTERVAL: Duration = Duration::from_secs(1);
/// Lines between two headers.
const HEADER_EVERY: u64 = 20;
const HEADER: &str = "------- data ------ --------------------- load -------------------- - child -\n\
                      keys       mem      clients blocked requests            connections          \n";

/// Shows lines until it is stopped.
pub(super) fn run(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let interval = session.options.interval.unwrap_or(INTERVAL);
    let mut requests_before = None;
    let mut lines: u64 = 0;
    loop {
        let info = info(session)?;
        if lines.is_multiple_of(HEADER_EVERY) {
            print(HEADER)?;
        }
        lines += 1;
        print(line(&info, &mut requests_before))?;
        sleep(interval);
    }
}

fn line(info: &str, requests_before: &mut Option<i64>) -> String {
    let number = |field: &str| info_number(info, field).unwrap_or(0);
    let requests = number("total_commands_processed");
    let delta = requests_before.map_or(0, |before| requests.saturating_sub(before));
    *requests_before = Some(requests);
    let requests = format!("{requests} (+{delta})");
    let keys = keys(info).to_string();
    let memory = human(number("used_memory"));
    let (clients, blocked) = (number("connected_clients"), number("blocked_clients"));
    let connections = number("total_connections_received");
    let bgsave = number("rdb_bgsave_in_progress") != 0;
    let children = match (bgsave, number("aof_rewrite_in_progress") != 0, number("loading") != 0) {
        (_, _, true) => "LOAD",
        (true, true, _) => "SAVE+AOF",
        (true, false, _) => "SAVE",
        (false, true, _) => "AOF",
        (false, false, _) => "",
    };
    format!("{keys:<11}{memory:<8} {clients:<8}{blocked:<8}{requests:<19} {connections:<12}{children}\n")
}

/// Keys of all databases, however many there are: `db0:keys=…,expires=…`.
fn keys(info: &str) -> i64 {
    let count = |line: &str| -> Option<i64> {
        let (database, fields) = line.strip_prefix("db")?.split_once(":keys=")?;
        database.parse::<u64>().ok()?;
        fields.split(',').next()?.parse().ok()
    };
    info.lines().filter_map(count).fold(0, i64::saturating_add)
}

/// `512B`, `1.50K`, `2.00M`, `3.25G`.
#[allow(clippy::cast_precision_loss)] // Shown with two digits.
pub(super) fn human(bytes: i64) -> String {
    let size = bytes.unsigned_abs() as f64;
    let sign = if bytes < 0 { "-" } else { "" };
    let (unit, power) = match bytes.unsigned_abs() {
        0..1024 => return format!("{bytes}B"),
        0x400..0x10_0000 => ("K", 1),
        0x10_0000..0x4000_0000 => ("M", 2),
        _ => ("G", 3),
    };
    format!("{sign}{:.2}{unit}", size / 1024_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_info() {
        let info = "used_memory:1572864\r\nconnected_clients:2\r\nblocked_clients:1\r\n\
                    total_commands_processed:100\r\ntotal_connections_received:7\r\nloading:0\r\n\
                    rdb_bgsave_in_progress:1\r\naof_rewrite_in_progress:1\r\n\
                    db0:keys=3,expires=0\r\ndb25:keys=4,expires=1\r\n";
        let mut before = Some(90);
        assert_eq!(
            line(info, &mut before),
            "7          1.50M    2       1       100 (+10)           7           SAVE+AOF\n"
        );
        assert_eq!(before, Some(100));
    }
}
