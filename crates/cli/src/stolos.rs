//! The names and options of Stolos: this program, called `stolos` or `stolos-submit`, as its own commands.
//!
//! Options can come from the environment, `--x_y` from `STOLOS_X_Y`.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use clap::error::ErrorKind;

use crate::apps::Backend;

/// Options of Stolos about what there is no need for here: where its queues and its code are, and how its code parts and names
/// what is in the file of apps.
const NEEDLESS: [&str; 13] = [
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
    "qb_zookeeper_timeout",
    "redis_connection_opts",
];
/// Options of its pyspark jobs, which the app itself says here.
const OF_THE_APP: [(&str, &str); 7] = [
    ("read_fp", "say read_fp in the app"),
    ("write_fp", "say write_fp in the app"),
    ("minPartitions", "say minPartitions in the app"),
    ("spark_conf", "say spark_conf in the app"),
    ("spark_env", "say env in the app"),
    ("mapjson", "read JSON in the module's own main"),
    ("sample", "take a sample in the module's own main"),
];

/// The options that mean something here.
const USED: [&str; 15] = [
    "app_name",
    "bash_cmd",
    "bypass_scheduler",
    "configuration_backend",
    "help",
    "job_id",
    "job_id_default_template",
    "max_retry",
    "redirect_to_stderr",
    "redis_db",
    "redis_host",
    "redis_key_prefix",
    "redis_port",
    "tasks_json",
    "timeout",
];

/// The help about options, after that of the others.
const ABOUT_OPTIONS: &str = "\
Accepted, without effect: --queue_backend and --qb_… (the queue is in the folder's own database),
--job_id_validations (identifiers.json says it), --job_id_delimiter (the template says what stands between identifiers),
--dependency_group_default_name, --redis_connection_opts.";

/// Do one job of an app, and end; the exit code tells how the job ended, as that of `kelos run` does
#[derive(Parser)]
#[command(
    name = "stolos",
    after_help = ABOUT_OPTIONS
)]
struct Stolos {
    /// App of the job
    #[arg(short, long = "app_name", value_name = "APP", env = "STOLOS_APP_NAME")]
    app_name: String,
    /// Run this job, which must not have been submitted before
    #[arg(long = "job_id", value_name = "JOB_ID", env = "STOLOS_JOB_ID", allow_hyphen_values = true)]
    job_id: Option<String>,
    /// Run the job without queue, store or parents
    #[arg(long = "bypass_scheduler", env = "STOLOS_BYPASS_SCHEDULER", num_args = 0..=1, default_missing_value = "1")]
    bypass_scheduler: Option<String>,
    /// Seconds to wait for a job
    #[arg(long, value_name = "SECONDS", env = "STOLOS_TIMEOUT", default_value = "2")]
    timeout: String,
    /// Total number of attempts before the job has failed
    #[arg(long = "max_retry", value_name = "N", env = "STOLOS_MAX_RETRY", default_value = "5")]
    max_retry: String,
    /// Job id template of apps that have none
    #[arg(long = "job_id_default_template", value_name = "TEMPLATE", env = "STOLOS_JOB_ID_DEFAULT_TEMPLATE")]
    template: Option<String>,
    /// File that describes the apps
    #[arg(long = "tasks_json", value_name = "FILE", env = "STOLOS_TASKS_JSON")]
    tasks_json: Option<String>,
    /// Backend that holds the apps: json (a file), redis, or exec: and a command that prints them
    #[arg(long = "configuration_backend", value_name = "NAME")]
    configuration_backend: Option<String>,
    /// Host of the Redis that has the apps
    #[arg(long = "redis_host", value_name = "HOST")]
    redis_host: Option<String>,
    /// Port of that Redis
    #[arg(long = "redis_port", value_name = "PORT")]
    redis_port: Option<String>,
    /// Database of that Redis
    #[arg(long = "redis_db", value_name = "N")]
    redis_db: Option<String>,
    /// Key prefix of the apps in Redis
    #[arg(long = "redis_key_prefix", value_name = "TEXT")]
    redis_key_prefix: Option<String>,
    /// Kill the job after this many seconds
    #[arg(long, value_name = "SECONDS", env = "STOLOS_WATCH", allow_hyphen_values = true)]
    watch: Option<String>,
    /// Accepted for compatibility: the output of a job is always kept
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
        return Stolos::try_parse_from(without_needless(typed)?)?.words();
    }
    if name == "stolos-submit" {
        let own = ["kelos", "submit"].map(OsString::from).into_iter();
        return Ok(with_jobs(own.chain(typed.into_iter().skip(1)).collect()));
    }
    let submits = typed.get(1).is_some_and(|word| word == "submit");
    Ok(if submits { with_jobs(typed) } else { typed })
}

/// Options after which job ids stand.
const OF_JOBS: [&str; 4] = ["-j", "--job", "--job-id", "--job_id"];

/// The arguments with job ids that begin with a minus and a digit, such as `-1_7`, in a form that is no option.
fn with_jobs(typed: Vec<OsString>) -> Vec<OsString> {
    let is_option =
        |word: &OsString| word.to_str().is_some_and(|word| word.starts_with('-') && !begins_with_minus(word));
    let mut of_jobs = false;
    let mut is_job = |word: &OsString| {
        if is_option(word) {
            of_jobs = OF_JOBS.iter().any(|name| word == name);
        }
        of_jobs && !is_option(word)
    };
    let jobs: Vec<bool> = typed.iter().map(&mut is_job).collect();
    let is_minus = |(word, is_job): (&OsString, &bool)| *is_job && word.to_str().is_some_and(begins_with_minus);
    if !typed.iter().zip(&jobs).any(is_minus) {
        return typed;
    }
    let said = |(word, is_job): (OsString, bool)| match is_job {
        true => {
            let mut said = OsString::from("--job=");
            said.push(word);
            Some(said)
        }
        false => (!OF_JOBS.iter().any(|name| word == *name)).then_some(word),
    };
    typed.into_iter().zip(jobs).filter_map(said).collect()
}

/// Whether a text is a minus and a digit, and whatever follows.
fn begins_with_minus(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

impl Stolos {
    /// The place of the apps, where the command line says so; the variables are read later.
    fn backend(&self) -> Result<Backend, clap::Error> {
        let said = |name: &str| match name {
            "STOLOS_CONFIGURATION_BACKEND" => self.configuration_backend.clone(),
            "STOLOS_REDIS_HOST" => self.redis_host.clone(),
            "STOLOS_REDIS_PORT" => self.redis_port.clone(),
            "STOLOS_REDIS_DB" => self.redis_db.clone(),
            "STOLOS_REDIS_KEY_PREFIX" => self.redis_key_prefix.clone(),
            _ => None,
        };
        let options = ["CONFIGURATION_BACKEND", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_KEY_PREFIX"];
        if options.iter().all(|name| said(&format!("STOLOS_{name}")).is_none()) {
            return Ok(Backend::File);
        }
        let found = Backend::of_stolos(|name| said(name).or_else(|| std::env::var(name).ok()));
        found.map_err(|failure| clap::Error::raw(ErrorKind::InvalidValue, format!("{}\n", failure.message)))
    }

    fn words(self) -> Result<Vec<OsString>, clap::Error> {
        let (redis, command) = match self.backend()? {
            Backend::File => (None, None),
            Backend::Redis(address) => (Some(address), None),
            Backend::Command(line) => (None, Some(line)),
        };
        let mut words = vec!["kelos".to_owned(), "run".to_owned()];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.filter(|value| !value.is_empty()).map(|value| format!("--{name}={value}")));
        };
        option("job-id", self.job_id);
        option("timeout", Some(self.timeout));
        option("max-retry", Some(self.max_retry));
        option("template", self.template);
        option("tasks-json", self.tasks_json);
        option("tasks-redis", redis);
        option("tasks-command", command);
        // Stolos writes -1 for never.
        option("watch", self.watch.filter(|watch| !watch.starts_with('-')));
        words.extend(self.bypass_scheduler.filter(|set| !set.is_empty()).map(|_| "--bypass-scheduler".to_owned()));
        words.push(self.app_name);
        if !self.bash_cmd.is_empty() {
            words.push("--bash-cmd".to_owned());
            words.extend(self.bash_cmd);
        }
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

/// The name of an option that was typed as far as it is clear, as Python's argparse takes it.
fn whole_name(typed: &str) -> &str {
    let known = USED.iter().chain(&NEEDLESS).copied().chain(OF_THE_APP.iter().map(|(name, _)| *name));
    let mut meant = known.chain(["watch"]).filter(|name| name.starts_with(typed));
    match (meant.clone().find(|name| *name == typed), meant.next(), meant.next()) {
        (None, Some(name), None) if !typed.is_empty() => name,
        _ => typed,
    }
}

/// Leaves out what is not needed, but for the words of a command.
fn without_needless(typed: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let mut kept = Vec::new();
    let mut typed = typed.into_iter();
    while let Some(word) = typed.next() {
        let option = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
        let (typed_name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = whole_name(typed_name);
        let word = match value {
            _ if name == typed_name => word.clone(),
            Some(value) => OsString::from(format!("--{name}={value}")),
            None => OsString::from(format!("--{name}")),
        };
        if let Some((name, instead)) = OF_THE_APP.iter().find(|(known, _)| *known == name) {
            let what = format!("--{name} has no effect: {instead}\n");
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, what));
        }
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
    Ok(kept)
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
    fn documented_options_are_taken_or_told_of() {
        let zookeeper = "stolos -a a --queue_backend zookeeper --qb_zookeeper_hosts h:2181 --qb_zookeeper_timeout 5";
        assert_eq!(meant(zookeeper), "kelos run --timeout=2 --max-retry=5 a");
        let redis = "stolos -a a --configuration_backend redis --redis_host h --redis_db 3 --redis_key_prefix p/";
        assert_eq!(meant(redis), "kelos run --timeout=2 --max-retry=5 --tasks-redis=redis://h:6379/3?prefix=p/ a");
        let command = "stolos -a a --configuration_backend exec:bin/tasks";
        assert_eq!(meant(command), "kelos run --timeout=2 --max-retry=5 --tasks-command=bin/tasks a");
        assert_eq!(meant("stolos -a a --configuration_backend json"), "kelos run --timeout=2 --max-retry=5 a");
        let refused = |typed: &str| words(typed.split(' ').map(OsString::from).collect()).unwrap_err().to_string();
        assert!(
            refused("stolos -a a --configuration_backend my.module").contains("expected json, redis or exec:COMMAND")
        );
        assert!(refused("stolos -a a --read_fp x").contains("--read_fp has no effect: say read_fp in the app"));
    }

    #[test]
    fn options_may_be_cut_short_as_long_as_they_are_clear() {
        let expected = "kelos run --job-id=j --timeout=9 --max-retry=5 a --bash-cmd --app x";
        assert_eq!(meant("stolos --app a --job_id j --time=9 --queue redis --bash --app x"), expected);
        for unclear in ["stolos --app a --redis_p 1 --qb_redis 5", "stolos --app a --j x"] {
            assert!(words(unclear.split(' ').map(OsString::from).collect()).is_err(), "{unclear}");
        }
    }

    #[test]
    fn job_ids_may_begin_with_a_minus() {
        assert_eq!(meant("stolos -a a --job_id -1_7"), "kelos run --job-id=-1_7 --timeout=2 --max-retry=5 a");
        assert_eq!(
            meant("stolos-submit -a a -j -1 2 -3_x --readd"),
            "kelos submit -a a --job=-1 --job=2 --job=-3_x --readd"
        );
        assert_eq!(meant("kelos submit -j 5 -1 -a a"), "kelos submit --job=5 --job=-1 -a a");
        assert_eq!(meant("kelos submit -a a -j 5 --priority -1"), "kelos submit -a a -j 5 --priority -1");
    }

    #[test]
    fn stolos_submit_is_a_submit_and_other_names_are_not_touched() {
        let same = "-a app1 app2 -j 20150101_123_profile --readd";
        assert_eq!(meant(&format!("stolos-submit {same}")), format!("kelos submit {same}"));
        assert_eq!(meant("kelos stolos -a x"), "kelos stolos -a x");
        assert!(words(vec!["stolos".into()]).is_err());
    }
}
