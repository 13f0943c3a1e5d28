//! Hot path: request templates. No allocation, no formatting, no clock.
//!
//! The bytes of a whole batch are built once per test. Before a send only the *places* that
//! vary are overwritten, at fixed offsets and fixed width, and the batch is one slice:
//!
//! ```text
//! *2␍␊$3␍␊GET␍␊$16␍␊key:__rand_int__␍␊ *2␍␊$3␍␊GET␍␊$16␍␊key:__rand_int__␍␊ …   (-P times)
//! └ starts[0]            └ places[0]    └ starts[1]            └ places[1]
//! ```
//!
//! A sequence of several commands (`a ; b`) is unrolled so that a batch may begin at any of
//! them: the buffer holds the sequence's length plus `-P` commands.
//!
//! Invariant: `starts` ascends from 0 to `bytes.len()`; every place lies inside one command and
//! places do not overlap; `place_starts[i]` counts the places before command `i`.

use std::collections::VecDeque;

use crate::{keys::Keys, random::AdditiveRandom, values};

/// Commands ready to send, with their variable places.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    places: Vec<Place>,
    place_starts: Vec<usize>,
    /// All places are numbers of their own: the common case, filled without a look at each one's kind.
    has_only_numbers: bool,
    sequence_length: usize,
    /// For each command of the sequence whether the value that comes back is checked (`--verify`).
    is_checked: Vec<bool>,
}

/// What the places are filled from; one per thread.
#[derive(Debug)]
pub(crate) struct Filler<'a> {
    /// Numbers for `__rand_int__` and its kin.
    pub(crate) keys: &'a mut Keys,
    /// Random choice of value bytes and slot tags.
    pub(crate) random: &'a mut AdditiveRandom,
    /// Tags of the slots of the node that the batch goes to; empty outside cluster mode.
    pub(crate) tags: &'a [[u8; 3]],
    /// Random bytes to cut values from (`--value random`), at least twice the largest value.
    pub(crate) value_pool: &'a [u8],
    /// Takes the key number of each command whose reply is to be checked, and [`NOT_CHECKED`] for the others.
    pub(crate) asked: Option<&'a mut VecDeque<u64>>,
}

/// Stands for a key number where the reply is not to be checked.
pub(crate) const NOT_CHECKED: u64 = u64::MAX;

/// What a template's variable parts may be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Substitution {
    /// Replace `__rand_int__` and `__rand_1st__` … `__rand_9th__` (`-r`).
    pub(crate) numbers: bool,
    /// Replace the inside of `{tag}` (`--cluster`).
    pub(crate) tags: bool,
    /// Length of the value whose copies are overwritten with random bytes, 0 for none.
    pub(crate) value_bytes: usize,
    /// Values carry a checksum (`--verify`).
    pub(crate) checked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: usize,
    fill: Fill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// Twelve digits, new at each occurrence.
    Number,
    /// Twelve digits, equal within one command; the index of the ordinal placeholder.
    Ordinal(u8),
    /// Three bytes between the braces of a hash tag.
    Tag,
    /// That many bytes of the value pool.
    Value(usize),
    /// The same, with the checksum and the number of the key before it.
    Checked(usize),
}

impl Template {
    /// Unrolls `commands` (a sequence, each RESP-encoded or inline) for batches of `pipeline`.
    /// `value` is the payload looked for when values are to vary.
    pub(crate) fn new(commands: &[Vec<u8>], pipeline: usize, substitution: Substitution, value: &[u8]) -> Template {
        let sequence_length = commands.len().max(1);
        let unrolled = if commands.len() <= 1 { pipeline } else { commands.len() + pipeline };
        let found: Vec<Vec<Place>> = commands.iter().map(|command| find_places(command, substitution, value)).collect();
        let mut template = Template {
            bytes: Vec::with_capacity(commands.first().map_or(0, Vec::len) * unrolled),
            starts: vec![0],
            places: Vec::new(),
            place_starts: vec![0],
            has_only_numbers: found.iter().flatten().all(|place| place.fill == Fill::Number),
            sequence_length,
            is_checked: commands
                .iter()
                .zip(&found)
                .map(|(command, places)| substitution.checked && is_checked_read(command, places))
                .collect(),
        };
        for (command, places) in commands.iter().zip(&found).cycle().take(unrolled) {
            let base = template.bytes.len();
            template.bytes.extend_from_slice(command);
            template.places.extend(places.iter().map(|place| Place { offset: base + place.offset, ..*place }));
            template.starts.push(template.bytes.len());
            template.place_starts.push(template.places.len());
        }
        template
    }

    /// Commands after which the sequence starts again.
    pub(crate) fn sequence_length(&self) -> usize {
        self.sequence_length
    }

    /// Appends `count` commands (at most the pipeline depth), beginning with the `first`
    /// (modulo the sequence), after filling their places.
    #[inline]
    pub(crate) fn render(&mut self, first: usize, count: usize, filler: &mut Filler<'_>, out: &mut Vec<u8>) {
        let first = if self.sequence_length == 1 { 0 } else { first % self.sequence_length };
        let last = (first + count).min(self.starts.len() - 1);
        debug_assert_eq!(last - first, count, "a batch is at most the pipeline depth");
        if self.has_only_numbers && filler.asked.is_none() {
            for place in &self.places[self.place_starts[first]..self.place_starts[last]] {
                write_twelve_digits(&mut self.bytes[place.offset..place.offset + 12], filler.keys.next());
            }
        } else if !self.places.is_empty() || filler.asked.is_some() {
            for command in first..last {
                self.fill(command, filler);
            }
        }
        out.extend_from_slice(&self.bytes[self.starts[first]..self.starts[last]]);
    }

    #[inline]
    fn fill(&mut self, command: usize, filler: &mut Filler<'_>) {
        let mut tag: Option<[u8; 3]> = None;
        let mut ordinals = [None; 9];
        let mut last_number = 0;
        let places = self.place_starts[command]..self.place_starts[command + 1];
        for place in &self.places[places] {
            let at = place.offset;
            match place.fill {
                Fill::Number => {
                    last_number = filler.keys.next();
                    write_twelve_digits(&mut self.bytes[at..at + 12], last_number);
                }
                Fill::Ordinal(index) => {
                    last_number = *ordinals[usize::from(index)].get_or_insert_with(|| filler.keys.next());
                    write_twelve_digits(&mut self.bytes[at..at + 12], last_number);
                }
                Fill::Tag => {
                    let tag = *tag.get_or_insert_with(|| match filler.tags {
                        [] => *b"tag",
                        tags => tags[index_below(filler.random, tags.len())],
                    });
                    self.bytes[at..at + 3].copy_from_slice(&tag);
                }
                Fill::Value(length) | Fill::Checked(length) => {
                    let spare = filler.value_pool.len().saturating_sub(length);
                    let from = index_below(filler.random, spare.max(1));
                    let value = &mut self.bytes[at..at + length];
                    if let Some(bytes) = filler.value_pool.get(from..from + length) {
                        value.copy_from_slice(bytes);
                    }
                    if place.fill == Fill::Checked(length) {
                        values::seal(value, last_number);
                    }
                }
            }
        }
        if let Some(asked) = &mut filler.asked {
            let is_checked = self.is_checked.get(command % self.sequence_length).copied().unwrap_or(false);
            asked.push_back(if is_checked { last_number } else { NOT_CHECKED });
        }
    }

    /// Whether any command holds a `{tag}` to fill.
    pub(crate) fn has_tags(&self) -> bool {
        self.places.iter().any(|place| place.fill == Fill::Tag)
    }
}

/// Encodes words as a RESP array of bulk strings.
pub(crate) fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        command.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        command.extend_from_slice(word);
        command.extend_from_slice(b"\r\n");
    }
    command
}

/// Writes `number` modulo 10¹² over the twelve bytes of `place`, padded with zeros.
#[inline]
pub(crate) fn write_twelve_digits(place: &mut [u8], number: u64) {
    // Divisions of 32 bits are cheaper, and most key spaces need no more than the lower eight digits.
    let (high, low) = match u32::try_from(number) {
        Ok(number) if number < EIGHT_DIGITS => (0, number),
        _ => {
            let (high, low) = (number / u64::from(EIGHT_DIGITS), number % u64::from(EIGHT_DIGITS));
            (u32::try_from(high % 10_000).unwrap_or(0), u32::try_from(low).unwrap_or(0))
        }
    };
    let (upper, lower) = place.split_at_mut(4);
    if high == 0 {
        upper.copy_from_slice(b"0000");
    } else {
        write_pairs(upper, high);
    }
    write_pairs(lower, low);
}

/// Two digits at a time: half the divisions.
#[inline]
fn write_pairs(place: &mut [u8], number: u32) {
    let mut rest = number;
    for pair in place.rchunks_exact_mut(2) {
        let at = (rest % 100) as usize * 2;
        rest /= 100;
        pair.copy_from_slice(&DIGIT_PAIRS[at..at + 2]);
    }
}

fn index_below(random: &mut AdditiveRandom, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or(0)
}

fn find_places(command: &[u8], substitution: Substitution, value: &[u8]) -> Vec<Place> {
    let mut places = Vec::new();
    let mut at = 0;
    while at < command.len() {
        let rest = &command[at..];
        let found = match rest[0] {
            b'_' if substitution.numbers => number_at(rest).map(|fill| (at, fill, 12)),
            b'{' if substitution.tags && rest.starts_with(b"{tag}") => Some((at + 1, Fill::Tag, 5)),
            _ if substitution.value_bytes > 0
                && value.len() == substitution.value_bytes
                && rest.starts_with(value)
                && rest[value.len()..].starts_with(b"\r\n")
                && at > 0
                && command[at - 1] == b'\n' =>
            {
                let fill = if substitution.checked { Fill::Checked(value.len()) } else { Fill::Value(value.len()) };
                Some((at, fill, value.len()))
            }
            _ => None,
        };
        match found {
            Some((offset, fill, length)) => {
                places.push(Place { offset, fill });
                at += length;
            }
            None => at += 1,
        }
    }
    places
}

/// Whether a command is a GET of one key, whose number is known.
fn is_checked_read(command: &[u8], places: &[Place]) -> bool {
    let is_get = command
        .get(..b"*2\r\n$3\r\nGET\r\n".len())
        .is_some_and(|head| head.eq_ignore_ascii_case(b"*2\r\n$3\r\nGET\r\n"));
    let numbers = places.iter().filter(|place| matches!(place.fill, Fill::Number | Fill::Ordinal(_))).count();
    is_get && numbers <= 1
}

fn number_at(text: &[u8]) -> Option<Fill> {
    if text.starts_with(b"__rand_int__") {
        return Some(Fill::Number);
    }
    let ordinal = ORDINALS.iter().position(|ordinal| text.starts_with(ordinal))?;
    u8::try_from(ordinal).ok().map(Fill::Ordinal)
}

/// Numbers below this have eight digits at most.
const EIGHT_DIGITS: u32 = 100_000_000;

/// `000102…99`.
const DIGIT_PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut at = 0;
    let (mut tens, mut ones) = (b'0', b'0');
    while at < pairs.len() {
        pairs[at] = tens;
        pairs[at + 1] = ones;
        at += 2;
        (tens, ones) = if ones == b'9' { (tens + 1, b'0') } else { (tens, ones + 1) };
    }
    pairs
};

/// Valkey: placeholders whose number is the same wherever they occur in one command.
const ORDINALS: [&[u8]; 9] = [
    b"__rand_1st__",
    b"__rand_2nd__",
    b"__rand_3rd__",
    b"__rand_4th__",
    b"__rand_5th__",
    b"__rand_6th__",
    b"__rand_7th__",
    b"__rand_8th__",
    b"__rand_9th__",
];

#[cfg(test)]
mod tests;
