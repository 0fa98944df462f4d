//! The JSON form, in both directions.

use serde_json::{Map, Value};

use super::DEEPEST;
use super::call::{Argument, ArgumentValue, Call, Nests, ParameterType, Position, Signature};
use super::error::{FormError, Place};
use super::notation::{Grammar, PartValue};
use super::parser;
use crate::time::Zone;

/// The field with the conditions on a path.
const CONDITIONS: &str = "conditions";

pub(super) fn write<T: Grammar>(one: &T) -> Value {
    let whole = one.notation();
    let mut fields = Map::new();
    fields.insert("type".to_owned(), whole.signature.json.into());
    let mut conditions = Map::new();
    for (name, value) in whole.values {
        let is_condition = whole.signature.by_name(name).is_some_and(|one| one.position == Position::Condition);
        let fields = if is_condition { &mut conditions } else { &mut fields };
        fields.insert(name.to_owned(), json(&value));
    }
    if !conditions.is_empty() {
        fields.insert(CONDITIONS.to_owned(), conditions.into());
    }
    if !whole.nested.is_empty() {
        fields.insert("nested".to_owned(), whole.nested.iter().map(write).collect());
    }
    fields.into()
}

fn json(value: &PartValue<'_>) -> Value {
    match value {
        PartValue::Text(text) | PartValue::Implied(text) => (*text).into(),
        PartValue::Number(number) => (*number).into(),
        PartValue::Seconds(seconds) => (*seconds).into(),
        PartValue::Millis(millis) => (*millis).into(),
        PartValue::Ends(states) => states.iter().map(|state| state.as_str()).collect(),
    }
}

pub(super) fn read<T: Grammar>(value: &Value, zone: &Zone, field: &str) -> Result<T, FormError> {
    JsonReader { zone }.one(value, field, 0)
}

struct JsonReader<'a> {
    zone: &'a Zone,
}

impl<'a> JsonReader<'a> {
    fn one<T: Grammar>(&self, value: &'a Value, path: &str, depth: usize) -> Result<T, FormError> {
        let wrong = |problem: String| Err(FormError::new(Place::Field(path.to_owned()), problem));
        if depth >= DEEPEST {
            return wrong(format!("{}s are nested more than {DEEPEST} deep: expected fewer levels", T::NOUN));
        }
        match value {
            Value::String(text) => parser::parse(text, self.zone).map_err(|error| within(error, path)),
            Value::Object(fields) => self.object(fields, path, depth),
            other => {
                let kind = kind_of(other);
                wrong(format!("{kind} is no {}: expected an object with a `type`, or a text", T::NOUN))
            }
        }
    }

    fn object<T: Grammar>(&self, fields: &'a Map<String, Value>, path: &str, depth: usize) -> Result<T, FormError> {
        let signature = signature::<T>(fields, path)?;
        let mut call = Call {
            signature,
            place: Place::Field(path.to_owned()),
            arguments: Vec::new(),
            nested: Vec::new(),
            zone: self.zone,
        };
        let takes_conditions = signature.parameters.iter().any(|one| one.position == Position::Condition);
        for (name, value) in fields {
            let field = format!("{path}.{name}");
            match name.as_str() {
                "type" => {}
                "nested" if signature.nests != Nests::Nothing => call.nested = self.nested(value, &field, depth)?,
                CONDITIONS if takes_conditions => conditions(&mut call, value, &field)?,
                _ => argument(&mut call, name, value, field, false)?,
            }
        }
        call.read()
    }

    fn nested<T: Grammar>(&self, value: &'a Value, path: &str, depth: usize) -> Result<Vec<T>, FormError> {
        let Value::Array(all) = value else {
            let problem = format!("{} is not a list of {}s", kind_of(value), T::NOUN);
            return Err(FormError::new(Place::Field(path.to_owned()), problem));
        };
        let all = all.iter().enumerate();
        all.map(|(number, one)| self.one(one, &format!("{path}[{number}]"), depth + 1)).collect()
    }
}

fn signature<T: Grammar>(fields: &Map<String, Value>, path: &str) -> Result<&'static Signature<T>, FormError> {
    let types = || T::signatures().iter().map(|one| format!("`{}`", one.json)).collect::<Vec<_>>().join(", ");
    let Some(kind) = fields.get("type") else {
        let problem = format!("a {} lacks its `type`: expected one of {}", T::NOUN, types());
        return Err(FormError::new(Place::Field(path.to_owned()), problem));
    };
    let name = kind.as_str().ok_or(None);
    name.and_then(T::of_type).map_err(|likely| {
        let problem = format!("{} is no type of {}: expected one of {}", kind_of(kind), T::NOUN, types());
        let hint = likely.map(|likely| format!("did you mean {likely:?}?"));
        FormError::new(Place::Field(format!("{path}.type")), problem).with_hint(hint)
    })
}

fn conditions<'a, T>(call: &mut Call<'a, T>, value: &'a Value, path: &str) -> Result<(), FormError> {
    match value {
        Value::Null => Ok(()),
        Value::Object(fields) => {
            let mut fields = fields.iter();
            fields.try_for_each(|(name, value)| argument(call, name, value, format!("{path}.{name}"), true))
        }
        other => Err(FormError::new(Place::Field(path.to_owned()), format!("{} is not an object", kind_of(other)))),
    }
}

/// Takes the value of a field. What may be left out may be null, too.
fn argument<'a, T>(
    call: &mut Call<'a, T>,
    name: &str,
    value: &'a Value,
    path: String,
    is_condition: bool,
) -> Result<(), FormError> {
    let place = Place::Field(path.clone());
    let of_these = |one: &&super::Parameter| (one.position == Position::Condition) == is_condition;
    let Some(parameter) = call.signature.parameters.iter().filter(of_these).find(|one| one.name == name) else {
        return Err(FormError::new(place, unknown(call.signature, is_condition)));
    };
    match value {
        Value::Null if !parameter.required => {}
        Value::Array(all) if parameter.of == ParameterType::Ends => {
            call.arguments.extend(all.iter().enumerate().map(|(number, one)| Argument {
                name: parameter.name,
                place: Place::Field(format!("{path}[{number}]")),
                value: ArgumentValue::Json(one),
            }));
        }
        value => call.arguments.push(Argument { name: parameter.name, place, value: ArgumentValue::Json(value) }),
    }
    Ok(())
}

/// The message about a field that is no parameter.
fn unknown<T>(signature: &Signature<T>, is_condition: bool) -> String {
    let parameters = signature.parameters.iter();
    let of_these = parameters.filter(|one| (one.position == Position::Condition) == is_condition);
    let mut names: Vec<&str> = of_these.map(|one| one.name).collect();
    if !is_condition && signature.parameters.iter().any(|one| one.position == Position::Condition) {
        names.push(CONDITIONS);
    }
    if !is_condition && signature.nests != Nests::Nothing {
        names.push("nested");
    }
    let known: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match known.as_slice() {
        [] => format!("`{}` takes nothing", signature.json),
        known => format!("unknown field of `{}`: expected {}", signature.json, known.join(", ")),
    }
}

/// A value in few words.
fn kind_of(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 60 => "a long text".to_owned(),
        other => other.to_string(),
    }
}

fn within(error: FormError, path: &str) -> FormError {
    let place = match error.place {
        Place::Character(number) => Place::Within(path.to_owned(), number),
        other => other,
    };
    FormError { place, ..error }
}
