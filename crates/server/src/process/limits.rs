//! The limit of open files, raised to what `maxclients` needs.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error_text;
use super::log::Level;

/// Descriptors beyond those of clients: listeners, files, the workers' own.
const RESERVED_DESCRIPTORS: u64 = 32;

/// How far an attempt that failed is lowered for the next.
const STEP: u64 = 16;

/// The limit of open files is too low for even one client. The text has been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewFiles;

/// How the clients are to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// How many clients fit.
    pub maxclients: u32,
    /// How many workers hold them.
    pub workers: u32,
    /// Each worker is to have a descriptor table of its own, because the limit of one is too low for all clients.
    pub private_tables: bool,
}

/// Most workers of a server.
const WORKERS_MAX: u64 = 128;

/// Raises the limit of open files for `maxclients` clients on `workers` workers, as far as the system lets us. The
/// limit counts for one descriptor table: where it stays too low, workers get a table each, and there are as many of
/// them as that takes. What was changed or is missing is logged.
pub fn fit_open_files(maxclients: u32, workers: u32) -> Result<Descriptors, TooFewFiles> {
    let fits = Descriptors { maxclients, workers, private_tables: false };
    let wanted = u64::from(maxclients) + RESERVED_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    // No current limit means that there is none.
    let Some(current) = limit.current else {
        return Ok(fits);
    };
    if current >= wanted {
        return Ok(fits);
    }
    let (reached, error) = raise(current, limit.maximum, wanted);
    if reached >= wanted {
        crate::log!(
            Level::Notice,
            "Increased maximum number of open files to {wanted} (it was originally set to {current})."
        );
        return Ok(fits);
    }
    if let Some(needed) = workers_for(maxclients, reached) {
        let workers = workers.max(needed);
        crate::log!(
            Level::Notice,
            "{maxclients} clients need more than the {reached} open files that one descriptor table may hold: {workers} workers have a table each."
        );
        return Ok(Descriptors { maxclients, workers, private_tables: true });
    }
    let fitting = u32::try_from(reached.saturating_sub(RESERVED_DESCRIPTORS)).unwrap_or(maxclients);
    if fitting == 0 {
        crate::log!(
            Level::Warning,
            "Your current 'ulimit -n' of {current} is not enough for the server to start. Please increase your open file limit to at least {wanted}. Exiting."
        );
        return Err(TooFewFiles);
    }
    crate::log!(
        Level::Warning,
        "You requested maxclients of {maxclients} requiring at least {wanted} max file descriptors."
    );
    crate::log!(
        Level::Warning,
        "Server can't set maximum open files to {wanted} because of OS error: {}.",
        error_text(&error)
    );
    crate::log!(
        Level::Warning,
        "Current maximum open files is {reached}. maxclients has been reduced to {fitting} to compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'."
    );
    Ok(Descriptors { maxclients: fitting, workers, private_tables: false })
}

/// How many workers with a descriptor table each hold `maxclients` clients when a table holds `limit` descriptors.
/// `None`: not even the most there may be.
fn workers_for(maxclients: u32, limit: u64) -> Option<u32> {
    // Each table starts as a copy of the process's, and the kernel spreads clients evenly but not exactly.
    let room = limit.checked_sub(8 * RESERVED_DESCRIPTORS)? * 9 / 10;
    if room == 0 {
        return None;
    }
    let needed = u64::from(maxclients).div_ceil(room);
    (needed <= WORKERS_MAX).then(|| u32::try_from(needed).unwrap_or(1))
}

/// Raises the limit of open files of a running server, whose number of workers and of tables stays as it is.
///
/// # Errors
/// How many clients fit if not all of them do.
pub fn fit_running(maxclients: u32, workers: u32, private_tables: bool) -> Result<(), u32> {
    let tables = if private_tables { workers.max(1) } else { 1 };
    let a_table = u64::from(maxclients.div_ceil(tables)) + RESERVED_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < a_table) else { return Ok(()) };
    let (reached, _) = raise(current, limit.maximum, a_table);
    if reached >= a_table {
        return Ok(());
    }
    let fitting = reached.saturating_sub(RESERVED_DESCRIPTORS).saturating_mul(u64::from(tables));
    Err(u32::try_from(fitting).unwrap_or(u32::MAX).min(maxclients))
}

/// Gives the calling thread a descriptor table of its own: a copy of what is open now. Descriptors opened later by
/// this thread are unknown to others, and theirs to it.
pub fn use_private_table() -> io::Result<()> {
    super::sys::unshare_descriptors()
}

/// The text with which CONFIG SET maxclients is refused when only `fitting` clients fit.
#[must_use]
pub fn too_many_clients(fitting: u32) -> String {
    format!("The operating system is not able to handle the specified number of clients, try with {fitting}")
}

/// Tries `wanted`, then less and less. Returns the limit reached and the last error.
fn raise(current: u64, maximum: Option<u64>, wanted: u64) -> (u64, io::Error) {
    let mut last_error = io::Error::from_raw_os_error(libc::EPERM);
    let mut attempt = wanted;
    // Without privilege nothing above the hard limit can work, so no time is spent on trying it all.
    if let Some(maximum) = maximum
        && maximum < wanted
    {
        match set(wanted, wanted) {
            Ok(()) => return (wanted, last_error),
            Err(error) => last_error = error,
        }
        attempt = maximum;
    }
    while attempt > current {
        match set(attempt, maximum.map_or(attempt, |maximum| maximum.max(attempt))) {
            Ok(()) => return (attempt, last_error),
            Err(error) => last_error = error,
        }
        attempt = attempt.saturating_sub(STEP);
    }
    (current, last_error)
}

fn set(current: u64, maximum: u64) -> io::Result<()> {
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(maximum) })?)
}
