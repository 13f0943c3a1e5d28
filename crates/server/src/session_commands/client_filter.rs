//! Which clients CLIENT LIST shows and CLIENT KILL ends.
//!
//! Beyond 7.2, both take the filters of Redis 7.4 and Valkey 9: MAXAGE, IDLE, NAME, LIB-NAME, LIB-VER, FLAGS, DB and IP,
//! and each filter with `NOT-` in front.

use crate::client_list::{ClientKind, ClientLine, ClientLines};
use crate::worker::Worker;
use commands::CmdError;
use commands::options;
use resp::Args;

/// All of these hold.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    conditions: Vec<Condition>,
    /// SKIPME, if it was said.
    pub(crate) skips_own: Option<bool>,
}

#[derive(Debug)]
struct Condition {
    negated: bool,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Ids(Vec<u64>),
    Kind(ClientKind),
    /// The field of that name in the client's line.
    Is(&'static str, Vec<u8>),
    /// At least so many seconds.
    AtLeast(&'static str, u64),
    /// All of these flags.
    Flags(Vec<u8>),
    /// The address without its port.
    Ip(Vec<u8>),
}

/// Filters that compare a field of the line.
const FIELDS: [(&str, &str); 7] = [
    ("addr", "addr"),
    ("laddr", "laddr"),
    ("user", "user"),
    ("name", "name"),
    ("lib-name", "lib-name"),
    ("lib-ver", "lib-ver"),
    ("db", "db"),
];

impl Filter {
    /// Reads the filters from `index` on. CLIENT LIST takes several numbers behind ID, CLIENT KILL one.
    ///
    /// # Errors
    /// Redis' texts.
    pub(crate) fn read(worker: &Worker, args: Args<'_>, mut index: usize, many_ids: bool) -> Result<Filter, CmdError> {
        let mut filter = Filter::default();
        // Redis: a word that has lost its value is seen before the values are read.
        let has_ids = many_ids && args.iter().any(|word| options::is_word(word, "id"));
        if !has_ids && args.len().saturating_sub(index) % 2 == 1 {
            return Err(commands::error::SYNTAX);
        }
        while let Some(word) = args.get(index) {
            let value = args.get(index + 1).ok_or(commands::error::SYNTAX)?;
            index += 2;
            if options::is_word(word, "skipme") {
                filter.skips_own = Some(match value {
                    _ if options::is_word(value, "yes") => true,
                    _ if options::is_word(value, "no") => false,
                    _ => return Err(commands::error::SYNTAX),
                });
                continue;
            }
            let lower = word.to_ascii_lowercase();
            let (negated, name) = match lower.strip_prefix(b"not-") {
                Some(name) => (true, name),
                None => (false, lower.as_slice()),
            };
            let test = match name {
                b"id" if many_ids => {
                    let mut ids = vec![];
                    ids.extend(listed_id(value)?);
                    while let Some(next) = args.get(index).filter(|next| !is_filter(next)) {
                        ids.extend(listed_id(next)?);
                        index += 1;
                    }
                    Test::Ids(ids)
                }
                b"id" => Test::Ids(vec![positive(value, "client-id")?]),
                b"type" => Test::Kind(kind_by_name(value)?),
                b"maxage" => Test::AtLeast("age", positive(value, "maxage")?),
                b"idle" => Test::AtLeast("idle", positive(value, "idle")?),
                b"flags" => Test::Flags(value.to_vec()),
                b"ip" => Test::Ip(value.to_vec()),
                name => {
                    let Some((_, field)) = FIELDS.iter().find(|(known, _)| known.as_bytes() == name) else {
                        return Err(commands::error::SYNTAX);
                    };
                    if *field == "user" && worker.shared.acl.get(value).is_none() {
                        return Err(CmdError::text(format!("ERR No such user '{}'", String::from_utf8_lossy(value))));
                    }
                    Test::Is(field, value.to_vec())
                }
            };
            filter.conditions.push(Condition { negated, test });
        }
        Ok(filter)
    }

    /// Clients whose address is this one.
    pub(crate) fn of_address(address: &[u8]) -> Filter {
        let test = Test::Is("addr", address.to_vec());
        Filter { conditions: vec![Condition { negated: false, test }], skips_own: Some(false) }
    }

    /// Whether every client passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The numbers, where they alone are asked for.
    pub(crate) fn only_ids(&self) -> Option<&[u64]> {
        match self.conditions.as_slice() {
            [Condition { negated: false, test: Test::Ids(ids) }] => Some(ids),
            _ => None,
        }
    }

    /// Whether a client passes.
    pub(crate) fn passes(&self, lines: &ClientLines, line: &ClientLine) -> bool {
        self.conditions.iter().all(|condition| condition.test.holds(lines, line) != condition.negated)
    }
}

impl Test {
    fn holds(&self, lines: &ClientLines, line: &ClientLine) -> bool {
        match self {
            Test::Ids(ids) => ids.contains(&line.id),
            Test::Kind(kind) => *kind == line.kind,
            Test::Is(field, value) => lines.field(line, field) == value,
            Test::AtLeast(field, seconds) => {
                resp::num::parse_i64(lines.field(line, field)).is_some_and(|said| said.unsigned_abs() >= *seconds)
            }
            Test::Flags(flags) => flags.iter().all(|flag| lines.field(line, "flags").contains(flag)),
            Test::Ip(ip) => {
                let address = lines.field(line, "addr");
                let end = address.iter().rposition(|byte| *byte == b':').unwrap_or(address.len());
                address.get(..end).is_some_and(|host| host.trim_ascii() == ip || bare(host) == ip)
            }
        }
    }
}

/// An IPv6 address without its brackets.
fn bare(host: &[u8]) -> &[u8] {
    host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host)
}

fn is_filter(word: &[u8]) -> bool {
    let lower = word.to_ascii_lowercase();
    let name = lower.strip_prefix(b"not-").unwrap_or(&lower);
    matches!(name, b"id" | b"type" | b"maxage" | b"idle" | b"flags" | b"ip" | b"skipme")
        || FIELDS.iter().any(|(known, _)| known.as_bytes() == name)
}

/// A number behind CLIENT LIST ID; a negative one is nobody's.
fn listed_id(argument: &[u8]) -> Result<Option<u64>, CmdError> {
    let number = resp::num::parse_i64(argument).ok_or(CmdError::new("ERR Invalid client ID"))?;
    Ok(u64::try_from(number).ok())
}

fn positive(argument: &[u8], name: &str) -> Result<u64, CmdError> {
    let number = resp::num::parse_i64(argument).filter(|number| *number >= 1);
    number
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| CmdError::text(format!("ERR {name} should be greater than 0")))
}

fn kind_by_name(name: &[u8]) -> Result<ClientKind, CmdError> {
    ClientKind::by_name(name).ok_or_else(|| {
        // Redis writes it as a C string.
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        CmdError::text(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(name)))
    })
}
