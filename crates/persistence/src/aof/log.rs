//! The log open to be written.

use super::manifest::{Manifest, manifest_name};
use crate::disk::{Disk, DiskFile};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module above. One thread at a time writes it; [`Log::sync_handle`] forces it to disk beside that.
pub struct Log {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    name: String,
    manifest: Manifest,
    file: Box<dyn DiskFile>,
    /// Bytes of the present increment that are whole.
    len: u64,
    /// Bytes behind those, of a write that failed and could not be taken back: they are to be cut off before the next.
    torn: bool,
    /// Bytes of the base and of the increments before the present one.
    before: u64,
    base_bytes: u64,
    /// Name of the increment being written.
    current: String,
    /// It is not in the manifest yet: the base below it is still being written.
    is_detached: bool,
    /// Counts the files begun: a sync of an earlier one says nothing of the present.
    generation: u64,
}

/// Forces the file that was being written when it was made to disk.
pub struct Sync {
    file: Box<dyn DiskFile>,
    /// Which file it is.
    pub generation: u64,
}

impl Sync {
    /// Its descriptor, as [`DiskFile::descriptor`].
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    /// Forces what was written to disk.
    ///
    /// # Errors
    /// The operating system's: what was written since the last success may be lost, whatever a later call says.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Why bytes could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// The operating system's error; `WriteZero` when it took some but not all.
    pub error: io::Error,
    /// How many it took of those it was given.
    pub written: usize,
    /// They could not be cut off again: the file ends with a part of a command until that succeeds.
    pub is_torn: bool,
}

impl Log {
    /// Opens the log of an existing manifest for writing, at the end of the last increment, or with a new one where there
    /// is none. `bytes_of` tells how long a file is; the loader knows, as it has read them.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        name: &str,
        mut manifest: Manifest,
        bytes_of: impl Fn(&str) -> u64,
    ) -> io::Result<Log> {
        let before_change = manifest.clone();
        let last = match manifest.increments.last() {
            Some(part) => part.clone(),
            None => manifest.add_increment(name),
        };
        let mut file = disk.append(&directory.join(&last.name))?;
        if manifest != before_change {
            file.sync()?;
            manifest.store(&*disk, &directory.join(manifest_name(name)))?;
        }
        let base_bytes = manifest.base.as_ref().map_or(0, |part| bytes_of(&part.name));
        let others = manifest.increments.iter().filter(|part| part.seq != last.seq);
        let before = base_bytes + others.map(|part| bytes_of(&part.name)).sum::<u64>();
        let len = bytes_of(&last.name);
        let (directory, name) = (directory.to_path_buf(), name.to_owned());
        Ok(Log {
            disk,
            directory,
            name,
            manifest,
            file,
            len,
            torn: false,
            before,
            base_bytes,
            current: last.name,
            is_detached: false,
            generation: 1,
        })
    }

    /// Begins a log whose base is still to be written: what is there comes into force, in place of all that `manifest`
    /// names, with [`Log::replace_base`].
    ///
    /// # Errors
    /// The operating system's.
    pub fn begin_detached(disk: Arc<dyn Disk>, directory: &Path, name: &str, manifest: Manifest) -> io::Result<Log> {
        disk.create_directory(directory)?;
        let current = format!("temp-{name}.incr");
        let file = disk.create(&directory.join(&current))?;
        Ok(Log {
            disk,
            directory: directory.to_path_buf(),
            name: name.to_owned(),
            manifest,
            file,
            len: 0,
            torn: false,
            before: 0,
            base_bytes: 0,
            current,
            is_detached: true,
            generation: 1,
        })
    }

    /// The files in force.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Name of the increment that is being written.
    pub fn current_name(&self) -> &str {
        &self.current
    }

    /// Bytes of all files in force.
    pub fn bytes(&self) -> u64 {
        self.before + self.len
    }

    /// Bytes of the base.
    pub fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    /// Takes the bytes there are now as those to which growth is compared.
    pub fn mark_base(&mut self) {
        self.base_bytes = self.bytes();
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Number of the file being written, as [`Sync::generation`] has it.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Another descriptor of the present increment, to force it to disk while it is written.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync_handle(&self) -> io::Result<Sync> {
        let file = self.disk.append(&self.directory.join(&self.current))?;
        Ok(Sync { file, generation: self.generation })
    }

    /// Writes whole commands. All or nothing, unless the error says that it is torn.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.torn {
            self.file.truncate(self.len).map_err(|error| WriteError { error, written: 0, is_torn: true })?;
            self.torn = false;
        }
        let mut written = 0;
        while let Some(rest) = bytes.get(written..)
            && !rest.is_empty()
        {
            let error = match self.file.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(taken) => {
                    written += taken;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            if written > 0 {
                self.torn = self.file.truncate(self.len).is_err();
            }
            return Err(WriteError { error, written, is_torn: self.torn });
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Forces the present increment to disk.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    /// Begins a new increment. What was written to the old one must be on disk.
    ///
    /// # Errors
    /// The operating system's; the old one goes on.
    pub fn begin_increment(&mut self) -> io::Result<()> {
        if self.is_detached {
            // Its base was never finished: the next one holds what it has so far.
            self.file = self.disk.create(&self.directory.join(&self.current))?;
            self.len = 0;
            self.torn = false;
            self.generation += 1;
            return Ok(());
        }
        let mut manifest = self.manifest.clone();
        let part = manifest.add_increment(&self.name);
        let path = self.directory.join(&part.name);
        let begun = self.disk.create(&path).and_then(|mut file| {
            file.sync()?;
            self.store(&manifest)?;
            Ok(file)
        });
        match begun {
            Ok(file) => {
                self.before += self.len;
                self.len = 0;
                self.torn = false;
                self.generation += 1;
                self.file = file;
                self.current = part.name;
                self.manifest = manifest;
                Ok(())
            }
            Err(error) => {
                self.manifest.skip_numbers_of(&manifest);
                self.discard(&part.name);
                Err(error)
            }
        }
    }

    /// Number of the present increment: the first that a base begun now does not hold.
    /// What was recorded before a log was begun detached is in none of its files, so all of them become history then.
    pub fn current_seq(&self) -> u64 {
        self.manifest.increments.last().map_or(0, |part| part.seq)
    }

    /// Puts the file `temporary` of this directory, complete and on disk, in force as the base of the increments from
    /// number `first` on. Gives its new name. Removes what is no longer needed, unless `keeps_history`.
    ///
    /// # Errors
    /// The operating system's; the old files stay in force.
    pub fn replace_base(
        &mut self,
        temporary: &str,
        is_rdb: bool,
        bytes: u64,
        first: u64,
        keeps_history: bool,
    ) -> io::Result<String> {
        let mut manifest = self.manifest.clone();
        let part = manifest.replace_base(&self.name, is_rdb);
        let increment = if self.is_detached {
            manifest.retire_before(u64::MAX);
            Some(manifest.add_increment(&self.name))
        } else {
            manifest.retire_before(first);
            None
        };
        let path = self.directory.join(&part.name);
        self.disk.rename(&self.directory.join(temporary), &path)?;
        let mut in_force = Ok(());
        if let Some(increment) = &increment {
            in_force = self.file.sync();
            in_force = in_force.and_then(|()| {
                self.disk.rename(&self.directory.join(&self.current), &self.directory.join(&increment.name))
            });
            if in_force.is_ok() {
                self.current.clone_from(&increment.name);
            }
        }
        if let Err(error) = in_force.and_then(|()| self.store(&manifest)) {
            self.manifest.skip_numbers_of(&manifest);
            self.discard(&part.name);
            return Err(error);
        }
        self.manifest = manifest;
        self.is_detached = false;
        // Increments begun while the base was written stay, and their bytes with them; usually there is just one.
        self.before = bytes;
        self.base_bytes = self.bytes();
        if !keeps_history {
            self.remove_history();
        }
        Ok(part.name)
    }

    /// Removes the files that are no longer needed. Gives their names.
    pub fn remove_history(&mut self) -> Vec<String> {
        if self.manifest.history.is_empty() {
            return Vec::new();
        }
        let names: Vec<String> = self.manifest.history.iter().map(|part| part.name.clone()).collect();
        for name in &names {
            // One that cannot be removed costs room, no more.
            let _ = self.disk.remove(&self.directory.join(name));
        }
        let mut manifest = self.manifest.clone();
        manifest.history.clear();
        if self.store(&manifest).is_ok() {
            self.manifest = manifest;
        }
        names
    }

    /// Removes a file that did not come into force. When storing the manifest failed at its last step, the new one may
    /// be there all the same, now or after a power cut: then it names the file, and the file stays.
    fn discard(&self, name: &str) {
        let there = Manifest::load(&*self.disk, &self.directory.join(manifest_name(&self.name)));
        if there.is_ok_and(|manifest| manifest.is_none_or(|manifest| !manifest.names(name)) && self.is_settled()) {
            let _ = self.disk.remove(&self.directory.join(name));
        }
    }

    /// Whether the names in the directory are on disk as they are seen.
    fn is_settled(&self) -> bool {
        self.disk.sync_directory(&self.directory).is_ok()
    }

    fn store(&self, manifest: &Manifest) -> io::Result<()> {
        manifest.store(&*self.disk, &self.directory.join(manifest_name(&self.name)))
    }
}
