//! Functions that know the relations of jobs: the questions to them, and their answers. They are called outside the
//! step, so their answers have to be awaited.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::jobs::Relation;
use kelos_model::{Answer, Finding, Reason, ReasonKind, SlotRef};

/// The time after which a failed function is asked again.
pub(super) const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// The questions to functions, and their answers.
#[derive(Default)]
pub(super) struct Relations {
    asked: BTreeSet<Relation>,
    answers: BTreeMap<Relation, Result<Vec<SlotRef>, FunctionFailure>>,
    /// The questions to be sent.
    to_send: Vec<Relation>,
}

/// The failure of a function, and its moment.
struct FunctionFailure {
    why: String,
    since: Timestamp,
}

/// The state of the questions to functions about a job's parents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// All answers.
    Whole,
    /// Some questions are in flight.
    Asked,
    /// A function failed with this message, and is asked again at this moment.
    Failed(String, Timestamp),
}

impl Knowledge {
    /// The reason why a job waits for functions, and the moment at which a failed one is asked again; none if all have
    /// answered.
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
    /// Asks those of some questions that have no answers.
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

    /// Takes the questions to be sent.
    pub(super) fn take_questions(&mut self) -> Vec<Relation> {
        std::mem::take(&mut self.to_send)
    }

    /// Whether the answer to a question is awaited. A second answer is not.
    pub(super) fn take_asked(&mut self, question: &Relation) -> bool {
        self.asked.remove(question)
    }

    /// Keeps the answer of a function.
    pub(super) fn keep(&mut self, question: Relation, answer: Result<Vec<SlotRef>, String>, at: Timestamp) {
        self.answers.insert(question, answer.map_err(|why| FunctionFailure { why, since: at }));
    }

    /// The jobs in the answer of a function.
    pub(super) fn named(&self, question: &Relation) -> Option<&[SlotRef]> {
        self.answers.get(question)?.as_ref().ok().map(Vec::as_slice)
    }

    /// Takes the jobs in the answer of a function.
    pub(super) fn take_named(&mut self, question: &Relation) -> Option<Vec<SlotRef>> {
        self.answers.remove(question)?.ok()
    }

    /// The message of a failed function.
    pub(super) fn trouble(&self, question: &Relation) -> Option<&str> {
        self.answers.get(question)?.as_ref().err().map(|trouble| trouble.why.as_str())
    }

    /// Forgets all questions and answers, because the definitions have changed.
    pub(super) fn forget(&mut self) {
        self.asked.clear();
        self.answers.clear();
    }
}
