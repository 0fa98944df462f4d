//! Kinds of programs, and their names: in ids of ours, in fields, in paths, and as fields of responses spell them.

/// A kind of program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Its name in fields.
    pub(super) name: &'static str,
    /// Its name in paths.
    pub(super) category: &'static str,
    /// Its name where an entity is shown.
    pub(super) pretty: &'static str,
    /// Its name in ids of ours; none for the default kind.
    pub(super) member: Option<&'static str>,
}

/// The only kind that can be scheduled.
pub(super) const WORKFLOW: Kind = Kind { name: "WORKFLOW", category: "workflows", pretty: "Workflow", member: None };

const ALL: [Kind; 5] = [
    WORKFLOW,
    Kind { name: "MAPREDUCE", category: "mapreduce", pretty: "Mapreduce", member: Some("mapreduce") },
    Kind { name: "SPARK", category: "spark", pretty: "Spark", member: Some("spark") },
    Kind { name: "SERVICE", category: "services", pretty: "Service", member: Some("service") },
    Kind { name: "WORKER", category: "workers", pretty: "Worker", member: Some("worker") },
];

/// The kinds as fields name them, for errors.
pub(super) const NAMES: &str = "WORKFLOW, MAPREDUCE, SPARK, SERVICE or WORKER";

/// The kinds as paths and queries name them, for errors.
pub(super) const CATEGORIES: &str = "workflows, mapreduce, spark, services or workers";

impl Kind {
    /// Reads the name in fields, in any case.
    pub(super) fn named(text: &str) -> Option<Kind> {
        ALL.into_iter().find(|kind| kind.name.eq_ignore_ascii_case(text))
    }

    /// Reads the name in paths.
    pub(super) fn of_category(text: &str) -> Option<Kind> {
        ALL.into_iter().find(|kind| kind.category == text)
    }

    /// The kind that ids of ours name so. Kinds that this dialect has no word for are shown as services: something
    /// that is no workflow.
    pub(super) fn of_member(member: Option<&str>) -> Kind {
        ALL.into_iter().find(|kind| kind.member == member).unwrap_or(ALL[3])
    }
}
