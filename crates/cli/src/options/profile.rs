//! `--profile name`: options kept in a file, a line per profile: the name, then words as at the prompt.
//!
//! ```text
//! prod -h 10.0.0.1 -p 7000 --pass-file /home/me/.prod --readonly --red-prompt
//! ```
//!
//! The file is `~/.oxidis_profiles`, or what `OXIDIS_PROFILES` names. Options behind `--profile` win.

use std::path::{Path, PathBuf};

use crate::output::{Outcome, fail, os_text, text};

/// The options of a profile.
pub(super) fn words(name: &[u8]) -> Outcome<Vec<Vec<u8>>> {
    let path = path();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return fail(format_args!("Can't read profiles '{}': {}", path.display(), os_text(&error))),
    };
    let mut profiles = bytes.split(|byte| *byte == b'\n').filter_map(resp::split_args);
    match profiles.find(|words| words.first().is_some_and(|word| word == name)) {
        Some(mut words) => Ok(words.split_off(1)),
        None => fail(format_args!("No profile '{}' in '{}'", text(name), path.display())),
    }
}

fn path() -> PathBuf {
    match std::env::var_os("OXIDIS_PROFILES") {
        Some(path) => path.into(),
        None => Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".oxidis_profiles"),
    }
}
