//! `check-aof`: reads a log as the loader does, tells what is in it or where it breaks, and cuts it there when told to.
//! Sentences and exit codes are those of redis-check-aof.

use super::frames::{Frame, FrameError, Frames};
use super::manifest::{Manifest, ManifestError};
use crate::disk::{Disk, directory_of};
use crate::rdb::{Part, Splitter};
use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

/// What an RDB file begins with.
const RDB_MARK: &[u8] = b"REDIS";
/// Databases that a file may name: as many as a number of the server can say.
const DATABASES: u32 = i32::MAX as u32;

/// What is to be done with a file that is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Check,
    Fix,
    /// Cut off what came after this Unix time.
    TruncateTo(i64),
}

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Valid,
    Empty,
    Cut,
    CutToTime,
}

/// Why it ended early: the text that was to be said, or that it could not be said.
enum Stop {
    Because(String),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

fn because<T>(text: String) -> Result<T, Stop> {
    Err(Stop::Because(text))
}

/// Runs `check-aof` with the arguments after its name. Returns the exit code.
pub fn run(program: &str, arguments: &[OsString], disk: &dyn Disk) -> i32 {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let parsed = match words.as_slice() {
        [file] if !file.starts_with("--") => Some((Mode::Check, *file)),
        ["--fix", file] => Some((Mode::Fix, *file)),
        ["--truncate-to-timestamp", time, file] => match time.parse::<i64>() {
            Ok(time) => Some((Mode::TruncateTo(time), *file)),
            Err(_) => {
                println!("Invalid timestamp, aborting...");
                return 1;
            }
        },
        _ => None,
    };
    let Some((mode, file)) = parsed else {
        println!("Usage: {program} [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>");
        return 1;
    };
    let mut out = io::stdout().lock();
    let mut check = Check { disk, mode, out: &mut out, answers: &mut io::stdin().lock() };
    match check.path(Path::new(file)) {
        Ok(()) => 0,
        Err(Stop::Because(text)) => {
            // Nobody is left to tell if the stream is closed.
            let _ = writeln!(out, "{text}");
            1
        }
        Err(Stop::Io(error)) => {
            eprintln!("Cannot write the report: {error}");
            1
        }
    }
}

struct Check<'c> {
    disk: &'c dyn Disk,
    mode: Mode,
    out: &'c mut dyn Write,
    answers: &'c mut dyn BufRead,
}

impl Check<'_> {
    fn path(&mut self, path: &Path) -> Result<(), Stop> {
        let (mut file, _) = self.open(path)?;
        let mut start = Vec::new();
        file.by_ref().take(64 << 10).read_to_end(&mut start)?;
        if is_manifest(&start) {
            return self.parts(path);
        }
        writeln!(self.out, "Start checking Old-Style AOF")?;
        let shown = path.display().to_string();
        let outcome = self.file(path, &shown, true)?;
        self.tell("AOF", &shown, outcome)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn Read + Send>, u64), Stop> {
        self.disk
            .open(path)
            .or_else(|error| because(format!("Cannot open file {}: {error}, aborting...", path.display())))
    }

    fn tell(&mut self, kind: &str, name: &str, outcome: Outcome) -> Result<(), Stop> {
        match (outcome, self.mode) {
            (Outcome::Valid, _) => writeln!(self.out, "{kind} {name} is valid")?,
            (Outcome::Empty, _) => writeln!(self.out, "{kind} {name} is empty")?,
            (Outcome::CutToTime, Mode::TruncateTo(time)) => {
                writeln!(self.out, "Successfully truncated AOF {name} to timestamp {time}")?;
            }
            _ => writeln!(self.out, "Successfully truncated AOF {name}")?,
        }
        Ok(())
    }

    /// All files of a manifest.
    fn parts(&mut self, path: &Path) -> Result<(), Stop> {
        writeln!(self.out, "Start checking Multi Part AOF")?;
        let manifest = match Manifest::load(self.disk, path) {
            Ok(manifest) => manifest.unwrap_or_default(),
            Err(error) => return because(manifest_error(&error)),
        };
        let directory = directory_of(path);
        let total = manifest.parts();
        let mut seen = 0;
        if let Some(base) = &manifest.base {
            seen += 1;
            let file = directory.join(&base.name);
            let kind = if self.is_rdb(&file)? { "RDB" } else { "RESP" };
            writeln!(self.out, "Start to check BASE AOF ({kind} format).")?;
            let outcome = self.file(&file, &base.name, seen == total)?;
            self.tell("BASE AOF", &base.name, outcome)?;
        }
        if !manifest.increments.is_empty() {
            writeln!(self.out, "Start to check INCR files.")?;
        }
        for part in &manifest.increments {
            seen += 1;
            let outcome = self.file(&directory.join(&part.name), &part.name, seen == total)?;
            self.tell("INCR AOF", &part.name, outcome)?;
        }
        writeln!(self.out, "All AOF files and manifest are valid")?;
        Ok(())
    }

    fn is_rdb(&self, path: &Path) -> Result<bool, Stop> {
        let (file, _) = self.open(path)?;
        let mut start = Vec::new();
        file.take(RDB_MARK.len() as u64).read_to_end(&mut start)?;
        Ok(start == RDB_MARK)
    }

    /// One file.
    fn file(&mut self, path: &Path, name: &str, is_last: bool) -> Result<Outcome, Stop> {
        let (file, len) = self.open(path)?;
        if len == 0 {
            return Ok(Outcome::Empty);
        }
        let mut frames = if self.is_rdb(path)? { self.preamble(path)? } else { Frames::new(file, 0) };
        let (mut in_multi, mut valid) = (false, frames.offset());
        let mut problem = None;
        loop {
            if !in_multi {
                valid = frames.offset();
            }
            let offset = frames.offset();
            match frames.next_frame() {
                Ok(Frame::End) => {
                    if in_multi {
                        problem = Some("Reached EOF before reading EXEC for MULTI".to_owned());
                    }
                    break;
                }
                Ok(Frame::Annotation) => {
                    if self.is_past(frames.annotation())? {
                        return self.cut_to_time(path, name, offset, is_last);
                    }
                }
                Ok(Frame::Command) => {
                    let name_of_command = frames.arguments().first().map(|word| word.to_ascii_lowercase());
                    match (name_of_command.as_deref(), in_multi) {
                        (Some(b"multi"), false) => in_multi = true,
                        (Some(b"exec"), true) => in_multi = false,
                        (Some(b"multi"), true) => {
                            problem = Some(format!("{offset:>16x}: Unexpected MULTI in AOF {}", path.display()));
                            break;
                        }
                        (Some(b"exec"), false) => {
                            problem = Some(format!("{offset:>16x}: Unexpected EXEC in AOF {}", path.display()));
                            break;
                        }
                        _ => {}
                    }
                }
                Err(FrameError::Truncated) => {
                    problem = Some(format!("{offset:>16x}: Reached the end of the file inside a command"));
                    break;
                }
                Err(FrameError::Malformed { offset, why }) => {
                    problem = Some(format!("{offset:>16x}: {why}"));
                    break;
                }
                Err(FrameError::Io(error)) => {
                    return because(format!("Failed to read from AOF {name}, aborting...: {error}"));
                }
            }
        }
        if let Some(problem) = problem {
            writeln!(self.out, "{problem}")?;
        }
        let diff = len - valid;
        if let (0, Mode::TruncateTo(time)) = (diff, self.mode) {
            writeln!(self.out, "Truncate nothing in AOF {name} to timestamp {time}")?;
            return Ok(Outcome::Valid);
        }
        let line = frames.line();
        writeln!(
            self.out,
            "AOF analyzed: filename={name}, size={len}, ok_up_to={valid}, ok_up_to_line={line}, diff={diff}"
        )?;
        if diff == 0 {
            return Ok(Outcome::Valid);
        }
        if self.mode != Mode::Fix {
            return because(format!("AOF {name} is not valid. Use the --fix option to try fixing it."));
        }
        if !is_last {
            return because(format!("Failed to truncate AOF {name} because it is not the last file"));
        }
        writeln!(self.out, "This will shrink the AOF {name} from {len} bytes, with {diff} bytes, to {valid} bytes")?;
        write!(self.out, "Continue? [y/N]: ")?;
        self.out.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        if !answer.starts_with(['y', 'Y']) {
            return because("Aborting...".to_owned());
        }
        self.cut(path, valid).or_else(|_| because(format!("Failed to truncate AOF {name}")))?;
        Ok(Outcome::Cut)
    }

    /// Checks the RDB part at the beginning. Gives a reader of what is behind it.
    fn preamble(&mut self, path: &Path) -> Result<Frames, Stop> {
        const NOT_SANE: &str = "RDB preamble of AOF file is not sane, aborting.";
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let (file, _) = self.open(path)?;
        if !crate::rdb::check::check(file, &path.display().to_string(), now_ms, self.out, |_| {})? {
            return because(NOT_SANE.to_owned());
        }
        let (file, _) = self.open(path)?;
        let split = Splitter::new(file, false, DATABASES).and_then(|mut splitter| {
            while !matches!(splitter.next_part()?, Part::End { .. }) {}
            let offset = splitter.position();
            let (rest, source) = splitter.into_rest();
            Ok(Frames::with_start(source, rest, offset))
        });
        let frames = split.or_else(|_| because(NOT_SANE.to_owned()))?;
        writeln!(self.out, "RDB preamble is OK, proceeding with AOF tail...")?;
        Ok(frames)
    }

    /// Whether a time annotation lies behind the time that is asked for.
    fn is_past(&self, annotation: &[u8]) -> Result<bool, Stop> {
        let Mode::TruncateTo(time) = self.mode else { return Ok(false) };
        let Some(digits) = annotation.strip_prefix(b"#TS:") else { return Ok(false) };
        match resp::num::parse_i64(digits) {
            Some(at) => Ok(at > time),
            None => because("Invalid timestamp annotation".to_owned()),
        }
    }

    fn cut_to_time(&self, path: &Path, name: &str, offset: u64, is_last: bool) -> Result<Outcome, Stop> {
        let Mode::TruncateTo(time) = self.mode else { return Ok(Outcome::Valid) };
        if offset == 0 {
            return because(format!("AOF {name} has nothing before timestamp {time}, aborting..."));
        }
        if !is_last {
            return because(format!(
                "Failed to truncate AOF {name} to timestamp {time} to offset {offset} because it is not the last file.\nIf you insist, please delete all files after this file according to the manifest file and delete the corresponding records in manifest file manually. Then re-run redis-check-aof."
            ));
        }
        self.cut(path, offset).or_else(|_| because(format!("Failed to truncate AOF {name} to timestamp {time}")))?;
        Ok(Outcome::CutToTime)
    }

    fn cut(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut file = self.disk.append(path)?;
        file.truncate(len)?;
        file.sync()
    }
}

/// Whether a file's first lines are those of a manifest.
fn is_manifest(start: &[u8]) -> bool {
    let mut lines = start.split(|byte| *byte == b'\n').filter(|line| line.first() != Some(&b'#'));
    lines.next().is_some_and(|line| line.starts_with(b"file"))
}

fn manifest_error(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ManifestError>()) {
        Some(ManifestError { why, line: Some((number, line)) }) => format!(
            "\n*** FATAL AOF MANIFEST FILE ERROR ***\n\nReading the manifest file, at line {number}\n\n>>> '{line}'\n\n{why}\n"
        ),
        Some(ManifestError { why, line: None }) => {
            format!("\n*** FATAL AOF MANIFEST FILE ERROR ***\n\n{why}\n")
        }
        None => format!("Cannot read the manifest: {error}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::disk::SimulatedDisk;

    fn write(disk: &SimulatedDisk, path: &str, bytes: &[u8]) {
        disk.create(Path::new(path)).unwrap().write_all(bytes).unwrap();
    }

    fn check(disk: &SimulatedDisk, mode: Mode, path: &str, answer: &str) -> (bool, String) {
        let mut out = Vec::new();
        let mut answers = answer.as_bytes();
        let result = Check { disk, mode, out: &mut out, answers: &mut answers }.path(Path::new(path));
        let mut text = String::from_utf8(out).unwrap();
        let fine = result.is_ok();
        if let Err(Stop::Because(why)) = result {
            text.push_str(&why);
        }
        (fine, text)
    }

    const WHOLE: &[u8] = b"*1\r\n$4\r\nPING\r\n";

    #[test]
    fn a_whole_file_is_valid() {
        let disk = SimulatedDisk::new();
        write(&disk, "a.aof", WHOLE);
        let (fine, text) = check(&disk, Mode::Check, "a.aof", "");
        assert!(fine, "{text}");
        assert_eq!(
            text,
            "Start checking Old-Style AOF\nAOF analyzed: filename=a.aof, size=14, ok_up_to=14, ok_up_to_line=4, diff=0\nAOF a.aof is valid\n"
        );
    }

    #[test]
    fn a_cut_file_is_fixed_when_asked_for() {
        let disk = SimulatedDisk::new();
        let mut bytes = WHOLE.to_vec();
        bytes.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nEX");
        write(&disk, "a.aof", &bytes);
        let (fine, text) = check(&disk, Mode::Check, "a.aof", "");
        assert!(
            !fine && text.contains("ok_up_to=14") && text.ends_with("Use the --fix option to try fixing it."),
            "{text}"
        );
        assert!(!check(&disk, Mode::Fix, "a.aof", "n\n").0);
        assert_eq!(disk.read("a.aof").unwrap(), bytes);
        let (fine, text) = check(&disk, Mode::Fix, "a.aof", "y\n");
        assert!(fine && text.ends_with("Successfully truncated AOF a.aof\n"), "{text}");
        assert_eq!(disk.read("a.aof").unwrap(), WHOLE);
    }

    #[test]
    fn only_the_last_file_may_be_cut() {
        let disk = SimulatedDisk::new();
        write(&disk, "d/a.manifest", b"file a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n");
        write(&disk, "d/a.1.incr.aof", &WHOLE[..5]);
        write(&disk, "d/a.2.incr.aof", WHOLE);
        let (fine, text) = check(&disk, Mode::Fix, "d/a.manifest", "y\n");
        assert!(!fine && text.ends_with("because it is not the last file"), "{text}");
        write(&disk, "d/a.1.incr.aof", WHOLE);
        let (fine, text) = check(&disk, Mode::Check, "d/a.manifest", "");
        assert!(fine && text.ends_with("All AOF files and manifest are valid\n"), "{text}");
    }

    #[test]
    fn a_log_goes_back_to_a_time() {
        let disk = SimulatedDisk::new();
        let bytes = [b"#TS:100\r\n", WHOLE, b"#TS:200\r\n", WHOLE].concat();
        write(&disk, "a.aof", &bytes);
        let (fine, text) = check(&disk, Mode::TruncateTo(50), "a.aof", "");
        assert!(!fine && text.ends_with("has nothing before timestamp 50, aborting..."), "{text}");
        let (fine, text) = check(&disk, Mode::TruncateTo(250), "a.aof", "");
        assert!(fine && text.contains("Truncate nothing in AOF a.aof to timestamp 250"), "{text}");
        let (fine, text) = check(&disk, Mode::TruncateTo(150), "a.aof", "");
        assert!(fine && text.ends_with("Successfully truncated AOF a.aof to timestamp 150\n"), "{text}");
        assert_eq!(disk.read("a.aof").unwrap().len(), 9 + 14);
    }
}
