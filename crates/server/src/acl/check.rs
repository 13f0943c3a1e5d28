//! Whether a user may run a command with its arguments.
//!
//! All keys are looked at, each with what the command does to it; channels of SUBSCRIBE and PUBLISH are matched against
//! patterns, the pattern of PSUBSCRIBE must be one of them letter by letter. Several selectors are tried one after the
//! other: each must allow the whole command by itself.

use super::rules::Rules;
use super::selector::{Access, Selector};
use commands::table::keys::{self, ArgView, KeyRefs};
use commands::table::{CommandSpec, Flags, KeyFlags};
use commands::{CmdError, CommandId, options};
use keyspace::glob;

/// Why a command is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// The command itself.
    Command,
    /// The key at this argument.
    Key(usize),
    /// The channel at this argument.
    Channel(usize),
}

impl Denied {
    /// The argument that it is about: the command's name, a key or a channel.
    pub fn position(self) -> usize {
        match self {
            Denied::Command => 0,
            Denied::Key(position) | Denied::Channel(position) => position,
        }
    }

    /// Redis: which of two refusals is told. A channel is more than a key, a key more than the command.
    fn weight(self) -> (u8, usize) {
        match self {
            Denied::Command => (1, 0),
            Denied::Key(position) => (2, position),
            Denied::Channel(position) => (4, position),
        }
    }

    /// The sentence for a client that was refused, without its code.
    pub fn sentence(self, user: &[u8], spec: &CommandSpec) -> String {
        match self {
            Denied::Command => command_sentence(user, spec),
            Denied::Key(_) => "No permissions to access a key".to_owned(),
            Denied::Channel(_) => "No permissions to access a channel".to_owned(),
        }
    }

    /// The sentence of ACL DRYRUN, which names key or channel (`object`).
    pub fn full_sentence(self, user: &[u8], spec: &CommandSpec, object: &[u8]) -> Vec<u8> {
        let what: &[u8] = match self {
            Denied::Command => return command_sentence(user, spec).into_bytes(),
            Denied::Key(_) => b"' key",
            Denied::Channel(_) => b"' channel",
        };
        [b"User ", user, b" has no permissions to access the '", object, what].concat()
    }

    /// The error of EXEC for a command that may no longer run.
    pub fn exec_error(self) -> CmdError {
        CmdError::new(match self {
            Denied::Command => {
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand"
            }
            Denied::Key(_) => {
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to touch the specified keys"
            }
            Denied::Channel(_) => {
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to access one of the channels used as arguments"
            }
        })
    }
}

fn command_sentence(user: &[u8], spec: &CommandSpec) -> String {
    format!("User {} has no permissions to run the '{}' command", String::from_utf8_lossy(user), spec.name)
}

/// Checks a whole command; `spec` is its row (the subcommand's, if it has some) and its arity is right.
///
/// # Errors
/// It is not allowed: the refusal that Redis would tell.
pub fn check<A: ArgView + ?Sized>(rules: &Rules, spec: &CommandSpec, args: &A) -> Result<(), Denied> {
    let mut keys = None;
    let mut worst = Denied::Command;
    for selector in rules.selectors() {
        match check_selector(selector, spec, args, &mut keys) {
            Ok(()) => return Ok(()),
            Err(denied) if denied.weight() > worst.weight() => worst = denied,
            Err(_) => {}
        }
    }
    Err(worst)
}

/// As [`check`] for a command whose one key is at a known place: what the fast path asks. False: the whole check is to
/// decide.
#[inline]
pub fn allows_single<A: ArgView + ?Sized>(rules: &Rules, spec: &CommandSpec, args: &A) -> bool {
    check_selector(&rules.root, spec, args, &mut None).is_ok()
}

fn check_selector<A: ArgView + ?Sized>(
    selector: &Selector,
    spec: &CommandSpec,
    args: &A,
    keys: &mut Option<KeyRefs>,
) -> Result<(), Denied> {
    if !allows_command(selector, spec, args) {
        return Err(Denied::Command);
    }
    if !selector.all_keys && spec.has_keys() {
        for key in keys.get_or_insert_with(|| keys_of(spec, args)).iter() {
            let position = key.position as usize;
            if !allows_key(selector, args.arg(position).unwrap_or_default(), access_of(key.flags)) {
                return Err(Denied::Key(position));
            }
        }
    }
    if !selector.all_channels
        && let Some(channels) = channels_of(spec.id)
    {
        let end = if channels.is_one { 2 } else { args.arg_count() };
        for position in 1..end {
            let channel = args.arg(position).unwrap_or_default();
            let allows = |pattern: &Vec<u8>| {
                if channels.are_patterns { pattern == channel } else { glob::matches(pattern, channel, false) }
            };
            if !selector.channels.iter().any(allows) {
                return Err(Denied::Channel(position));
            }
        }
    }
    Ok(())
}

fn allows_command<A: ArgView + ?Sized>(selector: &Selector, spec: &CommandSpec, args: &A) -> bool {
    selector.all_commands
        || selector.commands.has(spec.id)
        || spec.flags.contains(Flags::NO_AUTH)
        || selector.allows_first_argument(spec.id, args.arg(1))
}

/// The keys that are checked. Beyond those that Redis 7.2 looks at, a key that the command would write though its
/// specs do not name it: the destination of PFMERGE without sources, and that of a second STORE of GEORADIUS.
fn keys_of<A: ArgView + ?Sized>(spec: &CommandSpec, args: &A) -> KeyRefs {
    let mut found = keys::keys(spec, args).unwrap_or_default();
    if matches!(spec.id, CommandId::Pfmerge | CommandId::Georadius | CommandId::Georadiusbymember) {
        for mut key in keys::touched_keys(spec, args).unwrap_or_default() {
            if !found.iter().any(|known| known.position == key.position) {
                key.flags = KeyFlags::INSERT;
                found.push(key);
            }
        }
    }
    found
}

fn allows_key(selector: &Selector, key: &[u8], access: Access) -> bool {
    selector.all_keys
        || selector.keys.iter().any(|known| known.access.covers(access) && glob::matches(&known.pattern, key, false))
}

/// What the right to use a key must cover.
fn access_of(flags: KeyFlags) -> Access {
    let mut access = Access::NONE;
    if flags.contains(KeyFlags::ACCESS) {
        access = access.with(Access::READ);
    }
    if flags.intersects(KeyFlags::INSERT | KeyFlags::DELETE | KeyFlags::UPDATE) {
        access = access.with(Access::WRITE);
    }
    access
}

/// Where a command names channels that need a right: from the first argument on.
struct Channels {
    /// The first argument alone.
    is_one: bool,
    /// They are patterns.
    are_patterns: bool,
}

fn channels_of(id: CommandId) -> Option<Channels> {
    use CommandId as C;
    let (is_one, are_patterns) = match id {
        C::Subscribe | C::Ssubscribe => (false, false),
        C::Psubscribe => (false, true),
        C::Publish | C::Spublish => (true, false),
        _ => return None,
    };
    Some(Channels { is_one, are_patterns })
}

/// SORT with BY and GET looks at keys that no argument names: that needs the right to read all keys. The error, if the
/// command is not to run; in a call with other mistakes the command finds the first one itself.
pub fn sort_refusal<A: ArgView + ?Sized>(rules: &Rules, spec: &CommandSpec, args: &A) -> Option<CmdError> {
    if !matches!(spec.id, CommandId::Sort | CommandId::SortRo) {
        return None;
    }
    let reads_all = |selector: &Selector| {
        selector.all_keys
            || selector.keys.iter().any(|known| known.access.covers(Access::READ) && known.pattern == b"*")
    };
    let mut keys = None;
    let may = rules
        .selectors()
        .any(|selector| check_selector(selector, spec, args, &mut keys).is_ok() && reads_all(selector));
    if may {
        return None;
    }
    let mut position = 2;
    while let Some(word) = args.arg(position) {
        let next = args.arg(position + 1);
        if ["asc", "desc", "alpha"].iter().any(|known| options::is_word(word, known)) {
            position += 1;
        } else if options::is_word(word, "limit") && args.arg(position + 2).is_some() {
            let are_numbers =
                (position + 1..position + 3).all(|at| options::int(args.arg(at).unwrap_or_default()).is_ok());
            if !are_numbers {
                return None;
            }
            position += 3;
        } else if spec.id == CommandId::Sort && options::is_word(word, "store") && next.is_some() {
            position += 2;
        } else if options::is_word(word, "by") && next.is_some() {
            if next.is_some_and(|pattern| pattern.contains(&b'*')) {
                return Some(CmdError::new("ERR BY option of SORT denied due to insufficient ACL permissions."));
            }
            position += 2;
        } else if options::is_word(word, "get") && next.is_some() {
            return Some(CmdError::new("ERR GET option of SORT denied due to insufficient ACL permissions."));
        } else {
            return None;
        }
    }
    None
}

/// Whether all these subscriptions are still allowed. Redis: the channel patterns of all selectors count together.
pub fn allows_subscriptions<'a>(
    rules: &Rules,
    channels: impl IntoIterator<Item = &'a [u8]>,
    patterns: impl IntoIterator<Item = &'a [u8]>,
) -> bool {
    if rules.selectors().any(|selector| selector.all_channels) {
        return true;
    }
    let allowed = || rules.selectors().flat_map(|selector| &selector.channels);
    channels.into_iter().all(|channel| allowed().any(|pattern| glob::matches(pattern, channel, false)))
        && patterns.into_iter().all(|subscribed| allowed().any(|pattern| pattern == subscribed))
}
