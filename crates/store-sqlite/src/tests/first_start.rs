//! First starts that were killed, or could not write, in the middle: the next start works.

use super::*;

/// The head of a rollback journal, as SQLite writes it before it changes a file that has no pages yet.
fn journal_of_an_empty_file() -> Vec<u8> {
    let mut head = Vec::from([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    let (records, nonce, pages, sector, page) = (0u32, 4711u32, 0u32, 512u32, 4096u32);
    head.extend([records, nonce, pages, sector, page].iter().flat_map(|word| word.to_be_bytes()));
    head.resize(512, 0);
    head
}

/// A folder as a kill leaves it while a new file is switched to a write-ahead log: so much of the first page is there, and the journal.
fn killed_after(bytes: usize) -> Folder {
    let (made, folder) = (Folder::new(), Folder::new());
    let conn = Connection::open(made.path()).unwrap();
    log_ahead(&conn).unwrap();
    let page = std::fs::read(made.path()).unwrap();
    std::fs::write(folder.path(), &page[..bytes]).unwrap();
    std::fs::write(folder.path().with_extension("db-journal"), journal_of_an_empty_file()).unwrap();
    folder
}

fn works(folder: &Folder) {
    let mut store = folder.open();
    let lease = lead(&mut store);
    store.commit(lease, &planning("w", 0, 3)).unwrap();
    assert_eq!(store.damage(9).unwrap(), Vec::<String>::new());
    drop(store);
    let mut again = folder.open();
    assert_eq!(again.restore().unwrap().last_seq, 3);
}

#[test]
fn a_first_start_that_was_killed_before_the_log_was_set_is_rolled_back_by_the_next() {
    for bytes in [0, 1, 100, 512, 4096] {
        works(&killed_after(bytes));
    }
}

#[test]
fn programs_that_meet_a_killed_first_start_at_once_all_can() {
    for _ in 0..10 {
        let folder = killed_after(4096);
        let together = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    together.wait();
                    folder.open();
                });
            }
        });
        works(&folder);
    }
}

#[test]
fn a_command_that_only_reads_names_what_a_killed_first_start_left() {
    let folder = killed_after(4096);
    let error = SqliteStore::look(folder.path()).unwrap_err().to_string();
    assert!(error.contains("schema is version 0"), "{error}");
    works(&folder);
}

#[test]
fn a_file_whose_log_could_not_be_made_at_first_leads_at_the_next_start() {
    let folder = Folder::new();
    migrate(&mut Connection::open(folder.path()).unwrap(), STEPS, "x").unwrap();
    works(&folder);
}

#[test]
fn a_file_that_was_made_without_its_tables_gets_them() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "").unwrap();
    works(&folder);
    let folder = Folder::new();
    log_ahead(&Connection::open(folder.path()).unwrap()).unwrap();
    works(&folder);
}

#[test]
fn a_log_that_can_not_be_made_is_an_error() {
    let conn = Connection::open_in_memory().unwrap();
    let error = log_ahead(&conn).unwrap_err().to_string();
    assert!(error.contains("write-ahead log can't be made; the journal mode is still memory"), "{error}");
}
