//! The workflows of `samples/quickstart`, as often as is wanted, each copy with its number.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Deadline, Workflow, WorkflowId};
use kelos_sandbox::{Folders, Host, Limits, Scripts};

/// The time after its hour by which a total has to be there. The sample has no deadlines; here they make slow hours late.
const DEADLINE: u64 = 3 * 3_600;
/// The texts of the sample that name a data centre, a total or the defaults: each gets the number of its copy.
const NAMES: [&str; 5] = ["nyc\"", "lax\"", "\"totals\"", "(\"total\"", "\"quickstart\""];

/// The workflows of so many copies, with slots from a moment on.
pub(crate) fn copies(count: usize, from: Timestamp) -> Vec<Arc<Workflow>> {
    let place = tempfile::tempdir().expect("a folder");
    let folders = Folders { workflows: place.path().join("workflows"), defaults: place.path().join("defaults") };
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/quickstart");
    for number in 1..=count {
        copy(&sample.join("workflows"), &folders.workflows, number);
        copy(&sample.join("defaults"), &folders.defaults, number);
    }
    let scripts = Scripts::start(folders, Limits::default(), Host::dry()).expect("threads");
    let loaded = scripts.load();
    assert!(!loaded.has_errors(), "{:?}", loaded.problems);
    loaded.workflows.into_iter().map(|one| Arc::new(staged((*one).clone(), from))).collect()
}

/// Copies the scripts of a folder, under names with a number.
fn copy(from: &Path, to: &Path, number: usize) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder of the sample") {
        let path = entry.expect("a file").path();
        let mut text = std::fs::read_to_string(&path).expect("a script");
        for name in NAMES {
            let numbered = format!("{}-{number:03}\"", name.trim_end_matches('"'));
            text = text.replace(name, &numbered);
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        std::fs::write(to.join(format!("{stem}-{number:03}.js")), text).expect("a copy");
    }
}

fn staged(workflow: Workflow, from: Timestamp) -> Workflow {
    let is_total = kind(&workflow.id) == "totals";
    Workflow { start_time: Some(from), deadline: is_total.then_some(Deadline::After(DEADLINE)), ..workflow }
}

/// The name of a workflow in the sample, without its data centre and its number.
pub(crate) fn kind(id: &WorkflowId) -> &str {
    id.as_str().split('-').next().unwrap_or_default()
}
