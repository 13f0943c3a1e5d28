//! SLOWLOG.

use crate::exec::Step;
use crate::worker::Worker;
use commands::{CmdError, CommandId};
use resp::Args;

/// Entries of SLOWLOG GET without a count.
const DEFAULT_COUNT: usize = 10;

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    matches!(id, CommandId::SlowlogGet | CommandId::SlowlogLen | CommandId::SlowlogReset | CommandId::SlowlogHelp)
}

/// Runs one.
pub(crate) fn run(worker: &mut Worker, command: CommandId, args: Args<'_>) -> Result<Step, CmdError> {
    match command {
        CommandId::SlowlogLen => worker.reply.count(worker.shared.slowlog.len()),
        CommandId::SlowlogReset => {
            worker.shared.slowlog.clear();
            worker.reply.ok();
        }
        _ => get(worker, args)?,
    }
    Ok(Step::Done)
}

fn get(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    let count = match args.get(2) {
        None => DEFAULT_COUNT,
        Some(_) if args.len() > 3 => {
            let text = commands::table::errors::subcommand_syntax(&args);
            return Err(CmdError::text(String::from_utf8_lossy(&text).into_owned()));
        }
        Some(count) => {
            let count = resp::num::parse_i64(count).filter(|count| *count >= -1);
            let count = count.ok_or(CmdError::new("ERR count should be greater than or equal to -1"))?;
            usize::try_from(count).unwrap_or(usize::MAX)
        }
    };
    let entries = worker.shared.slowlog.newest(count);
    let reply = &mut worker.reply;
    let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    reply.array(entries.len());
    for entry in &entries {
        reply.array(6);
        reply.int(int(entry.id));
        reply.int(entry.time_s);
        reply.int(int(entry.microseconds));
        reply.array(entry.args.len());
        for argument in &entry.args {
            reply.bulk(argument);
        }
        reply.bulk(&entry.address);
        reply.bulk(&entry.name);
    }
    Ok(())
}
