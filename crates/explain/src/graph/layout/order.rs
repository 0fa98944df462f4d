//! The order of vertices within their layers: as few edges as can be had cheaply cross each other.

use super::layered::LayerPlan;

/// Sweeps over all layers, there and back.
const SWEEPS: usize = 12;
/// Vertices of a part that are also tried in each other's places.
const MOST_TRIED: usize = 3000;

/// Orders the vertices of each layer.
pub(super) fn reduce_crossings(layered: &mut LayerPlan) {
    let mut places = vec![0; layered.sizes.len()];
    begin(layered);
    number(&layered.layers, &mut places);
    let mut best = (crossings(layered, &places), layered.layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        sort_all(layered, &mut places, sweep % 2 == 0);
        if layered.sizes.len() <= MOST_TRIED {
            swap_neighbours(layered, &mut places);
        }
        let found = crossings(layered, &places);
        if found < best.0 {
            best = (found, layered.layers.clone());
        }
    }
    layered.layers = best.1;
}

fn number(layers: &[Vec<usize>], places: &mut [usize]) {
    for layer in layers {
        layer.iter().enumerate().for_each(|(place, vertex)| places[*vertex] = place);
    }
}

/// A first order: connected nodes are close to each other, found by following edges both ways.
fn begin(layered: &mut LayerPlan) {
    let count = layered.sizes.len();
    let mut found = vec![usize::MAX; count];
    let mut stack: Vec<usize> = layered.layers.iter().flatten().rev().copied().collect();
    let mut next = 0;
    while let Some(vertex) = stack.pop() {
        if found[vertex] != usize::MAX {
            continue;
        }
        found[vertex] = next;
        next += 1;
        let beside = layered.up[vertex].iter().chain(&layered.down[vertex]).rev();
        stack.extend(beside.filter(|other| found[**other] == usize::MAX));
    }
    layered.layers.iter_mut().for_each(|layer| layer.sort_by_key(|vertex| found[*vertex]));
}

/// Puts each vertex in the middle of those that lead to it, or that it leads to.
fn sort_all(layered: &mut LayerPlan, places: &mut [usize], to_the_right: bool) {
    let count = layered.layers.len();
    for step in 0..count {
        let layer = if to_the_right { step } else { count - 1 - step };
        let beside = if to_the_right { &layered.up } else { &layered.down };
        let mut wanted: Vec<(f64, usize)> = layered.layers[layer]
            .iter()
            .map(|vertex| (middle(&beside[*vertex], places, places[*vertex]), *vertex))
            .collect();
        wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
        layered.layers[layer] = wanted.into_iter().map(|(_, vertex)| vertex).collect();
        layered.layers[layer].iter().enumerate().for_each(|(place, vertex)| places[*vertex] = place);
    }
}

fn middle(beside: &[usize], places: &[usize], own: usize) -> f64 {
    match beside.len() {
        0 => own as f64,
        count => beside.iter().map(|vertex| places[*vertex] as f64).sum::<f64>() / count as f64,
    }
}

/// Swaps adjacent vertices while that leaves fewer crossings.
fn swap_neighbours(layered: &mut LayerPlan, places: &mut [usize]) {
    for layer in &mut layered.layers {
        for place in 1..layer.len() {
            let (above, below) = (layer[place - 1], layer[place]);
            let crossed = |a: usize, b: usize| {
                pairs_crossed(&layered.up[a], &layered.up[b], places)
                    + pairs_crossed(&layered.down[a], &layered.down[b], places)
            };
            if crossed(below, above) < crossed(above, below) {
                layer.swap(place - 1, place);
                places.swap(above, below);
            }
        }
    }
}

/// The number of crossings between edges of one vertex and those of another one below it.
fn pairs_crossed(above: &[usize], below: &[usize], places: &[usize]) -> usize {
    above.iter().map(|a| below.iter().filter(|b| places[**b] < places[*a]).count()).sum()
}

/// The number of pairs of edges that cross.
fn crossings(layered: &LayerPlan, places: &[usize]) -> usize {
    layered.layers.windows(2).map(|pair| crossings_between(layered, &pair[0], pair[1].len(), places)).sum()
}

fn crossings_between(layered: &LayerPlan, layer: &[usize], next: usize, places: &[usize]) -> usize {
    // A tree of sums over the places of the next layer: how many edges so far end at or above one.
    let mut sums = vec![0; next + 1];
    let (mut so_far, mut found) = (0, 0);
    for vertex in layer {
        let mut ends: Vec<usize> = layered.down[*vertex].iter().map(|to| places[*to]).collect();
        ends.sort_unstable();
        found += ends.iter().map(|end| so_far - up_to(&sums, *end)).sum::<usize>();
        so_far += ends.len();
        ends.iter().for_each(|end| count(&mut sums, *end));
    }
    found
}

fn count(sums: &mut [usize], end: usize) {
    let mut at = end + 1;
    while at < sums.len() {
        sums[at] += 1;
        at += at & at.wrapping_neg();
    }
}

fn up_to(sums: &[usize], end: usize) -> usize {
    let (mut at, mut sum) = (end + 1, 0);
    while at > 0 {
        sum += sums[at];
        at -= at & at.wrapping_neg();
    }
    sum
}
