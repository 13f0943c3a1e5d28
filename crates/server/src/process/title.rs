//! What the process list shows: `proc-title-template`, expanded.
//!
//! The title is written over the memory of the original arguments and cut to their length, so it can
//! be shorter than Redis's, which also takes over the memory of the environment. The short name of the
//! process, as `top` shows it, is set as well.

use std::ffi::CString;

use super::sys;
use crate::config::Config;

/// The name that tools look for in the process list.
const SHORT_NAME: &str = "oxidis-server";

/// Whether a template has balanced braces, known variables only, and is not empty when expanded.
#[must_use]
pub fn is_valid(template: &[u8]) -> bool {
    // A variable may be empty, so only the text around variables counts, and {title} is empty here.
    let value = |name: &[u8]| match name {
        b"title" | b"server-mode" | b"unixsocket" => Some(Vec::new()),
        b"listen-addr" => Some(b"*:0".to_vec()),
        b"config-file" => Some(b"-".to_vec()),
        b"port" | b"tls-port" => Some(b"0".to_vec()),
        _ => None,
    };
    expand_with(template, &value).is_some_and(|title| !title.is_empty())
}

/// The title for a configuration. `program` is the name the server was started by. `None`: the
/// template is not valid.
#[must_use]
pub fn expand(config: &Config, program: &[u8], config_file: Option<&[u8]>) -> Option<Vec<u8>> {
    let port = if config.port == 0 { config.tls_port } else { config.port };
    let value = |name: &[u8]| match name {
        b"title" => Some(program.to_vec()),
        b"listen-addr" if port == 0 => Some([b"unixsocket:", config.unixsocket.as_slice()].concat()),
        b"listen-addr" => {
            let address = config.bind.first().map_or(&b"*"[..], Vec::as_slice);
            Some([address, format!(":{port}").as_bytes()].concat())
        }
        b"server-mode" => Some(if config.cluster_enabled { b"[cluster]".to_vec() } else { Vec::new() }),
        b"config-file" => Some(config_file.unwrap_or(b"-").to_vec()),
        b"port" => Some(config.port.to_string().into_bytes()),
        b"tls-port" => Some(config.tls_port.to_string().into_bytes()),
        b"unixsocket" => Some(config.unixsocket.clone()),
        _ => None,
    };
    expand_with(template_of(config), &value)
}

/// Shows the title in the process list, as far as the system lets us. To be called early in main, and
/// again when address or template change; nobody may be reading the process arguments meanwhile.
pub fn show(config: &Config, program: &[u8], config_file: Option<&[u8]>) {
    if !config.set_proc_title {
        return;
    }
    if let Ok(name) = CString::new(SHORT_NAME) {
        sys::set_thread_name(&name);
    }
    if let Some(title) = expand(config, program, config_file) {
        // Without a title the arguments stay visible, which is no harm.
        drop(sys::overwrite_arguments(&title));
    }
}

fn template_of(config: &Config) -> &[u8] {
    &config.proc_title_template
}

/// Replaces `{name}` by its value and `{{` by a brace, and trims blanks at the ends.
fn expand_with(template: &[u8], value: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut title = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
        let (before, tail) = rest.split_at(open);
        title.extend_from_slice(before);
        rest = tail.get(1..)?;
        if let Some(tail) = rest.strip_prefix(b"{") {
            title.push(b'{');
            rest = tail;
            continue;
        }
        let close = rest.iter().position(|byte| *byte == b'}')?;
        let (name, tail) = rest.split_at(close);
        title.extend_from_slice(&value(name)?);
        rest = tail.get(1..)?;
    }
    title.extend_from_slice(rest);
    let start = title.iter().take_while(|byte| **byte == b' ').count();
    let mut title = title.split_off(start);
    while title.last() == Some(&b' ') {
        title.pop();
    }
    Some(title)
}
