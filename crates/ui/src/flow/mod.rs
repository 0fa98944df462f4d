//! Flows: what the pages of their runs and steps have beside that of any slot.

mod act;
mod gantt;
mod look;
mod picture;
mod run;

use jiff::Timestamp;
use kelos_front::App;
use kelos_model::{Run, SlotRef};
use kelos_store::StoreError;
use maud::{Markup, html};

pub(crate) use act::Fields;
use run::RunPart;

/// What is shown of a run of a flow.
pub(crate) enum Part {
    Run(Box<RunPart>),
}

/// Reads it; none for a slot of another workflow. `own` are the runs of the slot, `after` is the last step of the page before.
pub(crate) async fn read(
    app: &App,
    id: &SlotRef,
    own: &[Run],
    now: Timestamp,
    after: Option<String>,
) -> Result<Option<Part>, StoreError> {
    let (id, own) = (id.clone(), own.to_vec());
    app.read(move |reader| {
        let run = RunPart::read(reader, &id, &own, now, after.as_deref())?;
        Ok(run.map(|run| Part::Run(Box::new(run))))
    })
    .await
}

impl Part {
    /// The state in words.
    pub(crate) fn state(&self) -> Markup {
        match self {
            Part::Run(run) => run.state(),
        }
    }

    /// Its buttons beside those of any slot.
    pub(crate) fn actions(&self) -> Markup {
        match self {
            Part::Run(run) => run.resume(),
        }
    }

    /// Its sections, each of which is kept fresh by itself, so that a form stays as it is while somebody fills it in.
    pub(crate) fn sections(&self) -> Markup {
        match self {
            Part::Run(run) => html! {
                div #signals data-live { (run.signals()) }
                div #graph data-live { (run.graph()) }
                div #steps data-live { (run.table()) }
                div #gantt data-live { (run.gantt()) }
            },
        }
    }
}
