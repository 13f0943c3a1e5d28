//! A small client of the servers' protocol.
//!
//! Each call has a deadline over everything: connecting, login, writing, reading. A call takes a connection of its own
//! (an idle one if there is one), so a server that hangs holds up the calls to it and nothing else, and a long command
//! does not delay a short one.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use resp::{SkipState, Value, parse_reply, skip_reply, write_command};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Idle connections that are kept for an address.
const IDLE_MAX: usize = 4;
/// First size of the buffer of replies.
const INPUT_BYTES: usize = 4 << 10;
/// Most bytes of one reply: SLOTS STATS of all slots is about 1 MiB.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Why a server did not do what it was asked.
#[derive(Debug)]
pub(crate) enum WireError {
    /// No connection.
    Connect(io::Error),
    /// No answer in time.
    Late(Duration),
    /// The connection broke.
    Broken(io::Error),
    /// What came is no reply, or not the expected one.
    Protocol(String),
    /// The server said no, with this text.
    Refused(String),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Connect(error) => write!(f, "cannot connect: {error}"),
            WireError::Late(patience) => write!(f, "no answer within {} ms", patience.as_millis()),
            WireError::Broken(error) => write!(f, "connection lost: {error}"),
            WireError::Protocol(what) => f.write_str(what),
            WireError::Refused(text) => write!(f, "it answered: {text}"),
        }
    }
}

impl std::error::Error for WireError {}

/// How to log in at servers.
#[derive(Clone, Default)]
pub(crate) struct Login {
    /// The user; empty is the default user.
    pub(crate) user: String,
    /// The password; empty is none.
    pub(crate) password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passwords stay out of logs.
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Connections to servers.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    login: Login,
    idle: Mutex<HashMap<String, Vec<Connection>>>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(login: Login) -> Wire {
        Wire { login, idle: Mutex::default() }
    }

    /// Asks the server at `address`; an error reply is [`WireError::Refused`].
    pub(crate) async fn call<A: AsRef<[u8]>>(
        &self,
        address: &str,
        arguments: &[A],
        patience: Duration,
    ) -> Result<Value, WireError> {
        let work = async {
            let mut connection = match self.take_idle(address) {
                Some(connection) => connection,
                None => self.connect(address).await?,
            };
            let reply = connection.ask(arguments).await?;
            self.give_back(address, connection);
            match reply {
                Value::Error(text) => Err(WireError::Refused(String::from_utf8_lossy(&text).into_owned())),
                reply => Ok(reply),
            }
        };
        timeout(patience, work).await.unwrap_or(Err(WireError::Late(patience)))
    }

    /// Asks for something that is answered by `+OK`.
    pub(crate) async fn command<A: AsRef<[u8]>>(
        &self,
        address: &str,
        arguments: &[A],
        patience: Duration,
    ) -> Result<(), WireError> {
        match self.call(address, arguments, patience).await? {
            // REPLICAOF says more when it had nothing to do.
            Value::Simple(text) if text == b"OK" || text.starts_with(b"OK ") => Ok(()),
            other => Err(WireError::Protocol(format!("expected +OK, not {}", brief(&other)))),
        }
    }

    /// Asks for a text.
    pub(crate) async fn text<A: AsRef<[u8]>>(
        &self,
        address: &str,
        arguments: &[A],
        patience: Duration,
    ) -> Result<String, WireError> {
        match self.call(address, arguments, patience).await? {
            Value::Bulk(text) | Value::Simple(text) | Value::Verbatim { text, .. } => {
                Ok(String::from_utf8_lossy(&text).into_owned())
            }
            other => Err(WireError::Protocol(format!("expected a text, not {}", brief(&other)))),
        }
    }

    /// Asks for a JSON document.
    pub(crate) async fn json<T: DeserializeOwned, A: AsRef<[u8]>>(
        &self,
        address: &str,
        arguments: &[A],
        patience: Duration,
    ) -> Result<T, WireError> {
        let text = self.text(address, arguments, patience).await?;
        serde_json::from_str(&text)
            .map_err(|error| WireError::Protocol(format!("its JSON is not as expected: {error}")))
    }

    fn take_idle(&self, address: &str) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let list = idle.get_mut(address)?;
        while let Some(connection) = list.pop() {
            // Whatever can be read now is its end, or nothing that was asked for.
            let mut byte = [0];
            let is_quiet = matches!(connection.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            if is_quiet {
                return Some(connection);
            }
        }
        None
    }

    fn give_back(&self, address: &str, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let list = idle.entry(address.to_owned()).or_default();
        if list.len() < IDLE_MAX {
            list.push(connection);
        }
    }

    /// Forgets connections to a server that left.
    pub(crate) fn forget(&self, address: &str) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
    }

    async fn connect(&self, address: &str) -> Result<Connection, WireError> {
        let stream = TcpStream::connect(address).await.map_err(WireError::Connect)?;
        // Small requests, each waited for.
        stream.set_nodelay(true).map_err(WireError::Connect)?;
        let mut connection = Connection { stream, input: Vec::with_capacity(INPUT_BYTES) };
        if !self.login.password.is_empty() {
            let mut words = vec!["AUTH"];
            if !self.login.user.is_empty() {
                words.push(&self.login.user);
            }
            words.push(&self.login.password);
            if let Value::Error(text) = connection.ask(&words).await? {
                let text = String::from_utf8_lossy(&text).into_owned();
                // A server without passwords: what follows works all the same.
                if !text.contains("without any password configured") {
                    return Err(WireError::Refused(text));
                }
            }
        }
        Ok(connection)
    }
}

impl Connection {
    async fn ask<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Value, WireError> {
        let mut request = Vec::new();
        write_command(&mut request, arguments);
        self.stream.write_all(&request).await.map_err(WireError::Broken)?;
        let mut state = SkipState::new();
        loop {
            let skipped =
                skip_reply(&self.input, &mut state).map_err(|error| WireError::Protocol(error.to_string()))?;
            if let Some(skipped) = skipped {
                let reply = parse_reply(self.input.get(..skipped.consumed).unwrap_or_default());
                self.input.drain(..skipped.consumed);
                return match reply {
                    Ok(Some((value, _))) => Ok(value),
                    Ok(None) => Err(WireError::Protocol("half a reply".into())),
                    Err(error) => Err(WireError::Protocol(error.to_string())),
                };
            }
            if self.input.len() > REPLY_BYTES_MAX {
                return Err(WireError::Protocol(format!("a reply of over {REPLY_BYTES_MAX} bytes")));
            }
            let count = self.stream.read_buf(&mut self.input).await.map_err(WireError::Broken)?;
            if count == 0 {
                return Err(WireError::Broken(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

/// A reply in a few words.
fn brief(value: &Value) -> String {
    match value {
        Value::Simple(text) => format!("the status '{}'", String::from_utf8_lossy(text)),
        Value::Int(number) => format!("the number {number}"),
        Value::Bulk(text) => format!("a text of {} bytes", text.len()),
        Value::Null | Value::NullArray => "nothing".into(),
        Value::Array(items) => format!("an array of {}", items.len()),
        _ => "another type".into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers each command by the next of `replies`, and counts its connections. An empty reply is none.
    async fn server(replies: &'static [&'static str]) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut bytes = [0; 4096];
                    for reply in replies {
                        if stream.read(&mut bytes).await.unwrap_or(0) == 0 {
                            return;
                        }
                        if reply.is_empty() {
                            std::future::pending::<()>().await;
                        }
                        stream.write_all(reply.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (address, connections)
    }

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn replies_are_read_and_connections_kept() {
        let (address, connections) = server(&["+OK\r\n", "$2\r\n[]\r\n", "-ERR no such move\r\n"]).await;
        let wire = Wire::default();
        wire.command(&address, &["A"], PATIENCE).await.unwrap();
        let list: Vec<u32> = wire.json(&address, &["B"], PATIENCE).await.unwrap();
        assert!(list.is_empty());
        let error = wire.command(&address, &["C"], PATIENCE).await.unwrap_err();
        assert_eq!(error.to_string(), "it answered: ERR no such move");
        assert_eq!(connections.load(Ordering::Relaxed), 1);
        // The server has closed it meanwhile, or does so now: a new one is made when that is seen.
        wire.forget(&address);
        wire.command(&address, &["A"], PATIENCE).await.unwrap();
        assert_eq!(connections.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_hung_server_fails_its_own_calls_only() {
        let (hung, _) = server(&[""]).await;
        let (well, _) = server(&["+OK\r\n"]).await;
        let wire = Wire::default();
        let short = Duration::from_millis(50);
        let (late, fine) = tokio::join!(wire.command(&hung, &["A"], short), wire.command(&well, &["A"], PATIENCE));
        assert!(matches!(late, Err(WireError::Late(_))), "{late:?}");
        fine.unwrap();
    }

    #[tokio::test]
    async fn nonsense_is_an_error() {
        let (address, _) = server(&["?what\r\n"]).await;
        let error = Wire::default().command(&address, &["A"], PATIENCE).await.unwrap_err();
        assert!(matches!(error, WireError::Protocol(_)), "{error}");
    }
}
