//! Times as they are typed and printed, and the zone of this machine, in which some of them are read.

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use jiff::Timestamp;
use kelos_engine::clock::whole_millis;
use kelos_model::time::{TypedTime, Zone, parse_instant, parse_typed};
use kelos_wire::Instant;

use crate::failure::Failure;

/// The moment that this command calls `now`, one for all of its arguments.
static NOW: LazyLock<Timestamp> = LazyLock::new(|| whole_millis(Timestamp::now()));

/// The zone of this machine, or why it is not known.
static ZONE: LazyLock<Result<Zone, String>> = LazyLock::new(|| {
    let tz = std::env::var("TZ").ok();
    let link = std::fs::canonicalize("/etc/localtime").ok();
    let name = std::fs::read_to_string("/etc/timezone").ok();
    zone_of_machine(tz.as_deref(), link.as_deref(), name.as_deref())
});

/// The name of the zone of this machine, or the reason for which it is not known.
pub(crate) fn zone_name() -> Result<String, String> {
    ZONE.as_ref().map(|zone| zone.name().to_owned()).map_err(Clone::clone)
}

/// A moment of the past in a table: to the second, and how long ago it was, as in `2016-01-01T12:00:00Z, 12 min ago`.
pub(crate) fn since(at: Instant) -> String {
    told(at, *NOW)
}

fn told(at: Instant, now: Timestamp) -> String {
    let exact = at.0.strftime("%Y-%m-%dT%H:%M:%SZ");
    let ago = match now.as_second() - at.0.as_second() {
        // The clock of the server may be ahead of this one.
        i64::MIN..0 => return exact.to_string(),
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    };
    format!("{exact}, {ago} ago")
}

/// Reads a time of the command line that is about no workflow: a date without an offset is in UTC, and days in words and times of day are
/// those of this machine.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = parse_instant(text.trim()) {
        return Ok(at);
    }
    let zone = ZONE.as_ref();
    let utc = Zone::utc();
    let read = parse_typed(text, *NOW, zone.unwrap_or(&utc)).map_err(|error| error.to_string())?;
    match zone {
        // Only what depends on the zone has to do without it.
        Err(why) if read.is_local() => Err(format!("time {text:?} is local, and {why}")),
        _ => Ok(read.at()),
    }
}

/// Reads the time of a slot in the zone of its workflow, and keeps how exactly it was named.
pub(crate) fn typed(text: &str, zone: &Zone) -> Result<TypedTime, String> {
    parse_typed(text, *NOW, zone).map_err(|error| error.to_string())
}

/// A time as it was typed, which is read once the workflow that it is about is known.
#[derive(Clone, Debug)]
pub(crate) struct Moment(String);

/// Checks the form of a time that is about a workflow.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    // UTC has every time of day once, so that only the form can be wrong.
    typed(text, &Zone::utc()).map(|_| Moment(text.to_owned()))
}

impl Moment {
    /// Whether it is another moment in another zone.
    pub(crate) fn is_local(&self) -> bool {
        typed(&self.0, &Zone::utc()).is_ok_and(TypedTime::is_local)
    }

    /// The moment in a zone; of a day the first.
    ///
    /// # Errors
    /// When the zone leaves it out or has it twice.
    pub(crate) fn in_zone(&self, doing: &str, zone: &Zone) -> Result<Timestamp, Failure> {
        let read = typed(&self.0, zone).map(TypedTime::at);
        read.map_err(|why| Failure::usage(format!("{doing}: {why}")))
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Reads the name of a zone.
pub(crate) fn zone(name: &str) -> Result<Zone, String> {
    Zone::parse(name).map_err(|error| error.to_string())
}

/// The zone that workflows have in common, for a time that depends on it; UTC if they have none.
///
/// # Errors
/// When they have several, with what to say instead.
pub(crate) fn in_common<'a>(
    doing: &str,
    time: &Moment,
    zones: impl IntoIterator<Item = (&'a str, Zone)>,
) -> Result<Zone, Failure> {
    let mut all = zones.into_iter();
    let Some((first, zone)) = all.next() else { return Ok(Zone::utc()) };
    match all.find(|(_, other)| *other != zone) {
        None => Ok(zone),
        Some((other, of_other)) => {
            let text = time.text();
            let why = format!("{doing}: {text} is another moment in {zone} ({first}) than in {of_other} ({other})");
            Err(Failure::usage(why).hint("--zone says which is meant"))
        }
    }
}

/// The words for what a range was understood as: `times are those of Europe/Berlin: 2026-10-01T00:00+02:00 to 2026-11-01T00:00+01:00`.
pub(crate) fn understood(zone: &Zone, from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    let local = |at: Timestamp| {
        let civil = at.to_zoned(zone.rules().clone());
        let form = if civil.second() == 0 { "%Y-%m-%dT%H:%M%:z" } else { "%Y-%m-%dT%H:%M:%S%:z" };
        civil.strftime(form).to_string()
    };
    let ends = match (from.map(local), to.map(local)) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("from {from} on"),
        (None, Some(to)) => format!("before {to}"),
        (None, None) => return format!("times are those of {zone}"),
    };
    format!("times are those of {zone}: {ends}")
}

/// The moments of a range, and the sentence about the zone where any of them depends on it.
///
/// # Errors
/// When the zone leaves one out or has it twice.
pub(crate) fn range(
    doing: &str,
    zone: &Zone,
    [from, to]: [Option<&Moment>; 2],
) -> Result<([Option<Timestamp>; 2], Option<String>), Failure> {
    let read = |time: Option<&Moment>| time.map(|time| time.in_zone(doing, zone)).transpose();
    let is_local = from.into_iter().chain(to).any(Moment::is_local);
    let (from, to) = (read(from)?, read(to)?);
    Ok(([from, to], is_local.then(|| understood(zone, from, to))))
}

/// Reads a time of the command line, where it names the zone of local times; else they are those of this machine.
pub(crate) fn time_in(text: &str, zone: Option<&Zone>) -> Result<Timestamp, String> {
    let Some(zone) = zone else { return time(text) };
    parse_typed(text, *NOW, zone).map(TypedTime::at).map_err(|error| error.to_string())
}

/// The zone that TZ names, else the one that `/etc/localtime` links to, else the one in `/etc/timezone`; without any of these UTC.
fn zone_of_machine(tz: Option<&str>, link: Option<&Path>, file: Option<&str>) -> Result<Zone, String> {
    if let Some(tz) = tz {
        let name = tz.strip_prefix(':').unwrap_or(tz);
        let name = name.split_once("zoneinfo/").map_or(name, |(_, name)| name);
        if name.is_empty() {
            return Ok(Zone::utc());
        }
        let unknown = |_| format!("TZ is {tz:?}, which names no time zone: expected one such as TZ=Europe/Berlin");
        return Zone::parse(name).map_err(unknown);
    }
    let linked = link.and_then(|path| path.to_str()?.split_once("zoneinfo/").map(|(_, name)| name));
    match linked.or(file.map(str::trim)) {
        Some(name) => {
            let unknown =
                |_| format!("this machine's time zone {name:?} is not known: set one, such as TZ=Europe/Berlin");
            Zone::parse(name).map_err(unknown)
        }
        None if link.is_some() => {
            Err("this machine's time zone has no name: set one, such as TZ=Europe/Berlin".to_owned())
        }
        None => Ok(Zone::utc()),
    }
}

/// Commands that take times.
const COMMANDS: [&str; 14] = [
    "slots", "why", "graph", "source", "logs", "rerun", "kill", "skip", "mark", "backfill", "plan", "cron", "import",
    "schedule",
];

/// Words in which lengths of time before now are no options: `-2d` becomes `now-2d`. A parser that is told to take values with a
/// minus takes all options behind them for such values.
pub(crate) fn words(typed: Vec<OsString>) -> Vec<OsString> {
    let takes_times = typed.get(1).and_then(|word| word.to_str()).is_some_and(|word| COMMANDS.contains(&word));
    if !takes_times {
        return typed;
    }
    let mut is_open = true;
    let moment = |word: OsString| match word.to_str() {
        Some("--") => {
            is_open = false;
            word
        }
        Some(text) if is_open && is_past(text) => format!("now{text}").into(),
        _ => word,
    };
    typed.into_iter().map(moment).collect()
}

/// Whether a text is a minus, a number and a unit.
fn is_past(text: &str) -> bool {
    let digits = text.strip_prefix('-').and_then(|rest| rest.strip_suffix(['s', 'm', 'h', 'd', 'w']));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_moment_is_told_exactly_and_as_people_say_it() {
        let at: Timestamp = "2016-01-01T12:00:00Z".parse().expect("a time");
        let later = |seconds| told(Instant(at), at + jiff::SignedDuration::from_secs(seconds));
        let ago = [0, 59, 60, 3599, 3600, 172_799, 172_800].map(later);
        let expected = ["0 s", "59 s", "1 min", "59 min", "1 h", "47 h", "2 d"];
        assert_eq!(ago, expected.map(|ago| format!("2016-01-01T12:00:00Z, {ago} ago")));
        assert_eq!(later(-5), "2016-01-01T12:00:00Z", "the clock of the server is ahead");
    }

    #[test]
    fn a_range_is_read_in_a_zone_which_is_told_where_it_matters() {
        let berlin = Zone::parse("Europe/Berlin").expect("a zone");
        let read = |from: &str, to: &str| {
            let times = [from, to].map(|text| moment(text).expect(text));
            let ([from, to], told) = range("do it", &berlin, [Some(&times[0]), Some(&times[1])]).expect("a range");
            (from.map(Instant).map(Instant::short), to.map(Instant).map(Instant::short), told)
        };
        let (from, to, told) = read("2026-10-01", "2026-11-01");
        let expected = "times are those of Europe/Berlin: 2026-10-01T00:00+02:00 to 2026-11-01T00:00+01:00";
        assert_eq!(told.as_deref(), Some(expected));
        assert_eq!((from.as_deref(), to.as_deref()), (Some("2026-09-30T22:00Z"), Some("2026-10-31T23:00Z")));
        let (from, _, told) = read("2026-10-01T00:00Z", "2026-11-01T00:00+01:00");
        assert_eq!((from.as_deref(), told), (Some("2026-10-01T00:00Z"), None));
        let missing = moment("2026-03-29T02:30").expect("a form").in_zone("do it", &berlin).expect_err("a gap");
        assert!(missing.message.contains("does not exist on 2026-03-29 in Europe/Berlin"), "{}", missing.message);
        assert!(moment("soon").is_err());
    }

    #[test]
    fn workflows_of_several_zones_need_a_choice() {
        let zone = |name: &str| Zone::parse(name).expect("a zone");
        let time = moment("2026-10-01").expect("a time");
        let read = |zones: &[(&'static str, &str)]| {
            in_common("list the slots", &time, zones.iter().map(|(id, name)| (*id, zone(name))))
        };
        assert_eq!(read(&[]).ok(), Some(Zone::utc()));
        assert_eq!(read(&[("a", "Asia/Tokyo"), ("b", "Asia/Tokyo")]).ok(), Some(zone("Asia/Tokyo")));
        let refused = read(&[("berlin", "Europe/Berlin"), ("hello", "UTC")]).expect_err("two zones");
        let expected = "list the slots: 2026-10-01 is another moment in Europe/Berlin (berlin) than in UTC (hello)";
        assert_eq!((refused.message.as_str(), refused.code), (expected, 2));
        assert_eq!(refused.hint.as_deref(), Some("--zone says which is meant"));
    }

    #[test]
    fn the_zone_is_that_of_tz_or_of_the_machine() {
        let zone = |tz: Option<&str>, link: Option<&str>, file: Option<&str>| {
            zone_of_machine(tz, link.map(Path::new), file).map(|zone| zone.name().to_owned())
        };
        let berlin = Ok("Europe/Berlin".to_owned());
        let linked = Some("/usr/share/zoneinfo/Europe/Berlin");
        assert_eq!(zone(None, linked, Some("Asia/Tokyo\n")), berlin);
        assert_eq!(zone(None, Some("/etc/localtime"), Some("Europe/Berlin\n")), berlin);
        assert_eq!(zone(Some("Asia/Tokyo"), linked, None), Ok("Asia/Tokyo".to_owned()));
        assert_eq!(zone(Some(":/usr/share/zoneinfo/Europe/Berlin"), None, None), berlin);
        assert_eq!(
            (zone(Some(""), linked, None), zone(None, None, None)),
            (Ok("UTC".to_owned()), Ok("UTC".to_owned()))
        );
        assert!(zone(Some("CET-1CEST"), linked, None).is_err_and(|why| why.contains("TZ=Europe/Berlin")));
        assert!(zone(None, Some("/etc/localtime"), None).is_err_and(|why| why.contains("has no name")));
    }

    #[test]
    fn each_command_that_takes_times_is_listed() {
        fn takes_times(command: &clap::Command) -> bool {
            let names = command.get_arguments().flat_map(|one| one.get_value_names().unwrap_or_default());
            names.into_iter().any(|name| name.contains("TIME")) || command.get_subcommands().any(takes_times)
        }
        let command = crate::args::Cli::command();
        let taking: Vec<&str> =
            command.get_subcommands().filter(|one| takes_times(one)).map(|one| one.get_name()).collect();
        let unlisted: Vec<&&str> = taking.iter().filter(|name| !COMMANDS.contains(name)).collect();
        assert_eq!(unlisted, Vec::<&&str>::new());
    }

    #[test]
    fn lengths_of_time_are_no_options() {
        let words = |text: &str| {
            let typed = text.split(' ').map(OsString::from).collect();
            words(typed).iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("kelos rerun w -2d --from -90m -f"), "kelos rerun w now-2d --from now-90m -f");
        assert_eq!(words("kelos why w -2 -d -m2 -- -2d"), "kelos why w -2 -d -m2 -- -2d");
        assert_eq!(words("kelos run app --bash_cmd -7d"), "kelos run app --bash_cmd -7d");
    }
}
