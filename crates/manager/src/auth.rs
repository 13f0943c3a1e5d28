//! Who may do what: bearer tokens with roles.
//!
//! A token file has a line per token, `ROLE NAME TOKEN`; empty lines and lines that begin with `#` do not count. Roles
//! are `viewer`, `operator` and `admin`, each with the rights of those before it, and `member` for servers and proxies,
//! which may renew their leases and nothing else.
//!
//! Only digests of the tokens are kept, each request is compared with all of them in the same time, and no token is
//! ever written anywhere.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

/// Shortest token that is taken.
const TOKEN_BYTES_MIN: usize = 16;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Leases and views of members.
    Member,
    /// Everything that changes nothing.
    Viewer,
    /// Topology and moves.
    Operator,
    /// What can lose data or locks others out.
    Admin,
}

impl Role {
    const ALL: [Role; 4] = [Role::Member, Role::Viewer, Role::Operator, Role::Admin];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Member => "member",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// Whether someone of this role may do what needs `needed`.
    pub(crate) fn may(self, needed: Role) -> bool {
        match (self, needed) {
            (Role::Member, needed) => needed == Role::Member,
            // A proxy that does not make itself known can be made known by hand.
            (role, Role::Member) => role >= Role::Operator,
            (role, needed) => role >= needed,
        }
    }
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.role.name())
    }
}

struct Token {
    person: Person,
    digest: [u8; 32],
}

/// The tokens that are known. Without any, everyone may do everything.
#[derive(Default)]
pub(crate) struct Tokens {
    tokens: Vec<Token>,
    /// What members are given when they are told to join.
    member: Option<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tokens.iter().map(|token| &token.person)).finish()
    }
}

impl Tokens {
    /// Reads the text of a token file.
    pub(crate) fn parse(text: &str) -> Result<Tokens, String> {
        let mut tokens = Tokens::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = index + 1;
            let words: Vec<&str> = line.split_whitespace().collect();
            let [role, name, token] = words[..] else {
                return Err(format!("line {at}: expected ROLE NAME TOKEN"));
            };
            let Some(role) = Role::ALL.into_iter().find(|known| known.name() == role) else {
                return Err(format!("line {at}: no role '{role}': use viewer, operator, admin or member"));
            };
            if token.len() < TOKEN_BYTES_MIN {
                return Err(format!("line {at}: the token has less than {TOKEN_BYTES_MIN} characters"));
            }
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!("line {at}: a token is of ASCII letters, digits and signs"));
            }
            if role == Role::Member && tokens.member.is_none() {
                tokens.member = Some(token.to_owned());
            }
            let person = Person { name: name.to_owned(), role };
            tokens.tokens.push(Token { person, digest: Sha256::digest(token).into() });
        }
        if tokens.tokens.is_empty() {
            return Err("it holds no token".into());
        }
        if tokens.member.is_none() {
            return Err("it holds no token of the role member, which servers and proxies need".into());
        }
        Ok(tokens)
    }

    /// Reads a token file; the second is what one should know of it.
    pub(crate) fn load(path: &Path) -> Result<(Tokens, Option<String>), String> {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let tokens = Tokens::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let mode = fs::metadata(path).map_or(0, |facts| facts.mode());
        let advice =
            (mode & 0o077 != 0).then(|| format!("others can read {}: chmod 600 {}", path.display(), path.display()));
        Ok((tokens, advice))
    }

    /// Whether a token must be shown at all.
    pub(crate) fn are_needed(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The token for members.
    pub(crate) fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Whose token an `Authorization` header holds: `Bearer TOKEN`, or `Basic` with the token as password, as members
    /// send it whose manager URL holds it.
    pub(crate) fn find(&self, header: &[u8]) -> Option<&Person> {
        let text = std::str::from_utf8(header).ok()?.trim();
        let (scheme, rest) = text.split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.of_token(rest.as_bytes());
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let plain = STANDARD.decode(rest).ok()?;
        let colon = plain.iter().position(|byte| *byte == b':')?;
        self.of_token(plain.get(colon + 1..)?)
    }

    fn of_token(&self, token: &[u8]) -> Option<&Person> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        // All are compared, each to its end: the time tells nothing.
        for known in &self.tokens {
            let difference = known.digest.iter().zip(&digest).fold(0, |all, (one, other)| all | (one ^ other));
            if std::hint::black_box(difference) == 0 {
                found = Some(&known.person);
            }
        }
        found
    }
}

/// Writes a file with a new token for each role.
///
/// # Errors
/// When there is such a file already, or it cannot be written.
pub(crate) fn write_new_tokens(path: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut text = String::from("# ROLE NAME TOKEN, one a line. Members are the servers and proxies.\n");
    for role in [Role::Admin, Role::Operator, Role::Viewer, Role::Member] {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        text.push_str(&format!("{} {} {}\n", role.name(), role.name(), URL_SAFE_NO_PAD.encode(bytes)));
    }
    file.write_all(text.as_bytes())
}

/// The token of a file for a client: its only word, or the strongest token of a token file.
pub(crate) fn client_token(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut best: Option<(Role, &str)> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [token] => return Ok(token.to_owned()),
            [role, _, token] => {
                let role = Role::ALL.into_iter().find(|known| known.name() == role);
                let role = role.ok_or_else(|| format!("{}: there is no such role", path.display()))?;
                if best.is_none_or(|(known, _)| role > known) {
                    best = Some((role, token));
                }
            }
            _ => return Err(format!("{}: expected a token, or lines of ROLE NAME TOKEN", path.display())),
        }
    }
    best.map(|(_, token)| token.to_owned()).ok_or_else(|| format!("{} holds no token", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FILE: &str =
        "# people\nadmin alice 0123456789abcdef\nviewer bob fedcba9876543210\n\nmember all mmmmmmmmmmmmmmmm\n";

    #[test]
    fn tokens_are_found_by_either_scheme() {
        let tokens = Tokens::parse(FILE).unwrap();
        assert_eq!(tokens.find(b"Bearer 0123456789abcdef").unwrap().to_string(), "alice (admin)");
        assert_eq!(tokens.find(b"bearer fedcba9876543210").unwrap().role, Role::Viewer);
        let basic = format!("Basic {}", STANDARD.encode("member:mmmmmmmmmmmmmmmm"));
        assert_eq!(tokens.find(basic.as_bytes()).unwrap().role, Role::Member);
        for wrong in ["Bearer 0123456789abcdeF", "Bearer ", "0123456789abcdef", "Basic %%", "Digest x", ""] {
            assert!(tokens.find(wrong.as_bytes()).is_none(), "{wrong}");
        }
        assert_eq!(tokens.member(), Some("mmmmmmmmmmmmmmmm"));
    }

    #[test]
    fn tokens_are_not_shown() {
        let shown = format!("{:?}", Tokens::parse(FILE).unwrap());
        assert!(shown.contains("alice") && !shown.contains("0123456789abcdef"), "{shown}");
    }

    #[test]
    fn mistakes_in_the_file_are_told_without_the_token() {
        for (text, error) in [
            ("admin alice", "line 1: expected ROLE NAME TOKEN"),
            ("\nroot alice 0123456789abcdef", "line 2: no role 'root': use viewer, operator, admin or member"),
            ("admin alice short", "line 1: the token has less than 16 characters"),
            ("# none\n", "it holds no token"),
            ("admin alice 0123456789abcdef", "it holds no token of the role member, which servers and proxies need"),
        ] {
            assert_eq!(Tokens::parse(text).unwrap_err(), error);
        }
    }

    #[test]
    fn roles_contain_each_other_but_members_are_apart() {
        assert!(Role::Admin.may(Role::Operator) && Role::Operator.may(Role::Viewer) && Role::Viewer.may(Role::Viewer));
        assert!(!Role::Viewer.may(Role::Operator) && !Role::Operator.may(Role::Admin));
        assert!(Role::Member.may(Role::Member) && !Role::Member.may(Role::Viewer) && !Role::Viewer.may(Role::Member));
        assert!(Role::Admin.may(Role::Member) && Role::Operator.may(Role::Member));
    }

    #[test]
    fn a_new_file_is_private_and_reads_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        write_new_tokens(&path).unwrap();
        assert!(write_new_tokens(&path).is_err(), "it is not overwritten");
        let (tokens, advice) = Tokens::load(&path).unwrap();
        assert!(advice.is_none() && tokens.are_needed());
        let token = client_token(&path).unwrap();
        assert_eq!(tokens.find(format!("Bearer {token}").as_bytes()).unwrap().role, Role::Admin);
        fs::write(&path, "just-one-token-word\n").unwrap();
        assert_eq!(client_token(&path).unwrap(), "just-one-token-word");
    }
}
