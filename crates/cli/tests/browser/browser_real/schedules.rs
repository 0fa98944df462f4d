//! Event schedules: enabled, fed with facts, and watched until they run.

use serde_json::json;

use crate::house::House;
use crate::world::{events, slot, tell};

fn shop() -> Option<House> {
    House::of(&[("workflows/shop.js", &events())])
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_schedule_is_enabled_collects_and_runs_before_ones_eyes() {
    let Some(house) = shop() else { return };
    house.open("/ui/schedules?find=afterfour");
    house.until("document.querySelectorAll('#schedules tbody tr').length === 1");
    house.click("button[aria-label='Disable Shop.AfterFour']");
    house.until_says("#schedules", "disabled");
    tell(&house, "orders", 2);
    house.open("/ui/schedules");
    house.click("button[aria-label='Enable Shop.AfterFour']");
    house.until("document.querySelector(\"button[aria-label='Disable Shop.AfterFour']\")");
    house.until("document.getElementById('schedules').matches('[data-live]')");
    house.ask("window.stayed = true");
    tell(&house, "orders", 1);
    house.until_says("#schedules", "1 of 4 partitions of orders");
    tell(&house, "orders", 2);
    house.until_says("#schedules", "3 of 4 partitions of orders");
    assert_eq!(house.ask("return document.querySelector('progress.collected').value"), json!(0.75));
    tell(&house, "orders", 1);
    house.until("[...document.querySelectorAll('#schedules tr')].some((row) => row.innerText.includes('AfterFour') && row.innerText.includes('succeeded'))");
    assert_eq!(house.ask("return window.stayed"), json!(true), "nothing had to be loaded again");
    let ran = house.slots("Shop.AfterFour", "succeeded").remove(0);
    house.open(&slot("Shop.AfterFour", &ran));
    house.until_says("#story", "2 new partitions of orders");
    house.until_says("#story", "table");
    house.until_says("#log-text", "loaded");
    assert_eq!(house.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn what_is_held_says_which_gate_holds_it_and_a_person_passes_it() {
    let Some(house) = shop() else { return };
    tell(&house, "clicks", 1);
    let held = house.until_slots("Shop.ByNight", "held", 1).remove(0);
    house.open("/ui/workflows/Shop.ByNight");
    house.until_says("#own", "is closed, and opens at");
    house.until_says("#own", "No run of Shop.Load has succeeded yet");
    house.open(&slot("Shop.ByNight", &held));
    house.until_says("#why", "held since");
    house.until_says("#why", "is closed, and opens at");
    house.open("/ui/workflows/Shop.ByNight");
    house.click("#state details.action > summary");
    house.click("#state textarea");
    for key in "who=me".chars() {
        house.press(&[&key.to_string()]);
    }
    house.click("#state details.action input[name=unconstrained]");
    house.click("#state details.action button.primary");
    house.until_says("#why", "Fired by hand");
    house.until_says("#why", "succeeded");
    house.until_says("#story", "who");
    house.open("/ui/facts");
    house.until_says("#facts", "trigger met");
    assert_eq!(house.complaints(), Vec::<String>::new());
}
