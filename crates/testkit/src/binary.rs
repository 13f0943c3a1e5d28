//! Finds the programs that tests start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Name of the variable that says which binary is under test.
pub const OXIDIS_BIN: &str = "OXIDIS_BIN";

/// The binary under test: `$OXIDIS_BIN`, else `oxidis` in the target directory of the running
/// test, else one that `cargo build -p oxidis` makes there, once per process.
///
/// # Panics
/// When the binary is absent and cannot be built.
pub fn oxidis() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| match find_oxidis() {
        Ok(path) => path,
        Err(problem) => panic!("{problem}"),
    })
}

fn find_oxidis() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(OXIDIS_BIN) {
        let path = PathBuf::from(path);
        return if path.is_file() { Ok(path) } else { Err(format!("{OXIDIS_BIN}={} is not a file", path.display())) };
    }
    let exe = std::env::current_exe().map_err(|e| format!("where is this test? {e}"))?;
    let profile_dir = exe
        .ancestors()
        .skip(1)
        .find(|dir| dir.file_name().is_some_and(|name| name != "deps"))
        .ok_or("the test binary has no directory")?;
    let path = profile_dir.join("oxidis");
    if path.is_file() {
        return Ok(path);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "-p", "oxidis"])
        .status()
        .map_err(|e| format!("cannot run cargo to build oxidis: {e}"))?;
    if status.success() && path.is_file() {
        return Ok(path);
    }
    Err(format!("no binary at {}; build it with `cargo build -p oxidis` or set {OXIDIS_BIN}", path.display()))
}

/// A program of the peer packages (`redis-server`, `redis-cli`, …): `$REDIS_BIN_DIR/NAME`, else
/// the first on `$PATH`.
pub fn peer(name: &str) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("REDIS_BIN_DIR") {
        let path = Path::new(&dir).join(name);
        if path.is_file() {
            return Some(path);
        }
    }
    on_path(name)
}

/// The first executable of that name on `$PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}
