//! Turns that could not be read back: the input at fault is refused, and whoever it came from is told why. Nothing else is lost.

use jiff::Timestamp;
use kelos_core::{Command, Input, Refusal};
use kelos_model::run::Report;
use kelos_model::{Breach, Invariant, Outcome};
use kelos_store::{Journal, Unreadable};

use super::{TurnError, TurnResult, Turns};

impl Turns {
    /// Feeds the inputs of a turn that could not be read back once more, each in a turn of its own.
    pub(super) fn feed_anew(
        &mut self,
        store: &mut dyn Journal,
        now: Timestamp,
        inputs: Vec<Input>,
    ) -> Result<TurnResult, TurnError> {
        let mut acted = self.start_over(store, now)?;
        for input in inputs {
            acted.and(self.feed(store, now, input)?);
        }
        Ok(acted)
    }

    /// Refuses an input whose turn could not be read back. Returns what is fed in its place; none if that is nothing.
    pub(super) fn refuse(
        &mut self,
        store: &mut dyn Journal,
        now: Timestamp,
        input: Input,
        unreadable: Unreadable,
        acted: &mut TurnResult,
    ) -> Result<Option<Input>, TurnError> {
        acted.refused.push(format!("{}: {unreadable}", input.words()));
        Ok(match input {
            Input::Asked { token, .. } => {
                let refusal = Refusal::Unreadable { what: unreadable.what, why: unreadable.why };
                acted.commands.push(Command::Reply { token, reply: Err(refusal) });
                None
            }
            Input::RunReported { run, report: Report::Gave { .. } } => {
                let outcome = Outcome::gave_unreadable(&unreadable.why);
                Some(Input::RunReported { run, report: Report::Ended { outcome } })
            }
            Input::Definitions { provenance, mut all, deployed } => {
                let Some(at) = all.iter().position(|one| Some(&one.id) == unreadable.workflow.as_ref()) else {
                    return Err(unreadable.into());
                };
                // The one that is in force stays.
                let refused = all.remove(at);
                all.extend(self.core.definition(&refused.id).filter(|present| **present != *refused));
                Some(Input::Definitions { provenance, all, deployed })
            }
            Input::Woke { .. } => {
                let Some(workflow) = unreadable.workflow.clone() else { return Err(unreadable.into()) };
                if self.core.is_frozen(&workflow) != Some(false) {
                    return Err(unreadable.into());
                }
                let breach = Breach::of(Invariant::RowsAreReadable, &workflow);
                acted.and(self.freeze(store, now, breach, input.words())?);
                Some(input)
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kelos_core::{Ask, Config, SetRegister};
    use kelos_model::workflow::{Keys, Program, Provenance};
    use kelos_model::{Actor, Job, RunId, SlotRef, Trigger, Workflow, WorkflowId};
    use kelos_store::{MemoryStore, StoredState as _};
    use serde_json::Map;

    use super::*;

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).unwrap()
    }

    fn workflow(name: &str, levels: usize) -> Arc<Workflow> {
        let keys = Keys::Requests(Box::new(Program { name: name.to_owned(), kind: None }));
        let mut workflow = Workflow::keyed(id(name), keys, Job::new("command", Map::new()));
        for _ in 0..levels {
            workflow.trigger = Trigger::Not { trigger: Box::new(workflow.trigger) };
        }
        Arc::new(workflow)
    }

    fn definitions(all: Vec<Arc<Workflow>>) -> Input {
        Input::Definitions { provenance: Provenance::Code, all, deployed: std::collections::BTreeMap::new() }
    }

    fn turns(store: &mut MemoryStore) -> Turns {
        let lease = store.lease("test", Timestamp::UNIX_EPOCH, 10_000).unwrap().unwrap();
        Turns::restore(Config::default(), store, lease, Timestamp::UNIX_EPOCH).unwrap().0
    }

    fn asked(token: u64) -> Input {
        let set = SetRegister { bucket: "b".to_owned(), key: "k".to_owned(), value: Some(1.into()), reason: None };
        Input::Asked { token, by: Actor::system("test"), ask: Ask::from(set), warrant: None }
    }

    fn unreadable(workflow: Option<WorkflowId>) -> Unreadable {
        Unreadable { workflow, what: "the value".to_owned(), why: "a field is missing".to_owned() }
    }

    /// Deep enough for no reader. Such a definition comes through no door, but for programs that make their own.
    #[test]
    fn a_definition_that_could_not_be_read_back_is_left_out_and_nothing_else_is_lost() {
        let mut store = MemoryStore::new();
        let mut turns = turns(&mut store);
        let (good, deep) = (workflow("good", 0), workflow("deep", 200));
        let acted = turns.turn(&mut store, Timestamp::UNIX_EPOCH, [asked(1), definitions(vec![deep, good])]).unwrap();
        assert_eq!(acted.refused.len(), 1);
        assert!(
            acted.refused[0].starts_with("the definitions: read the definition of deep back before it is stored: ")
        );
        assert!(acted.broken.is_empty());
        let known: Vec<String> = store.reader().workflows(None).unwrap().iter().map(|row| row.id.to_string()).collect();
        assert_eq!(known, ["good"]);
        assert_eq!(store.reader().register("b", "k").unwrap(), Some(1.into()), "what came with it is done");
        // A later one replaces the one that is in force, and a bad one does not.
        for (levels, refused) in [(1, 0), (200, 1)] {
            let all = vec![workflow("good", levels)];
            let acted = turns.turn(&mut store, Timestamp::UNIX_EPOCH, [definitions(all)]).unwrap();
            assert_eq!(acted.refused.len(), refused);
            let row = store.reader().workflow(&id("good")).unwrap().unwrap();
            assert_eq!((row.version, row.present), (2, true));
        }
    }

    #[test]
    fn who_asked_for_what_could_not_be_read_back_is_told() {
        let mut store = MemoryStore::new();
        let mut turns = turns(&mut store);
        let mut acted = TurnResult::default();
        let next = turns.refuse(&mut store, Timestamp::UNIX_EPOCH, asked(7), unreadable(None), &mut acted).unwrap();
        assert!(next.is_none());
        let Some(Command::Reply { token: 7, reply: Err(refusal) }) = acted.commands.first() else { panic!("a reply") };
        assert_eq!(refusal.code(), "unreadable");
        let words = "the value could not be read back once it is stored, and nothing was done: a field is missing";
        assert_eq!(refusal.to_string(), words);
    }

    #[test]
    fn a_run_that_gave_what_could_not_be_read_back_fails() {
        let mut store = MemoryStore::new();
        let mut turns = turns(&mut store);
        let run = RunId { slot: SlotRef::at(id("w"), Timestamp::UNIX_EPOCH), number: 1 };
        let gave = Input::RunReported { run, report: Report::Gave { outputs: Map::new() } };
        let mut acted = TurnResult::default();
        let next = turns.refuse(&mut store, Timestamp::UNIX_EPOCH, gave, unreadable(Some(id("w"))), &mut acted);
        let Ok(Some(Input::RunReported { report: Report::Ended { outcome }, .. })) = next else { panic!("an end") };
        assert_eq!(outcome.code(), "outputs-unreadable");
    }
}
