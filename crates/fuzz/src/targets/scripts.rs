//! Scripts of definitions, through the sandbox.

use std::fs;
use std::sync::Mutex;

use kelos_sandbox::{Folders, Host, Limits, Scripts};

use super::text;
use crate::Target;
use crate::corpus::file;

pub(super) fn targets() -> Vec<Target> {
    vec![scripts()]
}

fn scripts() -> Target {
    let names = ["events", "fields", "flows", "graph", "jobs", "modern", "schedules", "tools", "triggers", "wordcount"];
    let corpus = names.iter().map(|name| file(&format!("fixtures/definitions/{name}.js"))).collect();
    let words = &[
        "celos.",
        "kelos.",
        "null",
        "undefined",
        "NaN",
        "[]",
        "{}",
        "() => 1",
        "-1",
        "1e9",
        "celos.alwaysTrigger()",
        "celos.andTrigger(",
        "celos.cronSchedule(",
        "celos.hourlySchedule()",
        "Symbol()",
        "new Proxy({}, {})",
        "${year}",
        "function(){ throw 1 }",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let folders = Folders { workflows: folder.path().join("workflows"), defaults: folder.path().join("defaults") };
    fs::create_dir(&folders.workflows).expect("a folder");
    fs::create_dir(&folders.defaults).expect("a folder");
    let script = folders.workflows.join("a.js");
    let loader = Scripts::start(folders, Limits::default(), Host::dry()).expect("a loader");
    // The folder is there as long as the target.
    let held = Mutex::new((folder, loader));
    text("scripts", corpus, words, move |input| {
        let held = held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        fs::write(&script, input).map_err(|error| error.to_string())?;
        let loaded = held.1.load();
        for workflow in &loaded.workflows {
            let stored = kelos_store::adapter::stored::text(&**workflow).map_err(|error| error.to_string())?;
            let again: kelos_model::Workflow = super::reread(&stored, kelos_store::adapter::stored::read(&stored))?;
            super::equal("the stored definition", &again, &**workflow)?;
        }
        Ok(())
    })
}
