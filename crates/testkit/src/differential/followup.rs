//! Settles what two replies alone cannot: random choices, random removals, iterations and
//! serialized values, each by further commands to one or both servers.

use std::collections::BTreeSet;

use super::driver::{Checked, PEER, Run, SUBJECT, io_failure, trouble};
use super::keyspace;
use super::rules::{self, Probe};
use crate::Reply;

impl Run<'_> {
    /// Looks each randomly chosen element up in the peer.
    pub(super) fn probe(
        &mut self,
        connection: usize,
        index: usize,
        args: &[Vec<u8>],
        probe: Probe,
        subject: &Reply,
    ) -> Checked {
        let mut elements: Vec<Vec<u8>> = Vec::new();
        collect_strings(subject, &mut elements);
        let has_values =
            args.len() == 4 && subject.items().is_some_and(|items| items.iter().all(|i| i.bytes().is_some()));
        if has_values {
            elements = elements.into_iter().step_by(2).collect();
        } else if args.len() == 4 {
            elements = subject
                .items()
                .unwrap_or(&[])
                .iter()
                .filter_map(|pair| pair.items()?.first()?.bytes().map(<[u8]>::to_vec))
                .collect();
        }
        let Some(key) = args.get(1).cloned().or(Some(Vec::new())) else {
            return Ok(());
        };
        elements.truncate(500);
        if elements.is_empty() {
            return Ok(());
        }
        let name: &[u8] = match probe {
            Probe::Set => b"SMISMEMBER",
            Probe::Hash => b"HMGET",
            Probe::SortedSet => b"ZMSCORE",
            Probe::Key => b"EXISTS",
        };
        let mut question = vec![name.to_vec()];
        if probe != Probe::Key {
            question.push(key);
        }
        question.extend(elements);
        let answer = self.ask(PEER, connection, index, &question)?;
        let all_there = match &answer {
            Reply::Array(items) => items.iter().all(|item| !item.is_null() && *item != Reply::Integer(0)),
            other => *other == Reply::Integer(1),
        };
        if all_there {
            return Ok(());
        }
        let mut failure = trouble(index, args, "a random choice is not a member in the peer");
        failure.subject = subject.to_string();
        failure.peer = answer.to_string();
        Err(Box::new(failure))
    }

    /// After SPOP each server also loses what the other one took, so that they stay equal.
    pub(super) fn repair_pop(
        &mut self,
        connection: usize,
        index: usize,
        args: &[Vec<u8>],
        subject: &Reply,
        peer: &Reply,
    ) -> Checked {
        let mut taken = [Vec::new(), Vec::new()];
        collect_strings(subject, &mut taken[SUBJECT]);
        collect_strings(peer, &mut taken[PEER]);
        if taken[SUBJECT].len() != taken[PEER].len() {
            return self.excuse(index, args, subject, peer, "different counts of members were taken");
        }
        for side in [SUBJECT, PEER] {
            let (own, other) = (&taken[side], &taken[1 - side]);
            let missing: Vec<Vec<u8>> = other.iter().filter(|member| !own.contains(member)).cloned().collect();
            if missing.is_empty() {
                continue;
            }
            let count = missing.len();
            let mut repair = vec![b"SREM".to_vec(), args[1].clone()];
            repair.extend(missing);
            let reply = self.ask(side, connection, index, &repair)?;
            if reply.integer() != i64::try_from(count).ok() {
                return self.excuse(index, args, subject, peer, "the members taken are not members of the other's set");
            }
        }
        Ok(())
    }

    /// Redis 7.2 makes the consumer that XREADGROUP, XCLAIM and XAUTOCLAIM name even if they find nothing, 7.0 does not
    /// always: afterwards it is there in both.
    pub(super) fn repair_consumer(&mut self, connection: usize, index: usize, args: &[Vec<u8>]) -> Checked {
        if self.pair.same_version {
            return Ok(());
        }
        let is_word = |arg: &Vec<u8>, word: &str| arg.eq_ignore_ascii_case(word.as_bytes());
        let (keys, group, consumer) = if is_word(&args[0], "XREADGROUP") {
            let Some(at) = args.iter().position(|arg| is_word(arg, "STREAMS")) else { return Ok(()) };
            let streams = &args[at + 1..];
            (&streams[..streams.len() / 2], args.get(2), args.get(3))
        } else {
            (args.get(1..2).unwrap_or(&[]), args.get(2), args.get(3))
        };
        let (Some(group), Some(consumer)) = (group, consumer) else { return Ok(()) };
        for key in keys {
            let make = [b"XGROUP".to_vec(), b"CREATECONSUMER".to_vec(), key.clone(), group.clone(), consumer.clone()];
            self.ask(SUBJECT, connection, index, &make)?;
            self.ask(PEER, connection, index, &make)?;
        }
        Ok(())
    }

    /// Runs an iteration to its end on both servers; duplicates are allowed, omissions are not.
    pub(super) fn scan(
        &mut self,
        connection: usize,
        index: usize,
        args: &[Vec<u8>],
        subject: &Reply,
        peer: &Reply,
    ) -> Checked {
        let cursor_at = if args[0].eq_ignore_ascii_case(b"SCAN") { 1 } else { 2 };
        // From another cursor than 0, the two servers' iterations have nothing in common.
        if args.get(cursor_at).is_none_or(|cursor| cursor != b"0") {
            return Ok(());
        }
        let size = if matches!(args[0].to_ascii_uppercase().as_slice(), b"HSCAN" | b"ZSCAN") { 2 } else { 1 };
        let mut seen = [BTreeSet::new(), BTreeSet::new()];
        for (side, first) in [(SUBJECT, subject), (PEER, peer)] {
            let mut page = first.clone();
            for _ in 0..10_000 {
                let Some([cursor, items]) = page.items() else {
                    break;
                };
                seen[side].extend(rules::sorted(items, size));
                let Some(cursor) = cursor.bytes().filter(|cursor| *cursor != b"0") else {
                    break;
                };
                let mut next = args.to_vec();
                next[cursor_at] = cursor.to_vec();
                page = self.ask(side, connection, index, &next)?;
            }
        }
        if seen[SUBJECT] == seen[PEER] {
            return Ok(());
        }
        let show = |set: &BTreeSet<Vec<Reply>>| {
            let all: Vec<Reply> = set.iter().flatten().cloned().collect();
            Reply::Array(all)
        };
        let (ours, theirs) = (show(&seen[SUBJECT]), show(&seen[PEER]));
        self.excuse(index, args, &ours, &theirs, "complete iterations differ")
    }

    /// Restores the peer's payload in the server under test, and that server's own payload in
    /// both where versions allow, and compares what came of it.
    pub(super) fn cross_restore(
        &mut self,
        connection: usize,
        index: usize,
        args: &[Vec<u8>],
        subject: &Reply,
        peer: &Reply,
    ) -> Checked {
        let (Some(ours), Some(theirs)) = (subject.bytes(), peer.bytes()) else {
            return Ok(());
        };
        let target = b"\x01restored".to_vec();
        let key = args[1].clone();
        let mut trips = vec![(SUBJECT, theirs), (SUBJECT, ours)];
        if self.pair.same_version {
            trips.push((PEER, ours));
        }
        for (side, payload) in trips {
            let restore =
                vec![b"RESTORE".to_vec(), target.clone(), b"0".to_vec(), payload.to_vec(), b"REPLACE".to_vec()];
            let reply = self.ask(side, connection, index, &restore)?;
            if reply != Reply::Simple(b"OK".to_vec()) {
                return self.excuse(
                    index,
                    &restore,
                    &reply,
                    &Reply::Simple(b"OK".to_vec()),
                    "a DUMP payload is refused",
                );
            }
            let restored = keyspace::content(&mut self.clients[side][connection], &target);
            let original = keyspace::content(&mut self.clients[PEER][connection], &key);
            let (restored, original) = match (restored, original) {
                (Ok(restored), Ok(original)) => (restored, original),
                (Err(error), _) => return Err(Box::new(io_failure(side, index, args, &error))),
                (_, Err(error)) => return Err(Box::new(io_failure(PEER, index, args, &error))),
            };
            self.ask(side, connection, index, &[b"DEL".to_vec(), target.clone()])?;
            if restored != original {
                self.excuse(index, args, &restored, &original, "a restored value differs")?;
            }
        }
        Ok(())
    }
}

fn collect_strings(reply: &Reply, out: &mut Vec<Vec<u8>>) {
    if let Some(items) = reply.items() {
        items.iter().for_each(|item| collect_strings(item, out));
    } else if let Some(bytes) = reply.bytes() {
        out.push(bytes.to_vec());
    }
}
