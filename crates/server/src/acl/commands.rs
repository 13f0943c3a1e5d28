//! The ACL commands.

use super::check;
use super::rules::Rules;
use super::selector::{Selector, has_spaces};
use super::{Acl, Change, User};
use crate::exec::Step;
use crate::session::Session;
use crate::worker::Worker;
use commands::table::bits::Categories;
use commands::table::keys::TailView;
use commands::table::{self, CommandSpec};
use commands::{CmdError, CommandId, options};
use resp::{Args, Reply};
use std::sync::Arc;

/// Entries that ACL LOG shows without a number.
const LOG_ENTRIES: usize = 10;
/// Bytes of a name that an error shows.
const NAME_SHOWN: usize = 128;

/// LOAD or SAVE without a file.
const NO_FILE: CmdError = CmdError::new(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.",
);

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    table::spec(id).name.starts_with("acl|")
}

/// Where an ACL command is run: a server, or a proxy.
pub struct Setting<'a> {
    /// The users.
    pub acl: &'a Acl,
    /// `aclfile`; empty: none.
    pub file: &'a [u8],
    /// What `acl-pubsub-default` gives new users.
    pub all_channels: bool,
    /// The user of the client that asks.
    pub own_name: &'a [u8],
    /// Unix milliseconds.
    pub now_ms: i64,
    /// The row of a call by the names in force; a container's own if it is called without a subcommand.
    pub find: &'a dyn Fn(Args<'_>) -> Option<&'static CommandSpec>,
}

/// What follows for clients.
pub enum Effect {
    /// Nothing.
    None,
    /// A user's rights have changed: those may have to go that listen to what they may not any more.
    Changed(Change),
    /// Users are gone, and so must be their clients.
    Gone(Vec<Arc<User>>),
}

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    session: &mut Session,
    command: CommandId,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let shared = worker.shared.clone();
    let config = worker.config.clone();
    let mut reply = std::mem::take(&mut worker.reply);
    let setting = Setting {
        acl: &shared.acl,
        file: &config.aclfile,
        all_channels: config.acl_pubsub_default.allows_all(),
        own_name: session.user_name(),
        now_ms: worker.now_ms,
        find: &|call| find_command(worker, call),
    };
    let result = answer(&setting, command, args, &mut reply);
    worker.reply = reply;
    match result? {
        Effect::None => Ok(Step::Done),
        Effect::Changed(change) => {
            if let Some(before) = &change.before {
                worker.close_subscribers_of(&change.user, before, &change.after);
            }
            Ok(Step::Done)
        }
        Effect::Gone(gone) => {
            worker.close_clients_of(&gone);
            Ok(end_of_own_user(worker, session))
        }
    }
}

/// Answers one.
///
/// # Errors
/// The error for the client.
pub fn answer(
    setting: &Setting<'_>,
    command: CommandId,
    args: Args<'_>,
    reply: &mut Reply,
) -> Result<Effect, CmdError> {
    use CommandId as C;
    let acl = setting.acl;
    match command {
        C::AclWhoami => reply.bulk(setting.own_name),
        C::AclUsers => {
            let users = acl.users();
            reply.array(users.len());
            users.iter().for_each(|user| reply.bulk(&*user.name));
        }
        C::AclList => {
            let users = acl.users();
            reply.array(users.len());
            users.iter().for_each(|user| reply.bulk(user.line()));
        }
        C::AclSetuser => {
            let change = set_user(setting, args)?;
            reply.ok();
            return Ok(Effect::Changed(change));
        }
        C::AclGetuser => match acl.get(&args[2]) {
            Some(user) => write_user(reply, &user.rules()),
            None => reply.null(),
        },
        C::AclDeluser => {
            let gone = delete_users(setting, args)?;
            reply.count(gone.len());
            return Ok(Effect::Gone(gone));
        }
        C::AclLoad => {
            let gone = load(setting)?;
            reply.ok();
            return Ok(Effect::Gone(gone));
        }
        C::AclSave => {
            save(setting)?;
            reply.ok();
        }
        _ if has_too_many(command, args) => return Err(syntax(args)),
        C::AclCat => categories(args, reply)?,
        C::AclGenpass => generate_password(args, reply)?,
        C::AclDryrun => dry_run(setting, args, reply)?,
        _ => log(setting, args, reply)?,
    }
    Ok(Effect::None)
}

fn has_too_many(command: CommandId, args: Args<'_>) -> bool {
    matches!(command, CommandId::AclCat | CommandId::AclGenpass | CommandId::AclLog) && args.len() > 3
}

fn syntax(args: Args<'_>) -> CmdError {
    CmdError::text(String::from_utf8_lossy(&table::errors::subcommand_syntax(&args)).into_owned())
}

// ---- users -------------------------------------------------------------------------------------------------------

fn set_user(setting: &Setting<'_>, args: Args<'_>) -> Result<Change, CmdError> {
    let name = &args[2];
    if has_spaces(name) {
        return Err(CmdError::new("ERR Usernames can't contain spaces or null characters"));
    }
    let words: Vec<Vec<u8>> = args.slice(3).iter().map(<[u8]>::to_vec).collect();
    let change = setting.acl.set_user(name, &words, setting.all_channels);
    change.map_err(|error| CmdError::text(format!("ERR {error}")))
}

fn delete_users(setting: &Setting<'_>, args: Args<'_>) -> Result<Vec<Arc<User>>, CmdError> {
    let names = args.slice(2);
    if names.iter().any(|name| name == super::DEFAULT_USER) {
        return Err(CmdError::new("ERR The 'default' user cannot be removed"));
    }
    Ok(names.iter().filter_map(|name| setting.acl.delete(name)).collect())
}

/// A client that removed its own user gets its reply and is closed.
fn end_of_own_user(worker: &Worker, session: &mut Session) -> Step {
    if !session.user.as_ref().is_some_and(|user| user.is_deleted()) {
        return Step::Done;
    }
    worker.lose_user(session);
    worker.renew_rights(session);
    Step::Close
}

fn load(setting: &Setting<'_>) -> Result<Vec<Arc<User>>, CmdError> {
    if setting.file.is_empty() {
        return Err(NO_FILE);
    }
    let gone = setting.acl.load_file(setting.file, setting.all_channels);
    gone.map_err(|errors| CmdError::text(format!("ERR {errors}")))
}

fn save(setting: &Setting<'_>) -> Result<(), CmdError> {
    if setting.file.is_empty() {
        return Err(NO_FILE);
    }
    setting.acl.save_file(setting.file).map_err(|_| {
        CmdError::new(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
        )
    })
}

fn write_user(reply: &mut Reply, rules: &Rules) {
    reply.map(6);
    reply.bulk("flags");
    let flags = rules.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag));
    reply.bulk("passwords");
    reply.array(rules.passwords.len());
    rules.passwords.iter().for_each(|password| reply.bulk(password));
    write_selector(reply, &rules.root);
    reply.bulk("selectors");
    reply.array(rules.others.len());
    for selector in &rules.others {
        reply.map(3);
        write_selector(reply, selector);
    }
}

fn write_selector(reply: &mut Reply, selector: &Selector) {
    reply.bulk("commands");
    reply.bulk(selector.describe_commands());
    reply.bulk("keys");
    reply.bulk(selector.describe_keys());
    reply.bulk("channels");
    reply.bulk(selector.describe_channels());
}

// ---- CAT, GENPASS, LOG, DRYRUN -----------------------------------------------------------------------------------

fn categories(args: Args<'_>, reply: &mut Reply) -> Result<(), CmdError> {
    let Some(name) = args.get(2) else {
        reply.array(Categories::NAMES.len());
        for (_, name) in Categories::NAMES {
            reply.bulk(name);
        }
        return Ok(());
    };
    let category = Categories::by_name(name).ok_or_else(|| {
        let shown = name.get(..NAME_SHOWN).unwrap_or(name);
        CmdError::text(format!("ERR Unknown category '{}'", String::from_utf8_lossy(shown)))
    })?;
    let members = || table::all().filter(move |spec| spec.categories.contains(category));
    reply.array(members().count());
    for spec in members() {
        reply.bulk(spec.name);
    }
    Ok(())
}

fn generate_password(args: Args<'_>, reply: &mut Reply) -> Result<(), CmdError> {
    const MOST_BITS: i64 = 4096;
    let bits = args.get(2).map_or(Ok(256), options::int)?;
    if !(1..=MOST_BITS).contains(&bits) {
        return Err(CmdError::new(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    let digits = usize::try_from(bits).unwrap_or(0).div_ceil(4);
    let mut bytes = vec![0_u8; digits.div_ceil(2)];
    getrandom::fill(&mut bytes).map_err(|_| CmdError::new("ERR the system gives no random bytes"))?;
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    reply.bulk(text);
    Ok(())
}

fn log(setting: &Setting<'_>, args: Args<'_>, reply: &mut Reply) -> Result<(), CmdError> {
    let count = match args.get(2) {
        Some(word) if options::is_word(word, "reset") => {
            setting.acl.log.clear();
            reply.ok();
            return Ok(());
        }
        Some(count) => usize::try_from(options::int(count)?).unwrap_or(0),
        None => LOG_ENTRIES,
    };
    setting.acl.log.write(reply, count, setting.now_ms);
    Ok(())
}

fn dry_run(setting: &Setting<'_>, args: Args<'_>, reply: &mut Reply) -> Result<(), CmdError> {
    // Redis writes both as C strings.
    let shown =
        |text: &[u8]| String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let user =
        setting.acl.get(&args[2]).ok_or_else(|| CmdError::text(format!("ERR User '{}' not found", shown(&args[2]))))?;
    let spec = (setting.find)(args.slice(3))
        .ok_or_else(|| CmdError::text(format!("ERR Command '{}' not found", shown(&args[3]))))?;
    let call = TailView::new(&args, 3);
    if !table::arity_ok(spec, args.len() - 3) {
        return Err(CmdError::text(format!("ERR wrong number of arguments for '{}' command", spec.name)));
    }
    match check::check(&user.rules(), spec, &call) {
        Ok(()) => reply.ok(),
        Err(denied) => {
            let object = args.get(3 + denied.position()).unwrap_or_default();
            let sentence = denied.full_sentence(&user.name, spec, object);
            reply.bulk(sentence);
        }
    }
    Ok(())
}

/// The row of a call by the names in force; a container's own if it is called without a subcommand.
fn find_command(worker: &Worker, call: Args<'_>) -> Option<&'static CommandSpec> {
    let spec = worker.lookup(call.get(0)?)?;
    match call.get(1) {
        Some(sub) if spec.is_container() => table::lookup_sub(spec, sub),
        _ => Some(spec),
    }
}
