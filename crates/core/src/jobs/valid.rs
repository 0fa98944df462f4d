//! The validity of jobs: the condition in which a workflow lists values, or a function of a script decides.

use std::sync::Arc;

use kelos_model::jobs;
use kelos_model::probe::Verdict;
use kelos_model::{Answer, Finding, Probe, ProbeAnswer, Reason, ReasonKind, SlotRef};

/// The validity of a job.
#[derive(Debug, PartialEq)]
pub(crate) enum Validity {
    Yes,
    No(Reason),
    NotKnown(Reason, Probe),
}

impl Validity {
    /// The validity of a job with these identifiers. `answer` returns the answer of a function.
    pub(crate) fn of(
        valid: &jobs::Validity,
        job: &SlotRef,
        identifiers: &[(Arc<str>, Arc<str>)],
        answer: impl FnOnce(&Probe) -> Option<ProbeAnswer>,
    ) -> Validity {
        if valid.is_listed(identifiers) {
            return Validity::Yes;
        }
        let Some(function) = &valid.function else {
            let finding = Finding::NotListed { values: valid.values.clone() };
            return Validity::No(leaf(Answer::Never, finding));
        };
        let (function, workflow, key) = (function.clone(), job.workflow.clone(), job.key.clone());
        let probe = Probe::Function { function, workflow, key };
        let said = answer(&probe);
        Validity::said(probe, said)
    }

    fn said(probe: Probe, said: Option<ProbeAnswer>) -> Validity {
        let Some(said) = said else {
            return Validity::NotKnown(leaf(Answer::NotYet, Finding::ProbeAsked { probe: probe.clone() }), probe);
        };
        let (verdict, detail, looked_at) = (said.verdict, said.detail, said.at);
        let finding = Finding::ProbeAnswered { probe: probe.clone(), verdict, detail, looked_at };
        match verdict {
            Verdict::Yes => Validity::Yes,
            Verdict::No | Verdict::Never => Validity::No(leaf(Answer::Never, finding)),
            Verdict::Failed => Validity::NotKnown(leaf(Answer::NotYet, finding), probe),
        }
    }
}

fn leaf(answer: Answer, finding: Finding) -> Reason {
    Reason::leaf(ReasonKind::Valid, answer, finding)
}
