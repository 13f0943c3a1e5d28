//! Replies to a client in the order of its requests, whatever order the backends answer in.
//!
//! ```text
//! front                                                     back
//! [ run at lane 3, 5 left ] [ local, whole ] [ run at lane 1, 2 left: "+OK…" kept ] [ gather, 3 parts left ]
//!    streams to the client     waits            waits
//! ```
//!
//! What the front segment gets goes straight to the client; what others get is kept with them. Requests that follow each
//! other to one lane are one segment, so a client that speaks to one backend has never more than one, and a reply costs it
//! a comparison, a copy and a subtraction.

use std::collections::VecDeque;

/// Lane of a segment that waits for none.
pub const NO_LANE: u32 = u32::MAX;

/// Parts of a command that was sent to several backends.
#[derive(Debug)]
pub struct Gather<M> {
    /// How their replies become one.
    pub merge: M,
    /// The reply of each part, as far as it has come.
    pub parts: Vec<Vec<u8>>,
    /// Parts that have not ended.
    left: u32,
}

#[derive(Debug)]
struct Segment<M> {
    id: u32,
    lane: u32,
    /// Replies that have not ended.
    left: u32,
    /// A part of the next reply has gone to the client or is kept.
    is_within: bool,
    /// Its replies are dropped.
    is_muted: bool,
    /// Bytes of whole replies in `kept`.
    whole: usize,
    /// What came before it was its turn.
    kept: Vec<u8>,
    gather: Option<Box<Gather<M>>>,
}

impl<M> Segment<M> {
    fn run(id: u32, lane: u32, left: u32) -> Segment<M> {
        Segment { id, lane, left, is_within: false, is_muted: false, whole: 0, kept: Vec::new(), gather: None }
    }
}

/// What has come from a lane for one segment.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Replies that end within them.
    pub replies: u32,
    /// Bytes up to the end of the last of these.
    pub whole: usize,
}

impl<'a> Piece<'a> {
    /// One whole reply.
    pub fn one(bytes: &'a [u8]) -> Piece<'a> {
        Piece { bytes, replies: 1, whole: bytes.len() }
    }

    fn is_within(&self) -> bool {
        self.whole < self.bytes.len()
    }
}

/// A reply was cut in the middle and the client has its beginning: nothing right can follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

/// The unanswered requests of a client. `M` says how the parts of a request become one reply.
#[derive(Debug)]
pub struct Order<M> {
    segments: VecDeque<Segment<M>>,
    next_id: u32,
    in_flight: u32,
    /// The replies to what is pushed now are dropped.
    is_muted: bool,
}

impl<M> Default for Order<M> {
    fn default() -> Self {
        Order { segments: VecDeque::new(), next_id: 0, in_flight: 0, is_muted: false }
    }
}

impl<M> Order<M> {
    /// Requests that have no whole reply yet.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether the client has got a part of a reply of which the rest is to come.
    pub fn is_within(&self) -> bool {
        self.segments.front().is_some_and(|front| front.is_within && front.gather.is_none())
    }

    /// Bytes that are kept for their turn.
    pub fn kept_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.kept.capacity()).sum()
    }

    fn new_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// Whether the replies to what is pushed from now on are dropped.
    pub fn set_muted(&mut self, is_muted: bool) {
        self.is_muted = is_muted;
    }

    /// Requests were sent to a lane: gives the segment that their replies are for.
    #[inline]
    pub fn push_run(&mut self, lane: u32, count: u32) -> u32 {
        self.in_flight += count;
        if let Some(back) = self.segments.back_mut()
            && back.lane == lane
            && back.is_muted == self.is_muted
        {
            back.left += count;
            return back.id;
        }
        let id = self.new_id();
        self.segments.push_back(Segment { is_muted: self.is_muted, ..Segment::run(id, lane, count) });
        id
    }

    /// A reply that is known at once. It goes to `out` if nothing is before it.
    pub fn push_reply(&mut self, reply: &[u8], out: &mut Vec<u8>) {
        if self.is_muted {
            return;
        }
        match self.segments.back_mut() {
            None => out.extend_from_slice(reply),
            Some(back) if back.lane == NO_LANE && back.left == 0 => back.kept.extend_from_slice(reply),
            Some(_) => {
                let id = self.new_id();
                self.segments.push_back(Segment { kept: reply.to_vec(), ..Segment::run(id, NO_LANE, 0) });
            }
        }
    }

    /// A request was sent in parts (at least one): gives the segment that their replies are for.
    pub fn push_gather(&mut self, merge: M, parts: u32) -> u32 {
        let id = self.new_id();
        self.in_flight += 1;
        let places = (0..parts).map(|_| Vec::new()).collect();
        let gather = Some(Box::new(Gather { merge, parts: places, left: parts }));
        let is_muted = self.is_muted;
        self.segments.push_back(Segment { gather, is_muted, ..Segment::run(id, NO_LANE, 1) });
        id
    }

    #[inline]
    fn position(&self, id: u32) -> Option<usize> {
        self.segments.iter().position(|segment| segment.id == id)
    }

    /// Takes what came for a run.
    #[inline]
    pub fn take(&mut self, id: u32, piece: Piece<'_>, out: &mut Vec<u8>, join: impl FnMut(Gather<M>, &mut Vec<u8>)) {
        if let Some(front) = self.segments.front_mut()
            && front.id == id
        {
            if !front.is_muted {
                out.extend_from_slice(piece.bytes);
            }
            front.left = front.left.saturating_sub(piece.replies);
            front.is_within = piece.is_within();
            self.in_flight = self.in_flight.saturating_sub(piece.replies);
            if front.left == 0 {
                self.segments.pop_front();
                if !self.segments.is_empty() {
                    self.advance(out, join);
                }
            }
            return;
        }
        self.keep(id, piece);
    }

    /// Takes what came for a run that is not at the front.
    #[cold]
    fn keep(&mut self, id: u32, piece: Piece<'_>) {
        let Some(segment) = self.position(id).and_then(|at| self.segments.get_mut(at)) else { return };
        if piece.replies > 0 {
            segment.whole = segment.kept.len() + piece.whole;
        }
        if segment.is_muted {
            segment.whole = 0;
        } else {
            segment.kept.extend_from_slice(piece.bytes);
        }
        segment.left = segment.left.saturating_sub(piece.replies);
        segment.is_within = segment.whole < segment.kept.len();
        self.in_flight = self.in_flight.saturating_sub(piece.replies);
    }

    /// Takes what came for a part of a gather.
    pub fn take_part(
        &mut self,
        id: u32,
        part: u32,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
        join: impl FnMut(Gather<M>, &mut Vec<u8>),
    ) {
        let Some(at) = self.position(id) else { return };
        let Some(gather) = self.segments.get_mut(at).and_then(|segment| segment.gather.as_mut()) else { return };
        if let Some(place) = gather.parts.get_mut(part as usize) {
            place.extend_from_slice(piece.bytes);
        }
        gather.left = gather.left.saturating_sub(piece.replies);
        if at == 0 && gather.left == 0 {
            self.advance(out, join);
        }
    }

    /// Lets out what stands at the front and is whole, and what the segment behind it has kept.
    fn advance(&mut self, out: &mut Vec<u8>, mut join: impl FnMut(Gather<M>, &mut Vec<u8>)) {
        while let Some(front) = self.segments.front_mut() {
            if let Some(gather) = front.gather.take_if(|gather| gather.left == 0) {
                let start = out.len();
                join(*gather, out);
                if front.is_muted {
                    out.truncate(start);
                }
                front.left = 0;
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            if !front.kept.is_empty() {
                out.extend_from_slice(&front.kept);
                // It streams from now on.
                front.kept = Vec::new();
                front.whole = 0;
            }
            if front.left > 0 {
                return;
            }
            self.segments.pop_front();
        }
    }

    /// The lane of a segment is lost: what was not answered is answered by an error.
    ///
    /// # Errors
    /// The client has got the beginning of a reply.
    pub fn fail(
        &mut self,
        id: u32,
        count: u32,
        error: &[u8],
        out: &mut Vec<u8>,
        join: impl FnMut(Gather<M>, &mut Vec<u8>),
    ) -> Result<(), Broken> {
        let Some(at) = self.position(id) else { return Ok(()) };
        let Some(segment) = self.segments.get_mut(at) else { return Ok(()) };
        if segment.is_within {
            if at == 0 {
                return Err(Broken);
            }
            segment.kept.truncate(segment.whole);
            segment.is_within = false;
        }
        let errors = error.repeat(count as usize);
        self.take(id, Piece { bytes: &errors, replies: count, whole: errors.len() }, out, join);
        Ok(())
    }

    /// A part's lane is lost: its reply is an error.
    pub fn fail_part(
        &mut self,
        id: u32,
        part: u32,
        error: &[u8],
        out: &mut Vec<u8>,
        join: impl FnMut(Gather<M>, &mut Vec<u8>),
    ) {
        if let Some(at) = self.position(id)
            && let Some(gather) = self.segments.get_mut(at).and_then(|segment| segment.gather.as_mut())
            && let Some(place) = gather.parts.get_mut(part as usize)
        {
            place.clear();
        }
        self.take_part(id, part, Piece::one(error), out, join);
    }

    /// The next reply of a run is to come from elsewhere: gives the segment that it is for, which stands right before
    /// what is left of the run.
    pub fn detach_next(&mut self, id: u32, lane: u32) -> Option<u32> {
        let at = self.position(id)?;
        let new = self.new_id();
        let segment = self.segments.get_mut(at)?;
        segment.left = segment.left.saturating_sub(1);
        let is_muted = segment.is_muted;
        let (kept, is_over) = (std::mem::take(&mut segment.kept), segment.left == 0);
        segment.whole = 0;
        if is_over {
            self.segments.remove(at);
        }
        self.segments.insert(at, Segment { is_muted, ..Segment::run(new, lane, 1) });
        if !kept.is_empty() {
            let before = self.new_id();
            self.segments.insert(at, Segment { kept, ..Segment::run(before, NO_LANE, 0) });
        }
        Some(new)
    }

    /// Whether a segment is the last thing the client waits for, and one reply of it is missing.
    pub fn is_last(&self, id: u32) -> bool {
        self.segments.back().is_some_and(|back| back.id == id && back.left == 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use proptest::prelude::*;

    type Plain = Order<()>;

    fn join(gather: Gather<()>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<");
        for part in gather.parts {
            out.extend_from_slice(&part);
        }
        out.extend_from_slice(b">");
    }

    fn take(order: &mut Plain, id: u32, reply: &[u8], out: &mut Vec<u8>) {
        order.take(id, Piece::one(reply), out, join);
    }

    #[test]
    fn a_client_of_one_lane_has_one_segment() {
        let (mut order, mut out) = (Plain::default(), Vec::new());
        let id = order.push_run(7, 2);
        assert_eq!(order.push_run(7, 1), id);
        assert_eq!(order.in_flight(), 3);
        order.take(id, Piece { bytes: b"abc", replies: 2, whole: 2 }, &mut out, join);
        assert_eq!((out.as_slice(), order.in_flight()), (&b"abc"[..], 1));
        assert!(order.is_within());
        take(&mut order, id, b"d", &mut out);
        assert_eq!(out, b"abcd");
        assert!(order.is_empty());
        assert_eq!(order.in_flight(), 0);
    }

    #[test]
    fn what_comes_too_early_waits_for_its_turn() {
        let (mut order, mut out) = (Plain::default(), Vec::new());
        let first = order.push_run(1, 1);
        order.push_reply(b"L", &mut out);
        let second = order.push_run(2, 2);
        let both = order.push_gather((), 2);
        let third = order.push_run(1, 1);
        take(&mut order, third, b"5", &mut out);
        order.take_part(both, 1, Piece::one(b"y"), &mut out, join);
        take(&mut order, second, b"2", &mut out);
        order.take_part(both, 0, Piece::one(b"x"), &mut out, join);
        assert_eq!(out, b"");
        take(&mut order, first, b"1", &mut out);
        assert_eq!(out, b"1L2");
        take(&mut order, second, b"3", &mut out);
        assert_eq!(out, b"1L23<xy>5");
        assert!(order.is_empty());
        assert_eq!(order.in_flight(), 0);
    }

    #[test]
    fn a_lost_lane_breaks_only_a_reply_that_has_begun() {
        let (mut order, mut out) = (Plain::default(), Vec::new());
        let first = order.push_run(1, 2);
        let second = order.push_run(2, 2);
        order.take(second, Piece { bytes: b"2par", replies: 1, whole: 1 }, &mut out, join);
        assert_eq!(order.fail(second, 1, b"E", &mut out, join), Ok(()));
        take(&mut order, first, b"1", &mut out);
        order.take(first, Piece { bytes: b"half", replies: 0, whole: 0 }, &mut out, join);
        assert_eq!(order.fail(first, 1, b"E", &mut out, join), Err(Broken));
        let mut order = Plain::default();
        out.clear();
        let gather = order.push_gather((), 2);
        order.take_part(gather, 0, Piece { bytes: b"hal", replies: 0, whole: 0 }, &mut out, join);
        order.fail_part(gather, 0, b"E", &mut out, join);
        order.take_part(gather, 1, Piece::one(b"y"), &mut out, join);
        assert_eq!(out, b"<Ey>");
    }

    #[test]
    fn a_redirected_request_keeps_its_place() {
        for is_front in [true, false] {
            let (mut order, mut out) = (Plain::default(), Vec::new());
            let before = (!is_front).then(|| order.push_run(9, 1));
            let run = order.push_run(1, 3);
            take(&mut order, run, b"1", &mut out);
            let moved = order.detach_next(run, 2).unwrap();
            take(&mut order, run, b"3", &mut out);
            take(&mut order, moved, b"2", &mut out);
            if let Some(before) = before {
                take(&mut order, before, b"0", &mut out);
                assert_eq!(out, b"0123");
            } else {
                assert_eq!(out, b"123");
            }
            assert!(order.is_empty());
            assert_eq!(order.in_flight(), 0);
        }
    }

    proptest! {
        /// Requests to some lanes, answered by the lanes in any interleaving: the client sees them in order.
        #[test]
        fn any_interleaving_comes_out_in_order(
            requests in proptest::collection::vec(0_u32..4, 1..80),
            picks in proptest::collection::vec(0_usize..4, 0..400),
        ) {
            let (mut order, mut out) = (Plain::default(), Vec::new());
            let mut queues: Vec<VecDeque<(u32, u8)>> = vec![VecDeque::new(); 4];
            let mut expected = Vec::new();
            for (number, &lane) in requests.iter().enumerate() {
                #[allow(clippy::cast_possible_truncation)]
                let reply = number as u8;
                expected.push(reply);
                if lane == 3 {
                    order.push_reply(&[reply], &mut out);
                } else {
                    let id = order.push_run(lane, 1);
                    queues[lane as usize].push_back((id, reply));
                }
            }
            for pick in picks.into_iter().chain((0..400).map(|at| at % 4)) {
                if let Some((id, reply)) = queues[pick].pop_front() {
                    take(&mut order, id, &[reply], &mut out);
                }
            }
            prop_assert_eq!(out, expected);
            prop_assert!(order.is_empty());
            prop_assert_eq!(order.in_flight(), 0);
        }
    }
}
