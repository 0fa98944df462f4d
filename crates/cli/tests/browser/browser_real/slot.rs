//! A slot's page, while its run goes on.

use serde_json::json;

use crate::world::{slot, world};

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn output_is_read_while_it_is_written() {
    let Some(house) = world() else { return };
    house.open(&slot("long", &house.slots("long", "running")[0]));
    house.until_says("#log-text", "begun");
    house.ask("window.stayed = true");
    house.folder.write("more", "");
    house.until_says("#log-text", "and more");
    house.click("#log-find");
    house.press(&["M", "O", "R", "E"]);
    house.until_says("#log-found", "1 found");
    house.folder.write("go", "");
    house.until_says("#log-text", "ended");
    house.until_says("#why", "succeeded");
    assert_eq!(house.ask("return document.getElementById('log-text').textContent"), json!("begun\nand more\nended\n"));
    assert_eq!(house.ask("return document.querySelectorAll('#log-text > .row[data-at]').length"), json!(3));
    assert_eq!(house.ask("return window.stayed"), json!(true));
    assert_eq!(house.complaints(), Vec::<String>::new());
}
