//! The past definitions of a workflow: the time of each, and its changes.

use axum::extract::Path;
use axum::response::Response;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::WorkflowId;
use kelos_model::secret::masks;
use kelos_model::workflow::DefinitionVersion;
use kelos_store::PastDefinition;
use maud::{Markup, html};
use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices, group_diff_ops};

use super::page::{Page, workflow_href};
use super::{asked, source, time};

/// Versions that a workflow's page lists, the newest.
const LISTED: usize = 20;
/// Lines around a change.
const AROUND: usize = 3;
/// Lines of a difference that are shown.
const SHOWN: usize = 1_000;

/// The address of a version of a workflow's definition.
pub(super) fn href(id: &WorkflowId, version: u32) -> String {
    format!("{}/versions/{version}", workflow_href(id))
}

/// A link to a version of a workflow's definition: `version 3 of 1.4`, where its project has a version.
pub(super) fn link(id: &WorkflowId, version: &DefinitionVersion) -> Markup {
    html! {
        a href=(href(id, version.number)) { "version " (version.number) }
        @if let Some(project) = &version.project { " of " (project) }
    }
}

/// The versions of a workflow, newest first.
pub(super) fn list(id: &WorkflowId, past: &[PastDefinition]) -> Markup {
    html! {
        @if past.len() > 1 {
            details.versions {
                summary { (past.len()) " versions" }
                ul.plain {
                    @for one in past.iter().take(LISTED) {
                        li { (link(id, &one.named())) ", since " (time::at(one.at)) }
                    }
                }
                @if past.len() > LISTED {
                    p.soft { "Earlier ones: " a href=(href(id, past[LISTED].version)) { "version " (past[LISTED].version) } " leads on." }
                }
            }
        }
    }
}

/// Shows a version: its changes, and its source.
pub(super) async fn show(Path((id, version)): Path<(String, String)>, app: App) -> Result<Response, Fault> {
    let id = asked::workflow(&id)?;
    let of = id.clone();
    let past = app.read(move |reader| reader.definitions(&of, None)).await?;
    let at = past.iter().position(|one| one.version.to_string() == version);
    let Some(at) = at else {
        return Err(plain::not_found(format!("The workflow \"{id}\" has no version {version}.")));
    };
    let shown = VersionPage {
        id: &id,
        this: &past[at],
        before: past.get(at + 1),
        after: at.checked_sub(1).map(|after| &past[after]),
    };
    Ok(Page::new(&app, &format!("{id}, version {version}")).style("pages.css").show(&shown.page()))
}

/// A version among its neighbours.
struct VersionPage<'a> {
    id: &'a WorkflowId,
    this: &'a PastDefinition,
    before: Option<&'a PastDefinition>,
    after: Option<&'a PastDefinition>,
}

impl VersionPage<'_> {
    fn page(&self) -> Markup {
        let place = &self.this.definition.source;
        html! {
            nav.crumbs aria-label="Breadcrumb" {
                a href="/ui" { "Board" } " › " a href=(workflow_href(self.id)) { (self.id) }
            }
            h1 { (self.id) ", version " (self.this.version) }
            p {
                "It came into force at " (time::at(self.this.at))
                @match self.after {
                    Some(after) => { ", and was replaced at " (time::at(after.at)) "." },
                    None => ", and holds now.",
                }
            }
            nav.bar aria-label="Versions" {
                @if let Some(before) = self.before { a.button rel="prev" href=(href(self.id, before.version)) { "← version " (before.version) } }
                @if let Some(after) = self.after { a.button rel="next" href=(href(self.id, after.version)) { "version " (after.version) " →" } }
            }
            @match self.before {
                Some(before) => (self.changed(before)),
                None => p.soft { "It is the first version that is known." },
            }
            h2 { "Source" }
            p { code { (place.file) @if place.line > 0 { ":" (place.line) } } }
            @match &self.this.source {
                Some(text) => (source::file(text, place.line)),
                None => p.soft { "Its text was not kept." },
            }
        }
    }

    /// The changes of this version: in its file, and in the definition.
    fn changed(&self, before: &PastDefinition) -> Markup {
        let texts = before.source.as_deref().zip(self.this.source.as_deref()).filter(|(old, new)| old != new);
        html! {
            h2 { "What it changed" }
            (difference(&told(before), &told(self.this)))
            @if let Some((old, new)) = texts {
                h2 { "In its file" }
                (difference(&masked_lines(old), &masked_lines(new)))
            }
        }
    }
}

/// A definition as lines, without its position in the file, and without secrets.
fn told(past: &PastDefinition) -> Vec<String> {
    let mut value = serde_json::to_value(&past.definition).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("source");
    }
    let text = serde_json::to_string_pretty(&masks::masked(&value)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn masked_lines(text: &str) -> Vec<String> {
    masks::masked_source(text).lines().map(str::to_owned).collect()
}

/// The lines that differ, with some around them.
fn difference(old: &[String], new: &[String]) -> Markup {
    let groups = group_diff_ops(capture_diff_slices(Algorithm::Myers, old, new), AROUND);
    let mut left = SHOWN;
    html! {
        @if groups.is_empty() { p.soft { "Nothing visible: a position in a file, or a masked value." } }
        @for group in &groups {
            pre.source.difference tabindex="0" role="group" aria-label="Changed lines" { @for op in group { (lines(op, old, new, &mut left)) } }
        }
        @if left == 0 { p.soft { "The first " (SHOWN) " lines of it are shown." } }
    }
}

fn lines(op: &DiffOp, old: &[String], new: &[String], left: &mut usize) -> Markup {
    let changes: Vec<_> = op.iter_changes(old, new).take(*left).collect();
    *left -= changes.len();
    html! {
        @for change in changes {
            @let (class, sign, said) = match change.tag() {
                ChangeTag::Delete => ("gone", "−", "removed"),
                ChangeTag::Insert => ("come", "+", "added"),
                ChangeTag::Equal => ("same", " ", ""),
            };
            span.line .(class) {
                span.number { (sign) @if !said.is_empty() { span.unseen { (said) } } }
                code { (change.value()) } "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_changed_and_a_little_around_it() {
        let numbered = |changed: &str| -> Vec<String> {
            (1..=20).map(|n| if n == 10 { changed.to_owned() } else { format!("line {n}") }).collect()
        };
        let shown = difference(&numbered("<old>"), &numbered("<new>")).into_string();
        assert!(shown.contains("line gone") && shown.contains("<code>&lt;old&gt;</code>"), "{shown}");
        assert!(shown.contains("line come") && shown.contains("<code>&lt;new&gt;</code>"), "{shown}");
        assert!(shown.contains("line 7<") && !shown.contains("line 6<"), "{shown}");
        assert!(difference(&numbered("a"), &numbered("a")).into_string().contains("Nothing visible"));
    }
}
