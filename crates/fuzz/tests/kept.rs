//! Input that once broke a parser, and the corpus of each target as it is.

use kelos_fuzz::{give, kept, targets};

#[test]
fn what_broke_a_parser_breaks_it_no_more() {
    let mut broken = Vec::new();
    for target in targets() {
        for (file, input) in kept(target.name) {
            if let Err(what) = give(&target, &input) {
                broken.push(format!("{}: {what}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn each_folder_of_kept_input_is_of_a_target() {
    let names: Vec<&str> = targets().iter().map(|target| target.name).collect();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fuzz");
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(names.contains(&name.as_str()) || name == "README.md", "{name} is no target");
    }
}
