//! Frozen workflows: after a broken invariant, a workflow is left alone until somebody resumes it.

use kelos_model::{Breach, WorkflowEvent, WorkflowId};

use crate::mandate::Mandate;
use crate::{Command, Core, Input, Refusal};

impl Core {
    /// Freezes a workflow. Its live runs continue, and their reports are accepted.
    pub(crate) fn freeze(&mut self, breach: Breach) {
        if !self.workflows.freeze(&breach, self.now) {
            return;
        }
        let id = breach.workflow.clone();
        self.turn.log_workflow(self.now, &id, WorkflowEvent::Frozen { breach });
        self.agree_on_terms(&id);
        self.arm_firing(&id);
    }

    /// Drops an input that breaks a frozen workflow. Its actor gets a refusal; further reports on the same run are
    /// ignored until the workflow is resumed.
    pub(crate) fn set_aside(&mut self, breach: Breach, input: Input) {
        let run = match &input {
            Input::RunReported { run, .. } => Some(run),
            _ => None,
        };
        if self.workflows.set_aside(&breach.workflow, run) {
            let what = WorkflowEvent::SetAside { breach: breach.clone(), input: input.words() };
            self.turn.log_workflow(self.now, &breach.workflow, what);
        }
        if let Input::Asked { token, .. } = input {
            self.turn.command(Command::Reply { token, reply: Err(Refusal::Broken(breach)) });
        }
    }

    /// Resumes a workflow that is frozen or paused.
    pub(crate) fn thaw_or_resume(&mut self, id: &WorkflowId, mandate: &Mandate) -> Result<(), Refusal> {
        let Some(freeze) = self.workflows.thaw(id, self.now) else { return self.set_paused(id, false, mandate) };
        let Mandate { by, reason } = mandate.clone();
        self.turn.log_workflow(self.now, id, WorkflowEvent::Thawed { by, reason });
        self.agree_on_terms(id);
        self.wake_all(id);
        self.end_lost_flows(id);
        freeze.set_aside.iter().for_each(|run| self.ask_about(&run.slot));
        Ok(())
    }
}
