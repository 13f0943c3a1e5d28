//! Geospatial indexes.

use super::docs::{Group, block, docs, double, integer, key_argument, one_of, string, token};
use super::id::CommandId::{
    Geoadd, Geodist, Geohash, Geopos, Georadius, GeoradiusRo, Georadiusbymember, GeoradiusbymemberRo, Geosearch,
    Geosearchstore,
};
use super::row::category::GEO;
use super::row::flag::{DENYOOM, READONLY, WRITE};
use super::row::usage::{ACCESS, OW, RO, RW, UPDATE};
use super::row::{key, key_after, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 10] = [
    row(Geoadd, "geoadd", -5, WRITE | DENYOOM, GEO).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(
            Group::Geo,
            "3.2.0",
            "O(log(N)) for each member, N: members of the sorted set.",
            "Adds members with their positions to a geospatial index.",
        )
        .history(&[("6.2.0", "`CH`, `NX` and `XX`.")])
        .arguments(&[
            key_argument("key", 0),
            one_of("condition", &[token("nx", "NX"), token("xx", "XX")]).since("6.2.0").optional(),
            token("change", "CH").since("6.2.0").optional(),
            block("data", &[double("longitude"), double("latitude"), string("member")]).multiple(),
        ]),
    ),
    row(Geodist, "geodist", -4, READONLY, GEO).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Geo, "3.2.0", "O(1)", "Computes the distance of two members.").arguments(&[
            key_argument("key", 0),
            string("member1"),
            string("member2"),
            one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]).optional(),
        ]),
    ),
    row(Geohash, "geohash", -2, READONLY, GEO).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Geo, "3.2.0", "O(1) for each member.", "Returns positions of members as geohash texts.")
            .arguments(&[key_argument("key", 0), string("member").optional().multiple()]),
    ),
    row(Geopos, "geopos", -2, READONLY, GEO).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Geo, "3.2.0", "O(1) for each member.", "Returns positions of members as longitude and latitude.")
            .arguments(&[key_argument("key", 0), string("member").optional().multiple()]),
    ),
    row(Georadius, "georadius", -6, WRITE | DENYOOM, GEO)
        .keys(&[key(1, RO | ACCESS), key_after("STORE", 6, OW | UPDATE), key_after("STOREDIST", 6, OW | UPDATE)])
        .get_keys(GetKeys::GeoRadius)
        .docs(
            &docs(
                Group::Geo,
                "3.2.0",
                "O(N+log(M)), N: members in the square around the circle, M: members \
                     of the index.",
                "Finds members around a position, and stores them if asked.",
            )
            .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument")
            .history(&[("6.2.0", "`ANY` behind `COUNT`."), ("7.0.0", "Units may be written in capitals.")])
            .arguments(&[
                key_argument("key", 0),
                double("longitude"),
                double("latitude"),
                double("radius"),
                one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]),
                token("withcoord", "WITHCOORD").optional(),
                token("withdist", "WITHDIST").optional(),
                token("withhash", "WITHHASH").optional(),
                block("count-block", &[integer("count").after("COUNT"), token("any", "ANY").since("6.2.0").optional()])
                    .optional(),
                one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
                one_of(
                    "store",
                    &[
                        key_argument("storekey", 1).after("STORE").display("key"),
                        key_argument("storedistkey", 2).after("STOREDIST").display("key"),
                    ],
                )
                .optional(),
            ]),
        ),
    row(GeoradiusRo, "georadius_ro", -6, READONLY, GEO).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::Geo,
            "3.2.10",
            "O(N+log(M)), N: members in the square around the circle, M: members \
                     of the index.",
            "Finds members around a position.",
        )
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")
        .history(&[("6.2.0", "`ANY` behind `COUNT`.")])
        .arguments(&[
            key_argument("key", 0),
            double("longitude"),
            double("latitude"),
            double("radius"),
            one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]),
            token("withcoord", "WITHCOORD").optional(),
            token("withdist", "WITHDIST").optional(),
            token("withhash", "WITHHASH").optional(),
            block("count-block", &[integer("count").after("COUNT"), token("any", "ANY").since("6.2.0").optional()])
                .optional(),
            one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
        ]),
    ),
    row(Georadiusbymember, "georadiusbymember", -5, WRITE | DENYOOM, GEO)
        .keys(&[key(1, RO | ACCESS), key_after("STORE", 5, OW | UPDATE), key_after("STOREDIST", 5, OW | UPDATE)])
        .get_keys(GetKeys::GeoRadius)
        .docs(
            &docs(
                Group::Geo,
                "3.2.0",
                "O(N+log(M)), N: members in the square around the circle, M: members \
                     of the index.",
                "Finds members around another member, and stores them if asked.",
            )
            .deprecated(
                "6.2.0",
                "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and \
                     `FROMMEMBER` arguments",
            )
            .history(&[("7.0.0", "Units may be written in capitals.")])
            .arguments(&[
                key_argument("key", 0),
                string("member"),
                double("radius"),
                one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]),
                token("withcoord", "WITHCOORD").optional(),
                token("withdist", "WITHDIST").optional(),
                token("withhash", "WITHHASH").optional(),
                block("count-block", &[integer("count").after("COUNT"), token("any", "ANY").optional()]).optional(),
                one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
                one_of(
                    "store",
                    &[
                        key_argument("storekey", 1).after("STORE").display("key"),
                        key_argument("storedistkey", 2).after("STOREDIST").display("key"),
                    ],
                )
                .optional(),
            ]),
        ),
    row(GeoradiusbymemberRo, "georadiusbymember_ro", -5, READONLY, GEO).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::Geo,
            "3.2.10",
            "O(N+log(M)), N: members in the square around the circle, M: members \
                     of the index.",
            "Finds members around another member.",
        )
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments")
        .arguments(&[
            key_argument("key", 0),
            string("member"),
            double("radius"),
            one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]),
            token("withcoord", "WITHCOORD").optional(),
            token("withdist", "WITHDIST").optional(),
            token("withhash", "WITHHASH").optional(),
            block("count-block", &[integer("count").after("COUNT"), token("any", "ANY").optional()]).optional(),
            one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
        ]),
    ),
    row(Geosearch, "geosearch", -7, READONLY, GEO).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::Geo,
            "6.2.0",
            "O(N+log(M)), N: members in the grid cells that cover the shape, M: \
                     members in the shape.",
            "Finds members inside a circle or a box.",
        )
        .history(&[("7.0.0", "Units may be written in capitals.")])
        .arguments(&[
            key_argument("key", 0),
            one_of(
                "from",
                &[
                    string("member").after("FROMMEMBER"),
                    block("fromlonlat", &[double("longitude"), double("latitude")]).after("FROMLONLAT"),
                ],
            ),
            one_of(
                "by",
                &[
                    block(
                        "circle",
                        &[
                            double("radius").after("BYRADIUS"),
                            one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]),
                        ],
                    ),
                    block(
                        "box",
                        &[
                            double("width").after("BYBOX"),
                            double("height"),
                            one_of("unit", &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")]),
                        ],
                    ),
                ],
            ),
            one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
            block("count-block", &[integer("count").after("COUNT"), token("any", "ANY").optional()]).optional(),
            token("withcoord", "WITHCOORD").optional(),
            token("withdist", "WITHDIST").optional(),
            token("withhash", "WITHHASH").optional(),
        ]),
    ),
    row(Geosearchstore, "geosearchstore", -8, WRITE | DENYOOM, GEO)
        .keys(&[key(1, OW | UPDATE), key(2, RO | ACCESS)])
        .docs(
            &docs(
                Group::Geo,
                "6.2.0",
                "O(N+log(M)), N: members in the grid cells that cover the shape, M: \
                     members in the shape.",
                "Finds members inside a circle or a box and stores them.",
            )
            .history(&[("7.0.0", "Units may be written in capitals.")])
            .arguments(&[
                key_argument("destination", 0),
                key_argument("source", 1),
                one_of(
                    "from",
                    &[
                        string("member").after("FROMMEMBER"),
                        block("fromlonlat", &[double("longitude"), double("latitude")]).after("FROMLONLAT"),
                    ],
                ),
                one_of(
                    "by",
                    &[
                        block(
                            "circle",
                            &[
                                double("radius").after("BYRADIUS"),
                                one_of(
                                    "unit",
                                    &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")],
                                ),
                            ],
                        ),
                        block(
                            "box",
                            &[
                                double("width").after("BYBOX"),
                                double("height"),
                                one_of(
                                    "unit",
                                    &[token("m", "M"), token("km", "KM"), token("ft", "FT"), token("mi", "MI")],
                                ),
                            ],
                        ),
                    ],
                ),
                one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
                block("count-block", &[integer("count").after("COUNT"), token("any", "ANY").optional()]).optional(),
                token("storedist", "STOREDIST").optional(),
            ]),
        ),
];
