//! MEMORY.

use crate::exec::Step;
use crate::memory_report::MemoryReport;
use crate::process::allocator;
use crate::worker::Worker;
use commands::{CmdError, CommandId};
use resp::Reply;
use std::sync::atomic::Ordering;

/// Below this there is nothing to say about a server's memory.
const TOO_SMALL_BYTES: usize = 5 << 20;
/// A difference that is worth a word.
const NOTABLE_BYTES: i64 = 10 << 20;
/// Mean buffers of a client that are worth a word.
const BIG_CLIENT_BYTES: usize = 200 << 10;

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::MemoryDoctor | C::MemoryHelp | C::MemoryMallocStats | C::MemoryPurge | C::MemoryStats)
}

/// Runs one.
pub(crate) fn run(worker: &mut Worker, command: CommandId) -> Result<Step, CmdError> {
    match command {
        CommandId::MemoryStats => stats(&worker.shared.memory_report(), &mut worker.reply),
        CommandId::MemoryMallocStats => {
            worker.reply.verbatim(allocator::report(), "txt");
        }
        CommandId::MemoryPurge => {
            if !allocator::purge() {
                return Err(CmdError::new("ERR Error purging dirty pages"));
            }
            worker.reply.ok();
        }
        _ => {
            let clients = worker.shared.clients.load(Ordering::Relaxed);
            worker.reply.verbatim(doctor(&worker.shared.memory_report(), clients), "txt");
        }
    }
    Ok(Step::Done)
}

fn stats(report: &MemoryReport, reply: &mut Reply) {
    let int = |reply: &mut Reply, name: &str, value: i64| {
        reply.bulk(name);
        reply.int(value);
    };
    let size = |reply: &mut Reply, name: &str, value: usize| int(reply, name, i64::try_from(value).unwrap_or(i64::MAX));
    let double = |reply: &mut Reply, name: &str, value: f64| {
        reply.bulk(name);
        reply.double(value);
    };
    reply.map(27 + report.databases.len());
    size(reply, "peak.allocated", report.peak);
    size(reply, "total.allocated", report.used);
    size(reply, "startup.allocated", report.startup);
    size(reply, "replication.backlog", 0);
    size(reply, "clients.slaves", 0);
    size(reply, "clients.normal", report.clients);
    size(reply, "cluster.links", 0);
    size(reply, "aof.buffer", 0);
    size(reply, "lua.caches", 0);
    size(reply, "functions.caches", 0);
    for (db, table_bytes) in &report.databases {
        reply.bulk(format!("db.{db}"));
        reply.map(3);
        int(reply, "overhead.hashtable.main", i64::try_from(*table_bytes).unwrap_or(i64::MAX));
        // Expiry times stand in the entries, and slots are tables of their own.
        int(reply, "overhead.hashtable.expires", 0);
        int(reply, "overhead.hashtable.slot-to-keys", 0);
    }
    size(reply, "overhead.total", report.overhead);
    int(reply, "keys.count", i64::try_from(report.keys).unwrap_or(i64::MAX));
    int(reply, "keys.bytes-per-key", i64::try_from(report.bytes_per_key).unwrap_or(i64::MAX));
    size(reply, "dataset.bytes", report.dataset);
    double(reply, "dataset.percentage", report.dataset_percent);
    double(reply, "peak.percentage", report.peak_percent);
    size(reply, "allocator.allocated", report.allocator.allocated);
    size(reply, "allocator.active", report.allocator.active);
    size(reply, "allocator.resident", report.allocator.resident);
    let excesses = [
        ("allocator-fragmentation.ratio", "allocator-fragmentation.bytes", report.allocator_fragmentation),
        ("allocator-rss.ratio", "allocator-rss.bytes", report.allocator_rss),
        ("rss-overhead.ratio", "rss-overhead.bytes", report.rss_overhead),
        ("fragmentation", "fragmentation.bytes", report.fragmentation),
    ];
    for (ratio, bytes, excess) in excesses {
        double(reply, ratio, excess.ratio);
        int(reply, bytes, excess.bytes);
    }
}

fn doctor(report: &MemoryReport, clients: usize) -> String {
    if report.used < TOO_SMALL_BYTES {
        return "This server holds too little data to say anything about its memory.\n".to_owned();
    }
    let mut findings = Vec::new();
    if report.peak > report.used / 2 * 3 {
        findings.push(
            "The peak was more than one and a half times what is in use now. The allocator keeps the freed pages for later; MEMORY PURGE \
             gives back what it can.",
        );
    }
    if report.fragmentation.ratio > 1.4 && report.fragmentation.bytes > NOTABLE_BYTES {
        findings.push("The process takes more than 1.4 times the memory that is in use: after a peak this is normal, else it is fragmentation.");
    }
    if report.allocator_fragmentation.ratio > 1.1 && report.allocator_fragmentation.bytes > NOTABLE_BYTES {
        findings.push("The allocator's pages are more than a tenth larger than what they hold: values of one size were freed and those of another came.");
    }
    if report.allocator_rss.ratio > 1.1 && report.allocator_rss.bytes > NOTABLE_BYTES {
        findings.push("The allocator holds many pages that nothing lies in: MEMORY PURGE gives them back.");
    }
    if report.rss_overhead.ratio > 1.1 && report.rss_overhead.bytes > NOTABLE_BYTES {
        findings.push("The process holds much memory beside the allocator's.");
    }
    if report.clients / clients.max(1) > BIG_CLIENT_BYTES {
        findings
            .push("Clients hold more than 200 KiB of buffers each: CLIENT LIST shows which do not read their replies.");
    }
    if findings.is_empty() {
        return "There is nothing wrong with the memory of this server as far as it can tell.\n".to_owned();
    }
    let mut text = "What stands out about the memory of this server:\n\n".to_owned();
    for finding in findings {
        text.push_str(" * ");
        text.push_str(finding);
        text.push_str("\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_have_as_many_fields_as_they_say() {
        let report = MemoryReport { databases: vec![(0, 1), (3, 2)], ..MemoryReport::default() };
        let mut reply = Reply::with_buffer(Vec::new(), resp::Proto::Resp3);
        stats(&report, &mut reply);
        let text = String::from_utf8_lossy(reply.as_slice()).into_owned();
        assert!(text.starts_with("%29\r\n"), "{text}");
        let fields = text
            .split("\r\n")
            .filter(|line| line.contains('.') && line.starts_with(|first: char| first.is_ascii_lowercase()));
        // Three fields of each database, and the one name without a dot.
        assert_eq!(fields.count() + 1, 29 + 2 * 3);
    }

    #[test]
    fn the_doctor_finds_what_is_there() {
        assert!(doctor(&MemoryReport::default(), 0).contains("too little"));
        let report = MemoryReport { used: 10 << 20, peak: 10 << 20, ..MemoryReport::default() };
        assert!(doctor(&report, 1).contains("nothing wrong"));
        let report = MemoryReport { peak: 40 << 20, ..report };
        assert!(doctor(&report, 1).contains("peak"));
    }
}
