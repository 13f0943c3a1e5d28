//! ACL, as far as it tells of the one user there is.

use crate::worker::Worker;
use commands::table;
use commands::table::bits::Categories;
use commands::{CmdError, CommandId, options};
use resp::Args;
use sha2::{Digest as _, Sha256};

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    matches!(
        id,
        C::AclCat | C::AclGenpass | C::AclGetuser | C::AclHelp | C::AclList | C::AclLog | C::AclUsers | C::AclWhoami
    )
}

/// Runs one.
pub(crate) fn run(worker: &mut Worker, command: CommandId, args: Args<'_>) -> Result<(), CmdError> {
    match command {
        CommandId::AclWhoami => worker.reply.bulk("default"),
        CommandId::AclUsers => {
            worker.reply.array(1);
            worker.reply.bulk("default");
        }
        CommandId::AclList => {
            let password = password_hash(worker).map_or_else(|| "nopass".to_owned(), |hash| format!("#{hash}"));
            worker.reply.array(1);
            worker.reply.bulk(format!("user default on {password} sanitize-payload ~* &* +@all"));
        }
        CommandId::AclGetuser => get_user(worker, args),
        CommandId::AclCat => return categories(worker, args),
        CommandId::AclGenpass => return generate_password(worker, args),
        _ => return log(worker, args),
    }
    Ok(())
}

fn password_hash(worker: &Worker) -> Option<String> {
    let password = &worker.config.requirepass;
    (!password.is_empty()).then(|| Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn get_user(worker: &mut Worker, args: Args<'_>) {
    if &args[2] != b"default" {
        worker.reply.null();
        return;
    }
    let hash = password_hash(worker);
    let reply = &mut worker.reply;
    reply.map(6);
    reply.bulk("flags");
    let flags: &[&str] =
        if hash.is_some() { &["on", "sanitize-payload"] } else { &["on", "nopass", "sanitize-payload"] };
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag));
    reply.bulk("passwords");
    reply.array(usize::from(hash.is_some()));
    hash.iter().for_each(|hash| reply.bulk(hash));
    for (name, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(name);
        reply.bulk(value);
    }
    reply.bulk("selectors");
    reply.empty_array();
}

fn categories(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    let Some(name) = args.get(2) else {
        worker.reply.array(Categories::NAMES.len());
        for (_, name) in Categories::NAMES {
            worker.reply.bulk(name);
        }
        return Ok(());
    };
    let category = Categories::by_name(&name.to_ascii_lowercase());
    let category =
        category.ok_or_else(|| CmdError::text(format!("ERR Unknown category '{}'", String::from_utf8_lossy(name))))?;
    let members = || table::all().filter(move |spec| spec.categories.contains(category));
    worker.reply.array(members().count());
    for spec in members() {
        worker.reply.bulk(spec.name);
    }
    Ok(())
}

fn generate_password(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
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
    worker.reply.bulk(text);
    Ok(())
}

/// Nothing is denied to the one user but a wrong password, which is counted.
fn log(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    match args.get(2) {
        Some(word) if options::is_word(word, "reset") => worker.reply.ok(),
        Some(count) => {
            options::int(count)?;
            worker.reply.empty_array();
        }
        None => worker.reply.empty_array(),
    }
    Ok(())
}
