//! Commands that may block: each on a connection of its client's own, so that it holds up nobody else.
//!
//! The connection goes back to the pool with the reply. If the client goes, it is closed, and the server forgets the client.
//! A slot that moves away has its blocked clients told MOVED; the command then goes on at the new owner with what is left of
//! its time. CLIENT UNBLOCK is passed on to the server, which alone knows whether the reply is on its way already; so the
//! server's number of the connection is asked for first.

use std::time::{Duration, Instant};

use commands::CommandId;
use commands::table::CommandSpec;
use resp::{Args, OwnedArgs, write_command};

use super::NO_CONNECTION;
use crate::client::Pause;
use crate::dispatch::Step;
use crate::map::{Redirect, parse_redirect};
use crate::merge;
use crate::service::Worker;
use crate::tasks::{Answer, Work};

/// How often one command is sent at most.
const HOPS_MAX: u32 = 64;
/// Before it is sent again to a server that cannot for the moment.
const RETRY_AFTER: Duration = Duration::from_millis(20);
const CLIENT_ID: &[u8] = b"*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n";
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A blocking command under way.
#[derive(Debug)]
pub(crate) struct Blocking {
    /// Its connection.
    pub(crate) lane: u32,
    command: CommandId,
    args: OwnedArgs,
    slot: u16,
    began: Instant,
    /// How long a passing refusal is tried again.
    until: Instant,
    hops: u32,
    asking: bool,
}

impl Worker {
    /// Sends a command that may block.
    pub(crate) fn block(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>, slot: u16) -> Step {
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        let (owner, kind) = ((place, client.serial), client.kind);
        if !client.order.is_empty() {
            // On the connection of its own it would overtake what was sent before.
            self.pause(place, Pause::Drain);
            return Step::Again;
        }
        let Some(backend) = self.owner_of(slot) else {
            self.shared.map.request_refresh();
            return self.refuse_request(place, b"CLUSTERDOWN Hash slot not served");
        };
        let Some(lane) = self.take_own_lane(backend, kind, owner) else {
            return self.refuse_request(place, NO_CONNECTION.as_bytes());
        };
        let blocking = Blocking {
            lane,
            command: spec.id,
            args: args.to_owned_args(),
            slot,
            began: self.now,
            until: self.now + Duration::from_millis(u64::from(self.config.backend_retry_time)),
            hops: 0,
            asking: false,
        };
        let Some(id) = self.begin_task(place, Work::Promise) else { return Step::CloseNow };
        self.wait_for(place, id);
        self.stats.blocked.add(1);
        self.send_blocking(id, blocking);
        Step::Done
    }

    fn send_blocking(&mut self, id: u32, blocking: Blocking) {
        let mut bytes = CLIENT_ID.to_vec();
        let mut replies = 2;
        if blocking.asking {
            bytes.extend_from_slice(ASKING);
            replies += 1;
        }
        let waited = self.now.saturating_duration_since(blocking.began);
        write_command(&mut bytes, shortened(blocking.command, &blocking.args, waited).as_args());
        let lane = blocking.lane;
        self.tasks_put_back(id, Work::Blocking(blocking));
        self.task_request_own(id, lane, &bytes, replies);
    }

    pub(crate) fn blocking_answered(&mut self, id: u32, mut blocking: Blocking, answers: Vec<Answer>) {
        let Some(owner) = self.owner_of_task(id) else { return };
        let Some(answer) = answers.into_iter().next() else {
            // It has waited for a server that could not.
            return self.move_blocking(id, blocking, None);
        };
        let reply = if answer.is_lost { Some(answer.bytes.as_slice()) } else { last_reply(&answer.bytes) };
        let reply = reply.unwrap_or(b"-ERR a server behind the proxy sent a reply of an unexpected kind\r\n");
        let error = merge::error_text(reply).unwrap_or_default();
        blocking.hops += 1;
        let may_go_on = !answer.is_lost && blocking.hops < HOPS_MAX;
        match parse_redirect(error).filter(|_| may_go_on) {
            Some(Redirect::Moved { host, port, .. }) => {
                self.shared.map.request_refresh();
                let backend = self.named_backend(answer.backend, &host, port);
                blocking.asking = false;
                return self.move_blocking(id, blocking, backend);
            }
            Some(Redirect::Ask { host, port, .. }) => {
                let backend = self.named_backend(answer.backend, &host, port);
                blocking.asking = true;
                return self.move_blocking(id, blocking, backend);
            }
            Some(_) if self.now < blocking.until => return self.delay_task(id, Work::Blocking(blocking), RETRY_AFTER),
            // Redis: what those are told that wait at a primary that becomes a replica.
            None if may_go_on && error.starts_with(b"UNBLOCKED force unblock") => {
                self.shared.map.request_refresh();
                blocking.until = self.now + Duration::from_millis(u64::from(self.config.backend_retry_time));
                return self.delay_task(id, Work::Blocking(blocking), RETRY_AFTER);
            }
            _ => {}
        }
        if !answer.is_lost {
            self.release_lane(blocking.lane, owner);
        }
        self.stats.blocked.subtract(1);
        self.wait_is_over(id);
        self.fulfil(id, reply);
    }

    /// Goes on at another server, or at whoever owns the slot by now.
    fn move_blocking(&mut self, id: u32, mut blocking: Blocking, backend: Option<u32>) {
        let Some((kind, owner)) = self.tasks.get(id).map(|task| (task.kind, (task.client, task.serial))) else {
            return;
        };
        let backend = backend.or_else(|| self.owner_of(blocking.slot));
        self.release_lane(blocking.lane, owner);
        match backend.and_then(|backend| self.take_own_lane(backend, kind, owner)) {
            Some(lane) => {
                blocking.lane = lane;
                self.send_blocking(id, blocking);
            }
            None => {
                self.stats.blocked.subtract(1);
                self.wait_is_over(id);
                self.fulfil_with(id, |reply| reply.error(NO_CONNECTION));
            }
        }
    }

    /// CLIENT UNBLOCK for a client of this worker, on behalf of another: gives where to send what, or `None` if it does not
    /// block.
    pub(crate) fn unblock_request(&self, id: u64, reason: &[u8]) -> Option<(u32, Vec<u8>)> {
        let (_, client) = self.clients.iter().find(|(_, client)| client.id == id)?;
        let task = client.pinned()?.waits_for?;
        let Work::Blocking(blocking) = self.tasks.work(task)? else { return None };
        let number = merge::integer(first_reply(self.tasks.so_far(task)?)?)?.to_string();
        let mut bytes = Vec::new();
        write_command(&mut bytes, [&b"CLIENT"[..], b"UNBLOCK", number.as_bytes(), reason]);
        Some((self.lanes.get(blocking.lane as usize)?.backend, bytes))
    }
}

fn first_reply(mut bytes: &[u8]) -> Option<&[u8]> {
    merge::take_reply(&mut bytes)
}

fn last_reply(mut bytes: &[u8]) -> Option<&[u8]> {
    let mut last = None;
    while let Some(reply) = merge::take_reply(&mut bytes) {
        last = Some(reply);
    }
    last
}

/// The command with what is left of its time after it has waited; for ever stays for ever.
fn shortened(command: CommandId, args: &OwnedArgs, waited: Duration) -> OwnedArgs {
    // What one redirection takes is not worth it.
    if waited < Duration::from_millis(50) {
        return args.clone();
    }
    let view = args.as_args();
    let position = match command {
        CommandId::Blmpop | CommandId::Bzmpop => 1,
        CommandId::Xread | CommandId::Xreadgroup => {
            let block = view.iter().position(|word| word.eq_ignore_ascii_case(b"block"));
            block.map_or(usize::MAX, |block| block + 1)
        }
        _ => view.len().saturating_sub(1),
    };
    let is_milliseconds = matches!(command, CommandId::Xread | CommandId::Xreadgroup);
    let shorter = |text: &[u8]| -> Option<Vec<u8>> {
        let timeout: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        if timeout <= 0.0 || !timeout.is_finite() {
            return None;
        }
        let left = if is_milliseconds {
            format!("{:.0}", (timeout - waited.as_secs_f64() * 1000.0).max(1.0))
        } else {
            format!("{:.3}", (timeout - waited.as_secs_f64()).max(0.001))
        };
        Some(left.into_bytes())
    };
    let words = view.iter().enumerate().map(|(at, word)| match shorter(word) {
        Some(left) if at == position => left,
        _ => word.to_vec(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use commands::table;

    fn check(request: &str, waited_ms: u64, expected: &str) {
        let args: OwnedArgs = request.split(' ').collect();
        let spec = table::resolve(&args.as_args()).unwrap();
        let got = shortened(spec.id, &args, Duration::from_millis(waited_ms));
        let words: Vec<String> = got.as_args().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn what_is_left_of_the_time_is_sent() {
        check("BLPOP a b 10", 10, "BLPOP a b 10");
        check("BLPOP a b 10", 2500, "BLPOP a b 7.500");
        check("BLPOP a 1 0", 2500, "BLPOP a 1 0");
        check("BLMPOP 3 1 a LEFT", 2500, "BLMPOP 0.500 1 a LEFT");
        check("BLMOVE a b LEFT RIGHT 1", 2500, "BLMOVE a b LEFT RIGHT 0.001");
        check("XREAD COUNT 1 BLOCK 3000 STREAMS a $", 2500, "XREAD COUNT 1 BLOCK 500 STREAMS a $");
        check("XREAD BLOCK 0 STREAMS a 0", 2500, "XREAD BLOCK 0 STREAMS a 0");
    }
}
