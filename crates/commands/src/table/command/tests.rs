//! Replies of COMMAND as bytes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use resp::{Proto, Reply};

use crate::table::{CommandId, command, help, top_level};

fn replied(proto: Proto, write: impl FnOnce(&mut Reply)) -> String {
    let mut reply = Reply::with_buffer(Vec::new(), proto);
    write(&mut reply);
    String::from_utf8(reply.buf).unwrap().replace("\r\n", " ")
}

fn run(line: &str, function: fn(&[Vec<u8>], &mut Reply)) -> String {
    let args: Vec<Vec<u8>> = line.split(' ').map(Into::into).collect();
    replied(Proto::Resp2, |reply| function(&args, reply))
}

const GET: &str = "*10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 \
    *6 $5 flags *2 +RO +access $12 begin_search *4 $4 type $5 index $4 spec *2 $5 index :1 \
    $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0 ";

#[test]
fn info_has_ten_fields() {
    assert_eq!(run("command info get nothing", command::info), format!("*2 {GET}$-1 "));
}

#[test]
fn info_in_resp3_has_sets_and_maps() {
    let args: [&[u8]; 3] = [b"command", b"info", b"GET"];
    assert_eq!(
        replied(Proto::Resp3, |reply| command::info(args.as_slice(), reply)),
        "*1 *10 $3 get :2 ~2 +readonly +fast :1 :1 :1 ~3 +@read +@string +@fast ~0 ~1 \
         %3 $5 flags ~2 +RO +access $12 begin_search %2 $4 type $5 index $4 spec %1 $5 index :1 \
         $9 find_keys %2 $4 type $5 range $4 spec %3 $7 lastkey :0 $7 keystep :1 $5 limit :0 ~0 "
    );
}

#[test]
fn info_of_containers_has_their_subcommands() {
    let reply = run("command info config", command::info);
    assert!(reply.starts_with("*1 *10 $6 config :-2 *0 :0 :0 :0 *1 +@slow *0 *0 *5 *10 $10 config|get"));
    assert_eq!(run("command info", command::info), replied(Proto::Resp2, command::all));
}

#[test]
fn every_reply_is_well_formed() {
    let args: &[&[u8]] = &[b"command", b"x"];
    for proto in [Proto::Resp2, Proto::Resp3] {
        let mut reply = Reply::with_buffer(Vec::new(), proto);
        command::docs(args, &mut reply);
        command::info(args, &mut reply);
        command::list(args, &mut reply);
        let mut rest = reply.as_slice();
        for _ in 0..3 {
            let (_, length) = resp::parse_reply(rest).unwrap().unwrap();
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }
}

#[test]
fn docs_tell_what_is_known() {
    assert_eq!(
        run("command docs nothing getset", command::docs),
        "*2 $6 getset *16 $7 summary $41 Sets a string and returns the one before. \
         $5 since $5 1.0.0 $5 group $6 string $10 complexity $4 O(1) \
         $9 doc_flags *1 +deprecated $16 deprecated_since $5 6.2.0 \
         $11 replaced_by $30 `SET` with the `!GET` argument $9 arguments *2 \
         *8 $4 name $3 key $4 type $3 key $12 display_text $3 key $14 key_spec_index :0 \
         *6 $4 name $5 value $4 type $6 string $12 display_text $5 value "
    );
}

#[test]
fn list_filters() {
    let names = |line| {
        let reply = run(line, command::list);
        reply.split(' ').filter(|part| !part.starts_with(['$', '*'])).collect::<Vec<_>>().join(" ")
    };
    let sorted = |line| {
        let mut words: Vec<_> = names(line).split(' ').map(str::to_owned).collect();
        words.sort();
        words.join(" ").trim().to_owned()
    };
    assert_eq!(sorted("command list filterby pattern xgroup|DEL*"), "xgroup|delconsumer");
    assert_eq!(sorted("COMMAND LIST FILTERBY ACLCAT HyperLogLog"), "pfadd pfcount pfdebug pfmerge pfselftest");
    assert_eq!(run("command list filterby aclcat nothing", command::list), "*0 ");
    assert_eq!(run("command list filterby module m", command::list), "*0 ");
    assert_eq!(run("command list filterby other x", command::list), "-ERR syntax error ");
    assert_eq!(run("command list filterby module", command::list), "-ERR syntax error ");
    assert_eq!(run("command list filterby module a b", command::list), "-ERR syntax error ");
    // Those of Redis 7.2 and ours.
    let ours = crate::table::beyond_redis().count();
    let all = run("command list", command::list);
    let below: usize = crate::table::beyond_redis().map(|spec| spec.subcommands.len()).sum();
    assert!(
        all.starts_with(&format!("*{} ", 370 + ours + below)),
        "{ours}, {below}: {}",
        all.get(..8).unwrap_or_default()
    );
    assert_eq!(replied(Proto::Resp2, command::count), format!(":{} ", 241 + ours));
}

#[test]
fn keys_are_shown() {
    let check = |line: &str, expected: &str| {
        assert_eq!(run(&format!("command getkeys {line}"), command::get_keys), expected, "{line}");
    };
    check("mset a 1 b 2", "*2 $1 a $1 b ");
    check("eval x 0", "*0 ");
    check("nothing a", "-ERR Invalid command specified ");
    check("config nothing", "-ERR Invalid command specified ");
    check("ping", "-ERR The command has no key arguments ");
    check("get", "-ERR Invalid number of arguments specified for command ");
    check("zunionstore a 9 b", "-ERR Invalid arguments specified for command ");
    assert_eq!(
        run("command getkeysandflags set a 1 get", command::get_keys_and_flags),
        "*1 *2 $1 a *3 +RW +access +update "
    );
}

#[test]
fn each_container_with_help_has_one() {
    for spec in top_level() {
        let has_help = spec.subcommands.iter().any(|sub| sub.short_name() == "help") || spec.id == CommandId::Debug;
        let args: [&[u8]; 2] = [spec.name.as_bytes(), b"help"];
        let mut reply = Reply::new();
        assert_eq!(help::write(spec.id, args.as_slice(), &mut reply), has_help, "{}", spec.name);
        if has_help {
            let (_, length) = resp::parse_reply(&reply.buf).unwrap().unwrap();
            assert_eq!(length, reply.buf.len());
        }
    }
}

#[test]
fn help_begins_and_ends_as_in_redis() {
    let args: [&[u8]; 2] = [b"Xinfo", b"help"];
    let reply = replied(Proto::Resp2, |reply| {
        help::write(CommandId::Xinfo, args.as_slice(), reply);
    });
    assert!(reply.starts_with(
        "*9 +XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are: \
         +CONSUMERS <key> <groupname> +    "
    ));
    assert!(reply.ends_with(" +HELP +    Print this help. "));
}
