//! Facts and a number of clients to findings.
//!
//! What a client costs: a descriptor in the server, about 4 KiB of the kernel's memory for its socket at rest, one page
//! of `tcp_mem` for what is under way in each direction, and at most 2 KiB of the server's memory.

use crate::machine::Machine;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// The clients can be held, but not as well as they could be.
    Advice,
    /// So many clients cannot be held.
    Stops,
}

impl Verdict {
    /// One word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Fine => "ok",
            Verdict::Advice => "advice",
            Verdict::Stops => "STOPS",
        }
    }
}

/// One setting, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The setting as the system calls it.
    pub name: &'static str,
    /// What it is now.
    pub value: String,
    /// How bad that is.
    pub verdict: Verdict,
    /// What goes wrong when it is not as wanted.
    pub breaks: &'static str,
    /// What it should be.
    pub wanted: String,
    /// The command that sets it now; empty when there is none.
    pub command: String,
    /// The file that keeps it, and the line for it; empty when there is none.
    pub file: String,
}

impl Finding {
    /// The finding in one line.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Finding { name, value, wanted, breaks, command, .. } = self;
        let fix = if command.is_empty() { String::new() } else { format!(" ({command})") };
        format!("{name} is {value}, wanted {wanted}: {breaks}{fix}")
    }
}

/// Judges a machine that is to hold `clients` clients on one server.
#[must_use]
pub fn examine(machine: &Machine, clients: u64) -> Vec<Finding> {
    let mut findings = descriptors(machine, clients);
    findings.extend(queues(machine, clients));
    findings.extend(ports(machine, clients));
    findings.extend(network_memory(machine, clients));
    findings.extend(memory(machine, clients));
    findings.extend(processors(machine));
    findings
}

fn descriptors(machine: &Machine, clients: u64) -> Vec<Finding> {
    let needed = clients.saturating_add(RESERVED_DESCRIPTORS);
    let fits_in_tables =
        machine.nofile_hard.saturating_sub(TABLE_SPARE).saturating_mul(9 * WORKERS_MAX) / 10 >= clients;
    let hard = match () {
        () if machine.nofile_hard >= needed => Verdict::Fine,
        () if fits_in_tables => Verdict::Advice,
        () => Verdict::Stops,
    };
    let limits_file = |kind: &str| {
        format!("/etc/security/limits.d/60-oxidis.conf: * {kind} nofile {needed}; systemd: LimitNOFILE={needed}")
    };
    vec![
        Finding {
            name: "nofile (soft)",
            value: limit(machine.nofile_soft),
            // The server raises it by itself.
            verdict: if machine.nofile_soft >= needed || machine.nofile_hard >= needed {
                Verdict::Fine
            } else {
                Verdict::Advice
            },
            breaks: "other programs that do not raise it, such as redis-benchmark, end at so many connections",
            wanted: format!("≥ {needed}"),
            command: format!("ulimit -Sn {needed}"),
            file: limits_file("soft"),
        },
        Finding {
            name: "nofile (hard)",
            value: limit(machine.nofile_hard),
            verdict: hard,
            breaks: "one descriptor table does not hold all clients: the server needs more workers, each with its own",
            wanted: format!("≥ {needed}"),
            command: format!("ulimit -Hn {needed}"),
            file: limits_file("hard"),
        },
        at_least(
            machine.nr_open,
            "fs.nr_open",
            needed,
            Verdict::Advice,
            "nobody can raise the limit of descriptors so far",
        ),
        at_least(
            machine.file_max,
            "fs.file-max",
            machine.files_open.unwrap_or(0).saturating_add(clients).saturating_add(SPARE_FILES),
            Verdict::Stops,
            "accept fails for the whole machine",
        ),
    ]
}

fn queues(machine: &Machine, clients: u64) -> Vec<Finding> {
    let wanted = (clients / 10).clamp(511, 65_535);
    vec![
        at_least(
            machine.somaxconn,
            "net.core.somaxconn",
            wanted,
            Verdict::Advice,
            "when many connect at once some find the queue full and wait a second or more",
        ),
        at_least(
            machine.syn_backlog,
            "net.ipv4.tcp_max_syn_backlog",
            wanted,
            Verdict::Advice,
            "when many connect at once the kernel drops some of them or answers with cookies",
        ),
    ]
}

fn ports(machine: &Machine, clients: u64) -> Vec<Finding> {
    let count = machine.ports.map(|(first, last)| last - first + 1);
    let is_enough = count.is_none_or(|count| count >= clients.min(PORTS_MAX));
    let mut range = Finding {
        name: "net.ipv4.ip_local_port_range",
        value: machine.ports.map_or_else(unknown, |(first, last)| format!("{first} {last}")),
        verdict: if is_enough { Verdict::Fine } else { Verdict::Advice },
        breaks: "one machine with one address cannot open more connections to one server than it has ports",
        wanted: "15000 64000, and for more clients several addresses (oxidis benchmark --source)".into(),
        command: "sysctl -w net.ipv4.ip_local_port_range=\"15000 64000\"".into(),
        file: "/etc/sysctl.d/60-oxidis.conf: net.ipv4.ip_local_port_range = 15000 64000".into(),
    };
    if machine.ports.is_some_and(|(first, last)| first <= 15_000 && last >= 64_000) {
        // More ports there are not; several addresses are the way.
        range.verdict = Verdict::Fine;
    }
    let reuse = sysctl(
        "net.ipv4.tcp_tw_reuse",
        machine.tw_reuse,
        machine.tw_reuse.is_none_or(|value| value != 0),
        "1",
        "ports of closed connections rest for a minute: who connects often runs out of them",
    );
    vec![
        range,
        reuse,
        at_least(
            machine.tw_buckets,
            "net.ipv4.tcp_max_tw_buckets",
            clients.min(262_144),
            Verdict::Advice,
            "when all clients leave at once the kernel forgets closed connections too early and complains in its log",
        ),
    ]
}

fn network_memory(machine: &Machine, clients: u64) -> Vec<Finding> {
    let wanted = clients.saturating_mul(2);
    let pages = machine.tcp_mem_pages;
    let verdict = match pages {
        Some([_, _, most]) if most < clients => Verdict::Stops,
        Some([_, pressure, _]) if pressure < clients => Verdict::Advice,
        _ => Verdict::Fine,
    };
    let line = format!("{} {} {}", clients, wanted, wanted.saturating_mul(2));
    let mut findings = vec![Finding {
        name: "net.ipv4.tcp_mem",
        value: pages.map_or_else(unknown, |[low, pressure, most]| format!("{low} {pressure} {most}")),
        verdict,
        breaks: "with data under way on all connections the kernel drops packets (TCP: out of memory)",
        wanted: format!("pages: {line} or more"),
        command: format!("sysctl -w net.ipv4.tcp_mem=\"{line}\""),
        file: format!("/etc/sysctl.d/60-oxidis.conf: net.ipv4.tcp_mem = {line}"),
    }];
    let wanted = machine.conntrack_count.unwrap_or(0).saturating_add(clients).saturating_add(clients / 4);
    findings.push(match machine.conntrack_max {
        None => Finding {
            value: "off".into(),
            wanted: "off, or large enough".into(),
            ..at_least(None, "net.netfilter.nf_conntrack_max", wanted, Verdict::Stops, CONNTRACK_BREAKS)
        },
        most => at_least(most, "net.netfilter.nf_conntrack_max", wanted, Verdict::Stops, CONNTRACK_BREAKS),
    });
    findings
}

fn memory(machine: &Machine, clients: u64) -> Vec<Finding> {
    let needed_kib = clients.saturating_mul(CLIENT_KIB);
    let mib = |kib: u64| format!("{} MiB", kib / 1024);
    let available = machine.memory_available_kib;
    let used_swap = machine.swap_total_kib.zip(machine.swap_free_kib).map(|(total, free)| total.saturating_sub(free));
    vec![
        Finding {
            name: "memory available",
            value: available.map_or_else(unknown, mib),
            verdict: if available.is_none_or(|kib| kib >= needed_kib) { Verdict::Fine } else { Verdict::Stops },
            breaks: "sockets and clients alone need more memory than there is",
            wanted: format!("≥ {} beside the data", mib(needed_kib)),
            command: String::new(),
            file: String::new(),
        },
        sysctl(
            "vm.overcommit_memory",
            machine.overcommit,
            machine.overcommit.is_none_or(|value| value == 1),
            "1",
            "a snapshot or the allocator may be refused memory that is there",
        ),
        Finding {
            name: "transparent huge pages",
            value: machine.huge_pages.clone().unwrap_or_else(unknown),
            verdict: if machine.huge_pages.as_deref() == Some("always") { Verdict::Advice } else { Verdict::Fine },
            breaks: "memory grows and answers stall while pages are copied",
            wanted: "madvise".into(),
            command: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".into(),
            file: "kernel command line: transparent_hugepage=madvise".into(),
        },
        Finding {
            name: "swap in use",
            value: used_swap.map_or_else(unknown, mib),
            verdict: if used_swap.is_none_or(|kib| kib < SWAP_USED_KIB) { Verdict::Fine } else { Verdict::Advice },
            breaks: "a page of data that was swapped out costs milliseconds to all clients of its worker",
            wanted: "none used; vm.swappiness=1".into(),
            command: "sysctl -w vm.swappiness=1".into(),
            file: "/etc/sysctl.d/60-oxidis.conf: vm.swappiness = 1".into(),
        },
    ]
}

fn processors(machine: &Machine) -> Vec<Finding> {
    let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let is_fast = machine.clock_source.as_deref().is_none_or(|source| fast.contains(&source));
    vec![
        Finding {
            name: "cores",
            value: machine.cores.to_string(),
            verdict: if machine.cores >= 2 { Verdict::Fine } else { Verdict::Advice },
            breaks: "one core serves the clients and the kernel's network work",
            wanted: "≥ 2".into(),
            command: String::new(),
            file: String::new(),
        },
        Finding {
            name: "clock source",
            value: machine.clock_source.clone().unwrap_or_else(unknown),
            verdict: if is_fast { Verdict::Fine } else { Verdict::Advice },
            breaks: "each look at the clock is a system call",
            wanted: "tsc".into(),
            command: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource".into(),
            file: "kernel command line: clocksource=tsc".into(),
        },
    ]
}

/// A sysctl that must be at least `wanted`; one that cannot be read is taken to be fine.
fn at_least(
    value: Option<u64>,
    name: &'static str,
    wanted: u64,
    else_verdict: Verdict,
    breaks: &'static str,
) -> Finding {
    let is_fine = value.is_none_or(|value| value >= wanted);
    let finding = sysctl(name, value, is_fine, &wanted.to_string(), breaks);
    let verdict = if is_fine { Verdict::Fine } else { else_verdict };
    Finding { verdict, wanted: format!("≥ {wanted}"), ..finding }
}

fn sysctl(name: &'static str, value: Option<u64>, is_fine: bool, wanted: &str, breaks: &'static str) -> Finding {
    Finding {
        name,
        value: value.map_or_else(unknown, |value| value.to_string()),
        verdict: if is_fine { Verdict::Fine } else { Verdict::Advice },
        breaks,
        wanted: wanted.to_owned(),
        command: format!("sysctl -w {name}={wanted}"),
        file: format!("/etc/sysctl.d/60-oxidis.conf: {name} = {wanted}"),
    }
}

fn limit(value: u64) -> String {
    if value == u64::MAX { "unlimited".into() } else { value.to_string() }
}

fn unknown() -> String {
    "unknown".into()
}

const CONNTRACK_BREAKS: &str = "the firewall's table is full and new connections are dropped";
/// Descriptors beside those of clients.
const RESERVED_DESCRIPTORS: u64 = 32;
/// Descriptors of each worker's table that no client gets.
const TABLE_SPARE: u64 = 256;
/// Most workers of a server.
const WORKERS_MAX: u64 = 128;
/// Files that others may want to open.
const SPARE_FILES: u64 = 4096;
/// Memory of one client, the kernel's and ours.
const CLIENT_KIB: u64 = 6;
/// Ports that one address has at most.
const PORTS_MAX: u64 = 28_000;
/// Swap that may be used before it is worth a word.
const SWAP_USED_KIB: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn roomy() -> Machine {
        Machine {
            nofile_soft: 1 << 20,
            nofile_hard: 1 << 20,
            nr_open: Some(1 << 20),
            file_max: Some(1 << 30),
            files_open: Some(1000),
            somaxconn: Some(65_535),
            syn_backlog: Some(65_535),
            ports: Some((15_000, 64_000)),
            tw_reuse: Some(2),
            tw_buckets: Some(262_144),
            tcp_mem_pages: Some([200_000, 400_000, 800_000]),
            conntrack_max: None,
            conntrack_count: None,
            overcommit: Some(1),
            huge_pages: Some("madvise".into()),
            swap_total_kib: Some(0),
            swap_free_kib: Some(0),
            memory_available_kib: Some(8 << 20),
            cores: 2,
            clock_source: Some("tsc".into()),
        }
    }

    fn verdict(machine: &Machine, clients: u64, name: &str) -> Verdict {
        examine(machine, clients).into_iter().find(|finding| finding.name == name).unwrap().verdict
    }

    #[test]
    fn a_roomy_machine_has_nothing_to_change() {
        for finding in examine(&roomy(), 120_000) {
            assert_eq!(finding.verdict, Verdict::Fine, "{finding:?}");
        }
    }

    #[test]
    fn a_low_hard_limit_stops_only_what_no_number_of_tables_holds() {
        let machine = Machine { nofile_hard: 20_000, nofile_soft: 1024, ..roomy() };
        assert_eq!(verdict(&machine, 120_000, "nofile (hard)"), Verdict::Advice);
        let machine = Machine { nofile_hard: 1024, nofile_soft: 1024, ..roomy() };
        assert_eq!(verdict(&machine, 120_000, "nofile (hard)"), Verdict::Stops);
        assert_eq!(verdict(&machine, 500, "nofile (hard)"), Verdict::Fine);
    }

    #[test]
    fn what_is_too_small_is_found() {
        type Case = (fn(&mut Machine), &'static str, Verdict);
        let cases: [Case; 9] = [
            (|m| m.file_max = Some(100_000), "fs.file-max", Verdict::Stops),
            (|m| m.somaxconn = Some(128), "net.core.somaxconn", Verdict::Advice),
            (|m| m.ports = Some((32_768, 40_000)), "net.ipv4.ip_local_port_range", Verdict::Advice),
            (|m| m.tw_buckets = Some(5000), "net.ipv4.tcp_max_tw_buckets", Verdict::Advice),
            (|m| m.tcp_mem_pages = Some([1, 2, 3]), "net.ipv4.tcp_mem", Verdict::Stops),
            (|m| m.conntrack_max = Some(65_536), "net.netfilter.nf_conntrack_max", Verdict::Stops),
            (|m| m.memory_available_kib = Some(1000), "memory available", Verdict::Stops),
            (|m| m.huge_pages = Some("always".into()), "transparent huge pages", Verdict::Advice),
            (|m| m.clock_source = Some("hpet".into()), "clock source", Verdict::Advice),
        ];
        for (change, name, expected) in cases {
            let mut machine = roomy();
            change(&mut machine);
            assert_eq!(verdict(&machine, 120_000, name), expected, "{name}");
        }
    }

    #[test]
    fn unknown_facts_are_no_complaints() {
        let machine = Machine { nofile_soft: u64::MAX, nofile_hard: u64::MAX, cores: 2, ..Machine::default() };
        assert!(examine(&machine, 1 << 20).iter().all(|finding| finding.verdict == Verdict::Fine));
    }
}
