//! Random members, and their removal: SRANDMEMBER and SPOP.

use fastrand::Rng;
use rdb::listpack::Elem;

use super::{Limits, Set};
use crate::tagged::Choice;

impl Set {
    /// A member, each with the same chance.
    #[must_use]
    pub fn random(&self, rng: &mut Rng) -> Option<Elem<'_>> {
        match self.body.get() {
            Choice::Thin(listpack) if listpack.is_empty() => None,
            Choice::Thin(listpack) => listpack.get_index(i64::try_from(rng.usize(..listpack.len())).ok()?),
            Choice::Boxed(table) => table.random(rng).map(|member| Elem::Bytes(member.text())),
            Choice::Third(intset) if intset.is_empty() => None,
            Choice::Third(intset) => intset.get(rng.usize(..intset.len())).map(Elem::Int),
        }
    }

    /// Calls `visit` with `count` members, each drawn from all.
    pub fn random_with_repeats<'s>(&'s self, rng: &mut Rng, count: usize, mut visit: impl FnMut(Elem<'s>)) {
        if let Some(listpack) = self.as_listpack() {
            let below = &mut |below| rng.usize(..below);
            return listpack.random_with_repeats(1, count, below, &mut |member, _| visit(member));
        }
        (0..count).map_while(|_| self.random(rng)).for_each(visit);
    }

    /// Calls `visit` with `count` different members, or all if there are fewer; every choice of them
    /// has the same chance. Answers how many.
    pub fn random_distinct<'s>(&'s self, rng: &mut Rng, count: usize, mut visit: impl FnMut(Elem<'s>)) -> usize {
        match self.body.get() {
            Choice::Thin(listpack) => {
                let below = &mut |below| rng.usize(..below);
                listpack.random_distinct(1, count, below, &mut |member, _| visit(member))
            }
            Choice::Boxed(table) => table.random_distinct(rng, count, |member| visit(Elem::Bytes(member.text()))),
            Choice::Third(intset) => {
                // Each in turn is taken with the chance that the wanted have among those left.
                let wanted = count.min(intset.len());
                let mut missing = wanted;
                for index in 0..intset.len() {
                    if missing == 0 {
                        break;
                    }
                    if rng.usize(..intset.len() - index) < missing
                        && let Some(value) = intset.get(index)
                    {
                        missing -= 1;
                        visit(Elem::Int(value));
                    }
                }
                wanted
            }
        }
    }

    /// Takes out a random member; `taken` sees it.
    pub fn pop<R>(&mut self, rng: &mut Rng, taken: impl FnOnce(Elem<'_>) -> R) -> Option<R> {
        match self.body.get_mut() {
            Choice::Thin(listpack) => {
                if listpack.is_empty() {
                    return None;
                }
                let at = listpack.seek(i64::try_from(rng.usize(..listpack.len())).ok()?)?;
                let answer = taken(listpack.get(at));
                listpack.delete(at);
                Some(answer)
            }
            Choice::Boxed(table) => {
                let member = table.pop_random(rng)?;
                Some(taken(Elem::Bytes(member.text())))
            }
            Choice::Third(intset) => intset.update(|intset| {
                if intset.is_empty() {
                    return None;
                }
                let value = intset.get(rng.usize(..intset.len()))?;
                intset.remove(value);
                Some(taken(Elem::Int(value)))
            }),
        }
    }

    /// Takes out `count` random members, or all; `taken` sees each.
    ///
    /// Redis: if few are to stay (`count` is at least five times as many), those who stay are drawn
    /// and move to a new set, so a table may come out as a listpack.
    pub fn pop_many(&mut self, rng: &mut Rng, count: usize, limits: &Limits, mut taken: impl FnMut(Elem<'_>)) {
        let staying = self.len().saturating_sub(count);
        if staying.saturating_mul(MOVE_RATIO) > count {
            if let Choice::Thin(listpack) = self.body.get_mut() {
                let mut left = listpack.len();
                let mut wanted = count;
                let mut next = listpack.first();
                while let Some(at) = next
                    && wanted > 0
                {
                    if rng.usize(..left) < wanted {
                        taken(listpack.get(at));
                        next = listpack.delete(at);
                        wanted -= 1;
                    } else {
                        next = listpack.next(at);
                    }
                    left -= 1;
                }
                return;
            }
            for _ in 0..count {
                self.pop(rng, &mut taken);
            }
            return;
        }
        let mut rest = if self.as_intset().is_some() { Self::intset() } else { Self::listpack() };
        self.random_distinct(rng, staying, |member| {
            rest.add_elem(member, limits);
        });
        for member in self.iter().filter(|member| !rest.contains_elem(*member)) {
            taken(member);
        }
        *self = rest;
    }
}

/// Redis: SPOP moves the rest when this many times its size is not more than what is popped.
const MOVE_RATIO: usize = 5;
