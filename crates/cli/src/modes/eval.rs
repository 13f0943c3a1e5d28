//! `--eval`: EVAL of the script in a file; a comma stands between keys and arguments.

use std::path::Path;

use crate::output::{Outcome, fail, os_text};
use crate::run_once;
use crate::session::Session;

/// Sends the script.
pub(super) fn run(session: &mut Session, path: &Path) -> Outcome<()> {
    session.connect_or_exit()?;
    let script = match std::fs::read(path) {
        Ok(script) => script,
        Err(error) => return fail(format_args!("Can't open file '{}': {}", path.display(), os_text(&error))),
    };
    let words = &session.options.words;
    let comma = words.iter().position(|word| word == b",");
    let keys = comma.unwrap_or(words.len());
    let mut arguments = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    let behind = words.iter().enumerate().filter(|(index, _)| Some(*index) != comma).map(|(_, word)| word.clone());
    arguments.extend(behind);
    run_once(session, &arguments)
}
