#![allow(clippy::unwrap_used)]
use super::*;
use crate::keys::Distribution;

fn render(template: &mut Template, first: usize, count: usize, tags: &[[u8; 3]]) -> String {
    let mut keys = Keys::new(Distribution::Sequential, 0, 1_000_000, 1);
    let mut random = AdditiveRandom::new(1);
    let value_pool = [b'z'; 64];
    let mut filler = Filler { keys: &mut keys, random: &mut random, tags, value_pool: &value_pool, asked: None };
    let mut out = Vec::new();
    template.render(first, count, &mut filler, &mut out);
    String::from_utf8(out).unwrap()
}

const NUMBERS: Substitution = Substitution { numbers: true, tags: false, value_bytes: 0, checked: false };

#[test]
fn every_place_gets_its_own_number() {
    let command = encode(&["MSET", "a__rand_int__", "b__rand_int__"]);
    let mut template = Template::new(&[command], 2, NUMBERS, b"");
    assert_eq!(
        render(&mut template, 0, 2, &[]),
        "*3\r\n$4\r\nMSET\r\n$13\r\na000000000000\r\n$13\r\nb000000000001\r\n\
         *3\r\n$4\r\nMSET\r\n$13\r\na000000000002\r\n$13\r\nb000000000003\r\n"
    );
    assert_eq!(render(&mut template, 0, 1, &[]).matches("MSET").count(), 1);
}

#[test]
fn ordinals_are_equal_within_a_command() {
    let command = b"X __rand_1st__ __rand_2nd__ __rand_1st__\r\n".to_vec();
    let mut template = Template::new(&[command], 2, NUMBERS, b"");
    assert_eq!(
        render(&mut template, 0, 2, &[]),
        "X 000000000000 000000000001 000000000000\r\nX 000000000002 000000000003 000000000002\r\n"
    );
}

#[test]
fn without_substitution_the_text_stays() {
    let command = b"GET key:__rand_int__\r\n".to_vec();
    let mut template = Template::new(&[command], 1, Substitution::default(), b"");
    assert_eq!(render(&mut template, 0, 1, &[]), "GET key:__rand_int__\r\n");
}

#[test]
fn tags_are_filled_alike_within_a_command() {
    let command = b"MSET a{tag} b{tag}\r\n".to_vec();
    let substitution = Substitution { tags: true, ..Substitution::default() };
    let mut template = Template::new(&[command], 1, substitution, b"");
    assert!(template.has_tags());
    let text = render(&mut template, 0, 1, &[*b"abc", *b"xyz"]);
    assert!(text == "MSET a{abc} b{abc}\r\n" || text == "MSET a{xyz} b{xyz}\r\n", "{text}");
}

#[test]
fn values_come_from_the_pool() {
    let command = encode(&["SET", "VXK", "VXK"]);
    let substitution = Substitution { value_bytes: 3, ..Substitution::default() };
    let mut template = Template::new(&[command], 1, substitution, b"VXK");
    assert_eq!(render(&mut template, 0, 1, &[]), "*3\r\n$3\r\nSET\r\n$3\r\nzzz\r\n$3\r\nzzz\r\n");
}

#[test]
fn checked_values_carry_their_key_and_reads_are_noted() {
    let value = [b'v'; 24];
    let commands = [
        encode(&[b"SET".as_slice(), b"key:__rand_int__", &value]),
        encode(&["get", "key:__rand_int__"]),
        encode(&["MGET", "key:__rand_int__"]),
    ];
    let substitution = Substitution { numbers: true, value_bytes: 24, checked: true, ..Substitution::default() };
    let mut template = Template::new(&commands, 3, substitution, &value);
    let mut keys = Keys::new(Distribution::Sequential, 7, 1_000_000, 1);
    let (mut random, mut asked, mut out) = (AdditiveRandom::new(1), VecDeque::new(), Vec::new());
    let mut filler =
        Filler { keys: &mut keys, random: &mut random, tags: &[], value_pool: &[], asked: Some(&mut asked) };
    template.render(0, 3, &mut filler, &mut out);
    assert_eq!(asked, [NOT_CHECKED, 8, NOT_CHECKED]);
    let at = out.windows(12).rposition(|window| window == b"000000000007").unwrap();
    assert_eq!(values::check(&out[at - 8..at + 16], 7), Ok(()));
}

#[test]
fn a_sequence_goes_on_where_it_stopped() {
    let commands = [b"A\r\n".to_vec(), b"B\r\n".to_vec(), b"C\r\n".to_vec()];
    let mut template = Template::new(&commands, 2, Substitution::default(), b"");
    assert_eq!(template.sequence_length(), 3);
    let batches: Vec<String> = [0, 2, 4].iter().map(|first| render(&mut template, *first, 2, &[])).collect();
    assert_eq!(batches, ["A\r\nB\r\n", "C\r\nA\r\n", "B\r\nC\r\n"]);
}

#[test]
fn numbers_are_padded() {
    let mut place = [0; 12];
    write_twelve_digits(&mut place, 42);
    assert_eq!(&place, b"000000000042");
    write_twelve_digits(&mut place, 999_999_999_999);
    assert_eq!(&place, b"999999999999");
}
