//! By the keyboard alone.

use serde_json::json;

use super::board::board;
use crate::driver::{DOWN, ENTER, ESCAPE, RIGHT, SHIFT, TAB};
use crate::house::House;
use crate::world::world;

/// The name of what has the focus, as readers by ear are told.
fn focused(house: &House) -> String {
    let name = "return document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText";
    house.ask(name).as_str().expect("a name").to_owned()
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn slots_are_found_selected_and_rerun_by_keys() {
    let Some(house) = world() else { return };
    board(&house);
    // Only what fails, so that the first cells are known: "again", "expiring", "flaky".
    house.press(&["f", DOWN, DOWN, DOWN]);
    assert!(focused(&house).starts_with("flaky "), "{}", focused(&house));
    while focused(&house).ends_with("no slot") {
        house.press(&[RIGHT]);
    }
    assert!(focused(&house).contains("Z: failed"), "{}", focused(&house));
    // Why it failed is said with it, and to those who hear it.
    house.until_says("#here", "exited with status 3");
    house.until("document.activeElement.getAttribute('aria-label').includes('exited with status 3') && document.activeElement.title.includes('status 3')");
    house.until("document.getElementById('cell-why').textContent.includes('exited with status 3')");
    house.press(&[" "]);
    assert_eq!(house.text("#selected"), "1 slot selected");
    house.press(&[ESCAPE]);
    house.until("document.getElementById('selection').hidden");
    house.press_with(SHIFT, RIGHT);
    house.press_with(SHIFT, RIGHT);
    assert_eq!(house.text("#selected"), "3 slots selected");
    house.folder.write("mended", "");
    house.press(&["r"]);
    house.until("document.activeElement.id === 'act-go'");
    house.press(&[ENTER]);
    house.until_says("#act-body", "3 slots will run again.");
    house.press(&[ESCAPE]);
    house.until("document.querySelectorAll('.row[data-w=flaky] .cells > i.good').length === 3");
    house.press(&[ENTER]);
    house.until("location.pathname.startsWith('/ui/workflows/flaky/slots/')");
    assert!(house.text("#why").contains("succeeded"));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_sheet_tells_the_keys_and_every_tab_has_its_own() {
    let Some(house) = world() else { return };
    board(&house);
    house.press(&["?"]);
    house.until("document.getElementById('keys').open");
    let sheet = house.text("#keys");
    assert!(sheet.contains("go to Board") && sheet.contains("into the board"), "{sheet}");
    house.press(&[ESCAPE]);
    house.until("!document.getElementById('keys').open");
    let tabs = house.ask(
        "return [...document.querySelectorAll('nav a[data-key]')].map((a) => [a.dataset.key, a.getAttribute('href')])",
    );
    for tab in tabs.as_array().expect("tabs").iter().rev() {
        house.press(&["g", tab[0].as_str().expect("a key")]);
        house.until(&format!("location.pathname === {} && document.readyState === 'complete'", tab[1]));
    }
    assert_eq!(house.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn tab_leads_past_the_navigation_first() {
    let Some(house) = world() else { return };
    house.open("/ui/problems");
    house.press(&[TAB]);
    assert_eq!(focused(&house), "Skip to the contents");
    house.press(&[ENTER]);
    house.until("document.activeElement === document.querySelector('main')");
    assert_eq!(house.ask("return location.hash"), json!("#main"));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_page_stays_as_dark_as_it_was_made() {
    let Some(house) = world() else { return };
    house.pretend("", "light");
    house.open("/ui/problems");
    house.press(&["t"]);
    let dark = "getComputedStyle(document.body).backgroundColor === 'rgb(18, 22, 28)'";
    house.until(dark);
    house.open("/ui/activity");
    house.until(dark);
    house.click("#theme");
    house.until("getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'");
}
