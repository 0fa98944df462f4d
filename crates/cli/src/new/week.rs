// A week of the project on a virtual clock. No time passes, and nothing runs outside of this test.

use kelos::SlotState;
use kelos::embed::Rehearsal;

#[test]
fn a_week_is_fetched_and_reported() -> Result<(), Box<dyn std::error::Error>> {
    let mut week = Rehearsal::at("2026-03-23T00:00Z", LIBRARY::project()?)?;
    week.run_until("2026-03-30T00:00Z")?;
    assert_eq!(week.slots("orders")?.len(), 7 * 24);
    assert_eq!(week.state("report", "2026-03-29T06:00Z")?, Some(SlotState::Succeeded));
    Ok(())
}

#[test]
fn a_report_waits_for_its_orders() -> Result<(), Box<dyn std::error::Error>> {
    let mut day = Rehearsal::at("2026-03-23T00:00Z", LIBRARY::project()?)?;
    // The first two attempts fail: the next ones follow after 5 and 10 minutes.
    day.fail("orders", "2026-03-23T06:00Z", 2)?;
    day.run_until("2026-03-23T07:10Z")?;
    assert_eq!(day.state("report", "2026-03-23T06:00Z")?, Some(SlotState::Waiting));
    assert!(day.why("report", "2026-03-23T06:00Z")?.contains("orders"));
    day.run_until("2026-03-23T07:20Z")?;
    assert_eq!(day.attempts("orders", "2026-03-23T06:00Z")?, 3);
    assert_eq!(day.state("report", "2026-03-23T06:00Z")?, Some(SlotState::Succeeded));
    Ok(())
}
