//! The checks of an event schedule before it is added.

use kelos_model::Workflow;
use kelos_model::arguments::{MAPPING, check_mapping};
use kelos_model::workflow::SLOWED;

/// Triggers that one may have inside each other at the most, counted over the whole tree.
pub const MOST_TRIGGERS: usize = 1000;

/// Checks an event schedule; the error is a message.
///
/// # Errors
/// When it could never run anything, or a number in it makes no sense.
pub fn check(schedule: &Workflow) -> Result<(), String> {
    let Some(events) = schedule.keys.events() else { return Err(format!("{} is no event schedule", schedule.id)) };
    if events.timeout_millis == 0 {
        return Err("a timeout of 0 lets nothing run: expected at least 1 millisecond".to_owned());
    }
    if let (Some(start), Some(end)) = (schedule.start_time, events.end_time)
        && start >= end
    {
        return Err("it ends before it starts: expected an endTime after the startTime".to_owned());
    }
    schedule.constraints.iter().try_for_each(kelos_model::Constraint::check)?;
    events.properties.get(MAPPING).map_or(Ok(()), |mapping| check_mapping(mapping))?;
    if schedule.trigger.size() > MOST_TRIGGERS {
        return Err(format!("its trigger has more than {MOST_TRIGGERS} parts"));
    }
    schedule.trigger.check()?;
    schedule.trigger.check_begin().map_err(str::to_owned)
}

/// Warnings about properties that are probably not intended.
#[must_use]
pub fn warnings(schedule: &Workflow) -> Vec<String> {
    schedule.goes_round().map(|told| format!("{told}; {SLOWED}")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use kelos_model::workflow::{EventKeys, Keys};
    use kelos_model::{Constraint, Gate, Job, Trigger, WorkflowId};
    use serde_json::Map;

    use super::*;

    fn schedule(trigger: Trigger, change: impl FnOnce(&mut EventKeys)) -> Workflow {
        let id = |name| WorkflowId::new(name).expect("an id");
        let mut keys = EventKeys::new("s", id("p"));
        change(&mut keys);
        let workflow = Workflow::keyed(id("a.s"), Keys::Events(Box::new(keys)), Job::new("command", Map::new()));
        Workflow { trigger, ..workflow }
    }

    fn signal() -> Trigger {
        Trigger::Signal { name: "go".into() }
    }

    fn wrong(schedule: &Workflow) -> String {
        check(schedule).expect_err("something wrong")
    }

    #[test]
    fn what_can_run_is_fine() {
        assert_eq!(check(&schedule(signal(), |_| {})), Ok(()));
    }

    #[test]
    fn what_can_never_run_is_told() {
        let never = "nothing in its trigger can begin it: expected times, partitions, ends of programs or signals among \
                     what it waits for";
        assert_eq!(wrong(&schedule(Trigger::Always, |_| {})), never);
        assert_eq!(
            wrong(&schedule(signal(), |keys| keys.timeout_millis = 0)),
            "a timeout of 0 lets nothing run: expected at least 1 millisecond"
        );
        let of = |count| Trigger::Partitions { dataset: "ds".into(), count };
        assert_eq!(wrong(&schedule(of(0), |_| {})), "0 partitions of ds are met by anything: expected at least 1");
        let unwanted = Trigger::Not { trigger: Box::new(signal()) };
        let never = "its trigger can never be met: the facts that begin it are those that `not` forbids; expected others \
                     besides, such as times, partitions, ends of programs or signals outside of `not`";
        assert_eq!(wrong(&schedule(unwanted.clone(), |_| {})), never);
        let besides = Trigger::And { triggers: vec![unwanted, of(4)] };
        assert_eq!(check(&schedule(besides, |_| {})), Ok(()));
        let program = WorkflowId::new("q").expect("an id");
        let ended = Trigger::Ended { program, states: Vec::new() };
        assert_eq!(wrong(&schedule(ended, |_| {})), "expected how q ends: some of succeeded, failed, killed");
        let nothing = Trigger::Or { triggers: vec![signal(), Trigger::And { triggers: Vec::new() }] };
        assert_eq!(wrong(&schedule(nothing, |_| {})), "an `and` or `or` of nothing: expected triggers in it");
        let mut late = schedule(signal(), |keys| keys.end_time = Some(jiff::Timestamp::UNIX_EPOCH));
        late.start_time = Some(jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(wrong(&late), "it ends before it starts: expected an endTime after the startTime");
        let mut none = schedule(signal(), |_| {});
        none.constraints = vec![Constraint::new(Gate::Concurrency(0))];
        assert_eq!(wrong(&none), "a concurrency of 0 lets nothing run: expected at least 1");
    }

    #[test]
    fn a_mapping_is_an_object() {
        let mapped = |mapping: &str| {
            check(&schedule(signal(), |keys| _ = keys.properties.insert(MAPPING.to_owned(), mapping.to_owned())))
        };
        assert_eq!(mapped(r#"{"in": "out"}"#), Ok(()));
        assert!(mapped("nonsense").expect_err("no mapping").contains("expected a JSON object"));
        assert!(mapped("[]").is_err());
        let lists = r#"{"arguments": [{"source": "a", "target": "b"}], "pluginProperties": [{"source": "a", "stageName": "s"}]}"#;
        assert_eq!((mapped(lists), mapped("{}"), mapped(r#"{"arguments": "x"}"#)), (Ok(()), Ok(()), Ok(())));
        for (mapping, why) in [
            (r#"{"arguments": 5}"#, "arguments is 5, expected what it is called upstream"),
            (r#"{"in": null}"#, "in is null, expected what it is called upstream"),
            (r#"{"in": ""}"#, "in is \"\", expected what it is called upstream"),
            (
                r#"{"arguments": [], "in": "out"}"#,
                "in is unknown beside the lists, expected arguments or pluginProperties",
            ),
            (r#"{"arguments": [], "pluginProperties": 7}"#, "pluginProperties is 7, expected a list"),
            (r#"{"arguments": [5]}"#, "arguments[0] is 5, expected an object with a source"),
            (r#"{"arguments": [{}]}"#, "arguments[0].source is missing, expected a text"),
            (r#"{"arguments": [{"source": "a"}, {"source": 1}]}"#, "arguments[1].source is 1, expected a text"),
            (r#"{"pluginProperties": [{"source": "a"}]}"#, "pluginProperties[0].stageName is missing, expected a text"),
        ] {
            let told = mapped(mapping).expect_err(mapping);
            assert_eq!(told, format!("property triggering.properties.mapping: {why}"));
        }
    }

    #[test]
    fn what_goes_round_for_ever_is_warned_of() {
        let program = WorkflowId::new("p").expect("an id");
        let own = schedule(Trigger::Ended { program, states: vec![kelos_model::SlotState::Failed] }, |_| {});
        let told = "it waits for the end of its own program, which is an endless loop: each run of p that ended as failed \
                    triggers the next at once; a delay, or a duration since the last run, slows it";
        assert_eq!((check(&own), warnings(&own)), (Ok(()), vec![told.to_owned()]));
        assert_eq!(warnings(&schedule(signal(), |_| {})), Vec::<String>::new());
    }
}
