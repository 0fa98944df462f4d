//! Links from pages to the documents of the project.

use maud::{Markup, html};

/// The address of the documents.
const DOCUMENTS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// A section of a document that a page links to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Document {
    /// A workflow from nothing.
    FirstWorkflow,
    /// The triggers that connect workflows, and other terms.
    Concepts,
    /// Event schedules, with an example.
    EventSchedules,
    /// The page of backfills.
    Backfills,
    /// The page of runs over time.
    Timeline,
    /// The page of days.
    Calendar,
    /// The page of slots that make no progress.
    Stuck,
    /// The page of pools and limits.
    Capacity,
    /// The page of workers.
    Workers,
    /// The page of nodes.
    Nodes,
    /// The page of alerts.
    Alerts,
}

impl Document {
    /// Its path in the repository, with the anchor of the section.
    const fn path(self) -> &'static str {
        match self {
            Document::FirstWorkflow => "README.md#your-first-workflow",
            Document::Concepts => "docs/concepts.md#kelos-in-one-minute",
            Document::EventSchedules => "docs/event-schedules.md#event-schedules",
            Document::Backfills => "docs/pages.md#backfills-uibackfills",
            Document::Timeline => "docs/pages.md#timeline-uitimeline",
            Document::Calendar => "docs/pages.md#calendar-uicalendar",
            Document::Stuck => "docs/pages.md#stuck-uistuck",
            Document::Capacity => "docs/pages.md#capacity-uicapacity",
            Document::Workers => "docs/pages.md#workers-uiworkers",
            Document::Nodes => "docs/pages.md#nodes-uinodes",
            Document::Alerts => "docs/pages.md#alerts-uialerts",
        }
    }

    /// A link to it.
    pub(super) fn link(self, words: &str) -> Markup {
        html! { a href={ (DOCUMENTS) (self.path()) } rel="noreferrer" { (words) } }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Document;

    const ALL: [Document; 11] = [
        Document::FirstWorkflow,
        Document::Concepts,
        Document::EventSchedules,
        Document::Backfills,
        Document::Timeline,
        Document::Calendar,
        Document::Stuck,
        Document::Capacity,
        Document::Workers,
        Document::Nodes,
        Document::Alerts,
    ];

    /// The anchor of a heading, as GitHub makes it.
    fn anchor(heading: &str) -> String {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect()
    }

    #[test]
    fn each_link_leads_to_a_heading() {
        for document in ALL {
            let (path, wanted) = document.path().split_once('#').expect("an anchor");
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path));
            let text = text.expect("a document of the repository");
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            let found = headings.any(|line| anchor(line.trim_start_matches('#').trim()) == wanted);
            assert!(found, "{} has no heading {wanted}", path);
        }
    }

    #[test]
    fn a_link_is_one_to_the_repository() {
        let link = Document::Stuck.link("more").into_string();
        assert_eq!(
            link,
            "<a href=\"https://github.com/kelos-scheduler/kelos/blob/main/docs/pages.md#stuck-uistuck\" rel=\"noreferrer\">more</a>"
        );
    }
}
