//! A flow with an approval, from its start to its end, as a person sees it.

use serde_json::json;

use crate::house::House;

const BUY: &str = r#"
kelos.flow("buy", { parameters: { customer: "ada" }, steps: {
    check: { shell: `printf '{"total": 7}' > "$KELOS_OUTPUTS"` },
    stock: { needs: "check", shell: "true" },
    approve: { needs: "check", signal: "approval", within: "2d" },
    pay: { needs: ["approve", "stock"], shell: "test -e money || { echo no money >&2; exit 3; }", onError: "sorry" },
    ship: { needs: "pay", shell: "true" },
    sorry: { shell: "exit 4" },
} });
"#;

/// Whether the node of a step in the graph has the colour of a state.
fn shows(step: &str, class: &str) -> String {
    format!("document.querySelector('#graph a.node.{class}[href$=\".{step}\"]')")
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_run_is_started_approved_and_resumed_before_ones_eyes() {
    let Some(house) = House::of(&[("workflows/buy.js", BUY)]) else { return };
    house.open("/ui/workflows/buy");
    house.until("document.querySelectorAll('#flow .edge.error').length === 1");
    house.click("#state details.action:has(input[name=name]) > summary");
    house.click("#state input[name=name]");
    house.press(&["o", "n", "e"]);
    house.click("#state details.action:has(input[name=name]) button.primary");
    house.until("location.pathname.endsWith('/slots/.one')");
    house.until(&shows("approve", "waits"));
    house.until(&shows("stock", "good"));
    house.until_says("#signals", "Waits for the signal approval");
    house.ask("window.stayed = true");
    house.click("#signals textarea");
    let payload: Vec<String> = "{\"by\": \"ada\"}".chars().map(String::from).collect();
    house.press(&payload.iter().map(String::as_str).collect::<Vec<_>>());
    house.click("#signals button.primary");
    house.until(&shows("pay", "bad"));
    assert_eq!(house.ask("return window.stayed ?? null"), json!(null), "the form led back to the page");
    house.until(&shows("sorry", "bad"));
    house.until_says("#why", "Failed steps: pay, sorry");
    house.until_says("#signals", "ada");
    house.ask("window.stayed = true");
    std::fs::write(house.folder.path().join("money"), "").expect("money");
    house.click("#actions details.action:has(select[name=from]) > summary");
    house.click("#actions details.action:has(select[name=from]) button.primary");
    house.until(&shows("ship", "good"));
    house.until("document.querySelector('#why .badge.good')");
    house.until("document.querySelectorAll('#gantt tr.along').length > 0");
    assert_eq!(house.complaints(), Vec::<String>::new());
}

const DAYS: &str = r#"
kelos.flow("days", { schedule: "daily", catchUp: "all", concurrency: 10, steps: {
    load: { shell: "true" },
    tell: { needs: "load", signal: "go", within: "2d" },
} });
"#;

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_row_of_the_board_unfolds_to_its_steps_and_follows_them() {
    let Some(house) = House::of(&[("workflows/days.js", DAYS)]) else { return };
    house.open("/ui?zoom=1440");
    house.until("document.querySelector('a.unfold[aria-expanded=false]')");
    house.ask("window.stayed = true");
    house.click("a.unfold");
    house.until("document.querySelector('a.unfold[aria-expanded=true]')");
    house.until("location.search.includes('unfold=days')");
    house.until("document.querySelectorAll('.row.step').length === 2");
    house.until("document.querySelector('.row.step .waits a[title^=tell]')");
    // The run goes on while somebody looks.
    let href = house.ask("return document.querySelector('.row.step .waits a[title^=tell]').getAttribute('href')");
    let run =
        href.as_str().expect("an address").replace("/ui/", "").replace("/slots/.", "/slots/").replace(".tell", "");
    house.post(&format!("{run}/signal"), &json!({ "signal": "go" }));
    house.until("document.querySelector('.row.step .good a[title^=tell]')");
    assert_eq!(house.ask("return window.stayed"), json!(true), "the board keeps itself up to date");
    house.click(".row.step .good a[title^=tell]");
    house.until("location.pathname.endsWith('.tell')");
    house.open("/ui?zoom=1440&unfold=days");
    house.click("a.unfold");
    house.until("document.querySelectorAll('.row.step').length === 0");
    assert_eq!(house.complaints(), Vec::<String>::new());
}
