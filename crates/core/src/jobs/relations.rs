//! Functions that know which jobs belong together: what they are asked, and what they said. They are asked outside the step, so
//! whoever needs to know waits for the answer.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::jobs::Relation;
use kelos_model::{Answer, Finding, Reason, ReasonKind, SlotRef};

/// A function that failed is asked again after this time.
pub(super) const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// The questions to functions, and their answers.
#[derive(Default)]
pub(super) struct Relations {
    asked: BTreeSet<Relation>,
    answers: BTreeMap<Relation, Result<Vec<SlotRef>, FunctionFailure>>,
    /// Questions that are to be sent.
    to_send: Vec<Relation>,
}

/// Why a function gave no answer, and since when.
struct FunctionFailure {
    why: String,
    since: Timestamp,
}

/// The progress of the functions that know a job's parents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// They have said everything.
    Whole,
    /// Some are being asked.
    Asked,
    /// One failed, and is asked again at this moment.
    Failed(String, Timestamp),
}

impl Knowledge {
    /// Why a job waits for functions, and when one that failed is asked again; none where they have said everything.
    pub(super) fn explained(self) -> Option<(Reason, Option<Timestamp>)> {
        let (finding, again) = match self {
            Knowledge::Whole => return None,
            Knowledge::Asked => (Finding::ParentsAsked, None),
            Knowledge::Failed(message, at) => (Finding::ParentsUnknown { message }, Some(at)),
        };
        Some((Reason::leaf(ReasonKind::Parents, Answer::NotYet, finding), again))
    }
}

impl Relations {
    /// Asks what is not known yet.
    pub(super) fn know(&mut self, questions: &[Relation], now: Timestamp) -> Knowledge {
        let mut known = Knowledge::Whole;
        for question in questions {
            match self.answers.get(question) {
                Some(Ok(_)) => {}
                Some(Err(trouble)) if now < trouble.since + ASK_AGAIN => {
                    known = Knowledge::Failed(trouble.why.clone(), trouble.since + ASK_AGAIN);
                }
                _ => {
                    self.ask(question);
                    if !matches!(known, Knowledge::Failed(..)) {
                        known = Knowledge::Asked;
                    }
                }
            }
        }
        known
    }

    fn ask(&mut self, question: &Relation) {
        self.answers.remove(question);
        if self.asked.insert(question.clone()) {
            self.to_send.push(question.clone());
        }
    }

    /// Takes the questions out that are to be sent.
    pub(super) fn take_questions(&mut self) -> Vec<Relation> {
        std::mem::take(&mut self.to_send)
    }

    /// Whether the answer to a question is waited for. The next one is not.
    pub(super) fn take_asked(&mut self, question: &Relation) -> bool {
        self.asked.remove(question)
    }

    /// Keeps what a function said at a moment.
    pub(super) fn keep(&mut self, question: Relation, answer: Result<Vec<SlotRef>, String>, at: Timestamp) {
        self.answers.insert(question, answer.map_err(|why| FunctionFailure { why, since: at }));
    }

    /// The jobs that a function named.
    pub(super) fn named(&self, question: &Relation) -> Option<&[SlotRef]> {
        self.answers.get(question)?.as_ref().ok().map(Vec::as_slice)
    }

    /// The same, which is forgotten with that.
    pub(super) fn take_named(&mut self, question: &Relation) -> Option<Vec<SlotRef>> {
        self.answers.remove(question)?.ok()
    }

    /// Why a function gave no answer.
    pub(super) fn trouble(&self, question: &Relation) -> Option<&str> {
        self.answers.get(question)?.as_ref().err().map(|trouble| trouble.why.as_str())
    }

    /// Forgets what was asked and said: the definitions changed.
    pub(super) fn forget(&mut self) {
        self.asked.clear();
        self.answers.clear();
    }
}
