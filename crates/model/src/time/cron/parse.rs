//! From text to fields: splitting, and what must hold between the fields.

use std::borrow::Cow;
use std::ops::Range;

use super::bits;
use super::days::DayRule;
use super::error::{CronError, CronField, Fault};
use super::item::{self, Draft};
use super::{Cron, DayTimes};

/// Reads a whole expression.
pub(super) fn parse(expression: &str) -> Result<Cron, CronError> {
    let source = Source { expression };
    let spans = source.fields()?;
    let mut drafts: [Draft; 7] = Default::default();
    for (field, draft) in CronField::ALL.into_iter().zip(&mut drafts) {
        match spans.get(field as usize) {
            Some(span) => *draft = source.field(field, span)?,
            None => item::read(draft, "*", field).map_err(|f| source.error(field, 0..0, f))?,
        }
    }
    let days = source.days(&drafts, &spans)?;
    let [second, minute, hour, _, month, _, year] = drafts;
    Ok(Cron {
        text: expression.into(),
        times: DayTimes { hours: hour.set, minutes: minute.set, seconds: second.set },
        days,
        months: month.set,
        years: year.years,
        hours_stepped: hour.stepped,
        minutes_stepped: minute.stepped,
    })
}

/// The expression, for cutting pieces from it and for saying where they were.
struct Source<'a> {
    expression: &'a str,
}

impl Source<'_> {
    /// The places of the fields. An eighth field and whatever follows is ignored, as Quartz does.
    fn fields(&self) -> Result<Vec<Range<usize>>, CronError> {
        let mut spans = pieces(self.expression, 0..self.expression.len(), |c| matches!(c, ' ' | '\t'));
        spans.iter_mut().for_each(|span| *span = trim(self.expression, span.clone()));
        spans.retain(|span| !span.is_empty());
        let Some(missing) = CronField::ALL[..6].get(spans.len()) else {
            return Ok(spans);
        };
        let end = self.expression.len();
        Err(self.error(
            *missing,
            end..end,
            Fault {
                problem: format!("is missing, as there are {} of 6", spans.len()).into(),
                expected: "6 or 7 fields, second minute hour day-of-month month day-of-week [year]".into(),
            },
        ))
    }

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
        CronError {
            field,
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
