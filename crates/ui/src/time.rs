//! Times as people read them: in the zone that they chose, or as so long ago, with the exact one in UTC where one points.

use jiff::Timestamp;
use kelos_model::SlotKey;
use kelos_model::time::{format_short, parse_instant};
use maud::{Markup, html};

use crate::words;

/// A moment in the chosen zone.
pub(super) fn at(at: Timestamp) -> Markup {
    let exact = format_short(at);
    html! { time datetime=(exact) title=(exact) { (words::moment(at)) } }
}

/// How long ago a moment is; the page keeps it fresh.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    relative(at, &words::ago(at, now))
}

/// How long it is until a moment; the page keeps it fresh.
pub(super) fn ahead(at: Timestamp, now: Timestamp) -> Markup {
    relative(at, &words::ahead(at, now))
}

fn relative(at: Timestamp, told: &str) -> Markup {
    let exact = format_short(at);
    let local = words::moment(at);
    let title = if local == exact { exact.clone() } else { format!("{local}, {exact}") };
    html! { time datetime=(exact) title=(title) data-relative { (told) } }
}

/// A moment, and how long ago it is.
pub(super) fn at_and_ago(moment: Timestamp, now: Timestamp) -> Markup {
    html! { (at(moment)) " " span.soft { (ago(moment, now)) } }
}

/// The key of a slot, beside the name of its workflow: its time, or its id.
pub(super) fn key(key: &SlotKey) -> Markup {
    key.time().map_or_else(|| html! { (key.short()) }, at)
}

/// Prose with the times in it. Those in names of slots, after an @, are parts of the names.
pub(super) fn in_text(text: &str) -> Markup {
    html! { @for piece in pieces(text) { @match piece { Piece::Text(text) => (text), Piece::Time(moment) => (at(moment)) } } }
}

/// The same without elements, for titles and attributes.
pub(super) fn in_words(text: &str) -> String {
    let told = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Time(at) => words::moment(at),
    };
    pieces(text).into_iter().map(told).collect()
}

enum Piece<'a> {
    Text(&'a str),
    Time(Timestamp),
}

/// The shortest time in prose: `2013-11-26T17:23Z`.
const SHORTEST: usize = 17;

/// A text, cut at the times that are written out in it.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest, mut from) = (Vec::new(), text, 0);
    while let Some(place) = rest.get(from..).and_then(|tail| tail.find("T")).map(|place| from + place) {
        match place.checked_sub(10).and_then(|start| Some((start, written(rest, start)?))) {
            Some((start, (end, at))) => {
                found.push(Piece::Text(&rest[..start]));
                found.push(Piece::Time(at));
                (rest, from) = (&rest[end..], 0);
            }
            None => from = place + 1,
        }
    }
    found.push(Piece::Text(rest));
    found
}

/// The time that begins at a place of a text, and where it ends.
fn written(text: &str, start: usize) -> Option<(usize, Timestamp)> {
    let before = text.get(..start)?.chars().next_back();
    if before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '@' | '-' | '~' | '/' | '_')) {
        return None;
    }
    let tail = text.get(start..)?;
    let length = tail.find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | ':' | '.' | 'T')).unwrap_or(tail.len());
    let end = length + 1;
    let time = tail.get(..end).filter(|time| time.ends_with('Z') && time.len() >= SHORTEST)?;
    Some((start + end, parse_instant(time).ok()?))
}

#[cfg(test)]
mod tests {
    use kelos_model::time::Zone;

    use super::*;
    use crate::viewer::Viewer;

    fn in_berlin<T>(work: impl FnOnce() -> T) -> T {
        let viewer = Viewer { zone: Zone::parse("Europe/Berlin").unwrap(), ..Viewer::default() };
        viewer.sync_scope(work)
    }

    #[test]
    fn a_time_is_in_the_chosen_zone_and_exact_where_one_points() {
        let noon = parse_instant("2016-01-01T12:00Z").unwrap();
        let utc = "<time datetime=\"2016-01-01T12:00Z\" title=\"2016-01-01T12:00Z\">2016-01-01T12:00Z</time>";
        assert_eq!(at(noon).into_string(), utc);
        let berlin = "<time datetime=\"2016-01-01T12:00Z\" title=\"2016-01-01T12:00Z\">2016-01-01 13:00 CET</time>";
        assert_eq!(in_berlin(|| at(noon).into_string()), berlin);
        let later = parse_instant("2016-01-01T12:12:30Z").unwrap();
        let told = in_berlin(|| ago(noon, later).into_string());
        assert!(
            told.contains("title=\"2016-01-01 13:00 CET, 2016-01-01T12:00Z\" data-relative>12 min 30 s ago<"),
            "{told}"
        );
    }

    #[test]
    fn times_in_prose_are_found_but_for_those_in_names() {
        let told = |text: &str| in_berlin(|| in_words(text));
        assert_eq!(told("until 2016-07-01T10:00Z, or not"), "until 2016-07-01 12:00 CEST, or not");
        assert_eq!(told("T 2016-01-01T10:00:05.123ZT"), "T 2016-01-01 11:00:05 CETT");
        let others = [
            "up@2016-01-01T10:00Z",
            "2016-01-01T10:00",
            "99992016-01-01T10:00Z",
            "2016-13-01T10:00Z",
            "é2016-01-01T10:00Z",
            "T",
            "",
        ];
        for text in others {
            assert_eq!(told(text), text);
        }
        let hostile = in_berlin(|| in_text("<b>2016-01-01T10:00Z</b>").into_string());
        assert!(hostile.starts_with("&lt;b&gt;<time ") && hostile.ends_with("</time>&lt;/b&gt;"), "{hostile}");
    }
}
