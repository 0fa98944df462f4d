//! Alerts as a caller may see them, and the test of a channel.

use axum::http::StatusCode;
use kelos_alerts::{AlertsStatus, ChannelStatus, Concern, Condition, Incident, Rule, TestError};
use kelos_model::Actor;
use kelos_model::time::format_duration;
use kelos_store::StoreError;
use kelos_trust::Right;
use kelos_wire::{AlertChannelDto, AlertDto, AlertRuleDto, AlertsDto, Instant};

use crate::app::App;
use crate::blocking::blocking;
use crate::fault::Fault;
use crate::scope::View;

/// Members of an alert that are shown.
const SHOWN: usize = 20;

impl App {
    /// The alerts that the caller may see. Rules and channels belong to no project, and are shown to those who see all of them.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn alerts(&self) -> Result<AlertsDto, StoreError> {
        let Some(alerts) = self.node().alerts().cloned() else { return Ok(AlertsDto::default()) };
        let view = self.view().await?;
        let AlertsStatus { sends, rules, channels, open, news, problem } =
            blocking(move || Ok(alerts.status())).await?;
        let seen = |all: Vec<Incident>| {
            all.iter().filter(|incident| is_seen(incident, view.as_deref())).map(alert).collect::<Vec<_>>()
        };
        let dto = AlertsDto { sends, open: seen(open), news: seen(news), ..AlertsDto::default() };
        if view.is_some() {
            return Ok(dto);
        }
        let (rules, channels) = (rules.iter().map(rule).collect(), channels.into_iter().map(channel).collect());
        Ok(AlertsDto { rules, channels, problem, ..dto })
    }

    /// Sends a notice to a channel that says that nothing has happened.
    ///
    /// # Errors
    /// When the caller may not, there is no such channel, or it did not accept the notice.
    pub async fn test_channel(&self, channel: &str, by: &Actor) -> Result<(), Fault> {
        self.require(Right::Operate, None, "the test of a channel of alerts")?;
        let unknown = |known: Vec<String>| {
            let detail = format!("there is no channel \"{channel}\" of alerts");
            let hint = match known.is_empty() {
                true => "channels are in the file of --config, under \"alerts\"".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            Fault::not_found("unknown-channel", detail).with_hint(hint)
        };
        let Some(alerts) = self.node().alerts() else { return Err(unknown(Vec::new())) };
        alerts.test(channel, &by.to_string()).await.map_err(|error| match error {
            TestError::Unknown(known) => unknown(known),
            TestError::NotSent(why) => Fault::new(StatusCode::BAD_GATEWAY, "not-sent", format!("failed to {why}")),
        })
    }
}

/// Whether all that an incident is about is seen.
fn is_seen(incident: &Incident, view: Option<&View>) -> bool {
    let has = |view: &View| {
        let of_view = |one: &Concern| one.about.workflow.as_ref().is_some_and(|workflow| view.has(workflow));
        !incident.concerns.is_empty() && !incident.is_wider && incident.concerns.iter().all(of_view)
    };
    view.is_none_or(has)
}

fn alert(incident: &Incident) -> AlertDto {
    AlertDto {
        condition: incident.condition.as_str().to_owned(),
        cause: incident.cause.clone(),
        opened_at: Instant(incident.opened_at),
        words: incident.words.clone(),
        members: incident.members.keys().take(SHOWN).cloned().collect(),
        count: incident.count(),
        told: incident.told.keys().cloned().collect(),
    }
}

fn rule(rule: &Rule) -> AlertRuleDto {
    let project = rule.project.iter().map(|project| format!("project {project}"));
    let tags = (!rule.tags.is_empty()).then(|| format!("tags {}", rule.tags.join(", ")));
    let workflow = rule.workflow.iter().map(|workflow| format!("workflow {workflow}"));
    let only: Vec<String> = project.chain(tags).chain(workflow).collect();
    let quiet = rule.sends.iter().map(|sends| format!("quiet {}-{} {}", sends.end(), sends.start(), sends.zone()));
    let after = rule.after.iter().map(|after| format!("after {}", format_duration(after.as_secs())));
    let repeat = rule.repeat.iter().map(|repeat| format!("every {}", format_duration(repeat.as_secs())));
    let timing: Vec<String> = after.chain(repeat).chain(quiet).collect();
    AlertRuleDto {
        name: rule.name.clone(),
        when: rule.when.iter().copied().map(Condition::as_str).map(str::to_owned).collect(),
        only: only.join("; "),
        to: rule.to.clone(),
        timing: timing.join("; "),
    }
}

fn channel(channel: ChannelStatus) -> AlertChannelDto {
    let ChannelStatus { name, kind, waiting, sent, failed, problem, sent_at } = channel;
    AlertChannelDto { name, kind, waiting: waiting as u64, sent, failed, sent_at: sent_at.map(Instant), problem }
}
