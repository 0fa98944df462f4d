//! Flows: what the pages of their runs and steps have beside that of any slot.

mod act;
mod board;
mod definition;
mod gantt;
mod look;
mod picture;
mod run;
mod step;

use jiff::Timestamp;
use kelos_front::App;
use kelos_model::{Run, SlotRef};
use kelos_store::StoreError;
use maud::{Markup, html};

pub(crate) use act::Fields;
pub(crate) use board::{Latest, latest};
pub(crate) use definition::show as defined;
pub(crate) use look::{of as look_of_step, told as state_of_step};
use run::RunPart;
use step::StepPart;

/// The part of a slot in a flow, as its page shows it.
pub(crate) enum FlowPart {
    Run(Box<RunPart>),
    Step(Box<StepPart>),
}

/// The pages of steps and items that are shown: what the page before ended with.
pub(crate) struct After {
    pub(crate) step: Option<String>,
    pub(crate) item: Option<u32>,
}

/// Reads it; none for a slot of another workflow. `own` are the runs of the slot.
pub(crate) async fn read(
    app: &App,
    id: &SlotRef,
    own: &[Run],
    now: Timestamp,
    after: After,
) -> Result<Option<FlowPart>, StoreError> {
    let (id, own) = (id.clone(), own.to_vec());
    app.read(move |reader| {
        if id.key.step().is_some() {
            let step = StepPart::read(reader, &id, after.item)?;
            return Ok(step.map(|step| FlowPart::Step(Box::new(step))));
        }
        let run = RunPart::read(reader, &id, &own, now, after.step.as_deref())?;
        Ok(run.map(|run| FlowPart::Run(Box::new(run))))
    })
    .await
}

impl FlowPart {
    /// The state in words.
    pub(crate) fn state(&self) -> Markup {
        match self {
            FlowPart::Run(run) => run.state(),
            FlowPart::Step(step) => step.state(),
        }
    }

    /// Its buttons beside those of any slot.
    pub(crate) fn actions(&self) -> Markup {
        match self {
            FlowPart::Run(run) => run.resume(),
            FlowPart::Step(step) => html! { (step.resume()) (step.repeat()) },
        }
    }

    /// The run, of a step.
    pub(crate) fn run_of_step(&self) -> Option<&SlotRef> {
        match self {
            FlowPart::Run(_) => None,
            FlowPart::Step(step) => Some(step.run()),
        }
    }

    /// Its sections, each of which is kept fresh by itself, so that a form stays as it is while somebody fills it in.
    pub(crate) fn sections(&self) -> Markup {
        match self {
            FlowPart::Run(run) => html! {
                div #signals data-live { (run.signals()) }
                div #graph data-live { (run.graph()) }
                div #steps data-live { (run.table()) }
                div #gantt data-live { (run.gantt()) }
            },
            FlowPart::Step(step) => html! {
                div #signals data-live { (step.signal()) }
                div #step data-live { (step.about()) }
                div #items data-live { (step.items()) }
            },
        }
    }
}
