//! Options that several commands share, flattened into their arguments.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use kelos_executors::workers::{LEASE, REMOTE_LEASE, SHORTEST_LEASE};
use kelos_model::Arguments;
use kelos_model::history::HistorySettings;
use kelos_model::json;
use kelos_model::secret::AllowList;
use kelos_model::time::Zone;
use kelos_trust::Rules;
use kelos_wire::ReasonRequest;

use crate::address::escape;
use crate::failure::Failure;
use crate::host::{LONGEST_CONFIG, WorkerLeases};
use crate::times::Moment;
use crate::trust::TrustOptions;
use crate::{selection, times};

/// The folder of workflows of Celos by default.
pub(crate) const CELOS_WORKFLOWS: &str = "/etc/celos/workflows";
/// The folder of imports of Celos by default.
pub(crate) const CELOS_DEFAULTS: &str = "/etc/celos/defaults";

/// The format of an answer.
#[derive(Clone, clap::Args)]
pub(crate) struct Form {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The server, and the format of the answer.
#[derive(Clone, clap::Args)]
pub(crate) struct Door {
    /// Address of the server
    #[arg(long, env = "KELOS_SERVER", value_name = "URL", hide_env_values = true)]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
}

/// A folder of scripts that is looked at, but not run.
#[derive(clap::Args)]
pub(crate) struct Scripts {
    /// Folder with scripts in workflows/*.js or *.js, and their imports in defaults/
    #[arg(default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Folder of imports, if it is elsewhere
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: Option<PathBuf>,
}

/// The slot that is asked about.
#[derive(clap::Args)]
pub(crate) struct OneSlot {
    /// Workflow of the slot
    pub(crate) workflow: String,
    /// Slot: its time or job id [default: the newest with a run]
    #[arg(value_name = "TIME|JOB_ID", value_parser = selection::key, allow_negative_numbers = true)]
    pub(crate) key: Option<String>,
}

/// The secrets and users that the jobs of a worker may use.
#[derive(clap::Args)]
pub(crate) struct AllowOptions {
    /// JSON file with the secrets and users of the system that projects may use on this machine, as for `kelos serve`; and, of a worker
    /// with --server, how long it keeps the folders of its runs; of one with --store, the rules of access
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
}

impl AllowOptions {
    /// The list of the file; the usual one without a file.
    pub(crate) fn read(&self) -> Result<AllowList, Failure> {
        self.parsed(AllowList::parse).map(Option::unwrap_or_default)
    }

    /// How long the folders of runs are kept on this machine; none where the file does not say it.
    pub(crate) fn history(&self) -> Result<Option<HistorySettings>, Failure> {
        self.parsed(HistorySettings::find).map(Option::flatten)
    }

    /// The rules of access to a worker that is a node; none where the file has none.
    pub(crate) fn rules(&self) -> Result<Option<Rules>, Failure> {
        self.parsed(|text| Rules::parse(text).map_err(|error| error.to_string())).map(Option::flatten)
    }

    /// The file as it is understood; none without a file.
    fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, Failure> {
        let Some(path) = &self.config else { return Ok(None) };
        let fail = |why: String| Failure::usage(format!("use {} as the file of --config: {why}", path.display()));
        let text = kelos_sandbox::read_text(path, LONGEST_CONFIG).map_err(|why| fail(format!("it {why}")))?;
        parse(&text).map(Some).map_err(fail)
    }
}

/// From when to when.
#[derive(clap::Args)]
pub(crate) struct Range {
    /// Start of the range, inclusive
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    from: Moment,
    /// End of the range, exclusive
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    to: Moment,
    /// Time zone of --from and --to, such as Europe/Berlin [default: that of the workflow's schedule]
    #[arg(long, value_name = "ZONE", value_parser = times::zone)]
    zone: Option<Zone>,
}

/// A range of time, read in a zone.
pub(crate) struct ReadRange {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// The words for what it was understood as; none where that depends on no zone.
    pub(crate) understood: Option<String>,
}

impl Range {
    /// The zone that was named.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// The first of its times that is another moment in another zone.
    pub(crate) fn local(&self) -> Option<&Moment> {
        [&self.from, &self.to].into_iter().find(|time| time.is_local())
    }

    /// The range in the zone that was named, else in another one.
    pub(crate) fn read(&self, doing: &str, usual: &Zone) -> Result<ReadRange, Failure> {
        let zone = self.zone.as_ref().unwrap_or(usual);
        let (from, to) = (self.from.in_zone(doing, zone)?, self.to.in_zone(doing, zone)?);
        let understood = self.local().map(|_| times::understood(zone, Some(from), Some(to)));
        Ok(ReadRange { from, to, understood })
    }
}

/// The arguments of a run.
#[derive(clap::Args)]
pub(crate) struct ArgumentOptions {
    /// Argument of the run, beside its own. Its text is read by the type of the parameter
    #[arg(long = "argument", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Arguments as a JSON object: numbers stay numbers
    #[arg(long = "arguments", value_name = "JSON")]
    arguments_json: Option<String>,
    /// File with arguments: a JSON object
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    arguments_file: Option<PathBuf>,
}

impl ArgumentOptions {
    /// All arguments, each of them given once.
    pub(crate) fn read(&self, doing: &str) -> Result<Arguments, Failure> {
        let usage = |why: String| Failure::usage(format!("{doing}: {why}"));
        let single = pairs(&self.arguments).map_err(usage)?;
        let mut all: Arguments = single.into_iter().map(|(name, text)| (name, text.into())).collect();
        let mut add = |more: Arguments, of: &str| match more.keys().find(|name| all.contains_key(*name)) {
            Some(name) => Err(usage(format!("{name} is given by another option and in {of}: expected one value"))),
            None => {
                all.extend(more);
                Ok(())
            }
        };
        if let Some(json) = &self.arguments_json {
            add(listed(json).map_err(|why| usage(format!("--arguments: {why}")))?, "--arguments")?;
        }
        if let Some(path) = &self.arguments_file {
            let shown = path.display().to_string();
            let text = kelos_sandbox::read_text(path, LONGEST_ARGUMENTS)
                .map_err(|why| usage(format!("use {shown} as a file of arguments: it {why}")))?;
            add(listed(&text).map_err(|why| usage(format!("{shown}: {why}")))?, &shown)?;
        }
        Ok(all)
    }
}

/// The most bytes of a file of arguments: more than a server takes.
const LONGEST_ARGUMENTS: u64 = 16 << 20;

/// The arguments of a JSON object.
fn listed(text: &str) -> Result<Arguments, String> {
    const EXPECTED: &str = "expected an object such as {\"day\": \"2026-11-21\", \"rows\": 100}";
    let all: Arguments = json::read(text.as_bytes()).map_err(|error| format!("{error}; {EXPECTED}"))?;
    if all.contains_key("") { Err(format!("an argument has no name, {EXPECTED}")) } else { Ok(all) }
}

/// The reason for a change.
#[derive(clap::Args)]
pub(crate) struct Because {
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

impl Because {
    /// The path of a request whose body says something else, with the reason.
    pub(crate) fn path(&self, path: &str) -> String {
        self.reason.as_ref().map_or_else(|| path.to_owned(), |reason| format!("{path}?reason={}", escape(reason)))
    }

    /// The body of a request that says nothing else.
    pub(crate) fn body(&self) -> ReasonRequest {
        ReasonRequest { reason: self.reason.clone() }
    }
}

/// When a worker is given up.
#[derive(clap::Args)]
pub(crate) struct Lease {
    /// How long a worker may go without a heartbeat before it loses its jobs, 15 or more; applies while this process leads [default: 15,
    /// for workers on other machines and of nodes 60]
    #[arg(long, value_name = "SECONDS", value_parser = lease)]
    lease: Option<Duration>,
}

impl Lease {
    /// The lease of a worker that shares the folder.
    pub(crate) fn of_folder(&self) -> Duration {
        self.lease.unwrap_or(LEASE)
    }

    /// The leases of all workers.
    pub(crate) fn of_workers(&self) -> WorkerLeases {
        WorkerLeases { of_folder: self.of_folder(), elsewhere: self.lease.unwrap_or(REMOTE_LEASE) }
    }
}

/// The lease of a worker, which lasts longer than a change of leader.
fn lease(text: &str) -> Result<Duration, String> {
    let (shortest, longest) = (SHORTEST_LEASE, Duration::from_secs(86_400));
    let expected = format!(
        "expected a number of seconds from {} to {}; a shorter lease would end commands with each change of leader",
        shortest.as_secs(),
        longest.as_secs()
    );
    let read = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.filter(|lease| *lease >= shortest && *lease <= longest).ok_or(expected)
}

/// A number of seconds, also broken, that is worth waiting.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let read = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.filter(|wait| *wait >= Duration::from_millis(100) && *wait <= Duration::from_secs(86_400))
        .ok_or_else(|| "expected a number of seconds from 0.1 to 86400".to_owned())
}

/// Names and values with a `=` between.
pub(crate) fn pairs(texts: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut pairs = BTreeMap::new();
    for text in texts {
        let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = named.ok_or_else(|| format!("\"{text}\" has no name and value: expected NAME=VALUE"))?;
        if pairs.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{name} is given twice: expected one value"));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_ends_with_a_change_of_leader_is_refused() {
        assert_eq!(lease("15"), Ok(Duration::from_secs(15)));
        assert_eq!(lease("20.5"), Ok(Duration::from_millis(20_500)));
        for text in ["14.9", "8", "0", "-1", "x", "86401"] {
            let refused = lease(text).unwrap_err();
            assert!(refused.starts_with("expected a number of seconds from 15 to 86400; a shorter lease"), "{refused}");
        }
    }

    #[test]
    fn arguments_of_a_file_are_an_object() {
        let read = |text: &str| listed(text).map(|all| serde_json::to_string(&all).expect("JSON"));
        let all = r#"{"day":"2026-11-21","days":["a"],"dry":false,"none":null,"rows":100}"#;
        assert_eq!(read(all).as_deref(), Ok(all));
        assert_eq!(read("{}").as_deref(), Ok("{}"));
        for (bad, why) in
            [("[]", "invalid type: sequence"), ("", "EOF while parsing"), (r#"{"": "x"}"#, "an argument has no name")]
        {
            let told = read(bad).expect_err(bad);
            assert!(told.contains(why) && told.contains("expected an object"), "{told}");
        }
    }
}
