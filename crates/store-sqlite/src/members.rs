//! The step of the schema that renames schedules and programs whose names have a separator in them: their ids were made before it was
//! escaped, so that version `1.2` with `3.W` had the id of version `1.2.3` with `W`.

use std::collections::BTreeMap;

use kelos_model::project::{ProjectName, former_member};
use kelos_store::adapter::stored;
use rusqlite::{Connection, OptionalExtension, Params, params};
use serde_json::{Map, Value};

use super::fault::Fault;

/// Fields that name a workflow.
const NAMING: [&str; 3] = ["id", "workflow", "program"];

/// Fields with what people gave: nothing in them is ours.
const GIVEN: [&str; 6] = ["arguments", "job", "outputs", "payload", "properties", "settings"];

/// The beginning of the subject of facts about ended runs: after it come the state and the id of the program.
const ENDED: &str = "ended:";

/// Ids as they were, with what they are now.
type Names = BTreeMap<String, String>;

/// Gives such members their present ids, wherever they are named. A reference to a program that was never defined keeps
/// its text, because its parts are unknown.
pub(super) fn rename(conn: &Connection) -> Result<(), Fault> {
    let names = renamed(conn)?;
    if names.is_empty() {
        return Ok(());
    }
    for (old, new) in &names {
        conn.execute("UPDATE workflows SET name = ?2, check_value = NULL WHERE name = ?1", params![old, new])?;
    }
    in_definitions(conn, &names)?;
    in_slots(conn, &names)?;
    in_facts(conn, &names)?;
    in_events(conn, &names)
}

/// The members whose ids change, by their latest definitions.
fn renamed(conn: &Connection) -> Result<Names, Fault> {
    let sql = "SELECT w.name, d.definition FROM workflows w JOIN definitions d ON d.workflow = w.id AND d.version = w.version";
    let mut names = Names::new();
    for (old, definition) in rows(conn, sql, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))? {
        let Some(new) = member(&old, &stored::read(&definition)?) else { continue };
        let taken = conn.query_row("SELECT 1 FROM workflows WHERE name = ?1", [&new], |_| Ok(())).optional()?;
        if taken.is_none() {
            names.insert(old, new);
        }
    }
    Ok(names)
}

/// The id of a member by now, where it is another one.
fn member(old: &str, definition: &Value) -> Option<String> {
    let project = definition.get("project")?.as_str()?;
    let keys = definition.get("keys")?;
    let of = keys.get("events").or_else(|| keys.get("requests"))?;
    let name = of.get("name")?.as_str()?;
    let kind = keys.get("requests").and_then(|program| program.get("kind")?.as_str());
    let now = ProjectName::read(project).member(kind, name).ok()?;
    (former_member(project, kind, name) == old && now.as_str() != old).then(|| now.to_string())
}

fn in_definitions(conn: &Connection, names: &Names) -> Result<(), Fault> {
    let sql = "SELECT workflow, version, definition FROM definitions";
    for (workflow, version, text) in rows(conn, sql, [], read_pair)? {
        if let Some(text) = replaced(&text, names)? {
            conn.execute(
                "UPDATE definitions SET definition = ?3, check_value = NULL WHERE workflow = ?1 AND version = ?2",
                params![workflow, version, text],
            )?;
        }
    }
    Ok(())
}

fn in_slots(conn: &Connection, names: &Names) -> Result<(), Fault> {
    let sql = "SELECT scheduled_at, workflow, key, collected FROM slots WHERE collected IS NOT NULL";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
    };
    for (at, workflow, key, text) in rows(conn, sql, [], read)? {
        if let Some(text) = replaced(&text, names)? {
            conn.execute(
                "UPDATE slots SET collected = ?4, check_value = NULL WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ?3",
                params![at, workflow, key, text],
            )?;
        }
    }
    Ok(())
}

fn in_facts(conn: &Connection, names: &Names) -> Result<(), Fault> {
    let sql = "SELECT DISTINCT about FROM facts WHERE substr(about, 1, length(?1)) = ?1";
    for about in rows(conn, sql, [ENDED], |row| row.get::<_, String>(0))? {
        if let Some(new) = subject(&about, names) {
            conn.execute("UPDATE facts SET about = ?2, check_value = NULL WHERE about = ?1", params![about, new])?;
        }
    }
    Ok(())
}

fn in_events(conn: &Connection, names: &Names) -> Result<(), Fault> {
    let mut change = conn.prepare("UPDATE events SET body = ?2, check_value = NULL WHERE seq = ?1")?;
    let mut statement =
        conn.prepare("SELECT seq, body FROM events WHERE seq > ?1 AND instr(body, ?2) > 0 ORDER BY seq LIMIT 1")?;
    for old in names.keys() {
        // The text as JSON without its quotes: in a subject, other text precedes it.
        let quoted = stored::text(&Value::from(old.as_str()))?;
        let wanted = quoted.trim_matches('"');
        let mut after = 0;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        while let Some((seq, text)) = statement.query_row(params![after, wanted], read).optional()? {
            after = seq;
            if let Some(text) = replaced(&text, names)? {
                change.execute(params![seq, text])?;
            }
        }
    }
    Ok(())
}

fn read_pair(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, i64, String)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn rows<T>(
    conn: &Connection,
    sql: &str,
    given: impl Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Fault> {
    let mut statement = conn.prepare(sql)?;
    Ok(statement.query_map(given, read)?.collect::<Result<_, _>>()?)
}

/// A JSON text with the ids that are by now; none where nothing changes.
fn replaced(text: &str, names: &Names) -> Result<Option<String>, Fault> {
    let mut value: Value = stored::read(text)?;
    let changed = replace(&mut value, names);
    Ok(if changed { Some(stored::text(&value)?) } else { None })
}

fn replace(value: &mut Value, names: &Names) -> bool {
    match value {
        // All of them, also behind one that changes.
        Value::Array(all) => all.iter_mut().filter_map(|one| replace(one, names).then_some(())).count() > 0,
        Value::Object(fields) => replace_fields(fields, names),
        _ => false,
    }
}

fn replace_fields(fields: &mut Map<String, Value>, names: &Names) -> bool {
    let mut changed = false;
    for (field, value) in fields.iter_mut() {
        let new = value.as_str().filter(|_| NAMING.contains(&field.as_str())).and_then(|old| names.get(old));
        if let Some(new) = new {
            *value = Value::String(new.clone());
            changed = true;
        } else if !GIVEN.contains(&field.as_str()) {
            changed |= replace(value, names);
        }
    }
    let subjects: Vec<(String, String)> =
        fields.keys().filter_map(|field| Some((field.clone(), subject(field, names)?))).collect();
    for (old, new) in subjects {
        if let Some(value) = fields.remove(&old) {
            fields.insert(new, value);
            changed = true;
        }
    }
    changed
}

/// The subject of the ends of a program by the id that this has by now, where that is another one.
fn subject(text: &str, names: &Names) -> Option<String> {
    let (state, program) = text.strip_prefix(ENDED)?.split_once(':')?;
    Some(format!("{ENDED}{state}:{}", names.get(program)?))
}
