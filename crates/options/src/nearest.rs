//! Which known word a mistyped one may have been meant as.

use crate::Tool;

/// The known word that is nearest to `word`, if one is near: few letters wrong, missing, too many or swapped; or the
/// only one that begins like it.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed: Vec<char> = word.to_lowercase().chars().collect();
    let letters = typed.iter().filter(|letter| letter.is_alphanumeric()).count();
    if letters < 2 {
        return None;
    }
    let limit = if letters < 4 { 1 } else { 1 + letters / 5 };
    let known: Vec<&str> = known.filter(|known| known.trim_start_matches('-').len() > 1).collect();
    let close = known
        .iter()
        .map(|known| (distance(&typed, &known.to_lowercase().chars().collect::<Vec<_>>()), *known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= limit);
    if let Some((_, known)) = close {
        return Some(known);
    }
    let mut begun = known.iter().filter(|known| known.to_lowercase().starts_with(&word.to_lowercase()));
    match (begun.next(), begun.next()) {
        (Some(only), None) if letters >= 3 => Some(only),
        _ => None,
    }
}

/// `Did you mean '--latency'?` for a mistyped option of a tool.
#[must_use]
pub fn suggestion(tool: &Tool, option: &str) -> Option<String> {
    let name = option.split('=').next().unwrap_or(option);
    let names = tool.rows().filter(|row| row.is_listed).flat_map(|row| row.names());
    nearest(name, names).map(|known| format!("Did you mean '{known}'?"))
}

/// Letters to change, add or take away, or neighbours to swap, to get from one word to the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let at = |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, column) + usize::from(letter != other))
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            let swapped =
                row > 0 && column > 0 && from.get(row - 1) == Some(other) && to.get(column - 1) == Some(letter);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}
