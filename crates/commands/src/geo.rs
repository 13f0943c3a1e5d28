//! Geo commands: sorted sets whose scores are positions.
//!
//! A score is a geohash of 52 bits: 26 halvings each of the longitude (−180° to 180°) and of the latitude (as far as
//! Web Mercator maps go), interleaved. So members that are near one another mostly have scores that are near one another.
//!
//! [`cell`] encodes and decodes, [`area`] chooses the cells that cover a circle or a box and measures distances,
//! [`search`] is GEOSEARCH and its older relatives, [`order`] sorts what was found.
//!
//! Redis stores no type of its own for this, so any sorted set may come along here, with any scores.

mod area;
mod cell;
mod order;
mod search;
#[cfg(test)]
mod tests;

use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, is_word};
use crate::table::CommandId;
use cell::{Cell, Position};
use keyspace::zset::Added;
use keyspace::{NotifyClass, Value, ZSet};
use resp::{Args, Reply};
use search::Kind;
use smallvec::SmallVec;

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Geoadd => geoadd,
        CommandId::Geodist => geodist,
        CommandId::Geohash => geohash,
        CommandId::Geopos => geopos,
        CommandId::Georadius => |ctx, args| search::run(ctx, args, Kind::Radius { may_store: true }),
        CommandId::GeoradiusRo => |ctx, args| search::run(ctx, args, Kind::Radius { may_store: false }),
        CommandId::Georadiusbymember => |ctx, args| search::run(ctx, args, Kind::RadiusByMember { may_store: true }),
        CommandId::GeoradiusbymemberRo => |ctx, args| search::run(ctx, args, Kind::RadiusByMember { may_store: false }),
        CommandId::Geosearch => |ctx, args| search::run(ctx, args, Kind::Search),
        CommandId::Geosearchstore => |ctx, args| search::run(ctx, args, Kind::SearchStore),
        _ => return None,
    })
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    Some(match id {
        CommandId::Georadius => |ctx, args| search::cost(ctx, args, Kind::Radius { may_store: true }),
        CommandId::GeoradiusRo => |ctx, args| search::cost(ctx, args, Kind::Radius { may_store: false }),
        CommandId::Georadiusbymember => |ctx, args| search::cost(ctx, args, Kind::RadiusByMember { may_store: true }),
        CommandId::GeoradiusbymemberRo => {
            |ctx, args| search::cost(ctx, args, Kind::RadiusByMember { may_store: false })
        }
        CommandId::Geosearch => |ctx, args| search::cost(ctx, args, Kind::Search),
        CommandId::Geosearchstore => |ctx, args| search::cost(ctx, args, Kind::SearchStore),
        _ => return None,
    })
}

/// Two arguments as a position.
///
/// # Errors
/// No numbers, or nothing that has a geohash.
fn position(args: Args<'_>, at: usize) -> Result<Position, CmdError> {
    let position = Position { longitude: options::float(args.at(at))?, latitude: options::float(args.at(at + 1))? };
    if position.is_valid() {
        return Ok(position);
    }
    let Position { longitude, latitude } = position;
    Err(CmdError::text(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

/// How many metres a unit has.
///
/// # Errors
/// An unknown unit.
fn metres_of(unit: &[u8]) -> Result<f64, CmdError> {
    Ok(match unit {
        _ if is_word(unit, "m") => 1.0,
        _ if is_word(unit, "km") => 1000.0,
        _ if is_word(unit, "ft") => 0.3048,
        _ if is_word(unit, "mi") => 1609.34,
        _ => return Err(CmdError::new("ERR unsupported unit provided. please use M, KM, FT, MI")),
    })
}

/// Where a member is.
fn position_of(zset: &ZSet, member: &[u8]) -> Option<Position> {
    zset.score(member).map(Position::of_score)
}

/// Writes a distance: four decimals, as a bulk in both protocols.
fn write_distance(out: &mut Reply, distance: f64) {
    // Redis rounds the product to an integer (half to even), which is not always what rounding the text gives.
    #[allow(clippy::cast_possible_truncation)]
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let (sign, scaled) = (if scaled < 0 { "-" } else { "" }, scaled.unsigned_abs());
    out.bulk_fmt(format_args!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000));
}

/// Writes longitude and latitude with up to 17 decimals: bulks in RESP2, doubles in RESP3.
fn write_position(out: &mut Reply, position: Position) {
    out.array(2);
    for degrees in [position.longitude, position.latitude] {
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text == "-0" { "0" } else { text };
        if out.is_resp3() {
            out.double_text(text);
        } else {
            out.bulk(text);
        }
    }
}

/// GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member …]
fn geoadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let (mut nx, mut xx, mut ch) = (false, false, false);
    let mut first = 2;
    while let Some(option) = args.get(first) {
        match option {
            _ if is_word(option, "nx") => nx = true,
            _ if is_word(option, "xx") => xx = true,
            _ if is_word(option, "ch") => ch = true,
            _ => break,
        }
        first += 1;
    }
    let triples = args.slice(first);
    if triples.is_empty() || !triples.len().is_multiple_of(3) || (nx && xx) {
        return Err(SYNTAX);
    }
    let mut scores: SmallVec<[f64; 8]> = SmallVec::new();
    for at in (0..triples.len()).step_by(3) {
        scores.push(Cell::of(position(triples, at)?, cell::MAX_STEP).score());
    }
    let limits = &ctx.settings.zset;
    let (mut added, mut updated) = (0, 0);
    let mut add_all = |zset: &mut ZSet| {
        for (index, score) in scores.iter().enumerate() {
            let member = triples.at(index * 3 + 2);
            if (nx || xx) && zset.score(member).is_some() == nx {
                continue;
            }
            match zset.add(member, *score, limits) {
                Added::Added => added += 1,
                Added::Updated => updated += 1,
                Added::Same => {}
            }
        }
    };
    match ctx.db.write_zset(key)? {
        Some(zset) => {
            zset.expect_members(scores.len(), limits);
            add_all(zset);
        }
        None if xx => {}
        None => {
            let mut zset = ZSet::with_hint(scores.len(), triples.at(2).len(), limits);
            add_all(&mut zset);
            ctx.db.insert(key, Value::ZSet(zset), None);
        }
    }
    let changes = added + updated;
    if changes > 0 {
        ctx.db.changed(NotifyClass::ZSET, "zadd", key);
        ctx.db.events.dirty += changes - 1;
        if ctx.db.is_recording() {
            record(ctx, args, first, &scores);
        }
    }
    ctx.out.int(i64::try_from(if ch { changes } else { added }).unwrap_or(i64::MAX));
    Ok(())
}

/// Records GEOADD as the ZADD that it is; its triples begin at `first`.
fn record(ctx: &mut Ctx<'_>, args: Args<'_>, first: usize, scores: &[f64]) {
    #[allow(clippy::cast_possible_truncation)]
    let texts: Vec<String> = scores.iter().map(|score| (*score as i64).to_string()).collect();
    let mut all: Vec<&[u8]> = vec![b"zadd"];
    all.extend(args.iter().take(first).skip(1));
    let triples = args.slice(first);
    for (index, text) in texts.iter().enumerate() {
        all.push(text.as_bytes());
        all.push(triples.at(index * 3 + 2));
    }
    ctx.db.effect(&all);
}

/// GEODIST key member1 member2 [M|KM|FT|MI]
fn geodist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let unit = match args.len() {
        4 => 1.0,
        5 => metres_of(args.at(4))?,
        _ => return Err(SYNTAX),
    };
    let zset = ctx.db.read_zset(args.at(1))?;
    let ends = zset.and_then(|zset| Some((position_of(zset, args.at(2))?, position_of(zset, args.at(3))?)));
    match ends {
        Some((from, to)) => write_distance(ctx.out, area::distance(from, to) / unit),
        None => ctx.out.null(),
    }
    Ok(())
}

/// GEOHASH key [member …]: the texts that geohash.org takes.
fn geohash(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let zset = ctx.db.read_zset(args.at(1))?;
    let members = args.slice(2);
    ctx.out.array(members.len());
    for member in members {
        match zset.and_then(|zset| position_of(zset, member)) {
            Some(position) => ctx.out.bulk(cell::standard_text(position)),
            None => ctx.out.null(),
        }
    }
    Ok(())
}

/// GEOPOS key [member …]
fn geopos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let zset = ctx.db.read_zset(args.at(1))?;
    let members = args.slice(2);
    ctx.out.array(members.len());
    for member in members {
        match zset.and_then(|zset| position_of(zset, member)) {
            Some(position) => write_position(ctx.out, position),
            None => ctx.out.null_array(),
        }
    }
    Ok(())
}
