//! The runs of workflows that had another id before.

use kelos_executors::local::RunDirs;
use kelos_store::Queries;

/// Finds runs under the current ids of schedules and programs: commands that were started under the former ids may be live.
pub(super) fn find_former_runs(reader: &dyn Queries, dirs: &RunDirs) {
    let rows = match reader.workflows(None) {
        Ok(rows) => rows,
        Err(error) => return tracing::warn!("failed to {error}: runs of renamed workflows are not looked for"),
    };
    for row in rows {
        let Some(former) = row.definition.former_id() else { continue };
        // If another workflow has this id by now, the folder belongs to it.
        if reader.workflow(&former).is_ok_and(|found| found.is_none())
            && let Err(error) = dirs.link(former.as_str(), row.id.as_str())
        {
            tracing::warn!("failed to find the runs of {former}, which is {} by now: {error}", row.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::Arc;

    use kelos_model::workflow::{Job, Keys, Moments, PlanState, Program, WorkflowRow};
    use kelos_model::{Workflow, WorkflowId};
    use kelos_store::{Commit, Journal, MemoryStore, StoredState};

    use super::*;
    use kelos_executors::local::RunRef;

    fn program(project: &str, name: &str, id: &str) -> WorkflowRow {
        let id = WorkflowId::new(id).unwrap();
        let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
        let workflow = Workflow::keyed(id.clone(), keys, Job::new("command", serde_json::Map::new()));
        WorkflowRow {
            id,
            definition: Arc::new(Workflow { project: project.to_owned(), ..workflow }),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned: PlanState::default(),
            moments: Moments::default(),
        }
    }

    #[test]
    fn runs_of_before_a_new_id_are_found_by_it_unless_they_are_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let dirs = RunDirs::new(folder.path());
        let run = |workflow: &str| dirs.path(&RunRef::new(workflow, "k", 1));
        for workflow in ["A.b.c", "B.c.d", "plain.name"] {
            fs::create_dir_all(run(workflow)).unwrap();
            fs::write(run(workflow).join("log"), workflow).unwrap();
        }
        let mut store = MemoryStore::new();
        let lease = store.lease("node", jiff::Timestamp::UNIX_EPOCH, 1000).unwrap().unwrap();
        let workflows =
            vec![program("A", "b.c", "A.b~.c"), program("B", "c.d", "B.c~.d"), program("B.c", "d", "B.c.d")];
        store.commit(lease, &Commit { workflows, sources: BTreeMap::new(), ..Commit::default() }).unwrap();
        for _ in 0..2 {
            find_former_runs(&*store.reader(), &dirs);
            assert_eq!(fs::read_to_string(run("A.b~.c").join("log")).unwrap(), "A.b.c");
            assert!(!run("B.c~.d").exists(), "B.c.d is another one by now");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        }
    }
}
