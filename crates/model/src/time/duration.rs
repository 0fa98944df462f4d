//! Lengths of time as people type them: `90s`, `15m`, `36h`, `7d`, `2w`.

/// The units, longest first.
const UNITS: [(&str, i64); 5] = [("w", 7 * 86_400), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: expected a form such as 90s, 15m, 36h, 7d or 2w")]
pub struct DurationError {
    /// The text as given.
    pub text: String,
}

/// Reads a length of time, in seconds; a number alone is one of seconds. With a minus before it, it lies in the past.
///
/// # Errors
/// When it has another form, or more seconds than can be counted.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    let wrong = || DurationError { text: text.to_owned() };
    let sign = usize::from(text.starts_with('-'));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(sign + digits);
    let unit = if unit.is_empty() { "s" } else { unit };
    let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).ok_or_else(wrong)
}

/// A length of time in its longest whole unit but weeks: `15m`, `36h`, `7d`, `-90s`.
#[must_use]
pub fn format_duration(seconds: i64) -> String {
    let is_whole = |unit: i64| seconds != 0 && seconds % unit == 0;
    let unit = UNITS.into_iter().skip(1).find(|(_, unit)| is_whole(*unit));
    unit.map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
}

/// Reads a length of time, in milliseconds: as [`parse_duration`], or `500ms`.
///
/// # Errors
/// When it has another form, lies in the past, or has more milliseconds than can be counted.
pub fn parse_millis(text: &str) -> Result<u64, DurationError> {
    let wrong = || DurationError { text: text.to_owned() };
    if let Some(number) = text.strip_suffix("ms") {
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        return number.parse().ok().filter(|_| is_number).ok_or_else(wrong);
    }
    let seconds = u64::try_from(parse_duration(text)?).map_err(|_| wrong())?;
    seconds.checked_mul(1000).ok_or_else(wrong)
}

/// A length of time as [`format_duration`] writes it, or in milliseconds where it is no whole number of seconds: `1500ms`.
#[must_use]
pub fn format_millis(millis: u64) -> String {
    match i64::try_from(millis / 1000) {
        Ok(seconds) if millis.is_multiple_of(1000) => format_duration(seconds),
        _ => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_written_in_their_longest_whole_unit() {
        for (seconds, text) in
            [(0, "0s"), (90, "90s"), (900, "15m"), (86_400, "1d"), (1_209_600, "14d"), (-7200, "-2h")]
        {
            assert_eq!((format_duration(seconds).as_str(), parse_duration(text)), (text, Ok(seconds)));
        }
        assert_eq!((parse_duration("2w"), parse_duration("60")), (Ok(1_209_600), Ok(60)));
        for extreme in [i64::MIN, i64::MAX] {
            assert_eq!(parse_duration(&format_duration(extreme)), Ok(extreme));
        }
    }

    #[test]
    fn milliseconds_are_written_where_seconds_are_not_whole() {
        for (millis, text) in [(0, "0s"), (900_000, "15m"), (1500, "1500ms"), (u64::MAX, "18446744073709551615ms")] {
            assert_eq!((format_millis(millis).as_str(), parse_millis(text)), (text, Ok(millis)));
        }
        for text in ["ms", "-1ms", "+1ms", "-5m", "1.5ms", "18446744073709551616ms", "9223372036854775807s"] {
            assert!(parse_millis(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in ["", "-", "m", "1.5h", "5 m", "+5", "--5", "5min", "9223372036854775807d", "é"] {
            let expected = format!("{text:?} is not a duration: expected a form such as 90s, 15m, 36h, 7d or 2w");
            assert_eq!(parse_duration(text).map_err(|error| error.to_string()), Err(expected));
        }
    }
}
