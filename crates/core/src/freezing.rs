//! Frozen workflows: an invariant of theirs broke, and they are left alone until somebody resumes them.

use std::collections::BTreeSet;

use kelos_model::{Breach, Freeze, RunId, WorkflowEvent, WorkflowId};

use crate::asks::Mandate;
use crate::{Command, Core, Input, Refusal};

impl Core {
    /// Whether a workflow is frozen; none where there is no such workflow, which can't be frozen either.
    #[must_use]
    pub fn is_frozen(&self, id: &WorkflowId) -> Option<bool> {
        self.tasks.get(id).map(|task| task.is_frozen())
    }

    /// Leaves a workflow alone from now on. What runs goes on, and is heard.
    pub(crate) fn freeze(&mut self, breach: Breach) {
        let id = breach.workflow.clone();
        let Some(task) = self.tasks.get_mut(&id) else { return self.no_workflow(&id) };
        if task.is_frozen() {
            return;
        }
        task.row.moments.frozen = Some(Freeze { at: self.now, breach: breach.clone(), set_aside: BTreeSet::new() });
        self.record_workflow(&id, WorkflowEvent::Frozen { breach });
        self.agree_on_terms(&id);
        self.arm_firing(&id);
    }

    /// Drops an input that breaks a frozen workflow: who asked hears so, and a run whose report it is is heard no more until
    /// somebody resumes the workflow.
    pub(crate) fn set_aside(&mut self, breach: Breach, input: Input) {
        let words = input.words();
        if let Some(freeze) = self.tasks.get_mut(&breach.workflow).and_then(|task| task.row.moments.frozen.as_mut()) {
            if let Input::RunReported { run, .. } = &input {
                freeze.set_aside.insert(run.clone());
                self.unheard.insert(run.clone());
            }
            let id = breach.workflow.clone();
            self.record_workflow(&id, WorkflowEvent::SetAside { breach: breach.clone(), input: words });
        }
        if let Input::Asked { token, .. } = input {
            self.command(Command::Reply { token, reply: Err(Refusal::Broken(breach)) });
        }
    }

    /// The runs whose reports were set aside, of all frozen workflows. One may be of another workflow than the one that broke.
    pub(crate) fn runs_set_aside(&self) -> BTreeSet<RunId> {
        let frozen = self.tasks.values().filter_map(|task| task.row.moments.frozen.as_ref());
        frozen.flat_map(|freeze| &freeze.set_aside).cloned().collect()
    }

    /// Resumes a workflow that is frozen, or else one that is paused.
    pub(crate) fn thaw_or_resume(&mut self, id: &WorkflowId, mandate: &Mandate) -> Result<(), Refusal> {
        let freeze = self.tasks.get_mut(id).and_then(|task| task.row.moments.frozen.take());
        let Some(freeze) = freeze else { return self.resume(id, mandate) };
        let Mandate { by, reason } = mandate.clone();
        self.record_workflow(id, WorkflowEvent::Thawed { by, reason });
        self.agree_on_terms(id);
        self.wake_all(id);
        self.unheard = self.runs_set_aside();
        freeze.set_aside.iter().for_each(|run| self.ask_about(&run.slot));
        Ok(())
    }
}
