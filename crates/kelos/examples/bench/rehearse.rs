//! A month of hourly slots rehearsed: scripts read, slots waited for, gated, run and judged.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use kelos_rehearsal::{Rehearsals, Verdict};
use kelos_sandbox::{Folders, Limits, TestSource};

use crate::support::{Outcome, load, median, millis};

pub(crate) fn run(workflows: usize) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("workflows"))?;
    std::fs::write(path("workflows/w.js"), scripts(workflows))?;
    let rehearsals = Rehearsals {
        format: std::sync::Arc::new(kelos_door_stolos::TasksJson),
        folders: Folders { workflows: path("workflows"), defaults: path("defaults") },
        limits: Limits::default(),
        project: folder.path().to_owned(),
        real: None,
    };
    for (what, runs) in [("data says what becomes of runs", "{}"), ("a function says it", "{\"*\": (run) => ({})}")] {
        let text = Arc::from(test(workflows, runs));
        let source = TestSource { file: "a.test.js".to_owned(), text, defaults: path("defaults") };
        let mut slots = 0;
        let times = (0..5).map(|_| {
            let begin = Instant::now();
            let report = rehearsals.rehearse(&source, folder.path(), "a month");
            assert!(matches!(report.verdict, Verdict::Passed), "{report:?}");
            slots = report.slots;
            millis(begin.elapsed())
        });
        let times = times.collect();
        println!(
            "a month of {workflows} hourly workflows rehearsed, {what}: median {:.0} ms, {slots} slots; load {}",
            median(times),
            load()
        );
    }
    Ok(())
}

/// Half wait for a path, half for the workflow before them.
fn scripts(workflows: usize) -> String {
    let mut text = String::new();
    for n in 0..workflows {
        let trigger = match n % 2 {
            0 => "celos.fileCheckTrigger(\"/in/${year}-${month}-${day}/${hour}\")".to_owned(),
            _ => format!("celos.successTrigger(\"w{}\")", n - 1),
        };
        let _ = writeln!(
            text,
            "celos.defineWorkflow({{id: \"w{n}\", schedule: celos.hourlySchedule(), schedulingStrategy: \
             celos.serialSchedulingStrategy(4), trigger: {trigger}, externalService: \
             celos.commandExternalService({{command: [\"job\", \"${{hour}}\"]}})}});"
        );
    }
    text
}

fn test(workflows: usize, runs: &str) -> String {
    let expected: Vec<String> = (0..workflows).map(|n| format!("w{n}: {{succeeded: 744}}")).collect();
    format!(
        "kelos.test(\"a month\", {{from: \"2026-01-01T00:00Z\", until: \"2026-02-01T00:00Z\", settle: \"1d\", \
         inputs: [{{path: \"/in/${{year}}-${{month}}-${{day}}/${{hour}}\", each: \"w0\", after: \"20m\"}}], \
         runs: {runs}, expect: {{slots: {{{}}}}}}});",
        expected.join(", ")
    )
}
