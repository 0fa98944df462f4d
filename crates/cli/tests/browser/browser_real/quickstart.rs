//! What somebody does who has never seen any of it.

use serde_json::json;

use super::board::cell;
use crate::house::House;

/// Where the one failure of deliver-lax stands on the board, counted from the newest column.
fn failure(house: &House) -> usize {
    house.until("document.querySelector('.row[data-w=deliver-lax] .cells > i.bad')");
    let place = "const bad = document.querySelector('.row[data-w=deliver-lax] .cells > i.bad'); return [...bad.parentElement.children].indexOf(bad)";
    usize::try_from(house.ask(place).as_u64().expect("a place")).expect("a place")
}

fn until_looks(house: &House, workflow: &str, place: usize, class: &str) {
    house.until(&format!("document.querySelector({:?}).classList.contains({class:?})", cell(workflow, place)));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn who_has_never_seen_it_finds_what_is_late_and_why_and_mends_it() {
    let Some(house) = House::quickstart() else { return };
    house.open("/ui");
    let place = failure(&house);

    // The total of an hour still waits where those before and after have succeeded.
    for near in [place - 1, place + 1] {
        until_looks(&house, "totals", near, "good");
    }
    until_looks(&house, "totals", place, "waits");

    // Two clicks lead to what it waits for.
    house.click(&cell("totals", place));
    house.until_says("#why", "wordcount-lax@");
    house.click("#why a[href*='/ui/workflows/wordcount-lax/slots/']");
    house.until_says("h1", "wordcount-lax@");
    let why = house.text("#why");
    assert!(why.contains("/0600/_READY is not ready"), "{why}");

    // And the one that is red in the same column says what went wrong.
    house.click("header .brand");
    let place = failure(&house);
    house.click(&cell("deliver-lax", place));
    house.until_says("#log-text", "the line to lax is down");
    house.click("#actions details:first-of-type summary");
    house.click("#actions input[name=reason]");
    house.press(&["u", "p"]);
    house.click("#actions details[open] form button");
    house.until_says("#why", "succeeded");

    // What depended on it follows by itself, while one looks.
    house.click("header .brand");
    house.until("document.querySelector('.cells > i.good')");
    for workflow in ["deliver-lax", "wordcount-lax", "totals"] {
        until_looks(&house, workflow, place, "good");
    }
    assert_eq!(house.ask("return document.querySelectorAll('.cells > i.bad').length"), json!(0));
    assert_eq!(house.complaints(), Vec::<String>::new());
}
