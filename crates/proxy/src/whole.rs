//! Commands about all keys: SCAN, RANDOMKEY, and those that end scripts wherever they run.

use resp::{Args, write_command};

use crate::cursor::{Place, TOO_LARGE, slot_of_cursor, split_reply, write_reply};
use crate::dispatch::Step;
use crate::map::{ClusterMap, parse_nodes};
use crate::merge;
use crate::routing::Merge;
use crate::service::Worker;
use crate::slots::Kind;
use crate::tasks::{Answer, Work};

/// A call of SCAN that is under way.
#[derive(Debug)]
pub(crate) struct Scan {
    place: Place,
}

/// RANDOMKEY.
#[derive(Debug)]
pub(crate) struct RandomKey {
    /// The groups were asked for the numbers of their keys already.
    is_chosen: bool,
}

/// SCRIPT KILL or FUNCTION KILL.
#[derive(Debug)]
pub(crate) struct Kill {
    lanes: Vec<u32>,
}

impl Worker {
    /// The places of all backends that own slots, in the map's order.
    pub(crate) fn owner_places(&mut self) -> Vec<u32> {
        let map = self.map.clone();
        map.backends.iter().map(|backend| self.backend_at(&backend.name, backend.address)).collect()
    }

    /// SCAN; see [`crate::cursor`].
    pub(crate) fn scan(&mut self, place: u32, args: Args<'_>) -> Step {
        let cursor =
            std::str::from_utf8(args.get(1).unwrap_or_default()).ok().and_then(|text| text.parse::<u64>().ok());
        // A server says what is wrong with it.
        let Some(cursor) = cursor else { return self.send_to_slot(place, crate::routing::FIXED_SLOT, args, None) };
        if self.map.kind == Kind::Native {
            return self.send_to_slot(place, slot_of_cursor(cursor), args, None);
        }
        if self.map.kind == Kind::Plain && self.only_owner.is_some() {
            return self.send_to_slot(place, crate::routing::FIXED_SLOT, args, None);
        }
        let at = Place::of_cursor(cursor, self.map.fingerprint);
        let shards = self.owner_places();
        if shards.is_empty() {
            return self.refuse_request(place, b"CLUSTERDOWN The cluster is down");
        }
        let Some(id) = self.begin_task(place, Work::Scan(Scan { place: at })) else { return Step::CloseNow };
        if at.is_pass_over(shards.len()) {
            let mut bytes = Vec::new();
            write_command(&mut bytes, ["CLUSTER", "NODES"]);
            for shard in shards {
                self.task_request(id, shard, &bytes, 1);
            }
            return Step::Done;
        }
        let inner = at.inner.to_string();
        let words: Vec<&[u8]> = [&b"SCAN"[..], inner.as_bytes()].into_iter().chain(args.iter().skip(2)).collect();
        let mut bytes = Vec::new();
        write_command(&mut bytes, words);
        if let Some(shard) = shards.get(at.shard) {
            self.task_request(id, *shard, &bytes, 1);
        }
        Step::Done
    }

    pub(crate) fn scan_answered(&mut self, id: u32, scan: Scan, answers: Vec<Answer>) {
        let shards = self.map.backends.len();
        if scan.place.is_pass_over(shards) {
            return self.pass_is_over(id, scan.place, &answers);
        }
        let Some(answer) = answers.into_iter().next() else {
            return self.fulfil(id, b"-ERR the cluster has no servers\r\n");
        };
        let Some((cursor, elements)) = split_reply(&answer.bytes) else { return self.fulfil(id, &answer.bytes) };
        let next = scan.place.next(cursor);
        let is_end = next.is_pass_over(shards) && self.map.kind == Kind::Plain;
        let Some(cursor) = (if is_end { Some(0) } else { next.cursor() }) else {
            return self.fulfil_with(id, |reply| reply.error(TOO_LARGE));
        };
        let mut reply = Vec::with_capacity(elements.len() + 32);
        write_reply(&mut reply, cursor, elements);
        self.fulfil(id, &reply);
    }

    /// All shards were walked, and all primaries have told what they know of the topology.
    fn pass_is_over(&mut self, id: u32, place: Place, answers: &[Answer]) {
        let mut newest: Option<ClusterMap> = None;
        let mut is_moving = false;
        for answer in answers {
            if merge::is_error(&answer.bytes) {
                return self.fulfil(id, &answer.bytes);
            }
            let text = resp::parse_reply(&answer.bytes).ok().flatten();
            let text = text.as_ref().and_then(|(value, _)| value.as_bytes()).unwrap_or_default();
            let Ok(map) = parse_nodes(&String::from_utf8_lossy(text)) else {
                return self.fulfil_with(id, |reply| reply.error(merge::UNEXPECTED));
            };
            is_moving |= !map.moving.is_empty();
            if newest.as_ref().is_none_or(|newest| newest.epoch() < map.epoch()) {
                newest = Some(map);
            }
        }
        let now = newest.map_or(self.map.fingerprint, |map| map.fingerprint());
        if now != self.map.fingerprint {
            self.shared.map.request_refresh();
        }
        let cursor = place.after_pass(now, is_moving).map_or(Some(0), Place::cursor).unwrap_or(0);
        let mut reply = Vec::new();
        write_reply(&mut reply, cursor, b"*0\r\n");
        self.fulfil(id, &reply);
    }

    /// RANDOMKEY: a group is chosen by the numbers of keys, so that every key is as likely as any other.
    pub(crate) fn random_key(&mut self, place: u32) -> Step {
        let backends = self.owner_places();
        if let [_] = backends.as_slice() {
            return self.send_to_slot(place, crate::routing::FIXED_SLOT, Args::from_slices(&[b"RANDOMKEY"]), None);
        }
        if backends.is_empty() {
            return self.refuse_request(place, b"CLUSTERDOWN The cluster is down");
        }
        let work = Work::RandomKey(RandomKey { is_chosen: false });
        let Some(id) = self.begin_task(place, work) else { return Step::CloseNow };
        for backend in backends {
            self.task_request(id, backend, b"*1\r\n$6\r\nDBSIZE\r\n", 1);
        }
        Step::Done
    }

    pub(crate) fn random_key_answered(&mut self, id: u32, random: RandomKey, answers: Vec<Answer>) {
        let error = answers.iter().find(|answer| merge::is_error(&answer.bytes));
        if let Some(answer) = error.or(answers.first().filter(|_| random.is_chosen)) {
            return self.fulfil(id, &answer.bytes);
        }
        let sizes: Vec<u64> = answers
            .iter()
            .map(|answer| merge::integer(&answer.bytes).and_then(|size| u64::try_from(size).ok()).unwrap_or(0))
            .collect();
        let total: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
        if total == 0 {
            return self.fulfil_with(id, resp::Reply::null);
        }
        let mut at = fastrand::u64(0..total);
        let chosen = sizes.iter().position(|size| {
            let is_it = at < *size;
            at = at.saturating_sub(*size);
            is_it
        });
        let Some(backend) = chosen.and_then(|chosen| answers.get(chosen)).map(|answer| answer.backend) else {
            return self.fulfil_with(id, resp::Reply::null);
        };
        self.tasks_put_back(id, Work::RandomKey(RandomKey { is_chosen: true }));
        self.task_request(id, backend, b"*1\r\n$9\r\nRANDOMKEY\r\n", 1);
    }

    /// SCRIPT KILL, FUNCTION KILL: by connections of their own, as a server reads nothing more from one whose script runs.
    pub(crate) fn kill_scripts(&mut self, place: u32, args: Args<'_>) -> Step {
        let backends = self.owner_places();
        let Some(client) = self.clients.get(place as usize) else { return Step::CloseNow };
        let (owner, kind) = ((place, client.serial), client.kind);
        let lanes: Vec<u32> =
            backends.into_iter().filter_map(|backend| self.take_own_lane(backend, kind, owner)).collect();
        if lanes.is_empty() {
            return self.refuse_request(place, crate::session::NO_CONNECTION.as_bytes());
        }
        let mut bytes = Vec::new();
        write_command(&mut bytes, args);
        let Some(id) = self.begin_task(place, Work::Kill(Kill { lanes: lanes.clone() })) else { return Step::CloseNow };
        for lane in lanes {
            self.task_request_own(id, lane, &bytes, 1);
        }
        Step::Done
    }

    pub(crate) fn kill_answered(&mut self, id: u32, kill: Kill, answers: Vec<Answer>) {
        if let Some(owner) = self.owner_of_task(id) {
            kill.lanes.into_iter().for_each(|lane| self.release_lane(lane, owner));
        }
        let replies: Vec<&[u8]> = answers.iter().map(|answer| answer.bytes.as_slice()).collect();
        self.fulfil_with(id, |reply| merge::broadcast(Merge::OneSucceeded, &replies, reply));
    }
}
