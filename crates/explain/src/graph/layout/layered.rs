//! A part of a graph in layers: edges lead from each layer to the next, and bend where they pass one.

use std::collections::BTreeMap;

use super::Size;
use super::ranks::{acyclic, ranks};

/// The most bends of all edges of a part: edges beyond that are straight, even across nodes.
const MOST_BENDS: usize = 20_000;
/// Room that an edge takes where it passes a layer.
const BEND: f64 = 6.0;

/// A part in layers. Its vertices are its nodes, in their order, and after them the bends of its edges.
pub(super) struct LayerPlan {
    /// The size of each vertex.
    pub(super) sizes: Vec<Size>,
    /// The number of vertices that are nodes.
    pub(super) nodes: usize,
    /// The vertices of each layer, from top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    /// The vertices in the layer before that lead to each.
    pub(super) up: Vec<Vec<usize>>,
    /// The vertices in the layer after that each leads to.
    pub(super) down: Vec<Vec<usize>>,
    /// The vertices of each edge, nodes at both ends, from left to right, and whether it leads to the left.
    pub(super) chains: Vec<(Vec<usize>, bool)>,
}

/// The first edge of each pair of nodes.
type FirstEdges = BTreeMap<(usize, usize), usize>;

impl LayerPlan {
    /// Puts nodes into layers.
    pub(super) fn new(sizes: &[Size], edges: &[(usize, usize)]) -> LayerPlan {
        let turned = acyclic(sizes.len(), edges);
        let forward: Vec<(usize, usize)> = turned.iter().map(|(edge, _)| *edge).collect();
        let mut ranks = ranks(sizes.len(), &forward);
        let mut layered = LayerPlan {
            sizes: sizes.to_vec(),
            nodes: sizes.len(),
            layers: vec![Vec::new(); ranks.iter().max().map_or(0, |last| last + 1)],
            up: vec![Vec::new(); sizes.len()],
            down: vec![Vec::new(); sizes.len()],
            chains: Vec::new(),
        };
        let mut known = FirstEdges::new();
        for (edge, is_back) in turned {
            let first = *known.entry(edge).or_insert(layered.chains.len());
            // Edges of one pair share the way.
            let chain = match layered.chains.get(first) {
                Some((chain, _)) => chain.clone(),
                None => layered.chain(edge, &mut ranks),
            };
            layered.chains.push((chain, is_back));
        }
        for (vertex, rank) in ranks.iter().enumerate() {
            layered.layers[*rank].push(vertex);
        }
        layered
    }

    pub(super) fn is_bend(&self, vertex: usize) -> bool {
        vertex >= self.nodes
    }

    /// Leads an edge through the layers between its ends.
    fn chain(&mut self, (from, to): (usize, usize), ranks: &mut Vec<usize>) -> Vec<usize> {
        let between = ranks[from] + 1..ranks[to];
        if self.sizes.len() - self.nodes + between.len() > MOST_BENDS {
            return vec![from, to];
        }
        let mut chain = vec![from];
        for rank in between {
            chain.push(self.sizes.len());
            ranks.push(rank);
            self.sizes.push(Size { width: 0.0, height: BEND });
            self.up.push(Vec::new());
            self.down.push(Vec::new());
        }
        chain.push(to);
        for pair in chain.windows(2) {
            self.down[pair[0]].push(pair[1]);
            self.up[pair[1]].push(pair[0]);
        }
        chain
    }
}
