//! The real HDFS and the real Oozie, as somebody sees them who has nothing but curl.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::Folder;

/// A count of words takes half a minute on a busy machine, and jobs may go one after the other.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Where the servers are.
pub(crate) struct Cluster {
    pub(crate) hdfs: String,
    pub(crate) webhdfs: String,
    pub(crate) oozie: String,
    pub(crate) job_tracker: String,
}

/// Runs a program to its end, and gives what it printed.
#[track_caller]
pub(crate) fn tool(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).stdin(Stdio::null()).output().expect(program);
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {args:?}: {err}");
    String::from_utf8(done.stdout).expect("text")
}

impl Cluster {
    /// The servers, where they are started.
    pub(crate) fn find() -> Option<Cluster> {
        Some(Cluster {
            oozie: kelos_test_servers::address("KELOS_TEST_OOZIE")?,
            hdfs: kelos_test_servers::address("KELOS_TEST_HDFS")?,
            webhdfs: kelos_test_servers::address("KELOS_TEST_WEBHDFS")?,
            job_tracker: kelos_test_servers::address("KELOS_TEST_JOB_TRACKER")?,
        })
    }

    /// Asks WebHDFS, as the user whom jobs belong to.
    pub(crate) fn web(&self, method: &str, path: &str, operation: &str) -> String {
        let url = format!("{}/webhdfs/v1{path}?user.name=celos&op={operation}", self.webhdfs);
        tool("curl", &["--silent", "--location", "--request", method, &url])
    }

    /// Puts a file of a folder into HDFS.
    pub(crate) fn upload(&self, from: &Folder, name: &str, path: &str) {
        let url = format!("{}/webhdfs/v1{path}?user.name=celos&op=CREATE&overwrite=true", self.webhdfs);
        let file = from.path().join(name);
        tool("curl", &["-sS", "--fail", "--location", "--upload-file", file.to_str().expect("text"), &url]);
    }

    /// Does what Kelos tells people to do about a job that Oozie suspended, because it could not reach the name node when it
    /// began an action: resumes it there.
    pub(crate) fn resume_if_suspended(&self, job: &str) {
        let url = format!("{}/v1/job/{job}", self.oozie);
        let found = tool("curl", &["--silent", "--fail", &format!("{url}?show=info")]);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        if found["status"] == "SUSPENDED" {
            let resume = format!("{url}?action=resume&user.name=celos");
            tool("curl", &["--silent", "--show-error", "--fail", "--request", "PUT", &resume]);
        }
    }

    /// The ids of all jobs of a name.
    pub(crate) fn jobs(&self, name: &str) -> Vec<String> {
        let name = name.replace('@', "%40").replace(':', "%3A");
        let found = tool("curl", &["--silent", "--fail", &format!("{}/v2/jobs?filter=name%3D{name}", self.oozie)]);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let jobs = found["workflows"].as_array().expect("jobs").iter();
        jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    }
}
