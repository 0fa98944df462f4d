//! The file of a server's `--config`, checked against the definitions: groups of the board, links, watched prefixes, topics of Kafka,
//! checkpoints, alerts, rules of access, and what projects may use.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use kelos_alerts::Settings as AlertSettings;
use kelos_checkpoints::Settings;
use kelos_engine::sources::Watch;
use kelos_front::{Groups, LimitSettings, Links, MetricSettings};
use kelos_kafka::Cluster;
use kelos_model::Subject;
use kelos_model::history::HistorySettings;
use kelos_model::secret::AllowList;
use kelos_sandbox::{LoadResult, Problem, ProblemCode, Severity, closest, not_allowed};
use kelos_telemetry::TelemetrySettings;
use kelos_tls::{Trust, TrustSettings};
use kelos_trust::Rules;
use serde_json::Value;

use crate::failure::Failure;
use crate::host::LONGEST_CONFIG;

/// The problems of the file, whose text is added to the sources.
///
/// # Errors
/// When it can't be read at all.
pub(super) fn problems(
    path: &Path,
    loaded: &mut LoadResult,
    serves: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Vec<Problem>, Failure> {
    let name = path.display().to_string();
    let text = kelos_sandbox::read_text(path, LONGEST_CONFIG)
        .map_err(|why| Failure::usage(format!("use {name} as the file of --config: it {why}")))?;
    loaded.sources.insert(name.clone(), text.clone());
    let file = ConfigFile { name, text };
    let watches = Watch::parse(&file.text);
    let clusters = Cluster::parse(&file.text);
    let allowed = AllowList::parse(&file.text);
    let alerts = AlertSettings::parse(&file.text);
    let mistakes = [
        allowed.as_ref().err().cloned(),
        Groups::of_file(&file.text).err(),
        Links::parse(&file.text).err(),
        watches.as_ref().err().cloned(),
        clusters.as_ref().err().cloned(),
        TrustSettings::default().with_file(&file.text).and_then(Trust::new).err(),
        LimitSettings::parse(&file.text).err(),
        MetricSettings::parse(&file.text).err(),
        HistorySettings::parse(&file.text).err(),
        Settings::parse(&file.text).err(),
        alerts.as_ref().err().cloned(),
        TelemetrySettings::parse(&file.text).err(),
        Rules::parse(&file.text).err().map(|error| error.to_string()),
    ];
    let mut found = Vec::new();
    for mistake in mistakes.into_iter().flatten() {
        let problem = file.mistake(&mistake);
        // A file that is no JSON is one mistake, though each part finds it.
        if !found
            .iter()
            .any(|known: &Problem| known.line > 0 && (known.line, known.column) == (problem.line, problem.column))
        {
            found.push(problem);
        }
    }
    found.extend(file.of_watches(watches.as_deref().unwrap_or_default(), loaded, serves));
    found.extend(file.of_topics(clusters.as_deref().unwrap_or_default(), loaded));
    found.extend(file.of_names(loaded));
    found.extend(file.of_alerts(&alerts.unwrap_or_default(), loaded));
    if let Ok(allowed) = allowed {
        found.extend(file.of_projects(&allowed, loaded));
        found.extend(not_allowed(loaded, &allowed));
    }
    Ok(found)
}

/// The subjects that triggers wait for.
fn awaited(loaded: &LoadResult) -> BTreeSet<Subject> {
    loaded.workflows.iter().chain(&loaded.refused).flat_map(|one| one.trigger.subjects()).collect()
}

/// The hint that a name which is close was meant.
fn meant(close: Option<&str>) -> Option<String> {
    close.map(|close| format!("did you mean \"{close}\"?"))
}

struct ConfigFile {
    name: String,
    text: Arc<str>,
}

impl ConfigFile {
    /// A mistake whose message may end with its place in the JSON: `… at line 3 column 7; expected …`.
    fn mistake(&self, message: &str) -> Problem {
        let problem = Problem::error(&self.name, ProblemCode::BadConfig, message.to_owned());
        let place = message.split_once(" at line ").and_then(|(before, rest)| {
            let (line, rest) = rest.split_once(" column ")?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (column, after) = rest.split_at(digits);
            Some((line.parse().ok()?, column.parse().ok()?, format!("{before}{after}")))
        });
        match place {
            Some((line, column, message)) => Problem { line, column, message, ..self.on_line(problem, line) },
            // The first text in quotes that is in the file: a rule without a name is called by its number.
            None => {
                let quoted = message.split('"').skip(1).step_by(2);
                let placed = quoted.map(|text| self.at_quoted(problem.clone(), text)).find(|one| one.line > 0);
                placed.unwrap_or(problem)
            }
        }
    }

    fn warning(&self, code: ProblemCode, message: String, hint: Option<String>, at: &str) -> Problem {
        let problem = Problem { severity: Severity::Warning, hint, ..Problem::error(&self.name, code, message) };
        self.at_quoted(problem, at)
    }

    /// The problem where a text first stands in quotes.
    fn at_quoted(&self, problem: Problem, text: &str) -> Problem {
        let quoted = format!("\"{text}\"");
        let found = (1..).zip(self.text.lines()).find_map(|(number, line)| Some((number, line, line.find(&quoted)?)));
        let Some((number, line, at)) = found.filter(|_| !text.is_empty()) else { return problem };
        let column = line.get(..at).map_or(0, |before| before.chars().count()) + 1;
        Problem { line: number, column: u32::try_from(column).unwrap_or(1), ..self.on_line(problem, number) }
    }

    fn on_line(&self, problem: Problem, line: u32) -> Problem {
        let at = usize::try_from(line).unwrap_or(0).saturating_sub(1);
        Problem { source_line: self.text.lines().nth(at).map(str::to_owned), ..problem }
    }

    /// Prefixes that can't be served, and datasets that nobody waits for.
    fn of_watches(
        &self,
        watches: &[Watch],
        loaded: &LoadResult,
        serves: &dyn Fn(&str) -> Result<(), String>,
    ) -> Vec<Problem> {
        let awaited = awaited(loaded);
        let mut found = Vec::new();
        for watch in watches {
            if let Err(why) = serves(&watch.prefix) {
                let words = format!("the watched prefix can't be served: {why}");
                found.push(self.warning(ProblemCode::PathUnserved, words, None, &watch.prefix));
            }
            found.extend(self.of_dataset(&watch.dataset, &awaited, &watch.prefix));
        }
        found
    }

    /// A dataset that nobody waits for; `at` is a text beside it in the file.
    fn of_dataset<'a>(&self, dataset: &str, awaited: &'a BTreeSet<Subject>, at: &str) -> Option<Problem> {
        let named = |subject: &'a Subject| match subject {
            Subject::Partitions(dataset) => Some(&**dataset),
            _ => None,
        };
        let datasets: Vec<&str> = awaited.iter().filter_map(named).collect();
        let hint = meant(closest(dataset, datasets.iter().copied()));
        let words = format!("no trigger waits for partitions of dataset \"{dataset}\"");
        (!datasets.contains(&dataset)).then(|| self.warning(ProblemCode::BadConfig, words, hint, at))
    }

    /// Topics whose messages are for datasets, signals, flows or steps that nobody defines.
    fn of_topics(&self, clusters: &[Cluster], loaded: &LoadResult) -> Vec<Problem> {
        let awaited = awaited(loaded);
        let mut found = Vec::new();
        for topic in clusters.iter().flat_map(|cluster| &cluster.topics) {
            if let Some(dataset) = topic.dataset_name() {
                found.extend(self.of_dataset(&dataset, &awaited, &topic.topic));
            }
            let fixed = |text: &Option<String>| text.clone().filter(|text| !text.contains("${"));
            let signal = fixed(&topic.signal);
            if let Some(workflow) = fixed(&topic.workflow) {
                found.extend(self.of_flow(&topic.topic, &workflow, signal, loaded));
            } else if let Some(signal) = signal.filter(|_| topic.workflow.is_none())
                && !awaited.contains(&Subject::Signal(signal.as_str().into()))
            {
                let words = format!("no trigger waits for the signal \"{signal}\"");
                found.push(self.warning(ProblemCode::BadConfig, words, None, &topic.topic));
            }
        }
        found
    }

    /// A flow that nobody defines, or that has no step that waits for a signal.
    fn of_flow(&self, topic: &str, workflow: &str, signal: Option<String>, loaded: &LoadResult) -> Option<Problem> {
        let all = || loaded.workflows.iter().chain(&loaded.refused);
        let unsound = |code, words: String, close: Option<&str>| {
            let hint = meant(close);
            Some(self.warning(code, words, hint, topic))
        };
        let Some(definition) = all().find(|one| one.id.as_str() == workflow) else {
            let words = format!("flow \"{workflow}\" is named here, and nobody defines it");
            let close = closest(workflow, all().map(|one| one.id.as_str()));
            return unsound(ProblemCode::UnknownWorkflow, words, close);
        };
        let Some(flow) = &definition.flow else {
            return unsound(
                ProblemCode::BadConfig,
                format!("workflow \"{workflow}\" is no flow, and takes no signals"),
                None,
            );
        };
        let signal = signal.filter(|signal| !flow.signals().any(|one| one == signal.as_str()))?;
        let close = closest(&signal, flow.signals());
        unsound(ProblemCode::BadConfig, format!("no step of {workflow} waits for the signal \"{signal}\""), close)
    }

    /// Projects that nobody defines, to which secrets or users are allowed.
    fn of_projects(&self, allowed: &AllowList, loaded: &LoadResult) -> Vec<Problem> {
        let known: BTreeSet<&str> =
            loaded.workflows.iter().chain(&loaded.refused).map(|workflow| workflow.project.as_str()).collect();
        let named: BTreeSet<&str> = allowed.projects().collect();
        let unknown = named.difference(&known).map(|name| {
            let hint = meant(closest(name, known.iter().copied()));
            self.warning(
                ProblemCode::BadConfig,
                format!("project \"{name}\" is named here, and nobody defines it"),
                hint,
                name,
            )
        });
        unknown.collect()
    }

    /// Rules of alerts that are about nothing, and channels without rules.
    fn of_alerts(&self, alerts: &AlertSettings, loaded: &LoadResult) -> Vec<Problem> {
        let all = || loaded.workflows.iter().chain(&loaded.refused);
        let ids: BTreeSet<&str> = all().map(|one| one.id.as_str()).collect();
        let projects: BTreeSet<&str> = all().map(|one| one.project.as_str()).collect();
        let tags: BTreeSet<&str> = all().flat_map(|one| &one.about.tags).map(String::as_str).collect();
        let unknown = |rule: &str, words: String, name: &str, known: &BTreeSet<&str>| {
            let hint = meant(closest(name, known.iter().copied()));
            self.warning(ProblemCode::BadConfig, format!("rule \"{rule}\" of alerts: {words}"), hint, name)
        };
        let mut found = Vec::new();
        for rule in &alerts.rules {
            if let Some(name) = rule.project.as_deref().filter(|name| !projects.contains(name)) {
                found.push(unknown(&rule.name, format!("nobody defines the project \"{name}\""), name, &projects));
            }
            for tag in rule.tags.iter().filter(|tag| !tags.contains(tag.as_str())) {
                found.push(unknown(&rule.name, format!("no workflow has the tag \"{tag}\""), tag, &tags));
            }
            if let Some(name) = rule.workflow.as_deref().filter(|_| !ids.iter().any(|id| rule.is_of(id))) {
                let words = format!("nobody defines a workflow \"{name}\"");
                found.push(unknown(&rule.name, words, name, &ids));
            }
        }
        if alerts.rules.is_empty() && !alerts.channels.is_empty() {
            let words = "alerts have channels and no rules: nobody is told of anything".to_owned();
            let hint = Some("expected `rules` beside `channels`: [{\"to\": [\"NAME\"]}]".to_owned());
            found.push(self.warning(ProblemCode::BadConfig, words, hint, "channels"));
        }
        found
    }

    /// Names of workflows that nobody defines.
    fn of_names(&self, loaded: &LoadResult) -> Vec<Problem> {
        let file: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let listed = |name: &str| file.get(name).and_then(Value::as_array).into_iter().flatten();
        let groups = listed("groups").filter_map(|group| group.get("workflows")?.as_array()).flatten();
        let links = listed("links").filter_map(|link| link.get("workflow"));
        let named: BTreeSet<&str> = groups.chain(links).filter_map(Value::as_str).collect();
        let known: BTreeSet<&str> =
            loaded.workflows.iter().chain(&loaded.refused).map(|workflow| workflow.id.as_str()).collect();
        let unknown = named.difference(&known).map(|name| {
            let hint = meant(closest(name, known.iter().copied()));
            let words = format!("workflow \"{name}\" is named here, and nobody defines it");
            self.warning(ProblemCode::UnknownWorkflow, words, hint, name)
        });
        unknown.collect()
    }
}
