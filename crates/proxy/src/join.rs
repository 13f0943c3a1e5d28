//! How the replies to the parts of a request become the reply to it.

use resp::{Proto, Reply};

use crate::merge;
use crate::order::Gather;
use crate::routing::{Merge, Parts, Split};

/// What a request that was sent in parts is.
#[derive(Debug)]
pub enum Join {
    /// Each backend got the keys that it owns.
    Split(Split, Parts, Proto),
    /// A task gives the reply.
    Given,
    /// Every backend got it.
    Broadcast(Merge, Proto),
}

/// Appends the reply to `out`.
pub fn write(gather: Gather<Join>, out: &mut Vec<u8>) {
    if let (Join::Given, Some(reply)) = (&gather.merge, gather.parts.first()) {
        return out.extend_from_slice(reply);
    }
    let parts: Vec<&[u8]> = gather.parts.iter().map(Vec::as_slice).collect();
    let proto = match &gather.merge {
        Join::Split(_, _, proto) | Join::Broadcast(_, proto) => *proto,
        Join::Given => Proto::Resp2,
    };
    let mut reply = Reply::with_buffer(std::mem::take(out), proto);
    match &gather.merge {
        Join::Split(split, of, _) => merge::split(*split, of, &parts, &mut reply),
        Join::Given => {}
        Join::Broadcast(how, _) => merge::broadcast(*how, &parts, &mut reply),
    }
    *out = reply.take();
}
