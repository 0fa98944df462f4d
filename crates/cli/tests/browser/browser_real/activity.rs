//! The log in words.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::house::House;

const SCRIPT: &str = r#"
celos.defineWorkflow({
    id: "w", schedule: celos.hourlySchedule(), startTime: "START", schedulingStrategy: celos.serialSchedulingStrategy(), trigger: celos.alwaysTrigger(),
    externalService: celos.commandExternalService({ command: ["true"] }),
});
"#;

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn what_is_opened_stays_open_while_the_page_follows() {
    let start = Timestamp::now() - SignedDuration::from_hours(6);
    let Some(house) = House::of(&[("w.js", &SCRIPT.replace("START", &start.to_string()))]) else { return };
    house.until_slots("w", "succeeded", 6);
    house.open("/ui/activity");
    house.until_says("li.alike summary", "× trigger-met");
    house.click("li.alike summary");
    house.until("document.querySelector('li.alike details').open");
    house.ask("window.stayed = true");
    house.pause("w");
    house.until_says("#events", "paused");
    assert_eq!(house.ask("return window.stayed && document.querySelector('li.alike details').open"), json!(true));
    assert_eq!(house.complaints(), Vec::<String>::new());
}
