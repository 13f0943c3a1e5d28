//! CONFIG GET, SET, RESETSTAT, REWRITE of the proxy.

use commands::CommandId;
use net::SocketOptions;
use resp::{Args, Reply};
use server::process::{crash, log};
use std::time::Duration;

use super::Answer;
use crate::config::Config;
use crate::service::{Message, Worker};
use crate::shared::Shared;

impl Worker {
    pub(super) fn config_command(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Answer<Reply> {
        match id {
            CommandId::ConfigGet => {
                let patterns: Vec<&[u8]> = args.iter().skip(2).collect();
                let found = self.shared.config.get(&patterns);
                Ok(self.written(place, |_, reply| {
                    reply.map(found.len());
                    for (name, value) in &found {
                        reply.bulk(name);
                        reply.bulk(value);
                    }
                }))
            }
            CommandId::ConfigSet => {
                let pairs: Vec<&[u8]> = args.iter().skip(2).collect();
                if !pairs.len().is_multiple_of(2) {
                    return Err("ERR wrong number of arguments for 'config|set' command".to_owned());
                }
                let shared = self.shared.clone();
                shared.config.set(&pairs, |config, names| act(&shared, config, names))?;
                Ok(self.written(place, |_, reply| reply.ok()))
            }
            CommandId::ConfigResetstat => {
                for worker in 0..self.shared.workers() {
                    // Each counter is its worker's alone to write.
                    self.shared.post(worker, Message::Call(Box::new(|worker, _| worker.stats.reset())));
                }
                Ok(self.written(place, |_, reply| reply.ok()))
            }
            _ => {
                Err("ERR the proxy does not write its configuration file: change it by hand, and by CONFIG SET"
                    .to_owned())
            }
        }
    }
}

/// Directives that do not act by being read.
fn act(shared: &Shared, config: &Config, names: &[&'static str]) {
    let base = &config.base;
    for name in names {
        match *name {
            "requirepass" => shared.acl.set_required_password(&base.requirepass),
            "loglevel" => log::set_level(base.loglevel),
            "crash-log-enabled" => crash::set_enabled(base.crash_log_enabled),
            "tcp-keepalive" => {
                let seconds = u64::try_from(base.tcp_keepalive).ok().filter(|seconds| *seconds > 0);
                let options =
                    SocketOptions { nodelay: true, keepalive: seconds.map(Duration::from_secs), congestion: None };
                for worker in 0..shared.workers() {
                    shared.post(worker, Message::Call(Box::new(move |_, conns| conns.set_options(options))));
                }
            }
            _ => {}
        }
    }
}
