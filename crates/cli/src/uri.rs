//! `redis://[[user:]password@][host[:port]][/database]`, as `-u` takes it.

use crate::options::Server;
use crate::output::{Outcome, fail};

/// Puts the parts that are there into `server`; whether the scheme asks for TLS.
pub(crate) fn apply(uri: &str, server: &mut Server) -> Outcome<bool> {
    let has_scheme = |scheme: &str| uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let (rest, tls) = if has_scheme("rediss://") {
        (uri.get(9..).unwrap_or_default(), true)
    } else if has_scheme("redis://") {
        (uri.get(8..).unwrap_or_default(), false)
    } else {
        return fail(format_args!("Invalid URI scheme"));
    };
    let rest = match rest.split_once('@') {
        None => rest,
        Some((who, rest)) => {
            let password = match who.split_once(':') {
                None => who,
                Some((user, password)) => {
                    server.user = Some(decode(user)?);
                    password
                }
            };
            server.password = Some(decode(password)?);
            rest
        }
    };
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    if !place.is_empty() {
        let (host, port) = split_port(place);
        if let Some(port) = port {
            match port.parse() {
                Ok(port) => server.port = port,
                Err(_) => return fail(format_args!("Invalid server port.")),
            }
        }
        server.host = host.to_string();
    }
    if !database.is_empty() {
        match database.parse() {
            Ok(database) => server.database = database,
            Err(_) => return fail(format_args!("Invalid database number in URI: '{database}'")),
        }
    }
    Ok(tls)
}

/// `host:port` or `[v6]:port`.
fn split_port(place: &str) -> (&str, Option<&str>) {
    if let Some((host, behind)) = place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, behind.strip_prefix(':'));
    }
    match place.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    }
}

/// `%HH` to bytes.
fn decode(part: &str) -> Outcome<Vec<u8>> {
    let mut out = Vec::with_capacity(part.len());
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (bytes.next(), bytes.next()) else {
            return fail(format_args!("Incomplete URI encoding"));
        };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (digit(high), digit(low)) {
            (Some(high), Some(low)) => out.push(high * 16 + low),
            _ => return fail(format_args!("Illegal character in URI encoding")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use crate::options::Options;

    fn parse(uri: &str) -> String {
        match Options::parse("cli", &["--no-auth-warning".into(), "-u".into(), uri.into(), "ping".into()]) {
            Ok(options) => {
                let server = options.server;
                let show =
                    |part: Option<Vec<u8>>| part.map_or("-".into(), |p| String::from_utf8_lossy(&p).into_owned());
                format!(
                    "{} {} {} {} {}",
                    server.host,
                    server.port,
                    show(server.user),
                    show(server.password),
                    server.database
                )
            }
            Err(exit) => format!("exit {}", exit.0),
        }
    }

    #[test]
    fn table() {
        let cases = [
            ("redis://", "127.0.0.1 6379 - - 0"),
            ("REDIS://h", "h 6379 - - 0"),
            ("redis://h:7000/3", "h 7000 - - 3"),
            ("redis://secret@h/", "h 6379 - secret 0"),
            ("redis://u:p%40ss@[::1]:1/2", "::1 1 u p@ss 2"),
            ("redis:///5", "127.0.0.1 6379 - - 5"),
            ("redis://p%4@h", "exit 1"),
            ("redis://p%zz@h", "exit 1"),
            ("http://h", "exit 1"),
            ("rediss://h", "h 6379 - - 0"),
        ];
        for (uri, want) in cases {
            assert_eq!(parse(uri), want, "{uri}");
        }
    }
}
