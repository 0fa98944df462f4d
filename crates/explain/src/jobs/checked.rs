//! Job ids as people write them, where functions of a script have a say.

use std::sync::Arc;

use kelos_engine::job::Functions;
use kelos_model::SlotKey;
use kelos_model::jobs::shown;
use kelos_model::workflow::Keys;

/// A key as people write it, in its normal form. Where functions of a script check identifiers, they are called, which blocks.
///
/// # Errors
/// In words, when the text is no key of such a workflow, or a function refuses an identifier.
pub fn read_key(keys: &Keys, text: &str, functions: &dyn Functions) -> Result<SlotKey, String> {
    let key = keys.read(text)?;
    let (Some(jobs), Some(id)) = (keys.jobs().filter(|jobs| !jobs.checks.is_empty()), key.job()) else {
        return Ok(key);
    };
    let values = jobs.template.read(&jobs.identifiers, id).map_err(|error| error.to_string())?;
    let normal = |(name, value): (&Arc<str>, Arc<str>)| match jobs.checks.get(name) {
        None => Ok(value),
        Some(function) => functions.normal(function, &value).map(Arc::from).map_err(|why| {
            let (id, value) = (shown(id), shown(&value));
            format!("\"{id}\" is no job id of the form {}: {name} is \"{value}\": {why}", jobs.template.as_str())
        }),
    };
    let values = jobs.template.identifiers().zip(values).map(normal).collect::<Result<Vec<_>, String>>()?;
    jobs.template
        .id_of(&values)
        .map_err(|flaw| flaw.to_string())
        .and_then(|id| keys.read(&id))
        .map_err(|why| format!("\"{}\" is no job id of the form {}: {why}", shown(id), jobs.template.as_str()))
}
