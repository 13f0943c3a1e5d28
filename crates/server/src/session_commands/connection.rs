//! AUTH, HELLO, PING, ECHO, SELECT, QUIT, RESET.

use super::pubsub;
use crate::acl::DEFAULT_USER;
use crate::exec::Step;
use crate::session::{Session, State};
use crate::worker::Worker;
use commands::{CmdError, options};
use keyspace::DbIndex;
use net::ConnId;
use resp::{Args, Proto};

/// AUTH.
pub(crate) fn auth(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    match args.len() {
        2 => {
            if worker.shared.acl.default_has_no_password() {
                return Err(CmdError::new(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
                ));
            }
            worker.log_in(id, session, DEFAULT_USER, &args[1], &args[0])?;
        }
        3 => worker.log_in(id, session, &args[1], &args[2], &args[0])?,
        _ => return Err(commands::error::SYNTAX),
    }
    worker.reply.ok();
    Ok(Step::Done)
}

/// HELLO.
pub(crate) fn hello(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let mut proto = session.proto;
    let mut index = 1;
    if let Some(version) = args.get(1) {
        let number = resp::num::parse_i64(version)
            .ok_or(CmdError::new("ERR Protocol version is not an integer or out of range"))?;
        proto = match number {
            2 => Proto::Resp2,
            3 => Proto::Resp3,
            _ => return Err(CmdError::new("NOPROTO unsupported protocol version")),
        };
        index = 2;
    }
    let mut name: Option<&[u8]> = None;
    let mut credentials: Option<(&[u8], &[u8])> = None;
    while let Some(word) = args.get(index) {
        match (args.get(index + 1), args.get(index + 2)) {
            (Some(user), Some(password)) if options::is_word(word, "auth") => {
                credentials = Some((user, password));
                index += 3;
            }
            (Some(value), _) if options::is_word(word, "setname") => {
                super::client::check_name(value)?;
                name = Some(value);
                index += 2;
            }
            _ => {
                return Err(CmdError::text(format!(
                    "ERR Syntax error in HELLO option '{}'",
                    String::from_utf8_lossy(word)
                )));
            }
        }
    }
    if let Some((user, password)) = credentials {
        worker.log_in(id, session, user, password, &args[0])?;
    }
    if session.state.has(State::UNAUTHENTICATED) {
        return Err(CmdError::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        session.extra_mut().name = name.to_vec();
    }
    session.proto = proto;
    worker.reply.set_proto(proto);
    let reply = &mut worker.reply;
    reply.map(7);
    reply.bulk("server");
    reply.bulk("redis");
    reply.bulk("version");
    reply.bulk(crate::process::REDIS_VERSION);
    reply.bulk("proto");
    reply.int(if proto == Proto::Resp3 { 3 } else { 2 });
    reply.bulk("id");
    reply.int(i64::try_from(session.id.0).unwrap_or(i64::MAX));
    reply.bulk("mode");
    reply.bulk(if worker.shared.cluster.is_managed() { "cluster" } else { "standalone" });
    reply.bulk("role");
    reply.bulk("master");
    reply.bulk("modules");
    reply.empty_array();
    Ok(Step::Done)
}

/// PING.
pub(crate) fn ping(worker: &mut Worker, session: &Session, args: Args<'_>) -> Result<Step, CmdError> {
    if args.len() > 2 {
        return Err(CmdError::new("ERR wrong number of arguments for 'ping' command"));
    }
    if session.state.has(State::SUBSCRIBED) && session.proto == Proto::Resp2 {
        worker.reply.array(2);
        worker.reply.bulk("pong");
        worker.reply.bulk(args.get(1).unwrap_or_default());
    } else {
        match args.get(1) {
            Some(text) => worker.reply.bulk(text),
            None => worker.reply.simple("PONG"),
        }
    }
    Ok(Step::Done)
}

/// SELECT.
pub(crate) fn select(worker: &mut Worker, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let number = options::int32(&args[1])?;
    let databases = worker.shared.keyspace.databases();
    let number =
        u32::try_from(number).ok().filter(|number| *number < databases).ok_or(commands::error::DB_OUT_OF_RANGE)?;
    session.db = DbIndex(number);
    worker.reply.ok();
    Ok(Step::Done)
}

/// RESET.
pub(crate) fn reset(worker: &mut Worker, id: ConnId, session: &mut Session) -> Result<Step, CmdError> {
    worker.unwatch_all(session);
    pubsub::drop_all(worker, id, session);
    worker.stop_tracking(id, session);
    if session.state.has(State::MONITOR) {
        worker.stop_monitoring(id);
    }
    session.state = State::default();
    worker.reset_user(session);
    session.db = DbIndex(0);
    session.proto = Proto::Resp2;
    worker.reply.set_proto(Proto::Resp2);
    if let Some(extra) = &mut session.extra {
        extra.name.clear();
        extra.multi = None;
    }
    worker.reply.simple("RESET");
    Ok(Step::Done)
}
