//! Which workflows a page is about, from its address: one, those of a project, those with a tag.

use kelos_explain::periods::Selection;
use kelos_front::fault::Fault;
use kelos_model::WorkflowId;
use kelos_model::similar::closest;
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};

use crate::asked;
use crate::page::segment;

/// The fields of an address that choose workflows.
#[derive(Debug, Clone, Default)]
pub(super) struct SelectionFields {
    pub(super) workflow: Option<String>,
    pub(super) project: Option<String>,
    pub(super) tag: Option<String>,
}

/// The names to choose from.
#[derive(Debug, Clone, Default)]
pub(super) struct Choices {
    projects: Vec<String>,
    tags: Vec<String>,
    /// The sentence for a workflow that has never been.
    unknown: Option<String>,
}

impl SelectionFields {
    /// Reads the fields; a mistake is named.
    pub(super) fn read(self) -> Result<Selection, Fault> {
        Ok(Selection {
            workflow: asked::filled(self.workflow).map(|id| asked::workflow(&id)).transpose()?,
            project: asked::filled(self.project),
            tag: asked::filled(self.tag),
        })
    }
}

/// The parameters of an address that choose the same.
pub(super) fn pairs(of: &Selection) -> Vec<String> {
    let given = [
        ("workflow", of.workflow.as_ref().map(WorkflowId::as_str)),
        ("project", of.project.as_deref()),
        ("tag", of.tag.as_deref()),
    ];
    given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", segment(value?)))).collect()
}

impl Choices {
    /// Reads what there is.
    pub(super) fn read(reader: &dyn Queries, of: &Selection) -> Result<Choices, StoreError> {
        let rows = reader.workflows(None)?;
        let distinct = |mut texts: Vec<String>| {
            texts.sort();
            texts.dedup();
            texts
        };
        Ok(Choices {
            projects: distinct(rows.iter().map(|row| row.definition.project.clone()).collect()),
            tags: distinct(rows.iter().flat_map(|row| row.definition.about.tags.clone()).collect()),
            unknown: unknown(reader, of.workflow.as_ref())?,
        })
    }

    /// A note where there is nothing of that name.
    pub(super) fn note(&self) -> Markup {
        html! { @if let Some(unknown) = &self.unknown { p.note { (unknown) } } }
    }

    /// The fields of a form that choose.
    pub(super) fn fields(&self, of: &Selection) -> Markup {
        html! {
            label { "Workflow " input #find name="workflow" value=[of.workflow.as_ref()] autocomplete="off"; }
            (choice("project", "All projects", of.project.as_deref(), &self.projects))
            (choice("tag", "All tags", of.tag.as_deref(), &self.tags))
        }
    }
}

/// The sentence for a workflow that has never been.
pub(super) fn unknown(reader: &dyn Queries, workflow: Option<&WorkflowId>) -> Result<Option<String>, StoreError> {
    let Some(id) = workflow else { return Ok(None) };
    if reader.workflow(id)?.is_some() {
        return Ok(None);
    }
    let all = reader.workflows(None)?;
    let likely = closest(id.as_str(), all.iter().map(|row| row.id.as_str()));
    let likely = likely.map(|name| format!(" Did you mean \"{name}\"?")).unwrap_or_default();
    Ok(Some(format!("No workflow has ever been named \"{id}\".{likely}")))
}

/// A list to choose from; nothing where there is nothing in it.
pub(super) fn choice(name: &str, all: &str, chosen: Option<&str>, options: &[String]) -> Markup {
    html! {
        @if !options.is_empty() {
            select name=(name) aria-label=(name) {
                option value="" { (all) }
                @for option in options { option value=(option) selected[chosen == Some(option)] { (option) } }
            }
        }
    }
}
