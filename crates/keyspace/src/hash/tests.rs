#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{HashMap, HashSet};

use fastrand::Rng;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { max_listpack_entries: 8, max_listpack_value: 12 };
const WIDE: Limits = Limits { max_listpack_entries: 512, max_listpack_value: 64 };

type Model = HashMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, Vec<u8>),
    SetNx(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Get(Vec<u8>),
    Convert,
    Copy,
}

/// Few different strings, so that steps meet: integers, near-integers, long ones.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (-3_i64..20).prop_map(|number| number.to_string().into_bytes()),
        2 => (0..30).prop_map(|number| format!("f{number}").into_bytes()),
        1 => prop_oneof![Just("01"), Just("+1"), Just("-0"), Just(""), Just("9223372036854775807"), Just("a\0b")]
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => (10..14_usize).prop_map(|len| vec![b'x'; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (text(), text()).prop_map(|(field, value)| Step::Set(field, value)),
        2 => (text(), text()).prop_map(|(field, value)| Step::SetNx(field, value)),
        4 => text().prop_map(Step::Delete),
        3 => text().prop_map(Step::Get),
        1 => Just(Step::Convert),
        1 => Just(Step::Copy),
    ]
}

fn contents(hash: &Hash) -> Model {
    let all: Vec<_> = hash.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    let len = all.len();
    let model: Model = all.into_iter().collect();
    assert_eq!(model.len(), len, "each field once");
    model
}

proptest! {
    #[test]
    fn a_hash_is_like_the_model(steps in prop::collection::vec(step(), 1..120), wide in any::<bool>()) {
        let limits = if wide { WIDE } else { LIMITS };
        let mut hash = Hash::new();
        let mut model = Model::new();
        let mut is_table = false;
        for step in steps {
            match step {
                Step::Set(field, value) => {
                    is_table |= field.len().max(value.len()) > limits.max_listpack_value;
                    let is_new = hash.set(&field, &value, &limits);
                    prop_assert_eq!(is_new, model.insert(field, value).is_none());
                }
                Step::SetNx(field, value) => {
                    let is_new = !model.contains_key(&field);
                    is_table |= is_new && field.len().max(value.len()) > limits.max_listpack_value;
                    prop_assert_eq!(hash.set_nx(&field, &value, &limits), is_new);
                    model.entry(field).or_insert(value);
                }
                Step::Delete(field) => prop_assert_eq!(hash.delete(&field), model.remove(&field).is_some()),
                Step::Get(field) => {
                    let value = model.get(&field);
                    let found = hash.get(&field).map(|value| value.to_vec());
                    prop_assert_eq!(found.as_ref(), value);
                    prop_assert_eq!(hash.contains(&field), value.is_some());
                    prop_assert_eq!(hash.value_len(&field), value.map(Vec::len));
                }
                Step::Convert => {
                    hash.convert();
                    is_table = true;
                }
                Step::Copy => hash = hash.clone(),
            }
            is_table |= model.len() > limits.max_listpack_entries;
            hash.check();
            prop_assert_eq!(hash.encoding() == Encoding::Hashtable, is_table);
            prop_assert_eq!(hash.len(), model.len());
            prop_assert_eq!(hash.is_empty(), model.is_empty());
            prop_assert_eq!(contents(&hash), model.clone());
        }
    }

    #[test]
    fn random_fields_are_fields(len in 0_usize..60, count in 0_usize..90, table in any::<bool>(), seed in any::<u64>()) {
        let mut hash = Hash::new();
        for number in 0..len {
            hash.set(number.to_string().as_bytes(), b"v", &WIDE);
        }
        if table {
            hash.convert();
        }
        let mut rng = Rng::with_seed(seed);
        let mut distinct = Vec::new();
        let visited = hash.random_distinct(&mut rng, count, |name, _| distinct.push(name.to_vec()));
        prop_assert_eq!(visited, count.min(len));
        prop_assert_eq!(distinct.len(), visited);
        prop_assert!(distinct.iter().all(|name| hash.contains(name)));
        prop_assert_eq!(distinct.iter().collect::<HashSet<_>>().len(), visited);
        let mut repeated = Vec::new();
        hash.random_with_repeats(&mut rng, count, |name, value| repeated.push((name.to_vec(), value.to_vec())));
        prop_assert_eq!(repeated.len(), if len == 0 { 0 } else { count });
        prop_assert!(repeated.iter().all(|(name, value)| hash.contains(name) && value == b"v"));
        prop_assert_eq!(hash.random(&mut rng).is_some(), len > 0);
    }
}

#[test]
fn arguments_decide_together() {
    let texts: [&[u8]; 4] = [b"a", b"1", b"b", b"2"];
    let one_entry = Limits { max_listpack_entries: 1, max_listpack_value: 64 };
    let mut hash = Hash::new();
    hash.prepare(texts.into_iter(), &one_entry);
    assert_eq!(hash.encoding(), Encoding::Hashtable);
    let mut hash = Hash::new();
    hash.prepare(texts.into_iter(), &WIDE);
    assert_eq!(hash.encoding(), Encoding::Listpack);
    hash.prepare([&b"a"[..], &[b'x'; 65]].into_iter(), &WIDE);
    assert_eq!(hash.encoding(), Encoding::Hashtable);
}

#[test]
fn a_listpack_from_outside_must_be_pairs() {
    let of = |texts: &[&[u8]]| {
        let mut listpack = Listpack::new();
        texts.iter().for_each(|text| listpack.append(text));
        Hash::from_listpack(listpack)
    };
    assert_eq!(of(&[b"a", b"1", b"b", b"1"]).unwrap().len(), 2);
    assert_eq!(of(&[]).unwrap().len(), 0);
    assert_eq!(of(&[b"a", b"1", b"b"]).unwrap_err(), NotPairs);
    assert_eq!(of(&[b"a", b"1", b"a", b"2"]).unwrap_err(), NotPairs);
    let mut big = of(&[b"a", b"1", b"b", &[b'x'; 65]]).unwrap();
    big.convert_if_over(&WIDE);
    assert_eq!(big.encoding(), Encoding::Hashtable);
}

#[test]
fn a_scan_of_a_table_returns_every_field() {
    let mut hash = Hash::new();
    for number in 0..3_000 {
        hash.set(format!("field:{number:012}").as_bytes(), b"xxx", &WIDE);
    }
    let mut seen = HashSet::new();
    let mut cursor = 0;
    loop {
        cursor = hash.scan(cursor, 10, |name, value| {
            assert!(value.eq_bytes(b"xxx"));
            seen.insert(name.to_vec());
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen.len(), 3_000);
}

#[test]
fn a_raw_word_comes_back() {
    let mut hash = Hash::new();
    hash.set(b"a", b"1", &WIDE);
    for _ in 0..2 {
        let raw = hash.into_raw();
        assert_eq!(raw.addr().get() & 0xc, 0, "bits 2 and 3 are free");
        // SAFETY: just given up.
        hash = unsafe { Hash::from_raw(raw) };
        assert!(hash.get(b"a").unwrap().eq_bytes(b"1"));
        hash.convert();
    }
    assert!(matches!(hash.into_parts(), Parts::Table(table) if table.len() == 1));
}

#[test]
fn a_big_hash_costs_at_most_forty_six_bytes_per_field() {
    let mut hash = Hash::new();
    for number in 0..200_000_usize {
        hash.set(format!("field:{number:012}").as_bytes(), b"xxx", &WIDE);
        if number > 10_000 && number.is_multiple_of(5_000) {
            let bytes = hash.memory_bytes(1);
            assert!(bytes <= 46 * (number + 1), "{bytes} bytes for {number} fields");
        }
    }
    assert_eq!(hash.memory_bytes(0), hash.memory_bytes(5));
}
