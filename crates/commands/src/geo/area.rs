//! Which cells a search looks at, and distances.
//!
//! A search looks at the cell around its centre and the eight around that, at the finest step at which these nine
//! surely cover the shape. Which step that is decides the order in which members are found, so the formulas and their
//! order of operations are Redis'.

use super::cell::{Cell, MAX_STEP, Position};

/// Mean radius of the earth that Redis takes, in metres.
const EARTH_RADIUS: f64 = 6_372_797.560_856;
/// Half of the extent of Web Mercator that Redis takes, in metres.
const MERCATOR_MAX: f64 = 20_037_726.37;
const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// The form of a search; lengths are in its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Form {
    /// Everything up to this far from the centre.
    Circle {
        /// How far.
        radius: f64,
    },
    /// A box around the centre.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
}

/// Where a search looks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) centre: Position,
    pub(super) form: Form,
    /// Metres of the unit.
    pub(super) unit: f64,
}

/// Distance along a meridian, in metres.
fn latitude_distance(from: f64, to: f64) -> f64 {
    EARTH_RADIUS * (to * RADIANS - from * RADIANS).abs()
}

/// Distance on the great circle by the haversine formula, in metres.
pub(super) fn distance(from: Position, to: Position) -> f64 {
    let east = ((to.longitude * RADIANS - from.longitude * RADIANS) / 2.0).sin();
    if east == 0.0 {
        return latitude_distance(from.latitude, to.latitude);
    }
    let (from_latitude, to_latitude) = (from.latitude * RADIANS, to.latitude * RADIANS);
    let north = ((to_latitude - from_latitude) / 2.0).sin();
    let haversine = north * north + from_latitude.cos() * to_latitude.cos() * east * east;
    2.0 * EARTH_RADIUS * haversine.sqrt().asin()
}

impl Shape {
    /// How far from the centre a position is, in metres; `None`: outside.
    pub(super) fn distance_inside(&self, position: Position) -> Option<f64> {
        match self.form {
            Form::Circle { radius } => {
                let distance = distance(self.centre, position);
                // Not `<=`: that would say something else of what is no number.
                if distance > radius * self.unit { None } else { Some(distance) }
            }
            Form::Box { width, height } => {
                if latitude_distance(position.latitude, self.centre.latitude) > height * self.unit / 2.0 {
                    return None;
                }
                let below = Position { longitude: self.centre.longitude, latitude: position.latitude };
                if distance(position, below) > width * self.unit / 2.0 {
                    return None;
                }
                Some(distance(self.centre, position))
            }
        }
    }

    /// Half the extents from west to east and from south to north, in metres.
    fn reach(&self) -> (f64, f64) {
        match self.form {
            Form::Circle { radius } => (self.unit * radius, self.unit * radius),
            Form::Box { width, height } => (self.unit * (width / 2.0), self.unit * (height / 2.0)),
        }
    }

    /// How far its farthest point is from the centre, in metres.
    fn radius(&self) -> f64 {
        match self.form {
            Form::Circle { radius } => radius * self.unit,
            Form::Box { width, height } => {
                let (width, height) = (width / 2.0, height / 2.0);
                (width * width + height * height).sqrt() * self.unit
            }
        }
    }

    /// The cells that cover the shape, in the order in which Redis searches them, none of them twice in a row.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        let Position { longitude, latitude } = self.centre;
        let (reach_east, reach_north) = self.reach();
        let delta_latitude = reach_north / EARTH_RADIUS / RADIANS;
        // The edge towards the pole has the widest angle.
        let edge = if latitude < 0.0 { latitude - delta_latitude } else { latitude + delta_latitude };
        let delta_longitude = reach_east / EARTH_RADIUS / (edge * RADIANS).cos() / RADIANS;
        let (west, east) = (longitude - delta_longitude, longitude + delta_longitude);
        let (south, north) = (latitude - delta_latitude, latitude + delta_latitude);

        let mut step = step_for(self.radius(), latitude);
        let mut centre = Cell::of(self.centre, step);
        let short = centre.neighbour(0, 1).area().latitude.max < north
            || centre.neighbour(0, -1).area().latitude.min > south
            || centre.neighbour(1, 0).area().longitude.max < east
            || centre.neighbour(-1, 0).area().longitude.min > west;
        if step > 1 && short {
            step -= 1;
            centre = Cell::of(self.centre, step);
        }
        let area = centre.area();
        let needless = move |to_east: i32, to_north: i32| {
            step >= 2
                && ((to_north < 0 && area.latitude.min < south)
                    || (to_north > 0 && area.latitude.max > north)
                    || (to_east < 0 && area.longitude.min < west)
                    || (to_east > 0 && area.longitude.max > east))
        };
        const ORDER: [(i32, i32); 9] = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let mut last = None;
        ORDER.into_iter().filter_map(move |(to_east, to_north)| {
            if needless(to_east, to_north) {
                return None;
            }
            let cell = centre.neighbour(to_east, to_north);
            // On the coarsest grids neighbours on both sides are the same cell. Redis does not look back to the
            // centre, which is the neighbour of none.
            if last == Some(cell) {
                return None;
            }
            if (to_east, to_north) != (0, 0) {
                last = Some(cell);
            }
            Some(cell)
        })
    }
}

/// The step at which nine cells mostly cover a circle of that radius at that latitude.
fn step_for(radius_metres: f64, latitude: f64) -> u32 {
    if radius_metres == 0.0 {
        return MAX_STEP;
    }
    let mut step: i32 = 1;
    let mut radius = radius_metres;
    while radius < MERCATOR_MAX {
        radius *= 2.0;
        step += 1;
    }
    step -= 2;
    // Meridians are closer to one another towards the poles.
    if latitude.abs() > 66.0 {
        step -= 1;
        if latitude.abs() > 80.0 {
            step -= 1;
        }
    }
    u32::try_from(step).unwrap_or(1).clamp(1, MAX_STEP)
}
