//! The facts about this machine. What cannot be read is `None` and is judged as unknown, never as zero.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// What of the machine matters to many clients. Sizes are in the unit of the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Descriptors that a process may have open now; `u64::MAX`: no limit.
    pub nofile_soft: u64,
    /// The most it may ask for; `u64::MAX`: no limit.
    pub nofile_hard: u64,
    /// The most that anybody may be given (`fs.nr_open`).
    pub nr_open: Option<u64>,
    /// Open files of the whole machine (`fs.file-max`).
    pub file_max: Option<u64>,
    /// Files that are open on the machine now.
    pub files_open: Option<u64>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_backlog: Option<u64>,
    /// First and last of `net.ipv4.ip_local_port_range`.
    pub ports: Option<(u64, u64)>,
    /// `net.ipv4.tcp_tw_reuse`.
    pub tw_reuse: Option<u64>,
    /// `net.ipv4.tcp_max_tw_buckets`.
    pub tw_buckets: Option<u64>,
    /// `net.ipv4.tcp_mem`, in pages: low, pressure, most.
    pub tcp_mem_pages: Option<[u64; 3]>,
    /// `net.netfilter.nf_conntrack_max`; `None` when connections are not tracked.
    pub conntrack_max: Option<u64>,
    /// Connections that are tracked now.
    pub conntrack_count: Option<u64>,
    /// `vm.overcommit_memory`.
    pub overcommit: Option<u64>,
    /// The chosen word of `transparent_hugepage/enabled`.
    pub huge_pages: Option<String>,
    /// Swap space, KiB.
    pub swap_total_kib: Option<u64>,
    /// Swap space that is not used, KiB.
    pub swap_free_kib: Option<u64>,
    /// Memory that can be had without swapping, KiB.
    pub memory_available_kib: Option<u64>,
    /// Processors this process may use.
    pub cores: u64,
    /// The clock source in use.
    pub clock_source: Option<String>,
}

impl Machine {
    /// Reads the facts below `root`, which is `/` but in tests. The limits are those of the calling process.
    #[must_use]
    pub fn read(root: &Path) -> Machine {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned());
        let numbers = |path: &str| -> Vec<u64> {
            text(path).unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let number = |path: &str| numbers(path).first().copied();
        let memory = text("proc/meminfo").unwrap_or_default();
        let memory = |field: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let nofile = getrlimit(Resource::Nofile);
        Machine {
            nofile_soft: nofile.current.unwrap_or(u64::MAX),
            nofile_hard: nofile.maximum.unwrap_or(u64::MAX),
            nr_open: number("proc/sys/fs/nr_open"),
            file_max: number("proc/sys/fs/file-max"),
            files_open: number("proc/sys/fs/file-nr"),
            somaxconn: number("proc/sys/net/core/somaxconn"),
            syn_backlog: number("proc/sys/net/ipv4/tcp_max_syn_backlog"),
            ports: match numbers("proc/sys/net/ipv4/ip_local_port_range").as_slice() {
                [first, last] if first <= last => Some((*first, *last)),
                _ => None,
            },
            tw_reuse: number("proc/sys/net/ipv4/tcp_tw_reuse"),
            tw_buckets: number("proc/sys/net/ipv4/tcp_max_tw_buckets"),
            tcp_mem_pages: numbers("proc/sys/net/ipv4/tcp_mem").try_into().ok(),
            conntrack_max: number("proc/sys/net/netfilter/nf_conntrack_max"),
            conntrack_count: number("proc/sys/net/netfilter/nf_conntrack_count"),
            overcommit: number("proc/sys/vm/overcommit_memory"),
            huge_pages: text("sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| chosen(&text)),
            swap_total_kib: memory("SwapTotal"),
            swap_free_kib: memory("SwapFree"),
            memory_available_kib: memory("MemAvailable"),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            clock_source: text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        }
    }
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn facts_are_read_from_their_files() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/sys/fs/file-nr", "2048\t0\t9000\n");
        put("proc/sys/net/ipv4/tcp_mem", "1\t2\t3\n");
        put("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
        put("proc/meminfo", "MemAvailable:  1234 kB\nSwapTotal: 0 kB\n");
        put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        let machine = Machine::read(root.path());
        assert_eq!(machine.files_open, Some(2048));
        assert_eq!(machine.tcp_mem_pages, Some([1, 2, 3]));
        assert_eq!(machine.ports, Some((32_768, 60_999)));
        assert_eq!(machine.memory_available_kib, Some(1234));
        assert_eq!((machine.swap_total_kib, machine.swap_free_kib), (Some(0), None));
        assert_eq!(machine.huge_pages.as_deref(), Some("madvise"));
        assert_eq!(machine.conntrack_max, None);
    }
}
