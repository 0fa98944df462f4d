//! The order of dependency: what produces something is above what reads it.

use std::collections::BTreeSet;

/// The numbers below `count`, each after those that lead to it by an edge from one to another, and otherwise ascending. Of a cycle
/// the lowest comes first.
pub(super) fn by_dependency(count: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut open = vec![0_usize; count];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in edges.iter().filter(|(from, to)| from != to && *from < count && *to < count) {
        open[*to] += 1;
        readers[*from].push(*to);
    }
    let mut left: BTreeSet<usize> = (0..count).collect();
    let mut ready: BTreeSet<usize> = left.iter().copied().filter(|one| open[*one] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(next) = ready.pop_first().or_else(|| left.first().copied()) {
        if !left.remove(&next) {
            continue;
        }
        order.push(next);
        for reader in &readers[next] {
            open[*reader] = open[*reader].saturating_sub(1);
            if open[*reader] == 0 && left.contains(reader) {
                ready.insert(*reader);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
        by_dependency(count, &edges.iter().copied().collect())
    }

    #[test]
    fn producers_come_first_and_all_else_stays_as_it_was() {
        assert_eq!(order(4, &[]), [0, 1, 2, 3]);
        assert_eq!(order(4, &[(3, 0), (1, 0)]), [1, 2, 3, 0]);
        assert_eq!(order(5, &[(4, 3), (3, 2), (2, 1), (1, 0)]), [4, 3, 2, 1, 0]);
    }

    #[test]
    fn a_cycle_loses_nobody() {
        assert_eq!(order(4, &[(0, 1), (1, 0), (1, 2), (2, 2), (3, 0)]), [3, 0, 1, 2]);
        assert_eq!(order(3, &[(0, 1), (1, 2), (2, 0)]), [0, 1, 2]);
        assert_eq!(order(2, &[(7, 0), (0, 9)]), [0, 1]);
        assert_eq!(order(0, &[]), [] as [usize; 0]);
    }
}
