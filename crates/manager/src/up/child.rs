//! One process of the tree.
//!
//! A child is in a process group of its own, so that Ctrl-C at the terminal reaches `up` alone, which then stops all in
//! order. What it writes goes to DIR/logs/NAME.log. A crashed one is started again, later each time.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

/// The variable that tells a child the process id of `up`.
const PARENT: &str = "OXIDIS_UP_PARENT";
/// Waits before a crashed child is started again: the first, and the longest.
const BACK_OFF_MIN: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// One that ran so long starts with the shortest wait again.
const STEADY: Duration = Duration::from_secs(60);
/// How long a stopping child may take before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
/// A server refuses to stop while it writes its first append only file, and is asked again after so long.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Bytes of a log that are looked at for the last words of a child.
const LAST_WORDS_BYTES: u64 = 4096;

/// Called first in each process of the binary: one that `up` started ends when `up` does, however that comes.
///
/// The kernel sends SIGTERM when the thread that started this process is gone; `up` starts its children by its main
/// thread, which lives as long as it does.
pub fn follow_parent() {
    let Some(parent) = std::env::var_os(PARENT) else {
        return;
    };
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let is_there = getppid().is_some_and(|pid| parent == OsString::from(pid.as_raw_nonzero().to_string()));
    if !is_there {
        // It ended before the line above.
        std::process::exit(1);
    }
}

/// A process of the tree.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
    process: Option<Process>,
    started: Instant,
    /// When a crashed one is started again.
    due: Option<Instant>,
    back_off: Duration,
    restarts: u32,
}

/// What a look at a child found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing new.
    Same,
    /// It ended by itself, how, and its last words.
    Crashed(String),
    /// It was started again.
    Restarted,
    /// It could not be started again.
    NotStarted(String),
}

impl Child {
    /// Starts a process of this binary whose log is in `logs`.
    pub(super) fn start(name: &str, arguments: &[&str], logs: &Path) -> io::Result<Child> {
        let mut child = Child {
            name: name.to_owned(),
            program: std::env::current_exe()?,
            arguments: arguments.iter().map(OsString::from).collect(),
            log: logs.join(format!("{name}.log")),
            process: None,
            started: Instant::now(),
            due: None,
            back_off: BACK_OFF_MIN,
            restarts: 0,
        };
        child.spawn()?;
        Ok(child)
    }

    fn spawn(&mut self) -> io::Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        // Its name is that of the tool behind a link otherwise.
        command
            .arg0("oxidis")
            .args(&self.arguments)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        self.process = Some(command.spawn()?);
        self.started = Instant::now();
        self.due = None;
        Ok(())
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Its process id while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Looks whether it runs, and starts it again if its time has come.
    pub(super) fn look(&mut self) -> Found {
        if let Some(due) = self.due {
            if Instant::now() < due {
                return Found::Same;
            }
            self.restarts += 1;
            return match self.spawn() {
                Ok(()) => Found::Restarted,
                Err(error) => {
                    self.wait_again();
                    Found::NotStarted(error.to_string())
                }
            };
        }
        match self.ended() {
            None => Found::Same,
            Some(how) => {
                if self.started.elapsed() > STEADY {
                    self.back_off = BACK_OFF_MIN;
                }
                self.wait_again();
                Found::Crashed(how)
            }
        }
    }

    fn wait_again(&mut self) {
        self.due = Some(Instant::now() + self.back_off);
        self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
    }

    /// How it ended, if it did, with its last words.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.process.as_mut()?.try_wait().ok().flatten()?;
        self.process = None;
        let mut text = how(status);
        let words = last_words(&self.log);
        if !words.is_empty() {
            text.push_str(&format!("; the end of {}:", self.log.display()));
            for line in words {
                text.push_str(&format!("\n    {line}"));
            }
        }
        Some(text)
    }

    /// Asks it to stop.
    pub(super) fn ask_to_stop(&mut self) {
        self.due = None;
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.process.as_ref().and_then(|process| i32::try_from(process.id()).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended meanwhile; it is not reaped yet, so the number is still its own.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for its end after [`Child::ask_to_stop`]; kills it when it takes too long or `is_urgent` says so. Whether
    /// it ended by itself.
    pub(super) fn wait(&mut self, is_urgent: impl Fn() -> bool) -> bool {
        let end = Instant::now() + STOP_PATIENCE;
        let mut again = Instant::now() + ASK_AGAIN;
        let mut is_killed = false;
        while let Some(process) = self.process.as_mut() {
            match process.try_wait() {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => {
                    self.process = None;
                    break;
                }
            }
            if !is_killed && (Instant::now() >= end || is_urgent()) {
                is_killed = true;
                self.signal(Signal::KILL);
            } else if !is_killed && Instant::now() >= again {
                again += ASK_AGAIN;
                self.signal(Signal::TERM);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        !is_killed
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Only an error on the way leads here: nothing is left behind.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (_, Some(signal)) => format!("it was ended by signal {signal}"),
        _ => "it ended".into(),
    }
}

/// The last lines of a log.
fn last_words(log: &Path) -> Vec<String> {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let length = fs::metadata(log)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    lines.iter().skip(lines.len().saturating_sub(5)).cloned().collect()
}
