#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;

use commands::table::{self, Flags};
use keyspace::slot::SlotSpace;

use super::*;

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/proxy-commands.md");

fn plan_of(request: &str) -> Result<Plan, String> {
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let spec = table::resolve(words.as_slice()).expect("a command");
    assert!(table::arity_ok(spec, words.len()), "{request}: arity");
    plan(spec, words.as_slice(), SlotSpace::Redis).map_err(|error| error.to_string())
}

fn slot(key: &str) -> Result<Plan, String> {
    Ok(Plan::Slot(slot_of(SlotSpace::Redis, key.as_bytes())))
}

/// The list for people; the test below keeps it equal to the code.
fn list() -> String {
    let mut text = String::from(
        "# Commands through the proxy\n\n\
         What `oxidis proxy` does with each command. The list is an allow-list: a command that is not here is refused.\n\
         How the routes work stands in `crates/proxy/src/routing/mod.rs`. (Written by\n\
         `OXIDIS_WRITE_DOCS=1 cargo test -p proxy list_of_commands`.)\n\n\
         | command | route | remark |\n|---|---|---|\n",
    );
    let mut rows: Vec<_> = table::all().filter(|spec| !spec.is_container() || spec.id == CommandId::Command).collect();
    rows.sort_by_key(|spec| spec.name);
    for spec in rows {
        let route = Route::of(spec.id);
        let remark = match route {
            Route::Refused(why) => why.split_whitespace().collect::<Vec<_>>().join(" "),
            Route::Broadcast(merge) => format!("replies: {}", merge.name()),
            Route::Split(Split::Pairs) => "not atomic over several groups".to_owned(),
            Route::Slot | Route::Script | Route::Blocking if spec.single_key().is_none() && spec.has_keys() => {
                "all keys in one slot".to_owned()
            }
            _ => String::new(),
        };
        writeln!(text, "| {} | {} | {remark} |", spec.name.replace('|', " "), route.name()).unwrap();
    }
    text
}

#[test]
fn list_of_commands_is_the_written_one() {
    let now = list();
    if std::env::var_os("OXIDIS_WRITE_DOCS").is_some() {
        std::fs::write(LIST, &now).unwrap();
    }
    let written = std::fs::read_to_string(LIST).unwrap_or_default();
    let differs = now.lines().zip(written.lines()).find(|(now, written)| now != written);
    assert!(
        now == written,
        "docs/proxy-commands.md is not what the code does: {differs:?}; decide, then write it anew (its head says how)"
    );
}

#[test]
fn nothing_that_changes_a_connection_is_forwarded() {
    use CommandId as C;
    let of_connections = [
        C::Auth,
        C::Hello,
        C::Select,
        C::Reset,
        C::Quit,
        C::Multi,
        C::Exec,
        C::Discard,
        C::Watch,
        C::Unwatch,
        C::Subscribe,
        C::Psubscribe,
        C::Ssubscribe,
        C::Unsubscribe,
        C::Punsubscribe,
        C::Sunsubscribe,
        C::Monitor,
        C::Asking,
        C::Readonly,
        C::Readwrite,
        C::Psync,
        C::Sync,
        C::Replconf,
        C::ScriptDebug,
        C::ClientReply,
        C::ClientTracking,
        C::ClientCaching,
        C::ClientNoTouch,
        C::ClientNoEvict,
        C::ClientSetname,
        C::ClientSetinfo,
        C::ClientPause,
        C::ClientKill,
        C::Debug,
        C::Shutdown,
        C::RestoreAsking,
    ];
    for id in of_connections {
        let route = Route::of(id);
        assert!(
            matches!(route, Route::Local | Route::Transaction | Route::Subscribe | Route::Refused(_)),
            "{id:?}: {route:?}"
        );
    }
}

#[test]
fn what_waits_never_waits_on_a_shared_connection() {
    for spec in table::all().filter(|spec| spec.flags.contains(Flags::BLOCKING)) {
        let route = Route::of(spec.id);
        assert!(matches!(route, Route::Blocking | Route::Refused(_)), "{}: {route:?}", spec.name);
    }
}

#[test]
fn every_command_on_keys_is_routed_by_them() {
    for spec in table::all().filter(|spec| spec.has_keys()) {
        let route = Route::of(spec.id);
        let by_keys = matches!(route, Route::Slot | Route::Script | Route::Blocking | Route::Split(_));
        let by_proxy = matches!(route, Route::Transaction | Route::Refused(_));
        assert!(by_keys || by_proxy, "{}: {route:?}", spec.name);
    }
}

#[test]
fn one_slot_or_crossslot() {
    let cross = Err(plan::CROSS_SLOT.to_owned());
    assert_eq!(plan_of("GET a"), slot("a"));
    assert_eq!(plan_of("GET {a}b"), slot("a"));
    assert_eq!(plan_of("SUNIONSTORE {t}1 {t}2 {t}3"), slot("t"));
    assert_eq!(plan_of("SUNIONSTORE a b c"), cross);
    assert_eq!(plan_of("MSETNX {t}1 a {t}2 b"), slot("t"));
    assert_eq!(plan_of("MSETNX a 1 b 2"), cross);
    assert_eq!(plan_of("ZUNIONSTORE {t}d 2 {t}a {t}b WEIGHTS 1 2"), slot("t"));
    assert_eq!(plan_of("ZUNIONSTORE d 2 {t}a {t}b"), cross);
    assert_eq!(plan_of("PFMERGE a"), slot("a"));
    assert_eq!(plan_of("GEORADIUS a 0 0 1 m STORE b"), cross);
    assert_eq!(plan_of("GEORADIUS {a}1 0 0 1 m STORE b STORE {a}2"), slot("a"));
    assert_eq!(plan_of("XREAD STREAMS {t}a {t}b 0 0"), slot("t"));
    assert_eq!(plan_of("XREAD STREAMS a b 0 0"), cross);
    assert_eq!(plan_of("SPUBLISH ch m"), slot("ch"));
    assert_eq!(plan_of("OBJECT ENCODING a"), slot("a"));
    assert_eq!(plan_of("MEMORY USAGE a"), slot("a"));
    // What makes no sense is told by a server.
    assert_eq!(plan_of("ZUNIONSTORE d x a b"), Ok(Plan::Fixed));
    assert_eq!(plan_of("XREAD COUNT 1 a"), Ok(Plan::Fixed));
}

#[test]
fn scripts_go_by_their_declared_keys() {
    assert_eq!(plan_of("EVAL return 2 {t}a {t}b c"), slot("t"));
    assert_eq!(plan_of("EVAL return 2 a b"), Err(plan::CROSS_SLOT.to_owned()));
    assert_eq!(plan_of("EVAL return 0 a b"), Ok(Plan::Fixed));
    assert_eq!(plan_of("FCALL f 1 a"), slot("a"));
    assert_eq!(plan_of("FUNCTION LIST"), Ok(Plan::Fixed));
}

#[test]
fn blocking_calls_are_told_from_others() {
    let blocking = Ok(Plan::Blocking(slot_of(SlotSpace::Redis, b"t")));
    assert_eq!(plan_of("BLPOP {t}a {t}b 0"), blocking);
    assert_eq!(plan_of("BLMPOP 0 2 {t}a {t}b LEFT"), blocking);
    assert_eq!(plan_of("XREAD BLOCK 0 STREAMS t $"), blocking);
    assert_eq!(plan_of("XREADGROUP GROUP streams c BLOCK 0 STREAMS t >"), blocking);
    assert_eq!(plan_of("XREADGROUP GROUP g c STREAMS t >"), slot("t"));
    assert_eq!(plan_of("BLPOP a b 0"), Err(plan::CROSS_SLOT.to_owned()));
}

#[test]
fn sort_reads_only_what_is_in_its_slot() {
    let by = Err("ERR BY option of SORT denied in Cluster mode.".to_owned());
    let get = Err("ERR GET option of SORT denied in Cluster mode.".to_owned());
    assert_eq!(plan_of("SORT a"), slot("a"));
    assert_eq!(plan_of("SORT a BY nosort GET #"), slot("a"));
    assert_eq!(plan_of("SORT a BY w_*"), by);
    assert_eq!(plan_of("SORT a BY {a}w_* GET {a}v_*->f"), slot("a"));
    assert_eq!(plan_of("SORT a BY {b}w_*"), by);
    // An element could bring a tag of its own.
    assert_eq!(plan_of("SORT a BY *{a}"), by);
    assert_eq!(plan_of("SORT a BY {a*}"), by);
    assert_eq!(plan_of("SORT_RO a GET v_*"), get);
    assert_eq!(plan_of("SORT a STORE b"), Err(plan::CROSS_SLOT.to_owned()));
}

#[test]
fn parts_keep_the_order_of_the_request() {
    let words: Vec<&[u8]> = "MSET a 1 b 2 c 3 a 4".split(' ').map(str::as_bytes).collect();
    let parts = split::split(Split::Pairs, words.as_slice(), |key| Ok::<_, ()>(u32::from(key[0]) % 2)).unwrap();
    let shape: Vec<(u32, &[u32])> = parts.iter().map(|part| (part.target, part.keys.as_slice())).collect();
    assert_eq!(shape, [(1, &[0, 2, 3][..]), (0, &[1][..])]);
    let mut out = Vec::new();
    split::write_part(&mut out, Split::Pairs, words.as_slice(), &parts[0].keys);
    let mut expected = Vec::new();
    resp::write_command(&mut expected, ["MSET", "a", "1", "c", "3", "a", "4"]);
    assert_eq!(out, expected);
    assert_eq!(plan_of("MSET a 1 b"), Err("ERR wrong number of arguments for 'mset' command".to_owned()));
}

#[test]
fn refusals_say_why() {
    let told = plan_of("CLIENT TRACKING ON").unwrap_err();
    assert!(told.starts_with("ERR command 'client tracking' is not allowed through the proxy: "), "{told}");
    for spec in table::all() {
        if let Route::Refused(why) = Route::of(spec.id) {
            assert!(why.len() > 20 && !why.ends_with('.'), "{}: {why}", spec.name);
        }
    }
}
