//! Pictures of the pages, for people who read about them.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::driver::{PHONE, WINDOW};
use crate::house::House;
use crate::scene::scene;

/// Writes one picture of a page, once `holds` there.
pub(super) fn take(house: &House, name: &str, page: &str, holds: &str) {
    house.open(page);
    house.until("document.readyState === 'complete'");
    house.until(holds);
    let picture = house.picture();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name).with_extension("png");
    println!("{name}: {} kB", picture.len() / 1000);
    std::fs::write(path, picture).expect("a picture");
}

#[test]
#[ignore = "needs a real server: KELOS_BLESS=1 servers/run with chromium -- cargo test -p kelos-cli --test browser -- --ignored real::pictures"]
fn pictures_are_taken_where_they_are_asked_for() {
    if std::env::var_os("KELOS_BLESS").is_none() {
        return;
    }
    let Some(house) = scene() else { return };
    house.pretend("", "light");
    let (hour, failed) = (&house.slots("sessions", "running")[0], &house.slots("ingest-payments", "failed")[0]);
    let from = (hour.parse::<Timestamp>().expect("a time") - SignedDuration::from_hours(30)).to_string();
    let backfill = json!({"name": "new-shelves", "workflow": "clean-stock", "from": from, "to": hour, "mode": "all", "reason": "shelves were counted twice"});
    let painted = "document.querySelector('.cells > i.good')";
    take(&house, "board", "/ui", painted);
    take(&house, "graph", "/ui/graph", "true");
    take(&house, "graph-path", &format!("/ui/graph?slot=board-report@{hour}"), "true");
    take(&house, "timeline", "/ui/timeline", "true");
    take(
        &house,
        "critical-path",
        &format!("/ui/timeline?slot=stock-report@{}", house.until_slots("stock-report", "succeeded", 1)[0]),
        "true",
    );
    take(
        &house,
        "slot",
        &format!("/ui/workflows/ingest-payments/slots/{failed}"),
        "document.getElementById('log-text')",
    );
    take(&house, "workflow", "/ui/workflows/inventory", "true");
    take(&house, "stuck", "/ui/stuck", "true");
    let collects = &house.slots("Purchase.DataSchedule", "waiting")[0];
    take(&house, "schedules", "/ui/schedules", "true");
    take(&house, "schedule", "/ui/workflows/Purchase.NightlyCleanup", "true");
    take(&house, "program", "/ui/workflows/Purchase.PurchaseHistory", "true");
    take(&house, "collecting", &format!("/ui/workflows/Purchase.DataSchedule/slots/{collects}"), "true");
    take(&house, "facts", "/ui/facts", "true");
    take(&house, "capacity", "/ui/capacity", "true");
    take(&house, "problems", "/ui/problems", "true");
    house.post("backfills", &backfill);
    take(&house, "backfill", "/ui/backfills/new-shelves", "true");
    take(&house, "activity", "/ui/activity", "true");
    house.pretend("", "dark");
    take(&house, "board-dark", "/ui", painted);
    house.pretend("", "light");
    house.size(PHONE, true);
    take(&house, "board-phone", "/ui", painted);
    house.size(WINDOW, false);
}
