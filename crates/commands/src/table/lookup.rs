//! Hot path: from the bytes of a name to its row. No allocation, no lock, no hashing of more than
//! sixteen bytes; about forty instructions for a name that exists.
//!
//! A name of up to sixteen bytes becomes two words: the first and the last eight bytes, which
//! overlap for names of eight to fifteen bytes, so that with the length they determine the name.
//! Shorter names are put together from overlapping halves in the same way. Both words, with bit 5
//! of each byte cleared, are multiplied into a hash, which leads to one of 512 cells of a cache line
//! each, built at compile time:
//!
//! ```text
//! cell: | first | last | first_mask | last_mask | spec | length | padding to 64 bytes |
//! ```
//!
//! A mask has 0xdf for each letter of the name and 0xff for any other byte: a letter may differ in
//! bit 5, which is its case, and nothing else may differ at all. So no byte need be folded exactly.
//! A cell without row ends the search. Longer names, two of them, are compared one by one.

use super::CommandSpec;
use super::FAMILIES;

const CELLS: usize = 512;
const CELL_BITS: u32 = CELLS.trailing_zeros();
const NAME_LEN_MAX: usize = 16;
/// Of some well-known odd constants and rotations by whole bytes, which keep the case bits in place,
/// the pair that moved the names least from their cells: 70 steps for 239 names, at most 5.
const ROTATION: u32 = 56;
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;
/// All bits but the one that tells the case of a letter.
const CASELESS: u64 = 0xdfdf_dfdf_dfdf_dfdf;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Cell {
    first: u64,
    last: u64,
    first_mask: u64,
    last_mask: u64,
    spec: Option<&'static CommandSpec>,
    length: usize,
}

const _: () = assert!(size_of::<Cell>() == 64);

static TABLE: [Cell; CELLS] = build_table();
static LONG_NAMES: [&CommandSpec; LONG_NAME_COUNT] = collect_long_names();
const LONG_NAME_COUNT: usize = count_long_names();

/// The row of a command by its name in any case; `None` if there is no such command. Finds no
/// subcommands: `config|get` is not a command's name here.
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    let Some((first, last)) = words(name) else {
        return lookup_long(name);
    };
    let mut at = home(first, last);
    loop {
        let cell = &TABLE[at % CELLS];
        let differs = ((first ^ cell.first) & cell.first_mask)
            | ((last ^ cell.last) & cell.last_mask)
            | (name.len() ^ cell.length) as u64;
        if differs == 0 || cell.spec.is_none() {
            return cell.spec;
        }
        at += 1;
    }
}

/// The row of a container's subcommand by its name in any case.
pub fn lookup_sub(container: &CommandSpec, name: &[u8]) -> Option<&'static CommandSpec> {
    let prefix = container.name.len() + 1;
    container.subcommands.iter().find(|subcommand| {
        subcommand.name.as_bytes().get(prefix..).is_some_and(|short| short.eq_ignore_ascii_case(name))
    })
}

#[cold]
fn lookup_long(name: &[u8]) -> Option<&'static CommandSpec> {
    LONG_NAMES.iter().copied().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

/// The name as two words, or `None` if it is empty or longer than sixteen bytes.
#[inline]
const fn words(name: &[u8]) -> Option<(u64, u64)> {
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        if name.len() > NAME_LEN_MAX {
            return None;
        }
        return Some((u64::from_le_bytes(*first), u64::from_le_bytes(*last)));
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return Some((first as u64, last as u64));
    }
    match name {
        [a, b, c] => Some((u32::from_le_bytes([*a, *b, *c, 0]) as u64, 0)),
        [a, b] => Some((u32::from_le_bytes([*a, *b, 0, 0]) as u64, 0)),
        [a] => Some((*a as u64, 0)),
        _ => None,
    }
}

/// The cell where the search for a name begins.
#[inline]
const fn home(first: u64, last: u64) -> usize {
    let mixed = ((first ^ last.rotate_left(ROTATION)) & CASELESS).wrapping_mul(MULTIPLIER);
    #[allow(clippy::cast_possible_truncation, reason = "the shift leaves nine bits")]
    let home = (mixed >> (u64::BITS - CELL_BITS)) as usize;
    home
}

/// 0xdf for each lower-case letter of a word, 0xff for any other byte.
const fn case_mask(word: u64) -> u64 {
    let mut mask = word.to_le_bytes();
    let mut at = 0;
    while at < mask.len() {
        mask[at] = if mask[at].is_ascii_lowercase() { 0xdf } else { 0xff };
        at += 1;
    }
    u64::from_le_bytes(mask)
}

const fn build_table() -> [Cell; CELLS] {
    let free = Cell { first: 0, last: 0, first_mask: 0, last_mask: 0, spec: None, length: 0 };
    let mut table = [free; CELLS];
    let mut family = 0;
    while family < FAMILIES.len() {
        let rows = FAMILIES[family];
        let mut index = 0;
        while index < rows.len() {
            let spec = &rows[index];
            let length = spec.name.len();
            if let Some((first, last)) = words(spec.name.as_bytes()) {
                let mut at = home(first, last);
                while table[at % CELLS].spec.is_some() {
                    at += 1;
                }
                let (first_mask, last_mask) = (case_mask(first), case_mask(last));
                let spec = Some(spec);
                table[at % CELLS] = Cell { first, last, first_mask, last_mask, spec, length };
            }
            index += 1;
        }
        family += 1;
    }
    table
}

const fn count_long_names() -> usize {
    let mut count = 0;
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut index = 0;
        while index < FAMILIES[family].len() {
            if FAMILIES[family][index].name.len() > NAME_LEN_MAX {
                count += 1;
            }
            index += 1;
        }
        family += 1;
    }
    count
}

const fn collect_long_names() -> [&'static CommandSpec; LONG_NAME_COUNT] {
    let mut names = [&FAMILIES[0][0]; LONG_NAME_COUNT];
    let mut count = 0;
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut index = 0;
        while index < FAMILIES[family].len() {
            let spec = &FAMILIES[family][index];
            if spec.name.len() > NAME_LEN_MAX {
                names[count] = spec;
                count += 1;
            }
            index += 1;
        }
        family += 1;
    }
    names
}
