//! What a member keeps on disk, in the file `cluster-config-file`: to which cluster it belongs, and which slots were on
//! their way when it ended.
//!
//! The file is one JSON text, replaced as a whole: a new one is written beside it, forced to disk and renamed.

use crate::config::Config;
use crate::log;
use crate::process::log::Level;
use persistence::disk::directory_of;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use topology::SlotSet;

/// See the module. Without a name: the server belongs to no cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The name of this server.
    pub(crate) member: String,
    /// The epoch of the newest view that was known when the file was written: older ones are not taken.
    #[serde(default)]
    pub(crate) epoch: u64,
    /// The managers' URLs.
    #[serde(default)]
    pub(crate) managers: Vec<String>,
    /// Moves away from here.
    #[serde(default)]
    pub(crate) leaving: Vec<Leaving>,
    /// Moves to here: what they brought is no data until they are committed.
    #[serde(default)]
    pub(crate) coming: Vec<Arrival>,
    /// Slots to be emptied.
    #[serde(default)]
    pub(crate) dropping: SlotSet,
}

/// A move away from here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Leaving {
    /// The move.
    pub(crate) id: u64,
    /// What moves.
    pub(crate) slots: SlotSet,
    /// `host:port` of its target.
    pub(crate) target: String,
}

/// A move to here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Arrival {
    /// The move.
    pub(crate) id: u64,
    /// What moves.
    pub(crate) slots: SlotSet,
}

fn path(config: &Config) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&config.cluster_config_file))
}

/// What a server of before kept. `None`: it was no member.
pub(crate) fn load(config: &Config) -> Option<Kept> {
    let path = path(config);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                log!(Level::Warning, "The cluster's file {} cannot be read: {error}", path.display());
            }
            return None;
        }
    };
    match serde_json::from_slice::<Kept>(&bytes) {
        Ok(kept) => (!kept.member.is_empty()).then_some(kept),
        Err(error) => {
            log!(
                Level::Warning,
                "The file {} is not one of a member of a cluster ({error}): this server starts as a plain one",
                path.display()
            );
            None
        }
    }
}

/// Keeps it.
///
/// # Errors
/// Why it cannot be written.
pub(crate) fn save(config: &Config, kept: &Kept) -> Result<(), String> {
    let path = path(config);
    write(&path, kept).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &std::path::Path, kept: &Kept) -> io::Result<()> {
    let text = serde_json::to_vec(kept)?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let mut file = File::create(&temporary)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(directory_of(path))?.sync_all()
}

/// Forgets it.
///
/// # Errors
/// Why the file cannot be removed.
pub(crate) fn forget(config: &Config) -> Result<(), String> {
    let path = path(config);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!("{}: {error}", path.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nodes.conf");
        let config = Config { cluster_config_file: file.as_os_str().as_bytes().to_vec(), ..Config::default() };
        assert_eq!(load(&config), None);
        let kept = Kept {
            member: "a".to_owned(),
            epoch: 9,
            managers: vec!["http://127.0.0.1:7080".to_owned()],
            leaving: vec![Leaving { id: 7, slots: SlotSet::range(0, 5), target: "h:1".to_owned() }],
            coming: vec![Arrival { id: 8, slots: SlotSet::range(9, 9) }],
            dropping: SlotSet::range(6, 7),
        };
        save(&config, &kept).unwrap();
        assert_eq!(load(&config), Some(kept));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
        fs::write(&file, "0123 127.0.0.1:1@2 myself,master - 0 0 0 connected\n").unwrap();
        assert_eq!(load(&config), None, "a file of Redis Cluster is left alone");
        forget(&config).unwrap();
        forget(&config).unwrap();
    }
}
