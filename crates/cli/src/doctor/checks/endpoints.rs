//! The services outside that a server uses: storage, sources of facts, checkpoints, its certificate.

use kelos_model::time::text::span;
use kelos_wire::EndpointDto;

use super::named;
use super::scripts::ProblemLine;
use crate::doctor::diagnosis::Diagnosis;
use crate::text::count;

const CHECK: &str = "endpoints";

/// The codes of problems that are not of definitions, but of services outside, and of the folders of runs.
const CODES: [&str; 9] = [
    "history-fails",
    "source-fails",
    "source-notice",
    "inbox-fails",
    "request-refused",
    "checkpoint-fails",
    "telemetry-fails",
    "alert-fails",
    "bad-certificate",
];

/// Whether a problem is one of a service outside.
pub(in crate::doctor) fn is_outside(code: &str) -> bool {
    CODES.contains(&code)
}

/// Judges the endpoints of a server, and its problems with services outside.
pub(in crate::doctor) fn judge(endpoints: &[EndpointDto], problems: &[ProblemLine]) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for endpoint in endpoints {
        let Some(broken) = &endpoint.broken else { continue };
        let next = i64::try_from(broken.next_try_seconds).unwrap_or(i64::MAX);
        let words = format!(
            "{} has failed since {} and is asked again in {}: {}",
            endpoint.name,
            broken.since.short(),
            span(next),
            broken.last_error
        );
        let advice =
            "triggers that ask it wait; bring it back, or look at the network and the credentials of the server";
        found.push(Diagnosis::wrong(CHECK, words, advice));
    }
    let lines = |are_errors: bool| -> Vec<String> {
        problems.iter().filter(|one| one.is_error == are_errors).map(ProblemLine::line).collect()
    };
    let advice = "the page Problems of the server shows each with its hint";
    let (errors, warnings) = (lines(true), lines(false));
    if !errors.is_empty() {
        found.push(Diagnosis::wrong(CHECK, named(&errors), advice));
    }
    if !warnings.is_empty() {
        found.push(Diagnosis::warning(CHECK, named(&warnings), advice));
    }
    if found.is_empty() {
        let words = match endpoints.len() {
            0 => "no service outside was asked for anything yet".to_owned(),
            asked => format!("{} answered when asked last", count(asked, "service")),
        };
        found.push(Diagnosis::ok(CHECK, words));
    }
    found
}

#[cfg(test)]
mod tests {
    use kelos_wire::BrokenDto;

    use super::*;

    fn told(endpoints: &[EndpointDto], problems: &[ProblemLine]) -> Vec<String> {
        judge(endpoints, problems).iter().map(|one| format!("{:?} {}", one.level, one.found)).collect()
    }

    #[test]
    fn endpoints_whose_breaker_is_open_are_wrong() {
        let well = EndpointDto { name: "hdfs://n".to_owned(), ..EndpointDto::default() };
        assert_eq!(told(std::slice::from_ref(&well), &[]), ["Ok 1 service answered when asked last"]);
        let since = "2026-11-26T16:00:00.000Z".parse::<jiff::Timestamp>().expect("a time").into();
        let broken = BrokenDto { since, last_error: "connection refused".to_owned(), next_try_seconds: 70 };
        let bad = EndpointDto { name: "s3://b".to_owned(), broken: Some(broken), ..EndpointDto::default() };
        let words = "s3://b has failed since 2026-11-26T16:00Z and is asked again in 1 min 10 s: connection refused";
        assert_eq!(told(&[well, bad], &[]), [format!("Wrong {words}")]);
    }

    #[test]
    fn problems_of_sources_are_told_by_their_codes() {
        assert!(is_outside("source-fails") && !is_outside("syntax-error"));
        let problem = |is_error, line: &str| ProblemLine {
            is_error,
            code: "source-fails".to_owned(),
            place: String::new(),
            message: line.to_owned(),
        };
        assert_eq!(
            told(&[], &[problem(true, "topic a: gone"), problem(false, "topic b: odd")]),
            ["Wrong topic a: gone", "Warning topic b: odd"]
        );
    }
}
