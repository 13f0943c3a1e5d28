//! Checks of single text values beyond their being text. The texts are Redis's.

use crate::process::title;

/// The longest host name that may be announced, in bytes, plus one.
const HOST_NAME_LIMIT: usize = 256;

fn is_base_name(path: &[u8]) -> bool {
    !path.contains(&b'/') && !path.contains(&b'\\')
}

pub(super) fn snapshot_file_name(name: &[u8]) -> Result<(), &'static str> {
    if is_base_name(name) { Ok(()) } else { Err("dbfilename can't be a path, just a filename") }
}

pub(super) fn append_file_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        [] => Err("appendfilename can't be empty"),
        name if !is_base_name(name) => Err("appendfilename can't be a path, just a filename"),
        _ => Ok(()),
    }
}

pub(super) fn append_directory_name(name: &[u8]) -> Result<(), &'static str> {
    match name {
        [] => Err("appenddirname can't be empty"),
        name if !is_base_name(name) => Err("appenddirname can't be a path, just a dirname"),
        _ => Ok(()),
    }
}

pub(super) fn announced_host_name(name: &[u8]) -> Result<(), &'static str> {
    if name.len() >= HOST_NAME_LIMIT {
        return Err("Hostnames must be less than 256 characters");
    }
    if name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        Ok(())
    } else {
        Err("Hostnames may only contain alphanumeric characters, hyphens or dots")
    }
}

pub(super) fn announced_node_name(name: &[u8]) -> Result<(), &'static str> {
    // The characters that separate fields in the file of cluster nodes.
    if name.iter().any(|byte| b"!#$%&()*+:;<>?@[]^{|}~".contains(byte)) {
        Err("Announced human node name contained invalid character")
    } else {
        Ok(())
    }
}

pub(super) fn process_title(template: &[u8]) -> Result<(), &'static str> {
    if title::is_valid(template) { Ok(()) } else { Err("template format is invalid or contains unknown variables") }
}
