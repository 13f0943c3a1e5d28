//! Random picks from a listpack. Randomness comes in as a function: `below(n)` gives a number in `0..n`.

use super::{Elem, Listpack};

impl Listpack {
    /// The pair with number `index` (entries 2·index and 2·index + 1).
    pub fn pair(&self, index: usize) -> Option<(Elem<'_>, Elem<'_>)> {
        let first = self.seek(i64::try_from(index.checked_mul(2)?).ok()?)?;
        Some((self.get(first), self.get(self.next(first)?)))
    }

    /// `count` groups of `width` entries (1 for sets, 2 for pairs) drawn with replacement, in the order drawn;
    /// `visit` gets the first entry and the last of each group (the same one for width 1). One walk, O(n + count log count).
    pub fn random_with_repeats<'a>(
        &'a self,
        width: usize,
        count: usize,
        below: &mut dyn FnMut(usize) -> usize,
        visit: &mut dyn FnMut(Elem<'a>, Elem<'a>),
    ) {
        let groups = self.len().checked_div(width).unwrap_or(0);
        if groups == 0 {
            return;
        }
        let mut draws: Vec<(usize, usize)> = (0..count).map(|order| (below(groups), order)).collect();
        draws.sort_unstable();
        let mut drawn = vec![None; draws.len()];
        let mut wanted = draws.iter().peekable();
        let mut entries = self.iter();
        for group in 0..groups {
            let Some((first, last)) = next_group(&mut entries, width) else { break };
            while let Some((_, order)) = wanted.next_if(|(draw, _)| *draw == group) {
                if let Some(place) = drawn.get_mut(*order) {
                    *place = Some((first, last));
                }
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        for (first, last) in drawn.into_iter().flatten() {
            visit(first, last);
        }
    }

    /// Up to `count` different groups of `width` entries, each set of them equally likely, in stored order. Gives how
    /// many were visited. One walk.
    pub fn random_distinct<'a>(
        &'a self,
        width: usize,
        count: usize,
        below: &mut dyn FnMut(usize) -> usize,
        visit: &mut dyn FnMut(Elem<'a>, Elem<'a>),
    ) -> usize {
        let groups = self.len().checked_div(width).unwrap_or(0);
        let mut remaining = count.min(groups);
        let mut picked = 0;
        let mut entries = self.iter();
        for group in 0..groups {
            if remaining == 0 {
                break;
            }
            let Some((first, last)) = next_group(&mut entries, width) else { break };
            // Selection sampling: each group is taken with probability wanted / left.
            if below(groups - group) < remaining {
                visit(first, last);
                remaining -= 1;
                picked += 1;
            }
        }
        picked
    }
}

fn next_group<'a>(entries: &mut super::Iter<'a>, width: usize) -> Option<(Elem<'a>, Elem<'a>)> {
    let first = entries.next()?;
    let mut last = first;
    for _ in 1..width {
        last = entries.next()?;
    }
    Some((first, last))
}
