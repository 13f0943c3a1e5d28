//! Many replies to one.
//!
//! Replies of servers are passed on as the bytes they came in; only what must be is looked into: the number of a `Sum`,
//! the header of an array. All replies of one request come in the protocol version of its client, so nothing is converted.
//!
//! An error of one server makes the reply an error, whatever the others did: the client must not take a part for the whole.

use resp::{Reply, SkipState, skip_reply};

use crate::routing::{Merge, Part, Split};

/// What is said when a server's reply to a part is not of the kind that its command has.
pub const UNEXPECTED: &str = "ERR a server behind the proxy sent a reply of an unexpected kind";

/// Joins the replies to a broadcast, each one whole reply, in the order of the groups.
pub fn broadcast(merge: Merge, replies: &[&[u8]], reply: &mut Reply) {
    match merge {
        Merge::Sum => sum(replies, reply),
        Merge::AllSucceeded => all_succeeded(replies, reply),
        Merge::Concat => concat(replies, reply),
        Merge::And => and(replies, reply),
        Merge::OneSucceeded => one_succeeded(replies, reply),
    }
}

/// Joins the replies to the parts of a split command, in the order of the parts.
pub fn split(split: Split, parts: &[Part], replies: &[&[u8]], reply: &mut Reply) {
    match split {
        Split::Sum => sum(replies, reply),
        Split::Pairs => all_succeeded(replies, reply),
        Split::Values => values(parts, replies, reply),
    }
}

/// Whether a reply is an error.
#[inline]
pub fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
}

/// The number of an integer reply.
pub fn integer(reply: &[u8]) -> Option<i64> {
    let [b':', digits @ .., b'\r', b'\n'] = reply else { return None };
    resp::num::parse_i64(digits)
}

/// The text of an error reply, with its code.
pub fn error_text(reply: &[u8]) -> Option<&[u8]> {
    match reply {
        [b'-', text @ .., b'\r', b'\n'] => Some(text),
        [b'!', rest @ ..] => {
            let start = rest.windows(2).position(|two| two == b"\r\n")? + 2;
            rest.get(start..)?.strip_suffix(b"\r\n")
        }
        _ => None,
    }
}

/// The number of elements of an array or set, or of the keys of a map, and what follows the header.
pub fn elements(reply: &[u8]) -> Option<(usize, &[u8])> {
    let [mark, rest @ ..] = reply else { return None };
    if !matches!(mark, b'*' | b'~' | b'%' | b'>') {
        return None;
    }
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let count = usize::try_from(resp::num::parse_i64(rest.get(..end)?)?).ok()?;
    Some((count, rest.get(end + 2..)?))
}

/// Cuts the first whole reply off some bytes.
pub fn take_reply<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let skipped = skip_reply(bytes, &mut SkipState::new()).ok()??;
    let (taken, rest) = bytes.split_at_checked(skipped.consumed)?;
    *bytes = rest;
    Some(taken)
}

/// The payload of a bulk reply; `None` for anything else, the absent one too.
pub fn bulk(reply: &[u8]) -> Option<&[u8]> {
    let [b'$', rest @ ..] = reply else { return None };
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let length = usize::try_from(resp::num::parse_i64(rest.get(..end)?)?).ok()?;
    rest.get(end + 2..)?.get(..length)
}

fn first_error<'a>(replies: &[&'a [u8]]) -> Option<&'a [u8]> {
    replies.iter().copied().find(|reply| is_error(reply))
}

fn sum(replies: &[&[u8]], reply: &mut Reply) {
    if let Some(error) = first_error(replies) {
        return reply.raw(error);
    }
    match replies.iter().try_fold(0_i64, |sum, part| sum.checked_add(integer(part)?)) {
        Some(sum) => reply.int(sum),
        None => reply.error(UNEXPECTED),
    }
}

fn all_succeeded(replies: &[&[u8]], reply: &mut Reply) {
    match first_error(replies).or(replies.first().copied()) {
        Some(part) => reply.raw(part),
        None => reply.ok(),
    }
}

fn one_succeeded(replies: &[&[u8]], reply: &mut Reply) {
    let done = replies.iter().copied().find(|part| !is_error(part));
    // NOTBUSY is what those say that had nothing to end.
    let telling = || replies.iter().copied().find(|part| !error_text(part).unwrap_or_default().starts_with(b"NOTBUSY"));
    match done.or_else(telling).or(replies.first().copied()) {
        Some(part) => reply.raw(part),
        None => reply.error(UNEXPECTED),
    }
}

fn concat(replies: &[&[u8]], reply: &mut Reply) {
    if let Some(error) = first_error(replies) {
        return reply.raw(error);
    }
    let Some(parts) = replies.iter().map(|part| elements(part)).collect::<Option<Vec<_>>>() else {
        return reply.error(UNEXPECTED);
    };
    reply.array(parts.iter().map(|(count, _)| count).sum());
    for (_, bytes) in parts {
        reply.raw(bytes);
    }
}

fn and(replies: &[&[u8]], reply: &mut Reply) {
    if let Some(error) = first_error(replies) {
        return reply.raw(error);
    }
    let mut all: Option<Vec<bool>> = None;
    for part in replies {
        let Some(flags) = flags(part) else { return reply.error(UNEXPECTED) };
        match &mut all {
            None => all = Some(flags),
            Some(all) if all.len() == flags.len() => all.iter_mut().zip(flags).for_each(|(all, flag)| *all &= flag),
            Some(_) => return reply.error(UNEXPECTED),
        }
    }
    let all = all.unwrap_or_default();
    reply.array(all.len());
    for flag in all {
        reply.int(i64::from(flag));
    }
}

/// The elements of an array of 0 and 1.
fn flags(reply: &[u8]) -> Option<Vec<bool>> {
    let (count, mut rest) = elements(reply)?;
    let mut flags = Vec::new();
    for _ in 0..count {
        flags.push(integer(take_reply(&mut rest)?)? != 0);
    }
    Some(flags)
}

/// MGET: each value to its place.
fn values(parts: &[Part], replies: &[&[u8]], reply: &mut Reply) {
    if let Some(error) = first_error(replies) {
        return reply.raw(error);
    }
    if let ([_], [only]) = (parts, replies) {
        return reply.raw(only);
    }
    let count = parts.iter().map(|part| part.keys.len()).sum();
    let mut in_order: Vec<&[u8]> = vec![b""; count];
    for (part, bytes) in parts.iter().zip(replies) {
        let Some((found, mut rest)) = elements(bytes).filter(|(found, _)| *found == part.keys.len()) else {
            return reply.error(UNEXPECTED);
        };
        debug_assert_eq!(found, part.keys.len());
        for key in &part.keys {
            let place = in_order.get_mut(*key as usize);
            let (Some(place), Some(value)) = (place, take_reply(&mut rest)) else {
                return reply.error(UNEXPECTED);
            };
            *place = value;
        }
    }
    if replies.len() != parts.len() {
        return reply.error(UNEXPECTED);
    }
    reply.array(count);
    for value in in_order {
        reply.raw(value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn check(merge: Merge, replies: &[&str], expected: &str) {
        let replies: Vec<&[u8]> = replies.iter().map(|reply| reply.as_bytes()).collect();
        let mut reply = Reply::new();
        broadcast(merge, &replies, &mut reply);
        assert_eq!(String::from_utf8_lossy(reply.as_slice()), expected);
    }

    #[test]
    fn numbers_are_added_up() {
        check(Merge::Sum, &[":1\r\n", ":41\r\n"], ":42\r\n");
        check(Merge::Sum, &[":1\r\n", "-LOADING x\r\n", "-ERR y\r\n"], "-LOADING x\r\n");
        check(Merge::Sum, &[":1\r\n", "+OK\r\n"], &format!("-{UNEXPECTED}\r\n"));
        check(Merge::Sum, &[":9223372036854775807\r\n", ":1\r\n"], &format!("-{UNEXPECTED}\r\n"));
    }

    #[test]
    fn an_error_of_one_is_the_reply() {
        check(Merge::AllSucceeded, &["+OK\r\n", "+OK\r\n"], "+OK\r\n");
        check(Merge::AllSucceeded, &["+OK\r\n", "-READONLY no\r\n"], "-READONLY no\r\n");
        check(Merge::AllSucceeded, &["$1\r\na\r\n", "!5\r\nERR a\r\n"], "!5\r\nERR a\r\n");
    }

    #[test]
    fn a_kill_counts_where_there_was_something_to_kill() {
        check(Merge::OneSucceeded, &["-NOTBUSY a\r\n", "+OK\r\n"], "+OK\r\n");
        check(Merge::OneSucceeded, &["-NOTBUSY a\r\n", "-UNKILLABLE b\r\n"], "-UNKILLABLE b\r\n");
        check(Merge::OneSucceeded, &["-NOTBUSY a\r\n", "-NOTBUSY b\r\n"], "-NOTBUSY a\r\n");
    }

    #[test]
    fn arrays_are_joined() {
        check(
            Merge::Concat,
            &["*1\r\n$1\r\na\r\n", "*0\r\n", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"],
            "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        );
        check(Merge::And, &["*2\r\n:1\r\n:1\r\n", "*2\r\n:0\r\n:1\r\n"], "*2\r\n:0\r\n:1\r\n");
        check(Merge::And, &["*2\r\n:1\r\n:1\r\n", "*1\r\n:1\r\n"], &format!("-{UNEXPECTED}\r\n"));
    }

    fn values_of(parts: &[(u32, &[u32])], replies: &[&str]) -> String {
        let parts: Vec<Part> =
            parts.iter().map(|(target, keys)| Part { target: *target, keys: keys.to_vec() }).collect();
        let replies: Vec<&[u8]> = replies.iter().map(|reply| reply.as_bytes()).collect();
        let mut reply = Reply::new();
        split(Split::Values, &parts, &replies, &mut reply);
        String::from_utf8_lossy(reply.as_slice()).into_owned()
    }

    #[test]
    fn values_go_to_their_places() {
        let got = values_of(
            &[(0, &[0, 3]), (1, &[1]), (2, &[2])],
            &["*2\r\n$1\r\na\r\n$1\r\nd\r\n", "*1\r\n$-1\r\n", "*1\r\n$4\r\n\r\n\r\n\r\n"],
        );
        assert_eq!(got, "*4\r\n$1\r\na\r\n$-1\r\n$4\r\n\r\n\r\n\r\n$1\r\nd\r\n");
    }

    #[test]
    fn a_short_reply_is_no_reply() {
        let unexpected = format!("-{UNEXPECTED}\r\n");
        assert_eq!(values_of(&[(0, &[0, 1]), (1, &[2])], &["*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n"]), unexpected);
        assert_eq!(values_of(&[(0, &[0]), (1, &[1])], &["*1\r\n$1\r\na\r\n"]), unexpected);
        assert_eq!(values_of(&[(0, &[0]), (1, &[1])], &["*1\r\n$1\r\na\r\n", "-TRYAGAIN x\r\n"]), "-TRYAGAIN x\r\n");
    }
}
