//! One set of rights: commands, key patterns and channel patterns that hold together.
//!
//! A user has a root selector and perhaps further ones in parentheses; a command is allowed if one of them allows all of
//! it. Commands are one bit each, so that a check is a shift and a mask; the words that led to the bits are kept beside
//! them, since ACL LIST shows words. Redis: a rule for a whole command takes the place of earlier rules for its
//! subcommands, `+@all` and `-@all` that of all earlier rules.

use super::rules::RuleError;
use commands::CommandId;
use commands::table::{self, Categories, CommandSpec};
use std::fmt::Write as _;

const WORDS: usize = CommandId::COUNT.div_ceil(64);

/// One bit for each command and subcommand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommandBits([u64; WORDS]);

impl CommandBits {
    /// Whether a command's bit is set.
    #[inline]
    pub fn has(&self, id: CommandId) -> bool {
        let index = id.index();
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    fn set(&mut self, id: CommandId, allow: bool) {
        let index = id.index();
        if let Some(word) = self.0.get_mut(index / 64) {
            let bit = 1 << (index % 64);
            *word = if allow { *word | bit } else { *word & !bit };
        }
    }
}

/// What may be done with keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access(u8);

impl Access {
    /// Nothing of the value.
    pub const NONE: Access = Access(0);
    /// Read (`%R~`).
    pub const READ: Access = Access(1);
    /// Write (`%W~`).
    pub const WRITE: Access = Access(2);
    /// Both (`~`).
    pub const ALL: Access = Access(3);

    /// Whether all of `other` is part of it.
    #[inline]
    pub fn covers(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// A key pattern and what it allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPattern {
    /// The pattern.
    pub pattern: Vec<u8>,
    /// What may be done with keys that match.
    pub access: Access,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    /// All keys, for everything.
    pub all_keys: bool,
    /// All channels.
    pub all_channels: bool,
    /// All commands: nothing was taken away since `+@all`.
    pub all_commands: bool,
    /// Allowed commands.
    pub commands: CommandBits,
    /// The last of `+@all` and `-@all` was the first of them.
    starts_with_all: bool,
    /// First arguments with which a command is allowed though its bit is not set.
    first_arguments: Vec<(CommandId, Vec<Vec<u8>>)>,
    /// Key patterns in the order of their rules.
    pub keys: Vec<KeyPattern>,
    /// Channel patterns in the order of their rules.
    pub channels: Vec<Vec<u8>>,
    /// The rules for commands and categories, with their sign.
    rules: Vec<String>,
}

impl Selector {
    /// A selector that allows nothing, but perhaps all channels (`acl-pubsub-default`).
    pub fn new(all_channels: bool) -> Selector {
        Selector {
            all_keys: false,
            all_channels,
            all_commands: false,
            commands: CommandBits::default(),
            starts_with_all: false,
            first_arguments: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// Whether it allows everything there is.
    pub fn allows_everything(&self) -> bool {
        self.all_keys && self.all_channels && self.all_commands
    }

    /// Applies one rule about commands, keys or channels.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => {
                self.all_keys = true;
                self.keys.clear();
            }
            b"resetkeys" => {
                self.all_keys = false;
                self.keys.clear();
            }
            b"allchannels" | b"&*" => {
                self.all_channels = true;
                self.channels.clear();
            }
            b"resetchannels" => {
                self.all_channels = false;
                self.channels.clear();
            }
            b"allcommands" | b"+@all" => self.all_or_nothing(true),
            b"nocommands" | b"-@all" => self.all_or_nothing(false),
            _ => {
                return match rule {
                    [b'~' | b'%', ..] => self.add_key_pattern(rule),
                    [b'&', pattern @ ..] => self.add_channel_pattern(pattern),
                    [b'+', b'@', name @ ..] => self.change_category(name, true),
                    [b'-', b'@', name @ ..] => self.change_category(name, false),
                    [b'+', name @ ..] => self.allow_command(name),
                    [b'-', name @ ..] => {
                        let spec = table::lookup_full_name(name).ok_or(RuleError::UnknownCommand)?;
                        self.change_command(spec, false);
                        self.note_rule(spec.name, false);
                        Ok(())
                    }
                    _ => Err(RuleError::Syntax),
                };
            }
        }
        Ok(())
    }

    fn all_or_nothing(&mut self, allow: bool) {
        self.commands = CommandBits([if allow { u64::MAX } else { 0 }; WORDS]);
        self.all_commands = allow;
        self.starts_with_all = allow;
        self.rules.clear();
        self.first_arguments.clear();
    }

    fn add_key_pattern(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::PatternAfterAllKeys);
        }
        let (access, pattern) = match rule {
            [b'~', pattern @ ..] => (Access::ALL, pattern),
            _ => permission_and_pattern(rule.get(1..).unwrap_or_default())?,
        };
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|known| known.pattern == pattern) {
            Some(known) => known.access = known.access.with(access),
            None => self.keys.push(KeyPattern { pattern: pattern.to_vec(), access }),
        }
        Ok(())
    }

    fn add_channel_pattern(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::PatternAfterAllChannels);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|known| known == pattern) {
            self.channels.push(pattern.to_vec());
        }
        Ok(())
    }

    fn change_category(&mut self, name: &[u8], allow: bool) -> Result<(), RuleError> {
        let category = Categories::by_name(name).ok_or(RuleError::UnknownCommand)?;
        self.note_rule(&format!("@{}", String::from_utf8_lossy(name)), allow);
        for spec in table::top_level() {
            if spec.categories.contains(category) {
                self.change_command(spec, allow);
            }
            for sub in spec.subcommands.iter().filter(|sub| sub.categories.contains(category)) {
                self.change_command(sub, allow);
            }
        }
        Ok(())
    }

    /// `+name`, `+name|subcommand` and `+name|first-argument`.
    fn allow_command(&mut self, name: &[u8]) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let spec = table::lookup_full_name(name).ok_or(RuleError::UnknownCommand)?;
            self.change_command(spec, true);
            self.note_rule(spec.name, true);
            return Ok(());
        };
        let (command, argument) = (name.get(..bar).unwrap_or_default(), name.get(bar + 1..).unwrap_or_default());
        let spec = table::lookup_full_name(command).ok_or(RuleError::UnknownCommand)?;
        if spec.name.contains('|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        if spec.is_container() {
            let sub = table::lookup_sub(spec, argument).ok_or(RuleError::UnknownCommand)?;
            self.change_command(sub, true);
        } else {
            // What has blanks or quotes could not be read back from ACL LIST or a file.
            if has_spaces(argument) || argument.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
                return Err(RuleError::Syntax);
            }
            crate::log!(
                crate::process::log::Level::Warning,
                "Deprecation warning: Allowing a first arg of an otherwise blocked command is a misuse of ACL and may get disabled in the future (offender: +{})",
                String::from_utf8_lossy(name)
            );
            self.allow_first_argument(spec.id, argument);
        }
        self.note_rule(&String::from_utf8_lossy(name), true);
        Ok(())
    }

    fn allow_first_argument(&mut self, id: CommandId, argument: &[u8]) {
        let known = match self.first_arguments.iter_mut().find(|(other, _)| *other == id) {
            Some((_, known)) => known,
            None => {
                self.first_arguments.push((id, Vec::new()));
                let Some((_, known)) = self.first_arguments.last_mut() else { return };
                known
            }
        };
        if !known.iter().any(|other| other.eq_ignore_ascii_case(argument)) {
            known.push(argument.to_vec());
        }
    }

    /// Sets the bits of a command and of its subcommands.
    fn change_command(&mut self, spec: &CommandSpec, allow: bool) {
        self.first_arguments.retain(|(id, _)| *id != spec.id);
        self.commands.set(spec.id, allow);
        for sub in spec.subcommands {
            self.commands.set(sub.id, allow);
        }
        self.all_commands &= allow;
    }

    /// Puts a rule at the end; it takes the place of an equal one and of those for subcommands.
    fn note_rule(&mut self, name: &str, allow: bool) {
        let name = name.to_ascii_lowercase();
        let is_replaced = |rule: &String| {
            rule.get(1..)
                .and_then(|rule| rule.strip_prefix(name.as_str()))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        };
        self.rules.retain(|rule| !is_replaced(rule));
        self.rules.push(format!("{}{name}", if allow { '+' } else { '-' }));
    }

    /// Whether a command's first argument makes it allowed though the command is not. `first` is the argument behind
    /// the name.
    pub fn allows_first_argument(&self, id: CommandId, first: Option<&[u8]>) -> bool {
        let Some(first) = first else { return false };
        self.first_arguments
            .iter()
            .any(|(other, allowed)| *other == id && allowed.iter().any(|word| word.eq_ignore_ascii_case(first)))
    }

    // ---- as text -------------------------------------------------------------------------------------------------

    /// The rules about commands, as they could be given again.
    pub fn describe_commands(&self) -> String {
        let mut text = String::from(if self.starts_with_all { "+@all" } else { "-@all" });
        for rule in &self.rules {
            // Writing to a string cannot fail.
            let _ = write!(text, " {rule}");
        }
        text
    }

    /// The key patterns, a blank between two.
    pub fn describe_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let rules: Vec<Vec<u8>> = self
            .keys
            .iter()
            .map(|key| {
                let prefix: &[u8] = match key.access {
                    Access::READ => b"%R~",
                    Access::WRITE => b"%W~",
                    _ => b"~",
                };
                [prefix, &key.pattern].concat()
            })
            .collect();
        rules.join(&b' ')
    }

    /// The channel patterns, a blank between two.
    pub fn describe_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        self.channels.iter().map(|channel| [b"&", channel.as_slice()].concat()).collect::<Vec<_>>().join(&b' ')
    }

    /// All rules, as they could be given again.
    pub fn describe(&self) -> Vec<u8> {
        let mut text = self.describe_keys();
        if !text.is_empty() {
            text.push(b' ');
        }
        if !self.all_channels {
            text.extend_from_slice(b"resetchannels ");
        }
        let channels = self.describe_channels();
        text.extend_from_slice(&channels);
        if !channels.is_empty() {
            text.push(b' ');
        }
        text.extend_from_slice(self.describe_commands().as_bytes());
        text
    }
}

/// The letters behind `%` and the pattern behind `~`. Redis: without `~` the pattern is empty. A rule without letters
/// is refused, as in the releases after 7.2.5 (CVE-2024-51741).
fn permission_and_pattern(text: &[u8]) -> Result<(Access, &[u8]), RuleError> {
    let mut access = Access::NONE;
    for (index, byte) in text.iter().enumerate() {
        let letter = match byte {
            b'r' | b'R' => Access::READ,
            b'w' | b'W' => Access::WRITE,
            b'~' if access != Access::NONE => return Ok((access, text.get(index + 1..).unwrap_or_default())),
            _ => return Err(RuleError::Syntax),
        };
        if access.covers(letter) {
            return Err(RuleError::Syntax);
        }
        access = access.with(letter);
    }
    if access == Access::NONE { Err(RuleError::Syntax) } else { Ok((access, &[])) }
}

/// Whether a name or pattern has what would cut it in two when it is read back.
pub(super) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0))
}
