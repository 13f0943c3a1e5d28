#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::*;

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..80),
        4 => any::<i64>().prop_flat_map(|wide| (0..64_u32).prop_map(move |shift| (wide >> shift).to_string().into_bytes())),
        1 => (0..6000_usize).prop_map(|len| vec![b'x'; len]),
        1 => (16_370..16_390_usize).prop_map(|len| vec![b'y'; len]),
        1 => Just(b"-0".to_vec()),
        1 => Just(b"007".to_vec()),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u8>),
    Prepend(Vec<u8>),
    InsertBefore(usize, Vec<u8>),
    InsertAfter(usize, Vec<u8>),
    Replace(usize, Vec<u8>),
    Delete(usize),
    DeleteRange(i64, usize),
    SplitAndJoin(usize),
    PushFront(Vec<u8>, usize),
    DeleteFirst(usize),
    CloseGap,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => value().prop_map(Step::Append),
        2 => value().prop_map(Step::Prepend),
        2 => (any::<usize>(), value()).prop_map(|(at, value)| Step::InsertBefore(at, value)),
        2 => (any::<usize>(), value()).prop_map(|(at, value)| Step::InsertAfter(at, value)),
        2 => (any::<usize>(), value()).prop_map(|(at, value)| Step::Replace(at, value)),
        2 => any::<usize>().prop_map(Step::Delete),
        1 => (-12..12_i64, 0..4_usize).prop_map(|(at, count)| Step::DeleteRange(at, count)),
        1 => any::<usize>().prop_map(Step::SplitAndJoin),
        4 => (value(), 0..200_usize).prop_map(|(value, room)| Step::PushFront(value, room)),
        3 => (0..300_usize).prop_map(Step::DeleteFirst),
        1 => Just(Step::CloseGap),
    ]
}

fn run(listpack: &mut Listpack, model: &mut Vec<Vec<u8>>, step: Step) {
    let pick = |at: usize| at % model.len().max(1);
    let seek = |listpack: &Listpack, at: usize| listpack.seek(i64::try_from(at).unwrap());
    match step {
        Step::Append(value) => {
            listpack.append(&value);
            model.push(value);
        }
        Step::Prepend(value) => {
            listpack.prepend(&value);
            model.insert(0, value);
        }
        Step::PushFront(value, room) => {
            listpack.push_front(&value, room);
            model.insert(0, value);
        }
        Step::DeleteFirst(gap_max) => {
            listpack.delete_first(gap_max);
            if !model.is_empty() {
                model.remove(0);
            }
        }
        Step::CloseGap => {
            listpack.close_gap();
            assert_eq!(listpack.allocated_bytes(), crate::size_class::round_up(listpack.bytes_len()));
        }
        Step::InsertBefore(at, value) if !model.is_empty() => {
            let at = pick(at);
            let pos = listpack.insert_before(seek(listpack, at).unwrap(), &value);
            assert!(listpack.get(pos).eq_bytes(&value));
            model.insert(at, value);
        }
        Step::InsertAfter(at, value) if !model.is_empty() => {
            let at = pick(at);
            let pos = listpack.insert_after(seek(listpack, at).unwrap(), &value);
            assert!(listpack.get(pos).eq_bytes(&value));
            model.insert(at + 1, value);
        }
        Step::Replace(at, value) if !model.is_empty() => {
            let at = pick(at);
            listpack.replace(seek(listpack, at).unwrap(), &value);
            model[at] = value;
        }
        Step::Delete(at) if !model.is_empty() => {
            let at = pick(at);
            let next = listpack.delete(seek(listpack, at).unwrap());
            model.remove(at);
            assert_eq!(next.map(|pos| listpack.get(pos).to_vec()), model.get(at).cloned());
        }
        Step::DeleteRange(at, count) => {
            listpack.delete_range(at, count);
            let len = i64::try_from(model.len()).unwrap();
            let start = if at < 0 { len + at } else { at };
            if start >= 0 && start < len {
                let start = usize::try_from(start).unwrap();
                model.drain(start..model.len().min(start + count));
            }
        }
        Step::SplitAndJoin(at) if !model.is_empty() => {
            let at = pick(at);
            let tail = listpack.split_off(seek(listpack, at).unwrap());
            tail.check();
            listpack.check();
            assert_eq!((listpack.len(), tail.len()), (at, model.len() - at));
            listpack.append_all(&tail);
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn behaves_as_a_list(steps in proptest::collection::vec(step(), 0..60)) {
        let mut listpack = Listpack::new();
        let mut model: Vec<Vec<u8>> = vec![];
        for step in steps {
            run(&mut listpack, &mut model, step);
            listpack.check();
            prop_assert_eq!(listpack.len(), model.len());
        }
        prop_assert!(listpack.iter().map(|elem| elem.to_vec()).eq(model.iter().cloned()));
        prop_assert!(listpack.iter().rev().map(|elem| elem.to_vec()).eq(model.iter().rev().cloned()));
        for (index, value) in model.iter().enumerate() {
            let pos = listpack.find(value, 0).unwrap();
            prop_assert!(listpack.get(pos).eq_bytes(value));
            prop_assert_eq!(listpack.get(pos).len_as_text(), value.len());
            let index = i64::try_from(index).unwrap();
            prop_assert_eq!(&listpack.get_index(index).unwrap().to_vec(), value);
            let from_tail = index - i64::try_from(model.len()).unwrap();
            prop_assert_eq!(listpack.seek(from_tail), listpack.seek(index));
        }
        prop_assert_eq!(listpack.seek(i64::try_from(model.len()).unwrap()), None);
        prop_assert_eq!(listpack.seek(i64::MIN), None);
        let again = Listpack::from_bytes(listpack.as_bytes()).unwrap();
        prop_assert_eq!(&again, &listpack);
        let expected: usize = model.iter().map(|value| entry_bytes(value)).sum();
        prop_assert_eq!(expected + HEADER_BYTES + 1, listpack.bytes_len());
    }

    #[test]
    fn hostile_bytes_are_refused_or_sound(body in proptest::collection::vec(prop_oneof![any::<u8>(), 0xf0..=0xffu8, 0..4u8], 0..60), count in 0..40_u16) {
        let total = body.len() + 7;
        let mut bytes = header(total, count).to_vec();
        bytes.extend_from_slice(&body);
        bytes.push(END);
        if let Ok(listpack) = Listpack::from_bytes(&bytes) {
            listpack.check();
            prop_assert_eq!(listpack.iter().count(), listpack.iter().rev().count());
        }
    }

    #[test]
    fn a_damaged_byte_is_refused_or_sound(values in proptest::collection::vec(value(), 1..12), at in any::<usize>(), byte in any::<u8>()) {
        let mut listpack = Listpack::new();
        values.iter().for_each(|value| listpack.append(value));
        let mut bytes = listpack.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(listpack) = Listpack::from_bytes(&bytes) {
            listpack.check();
            prop_assert_eq!(listpack.iter().rev().count(), listpack.len());
        }
    }

    #[test]
    fn stale_positions_are_harmless_to_read(values in proptest::collection::vec(value(), 1..12), at in 0..40_u32) {
        let mut listpack = Listpack::new();
        values.iter().for_each(|value| listpack.append(value));
        let _ = listpack.get(Pos(at));
        let _ = (listpack.next(Pos(at)), listpack.prev(Pos(at)));
        listpack.find_from(Pos(at), b"zz", 1);
        listpack.iter_from(Pos(at)).for_each(drop);
    }
}

#[test]
fn bytes_are_those_of_redis() {
    let mut listpack = Listpack::new();
    for value in ["a", "127", "-1", "4096", "100000", "3000000", "99999999999"] {
        listpack.append(value.as_bytes());
    }
    let expected: &[u8] = &[
        40, 0, 0, 0, 7, 0, 0x81, b'a', 2, 127, 1, 0xdf, 0xff, 2, 0xf1, 0, 0x10, 3, 0xf2, 0xa0, 0x86, 1, 4, 0xf2, 0xc0,
        0xc6, 0x2d, 4, 0xf4, 0xff, 0xe7, 0x76, 0x48, 0x17, 0, 0, 0, 9, 0xff,
    ];
    assert_eq!(&listpack.as_bytes()[4..], &expected[4..]);
    assert_eq!(usize::from(listpack.as_bytes()[0]), listpack.bytes_len());
}

#[test]
fn a_gap_takes_pushes_and_pops_without_moving_the_rest() {
    let mut listpack = Listpack::new();
    for number in 0..1000 {
        listpack.append(format!("element {number}").as_bytes());
    }
    let place = |listpack: &Listpack| listpack.as_bytes().as_ptr_range().end;
    listpack.push_front(b"first", 5000);
    let end = place(&listpack);
    for number in 0..50 {
        listpack.push_front(format!("pushed {number}").as_bytes(), 1000);
        assert_eq!(place(&listpack), end, "the end stays where it is");
    }
    for number in (0..50).rev() {
        assert!(listpack.get(listpack.first().unwrap()).eq_bytes(format!("pushed {number}").as_bytes()));
        listpack.delete_first(10_000);
        assert_eq!(place(&listpack), end, "the end stays where it is");
    }
    let (bytes, kept) = (listpack.as_bytes().to_vec(), listpack.allocated_bytes());
    listpack.close_gap();
    assert_eq!(listpack.as_bytes(), bytes, "a gap shows nowhere");
    assert!(listpack.allocated_bytes() < kept, "the gap is given back");
    while !listpack.is_empty() {
        listpack.delete_first(listpack.bytes_len() / 2);
        assert!(listpack.allocated_bytes() <= 64 + 2 * listpack.bytes_len(), "a gap has a bound");
    }
}

#[test]
fn the_count_past_65535_is_walked_and_known_again() {
    let mut listpack = Listpack::new();
    for _ in 0..65_534 {
        listpack.append_int(1);
    }
    assert_eq!((listpack.len(), count_field(listpack.as_bytes())), (65_534, 65_534));
    listpack.append_int(2);
    listpack.append_int(3);
    assert_eq!((listpack.len(), count_field(listpack.as_bytes())), (65_536, COUNT_UNKNOWN));
    assert_eq!(listpack.get_index(-1), Some(Elem::Int(3)));
    assert_eq!(listpack.get_index(-65_536), Some(Elem::Int(1)));
    assert_eq!(listpack.get_index(-65_537), None);
    listpack.delete_range(0, 10);
    assert_eq!((listpack.len(), count_field(listpack.as_bytes())), (65_526, 65_526));
    listpack.check();
}

#[test]
fn find_compares_only_the_wanted_entries() {
    let mut listpack = Listpack::new();
    for value in ["1", "2", "2", "3"] {
        listpack.append(value.as_bytes());
    }
    assert_eq!(listpack.find(b"2", 1), listpack.seek(2));
    assert_eq!(listpack.find(b"3", 1), None);
    assert_eq!(listpack.find(b"3", 0), listpack.seek(3));
    assert_eq!(listpack.find(b"02", 0), None);
    assert_eq!(Listpack::new().find(b"", 0), None);
    let pairs: Vec<_> = listpack.pairs().collect();
    assert_eq!(pairs, [(Elem::Int(1), Elem::Int(2)), (Elem::Int(2), Elem::Int(3))]);
}

#[test]
fn random_picks_keep_to_groups() {
    let mut listpack = Listpack::new();
    (0..40).for_each(|value| listpack.append_int(value));
    let mut below = |bound: usize| fastrand::usize(..bound);
    let mut seen = vec![];
    listpack.random_with_repeats(2, 100, &mut below, &mut |field, value| seen.push((field, value)));
    assert_eq!(seen.len(), 100);
    assert!(seen.iter().all(|(field, value)| field.as_int().unwrap() + 1 == value.as_int().unwrap()));
    let mut seen = vec![];
    assert_eq!(listpack.random_distinct(1, 7, &mut below, &mut |elem, _| seen.push(elem.as_int().unwrap())), 7);
    assert!(seen.is_sorted_by(|a, b| a < b));
    assert_eq!(listpack.random_distinct(2, 99, &mut below, &mut |_, _| {}), 20);
    assert_eq!(listpack.pair(19), Some((Elem::Int(38), Elem::Int(39))));
    assert_eq!(listpack.pair(20), None);
}

#[test]
fn a_raw_pointer_round_trips() {
    let mut listpack = Listpack::new();
    listpack.append(b"x");
    let raw = listpack.into_raw();
    assert_eq!(raw.as_ptr() as usize % 16, 0);
    // SAFETY: the pointer was given by into_raw just above.
    let listpack = unsafe { Listpack::from_raw(raw) };
    assert_eq!(listpack.len(), 1);
}

#[test]
fn a_batch_is_its_entries_one_by_one() {
    let values: [&[u8]; 6] = [b"", b"12", b"-70000", b"text", &[b'x'; 70], &[b'y'; 5000]];
    let mut single = Listpack::new();
    let mut batched = Listpack::new();
    for round in 0..3 {
        let mut batch = Batch::with_capacity(8);
        for value in values {
            single.append(value);
            batch.push(value);
        }
        single.append_int(i64::MIN + round);
        batch.push_int(i64::MIN + round);
        batched.append_batch(&batch);
        batched.check();
        assert_eq!(single, batched);
    }
}
