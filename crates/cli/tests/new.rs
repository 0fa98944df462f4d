//! `kelos new --rust`: the files of a program with jobs of its own. That the project compiles, passes its tests and runs is
//! checked with packages by `cargo xtask package --outside`.

use crate::support::{Folder, run};

const FILES: [&str; 5] = ["Cargo.toml", "src/lib.rs", "src/main.rs", "tests/week.rs", ".gitignore"];

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).expect(name)
}

#[test]
fn a_project_has_the_name_of_its_folder() {
    let folder = Folder::with(&[]);
    let said = folder.run(&["new", "--rust", "etl/big-shop"]).ok();
    FILES.iter().for_each(|file| assert!(said.contains(file), "{said}"));
    assert!(said.ends_with("Next:\n  cd etl/big-shop\n  cargo test\n  cargo run\n"), "{said}");
    let manifest = read(&folder, "etl/big-shop/Cargo.toml");
    assert!(manifest.contains("name = \"big-shop\"\n"), "{manifest}");
    assert!(manifest.contains(concat!("kelos = { version = \"", env!("CARGO_PKG_VERSION"), "\", ")), "{manifest}");
    assert!(read(&folder, "etl/big-shop/src/main.rs").contains("big_shop::project()"));
    assert!(read(&folder, "etl/big-shop/src/lib.rs").contains("Project::new(\"big-shop\", "));
    for file in FILES {
        let text = read(&folder, &format!("etl/big-shop/{file}"));
        assert!(["NAME", "LIBRARY", "KELOS"].iter().all(|word| !text.contains(word)), "{file}: {text}");
    }
    let json = folder.json(&["new", "--rust", "other", "--json"]);
    assert_eq!(json, serde_json::json!({ "dir": "other", "name": "other", "written": FILES }));
}

#[test]
fn a_project_is_built_with_the_sources_that_are_named() {
    let folder = Folder::with(&[("it's \"kelos\"/crates/kelos/Cargo.toml", "")]);
    folder.run(&["new", "--rust", "shop", "--sources", "it's \"kelos\""]).ok();
    let manifest = read(&folder, "shop/Cargo.toml");
    assert!(manifest.contains("it's \\\"kelos\\\"/crates/kelos\", default-features = false"), "{manifest}");
    let err = folder.run(&["new", "--rust", "other", "--sources", "shop"]).fails(2);
    assert!(err.contains("expected the sources of Kelos in shop, which has no crates/kelos/Cargo.toml"), "{err}");
    assert!(err.contains("hint: name the root of a checkout of Kelos"), "{err}");
    assert!(!folder.path().join("other").exists());
}

#[test]
fn what_can_not_be_a_project_is_refused_and_nothing_is_written() {
    let folder = Folder::with(&[("shop/src/main.rs", "mine\n"), ("file", "")]);
    let err = folder.run(&["new", "--rust", "shop"]).fails(1);
    assert!(err.contains("failed to make a project in shop: src/main.rs exists"), "{err}");
    assert!(!folder.path().join("shop/Cargo.toml").exists());
    let err = folder.run(&["new", "--rust", "Big shop"]).fails(2);
    assert!(err.contains("\"Big shop\" is no name of a package, expected small letters, digits, - and _"), "{err}");
    let err = folder.run(&["new", "--rust", "match"]).fails(2);
    assert!(err.contains("\"match\" means something else in Rust"), "{err}");
    let err = folder.run(&["new", "--rust", "file"]).fails(2);
    assert!(err.contains("it is a file, expected a folder"), "{err}");
    assert!(run(&["new", "shop"]).fails(2).contains("--rust"));
}
