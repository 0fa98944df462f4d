//! The memory of hashes of passwords. Alone in its process, because it measures that.

use std::sync::{Barrier, Mutex};

use kelos_trust::PasswordHash;

const THREADS: usize = 6;

/// The resident memory of this process, in MB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

#[test]
fn threads_that_hashed_passwords_keep_no_memory_for_it() {
    // Of one allocation that is freed the allocator learns that such ones are frequent.
    PasswordHash::waste("first");
    let (before, turn, ended) = (resident(), Mutex::new(()), Barrier::new(THREADS + 1));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                {
                    let _turn = turn.lock().unwrap();
                    PasswordHash::waste("wrong password");
                }
                ended.wait();
                ended.wait();
            });
        }
        ended.wait();
        let after = resident();
        ended.wait();
        assert!(after < before + 30, "{before} MB before, {after} MB after {THREADS} hashes of 19 MB");
    });
}
