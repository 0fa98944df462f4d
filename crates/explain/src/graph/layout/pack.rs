//! Parts side by side, so that the whole is neither a ribbon nor a tower.

use super::{Point, Size};

/// The intended ratio of width to height.
const WIDER: f64 = 1.7;

/// The corner of each part in rows, the highest first, and how large all of it is.
pub(super) fn pack(sizes: &[Size], apart: f64) -> (Vec<Point>, Size) {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|a, b| sizes[*b].height.total_cmp(&sizes[*a].height).then(a.cmp(b)));
    let widest = sizes.iter().map(|size| size.width).fold(0.0, f64::max);
    let area: f64 = sizes.iter().map(|size| (size.width + apart) * (size.height + apart)).sum();
    let width = widest.max((area * WIDER).sqrt());
    let mut corners = vec![Point { x: 0.0, y: 0.0 }; sizes.len()];
    let (mut at, mut below, mut whole) = (Point { x: 0.0, y: 0.0 }, 0.0, Size { width: 0.0, height: 0.0 });
    for part in order {
        let size = sizes[part];
        if at.x > 0.0 && at.x + size.width > width {
            at = Point { x: 0.0, y: below + apart };
        }
        corners[part] = at;
        below = f64::max(below, at.y + size.height);
        whole = Size { width: whole.width.max(at.x + size.width), height: below };
        at.x += size.width + apart;
    }
    (corners, whole)
}
