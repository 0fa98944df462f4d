//! The days of a month that fire: nine rules, each turned into a 31-bit mask for one month.

use jiff::civil::Date;

/// A rule that chooses days of a month. Days count from 1, weekdays from 1 = Sunday to 7 = Saturday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayRule {
    /// `1,15`: these days; bit `n` is day `n`.
    Days(u64),
    /// `L`, `L-3`: so many days before the last one.
    Last { offset: i8 },
    /// `LW`, `L-3W`: the weekday nearest to that.
    LastWeekday { offset: i8 },
    /// `15W`: the Monday to Friday nearest to this day, within the month.
    NearestWeekday { day: i8 },
    /// `MON-FRI`: bit `n` is weekday `n`.
    Weekdays(u64),
    /// `6L`: the last such weekday.
    LastOf { weekday: i8 },
    /// `6#3`: the third such weekday.
    NthOf { weekday: i8, nth: i8 },
    /// `1,15` and `MON` in a crontab: these days, and these weekdays besides.
    Either { days: u64, weekdays: u64 },
    /// `*/2` and `MON` in a crontab: those of these days that are such weekdays.
    Both { days: u64, weekdays: u64 },
}

/// A month: the weekday of its first day and its length.
struct Month {
    first: i8,
    len: i8,
}

impl DayRule {
    /// The days that fire in the month that starts on `first`, bit `n` for day `n`.
    pub(super) fn mask(self, first: Date) -> u64 {
        let month = Month { first: first.weekday().to_sunday_one_offset(), len: first.days_in_month() };
        match self {
            DayRule::Days(days) => days & month.all(),
            DayRule::Last { offset } => month.day(month.len - offset),
            DayRule::LastWeekday { offset } => month.nearest_weekday(month.len - offset),
            DayRule::NearestWeekday { day } => month.nearest_weekday(day),
            DayRule::Weekdays(days) => month.weekdays(days),
            DayRule::LastOf { weekday } => 1 << super::bits::max(month.weekdays(1 << weekday)),
            DayRule::NthOf { weekday, nth } => {
                let earliest = super::bits::min(month.weekdays(1 << weekday)) as i8;
                month.day(earliest + 7 * (nth - 1))
            }
            DayRule::Either { days, weekdays } => days & month.all() | month.weekdays(weekdays),
            DayRule::Both { days, weekdays } => days & month.weekdays(weekdays),
        }
    }

    /// Whether another rule chooses the same days of each month.
    pub(super) fn has_same_days(self, other: DayRule) -> bool {
        const EVERY_DAY: DayRule = DayRule::Days((1 << 32) - 2);
        const ALL_WEEK: DayRule = DayRule::Weekdays(0b1111_1110);
        let plain = |rule| if rule == ALL_WEEK { EVERY_DAY } else { rule };
        plain(self) == plain(other)
    }

    /// The weekdays that it chooses by themselves, bit `n` for weekday `n`; none where it chooses none, or not every one of a month.
    pub(super) fn weekdays(self) -> Option<u64> {
        match self {
            DayRule::Weekdays(weekdays) | DayRule::Either { weekdays, .. } | DayRule::Both { weekdays, .. } => {
                Some(weekdays)
            }
            _ => None,
        }
    }
}

impl Month {
    fn all(&self) -> u64 {
        (1 << (self.len + 1)) - 2
    }

    /// The mask of one day, empty when the month doesn't have it.
    fn day(&self, day: i8) -> u64 {
        if (1..=self.len).contains(&day) { 1 << day } else { 0 }
    }

    fn weekday(&self, day: i8) -> i8 {
        (self.first - 1 + day - 1).rem_euclid(7) + 1
    }

    fn weekdays(&self, days: u64) -> u64 {
        let week = (0..7).filter(|n| days >> self.weekday(n + 1) & 1 == 1);
        let week = week.fold(0, |mask, n| mask | 1u64 << n);
        let month = week | week << 7 | week << 14 | week << 21 | week << 28;
        month << 1 & self.all()
    }

    /// Monday to Friday nearest to `day`, never in another month: a Saturday the 1st moves to the
    /// 3rd, a Sunday the 31st to the 29th. As in Quartz, `day` may lie beyond the month's end, and
    /// then fires only if the move brings it back: `31W` in an April that ends on a Friday.
    fn nearest_weekday(&self, day: i8) -> u64 {
        self.day(match self.weekday(day) {
            7 if day == 1 => 3,
            7 => day - 1,
            1 if day == self.len => day - 2,
            1 => day + 1,
            _ => day,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(rule: DayRule, year: i16, month: i8) -> Vec<u32> {
        let mask = rule.mask(Date::constant(year, month, 1));
        (0..64).filter(|n| mask >> n & 1 == 1).collect()
    }

    #[test]
    fn february_2016_begins_on_a_monday_and_has_29_days() {
        assert_eq!(days(DayRule::Days(1 << 28 | 1 << 30), 2016, 2), [28]);
        assert_eq!(days(DayRule::Last { offset: 0 }, 2016, 2), [29]);
        assert_eq!(days(DayRule::Last { offset: 29 }, 2016, 2), [0; 0]);
        assert_eq!(days(DayRule::Weekdays(1 << 2), 2016, 2), [1, 8, 15, 22, 29]);
        assert_eq!(days(DayRule::LastOf { weekday: 1 }, 2016, 2), [28]);
        assert_eq!(days(DayRule::NthOf { weekday: 2, nth: 5 }, 2016, 2), [29]);
        assert_eq!(days(DayRule::NthOf { weekday: 3, nth: 5 }, 2016, 2), [0; 0]);
        let mondays = 1 << 2;
        assert_eq!(days(DayRule::Either { days: 1 << 2 | 1 << 8, weekdays: mondays }, 2016, 2), [1, 2, 8, 15, 22, 29]);
        assert_eq!(days(DayRule::Both { days: 1 << 2 | 1 << 8, weekdays: mondays }, 2016, 2), [8]);
    }

    #[test]
    fn the_nearest_weekday_stays_in_its_month() {
        assert_eq!(days(DayRule::NearestWeekday { day: 1 }, 2016, 5), [2]);
        assert_eq!(days(DayRule::NearestWeekday { day: 1 }, 2016, 10), [3]);
        assert_eq!(days(DayRule::NearestWeekday { day: 15 }, 2016, 10), [14]);
        assert_eq!(days(DayRule::LastWeekday { offset: 0 }, 2016, 7), [29]);
    }

    #[test]
    fn a_nearest_weekday_beyond_the_end_may_move_back_into_the_month() {
        assert_eq!(days(DayRule::NearestWeekday { day: 31 }, 2021, 4), [30]);
        assert_eq!(days(DayRule::NearestWeekday { day: 31 }, 2016, 4), [0; 0]);
    }
}
