//! What a script asks of the server that runs it.

use scoped_tls_hkt::scoped_thread_local;
use std::borrow::Cow;

/// The world as a script sees it. One script at a time uses it, on one thread, from [`crate::Vm::eval`] to its return.
pub trait Host {
    /// Runs a command for the script and appends its reply to `reply`, in RESP3 if `resp3`.
    ///
    /// # Errors
    /// It was refused before it ran, or the script is not to go on.
    fn call(&mut self, args: &[&[u8]], resp3: bool, reply: &mut Vec<u8>) -> Result<(), Refused>;

    /// Asked every few thousand instructions and now and then within long library calls.
    fn tick(&mut self) -> Tick;

    /// `redis.log`.
    fn log(&mut self, level: LogLevel, message: &[u8]);

    /// Messages below this level are not put together at all.
    fn log_level(&self) -> LogLevel;

    /// `redis.acl_check_cmd`: whether the caller may run this command. `None`: there is no such command.
    fn acl_allows(&mut self, args: &[&[u8]]) -> Option<bool>;

    /// `redis.set_repl`: whether what follows goes to the append-only file and to replicas.
    fn set_replication(&mut self, to_aof: bool, to_replicas: bool);
}

/// Why a command did not run.
pub enum Refused {
    /// The script gets this error. With a leading `-` the text has its code, else `ERR` goes before it.
    Error(Cow<'static, str>),
    /// The script ends here and now and will be run anew by the host: no error reaches it or its client.
    Restart,
}

/// Whether a script may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tick {
    /// It may.
    Continue,
    /// It ends with the error that SCRIPT KILL gives.
    Kill,
    /// It ends and will be run anew elsewhere.
    Restart,
}

/// Levels of `redis.log`, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogLevel {
    /// 0.
    Debug,
    /// 1.
    Verbose,
    /// 2.
    Notice,
    /// 3.
    Warning,
}

scoped_thread_local!(
    /// The host of the script that runs on this thread.
    pub(crate) static mut HOST: for<'a> &'a mut (dyn Host + 'a)
);
