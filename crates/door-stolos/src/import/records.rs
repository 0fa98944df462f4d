//! The records that a Stolos keeps of its jobs.

use std::collections::BTreeMap;

/// The records of all apps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StolosState {
    /// The records of each app, by its name.
    pub apps: BTreeMap<String, AppRecords>,
    /// The records that could not be read, in words.
    pub troubles: Vec<String>,
}

/// The records of an app.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppRecords {
    /// The jobs by id, as they were written.
    pub jobs: BTreeMap<String, JobRecord>,
    /// The jobs in its queue, each with its priority: 1 is first, 100 the default.
    pub queued: BTreeMap<String, i32>,
}

/// The record of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// `pending`, `completed`, `failed` or `skipped`; empty where a record exists without a state.
    pub state: String,
    /// How many attempts have failed.
    pub retries: u32,
    /// Whether a runner holds the lock on its execution.
    pub is_running: bool,
}

impl StolosState {
    /// The record of a job, which is made if there is none.
    pub(crate) fn job(&mut self, app: &str, job: &str) -> &mut JobRecord {
        self.apps.entry(app.to_owned()).or_default().jobs.entry(job.to_owned()).or_default()
    }

    /// The jobs that runners execute, by their names here.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let of_app = |(app, records): (&String, &AppRecords)| {
            let running = records.jobs.iter().filter(|(_, record)| record.is_running);
            running.map(|(job, _)| format!("{app}@{job}")).collect::<Vec<_>>()
        };
        self.apps.iter().flat_map(of_app).collect()
    }
}
