//! What a running server adds: its own limits, asked over its protocol and, when it runs here, read from `/proc`.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use resp::{Value, parse_reply};

use crate::checks::{Finding, Verdict};

/// Longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of one reply.
const REPLY_BYTES_MAX: usize = 1 << 20;

/// Judges the server at `address` for `clients` clients.
///
/// # Errors
/// When it cannot be asked, or refuses to answer.
pub(crate) fn examine(address: &str, clients: u64) -> io::Result<Vec<Finding>> {
    let mut server = Connection::open(address)?;
    let maxclients = server.setting("maxclients")?;
    let backlog = server.setting("tcp-backlog")?;
    let mut findings = vec![
        setting(
            "maxclients",
            maxclients,
            clients,
            Verdict::Stops,
            "the server refuses clients past it (max number of clients reached)",
        ),
        setting(
            "tcp-backlog",
            backlog,
            (clients / 10).clamp(511, 65_535),
            Verdict::Advice,
            "clients that come at once wait a second or more",
        ),
    ];
    // Where maxclients is large, the server takes as much of a backlog as the kernel allows.
    if let [_, backlog] = findings.as_mut_slice()
        && clients >= 20_000
        && maxclients.is_some_and(|maxclients| maxclients >= 20_000)
    {
        backlog.verdict = Verdict::Fine;
    }
    let info = server.ask(&["INFO", "server"])?;
    let info = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let pid =
        info.lines().find_map(|line| line.strip_prefix("process_id:")).and_then(|pid| pid.trim().parse::<u32>().ok());
    if server.is_local
        && let Some((soft, hard)) = pid.and_then(limits_of)
    {
        findings.push(Finding {
            name: "nofile of the server",
            value: format!("{soft} (at most {hard})"),
            verdict: Verdict::Fine,
            breaks: "the server has told in its log how many clients it can hold",
            wanted: "its log without a warning of maxclients reduced".into(),
            command: String::new(),
            file: String::new(),
        });
    }
    Ok(findings)
}

fn setting(
    name: &'static str,
    value: Option<u64>,
    wanted: u64,
    else_verdict: Verdict,
    breaks: &'static str,
) -> Finding {
    let is_fine = value.is_none_or(|value| value >= wanted);
    Finding {
        name,
        value: value.map_or_else(|| "unknown".into(), |value| value.to_string()),
        verdict: if is_fine { Verdict::Fine } else { else_verdict },
        breaks,
        wanted: format!("≥ {wanted}"),
        command: if name == "maxclients" { format!("CONFIG SET {name} {wanted}") } else { String::from("a restart") },
        file: format!("redis.conf: {name} {wanted}"),
    }
}

/// The limits of open files of a process on this machine, as `/proc` writes them.
fn limits_of(pid: u32) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

/// An address as it may be shown.
pub(crate) fn without_password(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}

struct Connection {
    stream: TcpStream,
    is_local: bool,
}

impl Connection {
    fn open(address: &str) -> io::Result<Connection> {
        let rest = address.strip_prefix("redis://").unwrap_or(address);
        let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let place = place.split('/').next().unwrap_or(place);
        let place = if place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
            place.to_owned()
        } else {
            format!("{place}:6379")
        };
        let address = place.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut connection = Connection { stream, is_local: address.ip().is_loopback() };
        let login = login.map(str::to_owned).or_else(|| std::env::var("REDISCLI_AUTH").ok());
        if let Some(login) = login.filter(|login| !login.is_empty()) {
            match login.split_once(':') {
                Some((user, password)) if !user.is_empty() => connection.ask(&["AUTH", user, password])?,
                Some((_, password)) => connection.ask(&["AUTH", password])?,
                None => connection.ask(&["AUTH", &login])?,
            };
        }
        Ok(connection)
    }

    /// The number that CONFIG GET gives; `None` if it gives none.
    fn setting(&mut self, name: &str) -> io::Result<Option<u64>> {
        let reply = self.ask(&["CONFIG", "GET", name])?;
        let Value::Array(items) = reply else { return Ok(None) };
        let text =
            items.get(1).and_then(|item| item.as_bytes()).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// Sends a command and reads its reply. An error reply is an error.
    fn ask(&mut self, words: &[&str]) -> io::Result<Value> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.write_all(request.as_bytes())?;
        let mut input = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let got = self.stream.read(&mut buffer)?;
            if got == 0 || input.len() > REPLY_BYTES_MAX {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            input.extend_from_slice(buffer.get(..got).unwrap_or_default());
            match parse_reply(&input) {
                Ok(None) => {}
                Ok(Some((Value::Error(text), _))) => {
                    return Err(io::Error::other(String::from_utf8_lossy(&text).into_owned()));
                }
                Ok(Some((value, _))) => return Ok(value),
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("redis://:secret@host:1"), "host:1");
        assert_eq!(without_password("host:1"), "host:1");
    }
}
