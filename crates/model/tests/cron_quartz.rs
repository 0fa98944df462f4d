//! Our cron against real Quartz 2.3.2, in UTC, line by line. `fixtures/cron/README.md` tells how the lines
//! came about.

#![allow(clippy::disallowed_methods, reason = "it can read lines from a file that is named")]

use jiff::civil::DateTime;
use kelos_model::time::{Cron, CronDialect, CronError, CronField};

const LINES: &str = include_str!("../../../fixtures/cron/quartz-utc.txt");

/// Where we refuse what Quartz accepts, on purpose: what it then does is never what was meant.
fn is_refused_on_purpose(error: &CronError) -> bool {
    let range = error.problem == "is out of range";
    // 98 and 99 are Quartz's inner signs for ? and *; its own range checks let them through.
    let sign = range && (error.text.starts_with("98") || error.text.starts_with("99"));
    // It doesn't check the weekday before a #: 0 counts as Saturday, and 8 never comes.
    let weekday = range && error.field == CronField::DayOfWeek && error.text.contains('#');
    // A year field without a single year ("L" or ",") never fires.
    let no_year = error.field == CronField::Year && error.problem == "has no values";
    sign || weekday || no_year
}

/// Where we find other times, on purpose. In a February that ends on a Friday, 29W or 30W that is beyond
/// its end falls back to that Friday, as 31W does in other months; Quartz finds it if it is asked from a
/// time in February on, but not from a time in January. Our answer doesn't depend on where we start.
const OTHER_TIMES: [&str; 2] = ["0 51 17 30W * ? 2008-2036", "0 23 16 29W * ?"];

struct Line<'a> {
    expression: &'a str,
    start: DateTime,
    answer: &'a str,
}

/// The lines, and the year after which Quartz found no more times: a century after it was asked.
fn lines(text: &str) -> (i16, Vec<Line<'_>>) {
    let (head, rest) = text.split_once('\n').expect("a first line");
    let until = head.strip_prefix("# until ").expect("the last year");
    let line = |line| {
        let (start, rest) = str::split_once(line, '|').expect("a start");
        let (expression, answer) = rest.rsplit_once('|').expect("an answer");
        let start = start.parse().expect("a civil time");
        Line { expression, start, answer }
    };
    (until.parse().expect("a year"), rest.lines().map(line).collect())
}

/// What we say: the times, up to as many as the oracle wrote.
fn ours(line: &Line<'_>, until: i16) -> Result<String, CronError> {
    let cron = Cron::parse(line.expression)?;
    let next = |at: &DateTime| cron.next_after(*at).filter(|at| at.year() <= until);
    let times = std::iter::successors(next(&line.start), next).take(5);
    let times: Vec<String> = times.map(|at| at.to_string()).collect();
    Ok(times.join(" "))
}

/// Five fields are crontab's here, and refused by Quartz.
fn is_of_crontab(line: &Line<'_>) -> bool {
    Cron::parse(line.expression).is_ok_and(|cron| cron.dialect() == CronDialect::Unix)
}

fn disagreement(line: &Line<'_>, until: i16) -> Option<String> {
    if is_of_crontab(line) {
        return (line.answer != "refused").then(|| format!("{:?} is no crontab's", line.expression));
    }
    let (ours, theirs) = (ours(line, until), line.answer);
    let agree = match &ours {
        Ok(_) if theirs == "hangs" => true,
        Ok(times) => times == theirs || OTHER_TIMES.contains(&line.expression),
        Err(_) if matches!(theirs, "refused" | "hangs") => true,
        Err(error) => is_refused_on_purpose(error),
    };
    let told = || format!("{:?} from {}\n  {ours:?}\n  {theirs:?}", line.expression, line.start);
    (!agree).then(told)
}

fn assert_all_agree(text: &str) {
    let (until, lines) = lines(text);
    let found: Vec<String> = lines.iter().filter_map(|line| disagreement(line, until)).collect();
    let shown = found.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(found.is_empty(), "{} of {} lines differ:\n{shown}", found.len(), lines.len());
}

#[test]
fn says_what_quartz_says() {
    assert_all_agree(LINES);
}

#[test]
fn previous_is_the_inverse_of_next_on_every_line() {
    for line in lines(LINES).1 {
        let Ok(cron) = Cron::parse(line.expression) else {
            continue;
        };
        let Some(first) = cron.next_after(line.start) else {
            continue;
        };
        let Some(second) = cron.next_after(first) else {
            continue;
        };
        assert_eq!(cron.previous_before(second), Some(first), "{}", line.expression);
    }
}

/// For a longer run than the repository has lines for: KELOS_CRON_LINES names a file from the oracle.
#[test]
#[ignore = "needs a file from the oracle"]
fn says_what_quartz_says_in_a_longer_run() {
    let path = std::env::var("KELOS_CRON_LINES").expect("the path of a file");
    assert_all_agree(&std::fs::read_to_string(path).expect("a text file"));
}
