//! The layer of each node.

/// The edges, those turned around that would close a cycle, and whether each was.
pub(super) fn acyclic(count: usize, edges: &[(usize, usize)]) -> Vec<((usize, usize), bool)> {
    let mut leaving = vec![Vec::new(); count];
    let mut is_led_to = vec![false; count];
    for (index, (from, to)) in edges.iter().enumerate() {
        leaving[*from].push((index, *to));
        is_led_to[*to] = true;
    }
    let mut walk = RankWalk { leaving, seen: vec![VisitState::Not; count], is_back: vec![false; edges.len()] };
    // A cycle is better cut where a path enters it than in its middle.
    let (begin, others): (Vec<usize>, Vec<usize>) = (0..count).partition(|node| !is_led_to[*node]);
    begin.into_iter().chain(others).for_each(|node| walk.from(node));
    let turned = |(edge, is_back): (&(usize, usize), bool)| match is_back {
        true => ((edge.1, edge.0), true),
        false => (*edge, false),
    };
    edges.iter().zip(walk.is_back).map(turned).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    Not,
    OnTheWay,
    Done,
}

struct RankWalk {
    leaving: Vec<Vec<(usize, usize)>>,
    seen: Vec<VisitState>,
    is_back: Vec<bool>,
}

impl RankWalk {
    /// A depth-first search with a stack of its own: a chain may be longer than the thread's.
    fn from(&mut self, first: usize) {
        if self.seen[first] != VisitState::Not {
            return;
        }
        self.seen[first] = VisitState::OnTheWay;
        let mut way = vec![(first, 0)];
        while let Some((node, next)) = way.last_mut() {
            let Some((edge, to)) = self.leaving[*node].get(*next).copied() else {
                self.seen[*node] = VisitState::Done;
                way.pop();
                continue;
            };
            *next += 1;
            match self.seen[to] {
                VisitState::OnTheWay => self.is_back[edge] = true,
                VisitState::Done => {}
                VisitState::Not => {
                    self.seen[to] = VisitState::OnTheWay;
                    way.push((to, 0));
                }
            }
        }
    }
}

/// The layer of each node, from 0, so that each edge leads to a later one. Edges must not close a cycle.
pub(super) fn ranks(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut up, mut down) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (from, to) in edges {
        down[*from].push(*to);
        up[*to].push(*from);
    }
    let sorted = sorted(&up, &down);
    let mut ranks = vec![0; count];
    for node in &sorted {
        ranks[*node] = up[*node].iter().map(|before| ranks[*before] + 1).max().unwrap_or(0);
    }
    // A node with more edges to the right than to the left is moved close to its successors: edges get shorter.
    for node in sorted.iter().rev().filter(|node| down[**node].len() > up[**node].len()) {
        ranks[*node] = down[*node].iter().map(|after| ranks[*after] - 1).min().unwrap_or(ranks[*node]);
    }
    let first = ranks.iter().min().copied().unwrap_or(0);
    ranks.iter_mut().for_each(|rank| *rank -= first);
    ranks
}

/// All nodes, each after those that lead to it.
fn sorted(up: &[Vec<usize>], down: &[Vec<usize>]) -> Vec<usize> {
    let mut open: Vec<usize> = up.iter().map(Vec::len).collect();
    let mut sorted: Vec<usize> = (0..up.len()).filter(|node| open[*node] == 0).collect();
    let mut next = 0;
    while next < sorted.len() {
        for to in &down[sorted[next]] {
            open[*to] -= 1;
            if open[*to] == 0 {
                sorted.push(*to);
            }
        }
        next += 1;
    }
    sorted
}
