//! The system calls that have no safe face in our libraries, each with one here.

use std::ffi::{CStr, CString};
use std::io;

/// A moment as a calendar of the local time zone shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalTime {
    pub(super) day: i32,
    /// From 0 for January.
    pub(super) month: usize,
    pub(super) year: i32,
    pub(super) hour: i32,
    pub(super) minute: i32,
    pub(super) second: i32,
}

/// The local time at `seconds` after 1970.
pub(super) fn local_time(seconds: i64) -> LocalTime {
    // SAFETY: `tm` is plain data for which all zeros are a valid value; localtime_r writes only to it.
    let parts = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut parts);
        parts
    };
    LocalTime {
        day: parts.tm_mday,
        month: usize::try_from(parts.tm_mon).unwrap_or(0),
        year: parts.tm_year.saturating_add(1900),
        hour: parts.tm_hour,
        minute: parts.tm_min,
        second: parts.tm_sec,
    }
}

/// Which side of a fork this is.
pub(super) enum Fork {
    Parent,
    Child,
}

/// Forks a process that has one thread only; refuses if it has more, since the child would only have
/// the calling one, and perhaps locks of the others.
pub(super) fn fork_single_threaded() -> io::Result<Fork> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other("the process already has several threads"));
    }
    // SAFETY: there is no other thread, so the child is a complete copy and may go on running Rust.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        _ => Ok(Fork::Parent),
    }
}

/// Points standard input, output and error to an open file.
pub(super) fn replace_standard_streams(file: &std::fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: dup2 takes two numbers; the standard streams are never owned by a Rust object.
        if unsafe { libc::dup2(file.as_raw_fd(), stream) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Brings what was written to a file to the disk and waits for it, but not what tells its length: that takes a sync. The
/// file can be written meanwhile. Does nothing for files that have no such thing.
///
/// # Errors
/// Of the disk; it is told only once for a descriptor.
pub(crate) fn write_back(file: std::os::fd::BorrowedFd<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes numbers alone; the descriptor is open, since it is borrowed.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
        _ => Ok(()),
    }
}

/// Ignores a signal from now on.
pub(super) fn ignore_signal(signal: i32) {
    // SAFETY: SIG_IGN runs no code of ours, so nothing unsafe can happen in a handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Stops the process until somebody continues it.
pub(super) fn stop_self() {
    // SAFETY: raise only sends a signal to this thread.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Turns transparent huge pages off for this process.
pub(super) fn disable_huge_pages() -> io::Result<()> {
    // SAFETY: this prctl takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Names the calling thread; on the main thread this is the short name of the process.
pub(super) fn set_thread_name(name: &CStr) {
    // SAFETY: the kernel copies at most 16 bytes of a string that ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Overwrites the memory of the process arguments with `title`, which is cut to the room there is.
///
/// To be called while no other thread reads the arguments (`std::env::args`), that is, early in main.
pub(super) fn overwrite_arguments(title: &[u8]) -> io::Result<()> {
    let (start, end) = argument_memory()?;
    let room = end.saturating_sub(start);
    if room < 2 {
        return Err(io::Error::other("there is no room for a title"));
    }
    let length = title.len().min(room - 1);
    // SAFETY: the kernel reports this range as the argument strings on the initial stack, which stays
    // mapped and writable for the life of the process; `length` < `room`, so both writes stay inside.
    unsafe {
        let memory = std::ptr::with_exposed_provenance_mut::<u8>(start);
        std::ptr::copy_nonoverlapping(title.as_ptr(), memory, length);
        std::ptr::write_bytes(memory.add(length), 0, room - length);
    }
    Ok(())
}

/// Where the argument strings lie: fields 48 and 49 of /proc/self/stat.
fn argument_memory() -> io::Result<(usize, usize)> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field is the name in parentheses and may hold blanks; the third follows the last one.
    let tail = stat.rsplit_once(')').map_or("", |(_, tail)| tail);
    let mut fields = tail.split_ascii_whitespace().skip(48 - 3).map(str::parse::<usize>);
    match (fields.next(), fields.next()) {
        (Some(Ok(start)), Some(Ok(end))) if start != 0 && end > start => Ok((start, end)),
        _ => Err(io::Error::other("the kernel does not tell where the arguments are")),
    }
}

/// Takes a variable out of the environment. To be called while there is one thread only.
pub(super) fn remove_environment_variable(name: &str) {
    // SAFETY: the callers run before any other thread exists, so nobody reads the environment meanwhile.
    unsafe { std::env::remove_var(name) };
}

/// Opens syslog. The name stays in memory for good, since syslog keeps a pointer to it.
pub(super) fn open_syslog(name: &[u8], facility: i32) {
    let name = CString::new(name).unwrap_or_default();
    let name: &'static CStr = Box::leak(name.into_boxed_c_str());
    // SAFETY: `name` ends with a zero and is never freed.
    unsafe {
        libc::openlog(name.as_ptr(), libc::LOG_PID | libc::LOG_NDELAY | libc::LOG_NOWAIT, facility);
    };
}

/// Sends one line to syslog.
pub(super) fn write_syslog(priority: i32, line: &str) {
    // A zero byte would end the line early; what stands before it is still worth sending.
    let line = line.split('\0').next().unwrap_or_default();
    if let Ok(line) = CString::new(line) {
        // SAFETY: the format takes exactly one string, and both end with a zero.
        unsafe { libc::syslog(priority, c"%s".as_ptr(), line.as_ptr()) };
    }
}

/// Microseconds of processor time outside and inside the kernel.
pub(super) fn resource_usage(whose: i32) -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the struct that we give, and all-zero bytes are a valid one should it fail.
    let usage = unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    };
    let microseconds = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000).saturating_add(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    (microseconds(usage.ru_utime), microseconds(usage.ru_stime))
}

/// Purges all arenas of the allocator; 4096 is its number for all of them.
#[cfg(feature = "jemalloc")]
pub(super) fn purge_allocator() -> bool {
    // SAFETY: the name ends with a zero, and this control neither reads nor writes a value.
    let result = unsafe {
        tikv_jemalloc_sys::mallctl(
            c"arena.4096.purge".as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            0,
        )
    };
    result == 0
}

/// Gives the calling thread a copy of the descriptor table for itself.
pub(super) fn unshare_descriptors() -> io::Result<()> {
    // SAFETY: changes nothing but the table that later calls of this thread use. Its callers make sure that no other
    // thread goes on using a descriptor that only this one has.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
