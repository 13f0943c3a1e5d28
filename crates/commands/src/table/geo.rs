//! Geospatial indexes.

use super::id::CommandId::{
    Geoadd, Geodist, Geohash, Geopos, Georadius, GeoradiusRo, Georadiusbymember,
    GeoradiusbymemberRo, Geosearch, Geosearchstore,
};
use super::row::category::GEO;
use super::row::flag::{DENYOOM, READONLY, WRITE};
use super::row::usage::{ACCESS, OW, RO, RW, UPDATE};
use super::row::{key, key_after, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 10] = [
    row(Geoadd, "geoadd", -5, WRITE | DENYOOM, GEO).keys(&[key(1, RW | UPDATE)]),
    row(Geodist, "geodist", -4, READONLY, GEO).keys(&[key(1, RO | ACCESS)]),
    row(Geohash, "geohash", -2, READONLY, GEO).keys(&[key(1, RO | ACCESS)]),
    row(Geopos, "geopos", -2, READONLY, GEO).keys(&[key(1, RO | ACCESS)]),
    row(Georadius, "georadius", -6, WRITE | DENYOOM, GEO)
        .keys(&[
            key(1, RO | ACCESS),
            key_after("STORE", 6, OW | UPDATE),
            key_after("STOREDIST", 6, OW | UPDATE),
        ])
        .get_keys(GetKeys::GeoRadius),
    row(GeoradiusRo, "georadius_ro", -6, READONLY, GEO).keys(&[key(1, RO | ACCESS)]),
    row(
        Georadiusbymember,
        "georadiusbymember",
        -5,
        WRITE | DENYOOM,
        GEO,
    )
    .keys(&[
        key(1, RO | ACCESS),
        key_after("STORE", 5, OW | UPDATE),
        key_after("STOREDIST", 5, OW | UPDATE),
    ])
    .get_keys(GetKeys::GeoRadius),
    row(
        GeoradiusbymemberRo,
        "georadiusbymember_ro",
        -5,
        READONLY,
        GEO,
    )
    .keys(&[key(1, RO | ACCESS)]),
    row(Geosearch, "geosearch", -7, READONLY, GEO).keys(&[key(1, RO | ACCESS)]),
    row(Geosearchstore, "geosearchstore", -8, WRITE | DENYOOM, GEO)
        .keys(&[key(1, OW | UPDATE), key(2, RO | ACCESS)]),
];
