//! The state that Stolos keeps in Redis: a key for each part of a job, and a sorted set for the queue of each app.

use kelos_tls::Trust;
use redis::{Connection, RedisResult};
use url::Url;

use super::{ImportError, StolosState};
use crate::redis::{RedisDatabase, told};

/// Keys that are asked for at a time.
const AT_A_TIME: usize = 1000;
/// The part of a key between an app and a job id.
const JOBS: &str = "/all_subtasks/";
/// The parts of a job, behind its id.
const RETRIES: &str = "/retry_count";
const LOCK: &str = "/execute_lock";
const OTHERS: [&str; 2] = ["/num_complete_parents", "/add_lock"];
/// The text that stands for an empty one.
const EMPTY: &str = "--STOLOSEMPTYSTRING--";

/// The Redis of a Stolos.
pub struct RedisState {
    database: RedisDatabase,
    name: String,
}

impl RedisState {
    pub(super) fn new(address: &str, password: Option<&str>, trust: &Trust) -> Result<RedisState, ImportError> {
        let url = Url::parse(address).map_err(|error| ImportError::Address(error.to_string()))?;
        let database = RedisDatabase::new(&url, password, trust).map_err(ImportError::Address)?;
        let name = format!("redis {}", database.name);
        Ok(RedisState { database, name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn read(&self) -> Result<StolosState, String> {
        let read = || {
            let mut connection = self.database.connect()?;
            let mut state = StolosState::default();
            self.jobs(&mut connection, &mut state)?;
            self.queues(&mut connection, &mut state)?;
            Ok(state)
        };
        read().map_err(|error| told(&error))
    }

    /// Reads the parts of all jobs.
    fn jobs(&self, connection: &mut Connection, state: &mut StolosState) -> RedisResult<()> {
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("*{JOBS}*"))
                .arg("COUNT")
                .arg(AT_A_TIME)
                .arg("TYPE")
                .arg("string")
                .query(connection)?;
            if !keys.is_empty() {
                let values: Vec<Option<Vec<u8>>> = redis::cmd("MGET").arg(&keys).query(connection)?;
                // A key without a value went away meanwhile.
                let found = keys.iter().zip(values).filter_map(|(key, value)| Some((key, value?)));
                found.for_each(|(key, value)| note(state, key, &value));
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// Reads the queues of the apps that have jobs.
    fn queues(&self, connection: &mut Connection, state: &mut StolosState) -> RedisResult<()> {
        for (app, records) in &mut state.apps {
            let kind: String = redis::cmd("TYPE").arg(app).query(connection)?;
            if kind != "zset" {
                continue;
            }
            let members: Vec<Vec<u8>> = redis::cmd("ZRANGE").arg(app).arg(0).arg(-1).query(connection)?;
            for member in members {
                let entry = std::str::from_utf8(&member).ok().and_then(entry);
                match entry {
                    Some((priority, job)) => {
                        let _ = records.queued.insert(job.to_owned(), priority);
                    }
                    None => {
                        let member = String::from_utf8_lossy(&member);
                        state.troubles.push(format!("the queue of {app} has an entry {member:?} that is no job"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Notes a part of a job.
fn note(state: &mut StolosState, key: &[u8], value: &[u8]) {
    let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
    let Some((app, job)) = key.split_once(JOBS).filter(|(app, job)| !app.is_empty() && !job.is_empty()) else { return };
    if OTHERS.iter().any(|part| job.ends_with(part)) {
        return;
    }
    if let Some(job) = job.strip_suffix(LOCK) {
        state.job(app, job).is_running = true;
    } else if let Some(job) = job.strip_suffix(RETRIES) {
        match value.parse() {
            Ok(retries) => state.job(app, job).retries = retries,
            Err(_) => state.troubles.push(format!("{app}@{job} has the retry count {value:?}, expected a number")),
        }
    } else {
        state.job(app, job).state = if value == EMPTY { String::new() } else { value.into_owned() };
    }
}

/// The priority and the job of an entry of a queue: `PRIORITY:TIME:JOB_ID`.
fn entry(member: &str) -> Option<(i32, &str)> {
    let (priority, rest) = member.split_once(':')?;
    let (_, job) = rest.split_once(':')?;
    Some((priority.parse().ok()?, job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parts_of_jobs() {
        let mut state = StolosState::default();
        let parts = [
            ("app1/all_subtasks/20140601_1", "pending"),
            ("app1/all_subtasks/20140601_1/retry_count", "2"),
            ("app1/all_subtasks/20140601_1/num_complete_parents", "1"),
            ("app1/all_subtasks/20140601_1/execute_lock", "id"),
            ("app2/all_subtasks/x", EMPTY),
            ("app2/all_subtasks/x/retry_count", "many"),
            ("/all_subtasks/x", "pending"),
        ];
        parts.iter().for_each(|(key, value)| note(&mut state, key.as_bytes(), value.as_bytes()));
        let job = &state.apps["app1"].jobs["20140601_1"];
        assert_eq!((job.state.as_str(), job.retries, job.is_running), ("pending", 2, true));
        assert_eq!(state.apps["app1"].jobs.len(), 1);
        assert_eq!(state.apps["app2"].jobs["x"].state, "");
        assert_eq!(state.troubles, ["app2@x has the retry count \"many\", expected a number"]);
        assert_eq!(state.apps.len(), 2);
        assert_eq!(state.running(), ["app1@20140601_1"]);
    }

    #[test]
    fn entries_of_queues_have_a_priority_and_a_job() {
        assert_eq!(entry("5:1417000000.123456:20140601_1"), Some((5, "20140601_1")));
        assert_eq!(entry("100:1.5:a:b"), Some((100, "a:b")));
        assert_eq!(entry("20140601_1"), None);
    }
}
