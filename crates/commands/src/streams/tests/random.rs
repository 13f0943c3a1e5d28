//! Random commands, compared with a real server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use crate::testing::{Bench, differential_with};

/// Lines that hit few ids, groups and consumers of few keys, nothing in which tells the time. Odd ones among them.
fn random_lines(random: &mut fastrand::Rng, count: usize) -> String {
    let pick = |random: &mut fastrand::Rng, words: &[&str]| words[random.usize(0..words.len())].to_owned();
    let mut top = 0;
    let mut lines = String::new();
    for _ in 0..count {
        top += random.u64(0..2);
        let key = pick(random, &["s", "s", "s", "t", "u"]);
        let group = pick(random, &["g", "g", "h", "i"]);
        let consumer = pick(random, &["a", "b", "c"]);
        let id = |random: &mut fastrand::Rng| match random.u8(0..12) {
            0 => pick(random, &["0", "0-0", "1-1", "x", "", "-", "+", "$", ">", "5-*", "18446744073709551615"]),
            1 => format!("{}-{}", random.u64(0..=top + 3), random.u8(0..4)),
            _ => format!("{}", random.u64((top / 2)..=top + 1)),
        };
        let bound = |random: &mut fastrand::Rng| {
            let open = if random.u8(0..5) == 0 { "(" } else { "" };
            let id = id(random);
            format!("{open}{}", pick(random, &["-", "+", "+", &id, &id]))
        };
        let trim = |random: &mut fastrand::Rng| {
            let how = pick(random, &["", "=", "~", "~"]);
            let mut text = if random.bool() {
                format!("MAXLEN {how} {}", random.u8(0..25))
            } else {
                format!("MINID {how} {}", id(random))
            };
            if random.u8(0..4) == 0 {
                text.push_str(&format!(" LIMIT {}", random.u8(0..20)));
            }
            text
        };
        let some = |random: &mut fastrand::Rng| {
            (0..random.usize(1..4)).map(|_| id(random)).filter(|id| !id.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let line = match random.u8(0..40) {
            0..=11 => {
                let id = if random.u8(0..10) == 0 {
                    id(random)
                } else {
                    format!("{top}-{}", pick(random, &["*", "1", "2", "3"]))
                };
                let trim = if random.u8(0..6) == 0 { trim(random) } else { String::new() };
                let make = pick(random, &["", "", "", "NOMKSTREAM"]);
                let fields = pick(random, &["f 1", "f 2", "f 1 g 2", "g -5 f xyz", "f"]);
                format!("XADD {key} {make} {trim} {id} {fields}")
            }
            12..=14 => format!("XDEL {key} {}", some(random)),
            15 => format!("XTRIM {key} {}", trim(random)),
            16 => format!("XRANGE {key} {} {} COUNT {}", bound(random), bound(random), random.i8(-1..6)),
            17 => format!("XREVRANGE {key} {} {}", bound(random), bound(random)),
            18 => format!("XREAD COUNT {} STREAMS {key} t {} {}", random.u8(0..4), id(random), id(random)),
            19 | 20 => format!(
                "XGROUP CREATE {key} {group} {} {}",
                id(random),
                pick(random, &["MKSTREAM", "", "ENTRIESREAD 3", "ENTRIESREAD -1", "FOO"])
            ),
            21 => format!("XGROUP SETID {key} {group} {} {}", id(random), pick(random, &["", "", "ENTRIESREAD 5"])),
            22 if random.u8(0..3) == 0 => format!("XGROUP DESTROY {key} {group}"),
            22 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
            23 => format!("XGROUP CREATECONSUMER {key} {group} {consumer}"),
            24..=27 => format!(
                "XREADGROUP GROUP {group} {consumer} COUNT {} {} STREAMS {key} >",
                random.u8(0..5),
                pick(random, &["", "", "NOACK"])
            ),
            28 => format!("XREADGROUP GROUP {group} {consumer} COUNT {} STREAMS {key} {}", random.u8(0..5), id(random)),
            29 | 30 => format!("XACK {key} {group} {}", some(random)),
            31 => format!("XPENDING {key} {group}"),
            32 | 33 => format!(
                "XCLAIM {key} {group} {consumer} {} {} {}",
                pick(random, &["0", "0", "1000000000000", "-3"]),
                some(random),
                pick(
                    random,
                    &[
                        "",
                        "FORCE",
                        "JUSTID",
                        "FORCE JUSTID",
                        "TIME 3",
                        "RETRYCOUNT 4",
                        "LASTID 7",
                        "FORCE RETRYCOUNT 2 TIME 1"
                    ]
                )
            ),
            34 => format!(
                "XAUTOCLAIM {key} {group} {consumer} 0 {} COUNT {} {}",
                bound(random),
                random.u8(0..5),
                pick(random, &["", "JUSTID"])
            ),
            35 | 36 => format!("XINFO GROUPS {key}"),
            37 => format!("XINFO STREAM {key}"),
            38 => format!(
                "XSETID {key} {} {}",
                id(random),
                pick(random, &["", "ENTRIESADDED 100", "MAXDELETEDID 3", "ENTRIESADDED 9 MAXDELETEDID 1"])
            ),
            _ => pick(random, &["DEL u", "COPY s u REPLACE", "RENAME u t", "HELLO 3", "HELLO 2", "EXISTS s t u"]),
        };
        lines.push_str(&format!("7.2 {line}\n"));
    }
    lines
}

#[test]
fn random_commands_agree() {
    let seeds = std::env::var("OXIDIS_STREAM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    for seed in 0..seeds {
        let mut bench = Bench::new();
        bench.settings.stream.node_max_entries = 4;
        let lines = random_lines(&mut fastrand::Rng::with_seed(seed), 1500);
        differential_with(&mut bench, &["--stream-node-max-entries", "4"], &lines);
    }
}
