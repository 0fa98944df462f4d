//! What holds for every page.

use serde_json::{Value, json};

use crate::driver::{PHONE, WINDOW};
use crate::house::House;
use crate::world::{slot, world};

const CONTRAST: &str = include_str!("../contrast.js");
const BASICS: &str = include_str!("../basics.js");

/// The elements that stick out of a window, but for those in a scroller of their own.
const TOO_WIDE: &str = "
    const [room] = arguments;
    const scrolls = (at) => ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(at).overflowX);
    const inScroller = (element) => { for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) if (scrolls(at)) return true; };
    const wide = [...document.querySelectorAll('main *, header *')].filter((element) => element.checkVisibility() && !inScroller(element))
        .filter((element) => element.getBoundingClientRect().right > room + 1).map((element) => element.outerHTML.slice(0, 100));
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth || clientWidth > room) wide.push(`it is ${scrollWidth} wide in a window of ${clientWidth}`);
    const header = document.querySelector('header.top').offsetHeight;
    if (header > 60) wide.push(`its header is ${header} high, which is more than a line`);
    return wide.slice(0, 4);
";

/// Every page there is, with data: what the navigation leads to, and what those lead to.
pub(super) fn pages(house: &House) -> Vec<String> {
    house.open("/ui");
    let mut pages = house.tabs();
    let states = [
        ("source", "succeeded"),
        ("flaky", "failed"),
        ("again", "backoff"),
        ("sums", "waiting"),
        ("expiring", "expired"),
        ("long", "running"),
        ("Shop.AfterFour", "waiting"),
        ("Shop.ByNight", "held"),
    ];
    for (workflow, state) in states {
        pages.push(slot(workflow, &house.slots(workflow, state)[0]));
    }
    let failed = &house.slots("flaky", "failed")[0];
    let life = house.get(&format!("workflows/flaky/slots/{failed}/history"));
    pages.push(format!("{}?at={}", slot("flaky", failed), life["items"][1]["at"].as_str().expect("a time")));
    pages.extend(
        ["/ui/workflows/sums", "/ui/workflows/quiet", "/ui?zoom=1440", "/ui?only=trouble", "/ui?order=oldest&zoom=15"]
            .map(str::to_owned),
    );
    pages.push("/ui/board/cell?workflow=source&from=2000-01-01T00:00Z&to=2100-01-01T00:00Z".to_owned());
    let late = house.slots("sums", "waiting").remove(0);
    pages.extend([format!("/ui/graph?slot=sums@{late}"), format!("/ui/timeline?slot=source@{late}")]);
    let others = [
        "/ui/board/groups",
        "/ui/graph?focus=sums&up=1&down=1",
        "/ui/graph?as=list",
        "/ui/timeline?by=pool",
        "/ui/timeline?as=table",
        "/ui/calendar?months=1&workflow=source",
        "/ui/focus",
        "/ui/focus?hours=8784&versions=1",
        "/ui/focus?workflow=sums&versions=1",
        "/ui/backfills/once-more",
        "/ui/new-backfill",
        "/ui/new-backfill?workflow=source&from=2026-01-01T00:00Z&to=2026-01-03T00:00Z&mode=all",
        "/ui?tag=people",
        "/ui/activity?who=*",
        "/ui/facts",
        "/ui/workflows/Shop.AfterFour",
        "/ui/workflows/Shop.ByNight",
        "/ui/workflows/Shop.Load",
        "/ui/display",
        "/ui/workers",
        "/ui/storage",
        "/ui/nodes",
        "/ui/alerts",
        "/ui/access",
        "/ui/sign-in",
        "/ui/workflows/source/versions/1",
        "/ui/board/jobs",
        "/ui/workflows/fetch",
        "/ui/workflows/fetch?rows=client_id&columns=-",
        "/ui/workflows/report/slots/~20140601",
        "/ui/graph?slot=report@20140601",
        "/ui/activity?kind=failures&from=-2h",
        "/ui/activity?who=nobody&workflow=sourse",
        "/ui/schedules?only=disabled",
        "/ui/nothing-is-here",
        "/ui/activity?from=nonsense",
    ];
    pages.extend(others.map(str::to_owned));
    pages
}

/// The findings of a check on every page.
pub(super) fn faults(house: &House, check: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages(house) {
        house.open(&page);
        wrong.extend(check(&page).into_iter().map(|words| format!("{page}: {words}")));
    }
    wrong
}

/// Tells all faults.
#[track_caller]
pub(super) fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs a check on every page, and tells all that it found.
#[track_caller]
fn on_all(house: &House, check: impl Fn(&str) -> Vec<String>) {
    assert_none(&faults(house, check));
}

pub(super) fn lines(found: &Value) -> Vec<String> {
    found.as_array().expect("lines").iter().map(|line| line.as_str().expect("text").to_owned()).collect()
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn no_page_makes_the_console_complain() {
    let Some(house) = world() else { return };
    // The page of a fault has the status of the fault, of which the console tells, too.
    let is_fault = |page: &str, line: &str| {
        line.contains(&format!("{page} - Failed to load resource: the server responded with a status of 4"))
    };
    on_all(&house, |page| house.complaints().into_iter().filter(|line| !is_fault(page, line)).collect());
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn every_page_has_what_readers_by_ear_need() {
    let Some(house) = world() else { return };
    on_all(&house, |_| lines(&house.ask(BASICS)));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn every_text_stands_out_by_day_and_by_night() {
    let Some(house) = world() else { return };
    for scheme in ["light", "dark"] {
        house.pretend("", scheme);
        on_all(&house, |_| {
            let ground = house.ask("return getComputedStyle(document.body).backgroundColor");
            assert_eq!(ground == json!("rgb(255, 255, 255)"), scheme == "light", "{scheme}: {ground}");
            lines(&house.ask(CONTRAST)).into_iter().map(|line| format!("{scheme}: {line}")).collect()
        });
    }
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn every_page_fits_a_phone_and_a_window() {
    let Some(house) = world() else { return };
    house.size(WINDOW, false);
    let width = WINDOW.0;
    on_all(&house, |_| lines(&house.ask_of(TOO_WIDE, &[json!(width)])));
    house.size(PHONE, true);
    let width = PHONE.0;
    on_all(&house, |_| {
        let mut wrong = lines(&house.ask_of(TOO_WIDE, &[json!(width)]));
        let forms = house.ask("return document.querySelectorAll('details.action').length").as_u64().expect("a number");
        for form in 0..forms {
            house.ask_of(
                "document.querySelectorAll('details.action').forEach((one, n) => { one.open = n === arguments[0]; })",
                &[json!(form)],
            );
            wrong.extend(lines(&house.ask_of(TOO_WIDE, &[json!(width)])));
        }
        wrong
    });
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn paper_shows_what_is_told_and_nothing_to_press() {
    let Some(house) = world() else { return };
    house.pretend("print", "light");
    on_all(&house, |_| {
        lines(&house.ask(
            "const shown = [...document.querySelectorAll('header.top, button, dialog, .skip')].filter((element) => element.checkVisibility());
            const wrong = shown.map((element) => element.outerHTML.slice(0, 100));
            if (document.querySelector('main').innerText.trim().length < 20) wrong.push('nothing is left');
            return wrong;",
        ))
    });
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn pages_are_read_without_scripts() {
    let Some(house) = world() else { return };
    house.own("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    on_all(&house, |_| {
        lines(&house.ask(
            "const wrong = [...document.querySelectorAll('.scripted-only')].filter((element) => element.checkVisibility()).map((element) => element.outerHTML.slice(0, 100));
            if (document.documentElement.classList.contains('scripted')) wrong.push('scripts run');
            if (document.querySelector('main').innerText.trim().length < 40) wrong.push('nothing is told');
            return wrong;",
        ))
    });
}
