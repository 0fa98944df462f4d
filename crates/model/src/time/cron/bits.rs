//! Sets of small numbers as bit masks, searched from any place in either direction.

/// The smallest member that is at least `from`.
pub(super) fn next(mask: u64, from: u32) -> Option<u32> {
    let rest = mask.checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}

/// The largest member that is at most `upto`.
pub(super) fn last(mask: u64, upto: u32) -> Option<u32> {
    let rest = mask & (u64::MAX >> (63 - upto.min(63)));
    (rest != 0).then(|| 63 - rest.leading_zeros())
}

/// How many members are less than `end`.
pub(super) fn count_below(mask: u64, end: u32) -> u64 {
    let below = 1_u64.checked_shl(end).map_or(u64::MAX, |bit| bit - 1);
    u64::from((mask & below).count_ones())
}

/// The smallest member of a set that is not empty.
pub(super) fn min(mask: u64) -> u32 {
    mask.trailing_zeros()
}

/// The largest member of a set that is not empty.
pub(super) fn max(mask: u64) -> u32 {
    63 - mask.leading_zeros()
}

/// The years a cron expression may speak of, `FIRST_YEAR..=LAST_YEAR`, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Years([u64; 4]);

pub(super) const FIRST_YEAR: i16 = 1970;
pub(super) const LAST_YEAR: i16 = 2199;

impl Years {
    /// Adds a year; one outside the range that is searched can never come and is left out.
    pub(super) fn insert(&mut self, year: i64) {
        if (i64::from(FIRST_YEAR)..=i64::from(LAST_YEAR)).contains(&year) {
            let n = (year - i64::from(FIRST_YEAR)) as usize;
            self.0[n / 64] |= 1 << (n % 64);
        }
    }

    /// The set of some years.
    pub(super) fn of(years: impl Iterator<Item = i16>) -> Years {
        let mut set = Years::default();
        years.for_each(|year| set.insert(year.into()));
        set
    }

    pub(super) fn contains(&self, year: i16) -> bool {
        (FIRST_YEAR..=LAST_YEAR).contains(&year) && {
            let n = (year - FIRST_YEAR) as usize;
            self.0[n / 64] >> (n % 64) & 1 == 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_both_ways() {
        let set = 1 << 3 | 1 << 40 | 1 << 63;
        assert_eq!(next(set, 0), Some(3));
        assert_eq!(next(set, 4), Some(40));
        assert_eq!(next(set, 63), Some(63));
        assert_eq!(next(set, 64), None);
        assert_eq!(last(set, 2), None);
        assert_eq!(last(set, 3), Some(3));
        assert_eq!(last(set, 62), Some(40));
        assert_eq!(last(set, 99), Some(63));
        assert_eq!((min(set), max(set)), (3, 63));
        assert_eq!([0, 3, 4, 40, 63, 64].map(|end| count_below(set, end)), [0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn years_outside_the_range_are_left_out() {
        let mut years = Years::default();
        for year in [1969, 1970, 2199, 2200] {
            years.insert(year);
        }
        let found: Vec<i16> = (1960..2300).filter(|y| years.contains(*y)).collect();
        assert_eq!(found, [1970, 2199]);
    }
}
