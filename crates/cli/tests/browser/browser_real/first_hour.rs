//! The walk of docs/first-hour.md, on the pages: a mistake, a failure, a repair, a backfill. Its files are those of the document.

use std::path::Path;

use serde_json::json;

use super::pictures::take;
use crate::house::House;
use crate::support::Folder;

/// The file of the document that begins with a mistake.
const SCRIPT: &str = "workflows/sales.js";

/// The text of that file, as the document shows it.
fn script() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-hour.md");
    let page = std::fs::read_to_string(page).expect("the document");
    let (_, rest) = page.split_once(&format!("<!-- file shop/{SCRIPT} -->\n```js\n")).expect("the mark of the file");
    rest.split_once("```").expect("its end").0.to_owned()
}

/// Takes a picture for the document where pictures are asked for; else looks until the page says these words.
fn look(house: &House, name: &str, page: &str, words: &str) {
    let says = format!("document.body.innerText.includes({words:?})");
    if std::env::var_os("KELOS_BLESS").is_some() {
        return take(house, &format!("first-hour-{name}"), page, &says);
    }
    house.open(page);
    house.until(&says);
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_newcomer_makes_a_mistake_repairs_a_failure_and_catches_up() {
    let init = |folder: &Folder| drop(folder.run(&["init", "."]).ok());
    let Some(house) = House::with_past(&[], init) else { return };
    house.pretend("", "light");
    house.until_slots("hello", "succeeded", 24);

    house.folder.write(SCRIPT, &script());
    look(&house, "mistake", "/ui/problems", "did you mean 'concurrency'");

    house.folder.write(SCRIPT, &script().replace("concurency", "concurrency"));
    let failed = house.until_slots("fetch", "failed", 7).swap_remove(1);
    house.until_slots("report", "succeeded", 160);
    house.open("/ui");
    house.until("document.querySelector('.row[data-w=fetch] .cells > i.bad')");
    look(&house, "board", "/ui", "fetch");
    house.click(".row[data-w=fetch] .cells > i.bad");
    house.until_says("h1", "fetch@");
    look(&house, "failure", &format!("/ui/workflows/fetch/slots/{failed}"), "closed for cleaning");

    house.folder.write("opened", "");
    house.folder.run(&["rerun", "fetch", "--failed"]).ok();
    house.until_slots("report", "succeeded", 168);
    house.open("/ui");
    house.until("document.querySelector('.row[data-w=report] .cells > i.good')");
    assert_eq!(house.ask("return document.querySelectorAll('.cells > i.bad').length"), json!(0));

    house.open("/ui/new-backfill?workflow=fetch&from=2026-10-01T00:00Z&to=2026-11-01T00:00Z&name=october");
    house.click("form[method=post][action='/ui/new-backfill'] button");
    house.until_says("h1", "october");
    look(&house, "backfill", "/ui/backfills/october", "744");
    assert_eq!(house.complaints(), Vec::<String>::new());
}
