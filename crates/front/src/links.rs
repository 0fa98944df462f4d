//! Links from runs to pages of other systems, such as Hue for jobs of Oozie: addresses with places to be filled in.
//!
//! Values are encoded, and may not be part of the name of a server, so that no script and no executor decides
//! where a link leads.

use kelos_model::id::is_invisible;
use kelos_model::run::shown_id;
use kelos_model::template::{self, KeyValues, TIME_NAMES};
use kelos_model::{Run, WorkflowId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

/// Bytes that are not escaped in a value.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Names of places that can be filled in, beside the parts of a slot's time.
const NAMES: [&str; 5] = ["externalId", "workflow", "run", "executor", "job"];
/// Longest name of a link, in characters.
const LONGEST_NAME: usize = 40;

/// Links from runs to pages of other systems. Cheap to default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links(Vec<Link>);

/// A link of runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    /// Its label.
    name: String,
    /// Its address, with places such as `${externalId}`.
    url: String,
    /// Only for runs of this executor.
    executor: Option<String>,
    /// Only for runs of this workflow.
    workflow: Option<WorkflowId>,
}

/// The part of the file that is about links; the rest is about groups.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    links: Vec<Link>,
}

impl Links {
    /// Reads the text of the file that also groups workflows.
    ///
    /// # Errors
    /// The mistake in it, and what was expected.
    pub fn parse(text: &str) -> Result<Links, String> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            format!("{error}; expected {{\"links\": [{{\"name\": \"…\", \"url\": \"https://…/${{externalId}}\"}}]}}")
        })?;
        file.links.iter().try_for_each(Link::check)?;
        Ok(Links(file.links))
    }

    /// The same, and a link to Hue for runs of Oozie, as Celos's interface has it.
    ///
    /// # Errors
    /// When it is no address of a page.
    pub fn with_hue(mut self, hue: &str) -> Result<Links, String> {
        let url = format!("{}/list_oozie_workflow/${{externalId}}", hue.trim_end_matches('/'));
        let link = Link { name: "Hue".to_owned(), url, executor: Some("oozie".to_owned()), workflow: None };
        link.check()?;
        self.0.push(link);
        Ok(self)
    }

    /// The names and addresses for a run. Links that name a job are left out while the run has none.
    pub fn of(&self, run: &Run) -> Vec<(&str, String)> {
        let fits = |link: &&Link| {
            link.executor.as_ref().is_none_or(|executor| *executor == run.executor)
                && link.workflow.as_ref().is_none_or(|workflow| *workflow == run.id.slot.workflow)
                && (run.external_id.is_some() || !link.url.contains("${externalId}"))
        };
        self.0.iter().filter(fits).map(|link| (link.name.as_str(), link.filled(run))).collect()
    }
}

impl Link {
    fn check(&self) -> Result<(), String> {
        let fail = |what: &str| Err(format!("the link \"{}\" to {}: {what}", self.name.escape_debug(), self.url));
        let length = self.name.chars().count();
        if self.name.trim().is_empty() || length > LONGEST_NAME || self.name.chars().any(is_invisible) {
            return fail(&format!("expected a name of 1 to {LONGEST_NAME} characters"));
        }
        let rest = self.url.strip_prefix("https://").or_else(|| self.url.strip_prefix("http://"));
        let Some(rest) = rest else { return fail("expected an address that begins with https:// or http://") };
        let server = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if server.is_empty() || server.contains("${") || server.contains('@') {
            return fail("expected a fixed server, without a user, before what is filled in");
        }
        if self.url.chars().any(|letter| letter.is_whitespace() || is_invisible(letter)) {
            return fail("expected no spaces");
        }
        match self.unknown() {
            Some(name) => fail(&format!(
                "nothing is known as ${{{name}}}; expected one of {}, {}",
                NAMES.join(", "),
                TIME_NAMES.join(", ")
            )),
            None => Ok(()),
        }
    }

    /// The first place that nothing is known for.
    fn unknown(&self) -> Option<&str> {
        let places = self.url.split("${").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
        places.into_iter().find(|name| !NAMES.contains(name) && !TIME_NAMES.contains(name))
    }

    fn filled(&self, run: &Run) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
        let parts = run.id.slot.key.time().map(KeyValues::at);
        let mut values = parts.as_ref().map(KeyValues::named).unwrap_or_default();
        values.push(("externalId".into(), encoded(run.external_id.as_deref().map_or("", shown_id))));
        values.push(("workflow".into(), encoded(run.id.slot.workflow.as_str())));
        values.push(("run".into(), run.id.number.to_string()));
        values.push(("job".into(), encoded(run.id.slot.key.job().map_or("", |id| id))));
        values.push(("executor".into(), encoded(&run.executor)));
        template::fill_from(&self.url, &values)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kelos_model::{RunId, RunState, SlotRef};

    use super::*;

    fn run(executor: &str, external_id: Option<&str>) -> Run {
        let at = "2015-09-13T15:00:00Z".parse::<Timestamp>().unwrap();
        Run {
            id: RunId { slot: SlotRef::at(WorkflowId::new("a?c").unwrap(), at), number: 2 },
            seq: 1,
            previous: 0,
            state: RunState::Running,
            executor: executor.to_owned(),
            external_id: external_id.map(str::to_owned),
            dispatched_at: at,
            started_at: None,
            ended_at: None,
            outcome: None,
            arguments: Default::default(),
            outputs: None,
            batch: None,
        }
    }

    #[test]
    fn what_is_filled_in_is_encoded() {
        let text = r#"{"groups": [], "links": [
            {"name": "Logs", "url": "https://logs.example/${workflow}/${year}-${month}?id=${externalId}#${run}"},
            {"name": "Spark", "url": "http://spark.example/${externalId}", "executor": "spark"}]}"#;
        let links = Links::parse(text).unwrap();
        let hostile = "x\" onclick=alert(1)&javascript:/../ {\"hidden\": 1}";
        let encoded = "x%22%20onclick%3Dalert%281%29%26javascript%3A%2F..%2F";
        let expected = format!("https://logs.example/a%3Fc/2015-09?id={encoded}#2");
        assert_eq!(links.of(&run("oozie", Some(hostile))), [("Logs", expected)]);
        assert_eq!(links.of(&run("spark", None)), []);
    }

    #[test]
    fn hue_is_for_oozie() {
        let links = Links::default().with_hue("http://hue.example/oozie/").unwrap();
        let found = links.of(&run("oozie", Some("0001-W")));
        assert_eq!(found, [("Hue", "http://hue.example/oozie/list_oozie_workflow/0001-W".to_owned())]);
        assert_eq!(links.of(&run("command", Some("0001-W"))), []);
        assert!(Links::default().with_hue("javascript:alert(1)").is_err());
    }

    #[test]
    fn links_that_could_lead_anywhere_are_refused() {
        let said = |url: &str| Links::parse(&format!(r#"{{"links": [{{"name": "a", "url": "{url}"}}]}}"#)).unwrap_err();
        assert!(said("javascript:alert(1)").contains("begins with https://"));
        for url in ["https://${externalId}/", "https:///x", "https://u:p@h/"] {
            assert!(said(url).contains("expected a fixed server"), "{url}");
        }
        assert!(said("https://h/${slot}").contains("nothing is known as ${slot}; expected one of externalId"));
        assert!(Links::parse(r#"{"links": [{"name": " ", "url": "https://h/"}]}"#).is_err());
        assert!(Links::parse(r#"{"links": [{"name": "a"}]}"#).unwrap_err().contains("expected {\"links\""));
    }
}
