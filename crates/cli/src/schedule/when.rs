//! What has a schedule go, as a line: `and(time(0 4 * * *), partitions(purchases, 4))`. The line is read here, so that what is wrong
//! in it is told at once, and goes to the server as it is: times that name no zone are in that of the schedule, which it knows.

use kelos_model::facts::ENDS;
use kelos_model::form::parse_end;
use kelos_model::time::Zone;
use kelos_model::{SlotState, Trigger, WorkflowId};

/// A trigger as it was typed.
///
/// # Errors
/// In words, with where and what was expected.
pub(super) fn line(text: &str) -> Result<String, String> {
    read(text)?;
    Ok(text.trim().to_owned())
}

/// The times of a cron expression: `0 4 * * *`, or `0 4 * * * @ Europe/Berlin`.
pub(super) fn time(text: &str) -> Result<String, String> {
    let line = format!("time({})", text.trim());
    read(&line).map_err(|why| format!("{text:?}: {why}"))?;
    Ok(line)
}

/// So many partitions of a dataset: `purchases=4`, or 1 of `purchases`.
pub(super) fn partitions(text: &str) -> Result<String, String> {
    let (dataset, count) = text.split_once('=').unwrap_or((text, "1"));
    let count = count
        .parse()
        .map_err(|_| format!("\"{text}\" names no partitions: expected DATASET=N, such as purchases=4"))?;
    Ok(Trigger::Partitions { dataset: dataset.into(), count }.to_string())
}

/// Some ends of a program: `Sales.Report=completed,failed`; any of them where none is named.
pub(super) fn ended(text: &str) -> Result<String, String> {
    let (program, states) = text.split_once('=').unwrap_or((text, ""));
    let states = states.split(',').filter(|state| !state.is_empty()).map(parse_end).collect::<Result<Vec<_>, _>>()?;
    let states = if states.is_empty() { ENDS.to_vec() } else { states };
    let program = WorkflowId::new(program).map_err(|error| error.to_string())?;
    Ok(Trigger::Ended { program, states }.to_string())
}

/// A signal.
pub(super) fn signal(name: &str) -> String {
    Trigger::Signal { name: name.into() }.to_string()
}

fn read(line: &str) -> Result<Trigger, String> {
    Trigger::parse(line, &Zone::utc()).map_err(|error| error.to_string())
}

/// The final state of a run.
pub(crate) fn end(state: &str) -> Result<&'static str, String> {
    parse_end(state).map(SlotState::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_as_it_was_typed() {
        for text in ["time(0 4 1,15 * ? @ Europe/Berlin)", "any( partition(ds), ended(p, COMPLETED+failed) )"] {
            assert_eq!(line(text).as_deref(), Ok(text));
        }
        assert_eq!(time("0 4 * * * @ UTC").as_deref(), Ok("time(0 4 * * * @ UTC)"));
    }

    #[test]
    fn options_are_written_as_lines() {
        assert_eq!(partitions("purchases=4").as_deref(), Ok("partitions(purchases, 4)"));
        assert_eq!(partitions("a,b").as_deref(), Ok("partitions(\"a,b\", 1)"));
        assert_eq!(ended("p=COMPLETED,killed").as_deref(), Ok("ended(p, succeeded, killed)"));
        assert_eq!(ended("p").as_deref(), Ok("ended(p, succeeded, failed, killed)"));
        assert_eq!(signal("go"), "signal(go)");
    }

    #[test]
    fn what_is_no_trigger_is_told() {
        let wrong = |text: &str| line(text).expect_err(text);
        let told = wrong("or(signal(a), sginal(b))");
        assert!(told.starts_with("at character 15: \"sginal\" is no trigger: expected time(CRON @ ZONE), "), "{told}");
        assert!(told.ends_with("; did you mean \"signal\"?"), "{told}");
        let expected = "at character 10: \"lost\" is not how a run ends: expected succeeded, failed or killed";
        assert_eq!(wrong("ended(p, lost)"), expected);
        assert!(
            time("0 4 * *").expect_err("too few").starts_with("\"0 4 * *\": at character 6: \"0 4 * *\" has 4 fields")
        );
        assert!(time("0 4 * * *), signal(a").is_err());
    }
}
