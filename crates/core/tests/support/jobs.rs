//! The words of scenarios about jobs.
//!
//! ```text
//! define app jobs {date}_{x} asks a,b                             functions know what its jobs wait for
//! said parents c@1 a@x=1 b@x=1 | said children a@1 c@x=1 | said children a@1 failed why
//! define app jobs {date}_{x} values x=1,2 after a,b(x=1|2)&c after second:d(x=all) valid x=1 attempts 2
//! submit app@20160101_1 app@... [priority 5] [readd]
//! workers on                                                    commands and steps are run by workers only
//! offer w1 2 app other | offer w1 1 app@20160101_1 | offer w1 1 app attempts 1 | offer w1 gone
//! offer w1 2 app +gpu,eu | define app jobs {x} on gpu            only a worker with the labels gets it
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_core::Offer;
use kelos_model::function::FunctionRef;
use kelos_model::jobs::{DateForm, Group, JobKeys, JobTemplate, Kind, Member, TwoWay, Validity, ValueFilter};
use kelos_model::workers::Label;
use kelos_model::{SlotKey, SlotRef, WorkflowId};

pub(crate) fn template(word: &str) -> Result<JobKeys, String> {
    let template = JobTemplate::new(word).map_err(|error| error.to_string())?;
    let dates = template.identifiers().filter(|name| name.contains("date"));
    let identifiers = dates.map(|name| (name.clone(), Kind::Date { form: DateForm::Compact })).collect();
    Ok(JobKeys { identifiers, ..JobKeys::new(template) })
}

/// `x=1,2`
pub(crate) fn values(word: &str) -> Result<(Arc<str>, Vec<Arc<str>>), String> {
    let (name, values) = word.split_once('=').ok_or("expected name=value,value")?;
    Ok((name.into(), values.split(',').map(Arc::from).collect()))
}

pub(crate) fn valid(keys: &mut JobKeys, word: &str) -> Result<(), String> {
    let (name, values) = values(word)?;
    keys.valid.get_or_insert_with(Validity::default).values.insert(name, values);
    Ok(())
}

/// `a,b(x=1|2)&c`, or `name:a`
pub(crate) fn group(word: &str) -> Result<Group, String> {
    let (name, members) = word.split_once(':').unwrap_or(("default", word));
    let members = members.split('&').map(member).collect::<Result<_, _>>()?;
    Ok(Group { name: name.to_owned(), members, functions: None })
}

/// A group that functions answer: number 1 returns parents, number 2 children.
pub(crate) fn functions(word: &str) -> Result<Group, String> {
    let workflows = word.split(',').map(|name| WorkflowId::new(name).map_err(|error| error.to_string()));
    let function = |index| FunctionRef { file: "jobs.js".to_owned(), index, digest: String::new() };
    let two_way =
        TwoWay { workflows: workflows.collect::<Result<_, _>>()?, parents: function(1), children: function(2) };
    Ok(Group { name: "asked".to_owned(), members: Vec::new(), functions: Some(two_way) })
}

/// A job as a function returns it.
type JobName = (WorkflowId, BTreeMap<Arc<str>, Arc<str>>);

/// `a@x=1,y=2`
pub(crate) fn named(word: &str) -> Result<JobName, String> {
    let (workflow, values) = word.split_once('@').ok_or("expected app@name=value")?;
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (Arc::from(name), Arc::from(value)));
    let values = values.split(',').filter_map(pair).collect();
    Ok((WorkflowId::new(workflow).map_err(|error| error.to_string())?, values))
}

fn member(word: &str) -> Result<Member, String> {
    let (names, lists) = word.split_once('(').unwrap_or((word, ")"));
    let workflows = names.split(',').map(|name| WorkflowId::new(name).map_err(|error| error.to_string()));
    let mut values = BTreeMap::new();
    for list in lists.trim_end_matches(')').split(';').filter(|list| !list.is_empty()) {
        let (name, list) = list.split_once('=').ok_or("expected name=value|value")?;
        let wanted =
            if list == "all" { ValueFilter::All } else { ValueFilter::Of(list.split('|').map(Arc::from).collect()) };
        values.insert(Arc::from(name), wanted);
    }
    Ok(Member { workflows: workflows.collect::<Result<_, _>>()?, values, job_ids: None })
}

/// The labels of workers: `gpu,eu`.
pub(crate) fn labels(word: &str) -> Result<BTreeSet<Label>, String> {
    word.split(',').map(|label| Label::new(label).map_err(|error| error.to_string())).collect()
}

/// The offer of a worker, from the words after its name; none if the worker is gone.
pub(crate) fn offer(words: &[String]) -> Result<Option<Offer>, String> {
    if words == ["gone"] {
        return Ok(None);
    }
    let (free, rest) = words.split_first().ok_or("expected a number")?;
    let free = free.parse().map_err(|_| format!("{free:?} is not a number"))?;
    let mut offer = Offer { free, ..Offer::default() };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if let Some(given) = word.strip_prefix('+') {
            offer.labels = labels(given)?;
            continue;
        }
        if word == "attempts" {
            offer.attempts = rest.next().and_then(|number| number.parse().ok());
            continue;
        }
        let (workflow, job) = word.split_once('@').map_or((&**word, None), |(workflow, job)| (workflow, Some(job)));
        let workflow = WorkflowId::new(workflow).map_err(|error| error.to_string())?;
        offer.job = offer.job.or_else(|| Some(SlotRef::new(workflow.clone(), SlotKey::Job(job?.into()))));
        offer.workflows.insert(workflow);
    }
    Ok(Some(offer))
}
