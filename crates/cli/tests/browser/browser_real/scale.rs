//! Five hundred workflows, two days of them on the board, and a million finished runs. What it takes is printed, not judged.

use std::time::Instant;

use serde_json::{Value, json};

use crate::house::House;
use crate::past;

const WORKFLOWS: usize = 500;
const HOURS: i64 = 2000;

/// Nothing of it is planned by itself, and what is rerun succeeds.
const SCRIPT: &str = r#"
for (let n = 0; n < 500; n++) {
    celos.defineWorkflow({
        id: "workflow-" + String(n).padStart(3, "0"), tags: ["team-" + n % 7], schedule: celos.hourlySchedule(), startTime: "2100-01-01T00:00Z",
        schedulingStrategy: celos.serialSchedulingStrategy(), trigger: n % 10 ? celos.successTrigger("workflow-" + String(n - 1).padStart(3, "0")) : celos.alwaysTrigger(),
        externalService: celos.commandExternalService({ command: ["true"] }),
    });
}
"#;

/// Milliseconds that a page took, by the browser's own clock.
fn timing(house: &House) -> Value {
    house.until("performance.getEntriesByName('first-contentful-paint').length && performance.timing.loadEventEnd");
    house.ask(
        "const [page] = performance.getEntriesByType('navigation');
        return { answer: page.responseStart - page.requestStart, bytes: page.decodedBodySize, paint: performance.getEntriesByName('first-contentful-paint')[0].startTime, loaded: page.loadEventEnd };",
    )
}

/// Seconds that the page's scripts, layouts and styles took so far.
fn spent(house: &House, what: &str) -> f64 {
    let metrics = house.own("Performance.getMetrics", &json!({}));
    let metrics = metrics["metrics"].as_array().expect("metrics").iter();
    metrics.filter(|one| one["name"] == what).map(|one| one["value"].as_f64().expect("a number")).sum()
}

/// The longest frame while the board is scrolled from its first to its last row.
const SCROLL: &str = "
    const done = arguments[0], grid = document.getElementById('grid');
    let before = performance.now(), longest = 0, frames = 0;
    const step = (now) => {
        if (frames++ > 2) longest = Math.max(longest, now - before);
        before = now;
        grid.scrollTop += 150;
        if (grid.scrollTop + grid.clientHeight < grid.scrollHeight - 1) requestAnimationFrame(step); else done({ frames, longest });
    };
    requestAnimationFrame(step);
";

/// Notes when the cell of a slot turns green.
const WATCH: &str = "
    const [workflow, time] = arguments, grid = document.getElementById('grid');
    const place = 47 - (Date.parse(time) - grid.dataset.start) / 3600000;
    const cell = () => document.querySelector(`.row[data-w='${workflow}'] .cells`).children[place];
    new MutationObserver(() => { if (cell().classList.contains('good')) window.changed ??= Date.now(); })
        .observe(grid, { attributes: true, childList: true, subtree: true });
    if (!cell().classList.contains('bad')) throw new Error(`${time} is ${cell().outerHTML}`);
";

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_million_finished_runs_are_looked_at() {
    let filled = Instant::now();
    let Some(house) = House::with_past(&[("workflows/many.js", SCRIPT)], |folder| past::fill(folder, HOURS)) else {
        return;
    };
    println!("{} finished runs, written within {:.1} s", WORKFLOWS as i64 * HOURS, filled.elapsed().as_secs_f64());
    house.own("Performance.enable", &json!({}));
    house.open("/ui");
    house.until("document.querySelectorAll('.cells > i').length > 500");
    let (scripts, layout) =
        (spent(&house, "ScriptDuration"), spent(&house, "LayoutDuration") + spent(&house, "RecalcStyleDuration"));
    assert_eq!(house.ask("return document.querySelectorAll('.row[data-w]').length"), json!(WORKFLOWS));
    println!(
        "the board, {}; scripts {:.0} ms, styles and layout {:.0} ms",
        timing(&house),
        scripts * 1000.0,
        layout * 1000.0
    );
    println!("scrolled from top to bottom: {}", house.ask_later(SCROLL));
    assert_eq!(house.ask("return document.querySelectorAll('.cells > i').length"), json!(WORKFLOWS * 48));

    // A change among them is seen as soon as among few.
    let failed = house.get("slots?state=failed&limit=1000");
    let mut failed = failed["items"].as_array().expect("items").iter();
    let failed =
        failed.find(|slot| slot["workflow"].as_str().expect("text").ends_with('0')).expect("one that always may go");
    let (workflow, time) = (failed["workflow"].as_str().expect("text"), failed["time"].as_str().expect("text"));
    house.ask_of(WATCH, &[json!(workflow), json!(time)]);
    let asked = house.ask("return Date.now()").as_i64().expect("a time");
    house.post(&format!("workflows/{workflow}/slots/{time}/rerun"), &json!({}));
    house.until("window.changed");
    println!("a rerun was seen after {} ms", house.ask("return window.changed").as_i64().expect("a time") - asked);

    let mut pages = house.tabs();
    pages.extend(["/ui?zoom=1440", "/ui?zoom=15"].map(str::to_owned));
    pages.extend([format!("/ui/workflows/{workflow}"), format!("/ui/workflows/{workflow}/slots/{time}")]);
    for page in pages {
        house.open(&page);
        println!("{page}: {}", timing(&house));
        assert_eq!(house.complaints(), Vec::<String>::new(), "{page}");
    }
}
