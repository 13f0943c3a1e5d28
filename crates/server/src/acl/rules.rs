//! What one user may do and how it logs in; the words of ACL SETUSER.

use super::selector::Selector;
use crate::config::split_arguments;
use sha2::{Digest as _, Sha256};

/// Hexadecimal digits of a SHA-256 hash.
const HASH_DIGITS: usize = 64;

/// A password as it is kept: the hexadecimal digits of its SHA-256.
pub type PasswordHash = [u8; HASH_DIGITS];

/// Why a rule is not understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleError {
    /// No such word, or a pattern with blanks.
    Syntax,
    /// No such command or category.
    UnknownCommand,
    /// A key pattern though all keys are allowed.
    PatternAfterAllKeys,
    /// A channel pattern though all channels are allowed.
    PatternAfterAllChannels,
    /// A password to be removed that is not there.
    NoSuchPassword,
    /// Not a hash.
    BadHash,
    /// `+container|subcommand|argument`.
    FirstArgumentOfSubcommand,
}

impl RuleError {
    /// Redis' text.
    pub fn text(self) -> &'static str {
        match self {
            RuleError::Syntax => "Syntax error",
            RuleError::UnknownCommand => "Unknown command or category name in ACL",
            RuleError::PatternAfterAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::PatternAfterAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
            }
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            RuleError::FirstArgumentOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        }
    }
}

/// All that rules say about a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// New connections may log in.
    pub enabled: bool,
    /// Any password is right.
    pub nopass: bool,
    /// `sanitize-payload`, the default, or `skip-sanitize-payload`. Payloads of RESTORE are always checked here.
    pub sanitize: bool,
    /// Hashes of the passwords.
    pub passwords: Vec<PasswordHash>,
    /// The rules outside of parentheses.
    pub root: Selector,
    /// Those in parentheses.
    pub others: Vec<Selector>,
}

impl Rules {
    /// A new user: off, without any right. `all_channels` is `acl-pubsub-default`.
    pub fn new(all_channels: bool) -> Rules {
        Rules {
            enabled: false,
            nopass: false,
            sanitize: true,
            passwords: Vec::new(),
            root: Selector::new(all_channels),
            others: Vec::new(),
        }
    }

    /// The default user as the server starts with it: on, no password, all rights.
    pub fn of_default_user() -> Rules {
        let mut rules = Rules { enabled: true, nopass: true, ..Rules::new(false) };
        for rule in ["+@all", "~*", "&*"] {
            // These words are always understood.
            let _ = rules.root.apply(rule.as_bytes());
        }
        rules
    }

    /// All selectors, the root first.
    #[inline]
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.others)
    }

    /// Whether there is nothing to check.
    pub fn allows_everything(&self) -> bool {
        self.selectors().any(Selector::allows_everything)
    }

    /// Applies one word of ACL SETUSER.
    pub fn apply(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"skip-sanitize-payload" => self.sanitize = false,
            b"sanitize-payload" => self.sanitize = true,
            b"nopass" => {
                self.nopass = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.nopass = false;
                self.passwords.clear();
            }
            b"clearselectors" => self.others.clear(),
            b"reset" => {
                // Redis: the user is as it was when made, whatever the rules of its selectors were.
                *self = Rules::new(all_channels);
            }
            _ => return self.apply_other(rule, all_channels),
        }
        Ok(())
    }

    fn apply_other(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        match rule {
            [b'>', password @ ..] => self.add_password(hash(password)),
            [b'#', digits @ ..] => self.add_password(parse_hash(digits)?),
            [b'<', password @ ..] => self.remove_password(&hash(password))?,
            [b'!', digits @ ..] => self.remove_password(&parse_hash(digits)?)?,
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::new(all_channels);
                // Redis: what has unbalanced quotes inside is a selector without rules.
                for rule in split_arguments(inner).unwrap_or_default() {
                    selector.apply(&rule)?;
                }
                self.others.push(selector);
            }
            _ => self.root.apply(rule)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: PasswordHash) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.nopass = false;
    }

    fn remove_password(&mut self, hash: &PasswordHash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|other| other == hash).ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(at);
        Ok(())
    }

    /// `requirepass`: the one password of the default user, or none.
    pub fn set_required_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.nopass = password.is_empty();
        if !password.is_empty() {
            self.passwords.push(hash(password));
        }
    }

    /// The words of the flags, as ACL GETUSER and ACL LIST show them.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.nopass {
            flags.push("nopass");
        }
        flags.push(if self.sanitize { "sanitize-payload" } else { "skip-sanitize-payload" });
        flags
    }

    /// All rules, as they could be given again.
    pub fn describe(&self) -> Vec<u8> {
        let mut text = self.flags().join(" ").into_bytes();
        for password in &self.passwords {
            text.extend_from_slice(b" #");
            text.extend_from_slice(password);
        }
        text.push(b' ');
        text.extend_from_slice(&self.root.describe());
        for selector in &self.others {
            text.extend_from_slice(b" (");
            text.extend_from_slice(&selector.describe());
            text.push(b')');
        }
        text
    }
}

/// The hash of a password as rules show it.
pub fn hash(password: &[u8]) -> PasswordHash {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; HASH_DIGITS];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(Sha256::digest(password)) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    digits
}

fn parse_hash(digits: &[u8]) -> Result<PasswordHash, RuleError> {
    let hash = PasswordHash::try_from(digits).map_err(|_| RuleError::BadHash)?;
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hash.iter().all(is_digit) { Ok(hash) } else { Err(RuleError::BadHash) }
}

/// Joins selectors that a client or a file has spread over several words. Err: the word at this index opens a
/// parenthesis that is never closed.
pub fn merge_selectors(words: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, usize> {
    let mut merged: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (index, word) in words.iter().enumerate() {
        match &mut open {
            Some((_, selector)) => {
                selector.push(b' ');
                selector.extend_from_slice(word);
            }
            None if word.starts_with(b"(") && !word.ends_with(b")") => {
                open = Some((index, word.clone()));
                continue;
            }
            None => {
                merged.push(word.clone());
                continue;
            }
        }
        if word.ends_with(b")") {
            merged.extend(open.take().map(|(_, selector)| selector));
        }
    }
    match open {
        Some((index, _)) => Err(index),
        None => Ok(merged),
    }
}
