//! The arrangement of rows: in the groups of the board, by project, or by tag. Groups that people have listed stay as they are; in
//! all others, and among them, what produces something is above what reads it.

use std::collections::{BTreeMap, BTreeSet};

use kelos_front::groups::{BoardGroups, Group};
use kelos_model::WorkflowId;
use kelos_model::time::Schedule;
use kelos_model::workflow::{Keys, WorkflowRow};

use super::order::by_dependency;
use crate::neighbours;

/// The grouping of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum By {
    /// The groups that hold.
    #[default]
    Groups,
    /// Their projects.
    Project,
    /// The first of their tags.
    Tag,
}

impl By {
    pub(super) const ALL: [By; 3] = [By::Groups, By::Project, By::Tag];

    /// Its name in addresses.
    pub(super) const fn name(self) -> &'static str {
        match self {
            By::Groups => "groups",
            By::Project => "project",
            By::Tag => "tag",
        }
    }
}

/// The last group if groups are listed: workflows that are in none.
const UNLISTED: &str = "Unlisted workflows";
/// The last group of tags.
const UNTAGGED: &str = "Without tags";

/// A group of the board.
pub(super) struct GroupRows<'a> {
    pub(super) name: &'a str,
    pub(super) members: Vec<Member<'a>>,
}

/// A row of the board.
pub(super) enum Member<'a> {
    Workflow(&'a WorkflowRow),
    /// It is listed, but there is no such workflow.
    Missing(&'a str),
}

/// The groups of the board, in order, with those of `workflows` that are defined.
pub(super) fn arrange<'a>(by: By, groups: &'a BoardGroups, workflows: &'a [WorkflowRow]) -> Vec<GroupRows<'a>> {
    // Workflows that are keyed by job ids have no place in time.
    let present = workflows.iter().filter(|row| row.present && row.definition.keys.jobs().is_none());
    let producers = producers(workflows);
    match (by, groups.listed()) {
        (By::Groups, Some(listed)) => as_listed(listed, present.collect(), &keyed(workflows), &producers),
        (By::Groups | By::Project, _) => named(present, |row| Some(&row.definition.project), &producers),
        (By::Tag, _) => named(present, |row| row.definition.about.tags.first(), &producers),
    }
}

/// Groups of rows by a name; rows without one come last.
fn named<'a>(
    rows: impl Iterator<Item = &'a WorkflowRow>,
    name: impl Fn(&'a WorkflowRow) -> Option<&'a String>,
    producers: &Producers<'_>,
) -> Vec<GroupRows<'a>> {
    let mut groups: BTreeMap<&str, Vec<Member<'a>>> = BTreeMap::new();
    let mut nameless = Vec::new();
    for row in rows {
        match name(row) {
            Some(name) => groups.entry(name).or_default().push(Member::Workflow(row)),
            None => nameless.push(Member::Workflow(row)),
        }
    }
    let arranged: Vec<_> = groups.into_iter().map(|(name, members)| GroupRows { name, members }).collect();
    let mut arranged = producers_first(arranged, producers);
    if !nameless.is_empty() {
        arranged.push(GroupRows { name: UNTAGGED, members: nameless });
    }
    arranged.iter_mut().for_each(|group| group.producers_first(producers));
    arranged
}

/// For each workflow those that it reads, or whose times it has.
type Producers<'a> = BTreeMap<&'a WorkflowId, BTreeSet<WorkflowId>>;

fn producers(workflows: &[WorkflowRow]) -> Producers<'_> {
    let mut producers = neighbours::upstream(workflows);
    for row in workflows {
        if let Keys::Schedule(Schedule::Dependent(on)) = &row.definition.keys {
            producers.entry(&row.id).or_default().insert(on.clone());
        }
    }
    producers
}

/// Groups, those that produce something above those that read it.
fn producers_first<'a>(groups: Vec<GroupRows<'a>>, producers: &Producers<'_>) -> Vec<GroupRows<'a>> {
    let owner: BTreeMap<&WorkflowId, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(place, group)| group.workflows().map(move |row| (&row.id, place)))
        .collect();
    let reads = groups.iter().enumerate().flat_map(|(place, group)| group.workflows().map(move |row| (place, row)));
    let edges: BTreeSet<(usize, usize)> = reads
        .flat_map(|(place, row)| {
            let ids = producers.get(&row.id).into_iter().flatten();
            ids.filter_map(|id| Some((*owner.get(id)?, place))).collect::<Vec<_>>()
        })
        .collect();
    in_order(groups, &edges)
}

/// Things in their order of dependency.
fn in_order<T>(things: Vec<T>, edges: &BTreeSet<(usize, usize)>) -> Vec<T> {
    let mut things: Vec<Option<T>> = things.into_iter().map(Some).collect();
    let order = by_dependency(things.len(), edges);
    order.into_iter().filter_map(|place| things.get_mut(place)?.take()).collect()
}

impl<'a> GroupRows<'a> {
    /// Its workflows that are defined.
    pub(super) fn workflows(&self) -> impl Iterator<Item = &'a WorkflowRow> {
        self.members.iter().filter_map(|member| match member {
            Member::Workflow(row) => Some(*row),
            Member::Missing(_) => None,
        })
    }

    fn producers_first(&mut self, producers: &Producers<'_>) {
        let place: BTreeMap<&WorkflowId, usize> =
            self.workflows().zip(0..).map(|(row, place)| (&row.id, place)).collect();
        let reads = |(row, reader): (&WorkflowRow, usize)| -> Vec<(usize, usize)> {
            let ids = producers.get(&row.id).into_iter().flatten();
            ids.filter_map(|id| Some((*place.get(id)?, reader))).collect()
        };
        let edges: BTreeSet<(usize, usize)> = self.workflows().zip(0..).flat_map(reads).collect();
        self.members = in_order(std::mem::take(&mut self.members), &edges);
    }
}

/// Workflows that are shown elsewhere, even if a group lists them.
fn keyed(workflows: &[WorkflowRow]) -> BTreeSet<&str> {
    let keyed = workflows.iter().filter(|row| row.present && row.definition.keys.jobs().is_some());
    keyed.map(|row| row.id.as_str()).collect()
}

fn as_listed<'a>(
    groups: &'a [Group],
    rows: Vec<&'a WorkflowRow>,
    keyed: &BTreeSet<&str>,
    producers: &Producers<'_>,
) -> Vec<GroupRows<'a>> {
    let known: BTreeMap<&str, &WorkflowRow> = rows.iter().map(|row| (row.id.as_str(), *row)).collect();
    let member = |id: &'a String| known.get(id.as_str()).map_or(Member::Missing(id), |row| Member::Workflow(row));
    let has_time = |id: &&String| !keyed.contains(id.as_str());
    let listed: BTreeSet<&str> = groups.iter().flat_map(|group| &group.workflows).map(String::as_str).collect();
    let mut arranged: Vec<_> = groups
        .iter()
        .map(|group| GroupRows {
            name: &group.name,
            members: group.workflows.iter().filter(has_time).map(member).collect(),
        })
        .collect();
    let unlisted: Vec<_> =
        rows.into_iter().filter(|row| !listed.contains(row.id.as_str())).map(Member::Workflow).collect();
    if !unlisted.is_empty() {
        let mut unlisted = GroupRows { name: UNLISTED, members: unlisted };
        unlisted.producers_first(producers);
        arranged.push(unlisted);
    }
    arranged
}
