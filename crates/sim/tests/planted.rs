//! An invariant of one workflow breaks on purpose, and no other notices; `cargo xtask sim` goes through more seeds.

use kelos_sim::{Figures, drive};

#[test]
fn a_broken_invariant_freezes_its_workflow_and_no_other_notices() {
    let mut figures = Figures::default();
    let mut failures = Vec::new();
    for seed in 0..40 {
        match drive::planted(seed) {
            Ok(one) => figures += one,
            Err(wrong) => failures.push(format!("seed {seed}: {wrong}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(figures.frozen >= 15, "the seeds break something: {figures:?}");
    assert!(figures.set_aside >= 3, "some inputs can't be heard even then: {figures:?}");
}
