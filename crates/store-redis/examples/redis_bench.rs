//! The speed of a log in Redis, beside that of `XADD` on the same server: `cargo run --release --example redis_bench -- URL [SECONDS]`. Keys that
//! begin with `kelos-bench` are deleted before and after.

use std::time::Duration;

use kelos_store::suite::measure_log;
use kelos_store_redis::RedisLog;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the address of a server");
    let seconds = arguments.next().map_or(5, |text| text.parse().expect("a number of seconds"));
    let mut connection =
        redis::Client::open(url.as_str()).and_then(|client| client.get_connection()).expect("the server is there");
    let clean = |connection: &mut redis::Connection| {
        redis::cmd("DEL")
            .arg(&["kelos-bench:log", "kelos-bench:entries", "kelos-bench:bare"])
            .exec(connection)
            .expect("they are deleted");
    };
    clean(&mut connection);
    let store = RedisLog::of(&format!("{url}?prefix=kelos-bench")).expect("an address");
    measure_log("Redis", &store, Duration::from_secs(seconds), &mut |_, body| {
        redis::cmd("XADD")
            .arg("kelos-bench:bare")
            .arg("*")
            .arg("body")
            .arg(body)
            .exec(&mut connection)
            .expect("it is added");
    });
    clean(&mut connection);
}
