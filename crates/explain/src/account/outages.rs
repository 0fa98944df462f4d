//! Since when a question could not be answered: read from the log, so it holds over restarts and for any past moment.

use jiff::Timestamp;
use kelos_model::probe::Verdict;
use kelos_model::reason::{Evidence, words};
use kelos_model::time::text;
use kelos_model::{EventRecord, Probe, Reason};

use super::explanation;

/// The unmet leaves, in words, with the beginning of each outage among them.
pub(super) fn blockers(trigger: &Reason, history: &[EventRecord]) -> Vec<String> {
    let outages: Vec<(String, &Probe)> = leaves(trigger).into_iter().filter_map(outage).collect();
    let with_beginning = |blocker: String| {
        let probe = outages.iter().find(|(text, _)| blocker.starts_with(text.as_str())).map(|(_, probe)| *probe);
        match probe.and_then(|probe| began(probe, history)) {
            Some(began) => format!("{blocker} (so since {})", text::format_short(began)),
            None => blocker,
        }
    };
    words::blockers(trigger).into_iter().map(with_beginning).collect()
}

/// When a question began to fail without an answer in between: the look that first did.
fn began(probe: &Probe, history: &[EventRecord]) -> Option<Timestamp> {
    let looks = history.iter().rev().filter_map(explanation);
    let failing = looks.map_while(|looked| {
        leaves(looked).into_iter().find_map(|leaf| match leaf.evidence() {
            Some(Evidence::Probe { probe: asked, verdict: Verdict::Failed, looked_at, .. }) if asked == probe => {
                Some(looked_at)
            }
            _ => None,
        })
    });
    failing.last()
}

fn leaves(explanation: &Reason) -> Vec<&Reason> {
    match explanation.nested.is_empty() {
        true => vec![explanation],
        false => explanation.nested.iter().flat_map(leaves).collect(),
    }
}

fn outage(leaf: &Reason) -> Option<(String, &Probe)> {
    match leaf.evidence() {
        Some(Evidence::Probe { probe, verdict: Verdict::Failed, .. }) => Some((words::text(leaf), probe)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kelos_model::event::Event;
    use kelos_model::{Answer, Finding, ReasonKind, SlotEvent, SlotKey, SlotRef, WorkflowId};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn looked(verdict: Verdict, minute: i64) -> Reason {
        let (probe, detail) = (Probe::path("hdfs://n/in"), "refused".to_owned());
        let finding = Finding::ProbeAnswered { probe, verdict, detail, looked_at: at(minute) };
        Reason::leaf(ReasonKind::HdfsPath, Answer::NotYet, finding)
    }

    fn history(looks: &[(Verdict, i64)]) -> Vec<EventRecord> {
        let slot = SlotRef::new(WorkflowId::new("w").unwrap(), SlotKey::Time(at(0)));
        let record = |(seq, (verdict, minute)): (usize, &(Verdict, i64))| EventRecord {
            seq: seq as u64 + 1,
            previous: seq as u64,
            at: at(*minute),
            event: Event::Slot {
                slot: slot.clone(),
                what: SlotEvent::Looked { explanation: looked(*verdict, *minute) },
            },
        };
        looks.iter().enumerate().map(record).collect()
    }

    #[test]
    fn an_outage_begins_with_the_first_look_that_failed_since_the_last_answer() {
        let failing = looked(Verdict::Failed, 9);
        let looks = [(Verdict::Failed, 1), (Verdict::No, 3), (Verdict::Failed, 5), (Verdict::Failed, 9)];
        let words = "HDFS path hdfs://n/in can't be checked: refused (so since 1970-01-01T00:05Z)";
        assert_eq!(blockers(&failing, &history(&looks)), [words]);
    }

    #[test]
    fn what_was_answered_has_no_outage() {
        let answered = looked(Verdict::No, 9);
        assert_eq!(
            blockers(&answered, &history(&[(Verdict::Failed, 1), (Verdict::No, 9)])),
            words::blockers(&answered)
        );
    }
}
