//! The small form: a listpack of members and scores, ascending, in Redis' bytes.
//!
//! ```text
//! header │ member │ score │ member │ score │ … │ 0xFF
//! ```
//!
//! Redis: a score that is an integer of at most 2⁶² in size is stored as an integer (so −0 becomes 0), any other as
//! the text that a reply would have.

use std::cmp::Ordering;

use rdb::listpack::{Elem, Listpack, Pos};
use resp::num::{self, DOUBLE_TEXT_MAX};

/// The score that an element stands for; `None` if it is no number.
pub(super) fn parse_score(elem: Elem<'_>) -> Option<f64> {
    match elem {
        #[expect(clippy::cast_precision_loss, reason = "Redis reads integers as doubles too")]
        Elem::Int(value) => Some(value as f64),
        Elem::Bytes(text) => num::parse_f64(text),
    }
}

/// [`parse_score`] of a validated listpack.
#[inline]
pub(super) fn score_of(elem: Elem<'_>) -> f64 {
    parse_score(elem).unwrap_or(0.0)
}

/// Members are in pairs with their scores.
pub(super) fn len(pack: &Listpack) -> usize {
    pack.len() / 2
}

/// The member's position and score.
pub(super) fn find(pack: &Listpack, member: &[u8]) -> Option<(Pos, f64)> {
    let pos = pack.find(member, 1)?;
    let score = pack.get(pack.next(pos)?);
    Some((pos, score_of(score)))
}

/// The member's rank and score.
pub(super) fn rank(pack: &Listpack, member: &[u8]) -> Option<(usize, f64)> {
    let found = pack.pairs().enumerate().find(|(_, (elem, _))| elem.eq_bytes(member));
    found.map(|(rank, (_, score))| (rank, score_of(score)))
}

/// Position of the pair with that rank.
pub(super) fn seek(pack: &Listpack, rank: usize) -> Option<Pos> {
    pack.seek(i64::try_from(rank.checked_mul(2)?).ok()?)
}

/// Puts in a member that is not there.
pub(super) fn insert(pack: &mut Listpack, member: &[u8], score: f64) {
    let mut scratch = [0; DOUBLE_TEXT_MAX];
    // Adding zero turns -0 into 0.
    let text = num::format_double(score + 0.0, &mut scratch);
    match place(pack, member, score) {
        Some(pos) => {
            let pos = pack.insert_before(pos, member);
            pack.insert_after(pos, text);
        }
        None => {
            pack.append(member);
            pack.append(text);
        }
    }
}

/// Position of the first pair behind that score and member.
fn place(pack: &Listpack, member: &[u8], score: f64) -> Option<Pos> {
    let mut next = pack.first();
    while let Some(pos) = next {
        let score_pos = pack.next(pos)?;
        let other = score_of(pack.get(score_pos));
        if other > score || (other == score && compare(pack.get(pos), member) == Ordering::Greater) {
            return Some(pos);
        }
        next = pack.next(score_pos);
    }
    None
}

/// Order of a stored member's bytes against others.
pub(super) fn compare(elem: Elem<'_>, member: &[u8]) -> Ordering {
    elem.to_bytes(&mut [0; 24]).cmp(member)
}

/// Removes the pair at `pos`.
pub(super) fn delete(pack: &mut Listpack, pos: Pos) {
    pack.delete_at(pos, 2);
}

/// Number of pairs at the front for which `before` holds.
pub(super) fn count_where(pack: &Listpack, mut before: impl FnMut(Elem<'_>, f64) -> bool) -> usize {
    pack.pairs().take_while(|&(member, score)| before(member, score_of(score))).count()
}
