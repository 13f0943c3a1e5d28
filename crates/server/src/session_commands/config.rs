//! CONFIG, and acting on what CONFIG SET changes.
//!
//! Most directives need no action here: every worker takes the new configuration over at its next batch. What reaches
//! beyond it (sockets, the log, the kernel) is done by [`act`], which is asked before the new values are in force and
//! may refuse; then it is asked to act on the old ones again.

use crate::boot;
use crate::boot::TcpKind;
use crate::config::{ApplyError, Config, Directive, SetContext};
use crate::exec::Step;
use crate::process::{allocator, crash, limits, log, system, title};
use crate::secure::{self, Secure};
use crate::session::{Session, State};
use crate::shared::Shared;
use crate::worker::{Call, Message, Worker};
use commands::{CmdError, CommandId};
use net::Listener;
use resp::Args;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::ConfigGet | C::ConfigHelp | C::ConfigResetstat | C::ConfigRewrite | C::ConfigSet)
}

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    session: &Session,
    command: CommandId,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    match command {
        CommandId::ConfigGet => {
            let patterns: Vec<&[u8]> = args.slice(2).iter().collect();
            let found = worker.shared.config.get(&patterns);
            worker.reply.map(found.len());
            for (name, value) in &found {
                worker.reply.bulk(name);
                worker.reply.bulk(value);
            }
        }
        CommandId::ConfigSet => {
            let arguments: Vec<&[u8]> = args.slice(2).iter().collect();
            let context = SetContext {
                client_is_local: session.is_local(),
                is_loading: worker.shared.durability.loading.is_on(),
            };
            let shared = worker.shared.clone();
            let (before, index) = (shared.config.snapshot(), worker.index);
            let mut acting = Acting { shared: &shared, asker: index, new_listeners: Vec::new() };
            shared
                .config
                .set(&arguments, context, &mut |config, changed| acting.act(config, changed))
                .map_err(error_line)?;
            worker.adopt_config();
            warn_about_memory(&before, &worker.config);
            worker.reply.ok();
        }
        CommandId::ConfigRewrite => {
            // Redis: with a file of users the config file holds none.
            let users = if worker.config.aclfile.is_empty() { worker.shared.acl.users() } else { Vec::new() };
            let lines = users.iter().map(|user| user.line()).collect();
            worker.shared.config.rewrite(&[("user", lines)]).map_err(error_line)?;
            worker.reply.ok();
        }
        _ => return reset_statistics(worker, session),
    }
    Ok(Step::Done)
}

fn error_line(line: Vec<u8>) -> CmdError {
    CmdError::text(String::from_utf8_lossy(&line).into_owned())
}

fn warn_about_memory(before: &Config, now: &Config) {
    let used = keyspace::memory::used_bytes();
    if now.maxmemory != before.maxmemory && now.maxmemory > 0 && (used as u64) > now.maxmemory {
        crate::log!(
            log::Level::Warning,
            "WARNING: the new maxmemory value set via CONFIG SET ({}) is smaller than the current memory usage ({used}). This will result in key eviction and/or the inability to accept new write commands depending on the maxmemory-policy.",
            now.maxmemory
        );
    }
}

// ---- acting on changes -------------------------------------------------------------------------------------------

/// Acts on one CONFIG SET.
struct Acting<'a> {
    shared: &'a Arc<Shared>,
    asker: u16,
    /// Of these kinds the workers listen by the new configuration already.
    new_listeners: Vec<TcpKind>,
}

impl Acting<'_> {
    fn act(&mut self, config: &Config, changed: &[&'static Directive]) -> Result<(), ApplyError> {
        act(self, config, changed)
    }

    /// Listens by `config`. When it is the old one again, only if the new one was listened by: clients that wait to be
    /// accepted are lost with the sockets.
    fn listen(&mut self, config: &Config, kind: TcpKind) -> Result<(), ()> {
        let is_old = config.version == self.shared.config.version();
        if is_old && !self.new_listeners.contains(&kind) {
            return Ok(());
        }
        listen_anew(self.shared, self.asker, config, kind)?;
        self.new_listeners.retain(|other| *other != kind);
        if !is_old {
            self.new_listeners.push(kind);
        }
        Ok(())
    }
}

fn act(acting: &mut Acting<'_>, config: &Config, changed: &[&'static Directive]) -> Result<(), ApplyError> {
    let shared = acting.shared;
    let mut is_title_old = false;
    let mut is_secure_new = false;
    for directive in changed {
        let refuse = |message: String| ApplyError { directive: directive.name, message };
        match directive.name {
            "port" => {
                acting
                    .listen(config, TcpKind::Plain)
                    .map_err(|()| refuse("Unable to listen on this port. Check server logs.".to_owned()))?;
                is_title_old = true;
            }
            "bind" => {
                for kind in [TcpKind::Plain, TcpKind::Secure] {
                    acting
                        .listen(config, kind)
                        .map_err(|()| refuse("Failed to bind to specified addresses.".to_owned()))?;
                }
                is_title_old = true;
            }
            "tls-port" => {
                if !shared.secure.is_configured() && config.tls_port != 0 {
                    shared.secure.configure(config).map_err(|_| refuse(secure::NOT_UPDATED.to_owned()))?;
                }
                acting
                    .listen(config, TcpKind::Secure)
                    .map_err(|()| refuse("Unable to listen on this port. Check server logs.".to_owned()))?;
                is_title_old = true;
            }
            name if name.starts_with("tls-") && !is_secure_new => {
                // Once for all of them: each is read from the new configuration.
                is_secure_new = true;
                if Secure::is_needed(config) {
                    shared.secure.configure(config).map_err(|_| refuse(secure::NOT_UPDATED.to_owned()))?;
                }
            }
            "proc-title-template" => is_title_old = true,
            "requirepass" => shared.acl.set_required_password(&config.requirepass),
            "maxclients" => {
                let workers = u32::try_from(shared.workers()).unwrap_or(1);
                let fitted =
                    limits::fit_running(config.maxclients, workers, shared.private_tables.load(Ordering::Relaxed));
                fitted.map_err(|fitting| refuse(limits::too_many_clients(fitting)))?;
            }
            "appendonly" if config.appendonly => shared.switch_aof_on().map_err(refuse)?,
            "appendonly" => shared.switch_aof_off(),
            "appendfsync" | "aof-timestamp-enabled" | "no-appendfsync-on-rewrite" => shared.aof.adopt(config),
            "min-replicas-to-write" | "min-replicas-max-lag" | "replica-serve-stale-data" => {
                shared.renew_replicas(config);
            }
            "loglevel" => log::set_level(config.loglevel),
            "crash-log-enabled" => crash::set_enabled(config.crash_log_enabled),
            "jemalloc-bg-thread" => allocator::set_threads(config.jemalloc_bg_thread).map_err(refuse)?,
            "oom-score-adj" | "oom-score-adj-values" => {
                system::set_oom_score(config, system::OomRole::Primary)
                    .map_err(|message| refuse(message.to_owned()))?;
            }
            "tcp-keepalive" => {
                let options = boot::socket_options(config);
                for worker in 0..shared.workers() {
                    #[allow(clippy::cast_possible_truncation)]
                    shared.post(worker as u16, Message::Call(Box::new(move |_, conns| conns.set_options(options))));
                }
            }
            _ => {}
        }
    }
    if is_title_old {
        let file = shared.config.file().map(|path| path.as_os_str().as_bytes());
        title::show(config, shared.program.get().map_or(&b"oxidis-server"[..], Vec::as_slice), file);
    }
    Ok(())
}

/// Listens by a changed configuration, on all workers, and no longer by the present one.
///
/// `asker` opens its sockets here and now, so that a refusal of the kernel is the client's answer and the address is
/// served when it has its OK; the others open theirs on their own threads, since a worker may have a descriptor table
/// of its own.
fn listen_anew(shared: &Arc<Shared>, asker: u16, config: &Config, kind: TcpKind) -> Result<(), ()> {
    let is_new_port = kind.port(&shared.config.snapshot()) != kind.port(config);
    let (mut of_asker, _) = boot::open_tcp_listeners(config, &shared.secure, kind, 1, is_new_port).ok_or(())?;
    for worker in 0..shared.workers() {
        #[allow(clippy::cast_possible_truncation)]
        let worker = worker as u16;
        let call: Call = if worker == asker {
            let listeners = of_asker.pop().unwrap_or_default();
            Box::new(move |_, conns| exchange(conns, kind, listeners))
        } else {
            let config = config.clone();
            Box::new(move |worker: &mut Worker, conns| {
                // A failure here is in the log; the other workers take the clients.
                let opened = boot::open_tcp_listeners(&config, &worker.shared.secure, kind, 1, false)
                    .and_then(|(mut all, _)| all.pop());
                exchange(conns, kind, opened.unwrap_or_default());
            })
        };
        shared.post(worker, Message::Call(call));
    }
    Ok(())
}

fn exchange(conns: &mut net::Conns<Worker>, kind: TcpKind, listeners: Vec<Listener>) {
    conns.close_tcp_listeners(kind == TcpKind::Secure);
    for listener in listeners {
        if let Err(error) = conns.listen(listener) {
            crate::log!(log::Level::Warning, "A worker cannot listen on a new socket: {error}");
        }
    }
}

// ---- RESETSTAT ---------------------------------------------------------------------------------------------------

/// Each counter has one writer, so all workers must stand still while they are set back.
fn reset_statistics(worker: &mut Worker, session: &Session) -> Result<Step, CmdError> {
    let reset = |worker: &mut Worker| worker.shared.reset_statistics();
    if worker.locks.is_alone() || session.state.has(State::IN_MULTI) {
        // Within a transaction whose slots are held nobody can be stopped: a count of another worker may survive.
        reset(worker);
    } else if worker.alone(reset).is_none() {
        return Ok(Step::Retry);
    }
    worker.reply.ok();
    Ok(Step::Done)
}

impl Shared {
    fn reset_statistics(&self) {
        for stats in &self.stats {
            stats.reset();
        }
        self.error_counts.lock().clear();
        self.acl.log.reset_counts();
        self.key_stats.iter().for_each(|stats| stats.lock().forget_uses());
        let mut rates = self.rates.lock();
        *rates = crate::shared::Rates::default();
    }
}
