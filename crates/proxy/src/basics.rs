//! What the proxy answers about the connection itself: AUTH, HELLO, PING, ECHO, SELECT, QUIT, RESET; and what sessions keep
//! of their users.

use commands::CommandId;
use commands::table::CommandSpec;
use resp::{Args, Proto};
use server::acl::DEFAULT_USER;

use crate::backend::LaneKind;
use crate::client::{Pause, State};
use crate::dispatch::Step;
use crate::service::Worker;
use crate::slots::Kind;

/// The text of a wrong login: which part was wrong is not told.
const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD_SET: &str = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
const HELLO_NO_AUTH: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";

impl Worker {
    /// Looks at a client's user anew if any user has changed.
    #[inline]
    pub(crate) fn renew_rights(&mut self, place: u32) {
        let version = self.shared.acl.version();
        if self.clients.get(place as usize).is_some_and(|client| client.rights_version != version) {
            self.read_rights(place, version);
        }
    }

    #[cold]
    fn read_rights(&mut self, place: u32, version: u32) {
        let acl = &self.shared.acl;
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        client.rights_version = version;
        if client.user.as_ref().is_some_and(|user| user.is_deleted()) {
            client.user = None;
            client.state.insert(State::UNAUTHENTICATED);
            client.state.insert(State::CLOSING);
        }
        if client.state.has(State::UNAUTHENTICATED) && !acl.default_needs_password() && client.user.is_none() {
            client.state.remove(State::UNAUTHENTICATED);
        }
        if client.user.as_ref().unwrap_or(acl.default_user()).rules().allows_everything() {
            client.state.remove(State::RESTRICTED);
        } else {
            client.state.insert(State::RESTRICTED);
        }
    }

    /// Logs a client in.
    fn log_in(&mut self, place: u32, name: &[u8], password: &[u8]) -> Result<(), String> {
        let user = self.shared.acl.log_in(name, password).ok_or_else(|| WRONG_PASS.to_owned())?;
        let Some(client) = self.clients.get_mut(place as usize) else { return Ok(()) };
        client.state.remove(State::UNAUTHENTICATED);
        client.user = if *user.name == *DEFAULT_USER { None } else { Some(user) };
        client.rights_version = 0;
        self.renew_rights(place);
        Ok(())
    }

    /// A command that the proxy answers itself.
    pub(crate) fn run_here(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>) -> Step {
        // On another lane what follows would overtake what was sent before.
        let changes_lane = matches!(spec.id, CommandId::Select | CommandId::Hello | CommandId::Reset);
        if changes_lane && self.clients.get(place as usize).is_some_and(|client| !client.order.is_empty()) {
            self.pause(place, Pause::Drain);
            return Step::Again;
        }
        let result = match spec.id {
            CommandId::Auth => self.auth(place, args),
            CommandId::Hello => self.hello(place, args),
            CommandId::Ping => {
                if args.len() > 2 {
                    Err("ERR wrong number of arguments for 'ping' command".to_owned())
                } else {
                    self.reply_now(place, |reply| match args.get(1) {
                        Some(text) => reply.bulk(text),
                        None => reply.simple("PONG"),
                    });
                    Ok(())
                }
            }
            CommandId::Echo => {
                self.reply_now(place, |reply| reply.bulk(args.get(1).unwrap_or_default()));
                Ok(())
            }
            CommandId::Select => self.select(place, args),
            CommandId::Quit => {
                self.reply_now(place, resp::Reply::ok);
                self.close_after_replies(place);
                Ok(())
            }
            CommandId::Reset => {
                self.reset_client(place);
                self.reply_now(place, |reply| reply.simple("RESET"));
                Ok(())
            }
            _ => return self.answer_locally(place, spec, args),
        };
        match result {
            Ok(()) => Step::Done,
            Err(text) => self.refuse_request(place, text.as_bytes()),
        }
    }

    fn auth(&mut self, place: u32, args: Args<'_>) -> Result<(), String> {
        let word = |at| args.get(at).unwrap_or_default();
        match args.len() {
            2 if self.shared.acl.default_has_no_password() => return Err(NO_PASSWORD_SET.to_owned()),
            2 => self.log_in(place, DEFAULT_USER, word(1))?,
            3 => self.log_in(place, word(1), word(2))?,
            _ => return Err("ERR syntax error".to_owned()),
        }
        self.reply_now(place, resp::Reply::ok);
        Ok(())
    }

    fn hello(&mut self, place: u32, args: Args<'_>) -> Result<(), String> {
        let Some(client) = self.clients.get(place as usize) else { return Ok(()) };
        let mut proto = client.proto();
        let mut index = 1;
        if let Some(version) = args.get(1) {
            proto = match resp::num::parse_i64(version) {
                None => return Err("ERR Protocol version is not an integer or out of range".to_owned()),
                Some(2) => Proto::Resp2,
                Some(3) => Proto::Resp3,
                Some(_) => return Err("NOPROTO unsupported protocol version".to_owned()),
            };
            index = 2;
        }
        let (mut name, mut credentials) = (None, None);
        while let Some(word) = args.get(index) {
            match (args.get(index + 1), args.get(index + 2)) {
                (Some(user), Some(password)) if word.eq_ignore_ascii_case(b"auth") => {
                    credentials = Some((user, password));
                    index += 3;
                }
                (Some(value), _) if word.eq_ignore_ascii_case(b"setname") => {
                    if !value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
                        return Err(
                            "ERR Client names cannot contain spaces, newlines or special characters.".to_owned()
                        );
                    }
                    name = Some(value);
                    index += 2;
                }
                _ => return Err(format!("ERR Syntax error in HELLO option '{}'", String::from_utf8_lossy(word))),
            }
        }
        if let Some((user, password)) = credentials {
            self.log_in(place, user, password)?;
        }
        let Some(client) = self.clients.get_mut(place as usize) else { return Ok(()) };
        if client.state.has(State::UNAUTHENTICATED) {
            return Err(HELLO_NO_AUTH.to_owned());
        }
        if let Some(name) = name {
            client.extra_mut().name = name.to_vec();
        }
        client.kind = LaneKind::new(proto, client.db());
        let id = client.id;
        self.reply_now(place, |reply| {
            reply.map(7);
            reply.bulk("server");
            reply.bulk("redis");
            reply.bulk("version");
            reply.bulk(server::process::REDIS_VERSION);
            reply.bulk("proto");
            reply.int(if proto == Proto::Resp3 { 3 } else { 2 });
            reply.bulk("id");
            reply.int(i64::try_from(id).unwrap_or(i64::MAX));
            reply.bulk("mode");
            // Clients are not to look for a cluster behind it.
            reply.bulk("standalone");
            reply.bulk("role");
            reply.bulk("master");
            reply.bulk("modules");
            reply.empty_array();
        });
        Ok(())
    }

    fn select(&mut self, place: u32, args: Args<'_>) -> Result<(), String> {
        let db = commands::options::int32(args.get(1).unwrap_or_default()).map_err(|error| error.0.into_owned())?;
        let db = i64::from(db);
        let databases = if self.map.kind == Kind::Cluster { 1 } else { i64::from(self.config.base.databases) };
        if self.map.kind == Kind::Cluster && db != 0 {
            return Err("ERR SELECT is not allowed in cluster mode".to_owned());
        }
        if db < 0 || db >= databases {
            return Err("ERR DB index is out of range".to_owned());
        }
        if let Some(client) = self.clients.get_mut(place as usize) {
            client.kind = LaneKind::new(client.proto(), u32::try_from(db).unwrap_or(0));
        }
        self.reply_now(place, resp::Reply::ok);
        Ok(())
    }

    /// RESET: as it was when the client connected.
    fn reset_client(&mut self, place: u32) {
        self.reset_session(place);
        let needs_password = self.shared.acl.default_needs_password();
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        client.kind = LaneKind::PLAIN;
        client.user = None;
        client.rights_version = 0;
        if let Some(extra) = &mut client.extra {
            extra.name = Vec::new();
        }
        if needs_password {
            client.state.insert(State::UNAUTHENTICATED);
        } else {
            client.state.remove(State::UNAUTHENTICATED);
        }
        self.renew_rights(place);
    }
}
