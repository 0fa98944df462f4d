//! A file of tests belongs to a test program. Crates name theirs, so that one program has most of the tests of a crate: each that is
//! linked costs seconds and disk. Cargo then finds no others by itself, and a file that is forgotten would never be compiled.

use super::{Faults, Tree};

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    for manifest in tree.ending("/Cargo.toml").filter(|manifest| names_its_programs(&manifest.text)) {
        let folder = format!("{}/tests/", manifest.path.trim_end_matches("/Cargo.toml"));
        let main = tree.text(&format!("{folder}main.rs")).unwrap_or_default();
        for file in tree.files.iter().filter(|file| file.path.starts_with(&folder)) {
            let Some(name) = file.path[folder.len()..].strip_suffix(".rs") else { continue };
            if !name.contains('/') && name != "main" && !belongs(name, main, &manifest.text) {
                faults
                    .push(format!("{}: no test program has it, expected `mod {name};` in {folder}main.rs", file.path));
            }
        }
    }
    faults
}

fn names_its_programs(manifest: &str) -> bool {
    manifest.lines().any(|line| line == "autotests = false")
}

fn belongs(name: &str, main: &str, manifest: &str) -> bool {
    let (module, program) = (format!("mod {name};"), format!("name = \"{name}\""));
    main.lines().any(|line| line == module) || manifest.lines().any(|line| line == program)
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::*;

    #[test]
    fn a_file_that_no_program_has_is_found() {
        let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let named =
            "autotests = false\n\n[[test]]\nname = \"all\"\npath = \"tests/main.rs\"\n\n[[test]]\nname = \"alone\"\n";
        let files = vec![
            text("crates/a/Cargo.toml", named),
            text("crates/a/tests/main.rs", "mod one;\n#[path = \"x/past.rs\"]\nmod past;\n"),
            text("crates/a/tests/one.rs", ""),
            text("crates/a/tests/alone.rs", ""),
            text("crates/a/tests/lost.rs", ""),
            text("crates/a/tests/support/mod.rs", ""),
            text("crates/b/Cargo.toml", "[package]\n"),
            text("crates/b/tests/found_by_cargo.rs", ""),
        ];
        let faults = check(&Tree { root: std::path::PathBuf::new(), files });
        assert_eq!(
            faults,
            ["crates/a/tests/lost.rs: no test program has it, expected `mod lost;` in crates/a/tests/main.rs"]
        );
    }
}
