//! What the proxy answers itself: about its clients, its configuration, its figures, the command table.

mod acl;
mod clients;
mod config;
mod figures;
mod info;

use commands::CommandId;
use commands::table::{self, CommandSpec, command};
use resp::{Args, Reply};

use crate::dispatch::Step;
use crate::service::Worker;

/// Redis: what a server without cluster support says to all of CLUSTER, ASKING, READONLY.
const NO_CLUSTER: &str = "ERR This instance has cluster support disabled";

/// The text of an error for the client, with its code.
pub(crate) type Answer<T = ()> = Result<T, String>;

impl Worker {
    /// Answers a command that the proxy answers itself.
    pub(crate) fn answer_locally(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>) -> Step {
        use CommandId as C;
        let (container, subcommand) = spec.name.split_once('|').unwrap_or((spec.name, ""));
        if subcommand == "help"
            && let Some(of) = table::lookup(container.as_bytes())
        {
            let mut reply = self.own_reply(place);
            if table::help::write(of.id, &args, &mut reply) {
                return self.give_own(place, Ok(reply));
            }
        }
        let answer = match spec.id {
            C::Time => Ok(self.written(place, |worker, reply| {
                reply.array(2);
                reply.bulk_int(i64::try_from(worker.now_ms / 1000).unwrap_or(0));
                reply.bulk_int(i64::try_from(worker.now_ms % 1000 * 1000).unwrap_or(0));
            })),
            C::Role => Ok(self.written(place, |_, reply| {
                reply.array(3);
                reply.bulk("master");
                reply.int(0);
                reply.empty_array();
            })),
            C::Lolwut => Ok(self.written(place, |_, reply| {
                reply.verbatim(format!("Oxidis proxy ver. {}\n", env!("CARGO_PKG_VERSION")), "txt");
            })),
            C::Command => Ok(self.written(place, |_, reply| command::all(reply))),
            C::CommandCount => Ok(self.written(place, |_, reply| command::count(reply))),
            C::CommandInfo => Ok(self.written(place, |_, reply| command::info(&args, reply))),
            C::CommandDocs => Ok(self.written(place, |_, reply| command::docs(&args, reply))),
            C::CommandList => Ok(self.written(place, |_, reply| command::list(&args, reply))),
            C::CommandGetkeys => Ok(self.written(place, |_, reply| command::get_keys(&args, reply))),
            C::CommandGetkeysandflags => Ok(self.written(place, |_, reply| command::get_keys_and_flags(&args, reply))),
            C::ModuleList => Ok(self.written(place, |_, reply| reply.empty_array())),
            C::Info => Ok(self.info(place, args)),
            C::Asking | C::Readonly | C::Readwrite => Err(NO_CLUSTER.to_owned()),
            _ => match container {
                "client" => match self.client_command(place, spec.id, args) {
                    Ok(Some(reply)) => Ok(reply),
                    Ok(None) => return Step::Done,
                    Err(error) => Err(error),
                },
                "config" => self.config_command(place, spec.id, args),
                "slowlog" => self.slowlog_command(place, spec.id, args),
                "latency" => self.latency_command(place, spec.id, args),
                "acl" => self.acl_command(place, spec.id, args),
                "cluster" => Err(NO_CLUSTER.to_owned()),
                _ => Err(format!("ERR command '{}' is not allowed through the proxy", spec.name.replace('|', " "))),
            },
        };
        self.give_own(place, answer)
    }

    /// An empty reply in the client's protocol.
    fn own_reply(&self, place: u32) -> Reply {
        let proto = self.clients.get(place as usize).map_or(resp::Proto::Resp2, crate::client::Client::proto);
        Reply::with_buffer(Vec::new(), proto)
    }

    fn written(&mut self, place: u32, write: impl FnOnce(&mut Worker, &mut Reply)) -> Reply {
        let mut reply = self.own_reply(place);
        write(self, &mut reply);
        reply
    }

    fn give_own(&mut self, place: u32, answer: Answer<Reply>) -> Step {
        match answer {
            Ok(reply) => {
                self.reply_now(place, |out| out.raw(&reply.buf));
                Step::Done
            }
            Err(text) => self.refuse_request(place, text.as_bytes()),
        }
    }
}

/// Whether an argument is a word, in any case.
fn is_word(args: &Args<'_>, at: usize, word: &str) -> bool {
    args.get(at).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
}

/// The error for arguments that a subcommand does not take.
fn syntax_of(args: &Args<'_>) -> String {
    String::from_utf8_lossy(&table::errors::subcommand_syntax(args)).into_owned()
}

/// Lossy text of an argument, for errors.
fn shown(argument: &[u8]) -> String {
    String::from_utf8_lossy(argument).into_owned()
}
