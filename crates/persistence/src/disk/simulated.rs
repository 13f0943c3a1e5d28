//! A disk in memory that forgets what was not forced to it, and fails when told to.
//!
//! Every file is an inode: bytes as written, and bytes as they are on disk. The directory is a map from paths to inodes,
//! with the list of changes since it was last forced to disk. [`SimulatedDisk::crash`] builds the disk that a machine
//! would find after its power came back: for each file a prefix of what was written after the last `sync`, for the names
//! a prefix of the changes.

use super::{Disk, DiskFile};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A call that may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Opening to write or to read.
    Open,
    /// Writing.
    Write,
    /// Forcing bytes to disk.
    Sync,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Cutting.
    Truncate,
    /// Forcing names to disk.
    SyncDirectory,
}

/// What is to go wrong.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call with this number (from 0, over all calls) fails with this error number.
    Call(usize, i32),
    /// All calls of a kind fail with this error number.
    Every(Operation, i32),
    /// There is room for this many bytes only; writes beyond fail with ENOSPC, as far as they fit they are taken.
    Room(u64),
}

/// Not enough space on the device.
const ENOSPC: i32 = 28;

#[derive(Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// How long the file was when it was last forced to disk, if it was.
    synced: Option<Vec<u8>>,
}

#[derive(Clone)]
enum Change {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf),
}

#[derive(Clone, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    /// The names as they are on disk.
    durable: BTreeMap<PathBuf, usize>,
    /// What happened to them since, in order.
    changes: Vec<Change>,
    fault: Option<Fault>,
    calls: usize,
    written: u64,
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, change: &Change) {
    match change {
        Change::Link(path, inode) => {
            names.insert(path.clone(), *inode);
        }
        Change::Unlink(path) => {
            names.remove(path);
        }
        Change::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
    }
}

impl State {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }

    /// Counts a call; the error it is to fail with.
    fn call(&mut self, operation: Operation) -> io::Result<()> {
        let number = self.calls;
        self.calls += 1;
        match self.fault {
            Some(Fault::Call(at, errno)) if at == number => Err(io::Error::from_raw_os_error(errno)),
            Some(Fault::Every(which, errno)) if which == operation => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    fn create(&mut self, path: &Path) -> usize {
        // An old file is emptied, which is a change of its bytes; its inode stays.
        if let Some(inode) = self.names.get(path).copied() {
            if let Some(file) = self.inodes.get_mut(inode) {
                file.bytes.clear();
            }
            return inode;
        }
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.change(Change::Link(path.to_path_buf(), inode));
        inode
    }
}

/// See the module. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    /// An empty disk.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::default()
    }

    /// Sets what goes wrong from now on; counts of calls and bytes begin anew.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut state = self.0.lock();
        state.fault = fault;
        state.calls = 0;
        state.written = 0;
    }

    /// Calls since the last [`SimulatedDisk::set_fault`].
    pub fn calls(&self) -> usize {
        self.0.lock().calls
    }

    /// What a file holds now.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.0.lock();
        let inode = *state.names.get(path.as_ref())?;
        state.inodes.get(inode).map(|file| file.bytes.clone())
    }

    /// Names there are.
    pub fn names(&self) -> Vec<PathBuf> {
        self.0.lock().names.keys().cloned().collect()
    }

    /// The disk as it may be after the power went now. `choose(n)` gives a number up to n: how much of what was not
    /// forced to disk has got there all the same.
    pub fn crash(&self, mut choose: impl FnMut(usize) -> usize) -> SimulatedDisk {
        let state = self.0.lock();
        let mut after = State { names: state.durable.clone(), ..State::default() };
        let kept_changes = choose(state.changes.len()).min(state.changes.len());
        for change in state.changes.iter().take(kept_changes) {
            apply(&mut after.names, change);
        }
        for file in &state.inodes {
            let synced = file.synced.clone().unwrap_or_default();
            let bytes = if file.bytes.starts_with(&synced) {
                let loose = file.bytes.len() - synced.len();
                let kept = synced.len() + choose(loose).min(loose);
                file.bytes.get(..kept).unwrap_or(&file.bytes).to_vec()
            } else if choose(1) == 0 {
                synced
            } else {
                file.bytes.clone()
            };
            after.inodes.push(Inode { synced: Some(bytes.clone()), bytes });
        }
        after.durable = after.names.clone();
        SimulatedDisk(Arc::new(Mutex::new(after)))
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.call(Operation::Open)?;
        let inode = state.create(path);
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.call(Operation::Open)?;
        let inode = match state.names.get(path).copied() {
            Some(inode) => inode,
            None => state.create(path),
        };
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn io::Read + Send>, u64)> {
        self.0.lock().call(Operation::Open)?;
        let bytes = self.read(path).ok_or(io::ErrorKind::NotFound)?;
        let len = bytes.len() as u64;
        Ok((Box::new(io::Cursor::new(bytes)), len))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call(Operation::Rename)?;
        if !state.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(Change::Rename(from.to_path_buf(), to.to_path_buf()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call(Operation::Remove)?;
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(Change::Unlink(path.to_path_buf()));
        Ok(())
    }

    fn create_directory(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        let inside = state.names.keys().filter(|path| super::directory_of(path) == directory);
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.call(Operation::SyncDirectory)?;
        state.durable = state.names.clone();
        state.changes.clear();
        Ok(())
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    inode: usize,
}

impl DiskFile for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.0.lock();
        state.call(Operation::Write)?;
        let mut taken = bytes.len();
        if let Some(Fault::Room(room)) = state.fault {
            let left = usize::try_from(room.saturating_sub(state.written)).unwrap_or(usize::MAX);
            if left == 0 {
                return Err(io::Error::from_raw_os_error(ENOSPC));
            }
            taken = taken.min(left);
        }
        state.written += taken as u64;
        if let Some(file) = state.inodes.get_mut(self.inode) {
            file.bytes.extend_from_slice(bytes.get(..taken).unwrap_or(bytes));
        }
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.call(Operation::Sync)?;
        if let Some(file) = state.inodes.get_mut(self.inode) {
            file.synced = Some(file.bytes.clone());
        }
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.call(Operation::Truncate)?;
        if let Some(file) = state.inodes.get_mut(self.inode) {
            file.bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        }
        Ok(())
    }
}
