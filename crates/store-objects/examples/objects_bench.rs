//! The speed of a log in an object store, beside that of an object that is written unless there is one: `cargo run --release --example objects_bench
//! -- s3://BUCKET/FOLDER [SECONDS]`. The folder is to be empty; its objects stay.

use std::time::Duration;

use bytes::Bytes;
use kelos_storage::{ConditionalObjects, StorageConfig, WriteAnswer};
use kelos_store::suite::measure_log;
use kelos_store_objects::ObjectLog;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the address of a folder");
    let seconds = arguments.next().map_or(5, |text| text.parse().expect("a number of seconds"));
    let store = ObjectLog::of(&format!("{url}/log")).expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = StorageConfig::from_env();
    let bare = ConditionalObjects::open(&format!("{url}/bare"), &config.s3, &config.trust).expect("an address");
    measure_log("S3", &store, Duration::from_secs(seconds), &mut |number, body| {
        let written = runtime.block_on(bare.create(&number.to_string(), Bytes::copy_from_slice(body)));
        assert_eq!(written.expect("the store answers"), WriteAnswer::Done);
    });
}
