//! A session: a connection that comes back, what the server knows about it (database, MULTI, subscriptions, protocol
//! version), and the way of a command from its words to the shown reply.

use std::thread::sleep;

use commands::table;
use resp::Value;

use crate::connection::{Connection, LinkError, plain};
use crate::format::{self, Format};
use crate::modes::cluster::ranges::Place;
use crate::options::{Options, Protocol};
use crate::output::{Exit, Outcome, complain, fail, os_text, print, print_line, text};

/// Redirections followed for one command.
const REDIRECTS_MAX: usize = 16;

/// Whether a failed connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// On standard error.
    Loud,
    /// Not yet: the command will try again.
    Quiet,
}

/// One session with a server, or with the nodes of a cluster in turn.
pub(crate) struct Session {
    pub(crate) options: Options,
    connection: Option<Connection>,
    /// Whether commands come from standard input. Then a lost connection is not the end.
    pub(crate) interactive: bool,
    /// Whether a refused password or database is only told: a person sees it and can do something.
    pub(crate) forgiving: bool,
    /// The database of the connection. `options.server.database` is the one that is wanted.
    pub(crate) database: i64,
    pub(crate) in_multi: bool,
    database_before_multi: i64,
    /// Subscribed to channels: messages may come at any time.
    pub(crate) subscribed: bool,
    resp3: bool,
    /// The last reply said that another node has the key.
    redirect: Option<Redirect>,
    /// The socket of `-s` is not where the redirections lead.
    was_redirected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirect {
    Moved,
    Ask,
}

impl Session {
    /// A session that is not connected yet.
    pub(crate) fn new(options: Options) -> Self {
        Session {
            options,
            connection: None,
            interactive: false,
            forgiving: false,
            database: 0,
            in_multi: false,
            database_before_multi: 0,
            subscribed: false,
            resp3: false,
            redirect: None,
            was_redirected: false,
        }
    }

    /// Whether there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// The connection, which must be there.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection, LinkError> {
        self.connection.as_mut().ok_or(LinkError::Closed)
    }

    /// Connects anew, logs in, chooses database and protocol; whether there is a connection now.
    ///
    /// # Errors
    /// Outside the prompt: when the server refuses one of these, unless `--legacy-connect` was given.
    pub(crate) fn connect(&mut self, report: Report) -> Outcome<bool> {
        self.disconnect();
        let server = &self.options.server;
        let (connection, place) = match &server.socket {
            Some(path) if !self.was_redirected => (Connection::unix(path), path.display().to_string()),
            _ => (
                Connection::tcp(&server.host, server.port, server.family, server.connect_timeout),
                format!("{}:{}", server.host, server.port),
            ),
        };
        let connection = match (connection, &server.connector) {
            (Ok(connection), Some(connector)) => match connection.secure(connector, server.connect_timeout) {
                Err(error) => {
                    if report == Report::Loud {
                        complain(format_args!("Could not negotiate a TLS connection: {}", os_text(&error)));
                    }
                    return Ok(false);
                }
                secured => secured,
            },
            (connection, _) => connection,
        };
        match connection {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                if report == Report::Loud {
                    complain(format_args!("Could not connect to Redis at {place}: {}", os_text(&error)));
                }
                return Ok(false);
            }
        }
        match self.introduce() {
            Ok(true) => Ok(true),
            // Redis goes on without a password, or in the wrong database.
            Ok(false) if self.forgiving || self.options.legacy_connect => Ok(true),
            Ok(false) => Err(Exit(1)),
            Err(error) => {
                self.connection = None;
                if report == Report::Loud {
                    complain(format_args!("Error: {error}"));
                }
                Ok(false)
            }
        }
    }

    /// Connects or ends the program: for modes that are nothing without a server.
    pub(crate) fn connect_or_exit(&mut self) -> Outcome<()> {
        if self.connect(Report::Loud)? { Ok(()) } else { Err(Exit(1)) }
    }

    /// Goes to another server, or ends the program.
    pub(crate) fn go_to(&mut self, place: &Place) -> Outcome<()> {
        let server = &mut self.options.server;
        server.host.clone_from(&place.host);
        server.port = place.port;
        self.was_redirected = true;
        self.connect_or_exit()
    }

    /// Closes the connection; with it goes all that the server knew.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
        self.database = 0;
        self.in_multi = false;
        self.subscribed = false;
        self.resp3 = false;
    }

    /// What comes before the first command; whether the server took all of it.
    fn introduce(&mut self) -> Result<bool, LinkError> {
        let server = self.options.server.clone();
        if let Some(password) = &server.password {
            let mut login = vec![b"AUTH".to_vec()];
            login.extend(server.user.clone());
            login.push(password.clone());
            if let Value::Error(reason) = self.connection()?.call(&login)? {
                complain(format_args!("AUTH failed: {}", text(&reason)));
                return Ok(false);
            }
        }
        if !self.select()? {
            return Ok(false);
        }
        if matches!(self.options.protocol, Protocol::Resp3 | Protocol::Resp3IfPossible) {
            if let Value::Error(reason) = self.connection()?.call(&["HELLO", "3"])? {
                complain(format_args!("HELLO 3 failed: {}", text(&reason)));
                return Ok(self.options.protocol == Protocol::Resp3IfPossible);
            }
            self.resp3 = true;
        }
        if let Some(name) = &server.name {
            let words: [&[u8]; 3] = [b"CLIENT", b"SETNAME", name];
            if let Value::Error(reason) = self.connection()?.call(&words)? {
                complain(format_args!("CLIENT SETNAME failed: {}", text(&reason)));
                return Ok(false);
            }
        }
        if self.options.verbose {
            complain(format_args!("connected to {}:{}", server.host, server.port));
        }
        Ok(true)
    }

    /// Goes to the wanted database; whether the server let us.
    fn select(&mut self) -> Result<bool, LinkError> {
        let wanted = self.options.server.database;
        if wanted == self.database {
            return Ok(true);
        }
        let words = ["SELECT".to_string(), wanted.to_string()];
        if let Value::Error(reason) = self.connection()?.call(&words)? {
            complain(format_args!("SELECT {wanted} failed: {}", text(&reason)));
            return Ok(false);
        }
        self.database = wanted;
        Ok(true)
    }

    /// Runs a command, connecting before it and following redirections; whether it got a reply, be it an error.
    pub(crate) fn issue(&mut self, arguments: &[Vec<u8>], repeat: i64) -> Outcome<bool> {
        if self.options.readonly
            && let Some(reason) = may_write(arguments)
        {
            complain(format_args!("Not sent: {reason}, and this session is --readonly."));
            return Ok(false);
        }
        for _ in 0..REDIRECTS_MAX {
            if (self.redirect.is_some() || self.connection.is_none()) && !self.connect(Report::Loud)? {
                self.redirect = None;
                return Ok(false);
            }
            let asking = self.redirect.take() == Some(Redirect::Ask);
            match self.send(arguments, repeat, asking) {
                Ok(result) => result?,
                Err(error) => return self.lost(arguments, &error),
            }
            if self.redirect.is_none() {
                return Ok(true);
            }
        }
        self.redirect = None;
        complain(format_args!("Error: Too many redirections"));
        Ok(false)
    }

    /// The connection broke while a command was running.
    fn lost(&mut self, arguments: &[Vec<u8>], error: &LinkError) -> Outcome<bool> {
        let was_listening = self.subscribed || is(arguments, "monitor");
        self.disconnect();
        match error {
            LinkError::Closed if is(arguments, "shutdown") => Ok(true),
            LinkError::Interrupted if was_listening => self.connect(Report::Loud),
            LinkError::Interrupted => {
                complain(format_args!("Interrupted: connection closed; the command may have run."));
                Ok(false)
            }
            error => {
                complain(format_args!("Error: {error}"));
                if self.interactive { Ok(false) } else { Err(Exit(1)) }
            }
        }
    }

    /// Sends a command, `repeat` times (for ever if negative), and shows the replies.
    fn send(&mut self, arguments: &[Vec<u8>], repeat: i64, asking: bool) -> Result<Outcome<()>, LinkError> {
        let verbatim = format::is_verbatim(arguments);
        let mut turn = 0;
        while repeat < 0 || turn < repeat {
            turn += 1;
            if asking && let Value::Error(reason) = self.connection()?.call(&["ASKING"])? {
                complain(format_args!("ASKING failed: {}", text(&reason)));
            }
            self.connection()?.send(arguments)?;
            let result = if is(arguments, "monitor") { self.monitor() } else { self.receive(arguments, verbatim) };
            match result {
                Ok(Ok(())) => {}
                other => return other,
            }
            if self.redirect.is_some() {
                break;
            }
            if let Some(interval) = self.options.interval {
                sleep(interval);
            }
        }
        Ok(Ok(()))
    }

    /// Shows commands of others until the connection ends.
    fn monitor(&mut self) -> Result<Outcome<()>, LinkError> {
        loop {
            let value = plain(self.connection()?.read()?);
            let shown = self.show(&value, false);
            if shown.is_err() || value.is_error() {
                return Ok(shown);
            }
        }
    }

    /// Waits for the reply of a command that was sent, showing messages that come before it.
    fn receive(&mut self, arguments: &[Vec<u8>], verbatim: bool) -> Result<Outcome<()>, LinkError> {
        let subscribes = ["subscribe", "psubscribe", "ssubscribe"].iter().any(|name| is(arguments, name));
        let unsubscribes = ["unsubscribe", "punsubscribe", "sunsubscribe"].iter().any(|name| is(arguments, name));
        // Each channel is confirmed by a message of its own.
        let mut confirmations = match subscribes || unsubscribes {
            true => arguments.len().saturating_sub(1).max(1),
            false => 0,
        };
        loop {
            let value = match self.next(subscribes || unsubscribes || self.subscribed)? {
                Ok(value) => value,
                Err(exit) => return Ok(Err(exit)),
            };
            if let Err(exit) = self.show(&value, verbatim) {
                return Ok(Err(exit));
            }
            if self.subscribed || confirmations > 0 {
                match self.message_kind(&value) {
                    Some(kind) if confirmations > 0 && is_word(arguments, 0, kind) => {
                        self.subscribed |= subscribes;
                        confirmations -= 1;
                        if confirmations > 0 {
                            continue;
                        }
                    }
                    Some(_) => continue,
                    None if matches!(value, Value::Push(_)) => continue,
                    None => {}
                }
            }
            self.learn(arguments, &value)?;
            return Ok(Ok(()));
        }
    }

    /// The next reply. Messages are shown if they are wanted, or returned if `deliver` says so.
    fn next(&mut self, deliver: bool) -> Result<Outcome<Value>, LinkError> {
        loop {
            let mut value = self.connection()?.read()?;
            if let (true, Value::Attribute { attributes, .. }) = (self.options.verbose, &value) {
                let shown = format::render(&Value::Map(attributes.clone()), &self.options.style);
                complain(format_args!("attributes: {}", text(&shown).trim_end()));
            }
            value = plain(value);
            if deliver || !matches!(value, Value::Push(_)) {
                return Ok(Ok(value));
            }
            if self.options.show_pushes
                && let Err(exit) = self.show_push(&value)
            {
                return Ok(Err(exit));
            }
        }
    }

    fn show_push(&self, value: &Value) -> Outcome<()> {
        let style = &self.options.style;
        let invalidation = match style.format {
            Format::Standard => format::invalidation(value),
            _ => None,
        };
        print(invalidation.unwrap_or_else(|| format::render(value, style)))
    }

    /// Shows messages that have arrived; `true` when there were some.
    pub(crate) fn show_buffered(&mut self) -> Result<Outcome<()>, LinkError> {
        while let Some(value) = self.connection()?.buffered()? {
            if let Err(exit) = self.show(&plain(value), false) {
                return Ok(Err(exit));
            }
        }
        Ok(Ok(()))
    }

    /// Waits for a message and shows it.
    pub(crate) fn show_message(&mut self) -> Result<Outcome<()>, LinkError> {
        let value = plain(self.connection()?.read()?);
        Ok(self.show(&value, false))
    }

    /// Shows a reply, or notes the redirection that it is.
    fn show(&mut self, value: &Value, verbatim: bool) -> Outcome<()> {
        if let Value::Error(reason) = value {
            if self.options.follow_redirects && self.follow(&text(reason))? {
                return Ok(());
            }
            if self.options.error_code && !self.interactive {
                return fail(format_args!("{}", text(reason)));
            }
        }
        let style = &self.options.style;
        print(if verbatim { format::render_verbatim(value, style) } else { format::render(value, style) })
    }

    /// `MOVED slot host:port` or `ASK slot host:port`: where the command goes next.
    fn follow(&mut self, reason: &str) -> Outcome<bool> {
        let mut words = reason.split(' ');
        let redirect = match words.next() {
            Some("MOVED") => Redirect::Moved,
            Some("ASK") => Redirect::Ask,
            _ => return Ok(false),
        };
        let (Some(slot), Some((host, port))) = (words.next(), words.next().and_then(|place| place.rsplit_once(':')))
        else {
            return Ok(false);
        };
        let Ok(port) = port.parse() else {
            return Ok(false);
        };
        let server = &mut self.options.server;
        if !host.is_empty() {
            server.host = host.to_string();
        }
        server.port = port;
        self.was_redirected = true;
        self.redirect = Some(redirect);
        if self.interactive {
            print_line(format_args!("-> Redirected to slot [{slot}] located at {}:{port}", server.host))?;
        }
        Ok(true)
    }

    /// The kind of a message about channels: `message`, `subscribe`, ….
    fn message_kind<'a>(&self, value: &'a Value) -> Option<&'a [u8]> {
        let elements = match value {
            Value::Push(elements) if self.resp3 => elements,
            Value::Array(elements) if !self.resp3 => elements,
            _ => return None,
        };
        match elements.as_slice() {
            [Value::Bulk(kind), _, _, ..] if kind.ends_with(b"message") || kind.ends_with(b"subscribe") => Some(kind),
            _ => None,
        }
    }

    /// Notes what a command changed on the connection.
    fn learn(&mut self, arguments: &[Vec<u8>], value: &Value) -> Result<(), LinkError> {
        let name = arguments.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        let failed = value.is_error();
        match (name.as_slice(), arguments.len()) {
            (b"select", 2) if !failed => {
                let number = arguments.get(1).and_then(|word| text(word).parse().ok());
                self.set_database(number.unwrap_or(0));
            }
            (b"auth", 2 | 3) => drop(self.select()?),
            (b"multi", 1) if !failed => {
                self.in_multi = true;
                self.database_before_multi = self.database;
            }
            (b"exec", 1) if self.in_multi => {
                self.in_multi = false;
                if failed || matches!(value, Value::Null | Value::NullArray) {
                    self.set_database(self.database_before_multi);
                }
            }
            (b"discard", 1) if !failed => {
                self.in_multi = false;
                self.set_database(self.database_before_multi);
            }
            (b"reset", 1) if !failed => {
                self.in_multi = false;
                self.subscribed = false;
                self.resp3 = false;
                self.set_database(0);
            }
            (b"hello", _) => match value {
                Value::Map(_) => self.resp3 = true,
                Value::Array(_) => self.resp3 = false,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn set_database(&mut self, database: i64) {
        self.database = database;
        self.options.server.database = database;
    }

    /// The reply of a command, for modes; a broken connection ends the program.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Outcome<Value> {
        match self.connection().and_then(|connection| connection.call(arguments)) {
            Ok(value) => Ok(value),
            Err(error) => fail(format_args!("Error: {error}")),
        }
    }

    /// The replies of many commands sent at once.
    pub(crate) fn call_many(&mut self, calls: &[Vec<Vec<u8>>]) -> Outcome<Vec<Value>> {
        let exchange = |connection: &mut Connection| -> Result<Vec<Value>, LinkError> {
            calls.iter().for_each(|arguments| connection.queue(arguments));
            connection.flush()?;
            calls.iter().map(|_| connection.reply()).collect()
        };
        match self.connection().and_then(exchange) {
            Ok(values) => Ok(values),
            Err(error) => fail(format_args!("Error: {error}")),
        }
    }
}

/// Why a call must not be sent where nothing may be written. Scripts may do anything, and so may commands that the
/// table does not have, such as those of modules.
fn may_write(arguments: &[Vec<u8>]) -> Option<&'static str> {
    match table::resolve(arguments) {
        Ok(command) if command.is_write() => Some("the command writes"),
        Ok(command) if matches!(command.name, "eval" | "evalsha" | "fcall") => Some("a script may write"),
        Ok(_) => None,
        Err(_) => Some("the command is not known, so it may write"),
    }
}

/// Whether a call is of this command.
pub(crate) fn is(arguments: &[Vec<u8>], name: &str) -> bool {
    is_word(arguments, 0, name.as_bytes())
}

fn is_word(arguments: &[Vec<u8>], position: usize, word: &[u8]) -> bool {
    arguments.get(position).is_some_and(|argument| argument.eq_ignore_ascii_case(word))
}
