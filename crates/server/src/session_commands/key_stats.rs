//! HOTKEYS and BIGKEYS.

use crate::key_stats::TYPES;
use crate::worker::Worker;
use commands::{CmdError, CommandId, options};
use resp::Args;

/// Keys shown when no number is given; of each type by BIGKEYS.
pub(crate) const SHOWN: usize = 10;

/// Runs one.
pub(crate) fn run(worker: &mut Worker, command: CommandId, args: Args<'_>) -> Result<(), CmdError> {
    let (count, kind) = parse(command, args)?;
    if command == CommandId::Hotkeys {
        let found = worker.hot_keys(count);
        let reply = &mut worker.reply;
        reply.array(found.len());
        for hot in &found {
            reply.map(4);
            reply.bulk("key");
            reply.bulk(&hot.key);
            reply.bulk("db");
            reply.int(i64::from(hot.db.0));
            reply.bulk("ops-per-second");
            reply.double(hot.per_second.round());
            reply.bulk("percent");
            reply.double((hot.percent * 10.0).round() / 10.0);
        }
        return Ok(());
    }
    let found = worker.big_keys(count, kind);
    let reply = &mut worker.reply;
    reply.array(found.len());
    for big in &found {
        reply.map(4);
        reply.bulk("key");
        reply.bulk(&big.key);
        reply.bulk("db");
        reply.int(i64::from(big.db.0));
        reply.bulk("type");
        reply.bulk(TYPES[big.kind]);
        reply.bulk("size");
        reply.int(i64::try_from(big.size).unwrap_or(i64::MAX));
    }
    Ok(())
}

fn parse(command: CommandId, args: Args<'_>) -> Result<(usize, Option<usize>), CmdError> {
    let (mut count, mut kind) = (SHOWN, None);
    let mut index = 1;
    while let Some(word) = args.get(index) {
        let value = args.get(index + 1).ok_or(commands::error::SYNTAX)?;
        if options::is_word(word, "count") {
            let number = options::int(value)?;
            count = usize::try_from(number).ok().filter(|count| *count > 0).ok_or(commands::error::SYNTAX)?;
        } else if command == CommandId::Bigkeys && options::is_word(word, "type") {
            let found = TYPES.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(value));
            kind = Some(found.ok_or(CmdError::new("ERR unknown type name"))?);
        } else {
            return Err(commands::error::SYNTAX);
        }
        index += 2;
    }
    Ok((count, kind))
}
