#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::*;
use crate::codec::{Reader, StringValue};
use crate::dump;

type Bytes = Vec<u8>;

fn text() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        any::<i64>().prop_flat_map(|wide| (0..64_u32).prop_map(move |shift| (wide >> shift).to_string().into_bytes())),
        (any::<u8>(), 0..300_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn texts() -> impl Strategy<Value = Vec<Bytes>> {
    proptest::collection::btree_set(text(), 1..40).prop_map(|set| set.into_iter().collect())
}

fn packed(texts: &[Bytes]) -> Listpack {
    let mut listpack = Listpack::new();
    texts.iter().for_each(|text| listpack.append(text));
    listpack
}

/// Everything a value holds, as strings; scores as their bits' text.
fn drain(decoded: Decoded<'_, '_>) -> Result<Vec<Bytes>, DecodeError> {
    let elements = |listpack: &Listpack| listpack.iter().map(|elem| elem.to_vec()).collect::<Vec<_>>();
    Ok(match decoded {
        Decoded::String(text) => vec![text.into_vec()],
        Decoded::ListElements(members) | Decoded::SetMembers(members) => {
            members.map(|member| member.map(StringValue::into_vec)).collect::<Result<_, _>>()?
        }
        Decoded::ListNodes(nodes) => {
            let mut all = vec![];
            for node in nodes {
                match node? {
                    ListNode::Plain(text) => all.push(text.into_vec()),
                    ListNode::Packed(listpack) => all.extend(elements(&listpack)),
                }
            }
            all
        }
        Decoded::Stream(mut stream) => {
            // The blocks; what follows is numbers and names that the keyspace reads one by one.
            let mut all = vec![];
            for _ in 0..stream.number()? {
                let (id, block) = stream.block()?;
                all.push(id.to_vec());
                all.extend(elements(&block));
            }
            all
        }
        Decoded::SetIntset(intset) => intset.iter().map(|value| value.to_string().into_bytes()).collect(),
        Decoded::SetListpack(listpack)
        | Decoded::ZsetListpack(listpack)
        | Decoded::HashListpack(listpack)
        | Decoded::HashTimedListpack(listpack) => elements(&listpack),
        Decoded::ZsetMembers(members) => {
            let mut all = vec![];
            for member in members {
                let (member, score) = member?;
                all.extend([member.into_vec(), score.to_bits().to_string().into_bytes()]);
            }
            all
        }
        Decoded::HashTimedFields(fields) => {
            let mut all = vec![];
            for field in fields {
                let (at_ms, field, value) = field?;
                all.extend([format!("{at_ms:?}").into_bytes(), field.into_vec(), value.into_vec()]);
            }
            all
        }
        Decoded::HashFields(fields) => {
            let mut all = vec![];
            for field in fields {
                let (field, value) = field?;
                all.extend([field.into_vec(), value.into_vec()]);
            }
            all
        }
    })
}

/// Writes a DUMP payload and reads it back.
fn round_trip(
    value_type: ValueType,
    compress: bool,
    write: &dyn Fn(&mut Writer<'_>),
) -> Result<Vec<Bytes>, DecodeError> {
    let mut payload = vec![];
    let mut writer = if compress { Writer::compressing(&mut payload) } else { Writer::new(&mut payload) };
    writer.value_type(value_type);
    write(&mut writer);
    dump::append_footer(&mut payload, 0);
    let mut body = dump::verify(&payload).unwrap();
    assert_eq!(body.version, 11);
    drain(body.decode()?)
}

proptest! {
    #[test]
    fn values_round_trip(texts in texts(), compress: bool, at in 0..40_usize) {
        let elem = |text: &Bytes| -> Bytes { text.clone() };
        let string = round_trip(ValueType::String, compress, &|writer| writer.string(&texts[0]));
        prop_assert_eq!(string.unwrap(), vec![elem(&texts[0])]);
        let set = round_trip(ValueType::Set, compress, &|writer| {
            writer.begin_set(texts.len());
            texts.iter().for_each(|text| writer.string(text));
        });
        prop_assert_eq!(&set.unwrap(), &texts);
        let set = round_trip(ValueType::SetListpack, compress, &|writer| writer.listpack(&packed(&texts)));
        prop_assert_eq!(&set.unwrap(), &texts);
        let fields: Vec<Bytes> = texts.iter().flat_map(|text| [text.clone(), b"v".to_vec()]).collect();
        let hash = round_trip(ValueType::HashListpack, compress, &|writer| writer.listpack(&packed(&fields)));
        prop_assert_eq!(&hash.unwrap(), &fields);
        let hash = round_trip(ValueType::Hash, compress, &|writer| {
            writer.begin_hash(texts.len());
            texts.iter().for_each(|text| writer.field(Elem::Bytes(text), Elem::Bytes(b"v")));
        });
        prop_assert_eq!(&hash.unwrap(), &fields);
        let (head, tail) = texts.split_at(at.min(texts.len()));
        let list = round_trip(ValueType::ListQuicklist2, compress, &|writer| {
            writer.begin_list(3);
            writer.list_packed(&packed(head));
            writer.list_plain(b"plain");
            writer.list_packed(&packed(tail));
        });
        let expected: Vec<Bytes> = head.iter().cloned().chain([b"plain".to_vec()]).chain(tail.iter().cloned()).collect();
        prop_assert_eq!(list.unwrap(), expected);
    }

    #[test]
    fn sorted_sets_round_trip(scores in proptest::collection::vec(any::<i32>(), 1..30), compress: bool) {
        let mut scores: Vec<f64> = scores.into_iter().map(|score| f64::from(score) / 4.0).collect();
        let zset = round_trip(ValueType::Zset2, compress, &|writer| {
            writer.begin_zset(scores.len());
            scores.iter().for_each(|score| writer.scored_member(b"m", *score));
        });
        let expected: Vec<Bytes> =
            scores.iter().flat_map(|score| [b"m".to_vec(), score.to_bits().to_string().into_bytes()]).collect();
        prop_assert_eq!(zset.unwrap(), expected);
        scores.sort_by(f64::total_cmp);
        let mut listpack = Listpack::new();
        for (index, score) in scores.iter().enumerate() {
            listpack.append(format!("{index:04}m").as_bytes());
            listpack.append(resp::num::format_double(*score, &mut [0; 32]));
        }
        let zset = round_trip(ValueType::ZsetListpack, compress, &|writer| writer.listpack(&listpack));
        prop_assert_eq!(zset.unwrap().len(), scores.len() * 2);
        if scores.first() != scores.last() {
            let mut backwards = Listpack::new();
            for pair in listpack.pairs().rev() {
                backwards.append_elem(pair.0);
                backwards.append_elem(pair.1);
            }
            let zset = round_trip(ValueType::ZsetListpack, compress, &|writer| writer.listpack(&backwards));
            prop_assert_eq!(zset, Err(DecodeError::Malformed("sorted set listpack")));
        }
    }

    #[test]
    fn intsets_round_trip(values in proptest::collection::btree_set(any::<i64>(), 1..60)) {
        let mut intset = Intset::new();
        values.iter().for_each(|value| { intset.insert(*value); });
        let expected: Vec<Bytes> = values.iter().map(|value| value.to_string().into_bytes()).collect();
        prop_assert_eq!(round_trip(ValueType::SetIntset, true, &|writer| writer.intset(&intset)).unwrap(), expected);
    }

    #[test]
    fn hostile_bytes_end(value_type in 0..22_u8, bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(value_type) = ValueType::from_byte(value_type)
            && let Ok(decoded) = decode(value_type, &mut Reader::new(&bytes), Scrutiny::Full)
        {
            let _ = drain(decoded);
        }
    }

    #[test]
    fn damaged_payloads_are_refused(texts in texts(), at in any::<usize>(), bit in 0..8_u32) {
        let mut payload = vec![];
        let mut writer = Writer::new(&mut payload);
        writer.value_type(ValueType::SetListpack);
        writer.listpack(&packed(&texts));
        dump::append_footer(&mut payload, 0);
        let at = at % payload.len();
        payload[at] ^= 1 << bit;
        prop_assert!(dump::verify(&payload).is_err());
    }
}

#[test]
fn duplicates_and_empty_containers_are_refused() {
    let twice = packed(&[b"7".to_vec(), b"x".to_vec(), b"7".to_vec(), b"y".to_vec()]);
    let read = |value_type, listpack: &Listpack| round_trip(value_type, false, &|writer| writer.listpack(listpack));
    assert_eq!(read(ValueType::SetListpack, &twice), Err(DecodeError::Duplicate("set listpack")));
    assert_eq!(read(ValueType::HashListpack, &twice), Err(DecodeError::Duplicate("hash listpack")));
    assert_eq!(read(ValueType::ZsetListpack, &twice), Err(DecodeError::Duplicate("sorted set listpack")));
    let odd = packed(&[b"a".to_vec()]);
    assert_eq!(read(ValueType::HashListpack, &odd), Err(DecodeError::Malformed("hash listpack")));
    assert_eq!(read(ValueType::HashListpack, &Listpack::new()), Err(DecodeError::Empty));
    assert_eq!(round_trip(ValueType::Set, false, &|writer| writer.begin_set(0)), Err(DecodeError::Empty));
    let hollow = round_trip(ValueType::ListQuicklist2, false, &|writer| {
        writer.begin_list(1);
        writer.list_packed(&Listpack::new());
    });
    assert_eq!(hollow, Err(DecodeError::Empty));
    let nan = round_trip(ValueType::Zset2, false, &|writer| {
        writer.begin_zset(1);
        writer.scored_member(b"m", f64::NAN);
    });
    assert_eq!(nan, Err(DecodeError::ScoreNotANumber));
    // An integer's text stored as a string is the same member.
    let blob = [14, 0, 0, 0, 2, 0, 7, 1, 0x81, b'7', 2, 0xff];
    let mut sneaky = blob.to_vec();
    sneaky[0] = u8::try_from(blob.len()).unwrap();
    let sneaky = Listpack::from_bytes(&sneaky).unwrap();
    assert_eq!(read(ValueType::SetListpack, &sneaky), Err(DecodeError::Duplicate("set listpack")));
}

#[test]
fn old_types_are_read() {
    let read = |value_type, blob: &[u8]| round_trip(value_type, false, &|writer| writer.string(blob));
    // A ziplist of "a" and 1.
    let ziplist = [16, 0, 0, 0, 13, 0, 0, 0, 2, 0, 0, 1, b'a', 3, 0xf2, 0xff];
    let expected = vec![b"a".to_vec(), b"1".to_vec()];
    assert_eq!(read(ValueType::ListZiplist, &ziplist).as_ref(), Ok(&expected));
    assert_eq!(read(ValueType::HashZiplist, &ziplist).as_ref(), Ok(&expected));
    assert_eq!(read(ValueType::ZsetZiplist, &ziplist).as_ref(), Ok(&expected));
    assert_eq!(read(ValueType::HashZipmap, b"\x01\x01a\x01\x001\xff").as_ref(), Ok(&expected));
    let quicklist = round_trip(ValueType::ListQuicklist, false, &|writer| {
        writer.begin_list(2);
        writer.string(&ziplist);
        writer.string(&ziplist);
    });
    assert_eq!(quicklist.unwrap(), [expected.clone(), expected.clone()].concat());
    let zset = round_trip(ValueType::Zset, false, &|writer| {
        writer.begin_zset(1);
        writer.string(b"m");
        writer.raw(b"\x033.5");
    });
    assert_eq!(zset.unwrap(), [b"m".to_vec(), 3.5_f64.to_bits().to_string().into_bytes()]);
}

#[test]
fn unknown_and_unsupported_types_have_their_errors() {
    assert_eq!(ValueType::from_byte(8), Err(DecodeError::UnknownType(8)));
    assert_eq!(ValueType::from_byte(22), Err(DecodeError::UnknownType(22)));
    for byte in (0..22).filter(|byte| *byte != 8) {
        assert_eq!(ValueType::from_byte(byte).unwrap().byte(), byte);
    }
    let module = round_trip(ValueType::Module2, false, &|_| {});
    assert_eq!(module, Err(DecodeError::Unsupported(ValueType::Module2)));
}

#[test]
fn parts_of_streams_come_back() {
    let block = packed(&[b"1".to_vec(), b"field".to_vec()]);
    let written = |writer: &mut Writer<'_>| {
        writer.length(1);
        writer.stream_block(&[7; 16], &block);
    };
    for value_type in [ValueType::StreamListpacks, ValueType::StreamListpacks2, ValueType::StreamListpacks3] {
        let parts = round_trip(value_type, true, &written);
        assert_eq!(parts.unwrap(), [vec![7; 16], b"1".to_vec(), b"field".to_vec()]);
    }
    let short = round_trip(ValueType::StreamListpacks, false, &|writer| {
        writer.length(u64::MAX);
        writer.string(b"fifteen bytes..");
    });
    assert_eq!(short, Err(DecodeError::Malformed("stream block id")));
    let truncated = round_trip(ValueType::StreamListpacks, false, &|writer| writer.length(u64::MAX));
    assert_eq!(truncated, Err(DecodeError::Truncated));
}

#[test]
fn footers_of_newer_versions_are_refused() {
    let mut payload = b"kept\x00\x01x".to_vec();
    dump::append_footer_of_version(&mut payload, 4, 12);
    assert!(dump::verify(&payload[4..]).is_err());
    assert!(dump::verify_version_only(&payload[4..]).is_err());
    payload.truncate(7);
    dump::append_footer_of_version(&mut payload, 4, 9);
    assert_eq!(drain(dump::verify(&payload[4..]).unwrap().decode().unwrap()), Ok(vec![b"x".to_vec()]));
    let last = payload.len() - 1;
    payload[last] ^= 1;
    assert!(dump::verify(&payload[4..]).is_err());
    assert!(dump::verify_version_only(&payload[4..]).is_ok());
    assert!(dump::verify(b"\x00\x01x").is_err());
}
