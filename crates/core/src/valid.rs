//! Whether a job is worth running: what its workflow lists, or a function of a script says.

use kelos_model::template::KeyValues;
use kelos_model::trigger::{Evidence, Explanation, TriggerKind, Verdict};
use kelos_model::{Answer, Probe, SlotRef};

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
        let Some(function) = &valid.function else { return Some(Validity::No(no_value(valid))) };
        let probe = Probe::Function { function: function.clone(), workflow: id.workflow.clone(), key: id.key.clone() };
        Some(self.said_of_validity(probe))
    }

    fn said_of_validity(&self, probe: Probe) -> Validity {
        let leaf = |answer, text, evidence| Explanation {
            kind: TriggerKind::Valid,
            answer,
            text,
            evidence: Some(evidence),
            nested: Vec::new(),
        };
        let Some(said) = self.probes.answer(&probe) else {
            let text = "its workflow is asked whether the job is valid".to_owned();
            return Validity::NotKnown(leaf(Answer::NotYet, text, Evidence::Asked), probe);
        };
        let evidence = |probe: &Probe| Evidence::Probe {
            probe: probe.clone(),
            verdict: said.verdict,
            detail: said.detail.clone(),
            looked_at: said.at,
        };
        match said.verdict {
            Verdict::Yes => Validity::Yes,
            Verdict::No | Verdict::Never => {
                let text = "the job is not valid: the function of its workflow says so".to_owned();
                Validity::No(leaf(Answer::Never, text, evidence(&probe)))
            }
            Verdict::Failed => {
                let text = format!("whether the job is valid can't be asked: {}", said.detail);
                let explanation = leaf(Answer::NotYet, text, evidence(&probe));
                Validity::NotKnown(explanation, probe)
            }
        }
    }

    pub(crate) fn note_valid(&mut self, id: &SlotRef) {
        if let Some(live) = self.tasks.get_mut(&id.workflow).and_then(|task| task.slots.get_mut(&id.key)) {
            live.valid = true;
        }
    }
}

/// Whether a job is worth running.
pub(crate) enum Validity {
    Yes,
    No(Explanation),
    NotKnown(Explanation, Probe),
}

fn no_value(valid: &kelos_model::jobs::Validity) -> Explanation {
    let lists = valid.values.iter().map(|(name, values)| format!("{name} to be one of {}", values.join(", ")));
    let lists: Vec<String> = lists.collect();
    let expected = if lists.is_empty() { "nothing is".to_owned() } else { format!("expected {}", lists.join(", or ")) };
    Explanation {
        kind: TriggerKind::Valid,
        answer: Answer::Never,
        text: format!("the job is not valid: {expected}"),
        evidence: None,
        nested: Vec::new(),
    }
}
