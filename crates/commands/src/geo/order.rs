//! Sorting by distance.
//!
//! Members may be equally far away (in the same cell, that is), and their order then is that of the algorithm: a stable
//! one where all are wanted, and the quicksort of Bentley and McIlroy ("Engineering a Sort Function", 1993), cut short
//! where nobody looks, where only the first ones are. Both are what Redis does.

use std::cmp::Ordering;

/// Sorts `items` so far that the first `keep` are right.
pub(super) fn sort_first<T>(items: &mut [T], keep: usize, compare: &impl Fn(&T, &T) -> Ordering) {
    if keep >= items.len() {
        items.sort_by(compare);
    } else {
        let rounds = items.len().ilog2() * 2 + 16;
        partial_quicksort(items, keep, rounds, compare);
    }
}

/// Sorts at least the first `keep`. After so many `rounds` of bad luck another algorithm goes on: no input may cost
/// quadratic time or deep recursion.
fn partial_quicksort<T>(mut items: &mut [T], mut keep: usize, mut rounds: u32, compare: &impl Fn(&T, &T) -> Ordering) {
    loop {
        let len = items.len();
        if len < 7 {
            for end in 1..len {
                let mut at = end;
                while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
                    items.swap(at - 1, at);
                    at -= 1;
                }
            }
            return;
        }
        if rounds == 0 {
            items.sort_by(compare);
            return;
        }
        rounds -= 1;
        let pivot = pivot(items, compare);
        items.swap(0, pivot);
        let (less, greater) = partition(items, compare);
        let (head, tail) = items.split_at_mut(len - greater);
        if less > 1 {
            let head = head.get_mut(..less).unwrap_or_default();
            partial_quicksort(head, keep, rounds, compare);
        }
        if greater <= 1 || keep <= len - greater {
            return;
        }
        keep -= len - greater;
        items = tail;
    }
}

/// Index of the element to split by: the middle one, the median of three, or that of three medians.
fn pivot<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let len = items.len();
    let (mut low, mut middle, mut high) = (0, len / 2, len - 1);
    if len > 7 {
        if len > 40 {
            let gap = len / 8;
            low = median(items, [low, low + gap, low + 2 * gap], compare);
            middle = median(items, [middle - gap, middle, middle + gap], compare);
            high = median(items, [high - 2 * gap, high - gap, high], compare);
        }
        middle = median(items, [low, middle, high], compare);
    }
    middle
}

fn median<T>(items: &[T], [first, second, third]: [usize; 3], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let order = |one: usize, other: usize| compare(&items[one], &items[other]);
    if order(first, second).is_lt() {
        match () {
            () if order(second, third).is_lt() => second,
            () if order(first, third).is_lt() => third,
            () => first,
        }
    } else {
        match () {
            () if order(second, third).is_gt() => second,
            () if order(first, third).is_lt() => first,
            () => third,
        }
    }
}

/// Splits by the first element: those less come first, those greater last, equal ones between them. Gives the counts of
/// less and greater ones.
///
/// On the way equal ones are gathered at both ends.
fn partition<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let len = items.len();
    // Items ..equal_low are equal, ..low not greater; items high + 1.. are not less, equal_high + 1.. equal.
    let (mut equal_low, mut low) = (1, 1);
    let (mut high, mut equal_high) = (len - 1, len - 1);
    loop {
        while low <= high {
            let order = compare(&items[low], &items[0]);
            if order.is_gt() {
                break;
            }
            if order.is_eq() {
                items.swap(equal_low, low);
                equal_low += 1;
            }
            low += 1;
        }
        while low <= high {
            let order = compare(&items[high], &items[0]);
            if order.is_lt() {
                break;
            }
            if order.is_eq() {
                items.swap(high, equal_high);
                equal_high -= 1;
            }
            high -= 1;
        }
        if low > high {
            break;
        }
        items.swap(low, high);
        low += 1;
        high -= 1;
    }
    let (less, greater) = (low - equal_low, equal_high - high);
    swap_runs(items, 0, low, equal_low.min(less));
    swap_runs(items, low, len, greater.min(len - 1 - equal_high));
    (less, greater)
}

/// Exchanges `count` items from `start` on with those before `end`.
fn swap_runs<T>(items: &mut [T], start: usize, end: usize, count: usize) {
    for index in 0..count {
        items.swap(start + index, end - count + index);
    }
}
