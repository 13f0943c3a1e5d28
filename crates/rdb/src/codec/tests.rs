#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::*;

fn written(write: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = vec![];
    write(&mut Writer::new(&mut out));
    out
}

#[test]
fn encodings_are_those_of_redis() {
    assert_eq!(written(|writer| writer.length(63)), [63]);
    assert_eq!(written(|writer| writer.length(64)), [0x40, 64]);
    assert_eq!(written(|writer| writer.length(16_383)), [0x7f, 0xff]);
    assert_eq!(written(|writer| writer.length(16_384)), [0x80, 0, 0, 0x40, 0]);
    assert_eq!(written(|writer| writer.length(1 << 32)), [0x81, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(written(|writer| writer.string(b"-128")), [0xc0, 0x80]);
    assert_eq!(written(|writer| writer.string(b"128")), [0xc1, 0x80, 0]);
    assert_eq!(written(|writer| writer.string(b"-2147483648")), [0xc2, 0, 0, 0, 0x80]);
    assert_eq!(written(|writer| writer.string(b"2147483648")), b"\x0a2147483648");
    assert_eq!(written(|writer| writer.int(2_147_483_648)), b"\x0a2147483648");
    assert_eq!(written(|writer| writer.string(b"01")), b"\x0201");
    assert_eq!(written(|writer| writer.double(1.5)), [0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
}

#[test]
fn old_doubles_are_read() {
    let read = |bytes: &[u8]| Reader::new(bytes).text_double();
    assert_eq!(read(b"\x033.5"), Ok(3.5));
    assert_eq!(read(b"\xfe"), Ok(f64::INFINITY));
    assert_eq!(read(b"\xff"), Ok(f64::NEG_INFINITY));
    assert!(read(b"\xfd").unwrap().is_nan());
    assert_eq!(read(b"\x033."), Err(DecodeError::Truncated));
    assert_eq!(read(b"\x00"), Err(DecodeError::Malformed("double")));
}

#[test]
fn a_declared_length_allocates_nothing() {
    for bytes in
        [&b"\x81\xff\xff\xff\xff\xff\xff\xff\xff"[..], b"\x80\xff\xff\xff\xff", b"\xc3\x01\x80\xff\xff\xff\xff\x00"]
    {
        assert!(Reader::new(bytes).string().is_err());
    }
    assert_eq!(Reader::new(b"\xc7").string(), Err(DecodeError::UnknownEncoding(0xc7)));
    assert_eq!(Reader::new(b"\x90").string(), Err(DecodeError::UnknownEncoding(0x90)));
    assert_eq!(Reader::new(b"\xc0").length(), Err(DecodeError::UnknownEncoding(0xc0)));
}

proptest! {
    #[test]
    fn lengths_and_integers_round_trip(wide: u64, shift in 0..64_u32) {
        let value = wide >> shift;
        let bytes = written(|writer| writer.length(value));
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.length(), Ok(value));
        prop_assert!(reader.rest().is_empty());
        let value = wide.cast_signed() >> shift;
        let bytes = written(|writer| writer.int(value));
        prop_assert_eq!(&bytes, &written(|writer| writer.string(value.to_string().as_bytes())));
        prop_assert_eq!(Reader::new(&bytes).string().unwrap().into_vec(), value.to_string().into_bytes());
    }

    #[test]
    fn strings_round_trip(text in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        (proptest::collection::vec(0..4_u8, 1..9), 1..400_usize).prop_map(|(part, times)| part.repeat(times)),
        "-?[0-9]{1,12}".prop_map(String::into_bytes),
    ]) {
        for compress in [false, true] {
            let mut out = vec![9];
            let mut writer = if compress { Writer::compressing(&mut out) } else { Writer::new(&mut out) };
            writer.string(&text);
            writer.byte(7);
            prop_assert!(out.len() <= text.len() + 7);
            let mut reader = Reader::new(&out[1..]);
            let value = reader.string().unwrap();
            prop_assert_eq!(value.len(), text.len());
            prop_assert_eq!(value.into_vec(), &text[..]);
            prop_assert_eq!(reader.rest(), [7]);
        }
    }

    #[test]
    fn hostile_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut reader = Reader::new(&bytes);
        while reader.string().is_ok() {}
        let _ = (Reader::new(&bytes).text_double(), Reader::new(&bytes).length());
    }
}
