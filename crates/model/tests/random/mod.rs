//! Random values of all that is written as JSON, for whoever writes and reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::deadline::LocalDeadline;
use kelos_model::event::{Abort, AccessEvent, BackfillEvent, Event, Origin};
use kelos_model::facts::ManualStart;
use kelos_model::flow::{ItemList, SignalWait};
use kelos_model::function::FunctionRef;
use kelos_model::jobs::{DateForm, Feed, Group, JobKeys, JobTemplate, Kind, Member, TwoWay, Validity, ValueFilter};
use kelos_model::probe::{Conditions, Verdict};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::repeated::RepeatedStep;
use kelos_model::retry::{Growth, OnUnknown};
use kelos_model::sharing::{EVERYONE, Sees, Sends, Share, Shares};
use kelos_model::time::{Calendar, CronSchedule, Firing, Fold, Gap, HOURS, Schedule, Zone};
use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::unknown::UnknownCode;
use kelos_model::workers::{Label, LossPolicy};
use kelos_model::workflow::{
    About, CatchUp, Contact, EventKeys, Keys, LastRun, Moments, PlanState, Program, ProjectVersion, Properties,
    Provenance, Source, WaitStart,
};
use kelos_model::{
    Actor, ActorKind, Answer, Arguments, BackfillId, Backlog, Batch, BatchRule, Breach, Collection, Constraint,
    Deadline, Fact, Finding, Flow, Freeze, Gate, Invariant, Job, Kill, Occurrence, Otherwise, Outcome, Parameter,
    ParameterKind, PoolId, PoolUse, Probe, Reason, ReasonKind, RetryPolicy, RunId, RunName, SlotEvent, SlotKey,
    SlotRef, SlotState, Step, StepName, Stretch, TokenRate, Trigger, Workflow, WorkflowEvent, WorkflowId,
};
use proptest::prelude::*;

/// Text as people and file systems have it, quotes and backslashes among it.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z0-9 /${}\"\\\\:@é✓\n-]{0,16}"]
}

pub(crate) fn workflow() -> impl Strategy<Value = WorkflowId> {
    "[a-zA-Zñø.@-][a-zA-Zñø .@-]{0,11}".prop_map(|name| WorkflowId::new(&name).unwrap())
}

pub(crate) fn backfill() -> impl Strategy<Value = BackfillId> {
    "[a-z][a-z0-9-]{0,8}".prop_map(|name| BackfillId::new(&name).unwrap())
}

/// From the year 1 to the year 9998, in whole milliseconds as all moments are.
pub(crate) fn moment() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_800_000_i64..253_370_764_800_000).prop_map(|ms| Timestamp::from_millisecond(ms).unwrap())
}

pub(crate) fn slot() -> impl Strategy<Value = SlotRef> {
    (workflow(), moment()).prop_map(|(workflow, at)| SlotRef::at(workflow, at))
}

pub(crate) fn breach() -> impl Strategy<Value = Breach> {
    let invariant = prop::sample::select(Invariant::ALL.to_vec());
    (invariant, workflow(), prop::option::of(slot())).prop_map(|(invariant, workflow, slot)| Breach {
        invariant,
        workflow,
        slot,
    })
}

pub(crate) fn function() -> impl Strategy<Value = FunctionRef> {
    (text(), any::<u32>(), "[0-9a-f]{16}").prop_map(|(file, index, digest)| FunctionRef { file, index, digest })
}

pub(crate) fn conditions() -> impl Strategy<Value = Conditions> {
    let glob = prop::option::of(text());
    (glob, any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<u32>>()).prop_map(
        |(glob, min_count, min_bytes, min_age_seconds)| Conditions { glob, min_count, min_bytes, min_age_seconds },
    )
}

pub(crate) fn trigger() -> impl Strategy<Value = Trigger> {
    let system = prop_oneof![Just(FileSystem::Hdfs), Just(FileSystem::Local), Just(FileSystem::Any)];
    let leaf =
        prop_oneof![
            Just(Trigger::Always),
            any::<i64>().prop_map(|seconds| Trigger::Delay { seconds }),
            workflow().prop_map(|workflow| Trigger::Success { workflow }),
            (workflow(), -9_999_999i64..9_999_999, prop_oneof![Just(0i64), -90_000i64..90_000])
                .prop_map(|(workflow, from, to)| Trigger::Covers { workflow, from, to }),
            (system, text(), text(), conditions()).prop_map(|(system, path, base, conditions)| Trigger::Path(
                PathCheck { system, path, base, conditions }
            )),
            function().prop_map(|function| Trigger::Function { function }),
        ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|triggers| Trigger::And { triggers }),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|triggers| Trigger::Or { triggers }),
            inner.clone().prop_map(|trigger| Trigger::Not { trigger: Box::new(trigger) }),
            (any::<i64>(), inner)
                .prop_map(|(seconds, trigger)| Trigger::Offset { seconds, trigger: Box::new(trigger) }),
        ]
    })
}

pub(crate) fn probe() -> impl Strategy<Value = Probe> {
    prop_oneof![
        (text(), conditions()).prop_map(|(uri, conditions)| Probe::Path { uri, conditions }),
        (function(), workflow(), moment()).prop_map(|(function, workflow, at)| Probe::Function {
            function,
            workflow,
            key: SlotKey::Time(at)
        }),
    ]
}

pub(crate) fn finding() -> BoxedStrategy<Finding> {
    let verdict = prop::sample::select(vec![Verdict::Yes, Verdict::No, Verdict::Never, Verdict::Failed]);
    let state = prop::sample::select(SlotState::ALL.to_vec());
    let data = prop::collection::vec(("[a-b]{1,4}", any::<i64>()), 0..3)
        .prop_map(|fields| fields.into_iter().map(|(name, value)| (name, value.into())).collect());
    prop_oneof![
        Just(Finding::AllOf),
        any::<i64>().prop_map(|seconds| Finding::Offset { seconds }),
        (moment(), moment()).prop_map(|(now, until)| Finding::DelayUntil { now, until }),
        slot().prop_map(|slot| Finding::UpstreamMissing { slot }),
        (slot(), state).prop_map(|(slot, state)| Finding::UpstreamIs { slot, state }),
        probe().prop_map(|probe| Finding::ProbeAsked { probe }),
        (probe(), verdict, text(), moment()).prop_map(|(probe, verdict, detail, looked_at)| Finding::ProbeAnswered {
            probe,
            verdict,
            detail,
            looked_at
        }),
        ("new-[a-z]{1,8}", data).prop_map(|(code, data)| Finding::Unknown(UnknownCode { code, data })),
    ]
    .boxed()
}

pub(crate) fn kind() -> impl Strategy<Value = ReasonKind> {
    use ReasonKind::{Always, And, Delay, Function, HdfsPath, LocalPath, Not, Offset, Or, Other, Success};
    let known = vec![Always, And, Or, Not, Offset, Delay, Success, HdfsPath, LocalPath, Function];
    prop::sample::select([known, vec![Other("of-a-newer-version".to_owned())]].concat())
}

pub(crate) fn answer() -> impl Strategy<Value = Answer> {
    prop::sample::select(vec![Answer::Met, Answer::NotYet, Answer::Never])
}

pub(crate) fn explanation() -> BoxedStrategy<Reason> {
    let leaf = (kind(), answer(), finding()).prop_map(|(kind, answer, finding)| Reason::leaf(kind, answer, finding));
    leaf.prop_recursive(4, 24, 4, |inner| {
        (kind(), answer(), finding(), prop::collection::vec(inner, 0..4))
            .prop_map(|(kind, answer, finding, nested)| Reason { kind, answer, finding, nested })
    })
    .boxed()
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Succeeded),
        Just(Outcome::Killed),
        (text(), any::<Option<i32>>()).prop_map(|(reason, exit_status)| Outcome::Failed {
            reason,
            exit_status,
            code: None
        }),
        text().prop_map(Outcome::refused),
        text().prop_map(|reason| Outcome::Unknown { reason }),
        text().prop_map(|reason| Outcome::Lost { reason }),
    ]
}

/// What happens before a slot runs.
pub(crate) fn gating() -> impl Strategy<Value = SlotEvent> {
    let origin = prop::sample::select(vec![Origin::Schedule, Origin::Feed, Origin::Request, Origin::Backfill]);
    prop_oneof![
        (origin, any::<i32>(), prop::option::of(backfill())).prop_map(|(origin, priority, backfill)| {
            SlotEvent::Planned { origin, priority, backfill, by: Some(Actor::person("ann")), reason: None }
        }),
        explanation().prop_map(|explanation| SlotEvent::Looked { explanation }),
        explanation().prop_map(|explanation| SlotEvent::TriggerMet { explanation }),
        (any::<u64>(), explanation())
            .prop_map(|(timeout_seconds, explanation)| SlotEvent::Expired { timeout_seconds, explanation }),
        explanation().prop_map(|explanation| SlotEvent::Skipped { explanation }),
        moment().prop_map(|deadline| SlotEvent::Late { deadline }),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    (moment(), any::<u32>(), moment(), any::<u32>()).prop_map(|(first, run, last, slots)| Batch {
        first,
        run,
        last,
        slots,
    })
}

fn steps() -> impl Strategy<Value = Vec<StepName>> {
    prop::collection::vec("[a-z0-9_-]{1,4}".prop_map(|name| StepName::new(&name).unwrap()), 0..3)
}

fn repeated_step() -> impl Strategy<Value = RepeatedStep> {
    let step = "[a-z0-9_-]{1,4}".prop_map(|name| StepName::new(&name).unwrap());
    let named = |text: String| SlotKey::Named(RunName::new(&text).unwrap());
    let of = "[a-z]{3,6}".prop_map(named);
    (of, step, prop::option::of(any::<u32>()), any::<bool>(), moment(), any::<u32>(), any::<i64>()).prop_map(
        |(of, step, item, is_item, about, definition, value)| RepeatedStep {
            of,
            step,
            item,
            is_item,
            about: SlotKey::Time(about),
            definition,
            inputs: serde_json::Map::from_iter([("rows".to_owned(), value.into())]),
        },
    )
}

/// What happens to its runs.
pub(crate) fn running() -> impl Strategy<Value = SlotEvent> {
    prop_oneof![
        (any::<u32>(), prop::option::of(batch())).prop_map(|(run, batch)| SlotEvent::Dispatched {
            run,
            worker: None,
            batch
        }),
        (any::<u32>(), text()).prop_map(|(run, reason)| SlotEvent::Deferred { run, reason }),
        (any::<u32>(), text()).prop_map(|(run, external_id)| SlotEvent::Started { run, external_id }),
        any::<u32>().prop_map(|run| SlotEvent::Withdrawn { run }),
        (any::<u32>(), any::<u64>(), any::<u32>()).prop_map(|(run, request, permits)| SlotEvent::Acquired {
            run,
            request,
            permits: [(PoolId::new("p").unwrap(), permits)].into()
        }),
        (any::<u32>(), any::<u64>()).prop_map(|(run, request)| SlotEvent::Released { run, request }),
        (any::<u32>(), arguments()).prop_map(|(run, inputs)| SlotEvent::Given { run, inputs }),
        any::<u32>().prop_map(|run| SlotEvent::Succeeded { run }),
        (any::<u32>(), steps()).prop_map(|(run, failed)| SlotEvent::Recovered { run, failed }),
        any::<u32>().prop_map(|definition| SlotEvent::Pinned { definition }),
        (any::<u32>(), steps(), any::<i32>()).prop_map(|(run, awaits, priority)| SlotEvent::StepOpened {
            run,
            awaits,
            priority
        }),
        (text(), any::<i64>()).prop_map(|(name, value)| SlotEvent::StepReady {
            inputs: serde_json::Map::from_iter([(name, value.into())])
        }),
        (any::<u32>(), outcome(), moment(), 0_u32..4).prop_map(|(run, outcome, due, again)| SlotEvent::BackedOff {
            run,
            outcome,
            due,
            again
        }),
        Just(SlotEvent::BackoffEnded),
        (any::<u32>(), outcome()).prop_map(|(run, outcome)| SlotEvent::Failed { run, outcome }),
        (any::<u32>(), outcome()).prop_map(|(run, outcome)| SlotEvent::RunEnded { run, outcome }),
    ]
}

/// Boxed, since the strategies of events that hold it would take more stack than a thread of tests has.
pub(crate) fn actor() -> BoxedStrategy<Actor> {
    use ActorKind::{Person, System, Token, Unknown, Worker};
    let kind = prop::sample::select(vec![Person, Token, Worker, System, Unknown]);
    let name = prop_oneof![text(), Just(r#"{"kind":"system","name":"x"}"#.to_owned())];
    let address = prop::option::of(prop_oneof![
        any::<[u8; 4]>().prop_map(std::net::IpAddr::from),
        any::<[u8; 16]>().prop_map(std::net::IpAddr::from)
    ]);
    (kind, name, prop::option::of(text()), address)
        .prop_map(|(kind, name, credential, address)| Actor {
            credential: credential.map(Into::into),
            address,
            ..Actor::new(kind, name)
        })
        .boxed()
}

pub(crate) fn reason() -> BoxedStrategy<Option<String>> {
    prop::option::of(text()).boxed()
}

/// What happens to anything else on somebody's word.
pub(crate) fn asked_beside_slots() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| WorkflowEvent::Defined {
            version: 1,
            by,
            reason
        }),
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| WorkflowEvent::Removed { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Paused { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Resumed { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Enabled { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Disabled { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| WorkflowEvent::Thawed { by, reason }),
        breach().prop_map(|breach| WorkflowEvent::Frozen { breach }),
        (breach(), text()).prop_map(|(breach, input)| WorkflowEvent::SetAside { breach, input }),
    ];
    let of_backfill = prop_oneof![
        (actor(), reason()).prop_map(|(by, reason)| BackfillEvent::Cancelled { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| BackfillEvent::Reopened { slots: 1, by, reason }),
    ];
    prop_oneof![
        (workflow(), what).prop_map(|(workflow, what)| Event::Workflow { workflow, what }),
        (backfill(), of_backfill).prop_map(|(backfill, what)| Event::Backfill { backfill, what }),
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| Event::Register {
            bucket: "b".to_owned(),
            key: "k".to_owned(),
            value: None,
            by,
            reason
        }),
        actor().prop_map(|by| Event::Access { what: AccessEvent::SignInFailed { times: 3 }, by }),
        prop::option::of(actor()).prop_map(|by| Event::Fact {
            fact: Fact {
                source: "s".into(),
                key: None,
                what: Occurrence::Signal { name: "go".into(), payload: serde_json::Value::Null, run: None }
            },
            by
        }),
    ]
}

/// What people do to it.
pub(crate) fn asked() -> impl Strategy<Value = SlotEvent> {
    prop_oneof![
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::Killed { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::MarkedSucceeded { by, reason }),
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::SkippedBy { by, reason }),
        (actor(), reason(), any::<i32>(), prop::option::of(backfill()))
            .prop_map(|(by, reason, priority, backfill)| SlotEvent::Reopened { by, reason, priority, backfill }),
        (any::<i32>(), backfill(), prop::option::of(actor()), reason())
            .prop_map(|(priority, backfill, by, reason)| { SlotEvent::Prioritised { priority, backfill, by, reason } }),
        (prop::option::of(actor()), reason()).prop_map(|(by, reason)| SlotEvent::Aborted {
            cause: Abort::Disabled,
            by,
            reason
        }),
        (actor(), reason(), any::<bool>(), prop::option::of(repeated_step())).prop_map(
            |(by, reason, unconstrained, repeats)| SlotEvent::FiredBy {
                by,
                reason,
                arguments: BTreeMap::new(),
                unconstrained,
                repeats: repeats.map(Box::new)
            }
        ),
        (actor(), arguments()).prop_map(|(by, arguments)| SlotEvent::ArgumentsSet { by, arguments }),
        (actor(), reason()).prop_map(|(by, reason)| SlotEvent::Requested { by, reason }),
        (actor(), reason(), steps()).prop_map(|(by, reason, mut from)| SlotEvent::Resumed {
            by,
            reason,
            from: from.pop()
        }),
        (text(), any::<i64>(), actor(), reason()).prop_map(|(name, payload, by, reason)| SlotEvent::Signalled {
            name,
            payload: payload.into(),
            by,
            reason
        }),
        (
            text(),
            prop::sample::select(SlotState::ALL.to_vec()),
            any::<u32>(),
            prop::option::of(text()),
            any::<bool>(),
            text()
        )
            .prop_map(|(from, state, retries, external_id, requested, there)| SlotEvent::Imported {
                from,
                state,
                retries,
                external_id,
                requested,
                there
            }),
    ]
}

/// The inputs and arguments of runs.
fn arguments() -> BoxedStrategy<Arguments> {
    prop::collection::btree_map(text(), json_value(), 0..3).boxed()
}

fn json_value() -> BoxedStrategy<serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        text().prop_map(Into::into),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Into::into)).boxed()
}

fn parameter() -> impl Strategy<Value = Parameter> {
    let choices = prop::collection::vec(text(), 0..3).prop_map(|choices| ParameterKind::Choice { choices });
    let kind = prop_oneof![
        Just(ParameterKind::Text),
        Just(ParameterKind::Integer),
        Just(ParameterKind::Number),
        Just(ParameterKind::Boolean),
        Just(ParameterKind::Date),
        Just(ParameterKind::Time),
        choices,
        Just(ParameterKind::Json),
    ];
    (text(), kind, prop::option::of(json_value()), prop::option::of(text()))
        .prop_map(|(name, kind, default, about)| Parameter { name, kind, default, about })
}

/// What comes of facts.
pub(crate) fn occurrence() -> BoxedStrategy<Occurrence> {
    let state = prop::sample::select(kelos_model::facts::ENDS.to_vec());
    prop_oneof![
        ("[a-z]{1,6}", any::<u32>(), prop::collection::vec(text(), 0..3))
            .prop_map(|(dataset, count, keys)| Occurrence::Partitions { dataset: dataset.into(), count, keys }),
        (workflow(), state, prop::option::of(text()), arguments()).prop_map(|(program, state, run, arguments)| {
            let outputs = arguments.clone().into_iter().collect();
            Occurrence::Ended { program, state, run, arguments, outputs }
        }),
        moment().prop_map(|time| Occurrence::Fired { cron: "0 4 * * *".into(), time }),
        (text(), any::<i64>(), prop::option::of(slot())).prop_map(|(name, payload, run)| Occurrence::Signal {
            name: name.into(),
            payload: payload.into(),
            run
        }),
    ]
    .boxed()
}

/// What a slot has collected.
pub(crate) fn collected() -> BoxedStrategy<Collection> {
    let asked = (prop::option::of(actor()), any::<bool>(), arguments())
        .prop_map(|(by, unconstrained, arguments)| ManualStart { arguments, unconstrained, by });
    let came = prop::collection::vec(occurrence().prop_filter("a name", |one| one.to_string().len() > 8), 0..4);
    (moment(), came, prop::option::of(asked), any::<bool>(), any::<bool>(), arguments())
        .prop_map(|(since, came, asked, met, again, arguments)| {
            let mut collected = Collection { asked, arguments, met, again, ..Collection::new(since) };
            came.iter()
                .filter(|one| one.subject().to_string().parse::<kelos_model::Subject>().is_ok())
                .for_each(|one| collected.add(one));
            collected
        })
        .boxed()
}

fn calendar() -> BoxedStrategy<Calendar> {
    let zone = prop::sample::select(vec!["UTC", "Europe/Berlin"]).prop_map(|name| Zone::parse(name).unwrap());
    let dates = || [jiff::civil::date(2026, 1, 5), jiff::civil::date(2026, 4, 6)].into_iter().collect();
    (0..6, zone, prop::sample::select(HOURS.to_vec()))
        .prop_map(move |(unit, zone, hours)| match unit {
            0 => Calendar::hours(hours).unwrap(),
            1 => Calendar::daily(zone),
            2 => Calendar::weekly(zone, jiff::civil::Weekday::Wednesday),
            3 => Calendar::monthly(zone),
            4 => Calendar::business_days(zone, &dates()),
            _ => Calendar::of_dates(zone, &dates()).unwrap(),
        })
        .boxed()
}

fn schedule() -> BoxedStrategy<Schedule> {
    let cron = prop::sample::select(vec!["0 0 * * * ?", "0 30 2 ? * MON-FRI", "0/15 * * 1 * ?"]);
    let zone = prop::sample::select(vec!["UTC", "Europe/Berlin"]);
    let (gap, fold) =
        (prop::sample::select(vec![Gap::Shift, Gap::Skip]), prop::sample::select(vec![Fold::Auto, Fold::Both]));
    prop_oneof![
        (cron, zone, gap, fold).prop_map(|(cron, zone, gap, fold)| {
            let (cron, zone) = (cron.parse().unwrap(), Zone::parse(zone).unwrap());
            Schedule::Cron(CronSchedule::new(cron, zone, gap, fold))
        }),
        workflow().prop_map(Schedule::Dependent),
        calendar().prop_map(Schedule::Calendar),
    ]
    .boxed()
}

fn job_keys() -> BoxedStrategy<JobKeys> {
    let functions = (workflow(), function(), function()).prop_map(|(workflow, parents, children)| TwoWay {
        workflows: vec![workflow],
        parents,
        children,
    });
    let wanted = prop_oneof![Just(ValueFilter::All), text().prop_map(|value| ValueFilter::Of(vec![value.into()]))];
    let member = (workflow(), wanted, prop::option::of(text())).prop_map(|(workflow, wanted, id)| Member {
        workflows: vec![workflow],
        values: BTreeMap::from([("client".into(), wanted)]),
        job_ids: id.map(|id| vec![id.into()]),
    });
    let group = (text(), prop::collection::vec(member, 0..3), prop::option::of(functions))
        .prop_map(|(name, members, functions)| Group { name, members, functions });
    let kind = prop_oneof![
        Just(Kind::Text),
        any::<Option<i64>>().prop_map(|min| Kind::Integer { min, max: min }),
        Just(Kind::Date { form: DateForm::Dashed }),
        text().prop_map(|one| Kind::Choice { of: vec![one.into()] }),
        Just(Kind::Pattern { pattern: kelos_model::jobs::Pattern::new("^a+$").unwrap() }),
    ];
    let feed = schedule().prop_map(|schedule| Feed { identifier: "date".into(), schedule });
    let valid = prop::option::of(function())
        .prop_map(|function| Validity { values: BTreeMap::from([("client".into(), vec!["1".into()])]), function });
    (prop::collection::vec(group, 0..3), kind, prop::option::of(feed), prop::option::of(valid), function())
        .prop_map(|(depends_on, kind, feed, valid, check)| JobKeys {
            identifiers: BTreeMap::from([("date".into(), kind)]),
            checks: BTreeMap::from([("client".into(), check)]),
            domains: BTreeMap::from([("client".into(), vec!["1".into(), "2".into()])]),
            depends_on,
            valid,
            feed,
            mistake: None,
            ..JobKeys::new(JobTemplate::new("{date}_{client}").unwrap())
        })
        .boxed()
}

fn keys() -> BoxedStrategy<Keys> {
    let catch_up = prop::sample::select(vec![CatchUp::Skip, CatchUp::Latest, CatchUp::All]);
    let properties = prop::collection::btree_map(text(), text(), 0..2);
    let events = (workflow(), catch_up, properties, prop::option::of(moment()), any::<u64>(), any::<bool>()).prop_map(
        |(program, catch_up, properties, end_time, millis, enabled)| EventKeys {
            timeout_millis: millis,
            properties,
            end_time,
            jitter_millis: millis / 3,
            catch_up,
            enabled,
            ..EventKeys::new("name", program)
        },
    );
    prop_oneof![
        schedule().prop_map(Keys::Schedule),
        job_keys().prop_map(|keys| Keys::Jobs(Box::new(keys))),
        events.prop_map(|events| Keys::Events(Box::new(events))),
        (text(), prop::option::of(text())).prop_map(|(name, kind)| Keys::Requests(Box::new(Program { name, kind }))),
    ]
    .boxed()
}

fn constraint() -> BoxedStrategy<Constraint> {
    let gate = prop_oneof![
        any::<u32>().prop_map(Gate::Concurrency),
        any::<u64>().prop_map(Gate::Delay),
        any::<u64>().prop_map(Gate::SinceLastRun),
        Just(Gate::Window(kelos_model::time::Window::new("22:00", "6:30", Zone::parse("PST").unwrap()).unwrap())),
    ];
    (gate, prop::sample::select(vec![Otherwise::Wait, Otherwise::Abort]))
        .prop_map(|(gate, otherwise)| Constraint { gate, otherwise })
        .boxed()
}

fn retry() -> BoxedStrategy<RetryPolicy> {
    let growth = prop::sample::select(vec![Growth::Fixed, Growth::Exponential]);
    let on_unknown = prop::sample::select(vec![OnUnknown::Retry, OnUnknown::Fail, OnUnknown::Again]);
    (any::<u32>(), any::<u64>(), growth, any::<Option<u64>>(), any::<u8>(), on_unknown)
        .prop_map(|(count, delay_seconds, growth, cap_seconds, jitter_percent, on_unknown)| RetryPolicy {
            count,
            delay_seconds,
            growth,
            cap_seconds,
            jitter_percent,
            on_unknown,
        })
        .boxed()
}

fn about() -> BoxedStrategy<About> {
    let contact =
        (prop::option::of(text()), prop::option::of(text())).prop_map(|(name, email)| Contact { name, email });
    (
        prop::option::of(text()),
        prop::option::of(text()),
        prop::collection::vec(contact, 0..2),
        prop::collection::vec(text(), 0..2),
    )
        .prop_map(|(description, url, contacts, tags)| About { description, url, contacts, tags })
        .boxed()
}

fn job() -> BoxedStrategy<Job> {
    let properties = prop_oneof![
        prop::collection::btree_map(text(), text(), 0..2).prop_map(|fixed| {
            Properties::Fixed(fixed.into_iter().map(|(name, value)| (name, value.into())).collect())
        }),
        function().prop_map(Properties::Function),
    ];
    let label = prop::sample::select(vec!["gpu", "eu", "zone=1"]).prop_map(|text| Label::new(text).expect("a label"));
    let on_lost = prop_oneof![Just(LossPolicy::Retry), Just(LossPolicy::End), any::<u64>().prop_map(LossPolicy::Wait)];
    (text(), properties, any::<Option<i64>>(), prop::collection::btree_set(label, 0..3), on_lost)
        .prop_map(|(executor, properties, setting, runs_on, on_lost)| Job {
            runs_on,
            on_lost,
            settings: setting.into_iter().map(|value| ("setting".to_owned(), value.into())).collect(),
            properties,
            executor,
        })
        .boxed()
}

fn whole_trigger() -> BoxedStrategy<Trigger> {
    let ends = kelos_model::facts::ENDS.to_vec();
    let zone = prop::sample::select(vec!["UTC", "Asia/Tokyo"]);
    let of_facts = prop_oneof![
        (text(), any::<u32>()).prop_map(|(dataset, count)| Trigger::Partitions { dataset: dataset.into(), count }),
        workflow().prop_map(move |program| Trigger::Ended { program, states: ends.clone() }),
        zone.prop_map(|zone| Trigger::Fired {
            firing: Firing::parse("0 4 * * *", Zone::parse(zone).unwrap()).unwrap()
        }),
        text().prop_map(|name| Trigger::Signal { name: name.into() }),
        (workflow(), text()).prop_map(|(workflow, job)| Trigger::Job { workflow, job }),
    ];
    (trigger(), of_facts).prop_map(|(one, other)| Trigger::Or { triggers: vec![one, other] }).boxed()
}

/// A flow of some steps that do the same, one after the other, and of a step of each other kind.
fn flow(steps: u32, job: &Job) -> Flow {
    let name = |number: u32| StepName::new(&format!("s{number}")).unwrap();
    let step = |number: u32| Step {
        needs: (0..number).map(name).collect(),
        inputs: serde_json::Map::from_iter([("n".to_owned(), number.into())]),
        ..Step::new(name(number), job.clone())
    };
    let signal = SignalWait { name: "go".to_owned(), within_seconds: Some(60) };
    let list = ItemList { input: "list".to_owned(), most: 3, concurrency: Some(2) };
    let others = [
        Step::waiting_for(StepName::new("wait").unwrap(), signal),
        Step { for_each: Some(list), ..Step::new(StepName::new("each").unwrap(), job.clone()) },
        Step { signals: vec!["go".to_owned()], ..Step::new(StepName::new("may").unwrap(), job.clone()) },
        Step { handles: vec![name(0)], at_once: true, ..Step::new(StepName::new("oops").unwrap(), job.clone()) },
    ];
    Flow { steps: (0..steps).map(step).chain(others).collect() }
}

/// Definitions of all kinds.
pub(crate) fn definition() -> BoxedStrategy<Workflow> {
    let provenance = prop::sample::select(vec![Provenance::File, Provenance::Api, Provenance::Code]);
    let source =
        (provenance, text(), any::<u32>()).prop_map(|(provenance, file, line)| Source { provenance, file, line });
    let pools =
        prop::option::of((any::<u32>(), any::<u32>(), prop::option::of((any::<u32>(), any::<u64>(), any::<u32>()))))
            .prop_map(|pool| {
                pool.map(|(size, permits, rate)| {
                    let rate = rate.map(|(tokens, millis, burst)| TokenRate { tokens, millis, burst });
                    PoolUse { pool: PoolId::new("p").unwrap(), size, permits, rate }
                })
            });
    let limit = prop::option::of(0..u32::MAX);
    let what = (workflow(), source, keys(), whole_trigger(), prop::collection::vec(constraint(), 0..3));
    let how = (
        limit,
        pools,
        retry(),
        prop::option::of(moment()),
        any::<Option<u64>>(),
        (job(), prop::collection::vec(parameter(), 0..3)),
        prop::collection::vec(text(), 0..2),
        about(),
    );
    (what, how)
        .prop_map(|((id, source, keys, trigger, constraints), how)| {
            let (concurrency, pools, retry, start_time, wait_timeout_seconds, (job, parameters), writes, about) = how;
            let policies = [CatchUp::Skip, CatchUp::Latest, CatchUp::All];
            Workflow {
                project: id.to_string(),
                id,
                source,
                keys,
                trigger,
                constraints,
                concurrency,
                within: pools.iter().filter(|one| one.permits % 2 == 0).cloned().collect(),
                batch: start_time.zip(concurrency).map(|(_, size)| BatchRule { size, delay_millis: u64::from(size) }),
                pools: pools.into_iter().collect(),
                retry,
                start_time,
                end_time: start_time.filter(|_| concurrency.is_some()),
                catch_up: wait_timeout_seconds.and_then(|seconds| policies.get(seconds as usize % 4).copied()),
                wait_timeout_seconds,
                wait_from: if wait_timeout_seconds.is_some_and(|seconds| seconds % 2 == 1) {
                    WaitStart::Opening
                } else {
                    WaitStart::Time
                },
                deadline: wait_timeout_seconds.map(deadline),
                flow: concurrency.map(|steps| Arc::new(flow(steps % 4, &job))),
                job,
                parameters,
                writes,
                version: concurrency.and_then(|limit| ProjectVersion::new(&format!("1.{limit}")).ok()),
                about,
                shares: concurrency.map(shares).unwrap_or_default(),
            }
        })
        .boxed()
}

/// A declaration with some of all kinds of names, by a number.
fn shares(number: u32) -> Shares {
    let names = |bit: u32| (number >> bit & 1 == 1).then(|| format!("n{bit}").into()).into_iter().collect();
    let sees = Sees { runs: names(0), datasets: names(1), signals: names(2), registers: names(9) };
    let sends = Sends { starts: names(3), ends: names(4), datasets: names(5), signals: names(6) };
    let projects: [Arc<str>; 2] = ["other".into(), EVERYONE.into()];
    projects
        .into_iter()
        .take((number >> 7 & 3) as usize)
        .map(|project| (project, Share { sees: sees.clone(), sends: sends.clone() }))
        .collect()
}

/// One of each kind of deadline, by a number.
fn deadline(number: u64) -> Deadline {
    let local = LocalDeadline::new("07:30", Zone::parse("Europe/Berlin").unwrap()).unwrap();
    match number % 3 {
        0 => Deadline::After(1 + number % 1_000_000),
        1 => Deadline::At(local.days_later((number % 300) as u32).unwrap()),
        _ => Deadline::At(local.business_days_later(1, &"2026-12-25".parse().unwrap()).unwrap()),
    }
}

fn range() -> BoxedStrategy<Range> {
    (moment(), 1..1_000_000_i64)
        .prop_map(|(start, millis)| Range::new(start, start + jiff::SignedDuration::from_millis(millis)))
        .boxed()
}

/// What has been planned of a workflow.
pub(crate) fn planned() -> BoxedStrategy<PlanState> {
    let kill = (moment(), actor(), reason()).prop_map(|(at, by, reason)| Kill { at, by, reason });
    let stretch = (range(), moment(), prop::option::of(backfill()), any::<i32>(), prop::option::of(kill))
        .prop_map(|(range, since, backfill, priority, killed)| Stretch { range, since, backfill, priority, killed });
    (
        prop::collection::vec(range(), 0..4),
        prop::collection::vec(stretch, 0..4),
        text(),
        prop::option::of(moment()),
        reason(),
    )
        .prop_map(|(covered, stretches, schedule, until, backlog_schedule)| {
            let (mut ranges, mut backlog) = (RangeSet::default(), Backlog::default());
            covered.into_iter().for_each(|range| ranges.insert(range));
            stretches.into_iter().for_each(|stretch| backlog.put(stretch));
            PlanState { ranges, schedule, since: until, until, backlog, backlog_schedule }
        })
        .boxed()
}

/// Moments of a workflow's past.
pub(crate) fn moments() -> BoxedStrategy<Moments> {
    let set_aside =
        prop::collection::btree_set((slot(), any::<u32>()).prop_map(|(slot, number)| RunId { slot, number }), 0..3);
    let frozen = (moment(), breach(), set_aside).prop_map(|(at, breach, set_aside)| Freeze { at, breach, set_aside });
    let last_run = (any::<u64>(), moment()).prop_map(|(seq, started)| LastRun { seq, started });
    (prop::option::of(moment()), prop::option::of(moment()), prop::option::of(last_run), prop::option::of(frozen))
        .prop_map(|(updated, fired_until, last_run, frozen)| Moments {
            fired: updated.into_iter().map(|at| ("0 4 * * *".into(), at)).collect(),
            updated,
            fired_until,
            last_run,
            frozen,
            resumed: updated,
            started_until: fired_until,
            gave: fired_until,
            spent: updated.into_iter().map(|at| (PoolId::new("p").unwrap(), at)).collect(),
        })
        .boxed()
}
