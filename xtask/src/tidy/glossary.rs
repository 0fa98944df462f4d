//! The glossary is short, and its rows don't contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Faults, Tree};

const GLOSSARY: &str = "GLOSSARY.md";

/// How many rows it may have.
const MOST: usize = 80;

const HEAD: [&str; 4] = ["our word", "meaning", "the trade's word", "why another"];

/// The cell without a content.
const NOTHING: &str = "–";

struct Row<'a> {
    line: usize,
    ours: Vec<&'a str>,
    theirs: Vec<&'a str>,
    why: &'a str,
}

pub(super) fn check(tree: &Tree) -> Result<Faults, String> {
    Ok(judge(tree.text(GLOSSARY)?))
}

fn judge(text: &str) -> Faults {
    let mut faults = Faults::new();
    let mut rows = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let rule = cells.iter().all(|cell| cell.chars().all(|c| c == '-'));
        match cells[..] {
            _ if rule || cells == HEAD => {}
            [ours, meaning, theirs, why] if ![ours, meaning, theirs, why].contains(&"") => {
                rows.push(Row { line: n + 1, ours: words(ours), theirs: words(theirs), why });
            }
            _ => faults.push(format!("{GLOSSARY}:{}: expected four columns: {}", n + 1, HEAD.join(", "))),
        }
    }
    if rows.len() > MOST {
        faults.push(format!("{GLOSSARY}: {} rows, expected at most {MOST}", rows.len()));
    }
    faults.extend(doubled(&rows));
    faults.extend(rows.iter().flat_map(|row| against(row, &rows)));
    faults
}

fn words(cell: &str) -> Vec<&str> {
    cell.split(", ").map(|word| word.trim().trim_matches('`')).collect()
}

fn doubled(rows: &[Row<'_>]) -> Faults {
    let mut lines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for row in rows {
        for word in &row.ours {
            lines.entry(word).or_default().push(row.line);
        }
    }
    let doubled = lines.into_iter().filter(|(_, lines)| lines.len() > 1);
    doubled
        .map(|(word, lines)| format!("{GLOSSARY}:{}: {word} has a row already, line {}", lines[1], lines[0]))
        .collect()
}

/// Contradictions of a row with itself or others: a word of ours that is also the trade's needs no reason, any other one
/// does; and a word with another meaning in the trade is explained.
fn against(row: &Row<'_>, rows: &[Row<'_>]) -> Faults {
    let explained = row.why != NOTHING;
    let plain = |word: &str| word.replace('-', "");
    let same = row.ours.iter().any(|ours| row.theirs.iter().any(|theirs| plain(theirs).contains(&plain(ours))));
    let mut faults = Faults::new();
    if !same && !explained && row.theirs != [NOTHING] {
        faults.push(format!("{GLOSSARY}:{}: {} is not the trade's word: expected why", row.line, row.ours.join(", ")));
    }
    let others: BTreeSet<&str> =
        rows.iter().filter(|other| other.line != row.line).flat_map(|other| other.ours.clone()).collect();
    for word in row.theirs.iter().filter(|word| others.contains(*word) && !row.ours.contains(word) && !explained) {
        faults.push(format!("{GLOSSARY}:{}: {word} has another meaning in a row of its own: expected why", row.line));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rows: &str) -> Faults {
        judge(&format!("| our word | meaning | the trade's word | why another |\n|---|---|---|---|\n{rows}"))
    }

    #[test]
    fn a_good_glossary_passes() {
        let rows = "| key | names a slot | logical date | one word for all kinds |\n| run | one attempt | try, run | – |\n\
                    | `slot`, place | a unit | – | – |\n| feed | opens jobs | run | a run is an attempt here |\n";
        assert_eq!(faults(rows), Faults::new());
    }

    #[test]
    fn bad_rows_are_found() {
        let found = |rows: &str, words: &str| {
            let faults = faults(rows);
            assert!(faults.len() == 1 && faults[0].contains(words), "{faults:?}");
        };
        found("| key | names a slot | date |\n", "four columns");
        found("| key | names a slot | | x |\n", "four columns");
        found("| run | a | run | – |\n| go, run | b | go | – |\n", ":4: run has a row already, line 3");
        found("| key | a | date | – |\n", "key is not the trade's word");
        found("| run | a | run | – |\n| try | b | try, run | – |\n", ":4: run has another meaning");
        found(&(0..=MOST).map(|n| format!("| w{n} | a | – | – |\n")).collect::<String>(), "81 rows");
    }
}
