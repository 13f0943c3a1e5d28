//! From the command line and its file to a [`Config`].
//!
//! Lines with the proxy's own directives are taken out; the rest goes, line by line, through the server's reader, so quoting,
//! `include`, `user` lines and error texts are the same.

use std::path::PathBuf;

use server::config as of_server;
use server::process::log::Level;

use super::table::{Config, OWN, Own, SHARED};

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Run a proxy.
    Run(Box<Startup>),
    /// Tell what it takes.
    Help,
    /// Tell the version.
    Version,
}

/// What a proxy needs to know to start.
#[derive(Debug)]
pub struct Startup {
    /// The values of all directives.
    pub config: Config,
    /// The absolute path of the configuration file, if one was named.
    pub config_file: Option<PathBuf>,
    /// `user` lines: the words after the directive.
    pub users: Vec<Vec<Vec<u8>>>,
    /// Lines to log once the log is set up.
    pub notices: Vec<(Level, String)>,
}

/// Reads the command line of `oxidis proxy`: an optional file, then directives as options.
///
/// # Errors
/// What is wrong, for the user.
pub fn load(arguments: &[Vec<u8>]) -> Result<Invocation, String> {
    match arguments.first().map(Vec::as_slice) {
        Some(b"-h" | b"--help") => return Ok(Invocation::Help),
        Some(b"-v" | b"--version") => return Ok(Invocation::Version),
        _ => {}
    }
    let mut options = arguments;
    let mut config_file = None;
    let mut text = Vec::new();
    if let Some((first, rest)) = arguments.split_first()
        && first.first() != Some(&b'-')
    {
        let path = PathBuf::from(String::from_utf8_lossy(first).into_owned());
        text = std::fs::read(&path).map_err(|error| {
            format!("can't open config file '{}': {}", path.display(), server::process::error_text(&error))
        })?;
        config_file = Some(std::path::absolute(&path).unwrap_or(path));
        options = rest;
    }
    // They begin with a line end.
    text.extend(lines_of(options)?);
    let mut config = Config::default();
    let shared = take_own(&text, &mut config)?;
    let startup = load_shared(&shared)?;
    config.base = startup.config;
    Ok(Invocation::Run(Box::new(Startup { config, config_file, users: startup.users, notices: startup.notices })))
}

/// Options as lines of a configuration file.
fn lines_of(options: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let mut lines = Vec::new();
    let mut values = usize::MAX;
    for option in options {
        match option.strip_prefix(b"--") {
            // What follows a directive at once is its value, whatever it begins with.
            Some(name) if values != 0 => {
                lines.push(b'\n');
                lines.extend_from_slice(name);
                values = 0;
            }
            _ if values == usize::MAX => {
                return Err(format!(
                    "'{}' is no option: options are --DIRECTIVE VALUE",
                    String::from_utf8_lossy(option)
                ));
            }
            _ => {
                lines.push(b' ');
                of_server::push_quoted(&mut lines, option);
                values += 1;
            }
        }
    }
    lines.push(b'\n');
    Ok(lines)
}

/// Takes the proxy's own directives out of a text, and leaves empty lines in their places.
fn take_own(text: &[u8], config: &mut Config) -> Result<Vec<u8>, String> {
    let mut rest = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let in_line = |why: &str| format!("line {}: '{}': {why}", index + 1, String::from_utf8_lossy(line).trim());
        let is_comment = line.trim_ascii().starts_with(b"#");
        let words = if is_comment { Some(Vec::new()) } else { of_server::split_arguments(line) };
        let words = words.ok_or_else(|| in_line("unbalanced quotes"))?;
        if let Some((name, arguments)) = words.split_first() {
            if let Some(own) = Own::find(name) {
                // The value of `topology` has several words; a quoted one is one.
                let value = arguments.join(&b' ');
                let is_whole = arguments.len() == 1 || own.name == "topology";
                if !is_whole {
                    return Err(in_line("wrong number of arguments"));
                }
                own.set(config, &[value]).map_err(|why| in_line(&why))?;
            } else if is_known(name) {
                rest.extend_from_slice(line);
            } else {
                return Err(in_line(&unknown(name)));
            }
        }
        rest.push(b'\n');
    }
    Ok(rest)
}

fn is_known(name: &[u8]) -> bool {
    [&b"user"[..], b"include"].iter().any(|word| name.eq_ignore_ascii_case(word))
        || of_server::find(name).is_some_and(|named| SHARED.contains(&named.directive.name))
}

fn unknown(name: &[u8]) -> String {
    if of_server::find(name).is_some() {
        return "a directive of the server that a proxy does not have".to_owned();
    }
    let known = OWN.iter().map(|own| own.name).chain(SHARED.iter().copied());
    let meant = options::nearest(&String::from_utf8_lossy(name), known);
    let hint = meant.map(|meant| format!(". Did you mean '{meant}'?")).unwrap_or_default();
    format!("no such directive{hint}")
}

fn load_shared(text: &[u8]) -> Result<of_server::Startup, String> {
    let exists = |name: &[u8]| commands::table::lookup(name).is_some();
    match of_server::load(&[b"-".to_vec()], &mut &*text, &exists) {
        Ok(of_server::Invocation::Run(startup)) => Ok(*startup),
        Ok(_) => Err("the configuration cannot be read".to_owned()),
        Err(of_server::LoadFailure::Fatal(text)) => Err(String::from_utf8_lossy(&text).trim().to_owned()),
        Err(of_server::LoadFailure::Log(line)) => Err(line),
    }
}
