//! The speed of a log in ZooKeeper, beside that of the creation of a node: `cargo run --release --example zookeeper_bench -- HOST:PORT [SECONDS]`. The
//! nodes stay below `/kelos-bench`, in a folder for each run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kelos_store::suite::measure_log;
use kelos_store_zookeeper::ZooKeeperLog;
use kelos_zookeeper::{Access, Session, Write};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let hosts = arguments.next().expect("the address of a server");
    let seconds = arguments.next().map_or(5, |text| text.parse().expect("a number of seconds"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    let store = ZooKeeperLog::of(&format!("zookeeper://{hosts}/kelos-bench/{now}/log")).expect("an address");
    let _made = kelos_store::log::LogStore::open(&store).expect("the nodes are made");
    let (access, _) = Access::read(&hosts, None).expect("an address");
    let mut session = Session::open(&access, 0).expect("the server is there");
    measure_log("ZooKeeper", &store, Duration::from_secs(seconds), &mut |number, body| {
        let path = format!("/kelos-bench/{now}/{number}");
        let created = session.write(&[Write::Create { path: &path, data: body }]);
        created.expect("the server answers").expect("it is created");
    });
}
