//! Triggers as scenarios write them: `and(delay(60), not(success(other)))`.

use kelos_model::trigger::{FileSystem, PathCheck};
use kelos_model::{Trigger, WorkflowId};

/// Reads a trigger.
pub(crate) fn parse(text: &str) -> Result<Trigger, String> {
    let mut reader = Reader { rest: text };
    let trigger = reader.trigger()?;
    if reader.rest.is_empty() { Ok(trigger) } else { Err(format!("too much after a trigger: {}", reader.rest)) }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn trigger(&mut self) -> Result<Trigger, String> {
        let end = self.rest.find(['(', ',', ')']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name == "always" {
            return Ok(Trigger::Always);
        }
        self.expect("(")?;
        if let Some(leaf) = self.fact(name) {
            return leaf;
        }
        let trigger = match name {
            "and" => Trigger::And { triggers: self.list()? },
            "or" => Trigger::Or { triggers: self.list()? },
            "not" => Trigger::Not { trigger: Box::new(self.trigger()?) },
            "offset" => {
                let seconds = self.number()?;
                self.expect(",")?;
                Trigger::Offset { seconds, trigger: Box::new(self.trigger()?) }
            }
            "delay" => Trigger::Delay { seconds: self.number()? },
            "success" => {
                let workflow = WorkflowId::new(self.word()).map_err(|error| error.to_string())?;
                Trigger::Success { workflow }
            }
            "job" => {
                let workflow = WorkflowId::new(self.word()).map_err(|error| error.to_string())?;
                self.expect(",")?;
                Trigger::Job { workflow, job: self.word().to_owned() }
            }
            "path" => {
                let path = self.word().to_owned();
                Trigger::Path(PathCheck::new(FileSystem::Local, &path, "file:///"))
            }
            other => return Err(format!("no trigger is named {other:?}")),
        };
        self.expect(")")?;
        Ok(trigger)
    }

    /// A leaf that waits for facts.
    fn fact(&mut self, name: &str) -> Option<Result<Trigger, String>> {
        let end = self.rest.find(')').unwrap_or(self.rest.len());
        let leaf = super::events::leaf(name, &self.rest[..end])?;
        self.rest = &self.rest[end..];
        Some(leaf.and_then(|leaf| self.expect(")").map(|()| leaf)))
    }

    fn list(&mut self) -> Result<Vec<Trigger>, String> {
        let mut triggers = Vec::new();
        while !self.rest.starts_with(')') {
            if !triggers.is_empty() {
                self.expect(",")?;
            }
            triggers.push(self.trigger()?);
        }
        Ok(triggers)
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find([',', ')']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word();
        word.parse().map_err(|_| format!("{word:?} is not a number of seconds"))
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(mark).ok_or_else(|| format!("expected {mark:?} before {:?}", self.rest))?;
        self.rest = self.rest.trim_start();
        Ok(())
    }
}
