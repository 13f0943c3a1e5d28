//! ACL: the users of the proxy.

use commands::CommandId;
use commands::table;
use resp::{Args, Reply};
use server::acl::commands::{Effect, Setting, answer};

use super::Answer;
use crate::client::State;
use crate::service::{Message, Worker};

impl Worker {
    pub(super) fn acl_command(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Answer<Reply> {
        let shared = self.shared.clone();
        let config = self.config.clone();
        let mut reply = self.own_reply(place);
        let own_name = self.clients.get(place as usize).map(|client| client.user_name().to_vec()).unwrap_or_default();
        let find = |call: Args<'_>| {
            let spec = table::lookup(call.get(0)?)?;
            match call.get(1) {
                Some(sub) if spec.is_container() => table::lookup_sub(spec, sub),
                _ => Some(spec),
            }
        };
        let setting = Setting {
            acl: &shared.acl,
            file: &config.base.aclfile,
            all_channels: config.base.acl_pubsub_default.allows_all(),
            own_name: &own_name,
            now_ms: i64::try_from(self.now_ms).unwrap_or(i64::MAX),
            find: &find,
        };
        let effect = answer(&setting, id, args, &mut reply).map_err(|error| error.0.into_owned())?;
        match effect {
            Effect::None => {}
            // Each request is checked by the rights of the moment, and listening is ended as a whole: a client that may not
            // listen to one of its channels any more is closed, as Redis does.
            Effect::Changed(change) => {
                let (user, after) = (change.user.name.to_vec(), change.after);
                for worker in 0..shared.workers() {
                    let (user, after) = (user.clone(), after.clone());
                    let call = move |worker: &mut Worker, _: &mut net::Conns<Worker>| {
                        worker.close_listeners_of(&user, &after);
                    };
                    shared.post(worker, Message::Call(Box::new(call)));
                }
            }
            Effect::Gone(gone) if !gone.is_empty() => {
                for worker in 0..shared.workers() {
                    shared.post(worker, Message::Call(Box::new(|worker, _| worker.close_clients_without_user())));
                }
            }
            Effect::Gone(_) => {}
        }
        Ok(reply)
    }

    /// Closes clients whose user is gone.
    fn close_clients_without_user(&mut self) {
        let is_lost = |client: &crate::client::Client| client.user.as_ref().is_some_and(|user| user.is_deleted());
        let lost: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, client)| is_lost(client))
            .filter_map(|(place, _)| u32::try_from(place).ok())
            .collect();
        lost.into_iter().for_each(|place| self.close_after_replies(place));
    }

    /// Closes clients of a user that listen to what the user may not listen to any more.
    fn close_listeners_of(&mut self, user: &[u8], after: &server::acl::rules::Rules) {
        let is_hit = |client: &crate::client::Client| {
            client.state.has(State::SUBSCRIBED)
                && client.user_name() == user
                && client.pinned().is_some_and(|pinned| !pinned.subscriptions.are_allowed(after))
        };
        let Worker { clients, closing, .. } = self;
        closing.extend(clients.iter().filter(|(_, client)| is_hit(client)).map(|(_, client)| (client.conn, false)));
    }
}
