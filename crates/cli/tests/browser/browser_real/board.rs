//! The board: it lives, and is acted on by mouse.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::driver::{CONTROL, SHIFT};
use crate::house::House;
use crate::world::{HOURS, world};

/// A cell of a workflow, counted from the newest; what this gives is a selector.
pub(crate) fn cell(workflow: &str, place: usize) -> String {
    format!(".row[data-w={workflow:?}] .cells > i:nth-child({})", place + 1)
}

/// Where the newest slot of a workflow is.
fn newest(house: &House, workflow: &str) -> usize {
    let place = "return [...document.querySelector(`.row[data-w='${arguments[0]}'] .cells`).children].findIndex((cell) => cell.className)";
    let place = house.ask_of(place, &[json!(workflow)]);
    usize::try_from(place.as_i64().expect("a place")).unwrap_or_else(|_| panic!("{workflow} shows no slot"))
}

/// Opens the board, and waits until rows are painted.
pub(crate) fn board(house: &House) {
    house.open("/ui");
    house.until("document.querySelector('.cells > i.good')");
}

fn picked(house: &House) -> Value {
    house.ask("return document.querySelectorAll('.cells > i.picked').length")
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_slot_turns_green_while_one_looks() {
    let Some(house) = world() else { return };
    board(&house);
    let place = newest(&house, "long");
    let css = cell("long", place);
    assert_eq!(house.text(&css), "R");
    house.ask_of(
        "const cell = document.querySelector(arguments[0]);
        new MutationObserver(() => { if (cell.classList.contains('good')) window.green ??= Date.now(); }).observe(cell, { attributes: true });",
        &[json!(css)],
    );
    house.folder.write("more", "");
    house.folder.write("go", "");
    house.until("window.green");
    // A page that was loaded again would not remember.
    let seen = house.ask("return window.green").as_i64().expect("a time");
    let ended = house.get("events?workflow=long&limit=1000");
    let ended =
        ended["items"].as_array().expect("items").iter().find(|event| event["event"] == "succeeded").expect("an end");
    let ended: Timestamp = ended["at"].as_str().expect("a time").parse().expect("a time");
    println!("a slot was green {} ms after its run had ended", seen - ended.as_millisecond());
    assert_eq!(house.text(&css), "S");
    assert_eq!(house.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_click_opens_a_slot() {
    let Some(house) = world() else { return };
    board(&house);
    house.click(&cell("flaky", newest(&house, "flaky")));
    house.until("location.pathname.startsWith('/ui/workflows/flaky/slots/')");
    assert!(house.text("#why").contains("failed"), "{}", house.text("#why"));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn cells_are_selected_one_by_one_and_as_rectangles() {
    let Some(house) = world() else { return };
    board(&house);
    let place = newest(&house, "flaky");
    house.click_with(CONTROL, &cell("flaky", place));
    assert_eq!(house.text("#selected"), "1 slot selected");
    // Between them stands "again"; an empty cell can't be selected.
    house.click_with(SHIFT, &cell("expiring", place + 2));
    assert_eq!(picked(&house), 9);
    house.click_with(CONTROL, &cell("source", place + 1));
    assert_eq!(house.text("#selected"), "10 slots selected");
    house.click_with(CONTROL, &cell("flaky", place));
    assert_eq!(picked(&house), 9);
    house.press(&[crate::driver::ESCAPE]);
    assert_eq!(picked(&house), 0);
    house.until("document.getElementById('selection').hidden");
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn many_slots_are_rerun_and_what_refused_is_named() {
    let Some(house) = world() else { return };
    board(&house);
    let place = newest(&house, "flaky");
    house.click_with(CONTROL, &cell("flaky", place));
    house.click_with(SHIFT, &cell("flaky", place + HOURS - 1));
    // One that can't be and one that is to refuse: a summary tells of the first.
    house.click_with(CONTROL, &cell("long", newest(&house, "long")));
    house.click_with(CONTROL, &cell("expiring", place));
    house.folder.write("mended", "");
    house.click("[data-act=rerun]");
    house.until_says("#act-go", "Rerun 7 slots");
    let summary = house.text("#act-body");
    assert!(summary.contains("7 slots of 2 workflows: "), "{summary}");
    assert!(summary.contains("1 slot will be left alone: not final yet"), "{summary}");

    // Somebody else is faster with one of them: there is another summary.
    let first = house.slots("flaky", "failed").pop().expect("a slot");
    house.pause("flaky");
    house.post(&format!("workflows/flaky/slots/{first}/rerun"), &json!({}));
    house.click("#act-go");
    house.until_says("#act-body", "1 slot went on meanwhile");
    house.until_says("#act-go", "Rerun 6 slots");
    // And somebody is faster with a second one, after the last look.
    let second = house.slots("flaky", "failed").pop().expect("a slot");
    house.ask_of(
        "const post = Kelos.post, [second] = arguments;
        Kelos.post = async (path, body) => { if (path.includes(encodeURIComponent(second))) await post(path, {}); return post(path, body); };",
        &[json!(second)],
    );
    house.ask(
        "const bar = document.getElementById('act-progress');
        window.steps = [];
        new MutationObserver(() => steps.push(`${bar.value} of ${bar.max}`)).observe(bar, { attributes: true });",
    );
    house.ask("document.getElementById('act-reason').value = 'the table is there again'");
    house.click("#act-go");
    house.until_says("#act-body", "5 slots will run again.");
    let result = house.text("#act-body");
    assert!(result.contains("1 slot could not be:"), "{result}");
    assert!(result.contains(" @ "), "{result}");
    let steps = house.ask("return window.steps");
    assert!(steps.as_array().expect("steps").contains(&json!("6 of 6")), "{steps}");
    house.post("workflows/flaky/resume", &json!({}));
    house.press(&[crate::driver::ESCAPE]);
    for back in 0..HOURS {
        house.until(&format!("document.querySelector({:?}).classList.contains('good')", cell("flaky", place + back)));
    }
    let told = house.get("events?workflow=flaky&limit=1000").to_string();
    assert_eq!(told.matches("the table is there again").count(), 4, "{told}");
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn the_address_holds_what_is_shown() {
    let Some(house) = world() else { return };
    board(&house);
    house.click("#find");
    house.press(&["f", "l", "a", "k"]);
    house.until("document.querySelectorAll('.row[data-w]:not([hidden])').length === 1");
    assert_eq!(house.place(), "/ui?find=flak");
    let again = house.place();
    house.open("/ui/problems");
    house.open(&again);
    house.until("document.querySelectorAll('.row[data-w]:not([hidden])').length === 1");
    assert!(house.text("#count").starts_with("1 of "), "{}", house.text("#count"));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn columns_fill_the_window_and_groups_stay_folded() {
    let Some(house) = world() else { return };
    let room = "document.querySelector('.grid').clientWidth - document.querySelector('.head .name').offsetWidth";
    let fits = format!(
        "Math.floor(({room}) / 24) === Number(document.getElementById('grid').dataset.count) && document.querySelector('.cells > i')"
    );
    for width in [1400, 2300, 390] {
        house.size((width, 900), width < 400);
        board(&house);
        house.until(&fits);
        let count = house.ask("return document.getElementById('grid').dataset.count");
        // The next page has them at once, and a window that changes is filled, too.
        house.open("/ui");
        assert_eq!(house.ask("return document.getElementById('grid').dataset.count"), count, "{width}");
        println!("{width} pixels have room for {count} columns");
    }
    house.size((1400, 900), false);
    house.until(&fits);

    let fold = ".rows[aria-label='world'] .fold";
    house.click(fold);
    let place = newest(&house, "flaky");
    let worst = format!(".rows[aria-label='world'] .heading .cells > i:nth-child({})", place + 1);
    let is_folded = format!(
        "document.querySelector({worst:?})?.textContent === 'F' && Number(document.querySelector({worst:?}).dataset.n) > 3
         && !document.querySelector('.row[data-w=flaky]').checkVisibility() && document.querySelector({fold:?}).getAttribute('aria-expanded') === 'false'"
    );
    house.until(&is_folded);
    house.open("/ui");
    house.until(&is_folded);
    // A search finds a row in it.
    house.click("#find");
    house.press(&["f", "l", "a", "k"]);
    house.until("document.querySelector('.row[data-w=flaky]').checkVisibility()");
    house.open("/ui");
    house.click(fold);
    house.until("document.querySelector('.row[data-w=flaky]').checkVisibility()");
    assert_eq!(house.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn zone_theme_and_direction_are_chosen_once() {
    let Some(house) = world() else { return };
    house.open("/ui/stuck");
    house.click("#display");
    house.until("location.pathname === '/ui/display'");
    house.ask("document.getElementById('display-zone').value = 'Asia/Kolkata'");
    house.click("input[name=theme][value=dark]");
    house.click("input[name=order][value=oldest]");
    house.click("form.display button.primary");
    house.until("location.pathname === '/ui/stuck'");
    let chosen =
        "document.documentElement.dataset.zone === 'Asia/Kolkata' && document.documentElement.dataset.theme === 'dark'";
    for page in ["/ui/stuck", "/ui", "/ui/activity", "/ui/timeline", "/ui/nothing-is-here"] {
        house.open(page);
        house.until(chosen);
        house.until("getComputedStyle(document.body).backgroundColor === 'rgb(18, 22, 28)'");
    }
    house.open("/ui");
    house.until("document.getElementById('grid').dataset.order === 'oldest' && document.getElementById('grid').dataset.zone === 'Asia/Kolkata'");
    // Times are told as so long ago, kept fresh, with the exact one where one points.
    house.open("/ui/activity");
    let first = "document.querySelector('#events time[data-relative]')";
    house.until(&format!(
        "/ ago$/.test({first}.textContent) && /Z$/.test({first}.title) && / \\+05:30| IST/.test({first}.title)"
    ));
    let told = house.text("#events time[data-relative]");
    house.until(&format!("{first}.textContent !== {told:?}"));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_slot_past_its_deadline_has_a_corner_and_says_so() {
    let start = Timestamp::now() - SignedDuration::from_hours(2);
    let script = format!(
        r#"kelos.workflow("slow", {{ schedule: "hourly", startTime: "{start}", catchUp: "all",
            after: celos.fileCheckTrigger("file:there"), deadline: "1s", command: ["true"] }});"#
    );
    let Some(house) = House::of(&[("workflows/slow.js", &script)]) else { return };
    house.until_slots("slow", "waiting", 2);
    house.open("/ui");
    house.until("document.querySelector('.cells > i[data-late]')");
    let label = house.ask("return document.querySelector('.cells > i[data-late]').getAttribute('aria-label')");
    assert!(label.as_str().is_some_and(|label| label.ends_with("waiting, past its deadline")), "{label}");
    assert!(house.text(".row[data-w='slow'] em.overdue").ends_with(" late"));
    // It is as readable as the letter.
    let colours = "const cell = document.querySelector('.cells > i[data-late]');
        return [getComputedStyle(cell).color, getComputedStyle(cell, '::before').borderRightColor]";
    let colours = house.ask(colours);
    assert_eq!(colours[0], colours[1]);
    house.folder.write("there", "");
    house.until("document.querySelector('.row[data-w=\"slow\"] .cells > i.good')");
    house.until("!document.querySelector('.cells > i[data-late], em.overdue')");
    assert_eq!(house.complaints(), Vec::<String>::new());
}
