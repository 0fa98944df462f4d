//! The details of a notice besides the event itself: read when it is sent, so that it is as things are then.

use jiff::Timestamp;
use kelos_engine::Handle;
use kelos_executors::workers::Hub;
use kelos_explain::{failures, why};
use kelos_model::time::format_short;
use kelos_model::{RunId, SlotKey, SlotRef, WorkflowId};
use kelos_store::Queries;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::condition::Condition;
use crate::notice::Notice;
use crate::phase::Phase;

/// Last lines of output that are sent, and their bytes.
const LINES: usize = 20;
const BYTES: usize = 2_000;

/// The details of a notice besides the event itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The answer to why, in one sentence.
    pub why: Option<String>,
    /// The number of slots that wait for it.
    pub followers: usize,
    /// Whether there may be more: not all were asked.
    pub may_have_more: bool,
    /// The last lines of its output.
    pub output: Vec<String>,
    /// The address of its page.
    pub link: Option<String>,
}

impl Details {
    /// Reads why, and what waits for it. Blocks. What can't be read is left out: the notice is sent all the same.
    pub(crate) fn read(notice: &Notice, reader: &dyn Queries, now: Timestamp, url: Option<&str>) -> Details {
        let mut details = Details { link: url.map(|url| link(notice, url)), ..Details::default() };
        if matches!(notice.phase, Phase::Over | Phase::Test) {
            return details;
        }
        if notice.condition == Condition::Endpoint {
            details.read_outage(notice, reader, now);
            return details;
        }
        let subject = match notice.condition {
            Condition::Failed => notice.run.as_ref().map(|run| run.slot.clone()),
            Condition::Late => notice.latest.as_ref().or(notice.members.last()).and_then(|member| slot_named(member)),
            Condition::WillBeLate | Condition::Stuck => notice.members.first().and_then(|member| slot_named(member)),
            _ => None,
        };
        let Some(slot) = subject else { return details };
        details.why = why::read(reader, &slot, now, true, None).ok().map(|why| why.headline);
        let found = failures::find(reader, now).unwrap_or_default();
        let of_it = found.rows.iter().filter(|row| notice.members.contains(&row.slot.to_string()));
        details.followers = of_it.map(|row| row.followers.len()).sum();
        details
    }

    /// Reads how many slots an endpoint holds, and why the first of them waits.
    fn read_outage(&mut self, notice: &Notice, reader: &dyn Queries, now: Timestamp) {
        let Some(endpoint) = notice.members.first() else { return };
        let Ok(outage) = failures::held_by(reader, endpoint, now) else { return };
        (self.followers, self.may_have_more) = (outage.slots.len() + outage.followers, outage.is_partial);
        let why = outage.slots.first().and_then(|slot| why::read(reader, slot, now, true, None).ok());
        self.why = why.map(|why| {
            let reason = if why.blockers.is_empty() { why.headline } else { why.blockers.join("; ") };
            format!("{}: {reason}", why.slot.short())
        });
    }

    /// The same with the last lines of a run's output.
    pub(crate) async fn with_output(self, run: &RunId, handle: &Handle, hub: &Hub) -> Details {
        let (reader, slot) = (handle.reader().clone(), run.slot.clone());
        let runs = tokio::task::spawn_blocking(move || reader.slot_runs(&slot)).await;
        let runs = runs.ok().and_then(Result::ok).unwrap_or_default();
        let external_id = runs.iter().find(|known| known.id == *run).and_then(|run| run.external_id.as_deref());
        let Ok(read) = hub.output(run, external_id).last_lines(LINES, BYTES).await else { return self };
        let lines = read.lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned());
        Details { output: lines.collect(), ..self }
    }
}

/// The slot with a name.
pub(crate) fn slot_named(name: &str) -> Option<SlotRef> {
    let (workflow, key) = name.split_once('@')?;
    Some(SlotRef::new(WorkflowId::new(workflow).ok()?, SlotKey::parse(key).ok()?))
}

/// The page of what a notice is about.
fn link(notice: &Notice, url: &str) -> String {
    let is_of_slots = matches!(notice.condition, Condition::Late | Condition::WillBeLate | Condition::Stuck);
    let one = notice.members.first().filter(|_| is_of_slots && notice.count == 1);
    if let Some(slot) = notice.run.as_ref().map(|run| run.slot.clone()).or_else(|| slot_named(one?)) {
        return format!("{url}{}", slot_path(&slot));
    }
    match (&notice.about.workflow, notice.condition) {
        (_, Condition::Disk) => format!("{url}/ui/storage"),
        (_, Condition::Leader | Condition::Nodes) => format!("{url}/ui/nodes"),
        (_, Condition::Stuck) => format!("{url}/ui/stuck"),
        (_, Condition::Script | Condition::Endpoint) => format!("{url}/ui/problems"),
        (Some(workflow), _) => format!("{url}/ui/workflows/{}", segment(workflow.as_str())),
        (None, _) => format!("{url}/ui"),
    }
}

fn slot_path(slot: &SlotRef) -> String {
    let key = slot.key.time().map_or_else(|| slot.key.to_string(), format_short);
    format!("/ui/workflows/{}/slots/{}", segment(slot.workflow.as_str()), segment(&key))
}

/// A text as a part of a path.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
