//! Pages for everybody: axe-core finds no barrier on any of them, all targets can be hit, and no page is left out.

use std::path::Path;

use serde_json::json;

use super::pages::{assert_none, faults, lines, pages};
use crate::driver::{PHONE, WINDOW};
use crate::house::House;
use crate::world::world;

const TARGETS: &str = include_str!("../targets.js");

/// All rules but the experimental ones; what is found is told with its place.
const AXE: &str = "
    const done = arguments[0];
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    axe.run(document, { runOnly: { type: 'tag', values: tags }, rules: { 'target-size': { enabled: true } }, resultTypes: ['violations'] })
        .then((found) => done(found.violations.flatMap((rule) => rule.nodes.slice(0, 3).map((node) =>
            `${rule.id}: ${node.failureSummary.split('\\n').slice(1, 3).join(';').trim()} in ${node.html.slice(0, 110)}`))))
        .catch((error) => done([`axe failed: ${error}`]));
";

/// Routes that answer something else than a page.
const NO_PAGES: [&str; 12] = [
    "/ui/",
    "/ui/board/stream",
    "/ui/board/late",
    "/ui/board/why",
    "/ui/board/failing",
    "/ui/graph.svg",
    "/ui/graph/nodes",
    "/ui/stream",
    "/ui/workflows/{id}/slots/{time}/runs/{number}/lines",
    "/ui/assets/{hash}/{name}",
    "/ui/sign-in/openid",
    "/ui/sign-in/openid/callback",
];
const LOG: &str = "/ui/workflows/{id}/slots/{time}/runs/{number}/log.txt";

/// The routes of pages, as the router has them.
fn routes() -> Vec<String> {
    let mut routes = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).expect("a file");
                for route in text.split(".route(").skip(1) {
                    let literal = route.strip_prefix('"').and_then(|rest| rest.split_once('"'));
                    let (route, rest) = literal.unwrap_or_else(|| panic!("a route of {path:?} is no text"));
                    routes.extend(rest.starts_with(", get(").then(|| route.to_owned()));
                }
            }
        }
    }
    routes.retain(|route| !NO_PAGES.contains(&route.as_str()) && route != LOG);
    routes
}

/// Whether a route answers an address.
fn answers(route: &str, address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let (wanted, given): (Vec<&str>, Vec<&str>) = (route.split('/').collect(), path.split('/').collect());
    wanted.len() == given.len() && wanted.iter().zip(&given).all(|(want, give)| want.starts_with('{') || want == give)
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn no_page_is_left_out_of_the_walk() {
    let Some(house) = world() else { return };
    let walked = pages(&house);
    let routes = routes();
    assert!(routes.len() > 15, "{routes:?}");
    let left: Vec<&String> =
        routes.iter().filter(|route| !walked.iter().any(|address| answers(route, address))).collect();
    assert!(left.is_empty(), "{left:?} are routes of no page that `pages` walks, expected one of each there");
}

/// Runs a check on every page, light and dark, on a phone and in a window.
#[track_caller]
fn in_every_guise(house: &House, check: impl Fn() -> Vec<String>) {
    let mut wrong = Vec::new();
    for (size, is_phone) in [(WINDOW, false), (PHONE, true)] {
        house.size(size, is_phone);
        for scheme in ["light", "dark"] {
            house.pretend("", scheme);
            let found = faults(house, |_| check());
            wrong.extend(found.into_iter().map(|line| format!("{scheme}, {}: {line}", size.0)));
        }
    }
    assert_none(&wrong);
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn axe_finds_no_barrier() {
    let Some(house) = world() else { return };
    let Some(axe) = kelos_test_servers::address("KELOS_TEST_AXE") else { return };
    let source = std::fs::read_to_string(axe).expect("axe-core");
    house.own("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source }));
    in_every_guise(&house, || lines(&house.ask_later(AXE)));
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn targets_are_large_and_their_focus_is_seen() {
    let Some(house) = world() else { return };
    in_every_guise(&house, || lines(&house.ask(TARGETS)));
}
