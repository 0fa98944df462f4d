//! The checks: each is a pure function of what was read, and says what to do about what it finds. Nothing is read here.

pub(super) mod clock;
pub(super) mod disk;
pub(super) mod endpoints;
pub(super) mod lag;
pub(super) mod permissions;
pub(super) mod scripts;
pub(super) mod server;
pub(super) mod store;
pub(super) mod versions;
pub(super) mod workers;

/// Things that are named before the rest is only counted.
const NAMED: usize = 3;

/// The first of some things, and how many more there are.
fn named(all: &[String]) -> String {
    let first = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    match all.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// A number of bytes as people say it.
fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(size, _)| count >= *size);
    let Some((size, unit)) = unit else { return format!("{count} B") };
    // In tenths, so that no rounding of large numbers gets lost.
    let tenths = count / (size / 10).max(1);
    match tenths {
        0..100 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        _ => format!("{} {unit}", count / size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_short() {
        let sizes = [0, 1023, 1024, 1536, 10 << 20, 41 << 30, 3 << 40];
        assert_eq!(sizes.map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 MiB", "41 GiB", "3072 GiB"]);
    }

    #[test]
    fn a_long_list_is_cut() {
        let all: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!((named(&all[..3]), named(&all)), ("a; b; c".to_owned(), "a; b; c; and 2 more".to_owned()));
    }
}
