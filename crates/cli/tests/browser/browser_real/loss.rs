//! A server that goes away under an open page, or says nothing more.

use serde_json::json;

use crate::house::House;
use crate::world::{slot, world};

/// Whether nothing on the page is green any more, and it says so.
const IS_GREY: &str =
    "document.getElementById('offline')?.innerText.includes('The server does not answer; it was last heard from')
    && document.querySelector('#offline time[datetime]')
    && ['main', '.health'].every((css) => getComputedStyle(document.querySelector(css)).filter === 'grayscale(1)')";
const IS_ALIVE: &str =
    "!document.getElementById('offline') && getComputedStyle(document.querySelector('main')).filter === 'none'";

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn pages_say_that_the_server_is_gone_and_go_on_when_it_is_back() {
    let Some(mut house) = world() else { return };
    let long = slot("long", &house.slots("long", "running")[0]);
    // One that lives by a stream of its own, one that shows nothing live, and one that follows the log.
    for page in ["/ui".to_owned(), "/ui/display".to_owned(), long] {
        house.open(&page);
        house.ask("window.stayed = true");
        house.until(IS_ALIVE);
        house.away(|house| house.until(IS_GREY));
        house.until(IS_ALIVE);
        assert_eq!(house.ask("return window.stayed"), json!(true), "{page}");
    }
    // What happens from then on is seen.
    house.folder.write("more", "");
    house.folder.write("go", "");
    house.until_says("#why", "succeeded");
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_server_that_hangs_is_as_silent_as_one_that_is_gone() {
    let Some(house) = House::of(&[]) else { return };
    for page in ["/ui", "/ui/stuck"] {
        house.open(page);
        house.until(IS_ALIVE);
        house.signal("STOP");
        house.until(IS_GREY);
        house.signal("CONT");
        house.until(IS_ALIVE);
    }
}
