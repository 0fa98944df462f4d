//! The speed of a log in PostgreSQL, beside that of an insert of one row into the same database: `cargo run --release --example postgres_bench -- URL
//! [SECONDS]`. The schema `kelos_bench` is dropped before and after.

use std::time::Duration;

use kelos_store::suite::measure_log;
use kelos_store_postgres::PostgresLog;
use tokio_postgres::NoTls;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the address of a database");
    let seconds = arguments.next().map_or(5, |text| text.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, NoTls)).expect("the server is there");
    runtime.spawn(connection);
    let clean =
        || runtime.block_on(client.batch_execute("DROP SCHEMA IF EXISTS kelos_bench CASCADE")).expect("it is dropped");
    clean();
    let store = PostgresLog::of(&format!("{url}?schema=kelos_bench")).expect("an address");
    let _made = kelos_store::log::LogStore::open(&store).expect("the schema is made");
    let table = "CREATE TABLE kelos_bench.bare (position bigint PRIMARY KEY, body bytea NOT NULL)";
    runtime.block_on(client.batch_execute(table)).expect("a table");
    let insert = runtime.block_on(client.prepare("INSERT INTO kelos_bench.bare VALUES ($1, $2)")).expect("a statement");
    measure_log("PostgreSQL", &store, Duration::from_secs(seconds), &mut |number, body| {
        let inserted = runtime.block_on(client.execute(&insert, &[&number.cast_signed(), &body]));
        assert_eq!(inserted.expect("it is inserted"), 1);
    });
    clean();
}
