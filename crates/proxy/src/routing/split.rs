//! Cutting a command of many keys into one request for each group.
//!
//! One pass over the keys: the place of a key in its group's part is where it stands in the request, so a key that comes
//! twice keeps its order (MSET: the later value wins, as in one server).

use commands::table::ArgView;
use smallvec::SmallVec;

use super::Split;

/// The keys of one group: their numbers among the keys of the request, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it goes: what the caller's function said.
    pub target: u32,
    /// Numbers of its keys, ascending.
    pub keys: Vec<u32>,
}

/// The parts in the order of their first keys.
pub type Parts = SmallVec<[Part; 4]>;

/// The keys of a call, by where they go. `target_of` says where a key goes, or why it goes nowhere.
///
/// # Errors
/// The first that `target_of` gives.
pub fn split<A: ArgView + ?Sized, E>(
    split: Split,
    args: &A,
    mut target_of: impl FnMut(&[u8]) -> Result<u32, E>,
) -> Result<Parts, E> {
    let mut parts = Parts::new();
    let stride = split.stride();
    let mut number = 0;
    let mut position = 1;
    while let Some(key) = args.arg(position) {
        let target = target_of(key)?;
        match parts.iter_mut().find(|part| part.target == target) {
            Some(part) => part.keys.push(number),
            None => parts.push(Part { target, keys: vec![number] }),
        }
        number += 1;
        position += stride;
    }
    Ok(parts)
}

/// Appends the request for some keys of a call to `out`.
pub fn write_part<A: ArgView + ?Sized>(out: &mut Vec<u8>, split: Split, args: &A, keys: &[u32]) {
    let stride = split.stride();
    let name = args.arg(0).unwrap_or_default();
    let of_keys = keys.iter().flat_map(|number| {
        let first = 1 + *number as usize * stride;
        (first..first + stride).map(|position| args.arg(position).unwrap_or_default())
    });
    let mut words: SmallVec<[&[u8]; 32]> = SmallVec::with_capacity(1 + keys.len() * stride);
    words.push(name);
    words.extend(of_keys);
    resp::write_command(out, words.as_slice());
}
