//! Glob patterns as KEYS, SCAN MATCH, PSUBSCRIBE and CONFIG GET understand them.
//!
//! A pattern is a sequence of tokens: a byte, `?` (any byte), `[…]` (a set, `^` negates, `a-z` is a
//! range, `\` escapes inside it), `\x` (the byte x) and `*` (any run of bytes). Everything except
//! `*` consumes exactly one byte, so two positions suffice to match: on a mismatch the text is taken
//! one byte further from the *latest* star. An earlier star never has to be revisited, because the
//! piece between two stars was already matched at its leftmost place. The work is thus at most
//! `pattern × text` steps, and close to their sum for patterns like `a*a*a*…`; there is no recursion
//! and no allocation. What is left of the product (a long piece that almost fits everywhere, a set of
//! a hundred thousand members) is cut off by a budget that only the length of the text raises; who
//! passes it does not match. Redis gives up likewise, after a thousand stars.
//!
//! The piece after the last star is only tried at the end of the text, where it has to lie.
//!
//! Odd corners follow Redis: an unclosed set ends at the end of the pattern, a lone trailing
//! backslash stands for itself, and an empty text matches nothing but an empty pattern.

/// Bytes of the pattern that may be looked at for one text, and this many more for each byte of it.
const BUDGET: usize = 64 * 1024;
const BUDGET_PER_BYTE: usize = 256;

/// Result of holding one non-star token against one byte.
struct Step {
    /// Whether the byte satisfies the token.
    matched: bool,
    /// Position in the pattern after the token.
    next: usize,
}

/// Whether `text` as a whole matches `pattern`.
///
/// `nocase` compares ASCII letters without regard to case. Any bytes are allowed on both sides.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let mut at_pattern = 0;
    let mut at_text = 0;
    // Where to resume when a literal piece fails: (pattern after the star, text the star ate up to).
    let mut resume: Option<(usize, usize)> = None;
    let mut budget = text.len().saturating_mul(BUDGET_PER_BYTE).saturating_add(BUDGET);

    while let Some(&byte) = text.get(at_text) {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                at_pattern += 1;
                while pattern.get(at_pattern) == Some(&b'*') {
                    at_pattern += 1;
                }
                if at_pattern == pattern.len() {
                    return true;
                }
                match final_length(pattern, at_pattern, text.len() - at_text, &mut budget) {
                    Piece::Inner => {}
                    Piece::Final(length) => {
                        at_text = text.len() - length;
                        resume = None;
                        continue;
                    }
                    Piece::TooLong => return false,
                }
                // Jump straight to the next byte that can start the piece, if it starts literally.
                at_text = match skip_to_literal(pattern, at_pattern, text, at_text, nocase) {
                    Some(found) => found,
                    None => return false,
                };
                resume = Some((at_pattern, at_text));
                continue;
            }
            Some(_) => {
                let step = step(pattern, at_pattern, byte, nocase);
                let Some(left) = budget.checked_sub(step.next - at_pattern) else { return false };
                budget = left;
                if step.matched {
                    at_pattern = step.next;
                    at_text += 1;
                    continue;
                }
            }
            None => {}
        }
        let Some((piece, tried)) = resume else {
            return false;
        };
        at_text = match skip_to_literal(pattern, piece, text, tried + 1, nocase) {
            Some(found) => found,
            None => return false,
        };
        at_pattern = piece;
        resume = Some((piece, at_text));
    }
    pattern.get(at_pattern..).is_some_and(|rest| rest.iter().all(|&byte| byte == b'*'))
}

/// A piece between stars, seen from its start.
enum Piece {
    /// Another star follows.
    Inner,
    /// It is the last one and consumes this many bytes.
    Final(usize),
    /// It consumes more than there is, or more than the budget was needed to know.
    TooLong,
}

/// Whether the piece at `at` is the last, and how many bytes it consumes; there are `room`.
fn final_length(pattern: &[u8], mut at: usize, room: usize, budget: &mut usize) -> Piece {
    let mut length = 0;
    while at < pattern.len() {
        if pattern.get(at) == Some(&b'*') {
            return Piece::Inner;
        }
        if length == room {
            return Piece::TooLong;
        }
        let next = step(pattern, at, 0, false).next;
        let Some(left) = budget.checked_sub(next - at) else { return Piece::TooLong };
        *budget = left;
        at = next;
        length += 1;
    }
    Piece::Final(length)
}

/// The first text position from `from` on where the piece at `piece` may begin: the place of its
/// first byte when that is a plain one, `from` itself otherwise. `None`: it can begin nowhere.
fn skip_to_literal(pattern: &[u8], piece: usize, text: &[u8], from: usize, nocase: bool) -> Option<usize> {
    let rest = text.get(from..)?;
    match pattern.get(piece) {
        Some(b'?' | b'[' | b'\\' | b'*') | None => Some(from),
        Some(&first) if nocase => {
            rest.iter().position(|byte| byte.eq_ignore_ascii_case(&first)).map(|offset| from + offset)
        }
        Some(&first) => rest.iter().position(|&byte| byte == first).map(|offset| from + offset),
    }
}

/// Holds the token at `at` (not a star) against `byte`.
fn step(pattern: &[u8], at: usize, byte: u8, nocase: bool) -> Step {
    match pattern.get(at) {
        Some(b'?') => Step { matched: true, next: at + 1 },
        Some(b'[') => set(pattern, at + 1, byte, nocase),
        Some(b'\\') if at + 1 < pattern.len() => {
            Step { matched: same(pattern.get(at + 1).copied(), byte, nocase), next: at + 2 }
        }
        literal => Step { matched: same(literal.copied(), byte, nocase), next: at + 1 },
    }
}

/// A set whose first byte after the bracket is at `at`.
fn set(pattern: &[u8], mut at: usize, byte: u8, nocase: bool) -> Step {
    let negated = pattern.get(at) == Some(&b'^');
    if negated {
        at += 1;
    }
    let mut found = false;
    loop {
        let left = pattern.len().saturating_sub(at);
        match pattern.get(at) {
            // An unclosed set ends with the pattern.
            None => break,
            Some(b'\\') if left >= 2 => {
                // An escaped member is compared as it stands, even without regard to case.
                found |= pattern.get(at + 1) == Some(&byte);
                at += 2;
            }
            Some(b']') => {
                at += 1;
                break;
            }
            Some(&low) if left >= 3 && pattern.get(at + 1) == Some(&b'-') => {
                let high = pattern.get(at + 2).copied().unwrap_or(low);
                found |= in_range(low, high, byte, nocase);
                at += 3;
            }
            Some(&member) => {
                found |= same(Some(member), byte, nocase);
                at += 1;
            }
        }
    }
    Step { matched: found != negated, next: at }
}

/// Whether `byte` lies in `low..=high`, whichever way round they are given. Bytes are compared
/// signed, as C's `char` is on x86, so that ranges over non-ASCII bytes agree with Redis.
fn in_range(low: u8, high: u8, byte: u8, nocase: bool) -> bool {
    let (mut low, mut high) = (low.cast_signed(), high.cast_signed());
    let mut byte = byte.cast_signed();
    if low > high {
        std::mem::swap(&mut low, &mut high);
    }
    if nocase {
        low = low.cast_unsigned().to_ascii_lowercase().cast_signed();
        high = high.cast_unsigned().to_ascii_lowercase().cast_signed();
        byte = byte.cast_unsigned().to_ascii_lowercase().cast_signed();
    }
    low <= byte && byte <= high
}

fn same(literal: Option<u8>, byte: u8, nocase: bool) -> bool {
    literal.is_some_and(|literal| if nocase { literal.eq_ignore_ascii_case(&byte) } else { literal == byte })
}

#[cfg(test)]
mod tests {
    use super::matches;
    use std::time::{Duration, Instant};

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected, "{pattern} on {text}");
    }

    #[test]
    fn plain_tokens() {
        check("", "", true);
        check("", "a", false);
        check("*", "", false);
        check("*", "a", true);
        check("***", "a", true);
        check("?", "", false);
        check("h?llo", "hello", true);
        check("h*llo", "hllo", true);
        check("h*llo", "heeeello", true);
        check("h*llo", "heeeellox", false);
        check("*:*:end", "a:b:c:end", true);
        check("*ab*ab", "xxabyab", true);
        check("*ab*ab", "xxab", false);
        check("a*", "b", false);
        check("abc**", "abc", true);
    }

    #[test]
    fn sets() {
        check("h[ae]llo", "hallo", true);
        check("h[ae]llo", "hillo", false);
        check("h[^e]llo", "hallo", true);
        check("h[^e]llo", "hello", false);
        check("h[a-c]llo", "hbllo", true);
        check("h[c-a]llo", "hbllo", true);
        check("[a-", "-", true);
        check("[abc", "b", true);
        check("[\\]]", "]", true);
        check("*[0-9]x", "key7x", true);
        check("[]", "a", false);
        check("[^]", "a", true);
        check("[\\", "\\", true);
    }

    #[test]
    fn escapes() {
        check("a\\*b", "a*b", true);
        check("a\\*b", "axb", false);
        check("\\?", "?", true);
        check("a\\", "a\\", true);
        check("*\\x", "ax", true);
    }

    #[test]
    fn case() {
        assert!(matches(b"MAX*", b"maxmemory", true));
        assert!(!matches(b"MAX*", b"maxmemory", false));
        assert!(matches(b"[A-C]x", b"bX", true));
        assert!(!matches(b"[\\A]", b"a", true));
    }

    /// Every pattern over a small alphabet against a plain recursive definition.
    #[test]
    fn agrees_with_the_definition() {
        fn define(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern.first(), text.first()) {
                (None, text) => text.is_none(),
                (Some(b'*'), _) => define(&pattern[1..], text) || (!text.is_empty() && define(pattern, &text[1..])),
                (Some(b'?'), Some(_)) => define(&pattern[1..], &text[1..]),
                (Some(one), Some(other)) => one == other && define(&pattern[1..], &text[1..]),
                (Some(_), None) => false,
            }
        }
        let words = |alphabet: &[u8], most: u32| -> Vec<Vec<u8>> {
            let base = alphabet.len();
            (0..=most)
                .flat_map(|length| (0..base.pow(length)).map(move |number| (length, number)))
                .map(|(length, mut number)| {
                    (0..length)
                        .map(|_| {
                            let byte = alphabet[number % base];
                            number /= base;
                            byte
                        })
                        .collect()
                })
                .collect()
        };
        let mut texts = words(b"ab", 6);
        texts.retain(|text| !text.is_empty());
        for pattern in words(b"ab*?", 5) {
            for text in &texts {
                assert_eq!(matches(&pattern, text, false), define(&pattern, text), "{pattern:?} {text:?}");
            }
        }
    }

    #[test]
    fn hostile_patterns_stay_cheap() {
        let text = vec![b'a'; 100_000];
        let mut many_stars = b"a*".repeat(2_000);
        many_stars.push(b'b');
        let start = Instant::now();
        assert!(!matches(&many_stars, &text, false));
        assert!(matches(&b"a*".repeat(50_000), &text, false));
        // A long piece that fits nearly everywhere, and one set of very many members.
        let almost = [b"*".as_slice(), &b"a".repeat(50_000), b"b*"].concat();
        assert!(!matches(&almost, &text[..2_000], false));
        let set = [b"*[".as_slice(), &b"b".repeat(100_000), b"]*"].concat();
        assert!(!matches(&set, &text[..2_000], false));
        assert!(!matches(&[b"*".as_slice(), &set].concat(), &text[..64], false));
        assert!(start.elapsed() < Duration::from_millis(50), "{:?}", start.elapsed());
    }
}
