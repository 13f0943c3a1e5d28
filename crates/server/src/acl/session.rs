//! What sessions have to do with users: logging in, noticing that rights have changed, being refused.

use super::check::{self, Denied};
use super::log::{Context, Reason, Refusal};
use super::rules::{self, PasswordHash, Rules};
use super::{Acl, DEFAULT_USER, User};
use crate::session::{Session, State};
use crate::worker::{Message, Worker};
use commands::CmdError;
use commands::table::CommandSpec;
use commands::table::keys::ArgView;
use net::{ConnId, Conns};
use resp::Args;
use std::sync::Arc;

/// The password or the user is wrong: which of them is not told.
const WRONG_PASS: CmdError = CmdError::new("WRONGPASS invalid username-password pair or user is disabled.");

impl Session {
    /// The name of its user.
    pub fn user_name(&self) -> &[u8] {
        self.user.as_ref().map_or(DEFAULT_USER, |user| &user.name)
    }
}

/// Compares two hashes in a time that does not depend on where they differ.
fn is_same(given: &PasswordHash, kept: &PasswordHash) -> bool {
    let difference = given.iter().zip(kept).fold(0_u8, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// Whether a user may log in with a password. The same work is done whether there is such a user or not, whether it is
/// enabled, and wherever the passwords differ.
fn may_log_in(rules: Option<&Rules>, password: &[u8]) -> bool {
    let given = rules::hash(password);
    let nobody = [[0; size_of::<PasswordHash>()]];
    let passwords =
        rules.map_or(&nobody[..], |rules| if rules.passwords.is_empty() { &nobody } else { &rules.passwords });
    let is_right = passwords.iter().fold(false, |found, kept| found | is_same(&given, kept));
    rules.is_some_and(|rules| rules.enabled & (rules.nopass | is_right))
}

impl Acl {
    /// The user of a name, if it may log in with this password. The answer takes the same time whatever is wrong.
    pub fn log_in(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.get(name);
        let rules = user.as_ref().map(|user| user.rules());
        user.filter(|_| may_log_in(rules.as_deref(), password))
    }
}

impl Worker {
    /// The user of a session.
    pub(crate) fn user_of(&self, session: &Session) -> Arc<User> {
        session.user.clone().unwrap_or_else(|| self.shared.acl.default_user().clone())
    }

    /// Looks at the user of a session anew if any user has changed. To be asked before commands are begun.
    #[inline]
    pub(crate) fn renew_rights(&self, session: &mut Session) {
        let version = self.shared.acl.version();
        if session.rights_version != version {
            self.read_rights(session, version);
        }
    }

    #[cold]
    fn read_rights(&self, session: &mut Session, version: u32) {
        session.rights_version = version;
        if session.user.as_ref().is_some_and(|user| user.is_deleted()) {
            self.lose_user(session);
            session.state.insert(State::USER_GONE);
        }
        if session.state.has(State::UNAUTHENTICATED)
            && !self.shared.acl.default_needs_password()
            && session.user.is_none()
        {
            // The password was taken away since the client connected.
            session.state.remove(State::UNAUTHENTICATED);
        }
        if self.user_of(session).rules().allows_everything() {
            session.state.remove(State::RESTRICTED);
        } else {
            session.state.insert(State::RESTRICTED);
        }
    }

    /// The session's user was removed: until it is closed it is the default user's, not logged in.
    pub(crate) fn lose_user(&self, session: &mut Session) {
        session.user = None;
        session.state.insert(State::UNAUTHENTICATED);
        session.rights_version = 0;
    }

    /// Makes a session the default user's, as it was when the client connected.
    pub(crate) fn reset_user(&self, session: &mut Session) {
        session.user = None;
        session.rights_version = 0;
        if self.shared.acl.default_needs_password() {
            session.state.insert(State::UNAUTHENTICATED);
        } else {
            session.state.remove(State::UNAUTHENTICATED);
        }
    }

    /// Logs a session in. `command` is the name of the command as the client wrote it.
    ///
    /// # Errors
    /// No such user, a wrong password, or the user is off: which of them is not told.
    pub(crate) fn log_in(
        &mut self,
        id: ConnId,
        session: &mut Session,
        name: &[u8],
        password: &[u8],
        command: &[u8],
    ) -> Result<(), CmdError> {
        if let Some(user) = self.shared.acl.log_in(name, password) {
            session.state.remove(State::UNAUTHENTICATED);
            session.user = if *user.name == *DEFAULT_USER { None } else { Some(user) };
            session.rights_version = 0;
            self.renew_rights(session);
            return Ok(());
        }
        let context = if session.state.has(State::IN_MULTI) { Context::Multi } else { Context::Toplevel };
        self.note_refusal(id, session, Reason::Auth, context, command.to_vec(), name.to_vec());
        Err(WRONG_PASS)
    }

    /// Whether a session's user may run a command. Scripts ask this for each call, too.
    ///
    /// # Errors
    /// It may not; [`Worker::refuse`] gives the error and notes it.
    #[inline]
    pub(crate) fn check_rights<A: ArgView + ?Sized>(
        &self,
        session: &mut Session,
        spec: &CommandSpec,
        args: &A,
    ) -> Result<(), Denied> {
        if self.is_replaying {
            // A log or a primary: what it tells has been done elsewhere already.
            return Ok(());
        }
        self.renew_rights(session);
        if !session.state.has(State::RESTRICTED) {
            return Ok(());
        }
        check::check(&self.user_of(session).rules(), spec, args)
    }

    /// The error for a SORT that looks at keys its user may not read, or that a cluster does not let it look at.
    pub(crate) fn sort_refusal(&self, session: &Session, spec: &CommandSpec, args: Args<'_>) -> Option<CmdError> {
        if let Some(error) = self.sort_refusal_in_cluster(spec, args) {
            return Some(error);
        }
        if !session.state.has(State::RESTRICTED) {
            return None;
        }
        check::sort_refusal(&self.user_of(session).rules(), spec, &args)
    }

    /// Notes that a command was refused, and gives the sentence that tells it, without `NOPERM`.
    pub(crate) fn refuse<A: ArgView + ?Sized>(
        &mut self,
        id: ConnId,
        session: &mut Session,
        spec: &'static CommandSpec,
        args: &A,
        denied: Denied,
        context: Context,
    ) -> String {
        let (reason, object) = match denied {
            Denied::Command => (Reason::Command, spec.name.as_bytes()),
            Denied::Key(at) => (Reason::Key, args.arg(at).unwrap_or_default()),
            Denied::Channel(at) => (Reason::Channel, args.arg(at).unwrap_or_default()),
        };
        session.last_command = Some(spec.id);
        let user = session.user_name().to_vec();
        self.note_refusal(id, session, reason, context, object.to_vec(), user);
        denied.sentence(session.user_name(), spec)
    }

    fn note_refusal(
        &mut self,
        id: ConnId,
        session: &Session,
        reason: Reason,
        context: Context,
        object: Vec<u8>,
        user: Vec<u8>,
    ) {
        let client = crate::client_list::line_of_session(session, &self.config.unixsocket);
        self.log_refusal(self.index, id, Refusal { reason, context, object, user, client });
    }

    /// Adds to ACL LOG. What only the loop knows of the client, as its descriptor, follows as soon as its worker gets to
    /// it.
    pub(crate) fn log_refusal(&self, worker: u16, conn: ConnId, refusal: Refusal) {
        let max_len = usize::try_from(self.config.acllog_max_len).unwrap_or(0);
        let entry = self.shared.acl.log.add(refusal, self.now_ms, max_len);
        if max_len == 0 {
            return;
        }
        let describe = move |worker: &mut Worker, conns: &mut Conns<Worker>| {
            let mut line = Vec::new();
            if worker.describe(conns, conn, &mut line).is_some() {
                worker.shared.acl.log.describe_client(entry, line);
            }
        };
        self.shared.post(worker, Message::Call(Box::new(describe)));
    }

    /// Has every worker close the clients of removed users. Until then they can do nothing: see [`State::USER_GONE`].
    pub(crate) fn close_clients_of(&self, gone: &[Arc<User>]) {
        if gone.is_empty() {
            return;
        }
        self.close_where(|_, session| {
            session.user.as_ref().is_some_and(|user| user.is_deleted()) || session.state.has(State::USER_GONE)
        });
    }

    /// Has every worker close the subscribers among a user's clients that may no longer listen to what they listen to.
    pub(crate) fn close_subscribers_of(&self, user: &Arc<User>, before: &Rules, after: &Arc<Rules>) {
        if self.shared.pubsub.has_no_names() || after.selectors().any(|selector| selector.all_channels) {
            return;
        }
        let keeps_all = before.selectors().all(|selector| {
            !selector.all_channels
                && selector
                    .channels
                    .iter()
                    .all(|channel| after.selectors().any(|selector| selector.channels.contains(channel)))
        });
        if keeps_all {
            return;
        }
        let (user, after) = (user.clone(), after.clone());
        let is_default = *user.name == *DEFAULT_USER;
        self.close_where(move |_, session| {
            let is_its = session.user.as_ref().map_or(is_default, |own| Arc::ptr_eq(own, &user));
            let Some(extra) = session.extra.as_ref().filter(|_| is_its && session.state.has(State::SUBSCRIBED)) else {
                return false;
            };
            let channels = extra.channels.iter().chain(&extra.shard_channels).map(|name| &**name);
            !check::allows_subscriptions(&after, channels, extra.patterns.iter().map(|name| &**name))
        });
    }

    fn close_where(&self, is_victim: impl Fn(&Worker, &Session) -> bool + Clone + Send + 'static) {
        for worker in 0..self.shared.workers() {
            let is_victim = is_victim.clone();
            let call = move |worker: &mut Worker, conns: &mut Conns<Worker>| {
                let victims: Vec<ConnId> =
                    conns.iter().filter(|(_, session)| is_victim(worker, session)).map(|(conn, _)| conn).collect();
                worker.close_clients(conns, victims);
            };
            #[allow(clippy::cast_possible_truncation)]
            self.shared.post(worker as u16, Message::Call(Box::new(call)));
        }
    }
}
