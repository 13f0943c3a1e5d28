//! Patterns of COMMAND LIST: `*`, `?`, `[a-z]`, `[^a-z]` and `\` as Redis reads them, in any case.

/// Whether the whole text matches the pattern, upper and lower case being equal.
///
/// Remembers only the last star: going back to an earlier one cannot help, so the time is at most
/// the product of both lengths.
pub(super) fn matches_ignore_case(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut text) = (pattern, text);
    let mut after_star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', behind @ ..] = rest {
            rest = behind;
            after_star = Some((behind, text));
            continue;
        }
        if let Some((first, behind)) = text.split_first()
            && let Some(unread) = match_one(rest, *first)
        {
            (rest, text) = (unread, behind);
            continue;
        }
        if rest.is_empty() && text.is_empty() {
            return true;
        }
        // Let the star take one byte more.
        let Some((behind_star, [_, shorter @ ..])) = after_star else {
            return false;
        };
        (rest, text) = (behind_star, shorter);
        after_star = Some((behind_star, shorter));
    }
}

/// Matches one byte by the front of the pattern, which is no star; the unread pattern if it fits.
fn match_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', behind @ ..] => Some(behind),
        [b'[', class @ ..] => match_class(class, byte),
        [b'\\', literal, behind @ ..] | [literal, behind @ ..] => {
            literal.eq_ignore_ascii_case(&byte).then_some(behind)
        }
    }
}

/// Matches one byte by a class whose `[` has been read. Redis: a class without `]` ends with the
/// pattern, and the ends of a range may be exchanged.
fn match_class(class: &[u8], byte: u8) -> Option<&[u8]> {
    let byte = byte.to_ascii_lowercase();
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', literal, behind @ ..] => {
                found |= literal.to_ascii_lowercase() == byte;
                rest = behind;
            }
            [low, b'-', high, behind @ ..] => {
                let (low, high) = (low.to_ascii_lowercase(), high.to_ascii_lowercase());
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                rest = behind;
            }
            [literal, behind @ ..] => {
                found |= literal.to_ascii_lowercase() == byte;
                rest = behind;
            }
        }
    }
    (found != negated).then_some(rest)
}
