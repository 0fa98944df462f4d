//! Which projects are deployed anew: their files say something else than when they were last deployed.

use std::collections::{BTreeMap, BTreeSet};

use kelos_core::{DEPLOYMENTS, Deployment};
use kelos_store::{Reader, StoreError};

use super::Definitions;

/// The projects whose digest is not the one that is kept in the registers.
pub(super) fn deployed(
    definitions: &Definitions,
    reader: &dyn Reader,
    update_schedules: bool,
) -> Result<BTreeMap<String, Deployment>, StoreError> {
    let known: BTreeMap<_, _> = reader.registers(DEPLOYMENTS, "")?.into_iter().collect();
    let mut deployed = BTreeMap::new();
    for (project, digest) in digests(definitions) {
        if known.get(&project).and_then(|known| known.as_str()) != Some(&digest) {
            deployed.insert(project, Deployment { digest, update_schedules });
        }
    }
    Ok(deployed)
}

/// What tells each project from another version of it: the text of its file, or else its definitions.
fn digests(definitions: &Definitions) -> BTreeMap<String, String> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for workflow in &definitions.all {
        files.entry(&workflow.project).or_default().insert(&workflow.source.file);
    }
    let digest = |project: &str, names: &BTreeSet<&str>| {
        let texts: Option<Vec<_>> = names.iter().map(|name| definitions.sources.get(*name)).collect();
        match texts {
            Some(texts) => fnv(texts.iter().flat_map(|text| text.bytes())),
            None => fnv(json_of(definitions, project).into_iter()),
        }
    };
    files.iter().map(|(project, names)| ((*project).to_owned(), digest(project, names))).collect()
}

fn json_of(definitions: &Definitions, project: &str) -> Vec<u8> {
    let own = definitions.all.iter().filter(|workflow| workflow.project == project);
    own.flat_map(|workflow| serde_json::to_vec(&**workflow).unwrap_or_default()).collect()
}

/// FNV-1a, which no version of anything changes.
fn fnv(bytes: impl Iterator<Item = u8>) -> String {
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}
