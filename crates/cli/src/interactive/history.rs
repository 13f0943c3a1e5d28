//! The history file: a line per command, the last hundred, readable by its owner only; and what never goes there.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::options;

/// Redis: lines kept.
pub(super) const LINES_MAX: usize = 100;

/// A file of the home directory, or the one that `REDISCLI_…` names; `/dev/null` is none.
pub(super) fn dot_file(variable: &str, name: &str) -> Option<PathBuf> {
    match options::variable(variable) {
        Some(path) if path == "/dev/null" => None,
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(Path::new(&home).join(name))
        }
    }
}

/// Where the history is kept, if it is.
pub(super) fn path() -> Option<PathBuf> {
    dot_file("HISTFILE", ".rediscli_history")
}

/// The lines of the file, oldest first; a missing file has none.
pub(super) fn load(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().filter(|line| !line.is_empty()).map(str::to_string).collect()
}

/// Writes all lines.
pub(super) fn save<'a>(path: &Path, lines: impl Iterator<Item = &'a String>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The file may be older than this rule.
    file.set_permissions(Permissions::from_mode(0o600))?;
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    file.write_all(&bytes)
}

/// A command of several lines as one that means the same, since the file has a line per command.
pub(super) fn one_line(line: &str) -> String {
    if !line.contains('\n') {
        return line.to_string();
    }
    let (command, program) = super::piped::split(line);
    let words = resp::split_args(command.as_bytes()).unwrap_or_default();
    let mut words: Vec<String> = words
        .iter()
        .map(|word| {
            let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
            let shown =
                if !word.is_empty() && word.iter().all(is_plain) { word.clone() } else { resp::quote_repr(word) };
            String::from_utf8_lossy(&shown).into_owned()
        })
        .collect();
    words.extend(program.map(|program| format!("| {}", program.replace('\n', " "))));
    words.join(" ")
}

/// Whether a command holds a password.
pub(super) fn is_sensitive(words: &[Vec<u8>]) -> bool {
    let word = |index: usize| words.get(index).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    let count = words.len();
    let behind = |index: usize| count - 1 - index;
    match (word(0).as_slice(), word(1).as_slice()) {
        (b"auth", _) | (b"acl", b"setuser") => true,
        (b"config", b"set") => (2..count).step_by(2).any(|index| {
            matches!(
                word(index).as_slice(),
                b"masterauth"
                    | b"masteruser"
                    | b"requirepass"
                    | b"primaryauth"
                    | b"tls-key-file-pass"
                    | b"tls-client-key-file-pass"
            )
        }),
        (b"hello", _) => {
            let mut index = 2;
            while index < count {
                match word(index).as_slice() {
                    b"auth" if behind(index) >= 2 => return true,
                    b"setname" if behind(index) >= 1 => index += 2,
                    _ => return false,
                }
            }
            false
        }
        (b"migrate", _) => {
            for index in 6..count {
                match word(index).as_slice() {
                    b"auth" if behind(index) >= 1 => return true,
                    b"auth2" if behind(index) >= 2 => return true,
                    b"keys" => return false,
                    _ => {}
                }
            }
            false
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn secrets() {
        let sensitive = |line: &str| is_sensitive(&resp::split_args(line.as_bytes()).unwrap());
        for line in [
            "AUTH x",
            "auth user x",
            "ACL SETUSER u >p",
            "CONFIG SET maxmemory 1 requirepass p",
            "hello 3 auth u p",
            "HELLO 3 SETNAME n AUTH u p",
            "migrate h 1 k 0 5 copy auth p",
            "migrate h 1 \"\" 0 5 auth2 u p keys a",
        ] {
            assert!(sensitive(line), "{line}");
        }
        for line in ["get auth", "acl list", "config set maxmemory 1", "hello 3", "migrate h 1 \"\" 0 5 keys auth p"] {
            assert!(!sensitive(line), "{line}");
        }
    }

    #[test]
    fn several_lines_become_one() {
        for (line, want) in [
            ("get a", "get a"),
            ("set a \"x\ny\"", "set a \"x\\ny\""),
            ("set a '\"\n' | wc -l", "set a \"\\\"\\n\" | wc -l"),
        ] {
            assert_eq!(one_line(line), want);
        }
    }

    #[test]
    fn file_is_private_and_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        std::fs::write(&path, "old\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let lines = vec!["get a".to_string(), "set \"b c\" d".to_string()];
        save(&path, lines.iter()).unwrap();
        assert_eq!(load(&path), lines);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
