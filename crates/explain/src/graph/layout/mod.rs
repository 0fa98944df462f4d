//! The layout of a graph: positions of nodes and ways of edges, in layers from left to right, so that a node is to the
//! right of those that it depends on.
//!
//! The same graph gives the same picture. Nothing recurses, and all work is limited by the numbers of nodes and edges.
//! What is *absent*: the contents of nodes, and the appearance of anything.

mod layered;
mod order;
mod pack;
mod place;
mod ranks;

use std::collections::BTreeMap;

/// Width and height of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// A place in the picture, from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The distance from the left.
    pub x: f64,
    /// The distance from the top.
    pub y: f64,
}

/// A graph with places.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The upper left corner of each node.
    pub places: Vec<Point>,
    /// The points of each edge, from its beginning to its end; empty if both ends are one node.
    pub ways: Vec<Vec<Point>>,
    /// The size of the whole.
    pub size: Size,
}

/// Room between parts that have nothing to do with each other.
const APART: f64 = 34.0;

/// Lays out nodes of these sizes. Edges are pairs of nodes by number, from the upstream node to the one that depends on
/// it; edges without valid nodes have no way.
#[must_use]
pub fn lay_out(sizes: &[Size], edges: &[(usize, usize)]) -> Layout {
    let is_there = |(from, to): &(usize, usize)| *from < sizes.len() && *to < sizes.len() && from != to;
    let mut layout = Layout {
        places: vec![Point { x: 0.0, y: 0.0 }; sizes.len()],
        ways: vec![Vec::new(); edges.len()],
        size: Size { width: 0.0, height: 0.0 },
    };
    let parts = parts(sizes.len(), edges.iter().filter(|edge| is_there(edge)));
    let placed: Vec<PlacedPart> = parts.iter().map(|part| placed(part, sizes, edges, &is_there)).collect();
    let (corners, size) = pack::pack(&placed.iter().map(|part| part.size).collect::<Vec<_>>(), APART);
    for (part, corner) in placed.iter().zip(corners) {
        let moved = |point: &Point| Point { x: point.x + corner.x, y: point.y + corner.y };
        part.places.iter().for_each(|(node, place)| layout.places[*node] = moved(place));
        part.ways.iter().for_each(|(edge, way)| layout.ways[*edge] = way.iter().map(moved).collect());
    }
    Layout { size, ..layout }
}

/// A part that hangs together, with places of its own.
struct PlacedPart {
    places: Vec<(usize, Point)>,
    ways: Vec<(usize, Vec<Point>)>,
    size: Size,
}

fn placed(
    nodes: &[usize],
    sizes: &[Size],
    edges: &[(usize, usize)],
    is_there: &impl Fn(&(usize, usize)) -> bool,
) -> PlacedPart {
    let number: BTreeMap<usize, usize> = nodes.iter().enumerate().map(|(own, node)| (*node, own)).collect();
    let mut own = Vec::new();
    for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| is_there(edge)) {
        if let (Some(from), Some(to)) = (number.get(&edge.0), number.get(&edge.1)) {
            own.push((index, (*from, *to)));
        }
    }
    let sizes: Vec<Size> = nodes.iter().map(|node| sizes[*node]).collect();
    let pairs: Vec<(usize, usize)> = own.iter().map(|(_, pair)| *pair).collect();
    let mut layered = layered::LayerPlan::new(&sizes, &pairs);
    order::reduce_crossings(&mut layered);
    let (places, ways, size) = place::place(&layered);
    PlacedPart {
        places: nodes.iter().copied().zip(places).collect(),
        ways: own.iter().map(|(index, _)| *index).zip(ways).collect(),
        size,
    }
}

/// The nodes of each part that hangs together, ascending; parts by their first node.
fn parts<'a>(count: usize, edges: impl Iterator<Item = &'a (usize, usize)>) -> Vec<Vec<usize>> {
    let mut beside = vec![Vec::new(); count];
    for (from, to) in edges {
        beside[*from].push(*to);
        beside[*to].push(*from);
    }
    let mut is_known = vec![false; count];
    let mut parts = Vec::new();
    for first in 0..count {
        if std::mem::replace(&mut is_known[first], true) {
            continue;
        }
        let mut part = vec![first];
        let mut next = 0;
        while next < part.len() {
            for other in &beside[part[next]] {
                if !std::mem::replace(&mut is_known[*other], true) {
                    part.push(*other);
                }
            }
            next += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Size = Size { width: 100.0, height: 30.0 };

    fn laid_out(count: usize, edges: &[(usize, usize)]) -> Layout {
        lay_out(&vec![NODE; count], edges)
    }

    /// No two nodes share a place, and none is outside.
    fn check(layout: &Layout) {
        for (n, a) in layout.places.iter().enumerate() {
            assert!(a.x >= 0.0 && a.x + NODE.width <= layout.size.width + 0.01, "{n} {a:?} {:?}", layout.size);
            assert!(a.y >= 0.0 && a.y + NODE.height <= layout.size.height + 0.01, "{n} {a:?} {:?}", layout.size);
            for (m, b) in layout.places.iter().enumerate().skip(n + 1) {
                let apart = (a.x - b.x).abs() >= NODE.width || (a.y - b.y).abs() >= NODE.height;
                assert!(apart, "{n} at {a:?} and {m} at {b:?} share a place");
            }
        }
    }

    #[test]
    fn nothing_gives_an_empty_picture() {
        assert_eq!(laid_out(0, &[]).size, Size { width: 0.0, height: 0.0 });
    }

    #[test]
    fn what_is_looked_at_stands_to_the_left() {
        let layout = laid_out(4, &[(0, 1), (1, 2), (0, 2), (3, 2)]);
        check(&layout);
        let x: Vec<f64> = layout.places.iter().map(|place| place.x).collect();
        assert!(x[0] < x[1] && x[1] < x[2] && x[3] == x[1], "{x:?}");
    }

    #[test]
    fn a_long_edge_goes_around_what_is_between() {
        let layout = laid_out(3, &[(0, 1), (1, 2), (0, 2)]);
        let (way, between) = (&layout.ways[2], layout.places[1]);
        assert_eq!(way.len(), 4, "a beginning, both sides of the layer that it passes, an end");
        assert!(way[1].y < between.y || way[1].y > between.y + NODE.height, "{way:?} {between:?}");
    }

    #[test]
    fn cycles_and_edges_to_oneself_and_to_nobody_do_no_harm() {
        let layout = laid_out(3, &[(0, 1), (1, 2), (2, 0), (1, 1), (0, 7), (0, 1)]);
        check(&layout);
        let drawn: Vec<bool> = layout.ways.iter().map(|way| !way.is_empty()).collect();
        assert_eq!(drawn, [true, true, true, false, false, true]);
        assert!(layout.ways[2][0].x > layout.ways[2].last().unwrap().x, "it leads back to the left");
    }

    #[test]
    fn a_chain_of_thousands_is_no_trouble() {
        let edges: Vec<(usize, usize)> = (1..5000).map(|n| (n - 1, n)).collect();
        assert!(laid_out(5000, &edges).size.width > 500_000.0);
    }

    #[test]
    fn a_random_graph_is_laid_out_the_same_twice_and_without_overlaps() {
        let mut seed = 7_u64;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        let edges: Vec<(usize, usize)> = (0..260).map(|_| (draw(160), draw(160))).collect();
        let layout = laid_out(180, &edges);
        check(&layout);
        assert_eq!(layout, laid_out(180, &edges));
    }

    #[test]
    fn nodes_without_edges_fill_a_block() {
        let layout = laid_out(100, &[]);
        check(&layout);
        let Size { width, height } = layout.size;
        assert!(width < 4.0 * height && height < 4.0 * width, "{width} x {height}");
    }
}
