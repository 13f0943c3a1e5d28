//! XADD and XTRIM.

use super::{id, write_id};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use crate::table::{self, CommandId, errors};
use keyspace::stream::{Log, StreamId, StreamLimits, Trim, TrimTo};
use keyspace::{DbView, NotifyClass, ValueRef};
use resp::Args;
use smallvec::SmallVec;

/// All fields and values of an entry together stay below this many bytes, as a listpack must hold them.
const ENTRY_BYTES_MAX: usize = 1 << 30;

const TWO_STRATEGIES: CmdError =
    CmdError::new("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
const EXHAUSTED: CmdError =
    CmdError::new("ERR The stream has exhausted the last possible ID, unable to add more items");
const NOT_GREATER: CmdError =
    CmdError::new("ERR The ID specified in XADD is equal or smaller than the target stream top item");

/// Options of both commands.
#[derive(Default)]
struct Options {
    trim: Option<TrimTo>,
    approximate: bool,
    limit: Option<u64>,
    no_stream: bool,
    /// The id, and whether its second half was given. `None`: `*`.
    id: Option<(StreamId, bool)>,
    /// Where the id is; behind it come the fields.
    id_at: usize,
    /// Where the threshold of the strategy is, if there is one.
    threshold_at: usize,
}

impl Options {
    fn parse(args: Args<'_>, adds: bool) -> Result<Options, CmdError> {
        let mut options = Options::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let has_more = at + 1 < args.len();
            if adds && id::c_string(word) == b"*" {
                break;
            } else if is_word(word, "maxlen") && has_more {
                let value = options.strategy(args, &mut at)?;
                let len =
                    u64::try_from(int(value)?).map_err(|_| CmdError::new("ERR The MAXLEN argument must be >= 0."))?;
                options.trim = Some(TrimTo::Len(len));
            } else if is_word(word, "minid") && has_more {
                let value = options.strategy(args, &mut at)?;
                options.trim = Some(TrimTo::MinId(id::strict(value, 0)?));
            } else if is_word(word, "limit") && has_more {
                let limit = int(args.at(at + 1))?;
                options.limit =
                    Some(u64::try_from(limit).map_err(|_| CmdError::new("ERR The LIMIT argument must be >= 0."))?);
                at += 1;
            } else if adds && is_word(word, "nomkstream") {
                options.no_stream = true;
            } else if adds {
                options.id = Some(id::to_add(word)?);
                break;
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        options.id_at = at;
        options.check(adds)?;
        Ok(options)
    }

    /// Reads `[~|=] value` behind the name of a strategy at `at`; leaves `at` on the value.
    fn strategy<'a>(&mut self, args: Args<'a>, at: &mut usize) -> Result<&'a [u8], CmdError> {
        if self.trim.is_some() {
            return Err(TWO_STRATEGIES);
        }
        self.approximate = false;
        let has_value = *at + 2 < args.len();
        match args.at(*at + 1) {
            b"~" if has_value => {
                self.approximate = true;
                *at += 1;
            }
            b"=" if has_value => *at += 1,
            _ => {}
        }
        *at += 1;
        self.threshold_at = *at;
        Ok(args.at(*at))
    }

    /// Records the command: what `~` came to exactly, and the id that was chosen.
    fn record(&self, db: &mut DbView<'_>, args: Args<'_>, id: Option<StreamId>) {
        if !db.is_recording() {
            return;
        }
        let key = args.at(1);
        let mut replaced: SmallVec<[(usize, Vec<u8>); 3]> = SmallVec::new();
        if self.approximate {
            let log = match db.get(key) {
                Some(ValueRef::Stream(stream)) => Some(stream.log()),
                _ => None,
            };
            let threshold = match self.trim {
                Some(TrimTo::MinId(_)) => {
                    let first =
                        log.and_then(|log| log.range(StreamId::MIN, StreamId::MAX).next().map(|entry| entry.id));
                    first.unwrap_or(StreamId::MIN).to_string()
                }
                _ => log.map_or(0, Log::len).to_string(),
            };
            replaced.push((self.threshold_at - 1, b"=".to_vec()));
            replaced.push((self.threshold_at, threshold.into_bytes()));
        }
        if let Some(id) = id.filter(|_| !self.id.is_some_and(|(_, whole)| whole)) {
            replaced.push((self.id_at, id.to_string().into_bytes()));
        }
        if !replaced.is_empty() {
            let replaced: SmallVec<[(usize, &[u8]); 3]> =
                replaced.iter().map(|(index, text)| (*index, text.as_slice())).collect();
            // LIMIT goes with `~` alone, and has no use with the exact threshold, but Redis leaves it: a reader of the
            // stream takes it from us as from Redis.
            db.effect_replaced(args, &replaced);
        }
    }

    fn check(&self, adds: bool) -> CmdResult {
        if self.limit.is_some_and(|limit| limit > 0) && self.trim.is_none() {
            return Err(CmdError::new("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"));
        }
        if !adds && self.trim.is_none() {
            return Err(CmdError::new("ERR syntax error, XTRIM must be called with a trimming strategy"));
        }
        if self.limit.is_some() && !self.approximate {
            return Err(CmdError::new("ERR syntax error, LIMIT cannot be used without the special ~ option"));
        }
        Ok(())
    }

    /// Trims as asked for. Gives how many entries went.
    fn trim(&self, log: &mut Log, limits: &StreamLimits) -> u64 {
        let Some(to) = self.trim else { return 0 };
        let limit = match self.limit {
            Some(limit) => limit,
            None if self.approximate => default_limit(limits),
            None => 0,
        };
        log.trim(Trim { to, approximate: self.approximate, limit })
    }
}

/// How much one command trims when nothing else is said: about a hundred blocks.
fn default_limit(limits: &StreamLimits) -> u64 {
    match u64::try_from(limits.node_max_entries.wrapping_mul(100)) {
        Ok(0) | Err(_) => 10_000,
        Ok(limit) => limit.min(1_000_000),
    }
}

/// XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value [field value …]
pub(super) fn xadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let options = Options::parse(args, true)?;
    let fields = args.slice(options.id_at + 1);
    if fields.len() < 2 || !fields.len().is_multiple_of(2) {
        return Err(CmdError::text(errors::wrong_arity(table::spec(CommandId::Xadd))));
    }
    if options.id == Some((StreamId::MIN, true)) {
        return Err(CmdError::new("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let last_id = match ctx.db.write_stream(key)? {
        Some(stream) => stream.log().last_id(),
        None if options.no_stream => {
            ctx.out.null();
            return Ok(());
        }
        None => StreamId::MIN,
    };
    if last_id == StreamId::MAX {
        return Err(EXHAUSTED);
    }
    let id = next_id(last_id, options.id, ctx.db.now_ms())?;
    if fields.count_bytes() > ENTRY_BYTES_MAX {
        return Err(CmdError::new("ERR Elements are too large to be stored"));
    }
    let limits = ctx.settings.stream;
    let log = ctx.db.upsert_stream(key)?.log_mut();
    log.append(id, fields, &limits);
    let trimmed = options.trim(log, &limits);
    write_id(ctx.out, id);
    ctx.db.changed(NotifyClass::STREAM, "xadd", key);
    if trimmed > 0 {
        ctx.db.notify(NotifyClass::STREAM, "xtrim", key);
    }
    ctx.db.signal_ready(key);
    options.record(&mut ctx.db, args, Some(id));
    Ok(())
}

/// The id of a new entry.
fn next_id(last_id: StreamId, given: Option<(StreamId, bool)>, now_ms: i64) -> Result<StreamId, CmdError> {
    let id = match given {
        Some((id, true)) => Some(id),
        Some((id, false)) if id.ms == last_id.ms => last_id.seq.checked_add(1).map(|seq| StreamId { ms: id.ms, seq }),
        Some((id, false)) => Some(id),
        None => {
            let now = StreamId { ms: u64::try_from(now_ms).unwrap_or(0), seq: 0 };
            if now.ms > last_id.ms { Some(now) } else { last_id.next() }
        }
    };
    id.filter(|id| *id > last_id).ok_or(NOT_GREATER)
}

/// XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count]
pub(super) fn xtrim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let options = Options::parse(args, false)?;
    let limits = ctx.settings.stream;
    let deleted = match ctx.db.write_stream(key)? {
        Some(stream) => options.trim(stream.log_mut(), &limits),
        None => 0,
    };
    if deleted > 0 {
        ctx.db.changed(NotifyClass::STREAM, "xtrim", key);
        ctx.db.events.dirty += deleted - 1;
        options.record(&mut ctx.db, args, None);
    }
    ctx.out.int(i64::try_from(deleted).unwrap_or(i64::MAX));
    Ok(())
}
