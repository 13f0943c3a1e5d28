//! Geo commands against a real server, and what is particular about cells and the partial sort.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::area::{Form, Shape};
use super::cell::{Cell, MAX_STEP, Position, standard_text, to_int};
use super::order::sort_first;
use crate::testing::{Bench, check_all, differential};
use fastrand::Rng;
use std::fmt::Write;

const CITIES: &str = "GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";

#[test]
fn positions_distances_and_hashes() {
    check_all(&format!(
        "{CITIES} => :2
         {CITIES} => :0
         GEOADD Sicily CH 13.4 38.1 Palermo => :1
         GEOADD Sicily CH 13.361389 38.115556 Palermo => :1
         GEOADD Sicily NX CH 1 1 Palermo 12.758489 38.788135 edge1 => :1
         GEOADD Sicily XX CH 17.241510 38.788135 edge2 => :0
         GEODIST Sicily Palermo Catania => $11 166274.1516
         GEODIST Sicily Palermo Catania km => $8 166.2742
         GEODIST Sicily Palermo nobody => $-1
         GEODIST nokey a b => $-1
         GEOHASH Sicily Palermo Catania nobody => *3 $11 sqc8b49rny0 $11 sqdtr74hyu0 $-1
         GEOPOS Sicily Palermo nobody => *2 *2 $20 13.36138933897018433 $20 38.11555639549629859 *-1
         GEOHASH Sicily => *0
         ZSCORE Sicily Palermo => $16 3479099956230698
         GEOADD Sicily 181 0 a => -ERR invalid longitude,latitude pair 181.000000,0.000000
         GEOADD Sicily inf 86 a => -ERR invalid longitude,latitude pair inf,86.000000"
    ));
}

#[test]
fn search_and_store() {
    let mut bench = Bench::new();
    bench.check(CITIES, ":2");
    bench.check("GEOADD Sicily 12.758489 38.788135 edge1 17.241510 38.788135 edge2", ":2");
    bench.take_events();
    bench.take_dirty();
    bench.check_all(
        "GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC => *2 $7 Catania $7 Palermo
         GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3 WITHDIST => *3 *2 $7 Catania $7 56.4413 *2 $7 Palermo $8 190.4424 *2 $5 edge2 $8 279.7403
         GEOSEARCHSTORE near Sicily FROMLONLAT 15 37 BYBOX 400 400 km COUNT 3 STOREDIST => :3",
    );
    assert_eq!(bench.take_events(), ["new near", "geosearchstore near"]);
    assert_eq!(bench.take_dirty(), 3);
    bench.check("GEORADIUS Sicily 15 37 1 m STORE near", ":0");
    assert_eq!(bench.take_events(), ["del near"]);
    assert_eq!(bench.take_dirty(), 1);
    bench.check("GEOSEARCHSTORE Sicily Sicily FROMMEMBER Palermo BYRADIUS 1 m", ":1");
    bench.check("ZRANGE Sicily 0 -1", "*1 $7 Palermo");
}

#[test]
fn arguments_and_errors_as_the_server() {
    differential(&format!(
        "{CITIES}
         SET string x
         GEOADD string 1 1 a
         GEOADD Sicily 1 1
         GEOADD Sicily 1 1 a b
         GEOADD Sicily NX XX 1 1 a
         GEOADD Sicily NX CH NX
         GEOADD Sicily GT 1 1 a
         GEOADD Sicily 1 91 a
         GEOADD Sicily -180.0001 1 a
         GEOADD Sicily nan 1 a
         GEOADD Sicily 1 1e300 a
         GEOADD Sicily -0.0 1 a 2 abc c
         GEOADD xx XX 1 1 a
         EXISTS xx
         GEOADD corner 180 85.05112878 ne -180 -85.05112878 sw 180 -85.05112878 se -180 85.05112878 nw 0 0 zero -0.00001 -0.00001 minus
         ZRANGE corner 0 -1 WITHSCORES
         GEOPOS corner ne sw se nw zero minus
         GEOHASH corner ne sw se nw zero minus
         GEODIST corner ne sw
         GEODIST corner ne nw mi
         GEODIST corner zero zero
         GEODIST corner zero minus ft
         GEORADIUS corner 180 85 1000 km WITHDIST WITHHASH WITHCOORD
         GEORADIUS corner -180 -85 100000 km WITHDIST WITHHASH WITHCOORD ASC
         GEORADIUS corner 179 0 1e300 m ASC
         GEORADIUS corner 179 0 inf m ASC
         GEOSEARCH corner FROMLONLAT 0 0 BYBOX inf inf km ASC
         GEOSEARCH corner FROMLONLAT 0 0 BYBOX 0 0 km ASC
         GEOSEARCH corner FROMMEMBER zero BYRADIUS 0 km ASC WITHDIST
         ZADD odd -1 minus 1.5 half 1e300 huge -1e300 low inf inf -inf ninf 9007199254740993 beyond 18446744073709551615 u64
         GEOPOS odd minus half huge low inf ninf beyond u64
         GEOHASH odd minus half huge low inf ninf beyond u64
         GEODIST odd minus huge
         GEOSEARCH odd FROMLONLAT 0 0 BYRADIUS 100000 km WITHHASH WITHDIST WITHCOORD ASC
         GEODIST Sicily Palermo
         GEODIST Sicily Palermo Catania parsec
         GEODIST nokey Palermo Catania parsec
         GEODIST Sicily Palermo Catania km x
         GEODIST string a b
         GEOHASH string
         GEOHASH nokey
         GEOHASH nokey a b
         GEOPOS nokey a b
         GEOPOS string a
         GEORADIUS nokey 1 1 1 x
         GEORADIUS nokey 1 1 abc km
         GEORADIUS nokey 1 1 -1 km
         GEORADIUS nokey 1 1 nan km
         GEORADIUS nokey 1 91 1 km
         GEORADIUS nokey 1 1 1 km ABC
         GEORADIUS nokey 1 1 1 km COUNT
         GEORADIUS nokey 1 1 1 km COUNT 0
         GEORADIUS nokey 1 1 1 km COUNT -5
         GEORADIUS nokey 1 1 1 km COUNT abc
         GEORADIUS nokey 1 1 1 km ANY
         GEORADIUS nokey 1 1 1 km COUNT 1 ANY
         GEORADIUS nokey 1 1 1 km STORE
         GEORADIUS nokey 1 1 1 km STORE to
         GEORADIUS nokey 1 1 1 km STORE to WITHDIST
         GEORADIUS_RO nokey 1 1 1 km STORE to
         GEORADIUS_RO Sicily 15 37 200 KM WITHDIST
         GEORADIUSBYMEMBER nokey a 1 x
         GEORADIUSBYMEMBER nokey a x km COUNT 0
         GEORADIUSBYMEMBER Sicily nobody 1 km
         GEORADIUSBYMEMBER Sicily Palermo 1 parsec
         GEORADIUSBYMEMBER Sicily Palermo 200 km DESC
         GEORADIUSBYMEMBER Sicily Palermo 200 km STORE to STOREDIST to2
         ZRANGE to2 0 -1 WITHSCORES
         EXISTS to
         GEORADIUSBYMEMBER Sicily Palermo 200 km STOREDIST to2 STORE to2
         ZRANGE to2 0 -1 WITHSCORES
         OBJECT ENCODING to2
         GEORADIUSBYMEMBER nokey Palermo 200 km STORE to2
         GEORADIUSBYMEMBER_RO Sicily Palermo 200 km STORE to2
         GEORADIUSBYMEMBER string a 1 m
         GEOSEARCH Sicily FROMMEMBER Palermo FROMLONLAT 1 1 BYRADIUS 1 km
         GEOSEARCH Sicily FROMLONLAT 1 1 FROMMEMBER Palermo BYRADIUS 1 km
         GEOSEARCH Sicily FROMLONLAT 1 1 BYRADIUS 1 km BYBOX 1 1 km
         GEOSEARCH Sicily FROMLONLAT 1 1 BYBOX 1 1 km BYRADIUS 1 km
         GEOSEARCH Sicily FROMMEMBER Catania FROMMEMBER Palermo BYRADIUS 1 km BYRADIUS 2 km
         GEOSEARCH Sicily ASC BYRADIUS 1 km COUNT 2
         geoSearch Sicily ASC BYRADIUS 1 km COUNT 2
         GEOSEARCH Sicily FROMMEMBER Palermo ASC COUNT 2
         GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km STOREDIST
         GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 1 km STORE x
         GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 1
         GEOSEARCH Sicily FROMMEMBER Palermo BYBOX a 1 km
         GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 b km
         GEOSEARCH Sicily FROMMEMBER Palermo BYBOX -1 1 km
         GEOSEARCH Sicily FROMMEMBER Palermo BYBOX 1 1 xx
         GEOSEARCH Sicily FROMMEMBER nobody BYRADIUS 1 m
         GEOSEARCH nokey FROMMEMBER nobody BYRADIUS 1 m
         GEOSEARCH nokey FROMMEMBER nobody FROMLONLAT 1 1 BYRADIUS 1 m
         GEOSEARCH nokey FROMLONLAT 1 100 BYRADIUS 1 m
         GEOSEARCH nokey BYRADIUS 1 m COUNT 1
         GEOSEARCH string FROMMEMBER nobody BYRADIUS 1 m
         GEOSEARCHSTORE to2 nokey FROMMEMBER nobody BYRADIUS 1 m
         SET to2 x
         GEOSEARCHSTORE to2 nokey FROMMEMBER nobody BYRADIUS 1 m
         EXISTS to2
         SET to2 x
         GEOSEARCHSTORE to2 Sicily FROMMEMBER Palermo BYRADIUS 1000 km STOREDIST STOREDIST
         ZRANGE to2 0 -1 WITHSCORES
         GEOSEARCHSTORE to2 Sicily FROMMEMBER Palermo BYRADIUS 1000 km WITHDIST
         GEOSEARCHSTORE Sicily Sicily FROMMEMBER Palermo BYRADIUS 1000 km COUNT 1
         ZRANGE Sicily 0 -1 WITHSCORES
         HELLO 3
         GEOPOS corner ne sw nobody
         GEODIST corner ne sw
         GEODIST corner ne nobody
         GEOHASH corner nobody
         GEOSEARCH corner FROMLONLAT 0 0 BYRADIUS 100000 km WITHHASH WITHDIST WITHCOORD ASC
         GEOSEARCH nokey FROMLONLAT 0 0 BYRADIUS 100000 km"
    ));
}

/// Members near one another, far apart, in equal places and at the edges; then every way to search.
#[test]
fn random_searches_as_the_server() {
    for (seed, members) in [(1, 60), (2, 500), (3, 3000)] {
        let mut rng = Rng::with_seed(seed);
        let mut lines = String::new();
        let place = |rng: &mut Rng| match rng.u8(..8) {
            0 => (*rng.choice([-180.0, 180.0, 179.99999, 0.0].iter()).unwrap(), rng.f64() * 170.0 - 85.0),
            1 => (rng.f64() * 360.0 - 180.0, *rng.choice([-85.05112878, 85.0, 0.0, 66.5, -80.5].iter()).unwrap()),
            2 => (f64::from(rng.i8(-9..9)), f64::from(rng.i8(-9..9))),
            3..=5 => (13.0 + rng.f64() / 10.0, 52.0 + rng.f64() / 10.0),
            _ => (rng.f64() * 360.0 - 180.0, rng.f64() * 170.0 - 85.0),
        };
        for member in 0..members {
            let (longitude, latitude) = place(&mut rng);
            // Small groups share a place, so that distances are equal.
            let count = if rng.u8(..4) == 0 { rng.u8(2..9) } else { 1 };
            write!(lines, "GEOADD g").unwrap();
            for twin in 0..count {
                write!(lines, " {longitude} {latitude} m{member}.{twin}").unwrap();
            }
            lines.push('\n');
        }
        lines.push_str("ZRANGE g 0 -1 WITHSCORES\n");
        for _ in 0..600 {
            let (longitude, latitude) = place(&mut rng);
            let unit = *rng.choice(["m", "km", "ft", "mi"].iter()).unwrap();
            let mut size = || 10_f64.powf(rng.f64() * 5.0).round() / if rng.bool() { 1.0 } else { 7.0 };
            let (width, height) = (size(), size());
            let from = format!("FROMLONLAT {longitude} {latitude}");
            let form =
                if rng.bool() { format!("BYRADIUS {width} {unit}") } else { format!("BYBOX {width} {height} {unit}") };
            let mut options = String::new();
            if rng.bool() {
                write!(options, " COUNT {}", rng.u16(1..40)).unwrap();
                if rng.u8(..3) == 0 {
                    options.push_str(" ANY");
                }
            }
            options.push_str(rng.choice(["", " ASC", " DESC"].iter()).unwrap());
            let with = rng.choice(["", " WITHDIST", " WITHCOORD", " WITHHASH WITHDIST WITHCOORD"].iter()).unwrap();
            match rng.u8(..6) {
                0 => writeln!(lines, "GEORADIUS g {longitude} {latitude} {width} {unit}{options}{with}"),
                1 => writeln!(
                    lines,
                    "GEOSEARCHSTORE to g {from} {form}{options}{}ZRANGE to 0 -1 WITHSCORES\nOBJECT ENCODING to",
                    // Redis 7.0 has other texts of doubles.
                    if rng.bool() { " STOREDIST\n7.2 " } else { "\n" }
                ),
                2 => writeln!(lines, "GEORADIUSBYMEMBER_RO g m{}.0 {width} {unit}{options}{with}", rng.u32(..members)),
                3 => {
                    writeln!(lines, "GEODIST g m{}.0 m{}.0 {unit}", rng.u32(..members), rng.u32(..members))
                }
                _ => writeln!(lines, "GEOSEARCH g {from} {form}{options}{with}"),
            }
            .unwrap();
        }
        differential(&lines);
    }
}

#[test]
fn cells_decode_to_where_they_are() {
    let mut rng = Rng::with_seed(7);
    for _ in 0..10_000 {
        let position =
            Position { longitude: rng.f64() * 360.0 - 180.0, latitude: rng.f64() * 170.102_257_56 - 85.051_128_78 };
        for step in [1, 5, 13, MAX_STEP] {
            let cell = Cell::of(position, step);
            let area = cell.area();
            assert!((area.longitude.min..=area.longitude.max).contains(&position.longitude), "{position:?}");
            assert!((area.latitude.min..=area.latitude.max).contains(&position.latitude), "{position:?}");
            for (east, north) in [(1, 0), (0, 1), (1, 1), (1, -1)] {
                assert_eq!(cell.neighbour(east, north).neighbour(-east, -north), cell, "there and back again");
            }
        }
        let score = Cell::of(position, MAX_STEP).score();
        let middle = Position::of_score(score);
        assert_eq!(Cell::of(middle, MAX_STEP).score().to_bits(), score.to_bits());
    }
}

#[test]
fn any_score_is_some_place() {
    let mut rng = Rng::with_seed(8);
    for score in (0..100_000).map(|_| f64::from_bits(rng.u64(..))).filter(|score| !score.is_nan()) {
        let position = Position::of_score(score);
        assert!(position.is_valid(), "{score} is at {position:?}");
        standard_text(position);
        for form in [Form::Circle { radius: score.abs() }, Form::Box { width: score.abs(), height: score.abs() }] {
            assert!(Shape { centre: position, form, unit: 1609.34 }.cells().count() <= 9);
        }
    }
    assert_eq!(to_int(f64::INFINITY), i64::MIN);
    assert_eq!(to_int(-1.5), -1);
}

#[test]
fn first_ones_are_as_in_a_full_sort() {
    let mut rng = Rng::with_seed(9);
    for _ in 0..2000 {
        let len = rng.usize(1..300);
        let values = *rng.choice([3_u32, 20, 100_000].iter()).unwrap();
        let mut items: Vec<u32> = (0..len).map(|_| rng.u32(..values)).collect();
        if rng.u8(..4) == 0 {
            items.sort_unstable();
        }
        let keep = rng.usize(1..=len);
        let mut sorted = items.clone();
        sorted.sort_unstable();
        sort_first(&mut items, keep, &u32::cmp);
        assert_eq!(items.get(..keep), sorted.get(..keep));
        items.sort_unstable();
        assert_eq!(items, sorted, "nothing is lost");
    }
    // An order that sends every pivot to one end.
    let mut items: Vec<u32> = (0..200_000).map(|index| if index % 2 == 0 { index } else { 200_000 - index }).collect();
    sort_first(&mut items, 10, &u32::cmp);
    assert!(items.get(..10).unwrap().is_sorted());
}
