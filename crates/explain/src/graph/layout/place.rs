//! Coordinates: columns from left to right, and within them as little up and down along edges as order allows.

use super::layered::LayerPlan;
use super::{Point, Size};

/// Room between the columns, more where many edges go.
const BETWEEN: f64 = 46.0;
const MOST_BETWEEN: f64 = 150.0;
/// Room between vertices of a column.
const BELOW: f64 = 12.0;
/// Sweeps over all columns, there and back.
const SWEEPS: usize = 16;
/// The weight of straight edges between bends, relative to their ends.
const STRAIGHT: f64 = 8.0;

type Positions = (Vec<Point>, Vec<Vec<Point>>, Size);

/// The places of nodes, the ways of edges, and how large that is.
pub(super) fn place(layered: &LayerPlan) -> Positions {
    let columns = columns(layered);
    let middles = middles(layered);
    let (mut places, mut height) = (vec![Point { x: 0.0, y: 0.0 }; layered.nodes], 0.0_f64);
    for (layer, column) in layered.layers.iter().zip(&columns) {
        for vertex in layer {
            let size = layered.sizes[*vertex];
            height = height.max(middles[*vertex] + size.height / 2.0);
            if !layered.is_bend(*vertex) {
                places[*vertex] = Point { x: column.0, y: middles[*vertex] - size.height / 2.0 };
            }
        }
    }
    let ranks = ranks(layered);
    let ways = layered.chains.iter().map(|(chain, is_back)| way(layered, chain, *is_back, &ranks, &columns, &middles));
    let width = columns.last().map_or(0.0, |last| last.1);
    (places, ways.collect(), Size { width, height })
}

fn ranks(layered: &LayerPlan) -> Vec<usize> {
    let mut ranks = vec![0; layered.sizes.len()];
    for (rank, layer) in layered.layers.iter().enumerate() {
        layer.iter().for_each(|vertex| ranks[*vertex] = rank);
    }
    ranks
}

/// The left and right border of each column.
fn columns(layered: &LayerPlan) -> Vec<(f64, f64)> {
    let mut columns = Vec::new();
    let mut begin = 0.0;
    for layer in &layered.layers {
        let width = layer.iter().map(|vertex| layered.sizes[*vertex].width).fold(0.0, f64::max);
        let leaving: usize = layer.iter().map(|vertex| layered.down[*vertex].len()).sum();
        columns.push((begin, begin + width));
        begin += width + (BETWEEN + 2.0 * leaving as f64).min(MOST_BETWEEN);
    }
    columns
}

fn way(
    layered: &LayerPlan,
    chain: &[usize],
    is_back: bool,
    ranks: &[usize],
    columns: &[(f64, f64)],
    middles: &[f64],
) -> Vec<Point> {
    let mut way = Vec::new();
    for (n, vertex) in chain.iter().enumerate() {
        let (begin, end) = columns[ranks[*vertex]];
        let y = middles[*vertex];
        if n > 0 {
            way.push(Point { x: begin, y });
        }
        if n + 1 < chain.len() {
            let x = if layered.is_bend(*vertex) { end } else { begin + layered.sizes[*vertex].width };
            way.push(Point { x, y });
        }
    }
    if is_back {
        way.reverse();
    }
    way
}

/// The middle of each vertex, from the top.
fn middles(layered: &LayerPlan) -> Vec<f64> {
    let mut middles = vec![0.0; layered.sizes.len()];
    for layer in &layered.layers {
        let stacked = stacked(layered, layer);
        layer.iter().zip(stacked).for_each(|(vertex, middle)| middles[*vertex] = middle);
    }
    let count = layered.layers.len();
    for sweep in 0..SWEEPS {
        for step in 0..count {
            let layer = if sweep % 2 == 0 { step } else { count - 1 - step };
            align(layered, &layered.layers[layer], &mut middles);
        }
    }
    let top = |(vertex, middle): (usize, &f64)| middle - layered.sizes[vertex].height / 2.0;
    let first = middles.iter().enumerate().map(top).fold(f64::INFINITY, f64::min);
    middles.iter_mut().for_each(|middle| *middle -= first);
    middles
}

/// The least distance of each vertex from the first one of its layer.
fn stacked(layered: &LayerPlan, layer: &[usize]) -> Vec<f64> {
    let mut middle = 0.0;
    let mut before = None;
    let mut stacked = Vec::with_capacity(layer.len());
    for vertex in layer {
        let height = layered.sizes[*vertex].height;
        middle += before.map_or(0.0, |before: f64| (before + height) / 2.0 + BELOW);
        before = Some(height);
        stacked.push(middle);
    }
    stacked
}

/// Moves the vertices of a layer as close to the middle of those beside them as their order and sizes allow.
fn align(layered: &LayerPlan, layer: &[usize], middles: &mut [f64]) {
    let stacked = stacked(layered, layer);
    let wishes = layer.iter().zip(&stacked).map(|(vertex, least)| {
        let (middle, weight) = wish(layered, *vertex, middles);
        (middle - least, weight)
    });
    let settled = ascending(wishes);
    for ((vertex, least), offset) in layer.iter().zip(&stacked).zip(settled) {
        middles[*vertex] = offset + least;
    }
}

/// The preferred position of a vertex, and its weight.
fn wish(layered: &LayerPlan, vertex: usize, middles: &[f64]) -> (f64, f64) {
    let (mut sum, mut weights) = (0.0, 0.0);
    for other in layered.up[vertex].iter().chain(&layered.down[vertex]) {
        let weight = match (layered.is_bend(vertex), layered.is_bend(*other)) {
            (true, true) => STRAIGHT,
            (true, false) | (false, true) => 2.0,
            (false, false) => 1.0,
        };
        sum += weight * middles[*other];
        weights += weight;
    }
    if weights > 0.0 { (sum / weights, weights) } else { (middles[vertex], 0.01) }
}

/// The ascending numbers that are closest to wishes with weights, by squares: neighbours that would descend
/// are joined to their mean until none do.
fn ascending(wishes: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    let mut joined: Vec<(f64, f64, usize)> = Vec::new();
    for (wish, weight) in wishes {
        let mut last = (wish, weight, 1);
        while let Some(before) = joined.pop_if(|before| before.0 > last.0) {
            let weight = before.1 + last.1;
            last = ((before.0 * before.1 + last.0 * last.1) / weight, weight, before.2 + last.2);
        }
        joined.push(last);
    }
    joined.into_iter().flat_map(|(mean, _, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_descend_meets_in_the_middle() {
        let wishes = |numbers: &[f64]| ascending(numbers.iter().map(|number| (*number, 1.0)));
        assert_eq!(wishes(&[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(wishes(&[3.0, 1.0, 5.0]), [2.0, 2.0, 5.0]);
        assert_eq!(wishes(&[4.0, 3.0, 2.0]), [3.0, 3.0, 3.0]);
        assert_eq!(ascending([(4.0, 3.0), (0.0, 1.0)].into_iter()), [3.0, 3.0], "the heavier one moves less");
    }
}
