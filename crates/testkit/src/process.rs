//! What `/proc` says about a process, and signals to it. The only `unsafe` of the crate.

use std::io;
use std::time::Duration;

/// A signal that tests send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ask for a clean shutdown.
    Terminate,
    /// As from Ctrl-C.
    Interrupt,
    /// Stop at once, with no chance to clean up.
    Kill,
    /// Freeze.
    Stop,
    /// Go on after [`Signal::Stop`].
    Continue,
}

/// Sends a signal to one process.
///
/// # Errors
/// What kill(2) says, for instance that the process is gone.
pub fn send_signal(pid: u32, signal: Signal) -> io::Result<()> {
    let number = match signal {
        Signal::Terminate => libc::SIGTERM,
        Signal::Interrupt => libc::SIGINT,
        Signal::Kill => libc::SIGKILL,
        Signal::Stop => libc::SIGSTOP,
        Signal::Continue => libc::SIGCONT,
    };
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    if pid <= 1 {
        return Err(io::Error::other("refusing to signal a group or init"));
    }
    // SAFETY: kill takes two integers and touches no memory of ours; pid names one process.
    match unsafe { libc::kill(pid, number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Binds the calling thread, and the threads and processes that it starts later, to one core.
///
/// # Errors
/// What sched_setaffinity(2) says, for instance that there is no such core.
pub fn pin_this_thread(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: cpu_set_t is a plain bit array, for which all zeroes is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is below CPU_SETSIZE, so the bit lies within `set`.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` lives across the call and its own size is passed.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the calling thread a descriptor table of its own, so that the limit of open files counts for it alone.
///
/// # Errors
/// What unshare(2) says.
pub fn use_private_table() -> io::Result<()> {
    // SAFETY: unshare takes flags only; the caller uses no descriptor that another thread opens later.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Cuts the power of the file system at `path`: from here on it writes nothing, not even its log, until it is mounted
/// anew (EXT4_IOC_SHUTDOWN without a flush). Needs the right to administer it.
///
/// # Errors
/// What open(2) and ioctl(2) say.
pub fn cut_power(path: &std::path::Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    /// `_IOR('X', 125, __u32)`.
    const SHUTDOWN: libc::Ioctl = 0x8004_587d_u32 as libc::Ioctl;
    const WITHOUT_FLUSH: u32 = 2;
    let directory = std::fs::File::open(path)?;
    // SAFETY: the call reads one u32 through the pointer, which lives across it.
    match unsafe { libc::ioctl(directory.as_raw_fd(), SHUTDOWN, &WITHOUT_FLUSH) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Freezes a process and waits until none of its threads runs, not even inside the kernel.
///
/// # Errors
/// When the process is gone, or does not stop within ten seconds.
pub fn freeze(pid: u32) -> io::Result<()> {
    send_signal(pid, Signal::Stop)?;
    let end = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        let mut all_stopped = true;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("stat")).unwrap_or_default();
            // The state follows the name, which may hold anything but ends with the last parenthesis.
            let state = text.rsplit(')').next().map(str::trim_start).unwrap_or_default();
            all_stopped &= state.is_empty() || state.starts_with('T');
        }
        if all_stopped {
            return Ok(());
        }
        if std::time::Instant::now() > end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Time on a CPU of all threads of a process so far, the kernel's share included.
///
/// # Errors
/// When the process is gone or `/proc` is not there.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut total_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let file = task?.path().join("schedstat");
        // A thread may end between the listing and the read.
        if let Ok(text) = std::fs::read_to_string(file) {
            let first = text.split(' ').next().and_then(|n| n.parse::<u64>().ok());
            total_ns += first.unwrap_or(0);
        }
    }
    Ok(Duration::from_nanos(total_ns))
}

/// Time on a CPU of all children of this process that ended and were waited for.
///
/// # Errors
/// What getrusage(2) says.
pub fn ended_children_cpu_time() -> io::Result<Duration> {
    // SAFETY: rusage is made of integers, for which all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a writable rusage that lives across the call.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let microseconds = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let total = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    Ok(Duration::from_micros(u64::try_from(total).unwrap_or(0)))
}

/// Resident bytes of a process.
///
/// # Errors
/// When the process is gone or `/proc` is not there.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    status_kib(pid, "VmRSS:").map(|kib| kib * 1024)
}

/// Highest resident bytes that a process had since its start, or since [`reset_peak`].
///
/// # Errors
/// When the process is gone or `/proc` is not there.
pub fn peak_resident_bytes(pid: u32) -> io::Result<u64> {
    status_kib(pid, "VmHWM:").map(|kib| kib * 1024)
}

/// Sets the peak of [`peak_resident_bytes`] back to what is resident now.
///
/// # Errors
/// When the process is gone or may not be written to.
pub fn reset_peak(pid: u32) -> io::Result<()> {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

fn status_kib(pid: u32, field: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| io::Error::other(format!("no {field} in /proc/{pid}/status")))
}

/// Open descriptors of a process.
///
/// # Errors
/// When the process is gone or `/proc` is not there.
pub fn descriptor_count(pid: u32) -> io::Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}
