//! A few seeds of the simulation in every test run; `cargo xtask sim` runs as many as you like.

#[test]
fn the_first_seeds_hold() {
    let failures: Vec<_> = (0..60).filter_map(|seed| kelos_sim::check_seed(seed).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
