//! Geohashes: cells of a grid over the world.
//!
//! With `step` halvings of each axis a cell has a number of `2 × step` bits. From the highest bit on they are in turn one
//! of the longitude and one of the latitude: even bits are the latitude's, odd ones the longitude's.

/// Halvings of each axis in a score.
pub(super) const MAX_STEP: u32 = 26;
/// Bits of a score.
const SCORE_BITS: u32 = MAX_STEP * 2;
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// From `min` to `max` degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) min: f64,
    pub(super) max: f64,
}

/// All longitudes.
const LONGITUDES: Span = Span { min: -180.0, max: 180.0 };
/// The latitudes of Web Mercator.
const LATITUDES: Span = Span { min: -85.051_128_78, max: 85.051_128_78 };
/// The latitudes of standard geohashes.
const STANDARD_LATITUDES: Span = Span { min: -90.0, max: 90.0 };

impl Span {
    fn contains(self, degrees: f64) -> bool {
        (self.min..=self.max).contains(&degrees)
    }

    /// In which of 2^step parts that place is. The upper end itself is behind the last one.
    fn part_of(self, degrees: f64, step: u32) -> u32 {
        let share = (degrees - self.min) / (self.max - self.min);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let part = (share * parts(step)) as u32;
        part
    }

    /// One of the 2^step parts.
    fn part(self, part: u32, step: u32) -> Span {
        let end = |part: u32| self.min + (f64::from(part) / parts(step)) * (self.max - self.min);
        Span { min: end(part), max: end(part.wrapping_add(1)) }
    }

    /// Redis' sum and half, whose rounding decides the last digits of replies.
    #[allow(clippy::manual_midpoint)]
    fn middle(self) -> f64 {
        (self.min + self.max) / 2.0
    }
}

/// 2^step.
fn parts(step: u32) -> f64 {
    f64::from(1_u32 << step.min(31))
}

/// A place on the map, in degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Position {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Position {
    /// Whether it has a geohash.
    pub(super) fn is_valid(self) -> bool {
        LONGITUDES.contains(self.longitude) && LATITUDES.contains(self.latitude)
    }

    /// The middle of the cell that a score names. Scores that are no geohash give some place on the map.
    pub(super) fn of_score(score: f64) -> Position {
        let area = Cell { bits: score_bits(score), step: MAX_STEP }.area();
        Position {
            longitude: area.longitude.middle().clamp(LONGITUDES.min, LONGITUDES.max),
            latitude: area.latitude.middle().clamp(LATITUDES.min, LATITUDES.max),
        }
    }
}

/// A score as an unsigned integer.
///
/// Redis: a C cast, whose result is open for scores that do not fit. Here it is that of the usual compilers on x86-64.
fn score_bits(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if score < HALF { to_int(score).cast_unsigned() } else { to_int(score - HALF).cast_unsigned() ^ (1 << 63) }
}

/// A double as a signed integer; the lowest one for what does not fit, as x86-64 converts.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn to_int(value: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&value) { value as i64 } else { i64::MIN }
}

/// What a cell covers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    pub(super) longitude: Span,
    pub(super) latitude: Span,
}

/// A cell of the grid with 2^step × 2^step of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    pub(super) bits: u64,
    /// From 1 to 26.
    pub(super) step: u32,
}

impl Cell {
    /// The cell in which a valid position is.
    pub(super) fn of(position: Position, step: u32) -> Cell {
        Cell::on(position, LATITUDES, step)
    }

    fn on(position: Position, latitudes: Span, step: u32) -> Cell {
        let latitude = latitudes.part_of(position.latitude, step);
        let longitude = LONGITUDES.part_of(position.longitude, step);
        Cell { bits: spread(latitude) | spread(longitude) << 1, step }
    }

    /// The lowest score in the cell.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn score(self) -> f64 {
        (self.bits << (SCORE_BITS - self.step * 2)) as f64
    }

    /// The lowest score behind the cell.
    pub(super) fn end_score(self) -> f64 {
        Cell { bits: self.bits.wrapping_add(1), step: self.step }.score()
    }

    /// What it covers.
    pub(super) fn area(self) -> Area {
        Area {
            longitude: LONGITUDES.part(gather(self.bits >> 1), self.step),
            latitude: LATITUDES.part(gather(self.bits), self.step),
        }
    }

    /// The cell next to it: `east` and `north` are −1, 0 or 1. The world's edges are joined.
    pub(super) fn neighbour(self, east: i32, north: i32) -> Cell {
        let inside = u64::MAX >> (64 - self.step * 2);
        let longitude = shift(self.bits & LONGITUDE_BITS, LATITUDE_BITS & inside, east) & LONGITUDE_BITS & inside;
        let latitude = shift(self.bits & LATITUDE_BITS, LONGITUDE_BITS & inside, north) & LATITUDE_BITS & inside;
        // An axis that does not move keeps its bits, also those above the grid's (a longitude of exactly 180°).
        let longitude = if east == 0 { self.bits & LONGITUDE_BITS } else { longitude };
        let latitude = if north == 0 { self.bits & LATITUDE_BITS } else { latitude };
        Cell { bits: longitude | latitude, step: self.step }
    }
}

/// Adds or takes one on an axis whose bits have `gaps` between them: gaps filled with ones pass a carry on, gaps of zeros
/// a borrow.
fn shift(axis: u64, gaps: u64, by: i32) -> u64 {
    match by {
        0 => axis,
        1.. => axis.wrapping_add(gaps.wrapping_add(1)),
        _ => (axis | gaps).wrapping_sub(gaps.wrapping_add(1)),
    }
}

/// How the bits of a number move apart and together: shift and mask, from the widest on.
const MOVES: [(u32, u64); 5] = [
    (16, 0x0000_FFFF_0000_FFFF),
    (8, 0x00FF_00FF_00FF_00FF),
    (4, 0x0F0F_0F0F_0F0F_0F0F),
    (2, 0x3333_3333_3333_3333),
    (1, LATITUDE_BITS),
];

/// Puts a number's bits on the even places.
fn spread(number: u32) -> u64 {
    MOVES.iter().fold(u64::from(number), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// The number whose bits are on the even places.
#[allow(clippy::cast_possible_truncation)]
fn gather(bits: u64) -> u32 {
    let mut number = bits & LATITUDE_BITS;
    let mut masks = MOVES.iter().rev();
    let mut shift = masks.next().map_or(1, |(shift, _)| *shift);
    for (next, mask) in masks {
        number = (number | number >> shift) & mask;
        shift = *next;
    }
    (number | number >> shift) as u32
}

/// The geohash in the alphabet of geohash.org, for which the latitudes are −90° to 90°. Eleven characters have 55 bits;
/// the last one, of which only two bits are known, is always `0`.
pub(super) fn standard_text(position: Position) -> [u8; 11] {
    const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let bits = Cell::on(position, STANDARD_LATITUDES, MAX_STEP).bits;
    let mut text = *b"00000000000";
    let mut shift = SCORE_BITS;
    for place in text.iter_mut().take(10) {
        shift -= 5;
        let digit = usize::try_from(bits >> shift & 0x1F).unwrap_or(0);
        *place = ALPHABET.get(digit).copied().unwrap_or(b'0');
    }
    text
}
