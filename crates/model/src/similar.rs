//! The word that was probably meant.

/// The word closest to `wrong`, if one is close enough to be a typing mistake.
#[must_use]
pub fn closest<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 1 + wrong.chars().count() / 4;
    words
        .into_iter()
        .map(|word| (distance(&wrong.to_lowercase(), &word.to_lowercase()), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// The word that `wrong` was almost certainly meant to be: the closest one, if at most a third of the letters of the shorter word
/// are different. Short words that happen to be alike, such as `kind` and `id`, are left alone.
#[must_use]
pub fn mistyped<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = closest(wrong, words)?;
    let shorter = wrong.chars().count().min(close.chars().count());
    (distance(&wrong.to_lowercase(), &close.to_lowercase()) * 3 <= shorter).then_some(close)
}

/// Edits between two words (Levenshtein), where swapping two neighbours counts as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let width = b.len() + 1;
    let mut table = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let at = |i: usize, j: usize| table[i * width + j];
            let edits = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let changed = usize::from(a[i - 1] != b[j - 1]);
                    let plain = (at(i - 1, j) + 1).min(at(i, j - 1) + 1).min(at(i - 1, j - 1) + changed);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if swapped { plain.min(at(i - 2, j - 2) + 1) } else { plain }
                }
            };
            table[i * width + j] = edits;
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_close_and_other_words_are_not() {
        let words = ["hdfsCheckTrigger", "hourlySchedule", "trigger"];
        assert_eq!(closest("hdfsCheckTriger", words), Some("hdfsCheckTrigger"));
        assert_eq!(closest("hourlyschedule", words), Some("hourlySchedule"));
        assert_eq!(closest("trigegr", words), Some("trigger"));
        assert_eq!(closest("frobnicate", words), None);
    }

    #[test]
    fn short_words_that_happen_to_be_alike_are_not_mistyped() {
        let words = ["id", "url", "tags", "maxRetryCount"];
        assert_eq!(mistyped("kind", words), None);
        assert_eq!(mistyped("ID", words), Some("id"));
        assert_eq!(mistyped("tag", words), Some("tags"));
        assert_eq!(mistyped("maxRetrys", words), None);
        assert_eq!(mistyped("maxretrycont", words), Some("maxRetryCount"));
    }
}
