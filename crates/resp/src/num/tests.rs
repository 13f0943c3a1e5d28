#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::*;

#[test]
fn only_canonical_integers_are_integers() {
    for (text, value) in [
        ("0", 0),
        ("-1", -1),
        ("10", 10),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("999999999999999999", 999_999_999_999_999_999),
    ] {
        assert_eq!(parse_i64(text.as_bytes()), Some(value), "{text}");
    }
    for text in [
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "01",
        "-0",
        "00",
        "-01",
        "1a",
        "1.0",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "99999999999999999999",
        "123456789012345678901",
        "0x1",
        "--1",
    ] {
        assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn unsigned_integers_are_read_as_stream_ids() {
    for (text, value) in [
        ("0", Some(0)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("-1", None),
        ("-01", Some(u64::MAX)),
        ("+7", Some(7)),
        (" 007", Some(7)),
        ("7 ", None),
        ("", None),
        (" ", None),
        ("+-1", None),
    ] {
        assert_eq!(parse_u64(text.as_bytes()), value, "{text}");
    }
}

#[test]
fn doubles_are_read_as_strtod_does_minus_what_redis_refuses() {
    for (text, value) in [
        ("1", 1.0),
        ("-1.5e3", -1500.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+1", 1.0),
        ("007", 7.0),
        ("-0", -0.0),
        ("inf", f64::INFINITY),
        ("+Infinity", f64::INFINITY),
        ("-INF", f64::NEG_INFINITY),
        ("0x10", 16.0),
        ("0x1.8p3", 12.0),
        ("-0X.8P-1", -0.25),
        ("0x1p-1074", f64::from_bits(1)),
        ("0x1.fffffffffffff8p0", 2.0),
        ("0x1.fffffffffffff7p0", 2.0_f64.next_down()),
        ("0x0.0000000000001p-1022", f64::from_bits(1)),
        ("0x1000000000000080000000000", f64::from_bits(1119 << 52)),
        ("0x1000000000000080000000001", f64::from_bits(1119 << 52 | 1)),
        ("1e-320", 1e-320),
        ("0e9999", 0.0),
        ("0x0p99999999999999999999", 0.0),
        ("1.7976931348623157e308", f64::MAX),
    ] {
        assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()), "{text}");
    }
    for text in [
        "",
        " 1",
        "1 ",
        "nan",
        "-nan",
        "nan(1)",
        "1e",
        "1e+",
        ".",
        "-",
        "0x",
        "0xg",
        "0x1p",
        "e5",
        "1e999",
        "-1e999",
        "1e-999",
        "0x1p9999",
        "0x1p-9999",
        "0x1p99999999999999999999",
        "infinit",
        "1\0",
        "1,5",
        "++1",
        "\t1",
        "1_0",
    ] {
        assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn score_bounds_are_laxer() {
    let bound = |text: &str| parse_score_bound(text.as_bytes()).map(|bound| (bound.value, bound.exclusive));
    assert_eq!(bound("1.5"), Some((1.5, false)));
    assert_eq!(bound("(1.5"), Some((1.5, true)));
    assert_eq!(bound("-inf"), Some((f64::NEG_INFINITY, false)));
    assert_eq!(bound("(+inf"), Some((f64::INFINITY, true)));
    assert_eq!(bound("( 7"), Some((7.0, true)));
    assert_eq!(bound("1e999"), Some((f64::INFINITY, false)));
    assert_eq!(bound(""), Some((0.0, false)));
    assert_eq!(bound("("), Some((0.0, true)));
    for text in ["((1", "1.5 ", "nan", "[1", "abc"] {
        assert_eq!(bound(text), None, "{text}");
    }
}

#[test]
fn doubles_are_written_in_the_layout_of_redis_7_2() {
    let text = |value: f64| String::from_utf8(format_double(value, &mut [0; 32]).to_vec()).unwrap();
    for (value, expected) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (f64::NAN, "nan"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (3.1, "3.1"),
        (-3.5, "-3.5"),
        (1e15, "1000000000000000"),
        (4e18, "4000000000000000000"),
        (1e19, "1e+19"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-5, "0.00001"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-7, "1.25e-7"),
        (0.0001, "0.0001"),
        (0.000_123_456_789, "1.23456789e-4"),
        (0.001_234_567_891_234, "0.001234567891234"),
        (12_345.678_9, "12345.6789"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::from_bits(1), "5e-324"),
        (-1.234_567_890_123_456_7e-300, "-1.2345678901234568e-300"),
        (17_179_869_184_000_000_000.0, "1.7179869184e+19"),
        (12_345_678_901_234_568_000_000.0, "12345678901234568000000"),
        // Redis: Grisu2's digits are not always the shortest ones.
        (534.097_645, "534.0976450000001"),
    ] {
        assert_eq!(text(value), expected);
    }
}

#[test]
fn doubles_are_written_as_printf_17g() {
    let text = |value: f64| String::from_utf8(format_double_17g(value, &mut [0; 32]).to_vec()).unwrap();
    for (value, expected) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (3.1, "3.1000000000000001"),
        (1e16, "10000000000000000"),
        (1e17, "1e+17"),
        (1e-4, "0.0001"),
        (1e-5, "1.0000000000000001e-05"),
        (1e-320, "9.9998886718268301e-321"),
        (123_456.5, "123456.5"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(text(value), expected);
    }
}

#[test]
fn the_cached_powers_are_the_nearest_ones() {
    use num_bigint::BigUint;
    for (index, (fraction, exponent)) in grisu2_powers::POWERS.into_iter().enumerate() {
        let decimal = i32::try_from(index).unwrap() * 8 - 348;
        let power = BigUint::from(10_u32).pow(decimal.unsigned_abs());
        let exponent = i32::from(exponent);
        // nearest(10^decimal / 2^exponent), as (2·a + b) / 2·b.
        let (mut above, mut below) = (BigUint::from(1_u32), BigUint::from(1_u32));
        if decimal >= 0 {
            above *= power;
        } else {
            below *= power;
        }
        if exponent >= 0 {
            below <<= exponent.unsigned_abs();
        } else {
            above <<= exponent.unsigned_abs();
        }
        let nearest = (&above * 2_u32 + &below) / (below * 2_u32);
        assert_eq!(nearest, BigUint::from(fraction), "10^{decimal}");
    }
}

#[test]
fn long_doubles_keep_the_digits_of_x87() {
    let sum = |a: &str, b: &str| {
        let sum = LongDouble::parse(a.as_bytes()).unwrap().add(LongDouble::parse(b.as_bytes()).unwrap());
        String::from_utf8(sum.to_human()).unwrap()
    };
    assert_eq!(sum("16495.3", "0.1"), "16495.40000000000000036");
    assert_eq!(sum("10.5", "0.1"), "10.6");
    assert_eq!(sum("3", "-3"), "0");
    assert_eq!(sum("-0", "-0"), "0");
    assert_eq!(sum("5.0e3", "2.0e2"), "5200");
    assert_eq!(sum("1e20", "1"), "100000000000000000000");
    assert_eq!(sum("1e19", "1"), "10000000000000000001");
    assert_eq!(sum("1e-20", "0"), "0");
    assert_eq!(sum("-1e-20", "0"), "0");
    assert_eq!(sum("0x10", "0x.8"), "16.5");
    assert_eq!(sum("inf", "1"), "inf");
    assert!(LongDouble::parse(b"inf").unwrap().add(LongDouble::parse(b"-inf").unwrap()).is_nan());
    assert_eq!(LongDouble::parse(b"1e4931").unwrap().to_human().len(), 4932);
    assert_eq!(LongDouble::from_i64(i64::MIN).to_human(), b"-9223372036854775808");
    for text in ["", " 1", "1 ", "nan", "1e5000", "1e-5000", "1e99999999999999999999", "abc", "0x", "1\0"] {
        assert!(LongDouble::parse(text.as_bytes()).is_none(), "{text}");
    }
    assert!(LongDouble::parse(&[b'1'; 5119]).is_none());
    assert!(LongDouble::parse(&[b'0'; 5119]).is_some());
    assert!(LongDouble::parse(&[b'0'; 5120]).is_none());
    assert!(LongDouble::parse(b"1e-4945").is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn integers_round_trip(wide: i64, shift in 0..64_u32) {
        let value = wide >> shift;
        let mut text = vec![];
        write_int(&mut text, value);
        prop_assert_eq!(parse_i64(&text), Some(value));
        prop_assert_eq!(text.len(), int_text_len(value));
        prop_assert_eq!(format_int(value, &mut [0; 24]).to_vec(), value.to_string().into_bytes());
    }

    #[test]
    fn integer_texts_are_as_the_plain_rule_says(text in "-?[0-9]{1,21}") {
        let plain = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
        prop_assert_eq!(parse_i64(text.as_bytes()), plain);
    }

    #[test]
    fn doubles_round_trip(bits: u64) {
        let value = f64::from_bits(bits);
        let mut text = vec![];
        write_double(&mut text, value);
        let mut text_17g = vec![];
        write_double_17g(&mut text_17g, value);
        if value.is_nan() {
            prop_assert_eq!(&text, b"nan");
        } else {
            prop_assert_eq!(parse_f64(&text).map(f64::to_bits), Some(bits), "{}", String::from_utf8_lossy(&text));
            prop_assert_eq!(parse_f64(&text_17g).map(f64::to_bits), Some(bits));
        }
        prop_assert!(text.len() < DOUBLE_TEXT_MAX && text_17g.len() < DOUBLE_TEXT_MAX);
    }

    #[test]
    fn hexadecimals_are_rounded_once(bits: u64, down in 0..3_u32) {
        let value = f64::from_bits(bits >> 1);
        prop_assume!(value.is_finite() && value != 0.0);
        let (mantissa, exponent) = (bits >> 1 & ((1 << 52) - 1), (bits >> 53) & 0x3ff);
        prop_assume!(exponent > 3);
        let text = format!("0x1.{mantissa:013x}{}p{}", "0".repeat(down as usize), i64::try_from(exponent).unwrap() - 1023);
        let expected = f64::from_bits(exponent << 52 | mantissa);
        prop_assert_eq!(parse_f64(text.as_bytes()), Some(expected));
    }

    #[test]
    fn no_text_panics(text in proptest::collection::vec(prop_oneof![proptest::sample::select(b"0x.pe-9".as_slice()), any::<u8>()], 0..30)) {
        let _ = (parse_i64(&text), parse_u64(&text), parse_f64(&text), parse_score_bound(&text));
        if let Some(number) = LongDouble::parse(&text) {
            number.to_human();
        }
    }
}
