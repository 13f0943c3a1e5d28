//! Hot path: from the bytes of a name to its row. No allocation, no lock, no hashing of more than
//! sixteen bytes; about forty instructions for a name that exists.
//!
//! A name of up to sixteen bytes becomes two words: the first and the last eight bytes, which
//! overlap for names of eight to fifteen bytes, so that with the length they determine the name.
//! Shorter names are put together from overlapping halves in the same way. Both words are folded
//! to lower case at once, multiplied into a hash and looked for in a table of 512 cells that is
//! built at compile time:
//!
//! ```text
//! cell (24 bytes): | first: u64 | last: u64 | id: u16 | length: u8 | padding |
//! ```
//!
//! A cell whose length is 0 is free and ends the search. Longer names, five of them, are compared
//! one by one.

use super::CommandSpec;
use super::id::CommandId;
use super::{FAMILIES, SPECS};

const CELLS: usize = 512;
const CELL_BITS: u32 = CELLS.trailing_zeros();
const NAME_LEN_MAX: usize = 16;
/// Odd constant without pattern: the golden ratio as a 64-bit fraction.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy)]
struct Cell {
    first: u64,
    last: u64,
    id: CommandId,
    length: u8,
}

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
    let (first, last) = (fold(first), fold(last));
    let length = name.len();
    let mut at = home(first, last, length);
    loop {
        let cell = &TABLE[at % CELLS];
        if cell.first == first && cell.last == last && usize::from(cell.length) == length {
            return Some(SPECS[cell.id.index()]);
        }
        if cell.length == 0 {
            return None;
        }
        at += 1;
    }
}

/// The row of a container's subcommand by its name in any case.
pub fn lookup_sub(container: &CommandSpec, name: &[u8]) -> Option<&'static CommandSpec> {
    let prefix = container.name.len() + 1;
    container.subcommands.iter().find(|subcommand| {
        subcommand
            .name
            .as_bytes()
            .get(prefix..)
            .is_some_and(|short| short.eq_ignore_ascii_case(name))
    })
}

#[cold]
fn lookup_long(name: &[u8]) -> Option<&'static CommandSpec> {
    LONG_NAMES
        .iter()
        .copied()
        .find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
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

/// Sets bit 5 of each byte that is an upper-case ASCII letter.
#[inline]
const fn fold(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const LOW_BITS: u64 = 0x7f * EACH;
    const TOP_BITS: u64 = 0x80 * EACH;
    let low = word & LOW_BITS;
    // The top bit of each byte becomes 1 if the byte is beyond 'Z', or at least 'A'. No carry
    // leaves a byte: both addends are below 128.
    let beyond = low + (0x7f - b'Z' as u64) * EACH;
    let at_least = low + (0x80 - b'A' as u64) * EACH;
    let upper = !word & TOP_BITS & (at_least ^ beyond);
    word | (upper >> 2)
}

/// The cell where the search for a folded name begins.
#[inline]
const fn home(first: u64, last: u64, length: usize) -> usize {
    let mixed = (first ^ last.rotate_left(29) ^ length as u64).wrapping_mul(MULTIPLIER);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the shift leaves nine bits"
    )]
    let home = (mixed >> (u64::BITS - CELL_BITS)) as usize;
    home
}

const fn build_table() -> [Cell; CELLS] {
    let mut table = [Cell {
        first: 0,
        last: 0,
        id: CommandId::FIRST,
        length: 0,
    }; CELLS];
    let mut family = 0;
    while family < FAMILIES.len() {
        let rows = FAMILIES[family];
        let mut index = 0;
        while index < rows.len() {
            let spec = &rows[index];
            let name = spec.name.as_bytes();
            if let Some((first, last)) = words(name) {
                let mut at = home(first, last, name.len());
                while table[at % CELLS].length != 0 {
                    at += 1;
                }
                #[allow(clippy::cast_possible_truncation, reason = "at most sixteen bytes")]
                let length = name.len() as u8;
                table[at % CELLS] = Cell {
                    first,
                    last,
                    id: spec.id,
                    length,
                };
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
