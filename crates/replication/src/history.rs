//! Histories: a stream of changes has a name (40 hex digits), and a place in it is a number of bytes.
//!
//! A server that is promoted goes on with the bytes it has under a new name, and remembers the old one up to the place of
//! its promotion: replicas of the old primary can go on with it (PSYNC2). Places are counted as Redis does in PSYNC: the
//! first byte of a history is number 1, and who has `n` bytes asks for number `n + 1`.

use crate::Severity;

/// Digits of a name.
pub const ID_LEN: usize = 40;

/// The names of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    /// The name in force.
    pub id: String,
    /// The name before the last promotion; zeros: none.
    pub second_id: String,
    /// The number of the first byte that is *not* under the second name; -1: none.
    pub second_offset: i64,
}

/// What keeps of the stream can be sent: bytes number `first` to `next - 1`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Number of the oldest byte.
    pub first: i64,
    /// Number that the next byte will have.
    pub next: i64,
}

/// How a replica that asks is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It goes on; the number of the first byte to be sent.
    Continue {
        /// That number.
        from: i64,
    },
    /// It needs everything: why.
    Full(Reason),
}

/// Why a replica needs everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It has nothing.
    Asked,
    /// It has another history.
    OtherHistory,
    /// It has the history before a promotion, but more of it than this server had.
    BeyondPromotion,
    /// The bytes it lacks are no longer there, or not yet.
    NotKept,
}

impl History {
    /// A new history.
    pub fn new(id: String) -> History {
        History { id, second_id: "0".repeat(ID_LEN), second_offset: -1 }
    }

    /// Takes a new name at a promotion; `next` is the number of the next byte.
    pub fn promote(&mut self, new_id: String, next: i64) {
        self.second_id = std::mem::replace(&mut self.id, new_id);
        self.second_offset = next;
    }

    /// Forgets the second name.
    pub fn forget_second(&mut self) {
        self.second_id = "0".repeat(ID_LEN);
        self.second_offset = -1;
    }

    /// Whether a replica that has `id` up to before `offset` can go on.
    pub fn decide(&self, id: &[u8], offset: i64, kept: Option<Kept>) -> Decision {
        let is_ours = id.eq_ignore_ascii_case(self.id.as_bytes());
        let is_second = id.eq_ignore_ascii_case(self.second_id.as_bytes());
        if !(is_ours || is_second && offset <= self.second_offset) {
            return Decision::Full(match id {
                [b'?', ..] => Reason::Asked,
                _ if is_second => Reason::BeyondPromotion,
                _ => Reason::OtherHistory,
            });
        }
        match kept {
            Some(kept) if kept.first <= offset && offset <= kept.next => Decision::Continue { from: offset },
            _ => Decision::Full(Reason::NotKept),
        }
    }

    /// The log's lines about a refusal, as Redis words them. `next`: as in [`Kept`].
    pub fn explain(&self, reason: Reason, replica: &str, id: &[u8], offset: i64, next: i64) -> Vec<(Severity, String)> {
        let notice = |text: String| vec![(Severity::Notice, text)];
        match reason {
            Reason::Asked => notice(format!("Full resync requested by replica {replica}")),
            Reason::OtherHistory => notice(format!(
                "Partial resynchronization not accepted: Replication ID mismatch (Replica asked for '{}', my replication IDs are '{}' and '{}')",
                String::from_utf8_lossy(id),
                self.id,
                self.second_id
            )),
            Reason::BeyondPromotion => notice(format!(
                "Partial resynchronization not accepted: Requested offset for second ID was {offset}, but I can reply up to {}",
                self.second_offset
            )),
            Reason::NotKept => {
                let mut lines = notice(format!(
                    "Unable to partial resync with replica {replica} for lack of backlog (Replica request was: {offset})."
                ));
                if offset >= next {
                    lines.push((Severity::Warning, format!("Warning: replica {replica} tried to PSYNC with an offset that is greater than the master replication offset.")));
                }
                lines
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(first: i64, next: i64) -> Option<Kept> {
        Some(Kept { first, next })
    }

    fn history() -> History {
        History::new("a".repeat(ID_LEN))
    }

    #[test]
    fn goes_on_within_what_is_kept() {
        let (history, id) = (history(), "a".repeat(ID_LEN));
        assert_eq!(history.decide(id.as_bytes(), 5, kept(5, 10)), Decision::Continue { from: 5 });
        assert_eq!(history.decide(id.as_bytes(), 10, kept(5, 10)), Decision::Continue { from: 10 });
        assert_eq!(history.decide(id.as_bytes(), 4, kept(5, 10)), Decision::Full(Reason::NotKept));
        assert_eq!(history.decide(id.as_bytes(), 11, kept(5, 10)), Decision::Full(Reason::NotKept));
        assert_eq!(history.decide(id.as_bytes(), 5, None), Decision::Full(Reason::NotKept));
        assert_eq!(history.decide(id.as_bytes(), i64::MIN, kept(5, 10)), Decision::Full(Reason::NotKept));
    }

    #[test]
    fn who_has_nothing_or_something_else_gets_everything() {
        let history = history();
        assert_eq!(history.decide(b"?", -1, kept(1, 1)), Decision::Full(Reason::Asked));
        assert_eq!(history.decide(b"b", 1, kept(1, 1)), Decision::Full(Reason::OtherHistory));
        assert_eq!(history.decide(b"", 1, kept(1, 1)), Decision::Full(Reason::OtherHistory));
        let zeros = "0".repeat(ID_LEN);
        assert_eq!(history.decide(zeros.as_bytes(), 1, kept(1, 1)), Decision::Full(Reason::BeyondPromotion));
    }

    #[test]
    fn the_name_before_a_promotion_counts_up_to_it() {
        let (mut history, old) = (history(), "a".repeat(ID_LEN));
        history.promote("b".repeat(ID_LEN), 8);
        assert_eq!(history.decide(old.as_bytes(), 8, kept(1, 20)), Decision::Continue { from: 8 });
        assert_eq!(history.decide(old.as_bytes(), 9, kept(1, 20)), Decision::Full(Reason::BeyondPromotion));
        assert_eq!(history.decide("b".repeat(ID_LEN).as_bytes(), 20, kept(1, 20)), Decision::Continue { from: 20 });
        history.forget_second();
        assert_eq!(history.decide(old.as_bytes(), 8, kept(1, 20)), Decision::Full(Reason::OtherHistory));
    }

    #[test]
    fn refusals_have_redis_words() {
        let history = history();
        let lines = history.explain(Reason::NotKept, "h:1", b"a", 12, 11);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].1.ends_with("(Replica request was: 12)."));
    }
}
