#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn value() -> impl Strategy<Value = i64> {
    prop_oneof![-20..20_i64, any::<i16>().prop_map(i64::from), any::<i32>().prop_map(i64::from), any::<i64>()]
}

proptest! {
    #[test]
    fn behaves_as_a_sorted_set(steps in proptest::collection::vec((any::<bool>(), value()), 0..200)) {
        let mut intset = Intset::new();
        let mut model = BTreeSet::new();
        for (insert, value) in steps {
            if insert {
                prop_assert_eq!(intset.insert(value), model.insert(value));
            } else {
                prop_assert_eq!(intset.remove(value), model.remove(&value));
            }
            intset.check();
            prop_assert_eq!(intset.contains(value), model.contains(&value));
            prop_assert_eq!(intset.len(), model.len());
            prop_assert_eq!(intset.min(), model.first().copied());
            prop_assert_eq!(intset.max(), model.last().copied());
        }
        prop_assert!(intset.iter().eq(model.iter().copied()));
        prop_assert!(intset.iter().rev().eq(model.iter().rev().copied()));
        if !model.is_empty() {
            let again = Intset::from_bytes(intset.as_bytes()).unwrap();
            prop_assert_eq!(again.as_bytes(), intset.as_bytes());
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_sound(bytes in proptest::collection::vec(any::<u8>(), 0..64), width in 0..9_u8) {
        let mut bytes = bytes;
        if bytes.len() >= 8 {
            let len = (bytes.len() - 8) / usize::from(width.max(1));
            bytes[..8].copy_from_slice(&[width, 0, 0, 0, u8::try_from(len).unwrap(), 0, 0, 0]);
        }
        if let Ok(intset) = Intset::from_bytes(&bytes) {
            intset.check();
        }
    }
}

#[test]
fn bytes_are_those_of_redis() {
    let mut intset = Intset::new();
    for value in [5, -1, 300] {
        intset.insert(value);
    }
    assert_eq!(intset.as_bytes(), [2, 0, 0, 0, 3, 0, 0, 0, 0xff, 0xff, 5, 0, 0x2c, 1]);
    intset.insert(-70_000);
    assert_eq!(&intset.as_bytes()[..12], [4, 0, 0, 0, 4, 0, 0, 0, 0x90, 0xee, 0xfe, 0xff]);
    assert!(Intset::from_bytes(&[2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0]).is_err());
}

#[test]
fn a_raw_pointer_round_trips() {
    let mut intset = Intset::new();
    intset.insert(7);
    let raw = intset.into_raw();
    // SAFETY: the pointer was given by into_raw just above.
    let intset = unsafe { Intset::from_raw(raw) };
    assert!(intset.contains(7));
}
