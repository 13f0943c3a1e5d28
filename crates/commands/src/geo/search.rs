//! GEOSEARCH, GEOSEARCHSTORE, GEORADIUS and GEORADIUSBYMEMBER: one search with many ways to ask.

use super::area::{Form, Shape};
use super::cell::{self, Position};
use super::order::sort_first;
use super::{metres_of, position, position_of, write_distance, write_position};
use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, is_word};
use keyspace::zset::{ScoreRange, ZSetBuilder, ZSetLimits};
use keyspace::{NotifyClass, SetTtl, Value, ValueRef, ZSet};
use rdb::listpack::Elem;
use resp::{Args, Reply};
use std::cmp::Ordering;

const NO_SUCH_MEMBER: CmdError = CmdError::new("ERR could not decode requested zset member");

/// Which command asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// GEORADIUS key longitude latitude radius unit …
    Radius {
        /// Not the `_RO` form.
        may_store: bool,
    },
    /// GEORADIUSBYMEMBER key member radius unit …
    RadiusByMember {
        /// Not the `_RO` form.
        may_store: bool,
    },
    /// GEOSEARCH key …
    Search,
    /// GEOSEARCHSTORE destination source …
    SearchStore,
}

impl Kind {
    fn source_at(self) -> usize {
        if self == Kind::SearchStore { 2 } else { 1 }
    }

    /// Whether centre and form come as options.
    fn is_search(self) -> bool {
        matches!(self, Kind::Search | Kind::SearchStore)
    }

    fn may_store(self) -> bool {
        matches!(self, Kind::Radius { may_store: true } | Kind::RadiusByMember { may_store: true })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As found.
    Open,
    NearFirst,
    FarFirst,
}

/// Where the centre of a search by options comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Nowhere,
    Member,
    Place,
}

/// A command's arguments.
struct Query<'a> {
    from: From,
    /// Unknown where the key is missing.
    centre: Option<Position>,
    form: Option<Form>,
    /// Metres of the unit.
    unit: f64,
    with_distance: bool,
    with_hash: bool,
    with_position: bool,
    order: Order,
    /// How many are wanted at most.
    count: Option<usize>,
    /// Whether any `count` do.
    any: bool,
    destination: Option<&'a [u8]>,
    /// Distances, not geohashes, become the scores.
    store_distance: bool,
}

/// Runs one of the commands.
pub(super) fn run(ctx: &mut Ctx<'_>, args: Args<'_>, kind: Kind) -> CmdResult {
    let zset = ctx.db.read_zset(args.at(kind.source_at()))?;
    let query = Query::parse(kind, zset, args)?;
    let found = match (zset, query.shape()) {
        (Some(zset), Some(shape)) => query.find(zset, &shape),
        _ => Vec::new(),
    };
    let Some(destination) = query.destination else {
        query.answer(ctx.out, &found);
        return Ok(());
    };
    let result = query.build(&found, &ctx.settings.zset);
    let len = result.len();
    if len > 0 {
        ctx.db.set(destination, Value::ZSet(result), SetTtl::Clear);
        let event = if kind.is_search() { "geosearchstore" } else { "georadiusstore" };
        ctx.db.changed(NotifyClass::ZSET, event, destination);
        ctx.db.events.dirty += len as u64 - 1;
    } else if ctx.db.remove(destination) {
        ctx.db.changed(NotifyClass::GENERIC, "del", destination);
    }
    ctx.out.count(len);
    Ok(())
}

/// Members that one of the commands looks at.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>, kind: Kind) -> usize {
    /// Sets of this size are not worth a closer look.
    const FEW: usize = 1024;
    let Some(ValueRef::ZSet(zset)) = ctx.db.get(args.at(kind.source_at())) else { return 0 };
    if zset.len() <= FEW {
        return zset.len();
    }
    let shape = Query::parse(kind, Some(zset), args).ok().and_then(|query| query.shape());
    shape.map_or(0, |shape| shape.cells().map(|cell| zset.score_ranks(&scores_of(cell)).len()).sum())
}

/// The scores of a cell.
fn scores_of(cell: cell::Cell) -> ScoreRange {
    ScoreRange { min: cell.score(), max: cell.end_score(), min_exclusive: false, max_exclusive: true }
}

/// A member inside the shape.
struct Found<'d> {
    member: Elem<'d>,
    score: f64,
    position: Position,
    /// From the centre, in metres.
    distance: f64,
}

impl<'a> Query<'a> {
    /// Reads the arguments of a command on `zset` in Redis' order, which decides between several errors.
    fn parse(kind: Kind, zset: Option<&ZSet>, args: Args<'a>) -> Result<Query<'a>, CmdError> {
        let mut query = Query {
            from: From::Nowhere,
            centre: None,
            form: None,
            unit: 1.0,
            with_distance: false,
            with_hash: false,
            with_position: false,
            order: Order::Open,
            count: None,
            any: false,
            destination: None,
            store_distance: false,
        };
        let first = match kind {
            Kind::Radius { .. } => {
                query.centre = Some(position(args, 2)?);
                query.circle(args, 4)?;
                6
            }
            Kind::RadiusByMember { .. } => {
                // Redis: without the key nothing is wrong with radius and unit.
                if let Some(zset) = zset {
                    query.centre = Some(position_of(zset, args.at(2)).ok_or(NO_SUCH_MEMBER)?);
                    query.circle(args, 3)?;
                }
                5
            }
            Kind::Search => 2,
            Kind::SearchStore => {
                query.destination = Some(args.at(1));
                3
            }
        };
        let options = args.slice(first);
        let mut at = 0;
        while at < options.len() {
            at += query.option(kind, zset, options.slice(at))?;
        }
        query.check(kind, args.at(0))?;
        Ok(query)
    }

    /// Reads one option; gives how many arguments it has.
    fn option(&mut self, kind: Kind, zset: Option<&ZSet>, options: Args<'a>) -> Result<usize, CmdError> {
        let word = options.at(0);
        let more = options.len() - 1;
        let search = kind.is_search();
        match word {
            _ if is_word(word, "withdist") => self.with_distance = true,
            _ if is_word(word, "withhash") => self.with_hash = true,
            _ if is_word(word, "withcoord") => self.with_position = true,
            _ if is_word(word, "any") => self.any = true,
            _ if is_word(word, "asc") => self.order = Order::NearFirst,
            _ if is_word(word, "desc") => self.order = Order::FarFirst,
            _ if is_word(word, "count") && more >= 1 => {
                let count = options::int(options.at(1))?;
                if count <= 0 {
                    return Err(CmdError::new("ERR COUNT must be > 0"));
                }
                self.count = Some(usize::try_from(count).unwrap_or(usize::MAX));
                return Ok(2);
            }
            _ if kind.may_store() && more >= 1 && is_word(word, "store") => {
                (self.destination, self.store_distance) = (Some(options.at(1)), false);
                return Ok(2);
            }
            _ if kind.may_store() && more >= 1 && is_word(word, "storedist") => {
                (self.destination, self.store_distance) = (Some(options.at(1)), true);
                return Ok(2);
            }
            _ if kind == Kind::SearchStore && is_word(word, "storedist") => self.store_distance = true,
            _ if search && more >= 1 && self.from != From::Place && is_word(word, "frommember") => {
                if let Some(zset) = zset {
                    self.centre = Some(position_of(zset, options.at(1)).ok_or(NO_SUCH_MEMBER)?);
                }
                self.from = From::Member;
                return Ok(2);
            }
            _ if search && more >= 2 && self.from != From::Member && is_word(word, "fromlonlat") => {
                self.centre = Some(position(options, 1)?);
                self.from = From::Place;
                return Ok(3);
            }
            _ if search && more >= 2 && !matches!(self.form, Some(Form::Box { .. })) && is_word(word, "byradius") => {
                self.circle(options, 1)?;
                return Ok(3);
            }
            _ if search && more >= 3 && !matches!(self.form, Some(Form::Circle { .. })) && is_word(word, "bybox") => {
                self.rectangle(options, 1)?;
                return Ok(4);
            }
            _ => return Err(SYNTAX),
        }
        Ok(1)
    }

    /// Refuses options that do not go together.
    fn check(&self, kind: Kind, name: &[u8]) -> CmdResult {
        if self.destination.is_some() && (self.with_distance || self.with_hash || self.with_position) {
            let what = if kind.is_search() { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            let rest = "is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
            return Err(CmdError::text(format!("ERR {what} {rest}")));
        }
        let one_of = |what: &str| {
            let name = String::from_utf8_lossy(name);
            CmdError::text(format!("ERR exactly one of {what} can be specified for {name}"))
        };
        if kind.is_search() && self.from == From::Nowhere {
            return Err(one_of("FROMMEMBER or FROMLONLAT"));
        }
        if kind.is_search() && self.form.is_none() {
            return Err(one_of("BYRADIUS and BYBOX"));
        }
        if self.any && self.count.is_none() {
            return Err(CmdError::new("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// Reads radius and unit.
    fn circle(&mut self, args: Args<'_>, at: usize) -> CmdResult {
        let radius = length(args.at(at), CmdError::new("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(CmdError::new("ERR radius cannot be negative"));
        }
        self.unit = metres_of(args.at(at + 1))?;
        self.form = Some(Form::Circle { radius });
        Ok(())
    }

    /// Reads width, height and unit.
    fn rectangle(&mut self, args: Args<'_>, at: usize) -> CmdResult {
        let width = length(args.at(at), CmdError::new("ERR need numeric width"))?;
        let height = length(args.at(at + 1), CmdError::new("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(CmdError::new("ERR height or width cannot be negative"));
        }
        self.unit = metres_of(args.at(at + 2))?;
        self.form = Some(Form::Box { width, height });
        Ok(())
    }

    fn shape(&self) -> Option<Shape> {
        Some(Shape { centre: self.centre?, form: self.form?, unit: self.unit })
    }

    /// The members to answer, in order.
    fn find<'d>(&self, zset: &'d ZSet, shape: &Shape) -> Vec<Found<'d>> {
        let limit = if self.any { self.count.unwrap_or(usize::MAX) } else { usize::MAX };
        let mut found = Vec::new();
        for cell in shape.cells() {
            if found.len() >= limit {
                break;
            }
            for (member, score) in zset.range(zset.score_ranks(&scores_of(cell))) {
                let position = Position::of_score(score);
                if let Some(distance) = shape.distance_inside(position) {
                    found.push(Found { member, score, position, distance });
                    if found.len() >= limit {
                        break;
                    }
                }
            }
        }
        let wanted = self.count.unwrap_or(usize::MAX).min(found.len());
        let near_first = |a: &Found<'_>, b: &Found<'_>| a.distance.partial_cmp(&b.distance).unwrap_or(Ordering::Equal);
        match self.order {
            // A count is of the nearest ones, unless any will do.
            Order::Open if self.count.is_none() || self.any => {}
            Order::Open | Order::NearFirst => sort_first(&mut found, wanted, &near_first),
            Order::FarFirst => sort_first(&mut found, wanted, &|a, b| near_first(b, a)),
        }
        found.truncate(wanted);
        found
    }

    fn answer(&self, out: &mut Reply, found: &[Found<'_>]) {
        let parts = 1 + [self.with_distance, self.with_hash, self.with_position].iter().filter(|with| **with).count();
        out.array(found.len());
        for one in found {
            if parts > 1 {
                out.array(parts);
            }
            write_elem(out, one.member);
            if self.with_distance {
                write_distance(out, one.distance / self.unit);
            }
            if self.with_hash {
                out.int(cell::to_int(one.score));
            }
            if self.with_position {
                write_position(out, one.position);
            }
        }
    }

    fn build(&self, found: &[Found<'_>], limits: &ZSetLimits) -> ZSet {
        let mut builder = ZSetBuilder::new();
        let mut scratch = [0; 24];
        for one in found {
            let score = if self.store_distance { one.distance / self.unit } else { one.score };
            builder.push(one.member.to_bytes(&mut scratch), score);
        }
        builder.finish(limits)
    }
}

fn length(argument: &[u8], error: CmdError) -> Result<f64, CmdError> {
    resp::num::parse_f64(argument).ok_or(error)
}
