//! DUMP and RESTORE in both directions against the installed Redis (7.0: RDB version 10, no set listpacks).

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use rdb::codec::{StringValue, Writer};
use rdb::dump;
use rdb::intset::Intset;
use rdb::listpack::{Elem, Listpack};
use rdb::value::{Decoded, ListNode, ValueType};
use support::{Redis, Reply};

type Bytes = Vec<u8>;

/// The newest RDB version that Redis 7.0 reads.
const VERSION_OF_7_0: u16 = 10;

fn random_source() -> fastrand::Rng {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

fn random_text(random: &mut fastrand::Rng, longest: usize) -> Bytes {
    match random.u8(0..5) {
        0 => (random.i64(..) >> random.u32(0..64)).to_string().into_bytes(),
        1 => random.i64(-200..5000).to_string().into_bytes(),
        2 => (0..random.usize(0..=longest)).map(|_| random.u8(..)).collect(),
        3 => vec![random.u8(b'a'..=b'z'); random.usize(0..=longest)],
        _ => (0..random.usize(0..=longest)).map(|_| random.u8(b'a'..=b'd')).collect(),
    }
}

fn distinct_texts(random: &mut fastrand::Rng, count: usize, longest: usize) -> Vec<Bytes> {
    let mut texts: Vec<Bytes> = (0..count).map(|_| random_text(random, longest)).collect();
    texts.sort();
    texts.dedup();
    random.shuffle(&mut texts);
    texts
}

fn payload(value_type: ValueType, compress: bool, write: &dyn Fn(&mut Writer<'_>)) -> Bytes {
    let mut out = vec![];
    let mut writer = if compress { Writer::compressing(&mut out) } else { Writer::new(&mut out) };
    writer.value_type(value_type);
    write(&mut writer);
    dump::append_footer_of_version(&mut out, 0, VERSION_OF_7_0);
    out
}

fn call(redis: &mut Redis, words: &[&str], texts: &[Bytes]) {
    let arguments: Vec<&[u8]> =
        words.iter().map(|word| word.as_bytes()).chain(texts.iter().map(Vec::as_slice)).collect();
    let reply = redis.call(&arguments);
    assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
}

fn restore(redis: &mut Redis, payload: &[u8]) {
    let reply = redis.call(&[b"RESTORE", b"k", b"0", payload, b"REPLACE"]);
    assert_eq!(reply, Reply::Text(b"OK".to_vec()), "{payload:02x?}");
}

fn packed(texts: &[Bytes]) -> Listpack {
    let mut listpack = Listpack::new();
    texts.iter().for_each(|text| listpack.append(text));
    listpack
}

/// All strings of a value, scores as doubles' text.
fn contents(payload: &[u8]) -> Vec<Bytes> {
    let mut payload = dump::verify(payload).unwrap();
    let elements = |listpack: &Listpack| listpack.iter().map(|elem| elem.to_vec()).collect::<Vec<_>>();
    let text = |value: Result<StringValue<'_>, _>| value.unwrap().into_vec();
    match payload.decode().unwrap() {
        Decoded::String(text) => vec![text.into_vec()],
        Decoded::ListElements(members) | Decoded::SetMembers(members) => members.map(text).collect(),
        Decoded::ListNodes(nodes) => nodes
            .flat_map(|node| match node.unwrap() {
                ListNode::Plain(text) => vec![text.into_vec()],
                ListNode::Packed(listpack) => elements(&listpack),
            })
            .collect(),
        Decoded::Stream(_) => Vec::new(),
        Decoded::SetIntset(intset) => intset.iter().map(|value| value.to_string().into_bytes()).collect(),
        Decoded::SetListpack(listpack) | Decoded::ZsetListpack(listpack) | Decoded::HashListpack(listpack) => {
            elements(&listpack)
        }
        Decoded::ZsetMembers(members) => {
            let mut pairs: Vec<_> =
                members.map(|pair| pair.map(|(member, score)| (score, member.into_vec())).unwrap()).collect();
            pairs.reverse();
            pairs.into_iter().flat_map(|(score, member)| [member, score.to_string().into_bytes()]).collect()
        }
        Decoded::HashTimedFields(_) | Decoded::HashTimedListpack(_) => panic!("Redis 7.2 knows no fields that end"),
        Decoded::HashFields(fields) => {
            fields.flat_map(|pair| pair.map(|(field, value)| [field.into_vec(), value.into_vec()]).unwrap()).collect()
        }
    }
}

#[test]
fn our_listpacks_come_back_with_equal_bytes() {
    let Some(mut redis) = Redis::start("listpack") else { return };
    let mut random = random_source();
    call(&mut redis, &["CONFIG", "SET", "rdbcompression", "no", "sanitize-dump-payload", "yes"], &[]);
    call(
        &mut redis,
        &["CONFIG", "SET", "hash-max-listpack-entries", "100000", "hash-max-listpack-value", "100000"],
        &[],
    );
    for _ in 0..300 {
        let longest = random.choice([20, 70, 5000, 17_000]).unwrap();
        let count = random.usize(1..40);
        let fields: Vec<Bytes> = distinct_texts(&mut random, count, longest)
            .into_iter()
            .flat_map(|field| {
                let value = random_text(&mut random, longest);
                [field, value]
            })
            .collect();
        let ours = payload(ValueType::HashListpack, false, &|writer| writer.listpack(&packed(&fields)));
        restore(&mut redis, &ours);
        assert_eq!(redis.text(&[b"DUMP", b"k"]), ours);
        // Built by Redis itself, entry by entry: the same bytes.
        call(&mut redis, &["DEL", "h"], &[]);
        call(&mut redis, &["HSET", "h"], &fields);
        assert_eq!(redis.text(&[b"DUMP", b"h"]), ours);
        // As field-value stream.
        let stream = payload(ValueType::Hash, true, &|writer| {
            writer.begin_hash(fields.len() / 2);
            fields.chunks(2).for_each(|pair| writer.field(Elem::Bytes(&pair[0]), Elem::Bytes(&pair[1])));
        });
        restore(&mut redis, &stream);
        assert_eq!(redis.text(&[b"DUMP", b"k"]), ours);
    }
}

#[test]
fn lists_and_strings_agree() {
    let Some(mut redis) = Redis::start("list") else { return };
    let mut random = random_source();
    for case in 0..200 {
        let longest = random.choice([20, 70, 9000]).unwrap();
        call(&mut redis, &["CONFIG", "SET", "rdbcompression", if case % 2 == 0 { "yes" } else { "no" }], &[]);
        let texts: Vec<Bytes> = (0..random.usize(2..200)).map(|_| random_text(&mut random, longest)).collect();
        call(&mut redis, &["DEL", "k"], &[]);
        call(&mut redis, &["RPUSH", "k"], &texts);
        assert_eq!(contents(&redis.text(&[b"DUMP", b"k"])), texts);
        let (head, tail) = texts.split_at(texts.len() / 2);
        let ours = payload(ValueType::ListQuicklist2, case % 3 == 0, &|writer| {
            writer.begin_list(3);
            writer.list_packed(&packed(head));
            writer.list_plain(b"a plain node");
            writer.list_packed(&packed(tail));
        });
        restore(&mut redis, &ours);
        let expected: Vec<Bytes> = [head, &[b"a plain node".to_vec()], tail].concat();
        assert_eq!(redis.texts(&[b"LRANGE", b"k", b"0", b"-1"]), expected);

        let text = &texts[0];
        redis.call(&[b"SET", b"k", text]);
        let theirs = redis.text(&[b"DUMP", b"k"]);
        assert_eq!(contents(&theirs), std::slice::from_ref(text));
        let ours = payload(ValueType::String, case % 2 == 0, &|writer| writer.string(text));
        if case % 2 == 1 || text.len() <= 20 {
            assert_eq!(ours, theirs);
        }
        restore(&mut redis, &ours);
        assert_eq!(redis.text(&[b"GET", b"k"]), *text);
    }
}

#[test]
fn sets_and_sorted_sets_agree() {
    let Some(mut redis) = Redis::start("set") else { return };
    let mut random = random_source();
    for case in 0..200 {
        let wide = random.choice([100, 40_000, i64::MAX]).unwrap();
        let mut intset = Intset::new();
        (0..random.usize(1..200)).for_each(|_| {
            intset.insert(random.i64(-wide..wide));
        });
        let members: Vec<Bytes> = intset.iter().map(|value| value.to_string().into_bytes()).collect();
        call(&mut redis, &["DEL", "k"], &[]);
        call(&mut redis, &["CONFIG", "SET", "rdbcompression", "no"], &[]);
        call(&mut redis, &["SADD", "k"], &members);
        let ours = payload(ValueType::SetIntset, false, &|writer| writer.intset(&intset));
        assert_eq!(redis.text(&[b"DUMP", b"k"]), ours);
        restore(&mut redis, &ours);

        let count = random.usize(1..60);
        let mut members = distinct_texts(&mut random, count, 80);
        call(&mut redis, &["DEL", "k"], &[]);
        call(&mut redis, &["SADD", "k"], &members);
        let mut theirs = contents(&redis.text(&[b"DUMP", b"k"]));
        let ours = payload(ValueType::Set, case % 2 == 0, &|writer| {
            writer.begin_set(members.len());
            members.iter().for_each(|member| writer.string(member));
        });
        restore(&mut redis, &ours);
        let mut back = redis.texts(&[b"SMEMBERS", b"k"]);
        members.sort();
        theirs.sort();
        back.sort();
        assert_eq!((&theirs, &back), (&members, &members));

        sorted_sets(&mut redis, &members, &mut random);
    }
}

fn sorted_sets(redis: &mut Redis, members: &[Bytes], random: &mut fastrand::Rng) {
    let mut pairs: Vec<(i32, &Bytes)> = members.iter().map(|member| (random.i32(-9..9), member)).collect();
    pairs.sort();
    let scores_and_members: Vec<Bytes> =
        pairs.iter().flat_map(|(score, member)| [score.to_string().into_bytes(), member.to_vec()]).collect();
    let members_and_scores: Vec<Bytes> =
        pairs.iter().flat_map(|(score, member)| [member.to_vec(), score.to_string().into_bytes()]).collect();
    for threshold in ["0", "128"] {
        call(redis, &["CONFIG", "SET", "zset-max-listpack-entries", threshold, "zset-max-listpack-value", "100"], &[]);
        call(redis, &["DEL", "k"], &[]);
        call(redis, &["ZADD", "k"], &scores_and_members);
        assert_eq!(contents(&redis.text(&[b"DUMP", b"k"])), members_and_scores);
        let packed = payload(ValueType::ZsetListpack, false, &|writer| writer.listpack(&packed(&members_and_scores)));
        let stream = payload(ValueType::Zset2, true, &|writer| {
            writer.begin_zset(pairs.len());
            pairs.iter().rev().for_each(|(score, member)| writer.scored_member(member, f64::from(*score)));
        });
        if threshold == "128" {
            assert_eq!(redis.text(&[b"DUMP", b"k"]), packed);
        }
        for ours in [packed, stream] {
            restore(redis, &ours);
            assert_eq!(redis.texts(&[b"ZRANGE", b"k", b"0", b"-1", b"WITHSCORES"]), members_and_scores);
        }
    }
}
