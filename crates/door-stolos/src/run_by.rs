//! How the jobs of an app are run: their executor, their retries and their concurrency.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use kelos_model::flow::{FLOW, Flow};
use kelos_model::jobs::{Feed, JobKeys, Kind};
use kelos_model::parameter::Parameters;
use kelos_model::retry::OnUnknown;
use kelos_model::secret::DeclaredSecret;
use kelos_model::shell::{Placeholders, ShellText, Trust, trust_of};
use kelos_model::similar::mistyped;
use kelos_model::time::{Cron, CronSchedule, Fold, Gap, Schedule, Zone};
use kelos_model::workers::{Label, MOST_LABELS};
use kelos_model::workflow::CatchUp;
use kelos_model::{Constraint, Deadline, Job, Parameter, PoolUse, RetryPolicy, Trigger};
use kelos_sandbox::{ConstraintDraft, FlowDraft, check_written_path};
use serde_json::{Map, Value as Json, json};

use super::json::{JsonReader, kind, plain};
use super::options::option_names;

/// The kinds of jobs that need no program of people's own.
pub(super) const BUILT_IN: [&str; 2] = ["bash", "pyspark"];
/// The values that every job has besides its identifiers.
const ALWAYS: [&str; 2] = ["app_name", "job_id"];
/// The values that a job has if an identifier is a date.
const OF_A_DAY: [&str; 7] = ["year", "month", "day", "hour", "minute", "second", "millisecond"];
/// The default number of attempts.
const ATTEMPTS: u32 = 5;
/// The keys of a feed.
const FEED: [&str; 4] = ["identifier", "cron", "zone", "catchUp"];
/// The folder of own kinds of jobs, beside the file.
const PLUGINS: &str = "plugins";
/// The longest app that is handed to an own kind of jobs, in bytes: it travels in an environment variable.
const LONGEST_APP: usize = 100_000;

/// An app while it is read.
pub(super) struct App<'a, 'v> {
    pub(super) name: &'v str,
    pub(super) property: &'v ObjectProp<'a>,
    pub(super) object: &'v Object<'a>,
    pub(super) keys: &'v JobKeys,
    /// The folder of the file, where it is known.
    pub(super) folder: Option<&'v Path>,
}

impl<'a, 'v> App<'a, 'v> {
    fn get(&self, key: &str) -> Option<&'v Value<'a>> {
        self.object.get(key).map(|property| &property.value)
    }

    fn what(&self, key: &str) -> String {
        format!("{key} of {}", self.name)
    }

    /// The steps, where each of them is a run of a flow.
    pub(super) fn flow(&self, reading: &mut JsonReader<'a>) -> Option<Arc<Flow>> {
        let steps = self.get("steps").filter(|_| reading.of_a_script)?;
        if let Some(other) =
            ["externalService", "job_type", "bash_cmd", "timeout"].into_iter().find(|key| self.get(key).is_some())
        {
            reading.mistake(steps.range(), format!("{} has both steps and {other}, expected one of them", self.name));
        }
        reading.data(steps, &self.what("steps"), "the steps of a flow").map(FlowDraft::flow)
    }

    /// The job that runs them.
    pub(super) fn job(&self, reading: &mut JsonReader<'a>) -> Job {
        if self.get("steps").is_some_and(|_| reading.of_a_script) {
            return Job::new(FLOW, Map::new());
        }
        if let Some(service) = self.get("externalService").filter(|_| reading.of_a_script) {
            return self.service(reading, service);
        }
        let mut job = self.own_job(reading);
        self.on_workers(reading, &mut job);
        job
    }

    /// The job of its kind.
    fn own_job(&self, reading: &mut JsonReader<'a>) -> Job {
        let kind = self.get("job_type").and_then(|value| reading.text(value, &self.what("job_type")));
        let mut job = match kind.as_deref() {
            None | Some("bash") => self.bash(reading),
            Some("pyspark") => self.pyspark(reading),
            Some(name) => self.own(reading, name),
        };
        if let Some(user) = self.get("runAs").and_then(|value| reading.text(value, &self.what("runAs"))) {
            job.settings.insert("runAs".to_owned(), json!(&*user));
        }
        if let Some(seconds) = self.get("timeout").and_then(|value| reading.count(value, &self.what("timeout"), 1)) {
            job.settings.insert("timeoutSeconds".to_owned(), seconds.into());
        }
        job
    }

    /// The workers that may run its jobs, and what happens to a run whose worker is lost.
    fn on_workers(&self, reading: &mut JsonReader<'a>, job: &mut Job) {
        if let Some(value) = self.get("runs_on") {
            let such =
                "a list of 1 to 32 labels of workers such as [\"gpu\", \"eu\"]: letters, digits, _, ., -, / and =";
            let labels: Option<BTreeSet<Label>> = reading.data(value, &self.what("runs_on"), such);
            job.runs_on = labels.unwrap_or_default();
            if value.as_array().is_some() && job.runs_on.len() > MOST_LABELS {
                reading.mistake(value.range(), format!("{}: expected {such}", self.what("runs_on")));
            }
        }
        let on_lost = self.get("on_lost").map(|value| (value, reading.text(value, &self.what("on_lost"))));
        if let Some((value, Some(text))) = on_lost {
            match text.parse() {
                Ok(on_lost) => job.on_lost = on_lost,
                Err(why) => reading.mistake(value.range(), format!("{}: failed to {why}", self.what("on_lost"))),
            }
        }
    }

    /// The settings that a script made with its functions for external services.
    fn service(&self, reading: &mut JsonReader<'a>, service: &Value<'a>) -> Job {
        if let Some(other) = ["job_type", "bash_cmd", "timeout"].into_iter().find(|key| self.get(key).is_some()) {
            let what = format!("{} has both externalService and {other}, expected one of them", self.name);
            reading.mistake(service.range(), what);
        }
        reading
            .data(service, &self.what("externalService"), "an external service")
            .unwrap_or_else(|| Job::new("", Map::new()))
    }

    /// The trigger besides the jobs of their own graph.
    pub(super) fn trigger(&self, reading: &mut JsonReader<'a>) -> Trigger {
        let trigger = self.get("trigger").filter(|_| reading.of_a_script);
        let trigger = trigger.and_then(|trigger| reading.data(trigger, &self.what("trigger"), "a trigger"));
        trigger.unwrap_or(Trigger::Always)
    }

    /// The constraints, which are checked after the trigger.
    pub(super) fn constraints(&self, reading: &mut JsonReader<'a>) -> Vec<Constraint> {
        let given = self.get("constraints").filter(|_| reading.of_a_script);
        let given: Option<Vec<ConstraintDraft>> =
            given.and_then(|given| reading.data(given, &self.what("constraints"), "constraints"));
        given.into_iter().flatten().map(ConstraintDraft::constraint).collect()
    }

    fn bash(&self, reading: &mut JsonReader<'a>) -> Job {
        let mut settings = Map::new();
        self.texts(reading, "env", "env", &mut settings);
        match self.get("bash_cmd") {
            None => {
                let what =
                    format!("{} has no bash_cmd: each of its jobs fails, because there is nothing to run", self.name);
                reading.remark(self.property.name.range(), what);
            }
            Some(value) => {
                if let Some(text) = reading.text(value, &self.what("bash_cmd")) {
                    self.placeholders(reading, value, "bash_cmd", &text);
                    self.positions(reading, value, &text);
                    settings.insert("shell".to_owned(), Json::String(text.to_string()));
                }
            }
        }
        Job::new("bash", settings)
    }

    /// Whether all placeholders of a text are known, before any job of the app is run.
    fn placeholders(&self, reading: &mut JsonReader<'a>, value: &Value<'a>, key: &str, text: &str) {
        let what = self.what(key);
        let read = match Placeholders::read(text) {
            Ok(read) => read,
            Err(why) => return reading.mistake(value.range(), format!("{what}: {why}")),
        };
        let identifiers: Vec<&str> = self.identifiers().collect();
        let mut known: Vec<&str> = self.values().collect();
        known.extend(ALWAYS);
        option_names().for_each(|option| known.push(option));
        if let Some(unknown) = read.names().find(|name| !known.contains(name)) {
            let expected = identifiers.into_iter().chain(ALWAYS).collect::<Vec<_>>().join(", ");
            let what = format!(
                "{what} has {{{unknown}}}, expected one of {expected}: write {{{{ and }}}} for braces that are meant as they are"
            );
            reading.mistake(value.range(), what);
        }
    }

    fn identifiers(&self) -> impl Iterator<Item = &'v str> {
        self.keys.template.identifiers().map(|name| &**name)
    }

    /// The values of its job ids, and those of the day that an identifier names.
    fn values(&self) -> impl Iterator<Item = &'v str> {
        let has_day = self.keys.identifiers.values().any(|kind| matches!(kind, Kind::Date { .. }));
        self.identifiers().chain(OF_A_DAY.into_iter().filter(move |_| has_day))
    }

    /// The paths that its jobs write, as templates of the model. Their values may be in the form of triggers, too: `${date}`.
    pub(super) fn writes(&self, reading: &mut JsonReader<'a>) -> Vec<String> {
        let Some(value) = self.get("writes") else { return Vec::new() };
        let what = self.what("writes");
        let paths = reading.list(value, &what).unwrap_or_default();
        let read: Vec<Result<String, String>> = paths.iter().map(|path| self.written(path)).collect();
        let keep = |path: Result<String, String>| {
            path.map_err(|why| reading.mistake(value.range(), format!("{what}: {why}"))).ok()
        };
        read.into_iter().filter_map(keep).collect()
    }

    fn written(&self, path: &str) -> Result<String, String> {
        check_written_path(path)?;
        let read = Placeholders::read(&path.replace("${", "{"))?;
        if let Some(unknown) = read.names().find(|name| !self.values().any(|known| known == *name)) {
            let expected = self.identifiers().collect::<Vec<_>>().join(", ");
            return Err(format!(
                "{path:?} has {{{unknown}}}, expected one of {expected}, or a part of a day that one of them names"
            ));
        }
        read.fill(|name| Some(format!("${{{name}}}")))
    }

    /// Checks that each value is at a position where a shell does not evaluate it, or may safely be evaluated.
    fn positions(&self, reading: &mut JsonReader<'a>, value: &Value<'a>, text: &str) {
        let Ok(placeholders) = Placeholders::read(text) else { return };
        let shell = ShellText::read(&placeholders, |_| None);
        for fault in shell.faults(|name| self.trust(name), |name| self.trust_of_variable(name)) {
            let (what, name) = (self.what("bash_cmd"), &fault.name);
            let advice = match self.keys.template.position(name) {
                Some(_) => format!("say so of {name} in identifiers.json, or among the identifiers of a script"),
                None => "write it otherwise".to_owned(),
            };
            let raw = format!("{{{name}:raw}} pastes it, whatever it is");
            reading.mistake(value.range(), format!("{what}: {fault}: {advice}; {raw}"));
        }
    }

    /// How far the value of a placeholder is known in advance.
    fn trust(&self, name: &str) -> Trust {
        let keys = self.keys;
        if keys.template.position(name).is_some() {
            return match keys.identifiers.get(name) {
                Some(Kind::Integer { .. } | Kind::Date { .. }) => Trust::Number,
                Some(Kind::Choice { of }) => of.iter().map(|one| trust_of(one)).min().unwrap_or(Trust::Free),
                _ => Trust::Free,
            };
        }
        match name {
            "app_name" => trust_of(self.name),
            "job_id" => {
                let between = keys.template.fill(&vec!["x".into(); keys.template.identifiers().len()]);
                let parts = keys.template.identifiers().map(|name| self.trust(name));
                parts.min().unwrap_or(Trust::Free).min(trust_of(&between))
            }
            _ if OF_A_DAY.contains(&name) => Trust::Number,
            _ => Trust::Free,
        }
    }

    /// The same for the variables that a command is started with.
    fn trust_of_variable(&self, name: &str) -> Option<Trust> {
        let is_known = self.keys.template.position(name).is_some() || OF_A_DAY.contains(&name);
        match name {
            "KELOS_SLOT" | "KELOS_TIME" => Some(self.trust("job_id").min(Trust::Plain)),
            "KELOS_WORKFLOW" => Some(self.trust("app_name")),
            "KELOS_ARGUMENTS" | "KELOS_TRIGGERED_BY" => Some(Trust::Free),
            _ if name.starts_with("KELOS_ARG_") => Some(Trust::Free),
            _ => is_known.then(|| self.trust(name)),
        }
    }

    /// An object of texts; the variables of a job may be secrets: `{"secret": "env:NAME"}`.
    fn texts(&self, reading: &mut JsonReader<'a>, key: &str, name: &str, settings: &mut Map<String, Json>) {
        let Some(value) = self.get(key) else { return };
        let Some(object) = reading.object(value, &self.what(key)) else { return };
        for one in &object.properties {
            let is_structured = matches!(one.value, Value::Object(_) | Value::Array(_) | Value::NullKeyword(_));
            match DeclaredSecret::of(&plain(&one.value)).filter(|_| key == "env") {
                Some(Ok(_)) => {}
                Some(Err(why)) => {
                    reading.mistake(one.value.range(), format!("{} in {}: {why}", one.name.as_str(), self.what(key)))
                }
                None if is_structured => {
                    let found = kind(&one.value);
                    let what = format!("{} is {found}, expected a text, a number, true or false", one.name.as_str());
                    reading.mistake(one.value.range(), what);
                }
                None => {}
            }
        }
        settings.insert(name.to_owned(), reading.plain(value, &self.what(key)));
    }

    fn pyspark(&self, reading: &mut JsonReader<'a>) -> Job {
        let mut settings = Map::new();
        match self.get("pymodule").map(|value| reading.text(value, &self.what("pymodule"))) {
            Some(Some(module)) => drop(settings.insert("module".to_owned(), json!(&*module))),
            Some(None) => {}
            None => {
                let what = format!("{} has no pymodule, expected the module of Python that its jobs run", self.name);
                reading.mistake(self.property.name.range(), what);
            }
        }
        for (key, name) in [("spark_conf", "conf"), ("env", "env")] {
            self.texts(reading, key, name, &mut settings);
        }
        for (key, name) in [("env_from_os", "envFromOs"), ("uris", "uris")] {
            if let Some(list) = self.get(key).and_then(|value| reading.list(value, &self.what(key))) {
                settings.insert(name.to_owned(), list.iter().map(|one| Json::String(one.to_string())).collect());
            }
        }
        for (key, name) in [("read_fp", "read"), ("write_fp", "write")] {
            let Some(value) = self.get(key) else { continue };
            let Some(text) = reading.text(value, &self.what(key)) else { continue };
            self.placeholders(reading, value, key, &text);
            settings.insert(name.to_owned(), json!(&*text));
        }
        if let Some(count) =
            self.get("minPartitions").and_then(|value| reading.count(value, &self.what("minPartitions"), 1))
        {
            settings.insert("partitions".to_owned(), count.into());
        }
        Job::new("pyspark", settings)
    }

    /// A job of an own kind: a program in the folder of plugins.
    fn own(&self, reading: &mut JsonReader<'a>, name: &str) -> Job {
        let job = |settings: Json| Job::new("plugin", settings.as_object().cloned().unwrap_or_default());
        let place = self.get("job_type").map_or(self.property.range, Ranged::range);
        let config = reading.plain(&self.property.value, self.name);
        if config.to_string().len() > LONGEST_APP {
            reading.mistake(
                place,
                format!("{} is too long for an own job_type, expected at most {LONGEST_APP} bytes", self.name),
            );
        }
        let Some(folder) = self.folder.map(|folder| folder.join(PLUGINS)) else {
            return job(json!({ "plugin": name, "config": config }));
        };
        if let Err(why) = plugin(&folder, name) {
            if is_import_path(name) {
                return job(json!({ "module": name, "config": config }));
            }
            reading.mistake(
                place,
                format!(
                    "job_type of {} is \"{name}\", expected bash, pyspark, a program in {PLUGINS}/, or the import path of a module of \
                     Python, such as jobs.count: {why}",
                    self.name
                ),
            );
        }
        job(json!({ "plugin": name, "folder": folder, "config": config }))
    }

    /// The retry policy: `max_retry` is the number of attempts in all.
    pub(super) fn retry(&self, reading: &mut JsonReader<'a>) -> RetryPolicy {
        let attempts = self.get("max_retry").and_then(|value| reading.count(value, &self.what("max_retry"), 1));
        // As in Stolos, a job whose worker was lost has failed.
        let on_unknown = OnUnknown::Retry;
        RetryPolicy { on_unknown, ..RetryPolicy::immediate(attempts.unwrap_or(ATTEMPTS).saturating_sub(1)) }
    }

    /// The most of its jobs that run at once; no limit if the app doesn't say.
    pub(super) fn concurrency(&self, reading: &mut JsonReader<'a>) -> Option<u32> {
        self.get("concurrency").and_then(|value| reading.count(value, &self.what("concurrency"), 1))
    }

    /// The deadline of its jobs, counted from the opening of each.
    pub(super) fn deadline(&self, reading: &mut JsonReader<'a>) -> Option<Deadline> {
        let value = self.get("deadline")?;
        let read = Deadline::read(&plain(value), &Zone::utc());
        read.map_err(|error| reading.mistake(value.range(), format!("{}: {error}", self.what("deadline")))).ok()
    }

    pub(super) fn pools(&self, reading: &mut JsonReader<'a>) -> Vec<PoolUse> {
        let Some(value) = self.get("pools") else { return Vec::new() };
        let such = "a list such as [{\"pool\": \"spark\", \"size\": 4, \"permits\": 1}]";
        let mut pools: Vec<PoolUse> = reading.data(value, &self.what("pools"), such).unwrap_or_default();
        pools.sort_by(|a, b| a.pool.cmp(&b.pool));
        let twice = pools.windows(2).any(|two| two[0].pool == two[1].pool);
        let never = pools.iter().any(|one| one.flaw().is_some());
        if twice || never {
            reading.mistake(
                value.range(),
                format!("{}: expected each pool once, with 1 to \"size\" permits", self.what("pools")),
            );
        }
        pools
    }

    /// The arguments that its jobs expect.
    pub(super) fn parameters(&self, reading: &mut JsonReader<'a>) -> Vec<Parameter> {
        let such = "an object such as {\"rows\": 1000}";
        let read = |value| reading.data::<Parameters>(value, &self.what("parameters"), such);
        self.get("parameters").and_then(read).unwrap_or_default().0
    }

    /// The schedule that opens jobs, and which of its times count that passed unplanned.
    pub(super) fn feed(&self, reading: &mut JsonReader<'a>) -> Option<(Feed, CatchUp)> {
        let value = self.get("feed")?;
        let what = self.what("feed");
        let object = reading.object(value, &what)?;
        feed_keys(reading, object, &what);
        let catch_up = object.get("catchUp").map(|one| catch_up(reading, &one.value, &what));
        let mut part =
            |name: &str| object.get(name).and_then(|one| reading.text(&one.value, &format!("{name} in {what}")));
        let (identifier, cron, zone) = (part("identifier"), part("cron"), part("zone"));
        let (Some(identifier), Some(cron)) = (identifier, cron) else {
            let such =
                "expected such as {\"identifier\": \"date\", \"cron\": \"0 0 3 * * ?\", \"zone\": \"Europe/Berlin\"}";
            reading.mistake(value.range(), format!("{what} lacks its identifier or its cron expression, {such}"));
            return None;
        };
        if let Err(why) = self.may_be_fed(&identifier) {
            reading.mistake(value.range(), format!("{what}: {why}"));
        }
        let schedule = schedule(&cron, zone.as_deref());
        let schedule = schedule.map_err(|why| reading.mistake(value.range(), format!("{what}: {why}"))).ok()?;
        Some((Feed { identifier, schedule }, catch_up.flatten().unwrap_or_default()))
    }

    fn may_be_fed(&self, identifier: &str) -> Result<(), String> {
        let keys = self.keys;
        if !matches!(keys.identifiers.get(identifier), Some(Kind::Date { .. }))
            || keys.template.position(identifier).is_none()
        {
            return Err(format!(
                "{identifier} is no date of {}, expected an identifier that is said to be a date",
                keys.template.as_str()
            ));
        }
        let is_open = |name: &str| name != identifier && keys.domains.get(name).is_none_or(Vec::is_empty);
        match keys.template.identifiers().find(|name| is_open(name)) {
            Some(open) => Err(format!("nothing says which values of {open} to open: list them in autofill_values")),
            None => Ok(()),
        }
    }
}

fn schedule(cron: &str, zone: Option<&str>) -> Result<Schedule, String> {
    let cron = Cron::parse(cron).map_err(|error| error.to_string())?;
    let zone = zone.map_or_else(|| Ok(Zone::utc()), Zone::parse).map_err(|error| error.to_string())?;
    Ok(Schedule::Cron(CronSchedule::new(cron, zone, Gap::default(), Fold::default())))
}

/// Whether a name is the import path of a module within a package of Python, such as `jobs.count`.
fn is_import_path(name: &str) -> bool {
    let is_identifier = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    name.contains('.') && name.split('.').all(is_identifier)
}

/// The program of a kind of jobs: a file of that name in the folder itself, wherever links may lead.
///
/// # Errors
/// In words, when there is none.
pub(crate) fn plugin(folder: &Path, name: &str) -> Result<std::path::PathBuf, String> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err("that is no name of a file".to_owned());
    }
    let (within, path) = (folder.to_owned(), folder.join(name));
    let asked = path.clone();
    let answer = kelos_sandbox::answered(move || Ok(program_at(&within, &asked)));
    answer.unwrap_or_else(|error| Err(format!("{} can't be looked at: {error}", path.display())))
}

fn program_at(folder: &Path, path: &Path) -> Result<std::path::PathBuf, String> {
    use std::os::unix::fs::PermissionsExt as _;
    let inside = std::fs::canonicalize(folder).and_then(|folder| Ok((std::fs::canonicalize(path)?, folder)));
    let (program, folder) = inside.map_err(|_| format!("there is no {}", path.display()))?;
    if program.parent() != Some(&folder) {
        return Err(format!("{} leads out of its folder", path.display()));
    }
    let meta = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    if !meta.is_file() {
        return Err(format!("{} is no file", program.display()));
    }
    let executable = meta.permissions().mode() & 0o111 != 0;
    if executable { Ok(program) } else { Err(format!("{} can't be executed", program.display())) }
}

/// Reports keys of a feed that nobody reads.
fn feed_keys(reading: &mut JsonReader<'_>, feed: &Object<'_>, what: &str) {
    for property in feed.properties.iter().filter(|property| !FEED.contains(&property.name.as_str())) {
        let name = property.name.as_str();
        let told = format!("{what} has the key \"{name}\", which nothing reads");
        match mistyped(name, FEED) {
            Some(meant) => reading.mistyped(property.range(), format!("{told}; did you mean {meant}?")),
            None => reading.warn(property.range(), format!("{told}; there are {}", FEED.join(", "))),
        }
    }
}

/// The policy for times that passed unplanned.
fn catch_up<'a>(reading: &mut JsonReader<'a>, value: &Value<'a>, what: &str) -> Option<CatchUp> {
    reading.data(value, &format!("catchUp in {what}"), "\"all\", \"latest\" or \"skip\"")
}
