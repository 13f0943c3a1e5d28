//! The manifest: which files, in which order, make up the log.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.4.incr.aof seq 4 type i
//! file appendonly.aof.1.base.rdb seq 1 type h      no longer needed, to be removed
//! ```
//! The format, its order (base, history, increments) and its complaints are those of Redis 7.

use crate::disk::{Disk, directory_of};
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes of a line at most, its end included.
const LINE_MAX: usize = 1024;
/// Bytes of a manifest that are read at most; a real one has a few lines.
const FILE_MAX: u64 = 16 << 20;

/// One file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its name in the directory.
    pub name: String,
    /// Its number.
    pub seq: u64,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    /// What the increments build on.
    pub base: Option<Part>,
    /// Files that are no longer needed.
    pub history: Vec<Part>,
    /// In the order in which they are to be replayed.
    pub increments: Vec<Part>,
    /// Number of the last base, also of one that is gone.
    base_seq: u64,
    increment_seq: u64,
}

/// A manifest that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct ManifestError {
    /// What is wrong, in Redis' words.
    pub why: &'static str,
    /// The line at fault, from 1, and its text, if it is one.
    pub line: Option<(usize, String)>,
}

/// The manifest's name for a log called `name`.
pub fn manifest_name(name: &str) -> String {
    format!("{name}.manifest")
}

/// A name that is no path.
fn is_base_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

impl Manifest {
    /// Whether it names no file that holds data.
    pub fn is_empty(&self) -> bool {
        self.base.is_none() && self.increments.is_empty()
    }

    /// Number of files that hold data.
    pub fn parts(&self) -> usize {
        usize::from(self.base.is_some()) + self.increments.len()
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::default();
        let mut lines = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            lines += 1;
            if line.first() == Some(&b'#') {
                continue;
            }
            let shown = String::from_utf8_lossy(line).trim().to_owned();
            let number = lines;
            let fail = |why: &'static str| ManifestError { why, line: Some((number, shown.clone())) };
            if line.last() != Some(&b'\n') || line.len() > LINE_MAX {
                return Err(fail("The AOF manifest file contains too long line"));
            }
            manifest.add_line(line).map_err(fail)?;
        }
        if lines == 0 {
            return Err(ManifestError { why: "Found an empty AOF manifest", line: None });
        }
        Ok(manifest)
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        const INVALID: &str = "Invalid AOF manifest file format";
        let words = resp::split_args(line.trim_ascii()).filter(|words| words.len() >= 6).ok_or(INVALID)?;
        let (pairs, rest) = words.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(INVALID);
        }
        let (mut name, mut seq, mut kind) = (None, 0, None);
        for [key, value] in pairs {
            if key.eq_ignore_ascii_case(b"file") {
                let text = String::from_utf8(value.clone()).map_err(|_| INVALID)?;
                if !is_base_name(&text) {
                    return Err("File can't be a path, just a filename");
                }
                name = Some(text);
            } else if key.eq_ignore_ascii_case(b"seq") {
                seq = resp::num::parse_i64(value).and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
            } else if key.eq_ignore_ascii_case(b"type") {
                kind = value.first().copied();
            }
        }
        let (Some(name), true, Some(kind)) = (name, seq > 0, kind) else { return Err(INVALID) };
        let part = Part { name, seq };
        match kind {
            b'b' if self.base.is_some() => return Err("Found duplicate base file information"),
            b'b' => {
                self.base_seq = seq;
                self.base = Some(part);
            }
            b'h' => self.history.push(part),
            b'i' if seq <= self.increment_seq => return Err("Found a non-monotonic sequence number"),
            b'i' => {
                self.increment_seq = seq;
                self.increments.push(part);
            }
            _ => return Err("Unknown AOF file type"),
        }
        Ok(())
    }

    /// Its text.
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut line = |part: &Part, kind: char| {
            text.extend_from_slice(b"file ");
            let needs_quotes =
                part.name.bytes().any(|byte| !byte.is_ascii_graphic() || matches!(byte, b'\\' | b'"' | b'\''));
            if needs_quotes {
                text.extend_from_slice(&resp::quote_repr(part.name.as_bytes()));
            } else {
                text.extend_from_slice(part.name.as_bytes());
            }
            text.extend_from_slice(format!(" seq {} type {kind}\n", part.seq).as_bytes());
        };
        self.base.iter().for_each(|part| line(part, 'b'));
        self.history.iter().for_each(|part| line(part, 'h'));
        self.increments.iter().for_each(|part| line(part, 'i'));
        text
    }

    /// Loads the manifest at `path`. `None`: there is none.
    ///
    /// # Errors
    /// The operating system's, or what is wrong with it as [`ManifestError`] inside [`io::ErrorKind::InvalidData`].
    pub fn load(disk: &dyn Disk, path: &Path) -> io::Result<Option<Manifest>> {
        let (file, _) = match disk.open(path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut text)?;
        Manifest::parse(&text).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Puts it in the place of the one at `path`, by way of a temporary file, on disk when this returns.
    ///
    /// # Errors
    /// The operating system's; the old one stands.
    pub fn store(&self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        let directory = directory_of(path);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = directory.join(format!("temp-{name}"));
        let written = disk.create(&temporary).and_then(|mut file| {
            file.write_all(&self.to_text())?;
            file.sync()
        });
        if let Err(error) = written.and_then(|()| disk.rename(&temporary, path)) {
            // What is left over is overwritten by the next one.
            let _ = disk.remove(&temporary);
            return Err(error);
        }
        disk.sync_directory(directory)
    }

    /// Adds an increment and gives its name.
    pub fn add_increment(&mut self, name: &str) -> Part {
        self.increment_seq += 1;
        let part = Part { name: format!("{name}.{}.incr.aof", self.increment_seq), seq: self.increment_seq };
        self.increments.push(part.clone());
        part
    }

    /// Puts a new base in the place of the old one, which becomes history; gives its name.
    pub fn replace_base(&mut self, name: &str, is_rdb: bool) -> Part {
        self.history.extend(self.base.take());
        self.base_seq += 1;
        let ending = if is_rdb { "rdb" } else { "aof" };
        let part = Part { name: format!("{name}.{}.base.{ending}", self.base_seq), seq: self.base_seq };
        self.base = Some(part.clone());
        part
    }

    /// Whether a file is named in it.
    pub fn names(&self, name: &str) -> bool {
        self.base.iter().chain(&self.history).chain(&self.increments).any(|part| part.name == name)
    }

    /// The numbers that `other` has given are not given again: a file of such a name may have come into force.
    pub fn skip_numbers_of(&mut self, other: &Manifest) {
        self.base_seq = self.base_seq.max(other.base_seq);
        self.increment_seq = self.increment_seq.max(other.increment_seq);
    }

    /// Takes a single old log as the base.
    pub fn adopt_base(&mut self, name: &str) {
        self.base_seq = 1;
        self.base = Some(Part { name: name.to_owned(), seq: 1 });
    }

    /// Makes all increments before number `first` history: a base holds them now.
    pub fn retire_before(&mut self, first: u64) {
        let (old, kept) = std::mem::take(&mut self.increments).into_iter().partition(|part| part.seq < first);
        self.increments = kept;
        self.history.extend::<Vec<Part>>(old);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::disk::SimulatedDisk;

    #[test]
    fn a_manifest_is_what_redis_writes() {
        let mut manifest = Manifest::default();
        manifest.replace_base("appendonly.aof", true);
        manifest.add_increment("appendonly.aof");
        manifest.add_increment("appendonly.aof");
        manifest.replace_base("appendonly.aof", false);
        manifest.retire_before(2);
        let text = "file appendonly.aof.2.base.aof seq 2 type b\n\
                    file appendonly.aof.1.base.rdb seq 1 type h\n\
                    file appendonly.aof.1.incr.aof seq 1 type h\n\
                    file appendonly.aof.2.incr.aof seq 2 type i\n";
        assert_eq!(String::from_utf8(manifest.to_text()).unwrap(), text);
        assert_eq!(Manifest::parse(text.as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn names_with_spaces_are_quoted() {
        let mut manifest = Manifest::default();
        manifest.add_increment("my \"log\"");
        assert_eq!(manifest.to_text(), b"file \"my \\\"log\\\".1.incr.aof\" seq 1 type i\n");
        assert_eq!(Manifest::parse(&manifest.to_text()).unwrap(), manifest);
    }

    #[test]
    fn bad_manifests_are_told_in_redis_words() {
        for (text, why) in [
            ("", "Found an empty AOF manifest"),
            ("file a seq 1 type b", "The AOF manifest file contains too long line"),
            ("\n", "Invalid AOF manifest file format"),
            ("file a seq 1\n", "Invalid AOF manifest file format"),
            ("file a seq 0 type b\n", "Invalid AOF manifest file format"),
            ("file a/b seq 1 type b\n", "File can't be a path, just a filename"),
            ("file a seq 1 type b\nfile c seq 2 type b\n", "Found duplicate base file information"),
            ("file a seq 2 type i\nfile c seq 2 type i\n", "Found a non-monotonic sequence number"),
            ("file a seq 1 type x\n", "Unknown AOF file type"),
        ] {
            assert_eq!(Manifest::parse(text.as_bytes()).unwrap_err().why, why, "{text:?}");
        }
        let fine = Manifest::parse(b"# a comment\nfile a seq 1 type b later thing\n").unwrap();
        assert_eq!(fine.base.unwrap().name, "a");
    }

    #[test]
    fn a_stored_manifest_survives_a_crash() {
        let disk = SimulatedDisk::new();
        let path = Path::new("dir/a.manifest");
        let mut manifest = Manifest::default();
        manifest.add_increment("a");
        manifest.store(&disk, path).unwrap();
        let after = disk.crash(|_| 0);
        assert_eq!(Manifest::load(&after, path).unwrap(), Some(manifest));
        assert_eq!(Manifest::load(&after, Path::new("dir/b.manifest")).unwrap(), None);
    }
}
