//! Texts of the model: cron expressions, times, keys, templates, triggers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use kelos_model::constraint::Constraint;
use kelos_model::jobs::JobTemplate;
use kelos_model::project::ProjectName;
use kelos_model::shell::{Placeholders, ShellText};
use kelos_model::time::cron::Cron;
use kelos_model::time::{self, Dates, Firing, Window, Zone};
use kelos_model::trigger::Trigger;
use kelos_model::version::ProjectVersion;
use kelos_model::{RunName, SlotKey, SlotRef, Subject, WorkflowId};

use super::{equal, reread, text};
use crate::Target;
use crate::corpus::{lines, texts};

const CRON: &[&str] =
    &["*", "?", "L", "W", "LW", "#", "/", "-", ",", "MON", "SUN", "JAN", "DEC", "0", "59", "60", "31", "@daily", "R"];

pub(super) fn targets() -> Vec<Target> {
    vec![cron(), firing(), times(), keys(), templates(), placeholders(), triggers()]
}

/// The moments from which expressions are asked for their next and last time.
const FROM: [&str; 4] = ["2016-02-28T23:59:59", "1970-01-01T00:00:00", "2199-12-31T23:59:59", "2024-03-31T01:30:00"];

fn cron() -> Target {
    let expression = |line: &Vec<u8>| {
        let text = String::from_utf8_lossy(line);
        text.split('|').nth(1).unwrap_or_default().as_bytes().to_vec()
    };
    let corpus = lines("fixtures/cron/handpicked.txt").iter().map(expression).collect();
    text("cron", corpus, CRON, |input| {
        let Ok(cron) = Cron::parse(input) else { return Ok(()) };
        let again = reread("the expression", Cron::parse(&cron.to_string()))?;
        for from in FROM {
            let from: DateTime = from.parse().map_err(|error: jiff::Error| error.to_string())?;
            let next = cron.next_after(from);
            equal("the next time of the printed expression", &again.next_after(from), &next)?;
            if let Some(next) = next {
                if next <= from {
                    return Err(format!("the next time after {from} is {next}"));
                }
                let last = cron.previous_before(next);
                if last.is_some_and(|last| last > from) {
                    return Err(format!("{last:?} lies between {from} and the next time, {next}"));
                }
            }
            if let Some(last) = cron.previous_before(from)
                && (last >= from || cron.next_after(last).is_some_and(|next| next < from))
            {
                return Err(format!("the last time before {from} is {last}"));
            }
        }
        Ok(())
    })
}

fn firing() -> Target {
    let corpus = texts(&[
        "0 4 * * 1",
        "0 0 12 ? * MON-FRI",
        "*/5 * * * *",
        "0 0 0 L * ? *",
        "30 6 1,15 * *",
        "0 22 * * 1-5",
        "0 0 1 1 *",
    ]);
    text("firing", corpus, CRON, |input| {
        for zone in ["UTC", "Europe/Berlin", "America/Sao_Paulo"] {
            let zone = Zone::parse(zone).map_err(|error| error.to_string())?;
            for read in [Firing::parse, Firing::read_by_quartz] {
                let Ok(firing) = read(input, zone.clone()) else { continue };
                let again = reread("the text", read(firing.text(), zone.clone()))?;
                equal("the printed schedule", &again, &firing)?;
                let at = Timestamp::UNIX_EPOCH;
                if firing.schedule().next_after(at).is_some_and(|next| next <= at) {
                    return Err("the next time is not after the moment".to_owned());
                }
            }
        }
        Ok(())
    })
}

const TIMES: &[&str] = &[
    "now",
    "today",
    "yesterday",
    "-90m",
    "Z",
    "T",
    "+02:00",
    "2016-01-01",
    "12:00",
    "24:00",
    "1h",
    "7d",
    "ms",
    "Europe/Berlin",
];

fn times() -> Target {
    let corpus = texts(&[
        "now",
        "-90m",
        "-2d",
        "today",
        "yesterday",
        "06:00",
        "yesterday 06:00",
        "2016-01-01",
        "2016-01-01T12:00Z",
        "2016-01-01T12:00+02:00",
        "2015-09-13T15:01:00.000Z",
        "-009999-01-02T01:59:59Z",
        "9999-12-30T22:00:00Z",
        "1h30m",
        "90s",
        "1w",
        "1500ms",
        "08:00-18:30",
        "Europe/Berlin",
        "+05:30",
        "2026-01-01, 2026-12-24..2026-12-26",
        "12-25",
    ]);
    text("times", corpus, TIMES, |input| {
        if let Ok(at) = time::parse_instant(input) {
            let printed = time::format_full(at);
            let again = reread(&printed, time::parse_instant(&printed))?;
            equal("the printed time", &again.as_millisecond(), &at.as_millisecond())?;
            let _ =
                (time::format_short(at), Window::new("08:00", "18:00", Zone::utc()).map(|window| window.is_open(at)));
        }
        for zone in ["UTC", "America/New_York"] {
            let zone = Zone::parse(zone).map_err(|error| error.to_string())?;
            let _ = time::parse_typed(input, Timestamp::UNIX_EPOCH, &zone).map(|typed| typed.at());
        }
        if let Ok(seconds) = time::parse_duration(input) {
            let printed = time::format_duration(seconds);
            equal("the printed duration", &reread(&printed, time::parse_duration(&printed))?, &seconds)?;
        }
        if let Ok(millis) = time::parse_millis(input) {
            let printed = time::format_millis(millis);
            equal("the printed duration", &reread(&printed, time::parse_millis(&printed))?, &millis)?;
        }
        if let Ok(zone) = Zone::parse(input) {
            equal("the printed zone", &reread(zone.name(), Zone::parse(zone.name()))?, &zone)?;
        }
        if let Ok(dates) = input.parse::<Dates>() {
            let printed = dates.to_string();
            equal("the printed dates", &reread(&printed, printed.parse::<Dates>())?, &dates)?;
        }
        if let Some((start, end)) = input.split_once('-')
            && let Ok(window) = Window::new(start, end, Zone::utc())
        {
            let again = reread("the window", Window::new(window.start(), window.end(), Zone::utc()))?;
            equal("the printed window", &again, &window)?;
            let _ = window.opens_after(Timestamp::UNIX_EPOCH);
        }
        Ok(())
    })
}

const KEYS: &[&str] =
    &["@", "/", "#", "~", "2016-01-01T00:00Z", "job:", "run:", "step", "[3]", "dataset", "partitions", "signal"];

fn keys() -> Target {
    let corpus = texts(&[
        "tick@2016-01-01T00:00:00.000Z",
        "app:20140601_client1",
        "2016-01-01T00:00:00.000Z",
        "20140601_client1",
        "nightly/moment@2016-01-01T00:00Z",
        "partitions of purchases",
        "signal approval",
        "run of program",
        "orders@order-7/load",
        "my.flow@x/load[3]",
        "1.2.3-SNAPSHOT",
        "default/app/1.0",
    ]);
    text("keys", corpus, KEYS, |input| {
        if let Ok(key) = SlotKey::parse(input) {
            let printed = key.to_string();
            equal("the printed key", &reread(&printed, SlotKey::parse(&printed))?, &key)?;
        }
        if let Ok(slot) = input.parse::<SlotRef>() {
            let printed = slot.to_string();
            equal("the printed slot", &reread(&printed, printed.parse::<SlotRef>())?, &slot)?;
        }
        if let Ok(subject) = input.parse::<Subject>() {
            let printed = subject.to_string();
            equal("the printed subject", &reread(&printed, printed.parse::<Subject>())?, &subject)?;
        }
        if let Ok(id) = WorkflowId::new(input) {
            equal("the printed id", &reread(id.as_str(), WorkflowId::new(id.as_str()))?, &id)?;
        }
        if let Ok(name) = RunName::new(input) {
            equal("the printed name", &reread(name.as_str(), RunName::new(name.as_str()))?, &name)?;
        }
        let _ = (ProjectName::read(input), ProjectVersion::new(input));
        Ok(())
    })
}

fn templates() -> Target {
    let corpus =
        texts(&["{date}_{client_id}\n20140601_client1", "a-{x}\na-1", "{a}.{b}/{c}\n1.2/3", "{date}\n20140229"]);
    text("templates", corpus, &["{", "}", "{date}", "{{", "_", "20140601"], |input| {
        let (template, id) = input.split_once('\n').unwrap_or((input, ""));
        let Ok(template) = JobTemplate::new(template) else { return Ok(()) };
        let again = reread("the template", JobTemplate::new(template.as_str()))?;
        equal("the printed template", &again.as_str(), &template.as_str())?;
        if let Ok(values) = template.read(&BTreeMap::new(), id)
            && let Ok(made) = template.id_of(&values)
        {
            equal("the values of the id", &template.read(&BTreeMap::new(), &made).ok().as_ref(), &Some(&values))?;
        }
        Ok(())
    })
}

fn placeholders() -> Target {
    let corpus = texts(&[
        "echo ${year}-${month} '${job}' \"${client}\"",
        "cat <<END\n${x}\nEND",
        "for i in $(ls ${dir}); do echo $i; done",
        "a=${x}; eval \"$a\"",
        "/data/${year}/${raw:month}/*.csv",
        "case ${x} in a) b;; esac",
        "$((1 + ${n}))",
        "echo \\${x} `date ${y}`",
        "[[ ${x} =~ y ]] && { a; } || (b)",
    ]);
    let words = &[
        "${x}", "$(", "`", "<<", "<<'END'", "END", "case", "esac", "do", "done", "eval", "\"", "'", "\\\n", "$((",
        "))", "[[", "]]", "${", "}", ";;",
    ];
    text("placeholders", corpus, words, |input| {
        let Ok(placeholders) = Placeholders::read(input) else { return Ok(()) };
        let filled = placeholders.fill(|_| Some("v".to_owned()));
        if placeholders.names().next().is_none() {
            equal("a text without placeholders", &filled.map(|text| text.len() <= input.len()), &Ok(true))?;
        }
        let shell = ShellText::read(&placeholders, |_| None);
        let _ = shell.faults(|_| kelos_model::shell::Trust::Free, |_| None);
        let _ = ShellText::of_variables(input);
        Ok(())
    })
}

fn triggers() -> Target {
    let words = &[
        "and(",
        "or(",
        "not(",
        "success(",
        "partitions(",
        "delay(",
        "offset(",
        "cron(",
        "signal(",
        "\"",
        ")",
        ",",
        "1h",
        "{\"type\":",
        "\"args\":",
    ];
    let corpus = texts(&[
        "always()",
        "and(success(a), not(delay(1h)))",
        "partitions(purchases, 3)",
        "or(signal(go), cron('0 4 * * 1'))",
        "offset(-1h, success(\"a b\"))",
        "delay(90m)",
        "program(default.app.nightly, succeeded)",
        "concurrency(1)",
        "window(08:00, 18:00)",
        "since(1h)",
        r#"{"type":"and","args":[{"type":"always"}]}"#,
        r#"{"partitions": {"dataset": "purchases", "count": 3}}"#,
        r#"{"cron": "0 4 * * 1"}"#,
        r#"{"concurrency": 1}"#,
        r#"{"all": [{"success": "a"}]}"#,
    ]);
    text("triggers", corpus, words, |input| {
        let zone = Zone::utc();
        if let Ok(trigger) = Trigger::parse(input, &zone) {
            let printed = trigger.to_string();
            equal("the printed trigger", &reread(&printed, Trigger::parse(&printed, &zone))?, &trigger)?;
            equal(
                "the JSON of the trigger",
                &reread("its JSON", Trigger::from_json(&trigger.to_json(), &zone, "trigger"))?,
                &trigger,
            )?;
        }
        if let Ok(constraint) = Constraint::parse(input, &zone) {
            let printed = constraint.to_string();
            equal("the printed constraint", &reread(&printed, Constraint::parse(&printed, &zone))?, &constraint)?;
        }
        if let Ok(value) = serde_json::from_str(input) {
            if let Ok(trigger) = Trigger::from_json(&value, &zone, "trigger") {
                let again = Trigger::from_json(&trigger.to_json(), &zone, "trigger");
                equal("the JSON of the trigger", &reread("its JSON", again)?, &trigger)?;
                let printed = trigger.to_string();
                equal("the printed trigger", &reread(&printed, Trigger::parse(&printed, &zone))?, &trigger)?;
            }
            if let Ok(constraint) = Constraint::from_json(&value, &zone, "constraint") {
                let again = Constraint::from_json(&constraint.to_json(), &zone, "constraint");
                equal("the JSON of the constraint", &reread("its JSON", again)?, &constraint)?;
            }
        }
        Ok(())
    })
}
