//! Commands that belong to the session or the server: everything in the table without a function on keys.

pub(crate) mod client;
mod client_filter;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod debug;
pub(crate) mod info;
pub(crate) mod key_stats;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod pubsub;
pub(crate) mod server;
pub(crate) mod slowlog;
pub(crate) mod tracking;

use crate::exec::{Step, transaction, whole};
use crate::migrate;
use crate::scripting::{functions, run};
use crate::session::Session;
use crate::worker::Worker;
use commands::table::{self, CommandSpec};
use commands::{CmdError, CommandId};
use net::ConnId;
use resp::Args;

/// Whether the server runs this command of the table (beyond those with a function on keys).
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    if whole::handles(id) || run::handles(id) || functions::is_served(id) {
        return true;
    }
    match id {
        C::Ping | C::Echo | C::Select | C::Quit | C::Auth | C::Hello | C::Reset => true,
        C::Multi | C::Exec | C::Discard | C::Watch | C::Unwatch => true,
        C::Subscribe | C::Unsubscribe | C::Psubscribe | C::Punsubscribe | C::Ssubscribe | C::Sunsubscribe => true,
        C::Publish | C::Spublish | C::Pubsub | C::Migrate => true,
        _ => {
            let name = table::spec(id).name;
            let container = name.split('|').next().unwrap_or(name);
            match container {
                "pubsub" => true,
                "client" => client::is_served(id),
                "config" => config::is_served(id),
                "slowlog" => slowlog::is_served(id),
                "latency" => latency::is_served(id),
                "memory" => memory::is_served(id),
                _ => server::is_served(id),
            }
        }
    }
}

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    use CommandId as C;
    let command = spec.id;
    if whole::handles(command) {
        return whole::run(worker, id, session, command, args);
    }
    if run::handles(command) {
        return run::command(worker, id, session, spec, args);
    }
    if let Some(scope) = client::scope_of(command, args)
        && worker.client_lines(id).is_none()
    {
        worker.gather_clients(id, scope);
        return Ok(Step::Again);
    }
    match command {
        C::Ping => connection::ping(worker, session, args),
        C::Echo => {
            worker.reply.bulk(&args[1]);
            Ok(Step::Done)
        }
        C::Select => connection::select(worker, session, args),
        C::Quit => {
            worker.reply.ok();
            Ok(Step::Close)
        }
        C::Auth => connection::auth(worker, id, session, args),
        C::Hello => connection::hello(worker, id, session, args),
        C::Reset => connection::reset(worker, id, session),
        C::Multi => transaction::multi(worker, session).map(|()| Step::Done),
        C::Exec => transaction::exec(worker, id, session),
        C::Discard => transaction::discard(worker, session).map(|()| Step::Done),
        C::Watch => transaction::watch(worker, id, session, args),
        C::Unwatch => {
            worker.unwatch_all(session);
            worker.reply.ok();
            Ok(Step::Done)
        }
        C::Subscribe | C::Psubscribe | C::Ssubscribe => {
            pubsub::subscribe(worker, id, session, pubsub::kind_of(command), args)
        }
        C::Unsubscribe | C::Punsubscribe | C::Sunsubscribe => {
            pubsub::unsubscribe(worker, id, session, pubsub::kind_of(command), args)
        }
        C::Migrate => migrate::command(worker, id, session, spec, args),
        C::Publish => pubsub::publish(worker, session.db, false, args),
        C::Spublish => pubsub::publish(worker, session.db, true, args),
        C::PubsubChannels | C::PubsubNumsub | C::PubsubNumpat | C::PubsubShardchannels | C::PubsubShardnumsub => {
            pubsub::introspect(worker, command, args)
        }
        _ => run_container(worker, id, session, spec, args),
    }
}

fn run_container(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let container = spec.name.split('|').next().unwrap_or(spec.name);
    if spec.name.ends_with("|help")
        && let Some(of) = table::lookup(container.as_bytes())
        && table::help::write(of.id, &args, &mut worker.reply)
    {
        return Ok(Step::Done);
    }
    match container {
        "client" => client::run(worker, id, session, spec.id, args),
        "config" => config::run(worker, session, spec.id, args),
        "slowlog" => slowlog::run(worker, spec.id, args),
        "latency" => latency::run(worker, spec.id, args),
        "memory" => memory::run(worker, spec.id),
        "oxidis" => crate::cluster::oxidis::run(worker, id, session, spec.id, args),
        "script" | "function" => functions::run(worker, session, spec.id, args),
        _ => server::run(worker, id, session, spec, args),
    }
}
