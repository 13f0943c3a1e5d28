//! What the process has used of the machine: processor time, resident memory.

use super::sys;

/// Whose processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All threads of the process.
    Process,
    /// Children that have ended.
    Children,
    /// The calling thread.
    Thread,
}

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// Microseconds in the kernel.
    pub system_us: u64,
    /// Microseconds outside it.
    pub user_us: u64,
}

/// Processor time used so far.
#[must_use]
pub fn processor_time(whose: Whose) -> ProcessorTime {
    let (user_us, system_us) = sys::resource_usage(match whose {
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Children => libc::RUSAGE_CHILDREN,
        Whose::Thread => libc::RUSAGE_THREAD,
    });
    ProcessorTime { system_us, user_us }
}

/// Bytes of the process in memory; 0 when the kernel does not tell.
#[must_use]
pub fn resident_bytes() -> usize {
    let kibibytes = || {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_ascii_whitespace().next()?.parse::<usize>().ok()
    };
    kibibytes().unwrap_or(0).saturating_mul(1024)
}

/// Bytes of anonymous huge pages of the process; 0 when the kernel does not tell.
#[must_use]
pub fn huge_page_bytes() -> usize {
    let kibibytes = || {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
        line.split_ascii_whitespace().next()?.parse::<usize>().ok()
    };
    kibibytes().unwrap_or(0).saturating_mul(1024)
}

/// Bytes of memory that the machine has.
#[must_use]
pub fn machine_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // The widths of these fields differ between platforms.
    #[allow(clippy::useless_conversion)]
    let (total, unit) = (u64::from(info.totalram), u64::from(info.mem_unit));
    total.saturating_mul(unit.max(1))
}
