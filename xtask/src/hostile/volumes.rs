//! File systems that a row may fill, break, or cut the power of.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use testkit::process;

/// A small file system in memory; unmounted when dropped.
pub(super) struct Small {
    directory: TempDir,
}

/// A file system in a file, whose power can be cut; unmounted when dropped.
pub(super) struct Volume {
    directory: TempDir,
    generation: u32,
    is_mounted: bool,
}

/// What a row answers where it has not the right to mount.
pub(super) const NO_RIGHT: &str = "skipped: no right to mount file systems here";

/// Whether file systems can be mounted here.
pub(super) fn may_mount() -> bool {
    Small::mount("64k").is_ok()
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let output = Command::new(program).args(args).output().with_context(|| program.to_owned())?;
    if !output.status.success() {
        bail!("{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

impl Small {
    /// Mounts one of `size`, as mount(8) writes sizes.
    pub(super) fn mount(size: &str) -> Result<Small> {
        let directory = tempfile::tempdir()?;
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", shown(directory.path())])?;
        Ok(Small { directory })
    }

    /// Where it is mounted.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Fills it to the last byte; the file that does it is returned.
    pub(super) fn fill(&self) -> Result<PathBuf> {
        use std::io::Write;
        let path = self.path().join("filler");
        let mut file = std::fs::File::create(&path)?;
        let piece = vec![b'x'; 4096];
        while file.write_all(&piece).is_ok() {}
        while file.write_all(b"x").is_ok() {}
        Ok(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", shown(self.path())]);
    }
}

impl Volume {
    /// Makes an ext4 of 64 MiB and mounts it.
    pub(super) fn mount() -> Result<Volume> {
        let directory = tempfile::tempdir()?;
        let mut volume = Volume { directory, generation: 0, is_mounted: false };
        let image = volume.image();
        std::fs::File::create(&image)?.set_len(64 << 20)?;
        std::fs::create_dir(volume.path())?;
        run("mkfs.ext4", &["-q", "-F", shown(&image)])?;
        volume.attach()?;
        Ok(volume)
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join(format!("image{}", self.generation))
    }

    /// Where it is mounted.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    fn attach(&mut self) -> Result<()> {
        run("mount", &["-o", "loop", shown(&self.image()), shown(&self.path())])?;
        self.is_mounted = true;
        Ok(())
    }

    /// Cuts the power. Nobody may have a call under way that waits for the disk: see [`process::freeze`].
    pub(super) fn cut_power(&self) -> Result<()> {
        process::cut_power(&self.path()).context("cutting the power")
    }

    /// Brings the power back, once nobody has a file open: what was not on disk is gone. The image is copied first, since
    /// the kernel may remember the dead file system by the old one.
    pub(super) fn restore_power(&mut self) -> Result<()> {
        run("umount", &[shown(&self.path())])?;
        self.is_mounted = false;
        let old = self.image();
        self.generation += 1;
        run("cp", &["--sparse=always", shown(&old), shown(&self.image())])?;
        std::fs::remove_file(&old)?;
        self.attach()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = run("umount", &["-l", shown(&self.path())]);
        }
    }
}
