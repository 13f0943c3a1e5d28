//! Lookup by name, resolution of requests, error texts, single keys and channels.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::keys::{ChannelUse, channels};
use super::*;

fn split(line: &str) -> Vec<&[u8]> {
    line.split_whitespace().map(str::as_bytes).collect()
}

#[test]
fn every_id_has_its_row() {
    assert_eq!(all().len(), CommandId::COUNT);
    for (index, spec) in all().enumerate() {
        assert_eq!(spec.id.index(), index);
        assert!(std::ptr::eq(super::spec(spec.id), spec));
    }
}

#[test]
fn names_are_found_in_any_case() {
    for spec in top_level() {
        let lower = spec.name.as_bytes();
        let mixed: Vec<u8> = lower
            .iter()
            .enumerate()
            .map(|(at, byte)| if at % 2 == 0 { byte.to_ascii_uppercase() } else { *byte })
            .collect();
        for name in [lower, &lower.to_ascii_uppercase(), &mixed] {
            assert_eq!(lookup(name).map(|found| found.id), Some(spec.id), "{}", spec.name);
        }
        for subcommand in spec.subcommands {
            let short = subcommand.short_name().to_ascii_uppercase();
            let found = lookup_sub(spec, short.as_bytes());
            assert_eq!(found.map(|found| found.id), Some(subcommand.id));
            let full = subcommand.name.to_ascii_uppercase();
            let found = lookup_full_name(full.as_bytes());
            assert_eq!(found.map(|found| found.id), Some(subcommand.id));
        }
    }
}

#[test]
fn names_that_are_nearly_right_are_not_found() {
    let is_name = |name: &[u8]| top_level().any(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name));
    for spec in top_level() {
        let name = spec.name.as_bytes();
        for at in 0..name.len() {
            for bit in 0..8 {
                let mut wrong = name.to_vec();
                wrong[at] ^= 1 << bit;
                assert_eq!(lookup(&wrong).is_some(), is_name(&wrong), "{wrong:?}");
            }
            let shorter = [&name[..at], &name[at + 1..]].concat();
            assert_eq!(lookup(&shorter).is_some(), is_name(&shorter), "{shorter:?}");
            let doubled = [&name[..=at], &name[at..]].concat();
            assert_eq!(lookup(&doubled).is_some(), is_name(&doubled), "{doubled:?}");
            let padded = [name, &vec![0; at + 1]].concat();
            assert!(lookup(&padded).is_none(), "{padded:?}");
        }
    }
    assert!(lookup(b"").is_none());
    assert!(lookup_full_name(b"").is_none());
    assert!(lookup_full_name(b"config|").is_none());
    assert!(lookup_full_name(b"config|get|x").is_none());
    assert!(lookup_full_name(b"get|set").is_none());
}

proptest! {
    #[test]
    fn random_names_are_found_only_if_they_are_names(name in prop::collection::vec(any::<u8>(), 0..24)) {
        let expected = top_level().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(&name));
        prop_assert_eq!(lookup(&name).map(|spec| spec.id), expected.map(|spec| spec.id));
    }

    #[test]
    fn keys_are_always_inside_the_request(
        index in 0..CommandId::COUNT,
        words in prop::collection::vec(
            prop::sample::select(vec![
                "0", "1", "2", "-1", "9223372036854775807", "store", "STREAMS", "keys", "get", "by",
                "limit", "auth2", "", "a", "group", "storedist", "count", "overflow",
            ]),
            0..12,
        ),
    ) {
        let spec = super::all().nth(index).unwrap();
        let name: Vec<&str> = spec.name.split('|').collect();
        let args: Vec<&[u8]> = name.iter().chain(&words).map(|word| word.as_bytes()).collect();
        if arity_ok(spec, args.len()) {
            for key in keys::routing_keys(spec, args.as_slice()).unwrap_or_default() {
                prop_assert!((key.position as usize) < args.len());
                prop_assert!(key.position > 0);
            }
        }
    }
}

#[test]
fn requests_are_resolved() {
    let check = |line: &str, expected: Result<CommandId, LookupError>| {
        let args = split(line);
        assert_eq!(resolve(args.as_slice()).map(|spec| spec.id), expected, "{line}");
    };
    check("GET a", Ok(CommandId::Get));
    check("Config Get *", Ok(CommandId::ConfigGet));
    check("config", Ok(CommandId::Config));
    check("command", Ok(CommandId::Command));
    check("config nothing", Err(LookupError::UnknownSubcommand));
    check("config|get a", Err(LookupError::UnknownCommand));
    check("nothing a", Err(LookupError::UnknownCommand));
    check("", Err(LookupError::UnknownCommand));
}

#[test]
fn errors_have_the_texts_of_redis() {
    let unknown = |args: &[&[u8]]| String::from_utf8(errors::unknown_command(args)).unwrap();
    assert_eq!(unknown(&[b"foo"]), "ERR unknown command 'foo', with args beginning with: ");
    assert_eq!(unknown(&[b"foo", b"a", b"b"]), "ERR unknown command 'foo', with args beginning with: 'a' 'b' ");
    assert_eq!(
        unknown(&[b"f\r\noo", b"a\nb", b"c\0d"]),
        "ERR unknown command 'f  oo', with args beginning with: 'a b' 'c' "
    );
    let long = [b'x'; 200];
    let cut = "x".repeat(128);
    assert_eq!(
        unknown(&[&long, &long, b"more"]),
        format!("ERR unknown command '{cut}', with args beginning with: '{cut}' ")
    );
    assert_eq!(
        unknown(&[b"f", &long[..120], &long]),
        format!("ERR unknown command 'f', with args beginning with: '{}' 'xxxxx' ", "x".repeat(120))
    );
    let args: &[&[u8]] = &[b"config", b"x"];
    assert_eq!(errors::unknown_subcommand(args), b"ERR unknown subcommand 'x'. Try CONFIG HELP.");
    assert_eq!(
        errors::subcommand_syntax(args),
        b"ERR unknown subcommand or wrong number of arguments for 'x'. Try CONFIG HELP."
    );
    assert_eq!(
        errors::wrong_arity(spec(CommandId::ConfigGet)),
        "ERR wrong number of arguments for 'config|get' command"
    );
}

#[test]
fn single_keys_are_those_of_the_specs() {
    let single = |id| spec(id).single_key();
    assert_eq!(single(CommandId::Get), Some(1));
    assert_eq!(single(CommandId::Set), Some(1));
    assert_eq!(single(CommandId::ObjectEncoding), Some(2));
    assert_eq!(single(CommandId::XgroupCreate), Some(2));
    for id in [CommandId::Mget, CommandId::Eval, CommandId::Sort, CommandId::Rename] {
        assert_eq!(single(id), None);
    }
    for id in [CommandId::Ping, CommandId::Publish, CommandId::Spublish, CommandId::Config] {
        assert_eq!(single(id), None);
    }
    for spec in all() {
        let Some(position) = spec.single_key() else {
            continue;
        };
        let args = vec![b"x".as_slice(); spec.arity.unsigned_abs() as usize];
        let found = keys::keys(spec, args.as_slice()).unwrap();
        assert_eq!(found.len(), 1, "{}", spec.name);
        assert_eq!(found[0].position as usize, position, "{}", spec.name);
    }
}

#[test]
fn shard_channels_are_routed_and_are_no_keys() {
    let args = split("ssubscribe a b");
    let spec = spec(CommandId::Ssubscribe);
    assert!(keys::keys(spec, args.as_slice()).unwrap().is_empty());
    let routed = keys::routing_keys(spec, args.as_slice()).unwrap();
    assert_eq!(routed.iter().map(|key| key.position).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn channels_are_found() {
    let found = |id, argument_count| channels(spec(id), argument_count);
    assert_eq!(found(CommandId::Publish, 3), Some((ChannelUse::Publish, 1..2)));
    assert_eq!(found(CommandId::Psubscribe, 3), Some((ChannelUse::SubscribePattern, 1..3)));
    assert_eq!(found(CommandId::Unsubscribe, 1), Some((ChannelUse::Unsubscribe, 1..1)));
    assert_eq!(found(CommandId::Get, 2), None);
}

#[test]
fn many_keys_are_found() {
    let mut args = vec![b"del".as_slice()];
    args.resize(1001, b"k");
    let found = keys::keys(spec(CommandId::Del), args.as_slice()).unwrap();
    assert_eq!(found.len(), 1000);
    assert_eq!(found[999].position, 1000);
}

#[test]
fn keys_that_are_touched_but_not_told() {
    let positions = |line: &str, touched: bool| -> Option<Vec<u32>> {
        let args = split(line);
        let spec = lookup(args[0]).unwrap();
        let args = args.as_slice();
        let found = if touched { keys::touched_keys(spec, args) } else { keys::keys(spec, args) };
        Some(found.ok()?.iter().map(|key| key.position).collect())
    };
    for (line, told, touched) in [
        ("PFMERGE a", None, vec![1]),
        ("PFMERGE a b c", Some(vec![1, 2, 3]), vec![1, 2, 3]),
        ("GEORADIUS a 1 1 1 m STORE b STORE c", Some(vec![1, 7]), vec![1, 9]),
        ("GEORADIUSBYMEMBER a m 1 m STORE b STOREDIST c", Some(vec![1, 6, 8]), vec![1, 8]),
        ("GEORADIUS a 1 1 1 m", Some(vec![1]), vec![1]),
        ("GET a", Some(vec![1]), vec![1]),
    ] {
        assert_eq!(positions(line, false), told, "{line}");
        assert_eq!(positions(line, true), Some(touched), "{line}");
    }
}
