//! Deployments of projects: a project is deployed when its files differ from those of its last deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_core::{Deployment, Input, deployments_of};
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, Workflow};
use kelos_store::{Queries, RegisterKeys, StoreError};

use super::Definitions;

/// A unit of deployment, as its files say now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The digest of its files. None while one of them is broken: it is not deployed then.
    pub digest: Option<String>,
    /// Whether event schedules are made what the files say, or stay as they are.
    pub update_schedules: bool,
}

/// The definitions of each provenance, in the order in which the engine first got them.
#[derive(Default)]
pub(super) struct DefinitionSets(Vec<Definitions>);

impl DefinitionSets {
    /// Replaces the definitions of one provenance. If they follow others that were not processed yet, those who
    /// deployed the former count as deployers of these.
    pub(super) fn take(&mut self, definitions: Definitions, follows: bool) {
        match self.0.iter_mut().find(|before| before.provenance == definitions.provenance) {
            Some(before) if follows => *before = definitions.after(std::mem::take(before)),
            Some(before) => *before = definitions,
            None => self.0.push(definitions),
        }
    }

    /// The texts of all files.
    pub(super) fn sources(&self) -> BTreeMap<String, Arc<str>> {
        self.0.iter().flat_map(|one| one.sources.clone()).collect()
    }

    /// The inputs with the definitions of those provenances, and with the projects that are deployed. Where `knows_again` is false they are
    /// such as older programs can read.
    pub(super) fn inputs(
        &self,
        wanted: impl Fn(Provenance) -> bool,
        reader: &dyn Queries,
        knows_again: bool,
    ) -> Result<Vec<Input>, StoreError> {
        let known = |one: &Arc<Workflow>| match knows_again || !one.is_done_again() {
            true => one.clone(),
            false => Arc::new(one.never_again()),
        };
        let input = |one: &Definitions| {
            let deployed = deployed(one, reader)?;
            Ok(Input::Definitions { provenance: one.provenance, all: one.all.iter().map(known).collect(), deployed })
        };
        self.0.iter().filter(|one| wanted(one.provenance)).map(input).collect()
    }
}

/// The projects whose digest differs from that in the registers, and those that were removed.
fn deployed(definitions: &Definitions, reader: &dyn Queries) -> Result<BTreeMap<String, Deployment>, StoreError> {
    let bucket = deployments_of(definitions.provenance);
    let registers = reader.registers(Some(bucket), RegisterKeys::Prefix(""))?;
    let known: BTreeMap<_, _> = registers.into_iter().map(|register| (register.key, register.value)).collect();
    // The files of a project may be written by an unnamed actor.
    let somebody = || match definitions.provenance {
        Provenance::Code => Actor::system("program"),
        Provenance::File | Provenance::Api => Actor::system("files"),
    };
    let by = |project: &str| Some(definitions.deployers.get(project).cloned().unwrap_or_else(somebody));
    let mut deployed = BTreeMap::new();
    for (name, project) in &definitions.projects {
        let Some(digest) = &project.digest else { continue };
        if known.get(name).and_then(|known| known.as_str()) != Some(digest) {
            let (digest, update_schedules) = (Some(digest.clone()), project.update_schedules);
            deployed.insert(name.clone(), Deployment { digest, update_schedules, by: by(name) });
        }
    }
    if definitions.is_whole {
        let all: BTreeSet<String> = known.into_keys().chain(definitions.deployers.keys().cloned()).collect();
        let gone = all.into_iter().filter(|name| !definitions.projects.contains_key(name));
        deployed.extend(gone.map(|name| {
            let by = by(&name);
            (name, Deployment { digest: None, update_schedules: true, by })
        }));
    }
    Ok(deployed)
}

/// The projects of definitions without further details: identified by the texts of their files, or else by the
/// definitions.
pub(super) fn projects(all: &[Arc<Workflow>], sources: &BTreeMap<String, Arc<str>>) -> BTreeMap<String, Project> {
    let mut own: BTreeMap<&str, Vec<&Workflow>> = BTreeMap::new();
    for workflow in all {
        own.entry(&workflow.project).or_default().push(workflow);
    }
    let digest = |own: &[&Workflow]| {
        let files: BTreeSet<&str> = own.iter().map(|workflow| workflow.source.file.as_str()).collect();
        let texts: Option<Vec<_>> = files.iter().map(|name| sources.get(*name)).collect();
        match texts {
            Some(texts) => fnv(texts.iter().flat_map(|text| text.bytes())),
            None => fnv(own.iter().flat_map(|workflow| serde_json::to_vec(workflow).unwrap_or_default())),
        }
    };
    let project = |(name, own): (&str, Vec<&Workflow>)| {
        (name.to_owned(), Project { digest: Some(digest(&own)), update_schedules: true })
    };
    own.into_iter().map(project).collect()
}

/// FNV-1a, which no version of anything changes.
fn fnv(bytes: impl Iterator<Item = u8>) -> String {
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}
