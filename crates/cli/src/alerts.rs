//! `kelos alerts`: what is open, who is told, and whether the channels work.

use comfy_table::Cell;
use kelos_wire::{AlertChannelDto, AlertDto, AlertsDto};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::{render, text as words};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    what: Option<AlertsAction>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Subcommand)]
enum AlertsAction {
    /// Send a notice to a channel that says that nothing has happened
    Test(TestArgs),
}

#[derive(clap::Args)]
struct TestArgs {
    /// Channel, by its name in the file of --config
    channel: String,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &AlertsArgs) -> Result<u8, Failure> {
    if let Some(AlertsAction::Test(args)) = &args.what {
        return test(args);
    }
    let found: Reply<AlertsDto> = Connection::open(&args.door)?.get("list the alerts", "/alerts", &Query::new())?;
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if let Some(problem) = &found.problem {
        words::line(format!("alerts are not sent now: failed to {problem}"));
    }
    if found.open.is_empty() {
        words::line("No alert is open.");
    } else {
        list(&found.open);
    }
    if !found.news.is_empty() {
        words::line("In the last hour:");
        list(&found.news);
    }
    if found.channels.is_empty() {
        words::line("There are no channels: they are in the file of --config, under \"alerts\".");
        return Ok(0);
    }
    channels(&found.channels);
    rules(&found);
    Ok(0)
}

fn list(alerts: &[AlertDto]) {
    let mut table = render::table(&["SINCE", "CONDITION", "WHAT", "COUNT", "TOLD BY"]);
    for alert in alerts {
        table.add_row([
            Cell::new(alert.opened_at.short()),
            Cell::new(&alert.condition),
            Cell::new(&alert.words),
            Cell::new(alert.count),
            Cell::new(or_dash(&alert.told.join(", "))),
        ]);
    }
    render::print(table);
}

fn channels(channels: &[AlertChannelDto]) {
    let mut table = render::table(&["CHANNEL", "KIND", "SENT", "WAITING", "STATE"]);
    for channel in channels {
        let state = match (&channel.problem, channel.sent_at) {
            (Some(problem), _) => format!("failed to {problem}"),
            (None, None) => "not used".to_owned(),
            (None, Some(_)) => "fine".to_owned(),
        };
        table.add_row([
            Cell::new(&channel.name),
            Cell::new(&channel.kind),
            Cell::new(channel.sent),
            Cell::new(channel.waiting),
            Cell::new(state),
        ]);
    }
    render::print(table);
}

fn rules(found: &AlertsDto) {
    let mut table = render::table(&["RULE", "WHEN", "ONLY", "TO", "TIMING"]);
    for rule in &found.rules {
        table.add_row([
            Cell::new(&rule.name),
            Cell::new(rule.when.join(", ")),
            Cell::new(or_dash(&rule.only)),
            Cell::new(rule.to.join(", ")),
            Cell::new(or_dash(&rule.timing)),
        ]);
    }
    render::print(table);
}

fn test(args: &TestArgs) -> Result<u8, Failure> {
    let path = format!("/alerts/channels/{}/test", utf8_percent_encode(&args.channel, NON_ALPHANUMERIC));
    let tried: Reply<AlertChannelDto> = Connection::open(&args.door)?.post("try the channel", &path, &json!({}))?;
    if args.door.form.json {
        words::json(&tried);
        return Ok(0);
    }
    words::line(format!("{} accepted it: {}", tried.name, tried.kind));
    Ok(0)
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}
