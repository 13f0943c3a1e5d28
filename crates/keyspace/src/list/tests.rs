#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

fn texts(list: &List) -> Vec<Vec<u8>> {
    list.iter().map(|elem| elem.to_vec()).collect()
}

fn limits(max_listpack_size: i32) -> ListLimits {
    ListLimits { max_listpack_size, packed_threshold: 1 << 30 }
}

#[derive(Clone, Debug)]
enum Step {
    Push(bool, Vec<u8>),
    PushMany(bool, Vec<Vec<u8>>),
    Pop(bool),
    Rotate(bool, bool),
    Set(usize, Vec<u8>),
    Insert(usize, bool, Vec<u8>),
    Remove(usize, bool, usize),
    Trim(usize, usize),
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0..40_i64).prop_map(|number| number.to_string().into_bytes()),
        2 => "[a-c]{1,3}".prop_map(String::into_bytes),
        2 => (1_usize..60, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => (any::<i64>()).prop_map(|number| number.to_string().into_bytes()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), value()).prop_map(|(end, value)| Step::Push(end, value)),
        2 => (any::<bool>(), prop::collection::vec(value(), 1..20)).prop_map(|(end, values)| Step::PushMany(end, values)),
        3 => any::<bool>().prop_map(Step::Pop),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(from, to)| Step::Rotate(from, to)),
        3 => (any::<usize>(), value()).prop_map(|(index, value)| Step::Set(index, value)),
        4 => (any::<usize>(), any::<bool>(), value()).prop_map(|(at, side, value)| Step::Insert(at, side, value)),
        2 => (any::<usize>(), any::<bool>(), 1_usize..4).prop_map(|(at, end, max)| Step::Remove(at, end, max)),
        1 => (0_usize..8, 0_usize..8).prop_map(|(front, back)| Step::Trim(front, back)),
    ]
}

fn end(front: bool) -> End {
    if front { End::Front } else { End::Back }
}

fn push(model: &mut VecDeque<Vec<u8>>, front: bool, value: Vec<u8>) {
    if front {
        model.push_front(value);
    } else {
        model.push_back(value);
    }
}

fn pop(model: &mut VecDeque<Vec<u8>>, front: bool) -> Option<Vec<u8>> {
    if front { model.pop_front() } else { model.pop_back() }
}

fn apply(list: &mut List, model: &mut VecDeque<Vec<u8>>, step: Step, limits: &ListLimits) {
    match step {
        Step::Push(front, value) => {
            list.push(end(front), &value, limits);
            push(model, front, value);
        }
        Step::PushMany(front, values) => {
            list.push_all(end(front), values.iter().map(Vec::as_slice), limits);
            for value in values {
                push(model, front, value);
            }
        }
        Step::Pop(front) => {
            assert_eq!(list.pop(end(front), limits, |elem| elem.to_vec()), pop(model, front));
        }
        Step::Rotate(from, to) => {
            let value = list.rotate(end(from), end(to), limits);
            let moved = pop(model, from);
            assert_eq!(value, moved);
            if let Some(value) = moved {
                push(model, to, value);
            }
        }
        Step::Set(index, value) => {
            let index = index % (model.len() + 2);
            assert_eq!(list.set(index, &value, limits), index < model.len());
            if let Some(place) = model.get_mut(index) {
                *place = value;
            }
        }
        Step::Insert(at, before, value) => {
            let Some(pivot) = model.get(at % (model.len() + 1)).cloned() else { return };
            let first = model.iter().position(|other| *other == pivot).unwrap();
            let side = if before { Side::Before } else { Side::After };
            assert!(list.insert(&pivot, side, &value, limits));
            model.insert(if before { first } else { first + 1 }, value);
        }
        Step::Remove(at, front, max) => {
            let Some(value) = model.get(at % (model.len() + 1)).cloned() else { return };
            let mut indices: Vec<usize> =
                model.iter().enumerate().filter(|(_, other)| **other == value).map(|(index, _)| index).collect();
            if !front {
                indices.reverse();
            }
            let positions: Vec<usize> = list.positions(&value, end(front), usize::MAX).collect();
            assert_eq!(positions, indices);
            indices.truncate(max);
            assert_eq!(list.remove(&value, end(front), max, limits), indices.len());
            indices.sort_unstable();
            for index in indices.into_iter().rev() {
                model.remove(index);
            }
        }
        Step::Trim(front, back) => {
            let kept = front..model.len().saturating_sub(back);
            list.trim(kept.clone(), limits);
            *model = model.iter().skip(kept.start).take(kept.len()).cloned().collect();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_list_behaves_like_a_deque(
        steps in prop::collection::vec(step(), 1..250),
        fill in prop_oneof![Just(-2), Just(-1), 1..6_i32, Just(128)],
        threshold in prop_oneof![Just(1_usize << 30), 10_usize..50],
    ) {
        let limits = ListLimits { max_listpack_size: fill, packed_threshold: threshold };
        let mut list = List::new();
        let mut model = VecDeque::new();
        for step in steps {
            apply(&mut list, &mut model, step, &limits);
            list.check();
            assert_eq!(texts(&list), Vec::from(model.clone()));
        }
        let backward: Vec<_> = list.range_back(model.len().saturating_sub(1), usize::MAX).map(|e| e.to_vec()).collect();
        assert_eq!(backward, model.iter().rev().cloned().collect::<Vec<_>>());
        for (index, value) in model.iter().enumerate() {
            assert_eq!(list.get(index).unwrap().to_vec(), *value);
        }
        assert_eq!(texts(&list.clone()), Vec::from(model.clone()));
        let mut builder = ListBuilder::new(limits);
        for node in list.nodes() {
            match node {
                NodeBytes::Packed(bytes) => builder.append_listpack(Listpack::from_bytes(bytes).unwrap()),
                NodeBytes::Plain(bytes) => builder.append_plain(bytes),
            }
        }
        assert_eq!(texts(&builder.finish()), Vec::from(model));
    }
}

#[test]
fn a_list_becomes_a_quicklist_past_one_node_and_turns_back_at_half() {
    let limits = limits(8);
    let mut list = List::new();
    for number in 0..8 {
        list.push(End::Back, number.to_string().as_bytes(), &limits);
        assert_eq!(list.encoding(), "listpack");
    }
    list.push(End::Back, b"8", &limits);
    assert_eq!((list.encoding(), list.nodes_len()), ("quicklist", 2));
    list.pop(End::Back, &limits, |_| ());
    assert_eq!((list.encoding(), list.len()), ("quicklist", 8));
    for _ in 0..4 {
        assert_eq!(list.encoding(), "quicklist");
        list.pop(End::Back, &limits, |_| ());
    }
    assert_eq!((list.encoding(), list.len()), ("listpack", 4));
}

#[test]
fn lengths_of_all_pushed_elements_decide_together() {
    let value = vec![b'x'; 5000];
    let mut list = List::new();
    list.push_all(End::Back, [&value[..], &value[..]].into_iter(), &limits(-2));
    assert_eq!((list.encoding(), list.nodes_len()), ("quicklist", 2));
}

#[test]
fn one_element_over_the_limit_makes_a_quicklist() {
    let mut list = List::new();
    list.push(End::Back, &vec![b'x'; 8192], &limits(-2));
    assert_eq!((list.encoding(), list.nodes_len()), ("quicklist", 1));
}

#[test]
fn a_large_element_has_a_node_of_its_own() {
    let limits = ListLimits { max_listpack_size: 4, packed_threshold: 10 };
    let mut list = List::new();
    list.push_all(End::Back, (0..5).map(|_| &b"12"[..]), &limits);
    list.push(End::Back, b"0123456789", &limits);
    assert!(matches!(list.nodes().last(), Some(NodeBytes::Plain(_))));
    assert!(list.set(1, b"9876543210", &limits));
    list.check();
    // The two nodes behind the new one were joined.
    assert_eq!(list.nodes_len(), 4);
    assert_eq!(list.get(1).unwrap().to_vec(), b"9876543210");
}

#[test]
fn many_nodes_are_found_by_index() {
    let limits = limits(2);
    let mut list = List::new();
    for number in 0..20_000 {
        list.push(End::Back, number.to_string().as_bytes(), &limits);
    }
    for number in 1..=20_000 {
        list.push(End::Front, (-number).to_string().as_bytes(), &limits);
    }
    list.check();
    for index in (0..40_000).step_by(37) {
        assert_eq!(list.get(index), Some(Elem::Int(i64::try_from(index).unwrap() - 20_000)));
    }
    list.trim(10_000..30_000, &limits);
    list.check();
    assert_eq!((list.len(), list.get(0)), (20_000, Some(Elem::Int(-10_000))));
    while list.len() > 1 {
        list.pop(End::Front, &limits, |_| ());
        list.pop(End::Back, &limits, |_| ());
    }
    list.check();
}

#[test]
fn a_list_can_go_to_another_thread() {
    fn needs_send<T: Send>() {}
    needs_send::<List>();
}
