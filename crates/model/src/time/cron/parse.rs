//! From text to fields: splitting, and what must hold between the fields.

use std::borrow::Cow;
use std::ops::Range;

use super::bits;
use super::days::DayRule;
use super::error::{CronDialect, CronError, CronField, Fault};
use super::item::{self, Draft};
use super::{Cron, DayTimes, unix};

/// Refuses control characters, which are seen nowhere and are taken for blanks by one reader and not by another.
pub(super) fn without_control_characters(expression: &str) -> Result<(), CronError> {
    let Some((at, found)) = expression.char_indices().find(|(_, letter)| letter.is_control()) else { return Ok(()) };
    let dialect = CronDialect::Unix;
    let before = pieces(expression, 0..at, |letter| letter == ' ').len();
    let is_within = !expression[..at].ends_with(' ') && at > 0;
    let field = dialect.fields().get(before - usize::from(is_within)).or(dialect.fields().last()).copied();
    let fault = Fault { problem: "is a control character".into(), expected: "blanks between the fields".into() };
    let field = field.unwrap_or(CronField::Minute);
    Err(Source { expression, dialect }.error(field, at..at + found.len_utf8(), fault))
}

/// Reads a whole expression.
pub(super) fn parse(expression: &str) -> Result<Cron, CronError> {
    let spans = fields(expression)?;
    match spans.len() {
        5 => unix(&Source { expression, dialect: CronDialect::Unix }, &spans),
        _ => quartz(&Source { expression, dialect: CronDialect::Quartz }, &spans),
    }
}

fn unix(source: &Source<'_>, spans: &[Range<usize>]) -> Result<Cron, CronError> {
    let mut drafts: [unix::Draft; 5] = Default::default();
    for ((field, span), draft) in source.dialect.fields().iter().zip(spans).zip(&mut drafts) {
        let text = &source.expression[span.clone()].to_ascii_uppercase();
        *draft = unix::read(text, *field)
            .map_err(|(at, fault)| source.error(*field, span.start + at.start..span.start + at.end, fault))?;
    }
    if let [.., day, _, weekday] = spans
        && let Some(fault) = unix::days_fault(&source.expression[day.clone()], &source.expression[weekday.clone()])
    {
        return Err(source.error(CronField::DayOfWeek, weekday.clone(), fault));
    }
    let [minute, hour, day, month, weekday] = drafts;
    Ok(Cron {
        text: source.expression.into(),
        dialect: source.dialect,
        times: DayTimes { hours: hour.set, minutes: minute.set, seconds: 1 },
        days: unix::days(&day, &weekday),
        months: month.set,
        years: bits::Years::of(bits::FIRST_YEAR..=bits::LAST_YEAR),
        hours_stepped: hour.stepped,
        minutes_stepped: minute.stepped,
        dates: None,
    })
}

fn quartz(source: &Source<'_>, spans: &[Range<usize>]) -> Result<Cron, CronError> {
    let mut drafts: [Draft; 7] = Default::default();
    for (field, draft) in CronField::ALL.into_iter().zip(&mut drafts) {
        match spans.get(field as usize) {
            Some(span) => *draft = source.field(field, span)?,
            None => item::read(draft, "*", field).map_err(|f| source.error(field, 0..0, f))?,
        }
    }
    let days = source.days(&drafts, spans)?;
    let [second, minute, hour, _, month, _, year] = drafts;
    Ok(Cron {
        text: source.expression.into(),
        dialect: source.dialect,
        times: DayTimes { hours: hour.set, minutes: minute.set, seconds: second.set },
        days,
        months: month.set,
        years: year.years,
        hours_stepped: hour.stepped,
        minutes_stepped: minute.stepped,
        dates: None,
    })
}

/// The places of the fields. An eighth field and whatever follows is ignored, as Quartz does.
fn fields(expression: &str) -> Result<Vec<Range<usize>>, CronError> {
    let mut spans = pieces(expression, 0..expression.len(), |c| matches!(c, ' ' | '\t'));
    spans.iter_mut().for_each(|span| *span = trim(expression, span.clone()));
    spans.retain(|span| !span.is_empty());
    let dialect = CronDialect::Unix;
    if let Some((first, fault)) = spans.first().and_then(|first| Some((first, foreign(&expression[first.clone()])?))) {
        return Err(Source { expression, dialect }.error(CronField::Minute, first.clone(), fault));
    }
    let Some(missing) = dialect.fields().get(spans.len()) else { return Ok(spans) };
    let end = expression.len();
    let fault = Fault {
        problem: format!("is missing, as there are {} of 5", spans.len()).into(),
        expected:
            "5 fields, minute hour day-of-month month day-of-week, as a crontab has, or 6 or 7 as Quartz has, second \
                   minute hour day-of-month month day-of-week [year]"
                .into(),
    };
    Err(Source { expression, dialect }.error(*missing, end..end, fault))
}

/// The fault of a first word that is no field, but that other programs accept before the fields or in their place.
fn foreign(word: &str) -> Option<Fault> {
    let lower = word.to_ascii_lowercase();
    let fields = match lower.as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ if lower.starts_with('@') => "five fields, such as 0 6 * * *",
        _ if lower.starts_with("cron_tz=") || lower.starts_with("tz=") => {
            let expected = "the fields alone, and the time zone beside the expression: timeZone".into();
            return Some(Fault { problem: "names a time zone".into(), expected });
        }
        _ => return None,
    };
    Some(Fault { problem: "is a word of some crontabs".into(), expected: fields.into() })
}

/// The expression, for cutting pieces from it and for saying where they were.
struct Source<'a> {
    expression: &'a str,
    dialect: CronDialect,
}

impl Source<'_> {
    fn field(&self, field: CronField, span: &Range<usize>) -> Result<Draft, CronError> {
        let text = &self.expression[span.clone()].to_ascii_uppercase();
        if let Some(fault) = lone_sign_fault(field, text) {
            return Err(self.error(field, span.clone(), fault));
        }
        let mut draft = Draft::default();
        for piece in pieces(text, 0..text.len(), |c| c == ',') {
            item::read(&mut draft, &text[piece.clone()], field)
                .map_err(|f| self.error(field, span.start + piece.start..span.start + piece.end, f))?;
        }
        if !draft.any {
            let fault = Fault { problem: "has no values".into(), expected: field.values().into() };
            return Err(self.error(field, span.clone(), fault));
        }
        Ok(draft)
    }

    /// The rule for the days, from the one of the two day fields that isn't `?`.
    fn days(&self, drafts: &[Draft; 7], spans: &[Range<usize>]) -> Result<DayRule, CronError> {
        let month_days = &drafts[CronField::DayOfMonth as usize];
        let week_days = &drafts[CronField::DayOfWeek as usize];
        let problem: Cow<'static, str> = match (month_days.unspecified, week_days.unspecified) {
            (false, true) => return Ok(month_rule(month_days)),
            (true, false) => return Ok(week_rule(week_days)),
            (true, true) => "leaves the day open, and so does day-of-month".into(),
            (false, false) => "chooses days, and so does day-of-month".into(),
        };
        let expected = "\"?\" in exactly one of day-of-month and day-of-week".into();
        let field = CronField::DayOfWeek;
        Err(self.error(field, spans[field as usize].clone(), Fault { problem, expected }))
    }

    fn error(&self, field: CronField, span: Range<usize>, fault: Fault) -> CronError {
        let before = self.dialect.fields().iter().take_while(|one| **one != field).count();
        CronError {
            field,
            position: before + 1,
            text: self.expression[span.clone()].to_owned(),
            span,
            problem: fault.problem,
            expected: fault.expected,
            expression: self.expression.to_owned(),
        }
    }
}

/// `L` and `#` must be alone in a field.
fn lone_sign_fault(field: CronField, text: &str) -> Option<Fault> {
    let days = matches!(field, CronField::DayOfMonth | CronField::DayOfWeek);
    if days && text.contains('L') && text.contains(',') {
        return Some(Fault {
            problem: "has \"L\" in a list".into(),
            expected: "\"L\" alone, or a list without it".into(),
        });
    }
    (field == CronField::DayOfWeek && text.matches('#').count() > 1)
        .then(|| Fault { problem: "has more than one \"#\"".into(), expected: "a single weekday with \"#\"".into() })
}

/// As Quartz, `W` in a list counts for its smallest day alone.
fn month_rule(draft: &Draft) -> DayRule {
    match (draft.last, draft.nearest) {
        (Some(offset), true) => DayRule::LastWeekday { offset },
        (Some(offset), false) => DayRule::Last { offset },
        (None, true) => DayRule::NearestWeekday { day: bits::min(draft.set) as i8 },
        (None, false) => DayRule::Days(draft.set),
    }
}

/// As Quartz, `#` in a list counts for its smallest weekday alone.
fn week_rule(draft: &Draft) -> DayRule {
    let weekday = bits::min(draft.set) as i8;
    match draft.nth {
        _ if draft.last_weekday => DayRule::LastOf { weekday },
        Some(nth) => DayRule::NthOf { weekday, nth },
        None => DayRule::Weekdays(draft.set),
    }
}

/// The pieces of `text[within]` between separators; empty ones are left out.
fn pieces(text: &str, within: Range<usize>, separates: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut start = within.start;
    let mut found = Vec::new();
    for part in text[within].split(separates) {
        if !part.is_empty() {
            found.push(start..start + part.len());
        }
        start += part.len() + 1;
    }
    found
}

/// Without the blanks and control characters at both ends.
fn trim(text: &str, span: Range<usize>) -> Range<usize> {
    let piece = &text[span.clone()];
    let left = piece.len() - piece.trim_start_matches(|c| c <= ' ').len();
    let right = piece.len() - piece.trim_end_matches(|c| c <= ' ').len();
    if left == piece.len() { span.start..span.start } else { span.start + left..span.end - right }
}
