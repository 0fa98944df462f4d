//! Every choice of one value from each of several lists.

use std::sync::Arc;

/// Visits each choice; the first list changes slowest. No lists give one empty choice, an empty list none.
pub(super) fn cross(lists: &[&[Arc<str>]], mut visit: impl FnMut(&[&Arc<str>])) {
    let mut at = vec![0; lists.len()];
    let Some(mut choice) = lists.iter().map(|list| list.first()).collect::<Option<Vec<&Arc<str>>>>() else { return };
    loop {
        visit(&choice);
        let mut place = lists.len();
        loop {
            let Some(before) = place.checked_sub(1) else { return };
            place = before;
            at[place] += 1;
            if let Some(value) = lists[place].get(at[place]) {
                choice[place] = value;
                break;
            }
            at[place] = 0;
            choice[place] = &lists[place][0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lists: &[&[&str]]) -> Vec<String> {
        let lists: Vec<Vec<Arc<str>>> =
            lists.iter().map(|list| list.iter().map(|one| Arc::from(*one)).collect()).collect();
        let slices: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let mut found = Vec::new();
        cross(&slices, |choice| found.push(choice.iter().map(|one| one.to_string()).collect()));
        found
    }

    #[test]
    fn the_first_list_changes_slowest() {
        assert_eq!(all(&[&["a", "b"], &["1"], &["x", "y"]]), ["a1x", "a1y", "b1x", "b1y"]);
        assert_eq!(all(&[&["a"], &[]]), Vec::<String>::new());
        assert_eq!(all(&[]), [""]);
    }
}
