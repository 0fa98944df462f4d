//! The part of a server's file that is about alerts.

mod mail;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kelos_executors::http::Url;
use kelos_model::secret::DeclaredSecret;
use kelos_model::time::{Window, Zone, parse_duration};
use serde::Deserialize;
use serde_json::Value;

use crate::channel::{Channel, Outlet, PrivateText};
use crate::condition::Condition;
use crate::rule::Rule;
use crate::template::Template;

/// The form that messages about mistakes show.
const FORM: &str = r#"{"alerts": {"channels": {"team": {"webhook": "https://host/hook", "template": "slack"}}, "rules": [{"to": ["team"]}]}}"#;
/// The most channels and rules.
const MOST: usize = 100;
/// The shortest time between two notices of what lasts.
const SHORTEST_REPEAT: i64 = 60;

/// Channels and rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The channels by name.
    pub channels: BTreeMap<String, Channel>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The address of the server in links; none where it is the one that it listens on.
    pub url: Option<String>,
}

#[derive(Deserialize)]
struct File {
    alerts: Option<Part>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    #[serde(default)]
    channels: BTreeMap<String, ChannelPart>,
    #[serde(default)]
    rules: Vec<RulePart>,
    url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelPart {
    webhook: Option<Value>,
    template: Option<Template>,
    secret: Option<Value>,
    command: Option<Vec<String>>,
    mail: Option<mail::MailPart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulePart {
    name: Option<String>,
    when: Option<Vec<String>>,
    project: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    workflow: Option<String>,
    to: Vec<String>,
    quiet: Option<QuietPart>,
    repeat: Option<String>,
    after: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuietPart {
    from: String,
    until: String,
    zone: Option<String>,
}

impl Settings {
    /// Parses the text of the file that a server is started with; its other parts are ignored.
    ///
    /// # Errors
    /// The mistake, where it is, and what was expected.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("\"alerts\": {error}; expected {FORM}"))?;
        let Some(Part { channels, rules, url }) = file.alerts else { return Ok(Settings::default()) };
        let of = |why: String| format!("its alerts: {why}");
        if channels.len() > MOST || rules.len() > MOST {
            return Err(of(format!(
                "there are {} channels and {} rules, expected at most {MOST} of each",
                channels.len(),
                rules.len()
            )));
        }
        let channels = channels.into_iter().map(|(name, part)| {
            let read = channel(part).map_err(|why| of(format!("channel \"{name}\": {why}")))?;
            Ok((name, read))
        });
        let channels: BTreeMap<String, Channel> = channels.collect::<Result<_, String>>()?;
        let mut names = BTreeSet::new();
        let mut read = Vec::new();
        for (place, part) in rules.into_iter().enumerate() {
            let name = part.name.clone().unwrap_or_else(|| (place + 1).to_string());
            let rule = rule(part, &name, &channels).map_err(|why| of(format!("rule \"{name}\": {why}")))?;
            if !names.insert(name.clone()) {
                return Err(of(format!("rule \"{name}\" is there twice, expected a name of its own for each")));
            }
            read.push(rule);
        }
        let url = url.map(|url| address(&url).map(|url| url.as_str().trim_end_matches('/').to_owned())).transpose();
        Ok(Settings { channels, rules: read, url: url.map_err(|why| of(format!("`url`: {why}")))? })
    }
}

fn channel(part: ChannelPart) -> Result<Channel, String> {
    let ChannelPart { webhook, template, secret, command, mail } = part;
    let is_webhook = webhook.is_some() || template.is_some() || secret.is_some();
    if let Some(part) = mail {
        if is_webhook || command.is_some() {
            return Err("`mail` has no webhook, template, secret or command beside it".to_owned());
        }
        return Ok(Channel { outlet: Outlet::Mail(mail::mail(part).map_err(|why| format!("`mail`: {why}"))?) });
    }
    if let Some(command) = command {
        if is_webhook {
            return Err("`command` has no webhook, template or secret beside it".to_owned());
        }
        if command.first().is_none_or(String::is_empty) {
            return Err("`command` is empty, expected a program and its arguments".to_owned());
        }
        return Ok(Channel { outlet: Outlet::Command(command) });
    }
    let template = template.unwrap_or_default();
    let secret = secret.map(|value| private("secret", value)).transpose()?;
    if secret.as_ref().is_some_and(|secret| matches!(secret, PrivateText::Plain(_))) {
        return Err("`secret` has the secret itself, expected its source: {\"secret\": \"env:NAME\"}".to_owned());
    }
    let url = match webhook {
        Some(value) => private("webhook", value)?,
        None if template == Template::Pagerduty => PrivateText::Plain(Template::PAGERDUTY.to_owned()),
        None => return Err("expected a `webhook`, a `command` or `mail`".to_owned()),
    };
    if let PrivateText::Plain(url) = &url {
        address(url).map_err(|why| format!("`webhook`: {why}"))?;
    }
    if template == Template::Pagerduty && secret.is_none() {
        return Err("expected the routing key of the service as `secret`: {\"secret\": \"env:NAME\"}".to_owned());
    }
    Ok(Channel { outlet: Outlet::Webhook { url, template, secret } })
}

/// A text, or the source of one.
fn private(field: &str, value: Value) -> Result<PrivateText, String> {
    match DeclaredSecret::of(&value) {
        Some(Ok(declared)) if declared.prefix.is_empty() => Ok(PrivateText::Secret(declared.source)),
        Some(Ok(_)) => Err(format!("`{field}` has a `prefix`, which has no meaning here")),
        Some(Err(why)) => Err(format!("`{field}`: {why}")),
        None => match value {
            Value::String(text) => Ok(PrivateText::Plain(text)),
            _ => Err(format!("`{field}` is neither a text nor {{\"secret\": \"env:NAME\"}}")),
        },
    }
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; expected an address such as https://host/path"))?;
    match url.scheme() {
        "http" | "https" if url.username().is_empty() && url.password().is_none() => Ok(url),
        "http" | "https" => Err("a name or password does not belong in a URL: it would be seen in logs".to_owned()),
        _ => Err("expected an address that begins with https://".to_owned()),
    }
}

fn rule(part: RulePart, name: &str, channels: &BTreeMap<String, Channel>) -> Result<Rule, String> {
    let RulePart { when, project, tags, workflow, to, quiet, repeat, after, .. } = part;
    let names = Condition::ALL.map(Condition::as_str).join(", ");
    let named =
        |one: String| Condition::named(&one).ok_or_else(|| format!("`when` has \"{one}\", expected some of: {names}"));
    let when = match when {
        Some(when) if when.is_empty() => return Err(format!("`when` is empty, expected some of: {names}")),
        Some(when) => when.into_iter().map(named).collect::<Result<_, _>>()?,
        None => Condition::ALL.into_iter().collect(),
    };
    if to.is_empty() {
        return Err("`to` is empty, expected names of channels".to_owned());
    }
    if let Some(unknown) = to.iter().find(|one| !channels.contains_key(*one)) {
        let known = channels.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(format!("`to` has \"{unknown}\", expected some of the channels: {known}"));
    }
    let to = to.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let repeat = repeat.map(|text| length("repeat", &text, SHORTEST_REPEAT)).transpose()?;
    let after = after.map(|text| length("after", &text, 0)).transpose()?;
    Ok(Rule { name: name.to_owned(), when, project, tags, workflow, to, sends: sends(quiet)?, repeat, after })
}

/// The hours in which a rule sends: all but the quiet ones.
fn sends(quiet: Option<QuietPart>) -> Result<Option<Window>, String> {
    let Some(QuietPart { from, until, zone }) = quiet else { return Ok(None) };
    let zone = zone.as_deref().map_or(Ok(Zone::utc()), Zone::parse);
    let zone = zone.map_err(|error| format!("`quiet`: {error}"))?;
    Window::new(&until, &from, zone).map(Some).map_err(|error| format!("`quiet`: {error}"))
}

fn length(field: &str, text: &str, least: i64) -> Result<SignedDuration, String> {
    let seconds = parse_duration(text).map_err(|error| format!("`{field}`: {error}"))?;
    match seconds >= least {
        true => Ok(SignedDuration::from_secs(seconds)),
        false => Err(format!("`{field}` is \"{text}\", expected at least {least}s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_lines_are_enough() {
        let settings = Settings::parse(
            r#"{"alerts": {
                "channels": {"team": {"webhook": {"secret": "env:SLACK_URL"}, "template": "slack"}},
                "rules": [{"to": ["team"]}]
            }}"#,
        )
        .unwrap();
        assert_eq!((settings.channels.len(), settings.rules[0].when.len()), (1, Condition::ALL.len()));
        assert_eq!(Settings::parse(r#"{"groups": []}"#), Ok(Settings::default()));
    }

    #[test]
    fn a_rule_says_what_when_and_to_whom() {
        let settings = Settings::parse(
            r#"{"alerts": {"channels": {"run": {"command": ["/usr/local/bin/tell", "--team"]}, "pager": {"template": "pagerduty", "secret": {"secret": "file:/run/pd"}}},
                "url": "https://kelos.example/", "rules": [{"name": "etl", "when": ["failed", "paused"], "project": "shop", "tags": ["etl"],
                "workflow": "reports.*", "to": ["run"], "quiet": {"from": "22:00", "until": "07:00", "zone": "Europe/Berlin"}, "repeat": "4h", "after": "30m"}]}}"#,
        )
        .unwrap();
        let rule = &settings.rules[0];
        assert_eq!(
            (rule.repeat, rule.after),
            (Some(SignedDuration::from_hours(4)), Some(SignedDuration::from_mins(30)))
        );
        let at = |text: &str| rule.awake(text.parse().unwrap()).to_string();
        assert_eq!(at("2026-01-10T22:30:00Z"), "2026-01-11T06:00:00Z");
        assert_eq!(at("2026-01-11T11:00:00Z"), "2026-01-11T11:00:00Z");
        assert_eq!(settings.url.as_deref(), Some("https://kelos.example"));
    }

    #[test]
    fn mistakes_say_where_they_are_and_what_was_expected() {
        let channels = r#""channels": {"team": {"command": ["true"]}}"#;
        for (rule, words) in [
            (r#"{"to": ["tram"]}"#, "its alerts: rule \"1\": `to` has \"tram\", expected some of the channels: team"),
            (r#"{"to": []}"#, "its alerts: rule \"1\": `to` is empty, expected names of channels"),
            (
                r#"{"name": "etl", "to": ["team"], "when": ["fails"]}"#,
                "its alerts: rule \"etl\": `when` has \"fails\", expected some of: failed, late, paused, frozen, backfill, worker, script, endpoint, disk, will-be-late, stuck, leader, nodes",
            ),
            (
                r#"{"to": ["team"], "quiet": {"from": "22", "until": "07:00"}}"#,
                "its alerts: rule \"1\": `quiet`: \"22\" is not a time of the day: expected HH:mm, from 00:00 to 23:59",
            ),
            (
                r#"{"to": ["team"], "repeat": "5s"}"#,
                "its alerts: rule \"1\": `repeat` is \"5s\", expected at least 60s",
            ),
        ] {
            assert_eq!(
                Settings::parse(&format!("{{\"alerts\": {{{channels}, \"rules\": [{rule}]}}}}")),
                Err(words.to_owned())
            );
        }
        for (channel, words) in [
            (r#"{"template": "slack"}"#, "its alerts: channel \"x\": expected a `webhook`, a `command` or `mail`"),
            (
                r#"{"webhook": "https://h/", "secret": "abc"}"#,
                "its alerts: channel \"x\": `secret` has the secret itself, expected its source: {\"secret\": \"env:NAME\"}",
            ),
            (
                r#"{"webhook": "https://me:pass@h/"}"#,
                "its alerts: channel \"x\": `webhook`: a name or password does not belong in a URL: it would be seen in logs",
            ),
        ] {
            let text = format!("{{\"alerts\": {{\"channels\": {{\"x\": {channel}}}}}}}");
            assert_eq!(Settings::parse(&text), Err(words.to_owned()));
        }
        let unknown = Settings::parse(r#"{"alerts": {"rule": []}}"#).unwrap_err();
        assert!(
            unknown
                .starts_with("\"alerts\": unknown field `rule`, expected one of `channels`, `rules`, `url` at line 1"),
            "{unknown}"
        );
    }
}
