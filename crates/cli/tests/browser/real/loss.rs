//! A server that goes away under an open page.

use serde_json::json;

use crate::world::{slot, world};

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn pages_say_that_the_server_is_gone_and_go_on_when_it_is_back() {
    let Some(mut house) = world() else { return };
    let long = slot("long", &house.slots("long", "running")[0]);
    for page in ["/ui".to_owned(), long] {
        house.open(&page);
        house.ask("window.stayed = true");
        house.away(|house| house.until_says("#offline", "The server does not answer"));
        house.until("document.querySelector('#offline') === null");
        assert_eq!(house.ask("return window.stayed"), json!(true), "{page}");
    }
    // What happens from then on is seen.
    house.folder.write("more", "");
    house.folder.write("go", "");
    house.until_says("#why", "succeeded");
}
