//! `redis://[[user:]password@][host[:port]][/db]`, as redis-benchmark's `-u` reads it.

use crate::options::atoi;

/// The parts of a server URI; what the URI left out is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerUri {
    /// Scheme `rediss`.
    pub(crate) tls: bool,
    /// User name, percent-decoded.
    pub(crate) user: Option<Vec<u8>>,
    /// Password, percent-decoded.
    pub(crate) password: Option<Vec<u8>>,
    /// Host name or address, without brackets.
    pub(crate) host: Option<String>,
    /// Port as written; the caller checks its range.
    pub(crate) port: Option<i64>,
    /// Database number.
    pub(crate) database: Option<i64>,
}

/// Splits `uri` into its parts. The error is redis-benchmark's own text.
pub(crate) fn parse(uri: &str) -> Result<ServerUri, &'static str> {
    let mut parsed = ServerUri::default();
    let rest = if let Some(rest) = strip_scheme(uri, "rediss://") {
        parsed.tls = true;
        rest
    } else {
        strip_scheme(uri, "redis://").ok_or("Invalid URI scheme")?
    };
    let rest = match rest.split_once('@') {
        Some((credentials, rest)) => {
            let password = match credentials.split_once(':') {
                Some((user, password)) => {
                    parsed.user = Some(percent_decode(user)?);
                    password
                }
                None => credentials,
            };
            parsed.password = Some(percent_decode(password)?);
            rest
        }
        None => rest,
    };
    let (authority, database) = match rest.split_once('/') {
        Some((authority, database)) => (authority, database),
        None => (rest, ""),
    };
    if !authority.is_empty() {
        let (host, port) = split_authority(authority);
        parsed.host = Some(host.to_owned());
        parsed.port = port.map(|port| atoi(port.as_bytes()));
    }
    if !database.is_empty() {
        parsed.database = Some(atoi(database.as_bytes()));
    }
    Ok(parsed)
}

fn strip_scheme<'a>(uri: &'a str, scheme: &str) -> Option<&'a str> {
    let head = uri.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| &uri[scheme.len()..])
}

fn split_authority(authority: &str) -> (&str, Option<&str>) {
    if let Some(bracketed) = authority.strip_prefix('[')
        && let Some((host, rest)) = bracketed.split_once(']')
    {
        return (host, rest.strip_prefix(':'));
    }
    match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

fn percent_decode(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (bytes.next(), bytes.next()) else {
            return Err("Incomplete URI encoding");
        };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        match (digit(high), digit(low)) {
            (Some(high), Some(low)) => decoded.push(high << 4 | low),
            _ => return Err("Illegal character in URI encoding"),
        }
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_parts() {
        let parsed = parse("redis://bob:p%40ss@[::1]:7000/5").unwrap();
        assert_eq!(parsed.user.as_deref(), Some(&b"bob"[..]));
        assert_eq!(parsed.password.as_deref(), Some(&b"p@ss"[..]));
        assert_eq!(parsed.host.as_deref(), Some("::1"));
        assert_eq!((parsed.port, parsed.database, parsed.tls), (Some(7000), Some(5), false));
    }

    #[test]
    fn parts_left_out() {
        assert_eq!(parse("redis://").unwrap(), ServerUri::default());
        let parsed = parse("REDIS://secret@box").unwrap();
        assert_eq!((parsed.user, parsed.password), (None, Some(b"secret".to_vec())));
        assert_eq!((parsed.host.as_deref(), parsed.port), (Some("box"), None));
        assert!(parse("rediss://box").unwrap().tls);
        assert_eq!(parse("redis:///3").unwrap().database, Some(3));
    }

    #[test]
    fn mistakes() {
        assert_eq!(parse("http://x"), Err("Invalid URI scheme"));
        assert_eq!(parse("redis://a%4@x"), Err("Incomplete URI encoding"));
        assert_eq!(parse("redis://a%zz@x"), Err("Illegal character in URI encoding"));
    }
}
