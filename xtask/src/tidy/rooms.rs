//! The table of rooms in ARCHITECTURE.md and the manifests agree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Faults;
use super::lock::Lock;

/// A crate of the workspace, with the dependencies in its manifest.
pub(super) struct Crate {
    name: String,
    /// Direct dependencies, without those of tests.
    needs: BTreeSet<String>,
}

/// A row of the table.
struct Room {
    name: String,
    floor: Floor,
    /// Crates of the workspace that it uses.
    uses: BTreeSet<String>,
    /// Crates that it must not depend on, not even through others.
    never: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Floor {
    Storey(u8),
    /// For tests alone: may use any floor, and only the yard uses it.
    Cellar,
    /// Tasks: may use any crate, and no crate uses it.
    Yard,
}

impl Floor {
    fn read(text: &str) -> Option<Floor> {
        match text {
            "cellar" => Some(Floor::Cellar),
            "yard" => Some(Floor::Yard),
            number => number.parse().ok().map(Floor::Storey),
        }
    }

    fn may_use(self, other: Floor) -> bool {
        match (self, other) {
            (Floor::Storey(upper), Floor::Storey(lower)) => lower < upper,
            (Floor::Cellar, Floor::Storey(_)) | (Floor::Yard, Floor::Storey(_) | Floor::Cellar) => true,
            _ => false,
        }
    }
}

/// The crates of the workspace, from `cargo metadata --no-deps`.
pub(super) fn crates(metadata: &Value) -> Vec<Crate> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let needs = |package: &Value| {
        let needs = list(&package["dependencies"]).into_iter().filter(|need| need["kind"] != "dev");
        needs.map(|need| name(&need)).collect()
    };
    list(&metadata["packages"]).iter().map(|package| Crate { name: name(package), needs: needs(package) }).collect()
}

pub(super) fn check(architecture: &str, crates: &[Crate], lock: &Lock) -> Faults {
    let rooms = match table(architecture) {
        Ok(rooms) => rooms,
        Err(fault) => return vec![format!("ARCHITECTURE.md: {fault}")],
    };
    let mut faults = floors(&rooms);
    let ours: BTreeSet<&String> = crates.iter().map(|one| &one.name).collect();
    let gone = rooms.keys().filter(|name| !ours.contains(name));
    faults.extend(gone.map(|name| format!("ARCHITECTURE.md: the workspace has no crate {name}")));
    for one in crates {
        match rooms.get(&one.name) {
            None => faults.push(format!("ARCHITECTURE.md: the table of rooms lacks {}", one.name)),
            Some(room) => {
                faults.extend(walls(room, one, &ours));
                faults.extend(fences(room, crates, lock));
            }
        }
    }
    faults
}

/// Each room uses only rooms on floors below its own.
fn floors(rooms: &BTreeMap<String, Room>) -> Faults {
    let mut faults = Faults::new();
    for room in rooms.values() {
        for used in &room.uses {
            match rooms.get(used) {
                Some(other) if room.floor.may_use(other.floor) => {}
                Some(_) => faults
                    .push(format!("ARCHITECTURE.md: {} may not use {used}: it is not on a floor below", room.name)),
                None => faults.push(format!("ARCHITECTURE.md: {} is to use {used}, which is no room", room.name)),
            }
        }
    }
    faults
}

/// The manifest and the table list the same rooms.
fn walls(room: &Room, one: &Crate, ours: &BTreeSet<&String>) -> Faults {
    let needs: BTreeSet<String> = one.needs.iter().filter(|need| ours.contains(need)).cloned().collect();
    let unlisted = needs.difference(&room.uses);
    let unlisted = unlisted.map(|need| format!("{}: it uses {need}; ARCHITECTURE.md does not let it", room.name));
    let unused = room.uses.difference(&needs);
    let unused = unused.map(|need| format!("ARCHITECTURE.md: {} does not use {need} any more", room.name));
    unlisted.chain(unused).collect()
}

/// Crates that a room must never use are not among its dependencies, direct or not.
fn fences(room: &Room, crates: &[Crate], lock: &Lock) -> Faults {
    let mut faults = Faults::new();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut open = vec![(room.name.clone(), room.name.clone())];
    while let Some((name, way)) = open.pop() {
        if seen.insert(name.clone(), way.clone()).is_some() {
            continue;
        }
        if room.never.contains(&name) {
            faults.push(format!("{}: it must never use {name}, and does: {way}", room.name));
        }
        let ours = crates.iter().find(|one| one.name == name).map(|one| &one.needs);
        let needs = ours.or_else(|| lock.packages.get(&name).map(|package| &package.needs));
        open.extend(needs.into_iter().flatten().map(|need| (need.clone(), format!("{way} -> {need}"))));
    }
    faults
}

/// Reads the table whose first two columns are called room and floor.
fn table(text: &str) -> Result<BTreeMap<String, Room>, String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| room | floor |"));
    lines.next().ok_or("it has no table of rooms")?;
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    let rooms = rows.map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(rooms.into_iter().map(|room| (room.name.clone(), room)).collect())
}

fn row(line: &str) -> Result<Room, String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, floor, uses, never, ..] = cells[..] else {
        return Err(format!("expected four columns: {line}"));
    };
    let name =
        code(name).into_iter().next().ok_or_else(|| format!("expected the name of a crate in `code`: {line}"))?;
    let floor = Floor::read(floor).ok_or_else(|| format!("expected a number, cellar or yard as the floor: {line}"))?;
    Ok(Room { name, floor, uses: code(uses), never: code(never) })
}

/// The texts between backticks.
fn code(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::lock;

    const TABLE: &str = "| room | floor | uses | never |\n|---|---|---|---|\n\
        | `model` | 0 | – | `tokio` |\n| `core` | 1 | `model` | `tokio`, `mio` |\n| `sim` | cellar | `core` | – |\n";

    fn krate(name: &str, needs: &[&str]) -> Crate {
        Crate { name: name.to_owned(), needs: needs.iter().map(|need| (*need).to_owned()).collect() }
    }

    fn check_with(table: &str, core: &[&str]) -> Faults {
        let lock = lock::read("[[package]]\nname = \"http\"\ndependencies = [\n \"mio\",\n]\n");
        check(table, &[krate("model", &["serde"]), krate("core", core), krate("sim", &["core"])], &lock)
    }

    #[test]
    fn a_house_as_described_is_tidy() {
        assert_eq!(check_with(TABLE, &["model", "serde"]), Faults::new());
    }

    #[test]
    fn walls_that_differ_are_found() {
        assert_eq!(check_with(TABLE, &["model", "sim"]), ["core: it uses sim; ARCHITECTURE.md does not let it"]);
        assert_eq!(check_with(TABLE, &[]), ["ARCHITECTURE.md: core does not use model any more"]);
    }

    #[test]
    fn what_comes_in_through_others_is_found() {
        assert_eq!(
            check_with(TABLE, &["model", "http"]),
            ["core: it must never use mio, and does: core -> http -> mio"]
        );
    }

    #[test]
    fn floors_must_descend_and_nobody_lives_on_the_cellar() {
        let table = TABLE.replace("| 1 | `model` |", "| 0 | `model` |");
        assert_eq!(
            check_with(&table, &["model"]),
            ["ARCHITECTURE.md: core may not use model: it is not on a floor below"]
        );
        let table = TABLE.replace("| 1 | `model` |", "| 1 | `sim` |");
        assert_eq!(check_with(&table, &["sim"]), ["ARCHITECTURE.md: core may not use sim: it is not on a floor below"]);
    }

    #[test]
    fn rooms_and_crates_are_the_same() {
        let table = TABLE.replace("`sim`", "`cellar`");
        let faults = check_with(&table, &["model"]);
        assert_eq!(
            faults,
            ["ARCHITECTURE.md: the workspace has no crate cellar", "ARCHITECTURE.md: the table of rooms lacks sim"]
        );
        assert_eq!(check_with("", &["model"]), ["ARCHITECTURE.md: it has no table of rooms"]);
    }
}
