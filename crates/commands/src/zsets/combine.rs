//! Unions, intersections and differences of sets and sorted sets.
//!
//! Results are gathered unsorted, with members borrowed from their sources, and sorted once at the end.

use super::{len_of, members_header, store, write_member};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX, WRONG_TYPE};
use crate::options::{self, is_word};
use hashbrown::HashTable;
use keyspace::hashing::hash_key;
use keyspace::zset::{ZSetBuilder, ZSetLimits};
use keyspace::{DbView, Set, ValueRef, ZSet};
use rdb::listpack::Elem;
use resp::Args;
use std::borrow::Cow;
use std::cmp::Ordering;

/// ZUNION numkeys key [key …] [WEIGHTS …] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub(super) fn zunion(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, "zunion", Operation::Union)
}

/// ZINTER numkeys key [key …] [WEIGHTS …] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub(super) fn zinter(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, "zinter", Operation::Intersection)
}

/// ZDIFF numkeys key [key …] [WITHSCORES]
pub(super) fn zdiff(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, "zdiff", Operation::Difference)
}

/// ZUNIONSTORE destination numkeys key [key …] [WEIGHTS …] [AGGREGATE SUM|MIN|MAX]
pub(super) fn zunionstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    store_result(ctx, args, "zunionstore", Operation::Union)
}

/// ZINTERSTORE destination numkeys key [key …] [WEIGHTS …] [AGGREGATE SUM|MIN|MAX]
pub(super) fn zinterstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    store_result(ctx, args, "zinterstore", Operation::Intersection)
}

/// ZDIFFSTORE destination numkeys key [key …]
pub(super) fn zdiffstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    store_result(ctx, args, "zdiffstore", Operation::Difference)
}

/// ZINTERCARD numkeys key [key …] [LIMIT limit]
pub(super) fn zintercard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::parse(ctx, args, 1, "zintercard", Operation::Cardinality)?;
    let sources = request.sources(&ctx.db);
    let mut count = 0;
    intersect(&sources, Aggregate::Sum, |_, _| {
        count += 1;
        count < request.limit
    });
    ctx.out.count(count);
    Ok(())
}

/// Members of all sources together; `numkeys_at` is the index of their number. 0 when there are fewer arguments than
/// keys: then none of them is locked, and the command fails.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>, numkeys_at: usize) -> usize {
    let keys = args.slice(numkeys_at + 1);
    let numkeys = args.get(numkeys_at).and_then(resp::num::parse_i64).and_then(|count| usize::try_from(count).ok());
    match numkeys.filter(|count| *count <= keys.len()) {
        Some(count) => keys.iter().take(count).map(|key| len_of(ctx, key)).sum(),
        None => 0,
    }
}

fn answer(ctx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, operation: Operation) -> CmdResult {
    let request = Request::parse(ctx, args, 1, name, operation)?;
    let sources = request.sources(&ctx.db);
    let members = request.run(&sources);
    members_header(ctx.out, members.len(), request.with_scores);
    for (member, score) in &members {
        write_member(ctx.out, Elem::Bytes(member), *score, request.with_scores);
    }
    Ok(())
}

fn store_result(ctx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, operation: Operation) -> CmdResult {
    let request = Request::parse(ctx, args, 2, name, operation)?;
    let sources = request.sources(&ctx.db);
    let result = build(&request.run(&sources), &ctx.settings.zset);
    store(ctx, args.at(1), result, name);
    Ok(())
}

fn build(members: &[(Cow<'_, [u8]>, f64)], limits: &ZSetLimits) -> ZSet {
    let mut builder = ZSetBuilder::new();
    for (member, score) in members {
        builder.push(member, *score);
    }
    builder.finish(limits)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    /// How large the intersection is.
    Cardinality,
    Difference,
}

/// How the scores of one member become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Redis: infinities of both signs add up to 0.
    fn join(self, score: &mut f64, other: f64) {
        match self {
            Aggregate::Sum => *score = number_or_zero(*score + other),
            Aggregate::Min if other < *score => *score = other,
            Aggregate::Max if other > *score => *score = other,
            Aggregate::Min | Aggregate::Max => {}
        }
    }
}

/// Redis: a weight of 0 makes an infinite score 0.
fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The arguments of one of these commands.
struct Request<'a> {
    operation: Operation,
    /// The sources' keys come first, then the options.
    keys: Args<'a>,
    /// One for each source.
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Of ZINTERCARD.
    limit: usize,
}

impl<'a> Request<'a> {
    /// Reads the number of keys at `numkeys_at` and what follows. The sources are looked up (and their types checked)
    /// before the options are read, as Redis does.
    fn parse(
        ctx: &mut Ctx<'_>,
        args: Args<'a>,
        numkeys_at: usize,
        name: &str,
        operation: Operation,
    ) -> Result<Request<'a>, CmdError> {
        let numkeys = options::int(args.at(numkeys_at))?;
        if numkeys < 1 {
            return Err(CmdError::text(format!("ERR at least 1 input key is needed for '{name}' command")));
        }
        let keys = args.slice(numkeys_at + 1);
        let numkeys = usize::try_from(numkeys).ok().filter(|count| *count <= keys.len()).ok_or(SYNTAX)?;
        for key in keys.iter().take(numkeys) {
            match ctx.db.read(key) {
                None | Some(ValueRef::Set(_) | ValueRef::ZSet(_)) => {}
                Some(_) => return Err(WRONG_TYPE),
            }
        }
        let mut request = Request {
            operation,
            keys,
            weights: vec![1.0; numkeys],
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: usize::MAX,
        };
        request.parse_options(keys.slice(numkeys), numkeys_at == 2)?;
        Ok(request)
    }

    fn parse_options(&mut self, options: Args<'_>, storing: bool) -> CmdResult {
        let scores_matter = matches!(self.operation, Operation::Union | Operation::Intersection);
        let counts = self.operation == Operation::Cardinality;
        let mut at = 0;
        while let Some(option) = options.get(at) {
            let left = options.len() - at;
            if scores_matter && left > self.weights.len() && is_word(option, "weights") {
                for (weight, text) in self.weights.iter_mut().zip(options.slice(at + 1)) {
                    *weight = options::float(text).map_err(|_| CmdError::new("ERR weight value is not a float"))?;
                }
                at += 1 + self.weights.len();
            } else if scores_matter && left >= 2 && is_word(option, "aggregate") {
                let how = options.at(at + 1);
                self.aggregate = match how {
                    _ if is_word(how, "sum") => Aggregate::Sum,
                    _ if is_word(how, "min") => Aggregate::Min,
                    _ if is_word(how, "max") => Aggregate::Max,
                    _ => return Err(SYNTAX),
                };
                at += 2;
            } else if !storing && !counts && is_word(option, "withscores") {
                self.with_scores = true;
                at += 1;
            } else if counts && left >= 2 && is_word(option, "limit") {
                let limit = options::non_negative(options.at(at + 1))
                    .map_err(|_| CmdError::new("ERR LIMIT can't be negative"))?;
                self.limit = if limit == 0 { usize::MAX } else { limit };
                at += 2;
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(())
    }

    /// The sources, for unions and intersections from the smallest on: the order in which Redis adds scores up.
    fn sources<'d>(&self, db: &'d DbView<'_>) -> Vec<Source<'d>> {
        let mut sources: Vec<Source<'d>> = self
            .keys
            .iter()
            .zip(&self.weights)
            .map(|(key, weight)| {
                let members = match db.get(key) {
                    Some(ValueRef::Set(set)) => Members::Set(set),
                    Some(ValueRef::ZSet(zset)) => Members::ZSet(zset),
                    _ => Members::None,
                };
                Source { members, weight: *weight }
            })
            .collect();
        if self.operation != Operation::Difference {
            sources.sort_by_key(Source::len);
        }
        sources
    }

    /// The resulting members, sorted.
    fn run<'d>(&self, sources: &[Source<'d>]) -> Vec<(Cow<'d, [u8]>, f64)> {
        let mut members = match self.operation {
            Operation::Union => unite(sources, self.aggregate),
            Operation::Intersection | Operation::Cardinality => {
                let mut members = Vec::new();
                intersect(sources, self.aggregate, |member, score| {
                    members.push((text_of(member), score));
                    true
                });
                members
            }
            Operation::Difference => subtract(sources),
        };
        members.sort_by(|(member, score), (other, other_score)| {
            score.partial_cmp(other_score).unwrap_or(Ordering::Equal).then_with(|| member.cmp(other))
        });
        members
    }
}

/// One input.
struct Source<'d> {
    members: Members<'d>,
    weight: f64,
}

enum Members<'d> {
    None,
    /// Each has the score 1.
    Set(&'d Set),
    ZSet(&'d ZSet),
}

impl<'d> Source<'d> {
    fn len(&self) -> usize {
        match self.members {
            Members::None => 0,
            Members::Set(set) => set.len(),
            Members::ZSet(zset) => zset.len(),
        }
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        match self.members {
            Members::None => None,
            Members::Set(set) => set.contains(member).then_some(1.0),
            Members::ZSet(zset) => zset.score(member),
        }
    }

    /// Visits the members with their scores until `visit` answers false.
    fn visit(&self, mut visit: impl FnMut(Elem<'d>, f64) -> bool) {
        match self.members {
            Members::None => {}
            Members::Set(set) => {
                set.iter().all(|member| visit(member, 1.0));
            }
            Members::ZSet(zset) => {
                zset.iter().all(|(member, score)| visit(member, score));
            }
        }
    }
}

/// A member's bytes, borrowed where they are stored as such.
fn text_of(member: Elem<'_>) -> Cow<'_, [u8]> {
    match member {
        Elem::Bytes(bytes) => Cow::Borrowed(bytes),
        Elem::Int(_) => Cow::Owned(member.to_vec()),
    }
}

fn unite<'d>(sources: &[Source<'d>], aggregate: Aggregate) -> Vec<(Cow<'d, [u8]>, f64)> {
    // The largest source is the least there can be.
    let expected = sources.last().map_or(0, Source::len);
    let mut members: Vec<(Cow<'d, [u8]>, f64)> = Vec::with_capacity(expected);
    let mut index: HashTable<usize> = HashTable::with_capacity(expected);
    for source in sources {
        source.visit(|member, score| {
            let score = number_or_zero(source.weight * score);
            let text = text_of(member);
            let hash = hash_key(&text);
            let known = index.find(hash, |at| members.get(*at).is_some_and(|(other, _)| *other == text)).copied();
            match known.and_then(|at| members.get_mut(at)) {
                Some((_, total)) => aggregate.join(total, score),
                None => {
                    index.insert_unique(hash, members.len(), |at| {
                        members.get(*at).map_or(0, |(other, _)| hash_key(other))
                    });
                    members.push((text, score));
                }
            }
            true
        });
    }
    members
}

/// Visits the members that all sources have, until `visit` answers false.
fn intersect<'d>(sources: &[Source<'d>], aggregate: Aggregate, mut visit: impl FnMut(Elem<'d>, f64) -> bool) {
    let Some((first, others)) = sources.split_first() else { return };
    let mut scratch = [0; 24];
    first.visit(|member, score| {
        let mut total = number_or_zero(first.weight * score);
        let text = member.to_bytes(&mut scratch);
        for other in others {
            match other.score(text) {
                Some(score) => aggregate.join(&mut total, other.weight * score),
                None => return true,
            }
        }
        visit(member, total)
    });
}

fn subtract<'d>(sources: &[Source<'d>]) -> Vec<(Cow<'d, [u8]>, f64)> {
    let Some((first, others)) = sources.split_first() else { return Vec::new() };
    let mut members = Vec::new();
    let mut scratch = [0; 24];
    first.visit(|member, score| {
        let text = member.to_bytes(&mut scratch);
        if others.iter().all(|other| other.score(text).is_none()) {
            members.push((text_of(member), score));
        }
        true
    });
    members
}
