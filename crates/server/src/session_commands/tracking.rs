//! CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR.

use crate::session::{Session, State};
use crate::tracking::{ClientTracking, Redirect};
use crate::worker::Worker;
use commands::{CmdError, CommandId, options};
use net::ConnId;
use resp::Args;

/// The client that a CLIENT TRACKING redirects to, if its number can be told.
pub(crate) fn redirect_of(args: Args<'_>) -> Option<u64> {
    let at = (3..args.len()).find(|at| args.get(*at).is_some_and(|word| options::is_word(word, "redirect")))?;
    resp::num::parse_u64(args.get(at + 1)?)
}

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    command: CommandId,
    args: Args<'_>,
) -> Result<(), CmdError> {
    match command {
        CommandId::ClientTracking => track(worker, id, session, args)?,
        CommandId::ClientCaching => set_caching(session, args)?,
        CommandId::ClientGetredir => {
            worker.reply.int(redirect_number(session));
            return Ok(());
        }
        _ => {
            write_info(worker, session);
            return Ok(());
        }
    }
    worker.reply.ok();
    Ok(())
}

/// The number that CLIENT GETREDIR and CLIENT LIST show: -1 without tracking, 0 without another client.
pub(crate) fn redirect_number(session: &Session) -> i64 {
    session
        .tracking()
        .map_or(-1, |tracking| tracking.redirect.map_or(0, |redirect| i64::try_from(redirect.id).unwrap_or(i64::MAX)))
}

fn track(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<(), CmdError> {
    let wanted = parse(worker, id, args)?;
    if options::is_word(&args[2], "off") {
        worker.stop_tracking(id, session);
        return Ok(());
    }
    if !options::is_word(&args[2], "on") {
        return Err(commands::error::SYNTAX);
    }
    check(session, &wanted)?;
    let mut wanted = wanted;
    if wanted.bcast {
        if wanted.prefixes.is_empty() {
            wanted.prefixes.push(Vec::new());
        }
        // Redis: further prefixes are added to those that are there.
        let known = session.tracking().map(|tracking| tracking.prefixes.clone()).unwrap_or_default();
        wanted.prefixes.extend(known);
        wanted.prefixes.sort_unstable();
        wanted.prefixes.dedup();
    }
    wanted.caching = session.tracking().is_some_and(|tracking| tracking.caching);
    worker.start_tracking(id, session, wanted);
    Ok(())
}

fn parse(worker: &Worker, id: ConnId, args: Args<'_>) -> Result<ClientTracking, CmdError> {
    let mut wanted = ClientTracking::default();
    let mut index = 3;
    while let Some(word) = args.get(index) {
        let value = args.get(index + 1);
        match value {
            Some(number) if options::is_word(word, "redirect") => {
                if wanted.redirect.is_some() {
                    return Err(CmdError::new("ERR A client can only redirect to a single other client"));
                }
                wanted.redirect = Some(find_client(worker, id, options::int(number)?)?);
                index += 1;
            }
            Some(prefix) if options::is_word(word, "prefix") => {
                wanted.prefixes.push(prefix.to_vec());
                index += 1;
            }
            _ if options::is_word(word, "bcast") => wanted.bcast = true,
            _ if options::is_word(word, "optin") => wanted.optin = true,
            _ if options::is_word(word, "optout") => wanted.optout = true,
            _ if options::is_word(word, "noloop") => wanted.noloop = true,
            _ => return Err(commands::error::SYNTAX),
        }
        index += 1;
    }
    Ok(wanted)
}

fn find_client(worker: &Worker, id: ConnId, number: i64) -> Result<Redirect, CmdError> {
    let lines = worker.client_lines(id).unwrap_or_default();
    let line = u64::try_from(number).ok().and_then(|number| lines.of(number));
    let line = line.ok_or(CmdError::new("ERR The client ID you want redirect to does not exist"))?;
    Ok(Redirect { id: line.id, worker: line.worker, conn: line.conn })
}

/// What does not go together, or not with the tracking that is on.
fn check(session: &Session, wanted: &ClientTracking) -> Result<(), CmdError> {
    if !wanted.bcast && !wanted.prefixes.is_empty() {
        return Err(CmdError::new("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    let now = session.tracking();
    if now.is_some_and(|now| now.bcast != wanted.bcast) {
        return Err(CmdError::new(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        ));
    }
    if wanted.bcast && (wanted.optin || wanted.optout) {
        return Err(CmdError::new("ERR OPTIN and OPTOUT are not compatible with BCAST"));
    }
    if wanted.optin && wanted.optout {
        return Err(CmdError::new("ERR You can't specify both OPTIN mode and OPTOUT mode"));
    }
    if now.is_some_and(|now| wanted.optin && now.optout || wanted.optout && now.optin) {
        return Err(CmdError::new(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        ));
    }
    let known = now.map(|now| now.prefixes.as_slice()).unwrap_or_default();
    check_prefixes(&wanted.prefixes, known)
}

/// A key must not be told twice to one client.
fn check_prefixes(wanted: &[Vec<u8>], known: &[Vec<u8>]) -> Result<(), CmdError> {
    let overlap = |first: &[u8], second: &[u8]| first.starts_with(second) || second.starts_with(first);
    let shown = |prefix: &[u8]| String::from_utf8_lossy(prefix).into_owned();
    for (index, prefix) in wanted.iter().enumerate() {
        if let Some(other) = known.iter().find(|other| overlap(prefix, other)) {
            return Err(CmdError::text(format!(
                "ERR Prefix '{}' overlaps with an existing prefix '{}'. Prefixes for a single client must not overlap.",
                shown(prefix),
                shown(other)
            )));
        }
        if let Some(other) = wanted.iter().skip(index + 1).find(|other| overlap(prefix, other)) {
            return Err(CmdError::text(format!(
                "ERR Prefix '{}' overlaps with another provided prefix '{}'. Prefixes for a single client must not overlap.",
                shown(prefix),
                shown(other)
            )));
        }
    }
    Ok(())
}

fn set_caching(session: &mut Session, args: Args<'_>) -> Result<(), CmdError> {
    let Some(tracking) = session.tracking_mut() else {
        return Err(CmdError::new(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    if options::is_word(&args[2], "yes") {
        if !tracking.optin {
            return Err(CmdError::new("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."));
        }
    } else if options::is_word(&args[2], "no") {
        if !tracking.optout {
            return Err(CmdError::new("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."));
        }
    } else {
        return Err(commands::error::SYNTAX);
    }
    tracking.caching = true;
    Ok(())
}

fn write_info(worker: &mut Worker, session: &Session) {
    let reply = &mut worker.reply;
    reply.map(3);
    reply.bulk("flags");
    let off = ClientTracking::default();
    let tracking = session.tracking().unwrap_or(&off);
    let words = [
        (true, if session.state.has(State::TRACKING) { "on" } else { "off" }),
        (tracking.bcast, "bcast"),
        (tracking.optin, "optin"),
        (tracking.optin && tracking.caching, "caching-yes"),
        (tracking.optout, "optout"),
        (tracking.optout && tracking.caching, "caching-no"),
        (tracking.noloop, "noloop"),
        (tracking.is_redirect_broken, "broken_redirect"),
    ];
    reply.set(words.iter().filter(|(is_set, _)| *is_set).count());
    words.iter().filter(|(is_set, _)| *is_set).for_each(|(_, word)| reply.bulk(word));
    reply.bulk("redirect");
    reply.int(redirect_number(session));
    reply.bulk("prefixes");
    reply.array(tracking.prefixes.len());
    tracking.prefixes.iter().for_each(|prefix| reply.bulk(prefix));
}
