//! The actions on a run of a flow: resume it, give it signals, and do one of its steps again.

use kelos_core::{RepeatStep, ResumeFlow, SignalFlow};
use kelos_front::fault::{Fault, plain};
use kelos_model::{Arguments, RunName, SlotRef, StepName};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::run::RunPart;
use crate::page::slot_href;
use crate::viewer;
use crate::{arguments, asked};

/// The fields of forms of runs of flows.
#[derive(Default)]
pub(crate) struct Fields {
    /// The name of a signal.
    pub(crate) signal: Option<String>,
    /// The payload: JSON, or nothing.
    pub(crate) payload: Option<String>,
    /// The step from which a run is resumed; none for the steps that failed.
    pub(crate) from: Option<String>,
    /// The name of a new run.
    pub(crate) name: Option<String>,
}

impl Fields {
    /// The signal for a run.
    pub(crate) fn signal(self, run: SlotRef, reason: Option<String>) -> Result<SignalFlow, Fault> {
        let signal = asked::filled(self.signal).ok_or_else(|| plain::bad_request("The form names no signal."))?;
        let payload = match asked::filled(self.payload) {
            None => Value::Null,
            Some(text) => kelos_model::json::value(text.as_bytes()).map_err(|error| {
                plain::bad_request(format!("The payload is no JSON: {error}. A text is written in quotes."))
            })?,
        };
        Ok(SignalFlow { run, signal, payload, reason })
    }

    /// The resumption of a run; of a step that of its run from the step on.
    pub(crate) fn resume(self, slot: &SlotRef, reason: Option<String>) -> Result<ResumeFlow, Fault> {
        let named = asked::filled(self.from).or_else(|| Some(slot.key.step()?.step().to_owned()));
        let from = named.map(|name| name.parse::<StepName>()).transpose();
        let from = from.map_err(|error| plain::bad_request(format!("{error}.")))?;
        Ok(ResumeFlow { run: SlotRef::new(slot.workflow.clone(), slot.key.of_run()), from, reason })
    }

    /// The request to do a step again.
    pub(crate) fn repeat(
        self,
        step: SlotRef,
        arguments: Arguments,
        reason: Option<String>,
    ) -> Result<RepeatStep, Fault> {
        let key = asked::filled(self.name).map(|name| RunName::new(&name)).transpose();
        let key = key.map_err(|error| plain::bad_request(format!("{error}.")))?;
        Ok(RepeatStep { step, arguments, key, priority: 0, unconstrained: false, reason })
    }
}

fn reason() -> Markup {
    html! { label { "Why, for the log " input name="reason" maxlength="500" autocomplete="off"; } }
}

/// The form by which a signal is given to a run.
pub(super) fn signal_form(run: &SlotRef, name: &str) -> Markup {
    html! {
        form.signal-form method="post" action=(format!("{}/signal", slot_href(run))) { (viewer::proof())
            input type="hidden" name="signal" value=(name);
            p { label { "What it says, as JSON; may stay empty" br; textarea name="payload" rows="2" cols="36" autocomplete="off" spellcheck="false" {} } }
            p { (reason()) " " button.primary { "Give the signal " (name) } }
        }
    }
}

/// The button by which a run is resumed from a step on.
pub(super) fn resume_from(step: &SlotRef) -> Markup {
    html! {
        details.action {
            summary.button { "Resume from here…" }
            form method="post" action=(format!("{}/resume", slot_href(step))) { (viewer::proof())
                p { "Does this step again, and those after it, with the definition with which its run began." }
                (reason())
                " " button.primary { "Resume from here" }
            }
        }
    }
}

/// The form by which a step is done again, as a run of its own.
pub(super) fn repeat(step: &SlotRef, given: Option<&Map<String, Value>>) -> Markup {
    let names: Vec<&str> = given.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    html! {
        details.action {
            summary.button { "Do this step again…" }
            form method="post" action=(format!("{}/repeat", slot_href(step))) { (viewer::proof())
                p { "Does this step again, and nothing else, as a run of its own: with the definition and the inputs that it had. This run stays as it is." }
                p { label { "Name of the new run; without one it is that of the moment " input name="name" maxlength="200" autocomplete="off"; } }
                (arguments::lines(""))
                @if !names.is_empty() { p.soft { "In the place of what it was given: " (names.join(", ")) "." } }
                (reason())
                " " button.primary { "Do it again" }
            }
        }
    }
}

impl RunPart {
    /// The button that resumes a run that has ended.
    pub(super) fn resume(&self) -> Markup {
        let slot = &self.view.slot;
        let has_begun = slot.run_of_flow().is_some_and(|part| part.definition > 0);
        let has_failed = slot.state != kelos_model::SlotState::Succeeded;
        html! {
            @if slot.state.is_final() && has_begun {
                details.action {
                    summary.button { "Resume…" }
                    form method="post" action=(format!("{}/resume", slot_href(&self.view.run))) { (viewer::proof())
                        p { "Does steps again, and those after them, with the definition with which it began. What else succeeded stays, with its outputs." }
                        p { label {
                            "From "
                            select name="from" {
                                @if has_failed { option value="" { "the steps that failed" } }
                                @for one in self.steps() { option value=(one.step.name) { (one.step.name) } }
                            }
                        } }
                        (reason())
                        " " button.primary { "Resume" }
                    }
                }
            }
        }
    }

    /// A form for each signal that a step waits for, and one for the others.
    pub(super) fn signals(&self) -> Markup {
        let awaited = self.awaited();
        let mut others: Vec<&str> = self.steps().iter().flat_map(|one| one.step.awaited_signals()).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|name| awaited.iter().all(|(known, _)| known != name));
        let is_live = !self.view.slot.state.is_final();
        html! {
            @for (name, steps) in &awaited {
                @let steps: Vec<&str> = steps.iter().map(|one| one.step.name.as_str()).collect();
                section.signal.pool {
                    h2 { "Waits for the signal " (name) }
                    p { "The step " (steps.join(", ")) " waits for it. What it says are the outputs of the step." }
                    (signal_form(&self.view.run, name))
                }
            }
            @if is_live {
                @for name in others {
                    details.action id=(format!("signal-{name}")) {
                        summary.button { "Signal " (name) "…" }
                        (signal_form(&self.view.run, name))
                    }
                }
            }
            (self.came())
        }
    }

    /// The signals that came.
    fn came(&self) -> Markup {
        let signals = self.view.signals.clone();
        html! {
            @if !signals.is_empty() {
                h2 { "Signals that came" }
                dl.facts { @for (name, payload) in &signals { dt { code { (name) } } dd { @if payload.is_null() { "without a payload" } @else { code { (payload) } } } } }
            }
        }
    }
}
