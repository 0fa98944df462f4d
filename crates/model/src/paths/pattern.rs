//! A path as a template, segment by segment: which values make a given path of it, and whether another template can make the same.

use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::probe::plain;
use crate::ranges::Range;

/// The template of a path, in a form in which equal paths have equal texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    segments: Vec<Vec<Piece>>,
}

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A part of a time, which always has so many digits.
    Digits(&'static str, usize),
    /// The identifier of a job id.
    Named(Arc<str>),
}

/// The parts of a time and their lengths, from the longest part to the shortest.
const PARTS: [(&str, usize); 7] =
    [("year", 4), ("month", 2), ("day", 2), ("hour", 2), ("minute", 2), ("second", 2), ("millisecond", 3)];

/// The values that make a path of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Captures(Vec<(Arc<str>, String)>);

/// A path in a form in which equal paths have equal texts: without `.`, `..` and slashes that mean nothing.
pub(super) fn canonical(uri: &str) -> String {
    let path = plain(uri);
    let (system, path) = match path.split_once("://") {
        Some((scheme, rest)) => {
            let server = rest.find('/').unwrap_or(rest.len());
            (format!("{scheme}://{}", &rest[..server]), &rest[server..])
        }
        None => (String::new(), &*path),
    };
    format!("{system}{}", crate::trigger::normal(path))
}

impl Pattern {
    /// Reads a template in its canonical form. Only names of identifiers are variable besides the parts of a time.
    pub(super) fn new(template: &str, identifiers: &[Arc<str>]) -> Pattern {
        Pattern { segments: canonical(template).split('/').map(|segment| pieces(segment, identifiers)).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether it names each moment's own path, down to a year at least.
    pub(super) fn has_year(&self) -> bool {
        self.segments.iter().flatten().any(|piece| matches!(piece, Piece::Digits("year", _)))
    }

    /// The values that make the first segments of a canonical path of it, as far as both of them go.
    pub(super) fn captures(&self, path: &str) -> Option<Captures> {
        let mut captures = Captures::default();
        for (pieces, segment) in self.segments.iter().zip(path.split('/')) {
            if !take(pieces, segment, &mut captures) {
                return None;
            }
        }
        Some(captures)
    }

    /// Whether some value of each variable makes paths of both, as far as both of them go.
    pub(super) fn may_meet(&self, other: &Pattern) -> bool {
        self.segments.iter().zip(&other.segments).all(|(one, other)| meet(one, other))
    }
}

/// The pieces of a segment. A name without a value stays as it is.
fn pieces(segment: &str, identifiers: &[Arc<str>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = segment;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let end = from.find('}');
        let name = end.and_then(|end| from.get(2..end)).unwrap_or_default();
        let named = identifiers.iter().find(|known| &***known == name).map(|known| Piece::Named(known.clone()));
        let part = || PARTS.iter().find(|(part, _)| *part == name).map(|(part, digits)| Piece::Digits(part, *digits));
        match (named.or_else(part), end) {
            (Some(piece), Some(end)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(piece);
                rest = from.get(end + 1..).unwrap_or_default();
            }
            _ => {
                text.push_str("${");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

/// Takes a segment apart. An identifier takes as little as it can.
fn take(pieces: &[Piece], segment: &str, captures: &mut Captures) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return segment.is_empty() };
    match first {
        Piece::Text(text) => segment.strip_prefix(text.as_str()).is_some_and(|after| take(rest, after, captures)),
        Piece::Digits(name, digits) => {
            let Some((value, after)) = segment.split_at_checked(*digits) else { return false };
            let is_number = value.bytes().all(|letter| letter.is_ascii_digit());
            is_number && captures.agree(&Arc::from(*name), value) && take(rest, after, captures)
        }
        Piece::Named(name) => {
            let ends = segment.char_indices().map(|(at, letter)| at + letter.len_utf8());
            for end in ends {
                let (value, after) = segment.split_at(end);
                let before = captures.clone();
                if captures.agree(name, value) && take(rest, after, captures) {
                    return true;
                }
                *captures = before;
            }
            false
        }
    }
}

/// Whether two segments can have the same text. Variables of the same name have the same value; parts of a time of different names
/// are taken never to agree.
fn meet(one: &[Piece], other: &[Piece]) -> bool {
    match (one, other) {
        ([], []) => true,
        // The values of an identifier are not known here.
        ([Piece::Named(a), one @ ..], [Piece::Named(b), other @ ..]) if a == b => meet(one, other),
        ([Piece::Named(_), ..], [_, ..]) | ([_, ..], [Piece::Named(_), ..]) => true,
        ([Piece::Digits(a, _), one @ ..], [Piece::Digits(b, _), other @ ..]) => a == b && meet(one, other),
        ([Piece::Digits(_, digits), one @ ..], [Piece::Text(text), other @ ..])
        | ([Piece::Text(text), other @ ..], [Piece::Digits(_, digits), one @ ..]) => {
            let Some((value, after)) = text.split_at_checked(*digits) else { return false };
            value.bytes().all(|letter| letter.is_ascii_digit()) && meet(one, &with_text(after, other))
        }
        ([Piece::Text(a), one @ ..], [Piece::Text(b), other @ ..]) => {
            let common = a.len().min(b.len());
            let (Some((a, more_a)), Some((b, more_b))) = (a.split_at_checked(common), b.split_at_checked(common))
            else {
                return false;
            };
            a == b && meet(&with_text(more_a, one), &with_text(more_b, other))
        }
        _ => false,
    }
}

fn with_text(text: &str, rest: &[Piece]) -> Vec<Piece> {
    let text = (!text.is_empty()).then(|| Piece::Text(text.to_owned()));
    text.into_iter().chain(rest.iter().cloned()).collect()
}

impl Captures {
    /// Takes a value; whether it is the one that the variable has already.
    fn agree(&mut self, name: &Arc<str>, value: &str) -> bool {
        match self.0.iter().find(|(known, _)| known == name) {
            Some((_, known)) => known == value,
            None => {
                self.0.push((name.clone(), value.to_owned()));
                true
            }
        }
    }

    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.as_str())
    }

    /// The times that have these parts lie in this range; none without a year, or if there is no such time.
    pub(super) fn range(&self) -> Option<Range> {
        let part = |name: &str| self.of(name).map(|value| value.parse::<i16>().ok());
        let mut parts = [None; 7];
        for (known, (name, _)) in parts.iter_mut().zip(PARTS) {
            match part(name) {
                Some(value) => *known = Some(value?),
                // Text after a gap narrows nothing.
                None => break,
            }
        }
        let [year, month, day, hour, minute, second, milli] = parts;
        let small = |part: Option<i16>, least: i8| part.map_or(Some(least), |part| i8::try_from(part).ok());
        let start = DateTime::new(
            year?,
            small(month, 1)?,
            small(day, 1)?,
            small(hour, 0)?,
            small(minute, 0)?,
            small(second, 0)?,
            i32::from(milli.unwrap_or(0)).checked_mul(1_000_000)?,
        );
        let start: Timestamp = start.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        let hours = |hours| start.checked_add(SignedDuration::from_hours(hours)).ok();
        let end = match (month, day, hour, minute, second, milli) {
            (None, ..) => hours(24 * 366),
            (_, None, ..) => hours(24 * 31),
            (_, _, None, ..) => hours(24),
            (_, _, _, None, ..) => hours(1),
            (_, _, _, _, None, _) => start.checked_add(1.minute()).ok(),
            (_, _, _, _, _, None) => start.checked_add(1.second()).ok(),
            _ => start.checked_add(1.millisecond()).ok(),
        };
        Some(Range { start, end: end? })
    }
}
