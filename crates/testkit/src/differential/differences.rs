//! Where the peer is an older Redis than the one that Oxidis follows (7.2), its replies differ
//! in these ways. Nothing else may differ. The list is empty against a Redis 7.2.

use crate::Reply;

use super::rules::same_doubles;
use super::scripts;

/// One way in which Redis 7.0 answers otherwise than 7.2.
#[derive(Debug)]
pub struct Difference {
    /// A short name, for the tester's summary.
    pub name: &'static str,
    /// What changed in 7.2.
    pub reason: &'static str,
    /// Whether a command with these replies (7.2's first) shows this difference.
    pub applies: fn(&[Vec<u8>], &Reply, &Reply) -> bool,
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "set-listpack",
        reason: "small sets with a member that is no integer are listpacks; 7.0 makes them hash tables",
        applies: |args, new, old| {
            is(args, 0, "OBJECT") && is(args, 1, "ENCODING") && new.text() == "listpack" && old.text() == "hashtable"
        },
    },
    Difference {
        name: "list-listpack",
        reason: "lists that fit one node are listpacks; 7.0 makes every list a quicklist",
        applies: |args, new, old| {
            is(args, 0, "OBJECT") && is(args, 1, "ENCODING") && new.text() == "listpack" && old.text() == "quicklist"
        },
    },
    Difference {
        name: "size-hint",
        reason: "a new set, hash or sorted set gets the encoding for as many members as the command names",
        applies: |args, new, old| {
            let (new, old) = (new.text(), old.text());
            is(args, 0, "OBJECT")
                && is(args, 1, "ENCODING")
                && [
                    ("skiplist", "listpack"),
                    ("listpack", "intset"),
                    ("hashtable", "intset"),
                    ("hashtable", "listpack"),
                ]
                .contains(&(new.as_str(), old.as_str()))
        },
    },
    Difference {
        name: "wait-timeout",
        reason: "WAIT refuses a timeout that does not fit the clock",
        applies: |args, new, old| is(args, 0, "WAIT") && new.text() == "ERR timeout is out of range" && !old.is_error(),
    },
    Difference {
        name: "zrank-withscore",
        reason: "ZRANK and ZREVRANK take WITHSCORE, so a wrong third argument is a syntax error",
        applies: |args, new, old| {
            (is(args, 0, "ZRANK") || is(args, 0, "ZREVRANK"))
                && args.len() == 4
                && old.text().starts_with("ERR wrong number of arguments")
                && (new.text() == "ERR syntax error"
                    || new.text().starts_with("ERR Can't execute")
                    || is(args, 3, "WITHSCORE"))
        },
    },
    Difference {
        name: "getkeys-arity",
        reason: "COMMAND GETKEYS takes a command without arguments and then says what is wrong with it",
        applies: |args, new, old| {
            is(args, 0, "COMMAND")
                && args.len() == 3
                && new.is_error()
                && old.text().starts_with("ERR wrong number of arguments for 'command|")
        },
    },
    Difference {
        name: "unbalanced-streams",
        reason: "XREAD and XREADGROUP name themselves when a stream has no ID",
        applies: |args, new, old| {
            args.first().is_some_and(|name| name.to_ascii_uppercase().starts_with(b"XREAD"))
                && new.text().starts_with("ERR Unbalanced '")
                && old.text().starts_with("ERR Unbalanced XREAD")
        },
    },
    Difference {
        name: "acl-dryrun-text",
        reason: "ACL DRYRUN names the user",
        applies: |args, new, old| {
            let what = |reply: &Reply| reply.text().split_once(" has no ").map(|(_, what)| what.to_owned());
            is(args, 0, "ACL")
                && is(args, 1, "DRYRUN")
                && old.text().starts_with("This user has no ")
                // 7.0 writes keys as C strings.
                && (what(new) == what(old) || args.iter().any(|arg| arg.contains(&0)))
        },
    },
    Difference {
        name: "acl-open-selectors",
        reason: "of several open brackets the first one begins the selector, not the last",
        applies: |args, new, old| {
            let start = "ERR Error in ACL SETUSER modifier '(";
            is(args, 0, "ACL")
                && is(args, 1, "SETUSER")
                && args.iter().filter(|arg| arg.starts_with(b"(")).count() > 1
                && new.text().starts_with(start)
                && old.text().starts_with(start)
        },
    },
    Difference {
        name: "lpos-rank",
        reason: "LPOS refuses the one RANK that has no positive counterpart, before it looks further",
        applies: |args, new, _| {
            is(args, 0, "LPOS") && new.text().starts_with("ERR value is out of range, value must between")
        },
    },
    Difference {
        name: "digest-doubles",
        reason: "DEBUG DIGEST takes in scores as they are written, so it changed with the digits of doubles",
        applies: |args, _, _| is(args, 0, "DEBUG") && is(args, 1, "DIGEST"),
    },
    Difference {
        name: "double-digits",
        reason: "doubles are written with the fewest digits that read back as the same number, and -0 as such",
        applies: |args, new, old| {
            let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
            let is_of_scores = name.starts_with(b"Z") || name.starts_with(b"BZ") || name == b"DUMP";
            (is_of_scores || name.starts_with(b"EVAL") || name == b"FCALL") && same_doubles(new, old)
        },
    },
];

/// Ways in which Oxidis answers otherwise than any Redis, on purpose.
pub const DELIBERATE: &[Difference] = &[Difference {
    name: "help-texts",
    reason: "the explanations in HELP are in our own words",
    applies: |args, new, old| is(args, 1, "HELP") && new.items().is_some() && old.items().is_some(),
}];

fn is(args: &[Vec<u8>], index: usize, word: &str) -> bool {
    args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
}

/// The difference that explains these replies, if any does. Those between versions count only when the versions differ.
pub fn explains(args: &[Vec<u8>], subject: &Reply, peer: &Reply, same_version: bool) -> Option<&'static Difference> {
    let inner = scripts::inner(args);
    let args = inner.unwrap_or(args);
    let between_versions = if same_version { &[] } else { DIFFERENCES };
    DELIBERATE.iter().chain(between_versions).find(|difference| (difference.applies)(args, subject, peer))
}
