//! A month of one copy with much trouble, whose history goes after five days.

use std::sync::{Arc, Mutex};

use kelos_store::StoredState;
use kelos_store_sqlite::SqliteStore;

use super::*;

#[test]
fn a_month_ends_with_a_flat_log_and_the_alerts_that_were_due() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kelos.db");
    let plan = Plan { copies: 1, days: 30, kept: 5, seed: 1, trouble: 100, month: 10, path: path.clone() };
    let months = Arc::new(Mutex::new(Vec::new()));
    let noted = months.clone();
    let note = move |month: &Month| noted.lock().unwrap().push((month.tables["events"].0, month.tables["turns"].0));
    let year = Year::live(&plan, Box::new(note));
    let told = year.teller.told(year.now());
    assert_eq!((&told.missing, &told.unexpected), (&Vec::new(), &Vec::new()));
    assert!(told.due > 20 && year.teller.deaths > 0, "{told:?}, {} deaths", year.teller.deaths);
    let months = months.lock().unwrap();
    let [first, second] = [months[1], months[2]];
    assert!(second.0 <= first.0 + first.0 / 20 && second.1 <= first.1 + first.1 / 20, "{first:?}, then {second:?}");
    drop(year);
    let store = SqliteStore::open(&path).unwrap();
    let reader = store.reader();
    assert_eq!(kelos_explain::verify::verify(&*reader, 9).unwrap().disagreements, Vec::new());
    assert_eq!(reader.damage(9).unwrap(), Vec::<String>::new());
}
