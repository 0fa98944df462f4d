//! Files that are missing only for a moment: an editor may delete or empty the old file before it writes the new one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kelos_engine::Definitions;

/// The time after which the definitions of a missing file are removed.
pub(super) const MISSED: Duration = Duration::from_secs(3);

/// Since when files are missed.
#[derive(Default)]
pub(super) struct MissingFiles {
    since: Option<Instant>,
}

impl MissingFiles {
    /// Whether some files that defined something define nothing any more, and may soon do so again.
    pub(super) fn waits(&mut self, before: Option<&Definitions>, now: &Definitions, at: Instant) -> bool {
        if !before.is_some_and(|before| misses(before, now)) {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(at);
        at.duration_since(since) < MISSED
    }

    /// Whether files are missing, so that they have to be checked soon.
    pub(super) fn any(&self) -> bool {
        self.since.is_some()
    }
}

fn misses(before: &Definitions, now: &Definitions) -> bool {
    let files: BTreeSet<&str> = now.all.iter().map(|workflow| workflow.source.file.as_str()).collect();
    before.all.iter().any(|workflow| !files.contains(workflow.source.file.as_str()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kelos_model::workflow::{Keys, Program, Source};
    use kelos_model::{Job, Workflow, WorkflowId};
    use serde_json::Map;

    use super::*;

    fn files(names: &[&str]) -> Definitions {
        let of = |name: &&str| {
            let id = WorkflowId::new(&format!("{name}.wf")).unwrap();
            let program = Program { name: "wf".to_owned(), kind: None };
            let source = Source::file(*name, 0);
            let job = Job::new("command", Map::new());
            Arc::new(Workflow { source, ..Workflow::keyed(id, Keys::Requests(Box::new(program)), job) })
        };
        Definitions { all: names.iter().map(of).collect(), ..Definitions::default() }
    }

    #[test]
    fn a_file_that_is_gone_is_waited_for_a_while() {
        let (both, one, start) = (files(&["a", "b"]), files(&["a"]), Instant::now());
        let mut missed = MissingFiles::default();
        assert!(missed.waits(Some(&both), &one, start));
        assert!(missed.any());
        assert!(missed.waits(Some(&both), &files(&[]), start + MISSED / 2));
        assert!(!missed.waits(Some(&both), &one, start + MISSED));
    }

    #[test]
    fn the_wait_begins_anew_once_the_file_was_back() {
        let (both, one, start) = (files(&["a", "b"]), files(&["a"]), Instant::now());
        let mut missed = MissingFiles::default();
        assert!(missed.waits(Some(&both), &one, start));
        assert!(!missed.waits(Some(&both), &both, start + MISSED / 2));
        assert!(!missed.any());
        assert!(missed.waits(Some(&both), &one, start + MISSED));
    }

    #[test]
    fn nothing_else_waits() {
        let (both, one, now) = (files(&["a", "b"]), files(&["a"]), Instant::now());
        let mut missed = MissingFiles::default();
        assert!(!missed.waits(None, &one, now));
        assert!(!missed.waits(Some(&one), &both, now));
        assert!(!missed.waits(Some(&both), &files(&["b", "a", "c"]), now));
    }
}
