//! Values in RDB's bytes, and the packed blobs inside them.

use keyspace::codec::{ValueLimits, read_value, value_type, write_value};
use keyspace::{Entry, hash, list, set, zset};
use rdb::codec::Writer;
use rdb::dump::{append_footer, verify_version_only};
use rdb::intset::Intset;
use rdb::listpack::Listpack;
use rdb::lzf as compression;
use rdb::value::ValueType;
use rdb::ziplist::Ziplist;
use rdb::zipmap::Zipmap;

pub(crate) const WORDS: &[&[u8]] = &[
    b"REDIS0011",
    b"\xff",
    b"\xfe\x00",
    b"\xfa",
    b"\xfb",
    b"\xfc\0\0\0\0\0\0\0\0",
    b"\xf5",
    b"\xf7",
    b"\xc0\x05",
    b"\xc1\x05\x00",
    b"\xc2\x05\x00\x00\x00",
    b"\xc3\x05\x40\x65\x00a\xe0\x5b\x00",
    b"\x80\xff\xff\xff\xff",
    b"\x81\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x81a\x02",
    b"\x01\x01",
];

const HASH: hash::Limits = hash::Limits { max_listpack_entries: 128, max_listpack_value: 64 };
const SET: set::Limits = set::Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 };
const ZSET: zset::ZSetLimits = zset::ZSetLimits { max_listpack_entries: 128, max_listpack_value: 64 };

/// The limits of a server's defaults.
pub(crate) fn limits(list: &list::ListLimits) -> ValueLimits<'_> {
    ValueLimits { hash: &HASH, set: &SET, zset: &ZSET, list }
}

/// A DUMP payload without footer, of one of `kinds`: the first byte chooses. What is taken is written and read again.
fn dump(kinds: &[ValueType], data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let kind = kinds[usize::from(*first) % kinds.len()];
    let mut payload = [&[kind.byte()], body].concat();
    append_footer(&mut payload, 0);
    let Ok(mut payload) = verify_version_only(&payload) else { return };
    let Ok(decoded) = payload.decode() else { return };
    let list = list::ListLimits::default();
    let Ok(value) = read_value(decoded, limits(&list)) else { return };
    let value = Entry::new(b"key", value, None);
    let written = |value: &Entry| {
        let mut bytes = Vec::new();
        let mut writer = Writer::compressing(&mut bytes);
        writer.value_type(value_type(value.value()));
        write_value(&mut writer, value.value());
        append_footer(&mut bytes, 0);
        bytes
    };
    let bytes = written(&value);
    let Ok(mut again) = verify_version_only(&bytes) else { panic!("what was written has no footer") };
    let decoded = again.decode().unwrap_or_else(|error| panic!("what was written is refused: {error}"));
    let again = read_value(decoded, limits(&list)).unwrap_or_else(|error| panic!("what was written is none: {error}"));
    let again = Entry::new(b"key", again, None);
    let (one, other) = (written(&value).len(), written(&again).len());
    assert_eq!(one, other, "a value changes its size by being written and read");
}

pub(crate) fn dump_string(data: &[u8]) {
    dump(&[ValueType::String], data);
}

pub(crate) fn dump_list(data: &[u8]) {
    dump(&[ValueType::List, ValueType::ListZiplist, ValueType::ListQuicklist, ValueType::ListQuicklist2], data);
}

pub(crate) fn dump_set(data: &[u8]) {
    dump(&[ValueType::Set, ValueType::SetIntset, ValueType::SetListpack], data);
}

pub(crate) fn dump_zset(data: &[u8]) {
    dump(&[ValueType::Zset, ValueType::Zset2, ValueType::ZsetZiplist, ValueType::ZsetListpack], data);
}

pub(crate) fn dump_hash(data: &[u8]) {
    dump(&[ValueType::Hash, ValueType::HashZipmap, ValueType::HashZiplist, ValueType::HashListpack], data);
}

pub(crate) fn dump_stream(data: &[u8]) {
    dump(&[ValueType::StreamListpacks, ValueType::StreamListpacks2, ValueType::StreamListpacks3], data);
}

/// A string of the RDB format, shorter than 64 bytes.
fn string(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes).string(text);
    bytes
}

fn packed(texts: &[&[u8]]) -> Vec<u8> {
    let mut listpack = Listpack::new();
    texts.iter().for_each(|text| listpack.append(text));
    listpack.as_bytes().to_vec()
}

const ZIPLIST: &[u8] = &[16, 0, 0, 0, 13, 0, 0, 0, 2, 0, 0, 1, b'a', 3, 0xf2, 0xff];
const ZIPMAP: &[u8] = b"\x01\x01a\x01\x001\xff";

pub(crate) fn string_seeds() -> Vec<Vec<u8>> {
    [string(b"hello"), vec![0xc0, 5], vec![0xc2, 1, 2, 3, 4], vec![0xc3, 5, 0x40, 101, 0, b'a', 0xe0, 91, 0]]
        .into_iter()
        .map(|body| [vec![0], body].concat())
        .collect()
}

pub(crate) fn list_seeds() -> Vec<Vec<u8>> {
    let nodes = [&[3, 2, 2][..], &string(&packed(&[b"a", b"5", b"long-long-long"])), &[1], &string(b"plain")].concat();
    vec![
        [&[0, 2][..], &string(b"a"), &string(b"b")].concat(),
        [&[1][..], &string(ZIPLIST)].concat(),
        [&[2, 2][..], &string(ZIPLIST), &string(ZIPLIST)].concat(),
        nodes,
    ]
}

pub(crate) fn set_seeds() -> Vec<Vec<u8>> {
    vec![
        [&[0, 2][..], &string(b"a"), &string(b"b")].concat(),
        [&[1][..], &string(&[2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0])].concat(),
        [&[2][..], &string(&packed(&[b"a", b"5", b"-100000"]))].concat(),
    ]
}

pub(crate) fn zset_seeds() -> Vec<Vec<u8>> {
    vec![
        [&[0, 2][..], &string(b"a"), b"\x031.5", &string(b"b"), &[254]].concat(),
        [&[1, 2][..], &string(b"a"), &1.5_f64.to_le_bytes(), &string(b"b"), &(-2.0_f64).to_le_bytes()].concat(),
        [&[2][..], &string(ZIPLIST)].concat(),
        [&[3][..], &string(&packed(&[b"a", b"1", b"b", b"2.5"]))].concat(),
    ]
}

pub(crate) fn hash_seeds() -> Vec<Vec<u8>> {
    vec![
        [&[0, 1][..], &string(b"f"), &string(b"v")].concat(),
        [&[1][..], &string(ZIPMAP)].concat(),
        [&[2][..], &string(ZIPLIST)].concat(),
        [&[3][..], &string(&packed(&[b"f", b"v", b"n", b"5"]))].concat(),
    ]
}

pub(crate) fn stream_seeds() -> Vec<Vec<u8>> {
    let id = |milliseconds: u64, seq: u64| [milliseconds.to_be_bytes(), seq.to_be_bytes()].concat();
    let block = packed(&[b"2", b"0", b"1", b"f", b"0", b"2", b"0", b"0", b"v1", b"4", b"2", b"1", b"0", b"v2", b"4"]);
    let time = 1_600_000_000_000_u64.to_le_bytes();
    (0..3_u8)
        .map(|form| {
            let mut bytes = vec![form, 1];
            bytes.extend(string(&id(5, 1)));
            bytes.extend(string(&block));
            bytes.extend([2, 6, 1]);
            if form >= 1 {
                bytes.extend([5, 1, 0, 0, 2]);
            }
            bytes.push(1);
            bytes.extend(string(b"g"));
            bytes.extend([5, 1]);
            if form >= 1 {
                bytes.push(1);
            }
            bytes.push(1);
            bytes.extend(id(5, 1));
            bytes.extend(time);
            bytes.extend([3, 1]);
            bytes.extend(string(b"c"));
            bytes.extend(time);
            if form >= 2 {
                bytes.extend(time);
            }
            bytes.push(1);
            bytes.extend(id(5, 1));
            bytes
        })
        .collect()
}

/// Two bytes of a declared length, then compressed bytes; what comes out is compressed and decompressed again.
pub(crate) fn lzf(data: &[u8]) {
    let Some((declared, input)) = data.split_first_chunk::<2>() else { return };
    let declared = usize::from(u16::from_le_bytes(*declared));
    if let Ok(out) = compression::decompress(input, declared) {
        assert_eq!(out.len(), declared);
        same_after_compression(&out);
    }
    same_after_compression(input);
}

fn same_after_compression(bytes: &[u8]) {
    let mut small = Vec::new();
    if compression::compress(bytes, &mut small, bytes.len()) {
        let Ok(again) = compression::decompress(&small, bytes.len()) else { panic!("own compression is refused") };
        assert_eq!(again, bytes);
    }
}

pub(crate) fn lzf_seeds() -> Vec<Vec<u8>> {
    vec![
        [&101_u16.to_le_bytes()[..], &[0, b'a', 0xe0, 91, 0]].concat(),
        [&5_u16.to_le_bytes()[..], &[4, b'h', b'e', b'l', b'l', b'o']].concat(),
        b"\x20\x00abcabcabcabcabcabcabcabcabcabcabc".to_vec(),
    ]
}

/// A blob; what is a listpack is walked both ways and changed.
pub(crate) fn listpack(data: &[u8]) {
    let Ok(mut listpack) = Listpack::from_bytes(data) else { return };
    listpack.check();
    let mut forward = Vec::new();
    let mut at = listpack.first();
    while let Some(pos) = at {
        forward.push(listpack.get(pos).to_vec());
        at = listpack.next(pos);
    }
    assert_eq!(forward.len(), listpack.len());
    let mut backward = Vec::new();
    let mut at = listpack.last();
    while let Some(pos) = at {
        backward.push(listpack.get(pos).to_vec());
        at = listpack.prev(pos);
    }
    backward.reverse();
    assert_eq!(forward, backward);
    if let Some(pos) = listpack.seek(-1) {
        listpack.insert_before(pos, b"inserted");
    }
    listpack.prepend(b"-77777");
    listpack.append(b"last");
    listpack.check();
    if let Some(pos) = listpack.seek(1) {
        listpack.replace(pos, b"replaced by something longer than before");
        listpack.check();
    }
    listpack.delete_range(0, 2);
    listpack.check();
    if let Some(pos) = listpack.seek(i64::try_from(listpack.len() / 2).unwrap_or(0)) {
        let rest = listpack.split_off(pos);
        rest.check();
        listpack.append_all(&rest);
    }
    listpack.check();
}

pub(crate) fn listpack_seeds() -> Vec<Vec<u8>> {
    let long = vec![b'x'; 300];
    vec![
        packed(&[]),
        packed(&[b"a", b"5", b"-1", b"4095", b"100000", b"3000000000", b"99999999999"]),
        packed(&[&long, b"after", &long]),
    ]
}

pub(crate) fn ziplist(data: &[u8]) {
    let Ok(ziplist) = Ziplist::parse(data) else { return };
    let elements: Vec<Vec<u8>> = ziplist.iter().map(|element| element.to_vec()).collect();
    assert_eq!(elements.len(), ziplist.len());
    if let Ok(listpack) = ziplist.to_listpack() {
        listpack.check();
        assert!(listpack.iter().map(|element| element.to_vec()).eq(elements));
    }
}

pub(crate) fn ziplist_seeds() -> Vec<Vec<u8>> {
    vec![ZIPLIST.to_vec(), vec![11, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0xff]]
}

pub(crate) fn zipmap(data: &[u8]) {
    let Ok(zipmap) = Zipmap::parse(data) else { return };
    assert_eq!(zipmap.iter().count(), zipmap.len());
    if let Ok(listpack) = zipmap.to_listpack() {
        listpack.check();
        assert_eq!(listpack.len(), zipmap.len() * 2);
    }
}

pub(crate) fn zipmap_seeds() -> Vec<Vec<u8>> {
    vec![ZIPMAP.to_vec(), b"\x02\x01f\x02\x00v1\x01g\x01\x03w???\xff".to_vec(), b"\x00\xff".to_vec()]
}

pub(crate) fn intset(data: &[u8]) {
    let Ok(mut intset) = Intset::from_bytes(data) else { return };
    intset.check();
    let values: Vec<i64> = intset.iter().collect();
    assert!(values.is_sorted_by(|a, b| a < b));
    assert!(values.iter().all(|value| intset.contains(*value)));
    intset.insert(i64::MAX);
    intset.insert(-5);
    intset.check();
    for value in values {
        intset.remove(value);
    }
    intset.check();
}

pub(crate) fn intset_seeds() -> Vec<Vec<u8>> {
    let of = |values: &[i64]| {
        let mut intset = Intset::new();
        values.iter().for_each(|value| {
            intset.insert(*value);
        });
        intset.as_bytes().to_vec()
    };
    vec![of(&[]), of(&[1, 2, 3]), of(&[-100_000, 5]), of(&[i64::MIN, 0, i64::MAX])]
}
