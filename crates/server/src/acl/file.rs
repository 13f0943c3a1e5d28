//! Users in files: the `user` lines of the config file, and the file of `aclfile`.

use super::rules::{RuleError, Rules, merge_selectors};
use super::selector::has_spaces;
use super::{Acl, DEFAULT_USER, User};
use crate::process::error_text;
use crate::process::log::Level;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// Checks the words of a `user` line of the config file (the name and its rules). Unknown commands are told later, when
/// the users are made.
///
/// # Errors
/// The index of the word to be shown, counted as Redis counts it, and what is wrong.
pub fn check_declaration(words: &[Vec<u8>], earlier: &[Vec<Vec<u8>>]) -> Result<(), (usize, &'static str)> {
    let name = words.first();
    if earlier.iter().any(|other| other.first() == name) {
        return Err((1, "Duplicate user found. A user can only be defined once in config files"));
    }
    let rules = words.get(1..).unwrap_or_default();
    let rules = merge_selectors(rules).map_err(|index| (index, "Wrong format"))?;
    let mut user = Rules::new(false);
    for (index, rule) in rules.iter().enumerate() {
        match user.apply(rule, false) {
            Ok(()) | Err(RuleError::UnknownCommand) => {}
            Err(error) => return Err((index, error.text())),
        }
    }
    Ok(())
}

impl Acl {
    /// Makes the users of the config file, or loads those of the ACL file. False: the server cannot start; the reason is
    /// in the log.
    pub fn load_at_start(&self, declared: &[Vec<Vec<u8>>], file: &[u8], all_channels: bool) -> bool {
        if !file.is_empty() && !declared.is_empty() {
            crate::log!(
                Level::Warning,
                "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid. This setup is very likely to lead to configuration errors and security holes, please define either an ACL file or declare users directly in your redis.conf, but not both."
            );
            return false;
        }
        if !declared.iter().all(|words| self.declare(words, all_channels)) {
            crate::log!(Level::Warning, "Critical error while loading ACLs. Exiting.");
            return false;
        }
        if !file.is_empty()
            && let Err(errors) = self.load_file(file, all_channels)
        {
            crate::log!(Level::Warning, "Aborting Redis startup because of ACL errors: {errors}");
            return false;
        }
        true
    }

    fn declare(&self, words: &[Vec<u8>], all_channels: bool) -> bool {
        let Some((name, rules)) = words.split_first() else { return true };
        let shown = String::from_utf8_lossy(name);
        if has_spaces(name) {
            crate::log!(Level::Warning, "Spaces not allowed in ACL usernames");
            return false;
        }
        let mut user = Rules::new(all_channels);
        for rule in merge_selectors(rules).unwrap_or_default() {
            if let Err(error) = user.apply(&rule, all_channels) {
                let rule = String::from_utf8_lossy(&rule);
                crate::log!(
                    Level::Warning,
                    "Error loading ACL rule '{rule}' for the user named '{shown}': {}",
                    error.text()
                );
                return false;
            }
        }
        if !user.enabled {
            crate::log!(
                Level::Notice,
                "The user '{shown}' is disabled (there is no 'on' modifier in the user description). Make sure this is not a configuration error."
            );
        }
        if name == DEFAULT_USER {
            self.default_user().rules.store(Arc::new(user));
        } else {
            self.users.write().insert(name.clone(), User::new(name, user));
        }
        self.note_change();
        true
    }

    /// ACL LOAD: takes the users of a file in the place of all there are. Returns the users that are gone.
    ///
    /// # Errors
    /// All that is wrong in the file; nothing was changed.
    pub fn load_file(&self, path: &[u8], all_channels: bool) -> Result<Vec<Arc<User>>, String> {
        let shown = String::from_utf8_lossy(path);
        let text = std::fs::read(std::ffi::OsStr::from_bytes(path))
            .map_err(|error| format!("Error loading ACLs, opening file '{shown}': {}", error_text(&error)))?;
        let users = parse_file(&shown, &text, all_channels)?;
        Ok(self.replace(users))
    }

    /// ACL SAVE: writes all users to a file, which is replaced as a whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written; the reason is in the log.
    pub fn save_file(&self, path: &[u8]) -> io::Result<()> {
        let _writer = self.writer.lock();
        let mut text = Vec::new();
        for user in self.users() {
            text.extend_from_slice(&user.line());
            text.push(b'\n');
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".tmp-{}-{}", std::process::id(), crate::process::now_ms()));
        let temporary = Path::new(&temporary);
        let written = write_file(path, temporary, &text);
        if written.is_err() {
            // The first error matters; what is left behind is only a temporary file.
            drop(std::fs::remove_file(temporary));
        }
        written
    }
}

fn write_file(path: &Path, temporary: &Path, text: &[u8]) -> io::Result<()> {
    let log = |what: &'static str| {
        move |error: &io::Error| crate::log!(Level::Warning, "{what} for ACL SAVE: {}", error_text(error))
    };
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(temporary);
    let mut file = opened.inspect_err(log("Opening temp ACL file"))?;
    file.write_all(text).inspect_err(log("Writing ACL file"))?;
    file.sync_all().inspect_err(log("Syncing ACL file"))?;
    std::fs::rename(temporary, path).inspect_err(log("Renaming ACL file"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).inspect_err(log("Syncing ACL directory"))
}

/// The users of a file, or all its errors in one line.
fn parse_file(path: &str, text: &[u8], all_channels: bool) -> Result<BTreeMap<Vec<u8>, Rules>, String> {
    let mut users: BTreeMap<Vec<u8>, Rules> = BTreeMap::new();
    let mut errors = String::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        if let Err(error) = parse_line(&format!("{path}:{}", index + 1), index + 1, line, all_channels, &mut users) {
            errors.push_str(&error);
        }
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.push_str("WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
    Err(errors)
}

fn parse_line(
    place: &str,
    number: usize,
    line: &[u8],
    all_channels: bool,
    users: &mut BTreeMap<Vec<u8>, Rules>,
) -> Result<(), String> {
    let words: Vec<Vec<u8>> = line.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    let (name, rules) = match words.as_slice() {
        [first, name, rules @ ..] if first == b"user" => (name, rules),
        _ => return Err(format!("{place} should start with user keyword followed by the username. ")),
    };
    let shown = String::from_utf8_lossy(name);
    if has_spaces(name) {
        return Err(format!("'{place}: username '{shown}' contains invalid characters. "));
    }
    if users.contains_key(name) {
        return Err(format!("WARNING: Duplicate user '{shown}' found on line {number}. "));
    }
    let mut user = Rules::new(all_channels);
    let mut errors = String::new();
    match merge_selectors(rules) {
        Err(_) => errors = format!("{place}: Unmatched parenthesis in selector definition."),
        Ok(rules) => {
            let mut told = false;
            for rule in rules {
                let rule = rule.trim_ascii();
                match user.apply(rule, all_channels) {
                    Ok(()) => {}
                    Err(error @ RuleError::UnknownCommand) => {
                        let rule = String::from_utf8_lossy(rule);
                        errors.push_str(&format!("{place}: Error in applying operation '{rule}': {}. ", error.text()));
                    }
                    // Other rules may hold passwords, which are not to be shown.
                    Err(_) if told => {}
                    Err(error) => {
                        told = true;
                        errors.push_str(&format!("{place}: {}. ", error.text()));
                    }
                }
            }
        }
    }
    users.insert(name.clone(), user);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
