//! What the server says is what a client reads: each answer of the native API that any test gets is read as its type of the wire,
//! and has to come out byte for byte again. So the types are held to all that the tests make the server say.

use axum::http::Method;
use kelos_wire::{
    BackfillCausesDto, BackfillDto, BackfillResultDto, CalendarDto, CapacityDto, ChildrenDto, CriticalPathDto,
    DecisionDto, DeploymentDto, DownstreamDto, EndpointDto, EventDto, EventPageDto, EventScheduleDto, FactDto,
    FactSourceDto, FailureListDto, FlowRunDto, FocusDto, GraphDto, GroupsDto, HealthDto, ItemDto, ListDto, OutlookDto,
    OutputLinesDto, PageDto, ParentsDto, PastDefinitionDto, ProblemDetailsDto, ProblemDto, ProgressDto, ProjectDto,
    QueueDto, RegisterDto, RerunResultDto, RunDto, SlotDto, StartedDto, StepResultDto, StuckListDto, SubmitResultDto,
    SubmittedListDto, TellResultDto, TimesDto, UpstreamDto, VersionDto, WhyDto, WorkerDto, WorkflowDetailDto,
    WorkflowDto,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::support::Reply;

/// Reads an answer of the native API as its type, and holds it to what was said.
pub(crate) fn check(method: &Method, uri: &str, reply: &Reply) {
    let Some(path) = uri.strip_prefix("/api/v1/") else { return };
    let media = reply.header("content-type");
    if media == "application/problem+json" {
        return same::<ProblemDetailsDto>(uri, &reply.text);
    }
    if media == "application/json" {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let segments: Vec<&str> = path.split('/').collect();
        match *method {
            Method::GET => got(uri, &segments, &reply.text),
            _ => done(uri, &segments, query, &reply.text),
        }
    }
}

/// An answer as a type, and again as text; and with something new in it, as a newer server may say it.
fn same<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(uri: &str, text: &str) {
    let read: T = kelos_model::nesting::read(text.as_bytes()).unwrap_or_else(|error| panic!("{uri}: {error}: {text}"));
    let again = serde_json::to_string(&read).expect("JSON");
    assert_eq!(again, text, "{uri}");
    let mut newer: Value = kelos_model::nesting::read(text.as_bytes()).expect("JSON");
    newer["somethingNew"] = Value::from(vec![1]);
    let read_newer: T = serde_json::from_value(newer).unwrap_or_else(|error| panic!("{uri}: {error}: {text}"));
    assert_eq!(read_newer, read, "{uri}");
}

fn got(uri: &str, segments: &[&str], text: &str) {
    match segments {
        ["openapi.json"] => {}
        ["health"] => same::<HealthDto>(uri, text),
        ["version"] => same::<VersionDto>(uri, text),
        ["problems"] => same::<ListDto<ProblemDto>>(uri, text),
        ["endpoints"] => same::<ListDto<EndpointDto>>(uri, text),
        ["workers"] => same::<ListDto<WorkerDto>>(uri, text),
        ["workflows"] => same::<ListDto<WorkflowDto>>(uri, text),
        ["workflows", _] => same::<WorkflowDetailDto>(uri, text),
        ["workflows", _, "definitions"] => same::<ListDto<PastDefinitionDto>>(uri, text),
        ["workflows", _, "definitions", _] => same::<PastDefinitionDto>(uri, text),
        ["workflows", _, "times"] => same::<TimesDto>(uri, text),
        ["workflows", _, "queue"] => same::<QueueDto>(uri, text),
        ["workflows", _, "slots", _] => same::<SlotDto>(uri, text),
        ["workflows", _, "slots", _, "history"] => same::<ListDto<EventDto>>(uri, text),
        ["workflows", _, "slots", _, "why"] => same::<WhyDto>(uri, text),
        ["workflows", _, "slots", _, "critical-path"] => same::<CriticalPathDto>(uri, text),
        ["workflows", _, "slots", _, "flow"] => same::<FlowRunDto>(uri, text),
        ["workflows", _, "slots", _, "items"] => same::<PageDto<ItemDto>>(uri, text),
        ["workflows", _, "slots", _, "upstream"] => same::<UpstreamDto>(uri, text),
        ["workflows", _, "slots", _, "runs"] => same::<ListDto<RunDto>>(uri, text),
        ["workflows", _, "slots", _, "runs", _] => same::<RunDto>(uri, text),
        ["workflows", _, "slots", _, "runs", _, "log", "lines"] => same::<OutputLinesDto>(uri, text),
        ["schedules"] => same::<PageDto<EventScheduleDto>>(uri, text),
        ["schedules", _] => same::<EventScheduleDto>(uri, text),
        ["schedules", _, "decisions"] => same::<PageDto<DecisionDto>>(uri, text),
        ["facts"] => same::<PageDto<FactDto>>(uri, text),
        ["facts", "sources"] => same::<ListDto<FactSourceDto>>(uri, text),
        ["graph"] => same::<GraphDto>(uri, text),
        ["projects"] => same::<ListDto<ProjectDto>>(uri, text),
        ["slots" | "jobs"] => same::<PageDto<SlotDto>>(uri, text),
        ["jobs", _, _, "parents"] => same::<ParentsDto>(uri, text),
        ["jobs", _, _, "children"] => same::<ChildrenDto>(uri, text),
        ["failures"] => same::<FailureListDto>(uri, text),
        ["stuck"] => same::<StuckListDto>(uri, text),
        ["capacity"] => same::<CapacityDto>(uri, text),
        ["focus"] => same::<FocusDto>(uri, text),
        ["calendar"] => same::<CalendarDto>(uri, text),
        ["runs"] => same::<PageDto<RunDto>>(uri, text),
        ["events"] => same::<EventPageDto>(uri, text),
        ["backfills"] => same::<ListDto<BackfillDto>>(uri, text),
        ["backfills", _] => same::<ProgressDto>(uri, text),
        ["backfills", _, "causes"] => same::<BackfillCausesDto>(uri, text),
        ["board", "groups"] => same::<GroupsDto>(uri, text),
        ["registers", _] => same::<ListDto<RegisterDto>>(uri, text),
        ["registers", _, _] => same::<RegisterDto>(uri, text),
        _ => panic!("{uri} has no type of the wire here"),
    }
}

fn done(uri: &str, segments: &[&str], query: &str, text: &str) {
    match segments {
        ["step"] => same::<StepResultDto>(uri, text),
        ["workflows", _, "pause" | "resume"] => same::<WorkflowDto>(uri, text),
        ["workflows", _, "start"] | ["schedules", _, "fire"] => same::<StartedDto>(uri, text),
        ["workflows", _, "slots", _, "kill" | "skip" | "mark" | "signal" | "resume"] => same::<SlotDto>(uri, text),
        ["workflows", _, "slots", _, "rerun"] => {
            same::<RerunResultDto>(uri, text);
            if text.contains("\"dryRun\"") { same::<DownstreamDto>(uri, text) } else { same::<SlotDto>(uri, text) }
        }
        ["schedules"] if text.starts_with("{\"items\"") => same::<ListDto<EventScheduleDto>>(uri, text),
        ["schedules", ..] => same::<EventScheduleDto>(uri, text),
        ["facts"] => same::<TellResultDto>(uri, text),
        ["projects", _] => same::<DeploymentDto>(uri, text),
        ["jobs"] => {
            same::<SubmitResultDto>(uri, text);
            if text.contains("\"dryRun\"") {
                same::<OutlookDto>(uri, text)
            } else {
                same::<SubmittedListDto>(uri, text)
            }
        }
        ["backfills"] => same::<BackfillResultDto>(uri, text),
        ["backfills", ..] => same::<ProgressDto>(uri, text),
        ["board", "groups"] => same::<GroupsDto>(uri, text),
        ["registers", _, _] => same::<RegisterDto>(uri, text),
        // What workers say has a test of its own.
        ["workers", _, "offer"] => {}
        _ => panic!("{uri}?{query} has no type of the wire here"),
    }
}
