//! The names and options of Stolos: this program, called `stolos` or `stolos-submit`, as its own commands.
//!
//! Options can come from the environment, `--x_y` from `STOLOS_X_Y`.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

/// Options of Stolos about what there is no need for here: where its queues and its code are.
const NEEDLESS: [&str; 11] = [
    "queue_backend",
    "job_id_validations",
    "job_id_delimiter",
    "dependency_group_default_name",
    "qb_redis_host",
    "qb_redis_port",
    "qb_redis_db",
    "qb_redis_lock_timeout",
    "qb_redis_max_network_delay",
    "qb_redis_socket_timeout",
    "qb_zookeeper_hosts",
];

/// Do one job of an app, and end; the exit code tells how the job ended, as that of `kelos run` does
#[derive(Parser)]
#[command(
    name = "stolos",
    after_help = "What Stolos asks about its queues (--queue_backend, --qb_…) is accepted, and not needed."
)]
struct Stolos {
    /// Whose job
    #[arg(short, long = "app_name", value_name = "APP", env = "STOLOS_APP_NAME")]
    app_name: String,
    /// Run this job, which must never have been submitted
    #[arg(long = "job_id", value_name = "JOB_ID", env = "STOLOS_JOB_ID")]
    job_id: Option<String>,
    /// Run the job past queue, store and parents
    #[arg(long = "bypass_scheduler", env = "STOLOS_BYPASS_SCHEDULER", num_args = 0..=1, default_missing_value = "1")]
    bypass_scheduler: Option<String>,
    /// How many seconds to wait for a job
    #[arg(long, value_name = "SECONDS", env = "STOLOS_TIMEOUT", default_value = "2")]
    timeout: String,
    /// How often the job is attempted in all before it has failed for good
    #[arg(long = "max_retry", value_name = "N", env = "STOLOS_MAX_RETRY", default_value = "5")]
    max_retry: String,
    /// The template of apps that have none
    #[arg(long = "job_id_default_template", value_name = "TEMPLATE", env = "STOLOS_JOB_ID_DEFAULT_TEMPLATE")]
    template: Option<String>,
    /// The file of apps
    #[arg(long = "tasks_json", value_name = "FILE", env = "STOLOS_TASKS_JSON")]
    tasks_json: Option<String>,
    /// End the job after so many seconds
    #[arg(long, value_name = "SECONDS", env = "STOLOS_WATCH", allow_hyphen_values = true)]
    watch: Option<String>,
    /// Accepted: what a job prints is kept, whichever way it goes
    #[arg(long = "redirect_to_stderr", num_args = 0..=1, default_missing_value = "1")]
    _redirect_to_stderr: Option<String>,
    /// Append these words, and the rest of the line, to the command of the app
    #[arg(long = "bash_cmd", value_name = "WORD", num_args = 0.., allow_hyphen_values = true)]
    bash_cmd: Vec<String>,
}

/// The words of this program that mean what was typed under whichever name.
///
/// # Errors
/// When what was typed for Stolos makes no sense, or asks for help.
pub(crate) fn words(typed: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let name = typed.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    if name == "stolos" {
        return Ok(Stolos::try_parse_from(without_needless(typed))?.words());
    }
    if name == "stolos-submit" {
        let own = ["kelos", "submit"].map(OsString::from).into_iter();
        return Ok(own.chain(typed.into_iter().skip(1)).collect());
    }
    Ok(typed)
}

impl Stolos {
    fn words(self) -> Vec<OsString> {
        let mut words = vec!["kelos".to_owned(), "run".to_owned()];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.filter(|value| !value.is_empty()).map(|value| format!("--{name}={value}")));
        };
        option("job-id", self.job_id);
        option("timeout", Some(self.timeout));
        option("max-retry", Some(self.max_retry));
        option("template", self.template);
        option("tasks-json", self.tasks_json);
        // Stolos writes -1 for never.
        option("watch", self.watch.filter(|watch| !watch.starts_with('-')));
        words.extend(self.bypass_scheduler.filter(|set| !set.is_empty()).map(|_| "--bypass-scheduler".to_owned()));
        words.push(self.app_name);
        if !self.bash_cmd.is_empty() {
            words.push("--bash-cmd".to_owned());
            words.extend(self.bash_cmd);
        }
        words.into_iter().map(OsString::from).collect()
    }
}

/// Leaves out what is not needed, but for the words of a command.
fn without_needless(typed: Vec<OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut typed = typed.into_iter();
    while let Some(word) = typed.next() {
        let option = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if name == "bash_cmd" {
            kept.push(word);
            kept.extend(typed);
            break;
        }
        if !NEEDLESS.contains(&name) {
            kept.push(word);
        } else if value.is_none() {
            typed.next();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(typed: &str) -> String {
        let words = words(typed.split(' ').map(OsString::from).collect()).unwrap();
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stolos_is_a_run() {
        assert_eq!(meant("/bin/stolos -a app1"), "kelos run --timeout=2 --max-retry=5 app1");
        assert_eq!(
            meant("stolos --bypass_scheduler -a my_app --job_id my_job_id"),
            "kelos run --job-id=my_job_id --timeout=2 --max-retry=5 --bypass-scheduler my_app"
        );
        assert_eq!(
            meant(
                "stolos -a a --watch -1 --queue_backend redis --qb_redis_port=1 --timeout 0 --bash_cmd x{job_id} --qb_redis_db -y"
            ),
            "kelos run --timeout=0 --max-retry=5 a --bash-cmd x{job_id} --qb_redis_db -y"
        );
    }

    #[test]
    fn stolos_submit_is_a_submit_and_other_names_are_not_touched() {
        let same = "-a app1 app2 -j 20150101_123_profile --readd";
        assert_eq!(meant(&format!("stolos-submit {same}")), format!("kelos submit {same}"));
        assert_eq!(meant("kelos stolos -a x"), "kelos stolos -a x");
        assert!(words(vec!["stolos".into()]).is_err());
    }
}
