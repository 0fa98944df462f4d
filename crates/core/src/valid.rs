//! Whether a job is worth running: what its workflow lists, or a function of a script says.

use kelos_model::template::KeyValues;
use kelos_model::trigger::Verdict;
use kelos_model::{Answer, Finding, Probe, Reason, ReasonKind, SlotRef};

use crate::Core;

impl Core {
    /// Whether a job is worth running; none where nothing is said of that, or it is known already.
    pub(crate) fn validity(&self, id: &SlotRef) -> Option<Validity> {
        let definition = &self.tasks.get(&id.workflow)?.row.definition;
        let valid = definition.keys.jobs()?.valid.as_ref()?;
        if self.live(id)?.valid {
            return None;
        }
        let values = KeyValues::of(&definition.keys, &id.key);
        if valid.is_listed(values.identifiers()) {
            return Some(Validity::Yes);
        }
        let Some(function) = &valid.function else {
            let finding = Finding::NotListed { values: valid.values.clone() };
            return Some(Validity::No(Reason::leaf(ReasonKind::Valid, Answer::Never, finding)));
        };
        let probe = Probe::Function { function: function.clone(), workflow: id.workflow.clone(), key: id.key.clone() };
        Some(self.said_of_validity(probe))
    }

    fn said_of_validity(&self, probe: Probe) -> Validity {
        let leaf = |answer, finding| Reason::leaf(ReasonKind::Valid, answer, finding);
        let Some(said) = self.wakes.probes.answer(&probe) else {
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

    pub(crate) fn note_valid(&mut self, id: &SlotRef) {
        self.slots.set_valid(id);
    }
}

/// Whether a job is worth running.
pub(crate) enum Validity {
    Yes,
    No(Reason),
    NotKnown(Reason, Probe),
}
