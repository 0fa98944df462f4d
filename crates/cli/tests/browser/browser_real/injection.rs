//! What people and programs write is shown, and never run.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::house::House;

/// Markup wherever there is a text: a name that has no slash, and one that has all.
const NAME: &str = r#""><img src=x onerror=window.pwned=1><svg onload=window.pwned=2>"#;
const TEXT: &str = r#"</pre></script><script>window.pwned=3</script><img src=x onerror=window.pwned=4>'"><a href=javascript:window.pwned=5>x</a>"#;

const SCRIPT: &str = r#"
const start = { startTime: "START", schedule: celos.hourlySchedule(), schedulingStrategy: celos.serialSchedulingStrategy(9) };
const job = (words) => celos.commandExternalService({ command: ["sh", "-c", words, TEXT], environment: { NAME: TEXT } });
celos.defineWorkflow(Object.assign({ id: NAME, tags: [NAME, TEXT], description: TEXT, trigger: celos.alwaysTrigger(), externalService: job('echo "$1 $0"; exit 1') }, start));
celos.defineWorkflow(Object.assign({
    id: "waits " + NAME, trigger: celos.andTrigger(celos.successTrigger(NAME), celos.fileCheckTrigger("file:in/" + TEXT)), externalService: job("true"),
}, start));
"#;

/// A mistake whose words, path and line are markup, too.
const BROKEN: &str = "throw new Error(TEXT);\n";

fn house() -> Option<House> {
    let start = (Timestamp::now() - SignedDuration::from_hours(1) + SignedDuration::from_secs(1)).to_string();
    let of = |script: &str| {
        let quoted = |text: &str| serde_json::to_string(text).expect("JSON");
        script
            .replace("START", &start)
            .replace("NAME:", "name:")
            .replace("NAME", &quoted(NAME))
            .replace("TEXT", &quoted(TEXT))
    };
    let groups = json!({"groups": [{"name": TEXT, "workflows": [NAME, format!("missing {NAME}")]}]}).to_string();
    let files = [
        ("workflows/one.js", of(SCRIPT)),
        ("workflows/<img src=x onerror=window.pwned=6>.js", of(BROKEN)),
        ("groups.json", groups),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    House::with(&files, &["--config", "groups.json"])
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn what_others_wrote_is_shown_and_never_run() {
    let Some(house) = house() else { return };
    let name = house.encoded(NAME);
    let failed = house.until_slots(&name, "failed", 1).remove(0);
    let because = json!({"reason": TEXT});
    house.post(&format!("workflows/{name}/slots/{failed}/rerun"), &because);
    house.post(&format!("workflows/{name}/pause"), &because);
    house.open("/ui");
    let mut pages = house.tabs();
    let waits = house.encoded(&format!("waits {NAME}"));
    let text = house.encoded(TEXT);
    pages.extend([
        format!("/ui/workflows/{name}"),
        format!("/ui/workflows/{waits}"),
        format!("/ui/workflows/{name}/slots/{failed}"),
        format!("/ui/workflows/{waits}/slots/{failed}"),
        format!("/ui?find={text}"),
        format!("/ui/activity?workflow={name}&who={text}"),
        format!("/ui/{text}"),
        format!("/ui?time={text}"),
        format!("/ui/workflows/{text}"),
    ]);
    let mut shown = String::new();
    for page in pages {
        house.open(&page);
        house.until("document.readyState === 'complete'");
        assert_eq!(house.ask("return window.pwned ?? null"), json!(null), "{page}");
        let strange =
            "return document.querySelectorAll('img, main script, [onerror], [onload], a[href^=javascript]').length";
        assert_eq!(house.ask(strange), json!(0), "{page}");
        let refused = house.complaints().into_iter().filter(|line| !line.contains("status of 40")).collect::<Vec<_>>();
        assert_eq!(refused, Vec::<String>::new(), "{page}");
        shown.push_str(&house.text("body"));
    }
    assert!(shown.contains(NAME) && shown.contains(TEXT), "it is shown as it is: {shown}");
}

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn what_scripts_write_into_a_page_is_text_too() {
    let Some(house) = house() else { return };
    house.until_slots(&house.encoded(NAME), "failed", 1);
    house.open("/ui");
    house.until("document.querySelector('.cells > i.bad')");
    let selected =
        house.ask("return [...document.querySelectorAll('.cells > i.bad')].findIndex((cell) => (cell.focus(), true))");
    assert_eq!(selected, json!(0));
    house.click_with(crate::driver::CONTROL, ".cells > i.bad");
    house.press(&["r"]);
    house.until_says("#act-body", NAME);
    house.click("#act-go");
    house.until_says("#act-body", "1 slot will run again.");
    assert_eq!(house.ask("return window.pwned ?? null"), json!(null));
    assert_eq!(house.complaints(), Vec::<String>::new());
}
