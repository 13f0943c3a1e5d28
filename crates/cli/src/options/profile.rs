//! `--profile name`: options kept in a file, a line per profile: the name, then words as at the prompt.
//!
//! ```text
//! prod -h 10.0.0.1 -p 7000 --pass-file /home/me/.prod --readonly --red-prompt
//! ```
//!
//! The file is `~/.oxidis_profiles`, or what `OXIDIS_PROFILES` names. Options behind `--profile` win.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::output::{Outcome, fail, os_text};

/// The words with the profile's options in place of `--profile name`, which must come first.
pub(super) fn expand(arguments: &[OsString]) -> Outcome<Vec<OsString>> {
    let [option, name, rest @ ..] = arguments else {
        return Ok(arguments.to_vec());
    };
    if option != "--profile" {
        return Ok(arguments.to_vec());
    }
    let path = path();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return fail(format_args!("Can't read profiles '{}': {}", path.display(), os_text(&error))),
    };
    let mut profiles = bytes.split(|byte| *byte == b'\n').filter_map(resp::split_args);
    let Some(words) = profiles.find(|words| words.first().is_some_and(|word| word == name.as_encoded_bytes())) else {
        return fail(format_args!("No profile '{}' in '{}'", name.display(), path.display()));
    };
    let mut expanded: Vec<OsString> = words.into_iter().skip(1).map(OsString::from_vec).collect();
    expanded.extend_from_slice(rest);
    Ok(expanded)
}

fn path() -> PathBuf {
    match std::env::var_os("OXIDIS_PROFILES") {
        Some(path) => path.into(),
        None => Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".oxidis_profiles"),
    }
}
