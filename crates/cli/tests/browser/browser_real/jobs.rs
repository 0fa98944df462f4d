//! The jobs of an app, and the page of one of them.

use serde_json::json;

use crate::house::House;

const TASKS: &str = r#"{
    "fetch": {"job_id": "{date}_{client_id}", "bash_cmd": "test -e mended || test {client_id} != 3", "max_retry": 1,
              "autofill_values": {"client_id": [1, 2, 3]}},
    "model": {"job_id": "{date}_{client_id}", "bash_cmd": "echo built {client_id}", "depends_on": {"app_name": ["fetch"]},
              "autofill_values": {"client_id": [1, 2, 3]}},
    "report": {"job_id": "{date}", "bash_cmd": "true", "depends_on": {"app_name": ["model"], "client_id": "all"}}
}"#;
const IDENTIFIERS: &str = r#"{"date": "date", "client_id": "integer"}"#;

#[test]
#[ignore = "needs a real server: servers/run with chromium -- cargo test -- --ignored real::"]
fn a_job_that_failed_is_found_in_the_matrix_and_rerun_and_its_descendants_follow() {
    let files = [("tasks.json", TASKS), ("identifiers.json", IDENTIFIERS)];
    let Some(house) = House::of(&files) else { return };
    house.open("/ui/workflows/report");
    house.ask("window.stayed = true");
    house.post("jobs", &json!({ "jobs": [{ "workflow": "report", "job": "20140601" }] }));
    house.until_says("#matrix", "20140601");
    assert_eq!(house.ask("return window.stayed"), json!(true), "the matrix keeps itself up to date");
    house.open("/ui/workflows/fetch?is.date=20140601&rows=client_id&columns=-");
    house.until("document.querySelectorAll('#matrix .square.good').length == 2");
    house.click("#matrix .square.bad");
    house.until_says("h1", "fetch@20140601_3");
    house.until_says("#neighbours", "model@20140601_3");
    house.folder.write("mended", "");
    house.click("#actions summary");
    house.click("#actions form[action$='/rerun'] button.primary");
    house.until_says("#why", "succeeded");
    house.open("/ui/workflows/report/slots/~20140601");
    house.until_says("#why", "succeeded");
    house.open("/ui/graph?slot=report@20140601");
    house.until_says("#family-told", "6 ancestors and 0 descendants.");
    house.until("document.querySelectorAll('#family .node.good').length == 7");
    house.open("/ui");
    house.until_says(".jobs", "report");
    assert_eq!(house.complaints(), Vec::<String>::new());
}
