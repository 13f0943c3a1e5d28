//! `string.find`, `match`, `gmatch`, `gsub` and `rep`, with limits: Lua's own have none on nesting (a pattern of a
//! million `a?` ends the process) and cannot be stopped while they try.
//!
//! The matcher is a recursive one over pattern items, as the reference manual describes them. Its depth is bounded by
//! [`DEPTH_MAX`], its steps ask the host now and then.

use crate::native::{Call, NO_MEMORY, Native, State, number_of};
use mlua::{LuaString, MultiValue, Value};
use std::cell::RefCell;

pub(crate) const FUNCTIONS: &[(&str, Native)] =
    &[("find", |call| search(call, true)), ("match", |call| search(call, false)), ("gsub", gsub), ("rep", repeat)];

/// Captures of one pattern.
const CAPTURES_MAX: usize = 32;
/// Nested pattern items.
const DEPTH_MAX: usize = 4_000;

#[derive(Clone, Copy)]
enum Len {
    Open,
    Position,
    Closed(usize),
}

/// Why there is no match.
enum Stop {
    Text(&'static str),
    Raised(mlua::Error),
}

type Found = Result<Option<usize>, Stop>;

struct Matcher<'a> {
    state: &'a State,
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: [(usize, Len); CAPTURES_MAX],
    level: usize,
    depth: usize,
}

impl<'a> Matcher<'a> {
    fn new(state: &'a State, subject: &'a [u8], pattern: &'a [u8]) -> Matcher<'a> {
        Matcher { state, subject, pattern, captures: [(0, Len::Open); CAPTURES_MAX], level: 0, depth: 0 }
    }

    fn start(&mut self, at: usize, item: usize) -> Found {
        self.level = 0;
        self.depth = 0;
        self.matches(at, item)
    }

    /// Matches the pattern from `item` on at `at`; the end of the match.
    fn matches(&mut self, at: usize, item: usize) -> Found {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Stop::Text("pattern too complex"));
        }
        let found = self.items(at, item);
        self.depth -= 1;
        found
    }

    fn items(&mut self, mut at: usize, mut item: usize) -> Found {
        loop {
            self.state.step().map_err(Stop::Raised)?;
            let Some(first) = self.pattern.get(item).copied() else { return Ok(Some(at)) };
            match (first, self.pattern.get(item + 1).copied()) {
                (b'(', Some(b')')) => return self.open_capture(at, item + 2, Len::Position),
                (b'(', _) => return self.open_capture(at, item + 1, Len::Open),
                (b')', _) => return self.close_capture(at, item + 1),
                (b'$', None) => return Ok((at == self.subject.len()).then_some(at)),
                (b'%', Some(b'b')) => match self.balanced(at, item + 2)? {
                    Some(end) => {
                        at = end;
                        item += 4;
                        continue;
                    }
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => {
                    item += 2;
                    if self.pattern.get(item) != Some(&b'[') {
                        return Err(Stop::Text("missing '[' after '%f' in pattern"));
                    }
                    let end = self.class_end(item)?;
                    let before = if at == 0 { 0 } else { self.subject[at - 1] };
                    let here = self.subject.get(at).copied().unwrap_or(0);
                    if self.in_set(before, item, end - 1) || !self.in_set(here, item, end - 1) {
                        return Ok(None);
                    }
                    item = end;
                    continue;
                }
                (b'%', Some(digit @ b'0'..=b'9')) => match self.back_reference(at, digit)? {
                    Some(end) => {
                        at = end;
                        item += 2;
                        continue;
                    }
                    None => return Ok(None),
                },
                _ => {}
            }
            let end = self.class_end(item)?;
            let fits = at < self.subject.len() && self.single(self.subject[at], item, end);
            match self.pattern.get(end) {
                Some(b'?') => {
                    if fits && let Some(found) = self.matches(at + 1, end + 1)? {
                        return Ok(Some(found));
                    }
                    item = end + 1;
                }
                Some(b'*') => return self.longest(at, item, end),
                Some(b'+') => return if fits { self.longest(at + 1, item, end) } else { Ok(None) },
                Some(b'-') => return self.shortest(at, item, end),
                _ if fits => {
                    at += 1;
                    item = end;
                }
                _ => return Ok(None),
            }
        }
    }

    fn longest(&mut self, at: usize, item: usize, end: usize) -> Found {
        let mut count = 0;
        while at + count < self.subject.len() && self.single(self.subject[at + count], item, end) {
            count += 1;
            self.state.step().map_err(Stop::Raised)?;
        }
        loop {
            if let Some(found) = self.matches(at + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn shortest(&mut self, mut at: usize, item: usize, end: usize) -> Found {
        loop {
            if let Some(found) = self.matches(at, end + 1)? {
                return Ok(Some(found));
            }
            if at < self.subject.len() && self.single(self.subject[at], item, end) {
                at += 1;
            } else {
                return Ok(None);
            }
        }
    }

    fn open_capture(&mut self, at: usize, item: usize, len: Len) -> Found {
        let level = self.level;
        let Some(capture) = self.captures.get_mut(level) else { return Err(Stop::Text("too many captures")) };
        *capture = (at, len);
        self.level = level + 1;
        let found = self.matches(at, item)?;
        if found.is_none() {
            self.level = level;
        }
        Ok(found)
    }

    fn close_capture(&mut self, at: usize, item: usize) -> Found {
        let open = (0..self.level).rev().find(|level| matches!(self.captures[*level].1, Len::Open));
        let Some(level) = open else { return Err(Stop::Text("invalid pattern capture")) };
        self.captures[level].1 = Len::Closed(at - self.captures[level].0);
        let found = self.matches(at, item)?;
        if found.is_none() {
            self.captures[level].1 = Len::Open;
        }
        Ok(found)
    }

    fn balanced(&self, at: usize, item: usize) -> Found {
        let (Some(open), Some(close)) = (self.pattern.get(item), self.pattern.get(item + 1)) else {
            return Err(Stop::Text("unbalanced pattern"));
        };
        if self.subject.get(at) != Some(open) {
            return Ok(None);
        }
        let mut depth = 1;
        for (offset, byte) in self.subject[at + 1..].iter().enumerate() {
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + offset + 2));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    fn back_reference(&self, at: usize, digit: u8) -> Found {
        let level = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let captured = self.captures.get(level).filter(|_| level < self.level);
        let Some((start, Len::Closed(len))) = captured else { return Err(Stop::Text("invalid capture index")) };
        let text = &self.subject[*start..start + len];
        Ok(self.subject[at..].starts_with(text).then_some(at + len))
    }

    /// Where the single-character class at `item` ends.
    fn class_end(&self, item: usize) -> Result<usize, Stop> {
        let mut at = item + 1;
        match self.pattern.get(item) {
            Some(b'%') => {
                if at >= self.pattern.len() {
                    return Err(Stop::Text("malformed pattern (ends with '%')"));
                }
                Ok(at + 1)
            }
            Some(b'[') => {
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                loop {
                    let Some(byte) = self.pattern.get(at) else {
                        return Err(Stop::Text("malformed pattern (missing ']')"));
                    };
                    at += 1;
                    if *byte == b'%' && at < self.pattern.len() {
                        at += 1;
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(at),
        }
    }

    fn single(&self, byte: u8, item: usize, end: usize) -> bool {
        match self.pattern[item] {
            b'.' => true,
            b'%' => is_class(byte, self.pattern[item + 1]),
            b'[' => self.in_set(byte, item, end - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set whose `[` is at `item` and whose `]` is at `close`.
    fn in_set(&self, byte: u8, item: usize, close: usize) -> bool {
        let mut at = item + 1;
        let negated = self.pattern.get(at) == Some(&b'^');
        at += usize::from(negated);
        while at < close {
            let first = self.pattern[at];
            if first == b'%' {
                at += 1;
                if is_class(byte, self.pattern[at]) {
                    return !negated;
                }
                at += 1;
            } else if self.pattern[at + 1] == b'-' && at + 2 < close {
                if (first..=self.pattern[at + 2]).contains(&byte) {
                    return !negated;
                }
                at += 3;
            } else {
                if first == byte {
                    return !negated;
                }
                at += 1;
            }
        }
        negated
    }

    /// A capture as a value; the whole match where the pattern has none.
    fn capture(&self, call: &Call<'_>, index: usize, start: usize, end: usize) -> mlua::Result<Value> {
        if index >= self.level {
            if index != 0 {
                return Err(call.error("invalid capture index"));
            }
            return Ok(Value::String(call.lua.create_string(&self.subject[start..end])?));
        }
        match self.captures[index] {
            (at, Len::Closed(len)) => Ok(Value::String(call.lua.create_string(&self.subject[at..at + len])?)),
            (at, Len::Position) => Ok(Value::Integer(i64::try_from(at + 1).unwrap_or(i64::MAX))),
            (_, Len::Open) => Err(call.error("unfinished capture")),
        }
    }

    fn captures(&self, call: &Call<'_>, start: usize, end: usize, whole: bool) -> mlua::Result<Vec<Value>> {
        let count = if self.level == 0 && whole { 1 } else { self.level };
        (0..count).map(|index| self.capture(call, index, start, end)).collect()
    }
}

fn is_class(byte: u8, class: u8) -> bool {
    let fits = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 11,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    fits != class.is_ascii_uppercase()
}

fn raise(call: &Call<'_>, stop: Stop) -> mlua::Error {
    match stop {
        Stop::Text(text) => call.error(text),
        Stop::Raised(error) => error,
    }
}

/// A position counted from 1, or from the end if negative, as an offset.
fn offset_of(position: i64, len: usize) -> usize {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let position = if position < 0 { (position + len + 1).max(0) } else { position };
    usize::try_from((position - 1).clamp(0, len)).unwrap_or(0)
}

fn search(call: &Call<'_>, find: bool) -> mlua::Result<MultiValue> {
    let (subject, pattern) = (call.string(0)?, call.string(1)?);
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let init = offset_of(call.integer_or(2, 1)?, subject.len());
    let index = |at: usize| Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
    let is_plain = find && (truthy(call.arg(3)) || !pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte)));
    if is_plain {
        return Ok(match find_bytes(call.state, &subject[init..], &pattern)? {
            Some(at) => MultiValue::from_vec(vec![index(init + at + 1), index(init + at + pattern.len())]),
            None => MultiValue::from_vec(vec![Value::Nil]),
        });
    }
    let anchored = pattern.first() == Some(&b'^');
    let item = usize::from(anchored);
    let mut matcher = Matcher::new(call.state, &subject, &pattern);
    let mut at = init;
    loop {
        if let Some(end) = matcher.start(at, item).map_err(|stop| raise(call, stop))? {
            let mut values = matcher.captures(call, at, end, !find)?;
            if find {
                values.splice(0..0, [index(at + 1), index(end)]);
            }
            return Ok(MultiValue::from_vec(values));
        }
        at += 1;
        if at > subject.len() || anchored {
            return call.one(Value::Nil);
        }
    }
}

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Nil | Value::Boolean(false))
}

fn find_bytes(state: &State, subject: &[u8], wanted: &[u8]) -> mlua::Result<Option<usize>> {
    let Some((first, rest)) = wanted.split_first() else { return Ok(Some(0)) };
    let mut at = 0;
    while let Some(tail) = subject.get(at..) {
        let Some(offset) = tail.iter().position(|byte| byte == first) else { return Ok(None) };
        at += offset + 1;
        if subject[at..].starts_with(rest) {
            return Ok(Some(at - 1));
        }
        state.step()?;
    }
    Ok(None)
}

/// `string.gmatch`: returns the iterator.
pub(crate) fn gmatch(call: &Call<'_>, state: &std::rc::Rc<State>) -> mlua::Result<mlua::Function> {
    let (subject, pattern) = (call.string(0)?, call.string(1)?);
    let next = RefCell::new(0_usize);
    let state = state.clone();
    call.lua.create_function(move |lua, _: MultiValue| {
        let _uncapped = crate::native::Uncapped::begin(lua, &state);
        let call = Call { lua, state: &state, args: MultiValue::new(), frames: std::cell::Cell::new(0) };
        let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
        let mut matcher = Matcher::new(&state, &subject, &pattern);
        let mut next = next.borrow_mut();
        for at in *next..=subject.len() {
            if let Some(end) = matcher.start(at, 0).map_err(|stop| raise(&call, stop))? {
                *next = if end == at { end + 1 } else { end };
                return matcher.captures(&call, at, end, true).map(MultiValue::from_vec);
            }
        }
        *next = subject.len() + 1;
        call.one(Value::Nil)
    })
}

fn gsub(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let (subject, pattern) = (call.string(0)?, call.string(1)?);
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let replacement = match call.arg(2) {
        value @ (Value::Integer(_) | Value::Number(_)) => {
            call.lua.coerce_string(value.clone())?.map_or(Value::Nil, Value::String)
        }
        value @ (Value::String(_) | Value::Table(_) | Value::Function(_)) => value.clone(),
        _ => return Err(call.arg_error(2, "string/function/table expected")),
    };
    let len = i64::try_from(subject.len()).unwrap_or(i64::MAX);
    let most = call.integer_or(3, len.saturating_add(1))?;
    let anchored = pattern.first() == Some(&b'^');
    let item = usize::from(anchored);
    let mut matcher = Matcher::new(call.state, &subject, &pattern);
    let mut out: Vec<u8> = Vec::new();
    let (mut at, mut count) = (0, 0);
    while count < most {
        let found = matcher.start(at, item).map_err(|stop| raise(call, stop))?;
        if let Some(end) = found {
            count += 1;
            replace(call, &matcher, &replacement, at, end, &mut out)?;
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < subject.len() => {
                out.push(subject[at]);
                at += 1;
            }
            _ => break,
        }
        if out.len() > 1 << 16 && out.len() + 4096 > out.capacity() {
            call.state.reserve(call.lua, 2 * out.len())?;
        }
        if anchored {
            break;
        }
    }
    out.extend_from_slice(subject.get(at..).unwrap_or_default());
    call.state.reserve(call.lua, out.len())?;
    let text = Value::String(call.lua.create_string(out)?);
    Ok(MultiValue::from_vec(vec![text, Value::Integer(count)]))
}

fn replace(
    call: &Call<'_>,
    matcher: &Matcher<'_>,
    replacement: &Value,
    start: usize,
    end: usize,
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let value = match replacement {
        Value::String(template) => return expand(call, matcher, template, start, end, out),
        Value::Table(table) => {
            let key = matcher.capture(call, 0, start, end)?;
            crate::native::set_cap(call.lua, call.state.memory_max.get());
            table.get::<Value>(key)
        }
        Value::Function(function) => {
            let captures = matcher.captures(call, start, end, true)?;
            call.call_back(function, captures)
        }
        _ => Ok(Value::Nil),
    };
    crate::native::set_cap(call.lua, 0);
    match value? {
        Value::Nil | Value::Boolean(false) => out.extend_from_slice(&matcher.subject[start..end]),
        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
        value if number_of(call.lua, &value).is_some() => {
            if let Some(text) = call.lua.coerce_string(value)? {
                out.extend_from_slice(&text.as_bytes());
            }
        }
        value => {
            let name = crate::native::type_name(&value);
            return Err(call.error(format!("invalid replacement value (a {name})")));
        }
    }
    Ok(())
}

/// A replacement text with `%0` to `%9` in it.
fn expand(
    call: &Call<'_>,
    matcher: &Matcher<'_>,
    template: &LuaString,
    start: usize,
    end: usize,
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let template = template.as_bytes();
    let mut bytes = template.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.extend_from_slice(&matcher.subject[start..end]),
            Some(digit @ b'1'..=b'9') => {
                let value = matcher.capture(call, usize::from(digit - b'1'), start, end)?;
                if let Some(text) = call.lua.coerce_string(value)? {
                    out.extend_from_slice(&text.as_bytes());
                }
            }
            Some(other) => out.push(*other),
            None => out.push(0),
        }
        if out.len() > 1 << 16 && out.len() * 2 > out.capacity() {
            call.state.reserve(call.lua, out.len())?;
        }
    }
    Ok(())
}

fn repeat(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let text = call.string(0)?;
    let text = text.as_bytes();
    let times = call.integer(1)?;
    let times = usize::try_from(times).unwrap_or(0);
    let Some(len) = text.len().checked_mul(times) else { return Err(call.error(NO_MEMORY)) };
    call.state.reserve(call.lua, len.saturating_mul(2))?;
    call.bytes(text.repeat(if text.is_empty() { 0 } else { times }))
}
