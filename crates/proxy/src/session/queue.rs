//! MULTI: the commands of a transaction, kept at the proxy until EXEC.
//!
//! They go to the server as one block, MULTI … EXEC, with nothing between; so a transaction costs no connection of its own
//! unless the client watches keys, and one that is never finished costs no server anything. All its keys must be in one slot.
//! What cannot be right on one server (FLUSHALL, SCAN, SELECT within a block) is refused when it is queued, as Redis refuses
//! what it cannot run, and EXEC then answers EXECABORT.

use commands::CommandId;
use commands::table::{CommandSpec, Flags};
use keyspace::slot::SlotSpace;
use resp::Args;

use crate::routing::{self, Route, RouteError, plan, split};

/// Redis: the answer to EXEC after a command was refused.
pub const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

/// Commands queued by MULTI.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The requests in the multibulk form, one behind the other.
    frames: Vec<u8>,
    /// How many.
    count: u32,
    /// The slot of their keys.
    slot: Option<u16>,
    /// One was refused.
    is_aborted: bool,
}

impl Queue {
    /// An empty queue; with watched keys, for commands on their slot only.
    pub fn within(slot: Option<u16>) -> Queue {
        Queue { slot, ..Queue::default() }
    }

    /// Queues a command, which is known and has enough arguments. `is_one_server`: slots do not matter.
    ///
    /// # Errors
    /// The error for the client; the transaction is lost then.
    pub fn push(
        &mut self,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        space: SlotSpace,
        is_one_server: bool,
    ) -> Result<(), RouteError> {
        let slot = match slot_within(spec, args, space) {
            Err(error) if is_one_server && error.is_about_slots() => None,
            slot => slot.inspect_err(|_| self.is_aborted = true)?,
        };
        let slot = slot.filter(|_| !is_one_server);
        if let (Some(own), Some(slot)) = (self.slot, slot)
            && own != slot
        {
            self.is_aborted = true;
            return Err(RouteError(plan::CROSS_SLOT.into()));
        }
        self.slot = self.slot.or(slot);
        resp::write_command(&mut self.frames, args.iter());
        self.count += 1;
        Ok(())
    }

    /// A command was refused for another reason.
    pub fn abort(&mut self) {
        self.is_aborted = true;
    }

    /// Whether one was refused.
    pub fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// How many commands are queued.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The slot of its keys, if it names any.
    pub fn slot(&self) -> Option<u16> {
        self.slot
    }

    /// Bytes of memory.
    pub fn used_bytes(&self) -> usize {
        self.frames.capacity()
    }

    /// The block for the server, which answers it with [`Queue::replies`] replies. `asking`: to one that is taking the
    /// slot over.
    pub fn block(&self, asking: bool) -> Vec<u8> {
        let mut block = Vec::with_capacity(self.frames.len() + 64);
        if asking {
            block.extend_from_slice(b"*1\r\n$6\r\nASKING\r\n");
        }
        block.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
        block.extend_from_slice(&self.frames);
        block.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
        block
    }

    /// How many replies the block has.
    pub fn replies(&self, asking: bool) -> u32 {
        self.count + 2 + u32::from(asking)
    }
}

/// The slot that a command within a transaction needs.
fn slot_within(spec: &'static CommandSpec, args: &Args<'_>, space: SlotSpace) -> Result<Option<u16>, RouteError> {
    if spec.flags.contains(Flags::NO_MULTI) {
        return Err(RouteError("ERR Command not allowed inside a transaction".into()));
    }
    match Route::of(spec.id) {
        // Within a block nothing blocks.
        Route::Slot | Route::Script | Route::Blocking | Route::Fixed => routing::slot_of_call(spec, args, space),
        Route::Split(kind) => {
            // Arity was checked but for the pairs.
            if !args.len().saturating_sub(1).is_multiple_of(kind.stride()) {
                return Err(RouteError(commands::table::errors::wrong_arity(spec).into()));
            }
            let parts = split::split(kind, args, |key| Ok::<_, RouteError>(u32::from(routing::slot_of(space, key))))?;
            match parts.as_slice() {
                [] => Ok(None),
                [only] => Ok(u16::try_from(only.target).ok()),
                _ => Err(RouteError(plan::CROSS_SLOT.into())),
            }
        }
        // These change nothing and answer the same everywhere.
        Route::Local if matches!(spec.id, CommandId::Ping | CommandId::Echo | CommandId::Time) => Ok(None),
        Route::Publish => Ok(None),
        // Without effect there, as in Redis.
        Route::Transaction if spec.id == CommandId::Unwatch => Ok(None),
        Route::Refused(why) => Err(routing::refusal(spec, why)),
        _ => Err(routing::refusal(spec, "within MULTI, where everything runs on one server: send it before or after")),
    }
}

/// What the server answered to a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// The reply for the client: what EXEC answered.
    Done(&'a [u8]),
    /// Nothing was done, because of this error to one of its commands or to EXEC itself.
    Refused(&'a [u8]),
}

/// Reads the replies to a block, all of them.
pub fn outcome(mut replies: &[u8]) -> Option<Outcome<'_>> {
    let mut first_error = None;
    let mut last = None;
    while let Some(reply) = crate::merge::take_reply(&mut replies) {
        if let Some(error) = last.and_then(crate::merge::error_text) {
            first_error = first_error.or(Some(error));
        }
        last = Some(reply);
    }
    let exec = last.filter(|_| replies.is_empty())?;
    Some(match crate::merge::error_text(exec) {
        // EXEC was refused, by an error of its own or because one of the commands was.
        Some(error) => Outcome::Refused(first_error.filter(|_| error.starts_with(b"EXECABORT")).unwrap_or(error)),
        None => Outcome::Done(exec),
    })
}

/// Redis: the answer to EXEC when the reason is known only now.
pub fn aborted_because(error: &[u8]) -> Vec<u8> {
    [b"EXECABORT Transaction discarded because of: ", error].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use commands::table;

    fn push(queue: &mut Queue, request: &str) -> Result<(), String> {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let spec = table::resolve(words.as_slice()).unwrap();
        queue.push(spec, &Args::from_slices(&words), SlotSpace::Redis, false).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_of_one_slot_are_one_block() {
        let mut queue = Queue::default();
        for request in ["SET {t}a 1", "PING", "MGET {t}a {t}b", "BLPOP {t}l 0", "EVAL x 0"] {
            assert_eq!(push(&mut queue, request), Ok(()), "{request}");
        }
        assert_eq!(queue.slot(), Some(routing::slot_of(SlotSpace::Redis, b"t")));
        assert_eq!((queue.len(), queue.replies(false), queue.replies(true)), (5, 7, 8));
        let block = queue.block(true);
        assert!(block.starts_with(b"*1\r\n$6\r\nASKING\r\n*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n"));
        assert!(block.ends_with(b"$1\r\n0\r\n*1\r\n$4\r\nEXEC\r\n"));
        assert!(!queue.is_aborted());
    }

    #[test]
    fn a_second_slot_is_refused_at_once() {
        let mut queue = Queue::default();
        assert_eq!(push(&mut queue, "SET a 1"), Ok(()));
        assert_eq!(push(&mut queue, "SET b 1"), Err(plan::CROSS_SLOT.to_owned()));
        assert!(queue.is_aborted());
        for request in ["MGET a b", "MSET a 1 b 2", "SUNION a b"] {
            assert_eq!(push(&mut Queue::default(), request), Err(plan::CROSS_SLOT.to_owned()), "{request}");
        }
    }

    #[test]
    fn what_is_not_of_one_server_is_refused() {
        for request in
            ["FLUSHALL", "SCAN 0", "KEYS *", "SELECT 1", "CONFIG GET x", "SUBSCRIBE a", "CLIENT TRACKING ON", "HELLO 3"]
        {
            let mut queue = Queue::default();
            let error = push(&mut queue, request).unwrap_err();
            assert!(error.contains("not allowed"), "{request}: {error}");
            assert!(queue.is_aborted());
        }
    }

    #[test]
    fn outcomes_are_told_apart() {
        let done = b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n";
        assert_eq!(outcome(done), Some(Outcome::Done(b"*1\r\n+OK\r\n")));
        assert_eq!(outcome(b"+OK\r\n+QUEUED\r\n*-1\r\n"), Some(Outcome::Done(b"*-1\r\n")));
        let moved = b"+OK\r\n-MOVED 1 h:1\r\n-ERR late\r\n-EXECABORT Transaction discarded\r\n";
        assert_eq!(outcome(moved), Some(Outcome::Refused(b"MOVED 1 h:1")));
        assert_eq!(outcome(b"+OK\r\n+QUEUED\r\n-TRYAGAIN x\r\n"), Some(Outcome::Refused(b"TRYAGAIN x")));
        assert_eq!(outcome(b"+OK\r\n+QUEUED\r\n*1\r\n"), None, "a part is missing");
    }
}
