//! The workflows whose runs are left to workers, and the definitions whose functions programs have to have, as they are read from the
//! store.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use kelos_model::workflow::WorkflowRow;
use kelos_model::{Job, RunId, RunState, WorkflowId};
use kelos_store::StoreError;

use super::{APPS_AGE, HubState};
use crate::workers::session::ServedWorkflows;

impl HubState {
    /// The workflows whose jobs are done by workers that take all.
    pub(super) async fn look_for_apps(&self) {
        let Some(engine) = self.engine.get() else { return };
        let is_fresh = |at: &Option<Instant>| at.is_some_and(|at| at.elapsed() < APPS_AGE);
        if is_fresh(&self.apps_at.lock().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let reader = engine.reader().clone();
        if let Ok(Ok(rows)) = tokio::task::spawn_blocking(move || reader.workflows(None)).await {
            let handed = self.handed.get();
            let is_handed = |job: &Job| handed.is_some_and(|handed| handed.contains(&job.executor));
            let is_served = |row: &WorkflowRow| {
                let flow = row.definition.flow.as_deref();
                let mut steps = flow.into_iter().flat_map(|flow| &flow.steps);
                row.present && (is_handed(&row.definition.job) || steps.any(|step| is_handed(&step.job)))
            };
            let of_functions = |row: &&WorkflowRow| row.present && row.definition.has_functions();
            let mut served = ServedWorkflows {
                functions: rows.iter().filter(of_functions).map(|row| (row.id.clone(), row.version)).collect(),
                apps: rows.into_iter().filter(is_served).map(|row| row.id).collect(),
            };
            let mut state = self.state();
            // A version that was read for a run meanwhile is newer.
            let newer = |(id, version): (&WorkflowId, &mut u32)| {
                *version = (*version).max(state.served.functions.get(id).copied().unwrap_or_default());
            };
            served.functions.iter_mut().for_each(newer);
            if state.served != served {
                // Workers that wait for something to do take new ones, too.
                state.served = served;
                state.pass_on();
                state.doubt_offers();
                self.tell(&mut state);
            }
            drop(state);
            *self.apps_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }

    /// Reads the definition in force of the workflow of a run, which is then given to a program that has its functions.
    pub(super) async fn find_program(self: Arc<Self>, run: RunId) {
        let Some(engine) = self.engine.get() else { return };
        let (reader, slot) = (engine.reader().clone(), run.slot.clone());
        let read = move || Ok::<_, StoreError>((reader.workflow(&slot.workflow)?, reader.slot_runs(&slot)?));
        let read = tokio::task::spawn_blocking(read).await;
        match read.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())) {
            Ok((row, mut earlier)) => {
                earlier.retain(|one| one.state.is_final() && one.state != RunState::Succeeded);
                let mut state = self.state();
                state.know_version(&run, row.map_or(0, |row| row.version), earlier);
                self.tell(&mut state);
            }
            Err(error) => self.state().put_off(&run, format!("failed to {error}")),
        }
    }
}
