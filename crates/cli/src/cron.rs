//! `kelos cron`: the next times of an expression.

use jiff::Timestamp;
use kelos_model::mistakes::steps_without_effect;
use kelos_model::time::{Cron, CronError, CronSchedule, Fold, Gap, Zone};
use serde_json::json;

use crate::failure::Failure;
use crate::options::Form;
use crate::{terminal, text, times};

#[derive(clap::Args)]
pub(crate) struct CronArgs {
    /// Expression with five fields as in a crontab, such as "0 12 * * MON-FRI", or six or seven as in Quartz, such as "0 0 12 ? * MON-FRI"
    expression: String,
    /// Print times after this one [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// How many times to print
    #[arg(long, value_name = "N", default_value_t = 5)]
    count: usize,
    /// Time zone of the expression, such as Europe/Berlin [default: UTC]
    #[arg(long)]
    zone: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(crate) fn run(args: &CronArgs) -> Result<u8, Failure> {
    let cron = Cron::parse(&args.expression).map_err(|error| pointed(&args.expression, &error))?;
    for item in steps_without_effect(&args.expression, &cron) {
        let range = item.split('/').next().unwrap_or_default();
        terminal::note(format!(
            "warning: the step of {item} has no effect: six or seven fields are Quartz's, which reads it as {range}"
        ));
        terminal::note("  hint: write the names one by one, such as MON,WED,FRI, or five fields as in a crontab");
    }
    let zone = match &args.zone {
        Some(name) => Zone::parse(name).map_err(|error| Failure::usage(format!("read the time zone: {error}")))?,
        None => Zone::utc(),
    };
    let schedule = CronSchedule::new(cron, zone.clone(), Gap::default(), Fold::default());
    let of_zone = args.zone.as_ref().map(|_| &zone);
    let after = args.after.as_ref().map(|text| times::time_in(text, of_zone)).transpose();
    let after = after.map_err(|why| Failure::usage(format!("print the times: {why}")))?.unwrap_or_else(Timestamp::now);
    let times: Vec<Timestamp> =
        std::iter::successors(schedule.next_after(after), |last| schedule.next_after(*last)).take(args.count).collect();
    if args.form.json {
        let times: Vec<String> = times.iter().map(Timestamp::to_string).collect();
        text::json(&json!({ "times": times }));
        return Ok(0);
    }
    for at in &times {
        let local = at.to_zoned(zone.rules().clone());
        let place = if args.zone.is_some() { "%a %Y-%m-%d %H:%M:%S %Z" } else { "%a" };
        text::line(format!("{}  {}", text::to_the_second(*at), local.strftime(place)));
    }
    if times.len() < args.count {
        eprintln!("no more times up to the end of the year 2199");
    }
    Ok(0)
}

const HINT: &str = "five fields are minute, hour, day-of-month, month and day-of-week, as in a crontab; six and seven are Quartz's: \
                    second first, and perhaps year last. For each working day at noon: \"0 12 * * MON-FRI\"";

/// The refusal with a caret below the part that is at fault.
fn pointed(expression: &str, error: &CronError) -> Failure {
    let before = expression.get(..error.span.start).map_or(0, |before| before.chars().count());
    let length = expression.get(error.span.clone()).map_or(1, |part| part.chars().count().max(1));
    let shown = vec![expression.to_owned(), format!("{}{}", " ".repeat(before), "^".repeat(length))];
    Failure::usage(format!("read the cron expression: {error}")).show(shown).hint(HINT)
}
