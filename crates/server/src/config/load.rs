//! From the command line and the files it names to a [`Config`], or to the message that ends the start.
//!
//! As in Redis, file, standard input and options are put one after the other into one text, which is
//! then read line by line: the last word on a directive counts, and line numbers in messages count
//! through that text. An `include` is read at once, with line numbers of its own.

use std::collections::HashSet;
use std::io::{Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::directive::find;
use super::split::{push_quoted, split_arguments, trim};
use super::store::{change_directory, normalize, warnings_about};
use super::table::{Config, DIRECTIVES, RETIRED};
use super::{Kind, expand};
use crate::process::log::Level;
use crate::process::{REDIS_VERSION, banner, error_text};

/// How deep includes may nest; a file that includes itself is told so instead of exhausting the stack.
const INCLUDE_DEPTH_MAX: usize = 64;

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Run a server.
    Run(Box<Startup>),
    /// Print this and leave with the code.
    Print {
        /// The whole text.
        text: String,
        /// Whether it goes to standard output rather than to standard error.
        to_stdout: bool,
        /// The exit code.
        code: i32,
    },
    /// Tell what the server takes, `--help`.
    Help,
    /// Check the machine, `--check-system`.
    CheckSystem,
    /// Test some memory, `--test-memory`.
    TestMemory {
        /// How much, in MiB.
        mebibytes: u64,
    },
}

/// Everything a server needs to know to start.
#[derive(Debug)]
pub struct Startup {
    /// The values of all directives.
    pub config: Config,
    /// The absolute path of the configuration file, if one was named.
    pub config_file: Option<PathBuf>,
    /// Whether there were any arguments at all.
    pub had_arguments: bool,
    /// `rename-command`: old name and new name, which is empty when the command goes away.
    pub renamed_commands: Vec<(Vec<u8>, Vec<u8>)>,
    /// `user`: the words after the directive.
    pub users: Vec<Vec<Vec<u8>>>,
    /// Lines to log once the log is set up.
    pub notices: Vec<(Level, String)>,
}

/// Why a server cannot start; the exit code is 1.
#[derive(Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// A text for standard error: something is wrong with a line.
    Fatal(Vec<u8>),
    /// A line for the log at warning level, as when a file cannot be read.
    Log(String),
}

impl LoadFailure {
    /// Tells the user, on standard error or in the log.
    pub fn report(&self) {
        match self {
            // Nobody is left to tell if standard error is closed.
            LoadFailure::Fatal(text) => drop(std::io::stderr().write_all(text)),
            LoadFailure::Log(line) => crate::log!(Level::Warning, "{line}"),
        }
    }
}

/// Reads the command line of `oxidis server`, and the files it names.
///
/// `arguments` are those after the program (and after the subcommand). `stdin` is read if a `-` asks
/// for it. `command_exists` tells whether a name, in lower case, is a command that can be renamed.
pub fn load(
    arguments: &[Vec<u8>],
    stdin: &mut dyn Read,
    command_exists: &dyn Fn(&[u8]) -> bool,
) -> Result<Invocation, LoadFailure> {
    if let Some(special) = special_invocation(arguments) {
        return Ok(special);
    }
    let mut options = arguments;
    let mut config_file = None;
    if let Some((first, rest)) = arguments.split_first()
        && first.first() != Some(&b'-')
    {
        let path = Path::new(std::ffi::OsStr::from_bytes(first));
        config_file = Some(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
        options = rest;
    }
    let command_line = CommandLine::parse(options, config_file.is_none());

    let mut loader = Loader::new(command_exists);
    let mut text = Vec::new();
    if let Some(path) = &config_file {
        text = read_files(path.as_os_str().as_bytes())?;
    }
    if command_line.wants_stdin {
        loader.notices.push((Level::Notice, "Reading config from stdin".into()));
        stdin.read_to_end(&mut text).map_err(|error| {
            LoadFailure::Log(format!("Fatal error, can't read config from stdin: {}", error_text(&error)))
        })?;
    }
    if !arguments.is_empty() {
        text.push(b'\n');
        text.extend_from_slice(&command_line.lines);
    }
    loader.read(&text, 0)?;
    loader.finish(config_file, !arguments.is_empty())
}

fn special_invocation(arguments: &[Vec<u8>]) -> Option<Invocation> {
    let print = |text, to_stdout, code| Some(Invocation::Print { text, to_stdout, code });
    match arguments.first()?.as_slice() {
        b"-v" | b"--version" => print(banner::version_line(), true, 0),
        b"-h" | b"--help" => Some(Invocation::Help),
        b"--check-system" => Some(Invocation::CheckSystem),
        b"--test-memory" => {
            let amount = match arguments {
                [_, amount] => std::str::from_utf8(amount).ok()?.parse().ok(),
                _ => None,
            };
            match amount {
                Some(mebibytes) => Some(Invocation::TestMemory { mebibytes }),
                None => print(banner::memory_test_usage(), false, 1),
            }
        }
        _ => None,
    }
}

/// The options of the command line, turned into lines of configuration.
struct CommandLine {
    lines: Vec<u8>,
    wants_stdin: bool,
}

impl CommandLine {
    /// `dash_may_lead`: a `-` right at the start counts, because no file stands before it.
    fn parse(options: &[Vec<u8>], dash_may_lead: bool) -> Self {
        let mut lines = Vec::new();
        let mut wants_stdin = false;
        // An argument that starts with two dashes is a value if the directive before has none yet.
        let mut expects_value = false;
        for (index, option) in options.iter().enumerate() {
            let is_last = index + 1 == options.len();
            if option == b"-" && (is_last || (index == 0 && dash_may_lead)) {
                wants_stdin = true;
                continue;
            }
            let Some(directive) = option.strip_prefix(b"--").filter(|_| !expects_value) else {
                push_quoted(&mut lines, option);
                lines.push(b' ');
                expects_value = false;
                continue;
            };
            if !lines.is_empty() {
                lines.push(b'\n');
            }
            lines.extend_from_slice(directive);
            lines.push(b' ');
            expects_value = split_arguments(option).is_some_and(|words| words.len() == 1);
            let next_is_option = options.get(index + 1).is_some_and(|next| next.starts_with(b"--"));
            if expects_value && option.eq_ignore_ascii_case(b"--save") && (is_last || next_is_option) {
                // `--save` without a value switches snapshots off, as it did before 7.0.
                lines.extend_from_slice(b"\"\"");
                expects_value = false;
            }
            if expects_value && option.eq_ignore_ascii_case(b"--sentinel") && next_is_option {
                expects_value = false;
            }
        }
        Self { lines, wants_stdin }
    }
}

/// Reads the file at `path`, or all files that it matches if it has wildcards.
fn read_files(path: &[u8]) -> Result<Vec<u8>, LoadFailure> {
    let mut paths = vec![path.to_vec()];
    if path.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
        paths = expand::expand(path);
    }
    let mut text = Vec::new();
    for path in paths {
        std::fs::File::open(std::ffi::OsStr::from_bytes(&path))
            .and_then(|mut file| file.read_to_end(&mut text))
            .map_err(|error| {
                LoadFailure::Log(format!(
                    "Fatal error, can't open config file '{}': {}",
                    String::from_utf8_lossy(&path),
                    error_text(&error)
                ))
            })?;
    }
    Ok(text)
}

struct Loader<'a> {
    config: Config,
    command_exists: &'a dyn Fn(&[u8]) -> bool,
    /// Whether a `save` line was seen: the first replaces the defaults, others add to it.
    saw_save: bool,
    /// The names that commands have lost and gained.
    removed_names: HashSet<Vec<u8>>,
    added_names: HashSet<Vec<u8>>,
    renamed_commands: Vec<(Vec<u8>, Vec<u8>)>,
    users: Vec<Vec<Vec<u8>>>,
    modules: Vec<Vec<u8>>,
    retired: HashSet<&'static str>,
    notices: Vec<(Level, String)>,
}

/// Why a line cannot be obeyed.
enum LineError {
    /// With this text, and the line.
    Text(String),
    /// Something that was reported with its own place, such as an error in an included file.
    Nested(LoadFailure),
}

impl From<&str> for LineError {
    fn from(text: &str) -> Self {
        LineError::Text(text.to_owned())
    }
}

impl<'a> Loader<'a> {
    fn new(command_exists: &'a dyn Fn(&[u8]) -> bool) -> Self {
        Self {
            config: Config::default(),
            command_exists,
            saw_save: false,
            removed_names: HashSet::new(),
            added_names: HashSet::new(),
            renamed_commands: Vec::new(),
            users: Vec::new(),
            modules: Vec::new(),
            retired: HashSet::new(),
            notices: Vec::new(),
        }
    }

    fn read(&mut self, text: &[u8], depth: usize) -> Result<(), LoadFailure> {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = trim(line);
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.line(line, depth).map_err(|error| match error {
                LineError::Text(error) => fatal(Some((index + 1, line)), &error),
                LineError::Nested(failure) => failure,
            })?;
        }
        self.check_whole().map_err(|error| fatal(None, &error))
    }

    fn line(&mut self, line: &[u8], depth: usize) -> Result<(), LineError> {
        let words = split_arguments(line).ok_or("Unbalanced quotes in configuration line")?;
        let Some((name, arguments)) = words.split_first() else {
            return Ok(());
        };
        let name = name.to_ascii_lowercase();
        if let Some(named) = find(&name) {
            return self.directive(named.directive, arguments);
        }
        if let Some(retired) = RETIRED.iter().find(|retired| retired.as_bytes() == name)
            && arguments.len() == 1
        {
            self.retired.insert(retired);
            return Ok(());
        }
        self.statement(&name, arguments, depth)
    }

    fn directive(&mut self, directive: &super::Directive, arguments: &[Vec<u8>]) -> Result<(), LineError> {
        let kind = directive.kind;
        if !kind.is_multi_argument() && arguments.len() != 1 {
            return Err("wrong number of arguments".into());
        }
        let split;
        let arguments = match arguments {
            // One quoted argument may hold all the arguments, as in --bind "127.0.0.1 ::1".
            [only] if kind.is_multi_argument() && !only.is_empty() => {
                split = split_arguments(only).unwrap_or_default();
                &split
            }
            _ => arguments,
        };
        match kind {
            Kind::Directory => {
                let path = arguments.first().map_or(&b""[..], Vec::as_slice);
                self.config.dir = change_directory(path).map_err(LineError::Text)?;
            }
            Kind::SavePoints => {
                let earlier = std::mem::take(&mut self.config.save);
                directive.set(&mut self.config, arguments).map_err(LineError::Text)?;
                let is_reset = matches!(arguments, [only] if only.is_empty());
                if self.saw_save && !is_reset {
                    let added = std::mem::replace(&mut self.config.save, earlier);
                    self.config.save.extend(added);
                }
                self.saw_save = true;
            }
            _ => {
                directive.set(&mut self.config, arguments).map_err(LineError::Text)?;
            }
        }
        Ok(())
    }

    fn statement(&mut self, name: &[u8], arguments: &[Vec<u8>], depth: usize) -> Result<(), LineError> {
        match (name, arguments) {
            (b"include", [path]) => {
                if depth >= INCLUDE_DEPTH_MAX {
                    return Err("Too many nested include directives".into());
                }
                let text = read_files(path).map_err(LineError::Nested)?;
                self.read(&text, depth + 1).map_err(LineError::Nested)
            }
            (b"rename-command", [old, new]) => self.rename_command(old, new),
            (b"user", [_, ..]) => {
                crate::acl::file::check_declaration(arguments, &self.users).map_err(|(index, error)| {
                    // Redis: the index counts the words of the line, this one included.
                    let shown = if index == 0 { name } else { arguments.get(index - 1).map_or(name, Vec::as_slice) };
                    LineError::Text(format!("Error in user declaration '{}': {error}", String::from_utf8_lossy(shown)))
                })?;
                self.users.push(arguments.to_vec());
                Ok(())
            }
            (b"loadmodule", [path, ..]) => {
                self.modules.push(path.clone());
                Ok(())
            }
            (name, []) if name.contains(&b'.') => Err("Module config specified without value".into()),
            (b"sentinel", [_, ..]) => Err("sentinel directive while not in sentinel mode".into()),
            (name, _) => {
                let known = super::directive::all_names().map(|named| named.name);
                let meant = options::nearest(&String::from_utf8_lossy(name), known);
                let hint = meant.map(|meant| format!("\nDid you mean '{meant}'?")).unwrap_or_default();
                Err(LineError::Text(format!("Bad directive or wrong number of arguments{hint}")))
            }
        }
    }

    fn rename_command(&mut self, old: &[u8], new: &[u8]) -> Result<(), LineError> {
        let (old, new) = (old.to_ascii_lowercase(), new.to_ascii_lowercase());
        if !self.is_command(&old) {
            return Err("No such command in rename-command".into());
        }
        self.added_names.remove(&old);
        self.removed_names.insert(old.clone());
        if !new.is_empty() {
            if self.is_command(&new) {
                return Err("Target command name already exists".into());
            }
            self.removed_names.remove(&new);
            self.added_names.insert(new.clone());
        }
        self.renamed_commands.push((old, new));
        Ok(())
    }

    fn is_command(&self, name: &[u8]) -> bool {
        self.added_names.contains(name) || (!self.removed_names.contains(name) && (self.command_exists)(name))
    }

    /// What can only be judged when a whole file was read.
    fn check_whole(&mut self) -> Result<(), String> {
        if !self.config.logfile.is_empty() {
            let path = std::ffi::OsStr::from_bytes(&self.config.logfile);
            std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|error| format!("Can't open the log file: {}", error_text(&error)))?;
        }
        if self.config.cluster_enabled && self.config.replicaof.is_some() {
            return Err("replicaof directive not allowed in cluster mode".into());
        }
        if self.config.cluster_enabled && self.config.databases > 1 {
            let databases = self.config.databases;
            self.notices.push((
                Level::Warning,
                format!("WARNING: Changing databases number from {databases} to 1 since we are in cluster mode"),
            ));
            self.config.databases = 1;
        }
        normalize(&mut self.config);
        Ok(())
    }

    fn finish(mut self, config_file: Option<PathBuf>, had_arguments: bool) -> Result<Invocation, LoadFailure> {
        if let Some(module) = self.modules.first() {
            let module = String::from_utf8_lossy(module);
            return Err(LoadFailure::Log(format!("Can't load module from {module}: server aborting")));
        }
        let default = Config::default();
        // The directory is not compared: it has just been changed to.
        let changed = DIRECTIVES.iter().filter(|directive| directive.is_changed(&self.config, &default));
        let mut warnings: Vec<String> = warnings_about(&self.config, changed);
        let retired = RETIRED.iter().filter(|name| self.retired.contains(*name));
        warnings.extend(retired.map(|name| {
            format!("WARNING: the directive '{name}' is accepted but has no effect: Redis 7.2 retired it.")
        }));
        self.notices.extend(warnings.into_iter().map(|line| (Level::Warning, line)));
        Ok(Invocation::Run(Box::new(Startup {
            config: self.config,
            config_file,
            had_arguments,
            renamed_commands: self.renamed_commands,
            users: self.users,
            notices: self.notices,
        })))
    }
}

fn fatal(place: Option<(usize, &[u8])>, error: &str) -> LoadFailure {
    let mut text = format!("\n*** FATAL CONFIG FILE ERROR (Redis {REDIS_VERSION}) ***\n").into_bytes();
    if let Some((number, line)) = place {
        text.extend_from_slice(format!("Reading the configuration file, at line {number}\n>>> '").as_bytes());
        text.extend_from_slice(line);
        text.extend_from_slice(b"'\n");
    }
    text.extend_from_slice(error.as_bytes());
    text.push(b'\n');
    LoadFailure::Fatal(text)
}
