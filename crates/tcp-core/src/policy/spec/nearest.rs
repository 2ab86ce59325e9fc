//! Suggestions for misspelled words.

use alloc::vec::Vec;

/// The candidate nearest to `word`, if it is near enough to be a typo.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().min(word.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in bytes, with one row of memory.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut above_left = i + 1;
        for (j, right) in b.bytes().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(usize::MAX);
            let cell = (diagonal + usize::from(left != right)).min(above + 1).min(above_left + 1);
            diagonal = above;
            above_left = cell;
            if let Some(slot) = row.get_mut(j + 1) {
                *slot = cell;
            }
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
