//! PUBSUB: what all servers say, joined, with the proxy's own part put right.

use commands::CommandId;
use commands::table::errors;
use resp::{Args, write_command};

use super::hub::Kind;
use crate::dispatch::Step;
use crate::merge;
use crate::routing;
use crate::service::Worker;
use crate::tasks::{Answer, Work};

/// A question under way.
#[derive(Debug)]
pub(crate) struct Question {
    id: CommandId,
    names: Vec<Vec<u8>>,
}

impl Worker {
    /// PUBSUB CHANNELS, NUMSUB, NUMPAT, SHARDCHANNELS, SHARDNUMSUB.
    pub(crate) fn pubsub(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Step {
        let is_list = matches!(id, CommandId::PubsubChannels | CommandId::PubsubShardchannels);
        if is_list && args.len() > 3 {
            return self.refuse_request(place, &errors::subcommand_syntax(&args));
        }
        let names = args.iter().skip(2).map(<[u8]>::to_vec).collect();
        let mut bytes = Vec::new();
        write_command(&mut bytes, args);
        let backends = self.owner_places();
        if backends.is_empty() {
            return self.refuse_request(place, b"CLUSTERDOWN The cluster is down");
        }
        let Some(task) = self.begin_task(place, Work::PubSub(Question { id, names })) else { return Step::CloseNow };
        for backend in backends {
            self.task_request(task, backend, &bytes, 1);
        }
        Step::Done
    }

    pub(crate) fn pubsub_answered(&mut self, id: u32, question: &Question, answers: Vec<Answer>) {
        if let Some(answer) = answers.iter().find(|answer| merge::is_error(&answer.bytes)) {
            return self.fulfil(id, &answer.bytes);
        }
        match question.id {
            CommandId::PubsubNumpat => {
                // Patterns are subscribed to at several servers, so the numbers cannot be added up.
                let most = answers.iter().filter_map(|answer| merge::integer(&answer.bytes)).max().unwrap_or(0);
                self.fulfil_with(id, |reply| reply.int(most));
            }
            CommandId::PubsubChannels | CommandId::PubsubShardchannels => {
                let mut names: Vec<&[u8]> = answers.iter().flat_map(|answer| bulks(&answer.bytes)).collect();
                names.sort_unstable();
                names.dedup();
                self.fulfil_with(id, |reply| {
                    reply.array(names.len());
                    names.iter().for_each(|name| reply.bulk(name));
                });
            }
            _ => {
                let kind = if question.id == CommandId::PubsubNumsub { Kind::Channel } else { Kind::Shard };
                let counts: Vec<i64> = (0..question.names.len())
                    .map(|index| self.listeners(kind, &question.names, index, &answers))
                    .collect();
                self.fulfil_with(id, |reply| {
                    reply.array(2 * counts.len());
                    for (name, count) in question.names.iter().zip(counts) {
                        reply.bulk(name);
                        reply.int(count);
                    }
                });
            }
        }
    }

    /// How many listen to a name, by the server that counts: the owner of its slot.
    fn listeners(&self, kind: Kind, names: &[Vec<u8>], index: usize, answers: &[Answer]) -> i64 {
        let name = names.get(index).map(Vec::as_slice).unwrap_or_default();
        let owner = self.owner_of(routing::slot_of(self.map.space, name));
        let answer = answers.iter().find(|answer| Some(answer.backend) == owner);
        let said = answer.and_then(|answer| numbers(&answer.bytes).into_iter().nth(index)).unwrap_or(0);
        match owner.and_then(|owner| self.backends.get(owner as usize)) {
            Some(backend) => self.shared.board.listeners(kind, name, said, backend.address),
            None => said,
        }
    }
}

fn replies(reply: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (count, mut rest) = merge::elements(reply).unwrap_or((0, &[]));
    (0..count).map_while(move |_| merge::take_reply(&mut rest))
}

fn bulks(reply: &[u8]) -> impl Iterator<Item = &[u8]> {
    replies(reply).filter_map(merge::bulk)
}

fn numbers(reply: &[u8]) -> Vec<i64> {
    replies(reply).filter_map(merge::integer).collect()
}
