//! Shell patterns of file names, for `include conf.d/*.conf`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use keyspace::glob;

/// All paths that match `pattern`, in order of their bytes; none if nothing does.
///
/// Each part between slashes is matched by itself, and a leading dot only by a dot.
pub(super) fn expand(pattern: &[u8]) -> Vec<Vec<u8>> {
    let absolute = pattern.starts_with(b"/");
    let mut found = vec![if absolute { b"/".to_vec() } else { Vec::new() }];
    let parts: Vec<&[u8]> = pattern.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    for part in parts {
        let mut next = Vec::new();
        for prefix in &found {
            if part.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
                next.extend(matching_names(prefix, part).into_iter().map(|name| join(prefix, &name)));
            } else {
                next.push(join(prefix, part));
            }
        }
        found = next;
    }
    found.retain(|path| Path::new(OsStr::from_bytes(path)).exists());
    found.sort();
    found
}

fn matching_names(folder: &[u8], pattern: &[u8]) -> Vec<Vec<u8>> {
    let folder = if folder.is_empty() { b"." } else { folder };
    let Ok(entries) = std::fs::read_dir(OsStr::from_bytes(folder)) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().as_bytes().to_vec())
        .filter(|name| !name.starts_with(b".") || pattern.starts_with(b"."))
        .filter(|name| glob::matches(pattern, name, false))
        .collect()
}

fn join(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = prefix.to_vec();
    if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
