//! The forms in which notices are sent.

use kelos_model::time::format_short;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::details::Details;
use crate::notice::Notice;
use crate::phase::Phase;

/// The longest text of a block that Slack takes, in characters.
const LONGEST_SLACK: usize = 2_900;
/// The longest subject of a mail, in characters.
const LONGEST_SUBJECT: usize = 200;
/// The longest summary that PagerDuty takes, in characters.
const LONGEST_SUMMARY: usize = 1_000;

/// The form of a webhook's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Template {
    /// All that is known, as one object.
    #[default]
    Plain,
    /// An incoming webhook of Slack, and of what takes the same.
    Slack,
    /// The events API of PagerDuty, version 2.
    Pagerduty,
}

impl Template {
    /// The address of PagerDuty.
    pub(crate) const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";

    /// The body of a notice. `secret` is the routing key of PagerDuty.
    pub(crate) fn body(self, notice: &Notice, details: &Details, secret: Option<&str>) -> Value {
        match self {
            Template::Plain => plain(notice, details),
            Template::Slack => slack(notice, details),
            Template::Pagerduty => pagerduty(notice, details, secret.unwrap_or_default()),
        }
    }
}

/// One line that says what it is about.
fn title(notice: &Notice) -> String {
    let times = match notice.count {
        0 | 1 => String::new(),
        count => format!(" ({count} in all)"),
    };
    match notice.phase {
        Phase::Opened | Phase::Test => format!("{}{times}", notice.words),
        Phase::Again => format!("again: {}{times}", notice.words),
        Phase::Still => format!("still: {}{times}", notice.words),
        Phase::Over => format!("over: {}", notice.words),
    }
}

fn plain(notice: &Notice, details: &Details) -> Value {
    json!({
        "key": notice.key,
        "incident": notice.incident,
        "phase": notice.phase.as_str(),
        "rule": notice.rule,
        // A test is no failure: whoever chooses by conditions does not wake anybody.
        "condition": if notice.phase == Phase::Test { notice.phase.as_str() } else { notice.condition.as_str() },
        "title": title(notice),
        "why": details.why,
        "project": notice.about.project,
        "workflow": notice.about.workflow,
        "members": notice.members,
        "count": notice.count,
        "followers": details.followers,
        "run": notice.run.as_ref().map(|run| run.number),
        "output": details.output,
        "link": details.link,
        "openedAt": notice.opened_at,
        "dueAt": notice.due,
    })
}

/// The lines that follow the title.
fn lines(notice: &Notice, details: &Details) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = details.why.as_ref().filter(|why| !notice.words.contains(why.as_str())) {
        lines.push(why.clone());
    }
    if details.followers > 0 {
        let (slots, wait) = if details.followers == 1 { ("slot", "waits") } else { ("slots", "wait") };
        let least = if details.may_have_more { "at least " } else { "" };
        lines.push(format!("{least}{} {slots} {wait} for it", details.followers));
    }
    if notice.count > 1 {
        let more = notice.count.saturating_sub(notice.members.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("{}{more}", notice.members.join(", ")));
    }
    lines
}

/// The subject of a mail.
pub(crate) fn subject(notice: &Notice) -> String {
    let line: Vec<String> = title(notice).split_whitespace().map(str::to_owned).collect();
    cut(&line.join(" "), LONGEST_SUBJECT)
}

/// The text of a mail.
pub(crate) fn text(notice: &Notice, details: &Details) -> String {
    let mut parts = vec![title(notice)];
    parts.extend(lines(notice, details));
    if !details.output.is_empty() && notice.phase != Phase::Over {
        let lines = details.output.iter().map(|line| format!("    {line}"));
        let run = notice.run.as_ref().map(|run| format!(" of run {}", run.number)).unwrap_or_default();
        parts.push(format!("The last lines{run}:\n\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    parts.extend(details.link.clone());
    if notice.phase != Phase::Test {
        let since = format_short(notice.opened_at);
        parts.push(format!("{} since {since}, told by the rule {} of Kelos", notice.condition.as_str(), notice.rule));
    }
    format!("{}\n", parts.join("\n\n"))
}

fn slack(notice: &Notice, details: &Details) -> Value {
    let mark = match notice.phase {
        Phase::Over => ":white_check_mark:",
        Phase::Test => ":wave:",
        _ if notice.condition.is_moment() => ":information_source:",
        _ => ":rotating_light:",
    };
    let title = escaped(&title(notice));
    let mut text = vec![format!("{mark} *{title}*")];
    text.extend(lines(notice, details).iter().map(|line| escaped(line)));
    if !details.output.is_empty() && notice.phase != Phase::Over {
        text.push(format!("```{}```", escaped(&details.output.join("\n")).replace("```", "'''")));
    }
    let mut blocks =
        vec![json!({"type": "section", "text": {"type": "mrkdwn", "text": cut(&text.join("\n"), LONGEST_SLACK)}})];
    if let Some(link) = &details.link {
        let words = format!("<{link}|open in Kelos> · rule {}", escaped(&notice.rule));
        blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": words}]}));
    }
    json!({"text": format!("{mark} {title}"), "blocks": blocks})
}

/// Text in which characters that Slack takes for marks are shown as they are.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn pagerduty(notice: &Notice, details: &Details, routing_key: &str) -> Value {
    let action = if notice.phase == Phase::Over { "resolve" } else { "trigger" };
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": notice.incident,
        "client": "Kelos",
    });
    if action == "resolve" {
        return event;
    }
    let severity = match notice.phase {
        Phase::Test => "info",
        _ if notice.condition.is_moment() => "warning",
        _ => "error",
    };
    let of_server = || "kelos".to_owned();
    event["payload"] = json!({
        "summary": cut(&title(notice), LONGEST_SUMMARY),
        "source": notice.about.workflow.as_ref().map_or_else(of_server, ToString::to_string),
        "severity": severity,
        "timestamp": notice.due,
        "component": notice.about.workflow,
        "group": notice.about.project,
        "class": notice.condition.as_str(),
        "custom_details": plain(notice, details),
    });
    if let Some(link) = &details.link {
        event["client_url"] = json!(link);
        event["links"] = json!([{"href": link, "text": "open in Kelos"}]);
    }
    event
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::condition::Condition;

    fn notice(phase: Phase) -> Notice {
        let mut notice = Notice::test("team", Timestamp::UNIX_EPOCH, "ann");
        (notice.phase, notice.condition, notice.count) = (phase, Condition::Failed, 2);
        notice.words = "etl.load@2026-01-01T00:00Z failed (run 3: exited with status 3)".to_owned();
        notice.members = vec!["etl.load@2026-01-01T00:00Z".to_owned(), "etl.load@2026-01-02T00:00Z".to_owned()];
        notice
    }

    fn details() -> Details {
        Details {
            why: Some("exited with status 3".to_owned()),
            followers: 300,
            may_have_more: false,
            output: vec!["a < b".to_owned()],
            link: Some("https://kelos.example/ui/workflows/etl.load".to_owned()),
        }
    }

    #[test]
    fn slack_gets_text_and_blocks() {
        let body = Template::Slack.body(&notice(Phase::Opened), &details(), None);
        let words = body["blocks"][0]["text"]["text"].as_str().unwrap();
        assert_eq!(
            words,
            ":rotating_light: *etl.load@2026-01-01T00:00Z failed (run 3: exited with status 3) (2 in all)*\n300 slots wait for it\n\
             etl.load@2026-01-01T00:00Z, etl.load@2026-01-02T00:00Z\n```a &lt; b```"
        );
        assert!(body["text"].as_str().unwrap().contains("failed"));
    }

    #[test]
    fn a_mail_says_all_in_plain_text() {
        let mut notice = notice(Phase::Again);
        notice.words.push('\n');
        assert_eq!(
            subject(&notice),
            "again: etl.load@2026-01-01T00:00Z failed (run 3: exited with status 3) (2 in all)"
        );
        assert_eq!(
            text(&notice, &details()),
            "again: etl.load@2026-01-01T00:00Z failed (run 3: exited with status 3)\n (2 in all)\n\n300 slots wait for it\n\n\
             etl.load@2026-01-01T00:00Z, etl.load@2026-01-02T00:00Z\n\nThe last lines:\n\n    a < b\n\n\
             https://kelos.example/ui/workflows/etl.load\n\nfailed since 1970-01-01T00:00Z, told by the rule test of Kelos\n"
        );
    }

    #[test]
    fn pagerduty_triggers_and_resolves_by_the_same_key() {
        let (opened, over) = (notice(Phase::Opened), notice(Phase::Over));
        let trigger = Template::Pagerduty.body(&opened, &details(), Some("R0"));
        assert_eq!((&trigger["routing_key"], &trigger["event_action"]), (&json!("R0"), &json!("trigger")));
        assert_eq!(
            (&trigger["payload"]["severity"], &trigger["payload"]["class"]),
            (&json!("error"), &json!("failed"))
        );
        let resolve = Template::Pagerduty.body(&over, &details(), Some("R0"));
        assert_eq!(resolve["event_action"], "resolve");
        assert_eq!(resolve["dedup_key"], trigger["dedup_key"]);
    }
}
