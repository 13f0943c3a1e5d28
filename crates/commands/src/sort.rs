//! SORT and SORT_RO: the elements of a list, set or sorted set in order, perhaps by other keys' values, perhaps with
//! other keys' values in their place.
//!
//! # Keys that no argument names
//! `BY weight_*` and `GET object_*->name` look at keys made of patterns and elements, so the executor cannot know them
//! from the arguments. [`names_other_keys`] tells whether a call has such patterns. If so, either
//! - the call runs with the whole keyspace held (as MULTI does), or
//! - the executor locks the named keys, asks [`extra_keys`] for the others, and runs the function with the union of
//!   their slots held. When it had to give locks back to get them all, it must ask again, as the source may have changed.
//!
//! Looking at a key whose slot is not held is a bug of the caller, and panics.

mod pattern;
#[cfg(test)]
mod tests;

use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, SYNTAX, WRONG_TYPE};
use crate::options::{int, is_word};
use crate::table::CommandId;
use keyspace::list::ListBuilder;
use keyspace::{DbView, NotifyClass, SetTtl, Value, ValueMut, ValueRef};
use pattern::Pattern;
use rdb::listpack::Elem;
use resp::Args;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Range;

const NOT_NUMBERS: CmdError = CmdError::new("ERR One or more scores can't be converted into double");

/// The function of a sorting command.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Sort => |ctx, args| sort(ctx, args, true),
        CommandId::SortRo => |ctx, args| sort(ctx, args, false),
        _ => return None,
    })
}

/// What a sorting command costs.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    match id {
        CommandId::Sort | CommandId::SortRo => Some(|ctx, args| {
            // Each GET looks a key up, which costs about two elements.
            let gets = args.slice(2).iter().filter(|word| is_word(word, "get")).count();
            source_len(ctx.db.get(args.at(1))).saturating_mul(1 + 2 * gets)
        }),
        _ => None,
    }
}

fn source_len(source: Option<ValueRef<'_>>) -> usize {
    match source {
        Some(ValueRef::List(list)) => list.len(),
        Some(ValueRef::Set(set)) => set.len(),
        Some(ValueRef::ZSet(zset)) => zset.len(),
        _ => 0,
    }
}

/// Whether a call looks at keys that its arguments do not name. Right for calls with wrong arguments too: those look at
/// nothing.
pub fn names_other_keys(args: Args<'_>) -> bool {
    Options::read(args, true).is_ok_and(|options| options.patterns().next().is_some())
}

/// The keys that a call may look at beyond those that its arguments name, some perhaps twice. The slot of the source
/// key must be held; nothing is changed or counted.
pub fn extra_keys(ctx: &Ctx<'_>, args: Args<'_>) -> Vec<Vec<u8>> {
    let Ok(options) = Options::read(args, true) else { return Vec::new() };
    let elements = Elements::of(ctx.db.get(args.at(1)), &Selection::default());
    let mut keys = Vec::new();
    for pattern in options.patterns() {
        keys.extend(elements.spans.iter().map(|span| pattern.key(elements.text(span))));
    }
    keys
}

struct Options<'a> {
    descending: bool,
    alpha: bool,
    start: i64,
    count: i64,
    /// BY: `None` without; a pattern without `*` means not to sort.
    by: Option<Pattern<'a>>,
    get: SmallVec<[Pattern<'a>; 4]>,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn read(args: Args<'a>, may_store: bool) -> Result<Options<'a>, CmdError> {
        let mut options = Options {
            descending: false,
            alpha: false,
            start: 0,
            count: -1,
            by: None,
            get: SmallVec::new(),
            store: None,
        };
        let mut index = 2;
        while let Some(word) = args.get(index) {
            let after = args.len() - index - 1;
            if is_word(word, "asc") {
                options.descending = false;
            } else if is_word(word, "desc") {
                options.descending = true;
            } else if is_word(word, "alpha") {
                options.alpha = true;
            } else if is_word(word, "limit") && after >= 2 {
                options.start = int(args.at(index + 1))?;
                options.count = int(args.at(index + 2))?;
                index += 2;
            } else if may_store && is_word(word, "store") && after >= 1 {
                options.store = Some(args.at(index + 1));
                index += 1;
            } else if is_word(word, "by") && after >= 1 {
                options.by = Some(Pattern::new(args.at(index + 1)));
                index += 1;
            } else if is_word(word, "get") && after >= 1 {
                options.get.push(Pattern::new(args.at(index + 1)));
                index += 1;
            } else {
                return Err(SYNTAX);
            }
            index += 1;
        }
        Ok(options)
    }

    /// Patterns that name keys.
    fn patterns(&self) -> impl Iterator<Item = &Pattern<'a>> {
        self.by.iter().chain(&self.get).filter(|pattern| pattern.has_star())
    }

    /// The places of the result that LIMIT keeps, of `len`.
    fn limit(&self, len: usize) -> Range<usize> {
        let start = usize::try_from(self.start).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(len).min(len - start);
        start..start + count
    }
}

/// Which elements of the source are wanted, where it has an order of its own that is kept.
#[derive(Default)]
struct Selection {
    /// Places in that order; `None`: all.
    places: Option<Range<usize>>,
    descending: bool,
}

/// Copies of a source's elements, one behind the other: other keys are looked up while they are sorted.
struct Elements {
    texts: Vec<u8>,
    spans: Vec<Range<usize>>,
}

impl Elements {
    fn of(source: Option<ValueRef<'_>>, selection: &Selection) -> Elements {
        let mut elements = Elements { texts: Vec::new(), spans: Vec::new() };
        let len = source_len(source);
        let places = selection.places.clone().unwrap_or(0..len);
        // Where a walk from the end begins.
        let last = len.saturating_sub(1).saturating_sub(places.start);
        match source {
            Some(ValueRef::List(list)) if places.is_empty() || list.is_empty() => {}
            Some(ValueRef::List(list)) if selection.descending => {
                list.range_back(last, places.len()).for_each(|element| elements.push(element));
            }
            Some(ValueRef::List(list)) => {
                list.range(places.start, places.len()).for_each(|element| elements.push(element));
            }
            Some(ValueRef::Set(set)) => set.iter().for_each(|member| elements.push(member)),
            Some(ValueRef::ZSet(zset)) if selection.descending => {
                zset.range_back(len - places.end..len - places.start).for_each(|(member, _)| elements.push(member));
            }
            Some(ValueRef::ZSet(zset)) => zset.range(places).for_each(|(member, _)| elements.push(member)),
            _ => {}
        }
        elements
    }

    fn push(&mut self, element: Elem<'_>) {
        let start = self.texts.len();
        element.write_to(&mut self.texts);
        self.spans.push(start..self.texts.len());
    }

    fn text(&self, span: &Range<usize>) -> &[u8] {
        self.texts.get(span.clone()).unwrap_or(&[])
    }
}

/// What an element is sorted by.
#[derive(Clone)]
enum Weight {
    /// The element itself as a text.
    Itself,
    /// A number.
    Number(f64),
    /// A text of another key; `None`: there is none, which sorts before any.
    Text(Option<Vec<u8>>),
}

fn sort(ctx: &mut Ctx<'_>, args: Args<'_>, may_store: bool) -> CmdResult {
    let source = args.at(1);
    let mut options = Options::read(args, may_store)?;
    let value = ctx.db.read(source);
    let is_set = matches!(value, Some(ValueRef::Set(_)));
    if matches!(value, Some(ValueRef::Str(_) | ValueRef::Hash(_) | ValueRef::Stream(_))) {
        return Err(WRONG_TYPE);
    }
    if matches!(value, Some(ValueRef::ZSet(zset)) if zset.as_listpack().is_some())
        && let Some(ValueMut::ZSet(zset)) = ctx.db.entry_mut(source).map(|entry| entry.value_mut())
    {
        // Redis: sorting leaves a sorted set a skip list.
        zset.make_big();
    }
    let value = ctx.db.get(source);
    let mut keeps_order = options.by.as_ref().is_some_and(|pattern| !pattern.has_star());
    if keeps_order && is_set && options.store.is_some() {
        // A set has no order worth storing.
        keeps_order = false;
        options.alpha = true;
        options.by = None;
    }
    let len = source_len(value);
    let mut places = options.limit(len);
    let has_order = keeps_order && !is_set;
    let selection = if has_order {
        Selection { places: Some(std::mem::replace(&mut places, 0..usize::MAX)), descending: options.descending }
    } else {
        Selection::default()
    };
    let elements = Elements::of(value, &selection);
    let spans = if keeps_order { elements.spans.clone() } else { sorted(&mut ctx.db, &elements, &options)? };
    let kept = spans.get(places.start..places.end.min(spans.len())).unwrap_or(&[]);
    match options.store {
        Some(target) => store(ctx, target, &elements, kept, &options.get),
        None => {
            reply(ctx, &elements, kept, &options.get);
            Ok(())
        }
    }
}

/// The elements in order.
///
/// # Errors
/// A weight is no number.
fn sorted(db: &mut DbView<'_>, elements: &Elements, options: &Options<'_>) -> Result<Vec<Range<usize>>, CmdError> {
    let mut rows: Vec<(Weight, &Range<usize>)> = Vec::with_capacity(elements.spans.len());
    // Redis looks at all weights before it complains of one.
    let mut all_numbers = true;
    for span in &elements.spans {
        let text = elements.text(span);
        let weight = match &options.by {
            None if options.alpha => Weight::Itself,
            None => Weight::Number(number(text, &mut all_numbers)),
            Some(pattern) => {
                let found = pattern.look_up(db, text);
                if options.alpha {
                    Weight::Text(found.to_vec())
                } else {
                    Weight::Number(found.with_bytes(|bytes| bytes.map_or(0.0, |bytes| number(bytes, &mut all_numbers))))
                }
            }
        };
        rows.push((weight, span));
    }
    if !all_numbers {
        return Err(NOT_NUMBERS);
    }
    rows.sort_by(|(weight, span), (other_weight, other_span)| {
        let by_text = || elements.text(span).cmp(elements.text(other_span));
        let order = match (weight, other_weight) {
            (Weight::Number(number), Weight::Number(other)) => {
                number.partial_cmp(other).unwrap_or(Ordering::Equal).then_with(by_text)
            }
            (Weight::Text(text), Weight::Text(other)) => text.cmp(other),
            _ => by_text(),
        };
        if options.descending { order.reverse() } else { order }
    });
    Ok(rows.into_iter().map(|(_, span)| span.clone()).collect())
}

/// A weight as C's `strtod` reads it: white space in front, nothing behind, an empty text is 0; the text ends at its
/// first zero byte.
fn number(text: &[u8], is_number: &mut bool) -> f64 {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(&[]);
    if text.is_empty() {
        return 0.0;
    }
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r')).unwrap_or(text.len());
    let parsed = text.get(start..).and_then(resp::num::parse_f64);
    *is_number &= parsed.is_some();
    parsed.unwrap_or(0.0)
}

fn reply(ctx: &mut Ctx<'_>, elements: &Elements, kept: &[Range<usize>], get: &[Pattern<'_>]) {
    ctx.out.array(kept.len().saturating_mul(get.len().max(1)));
    for span in kept {
        let text = elements.text(span);
        if get.is_empty() {
            ctx.out.bulk(text);
        }
        for pattern in get {
            pattern.look_up(&mut ctx.db, text).with_bytes(|bytes| match bytes {
                Some(bytes) => ctx.out.bulk(bytes),
                None => ctx.out.null(),
            });
        }
    }
}

fn store(
    ctx: &mut Ctx<'_>,
    target: &[u8],
    elements: &Elements,
    kept: &[Range<usize>],
    get: &[Pattern<'_>],
) -> CmdResult {
    let mut builder = ListBuilder::new(ctx.settings.list);
    for span in kept {
        let text = elements.text(span);
        if get.is_empty() {
            builder.push_back(text);
        }
        for pattern in get {
            pattern.look_up(&mut ctx.db, text).with_bytes(|bytes| builder.push_back(bytes.unwrap_or(&[])));
        }
    }
    let count = kept.len().saturating_mul(get.len().max(1));
    if count > 0 {
        ctx.db.set(target, Value::List(builder.finish()), SetTtl::Clear);
        ctx.db.changed(NotifyClass::LIST, "sortstore", target);
        // Redis counts each element stored.
        ctx.db.events.dirty += count as u64 - 1;
    } else if ctx.db.remove(target) {
        ctx.db.changed(NotifyClass::GENERIC, "del", target);
    }
    ctx.out.count(count);
    Ok(())
}
