//! Names of zones that came before the IANA names, as Java still reads them: three letters, and `GMT+hh:mm`.

use jiff::tz::{Offset, TimeZone};

/// The three-letter names of Java, from its documentation of `ZoneId.SHORT_IDS`. Those of whole hours have no daylight
/// saving there, and none here.
pub(super) const NAMES: [(&str, &str); 28] = [
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("EST", "GMT-05:00"),
    ("HST", "GMT-10:00"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("MST", "GMT-07:00"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

/// The meaning of an old zone name.
pub(super) enum Legacy {
    /// The zone of an IANA name.
    Iana(&'static str),
    /// A distance from UTC, the whole year.
    Fixed(TimeZone),
}

/// Reads an old name; none where it is not one.
pub(super) fn read(name: &str) -> Option<Legacy> {
    let known = NAMES.iter().find(|(short, _)| *short == name).map(|(_, zone)| *zone);
    match known {
        Some(zone) if !zone.starts_with("GMT") => Some(Legacy::Iana(zone)),
        Some(zone) => offset(zone).map(Legacy::Fixed),
        None => offset(name).map(Legacy::Fixed),
    }
}

/// Reads `GMT+h`, `GMT+hh`, `GMT+hmm`, `GMT+hhmm` and `GMT+hh:mm`, up to 23:59.
fn offset(name: &str) -> Option<TimeZone> {
    let rest = name.strip_prefix("GMT")?;
    let (sign, rest) = match rest.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match (rest.split_once(':'), rest.len()) {
        (Some((hours, minutes)), _) if minutes.len() == 2 => (hours, minutes),
        (None, 1 | 2) => (rest, "0"),
        (None, 3 | 4) => rest.split_at_checked(rest.len() - 2)?,
        _ => return None,
    };
    let digits = |text: &str| !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))?;
    Some(TimeZone::fixed(Offset::from_seconds(seconds).ok()?))
}
