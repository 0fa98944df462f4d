//! The description of triggers and constraints for OpenAPI.

use kelos_model::SlotState;
use kelos_model::form::{CONSTRAINTS, Nests, Parameter, ParameterType, Position, SIGNATURES, Signature};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{ConstraintDto, TriggerDto};

/// The schema is made of the signatures of the model, by which triggers are read and written.
impl PartialSchema for TriggerDto {
    fn schema() -> RefOr<Schema> {
        let what =
            "A trigger: a tree over leaves that look at the clock, at other slots, at facts, or at the outside world";
        one_of(&SIGNATURES, "Met ", what)
    }
}

/// Described from the signatures of the model, which are what is read and written.
impl PartialSchema for ConstraintDto {
    fn schema() -> RefOr<Schema> {
        one_of(&CONSTRAINTS, "Met while ", "A check after the trigger: a slot that fails it waits or is aborted")
    }
}

impl ToSchema for TriggerDto {}
impl ToSchema for ConstraintDto {}

/// An object of one of some kinds, or the text form of one.
fn one_of<T>(signatures: &[&Signature<T>], prefix: &str, what: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
    let text = text.description(Some("The text form")).examples(signatures.first().map(|one| one.example));
    let forms = signatures.iter().map(|one| schema_of(one, prefix));
    let all = forms.fold(OneOfBuilder::new(), |all, form| all.item(form)).item(text);
    all.description(Some(what)).into()
}

/// An object of a kind.
fn schema_of<T>(signature: &Signature<T>, prefix: &str) -> Object {
    let kind = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some([signature.json]));
    let mut object = ObjectBuilder::new().property("type", kind).required("type");
    let mut conditions = ObjectBuilder::new().description(Some("What must hold of what is at the path"));
    for parameter in signature.parameters {
        if parameter.position == Position::Condition {
            conditions = conditions.property(parameter.name, schema_of_value(parameter));
        } else {
            object = object.property(parameter.name, schema_of_value(parameter));
        }
        if parameter.required {
            object = object.required(parameter.name);
        }
    }
    if signature.parameters.iter().any(|one| one.position == Position::Condition) {
        object = object.property("conditions", conditions);
    }
    if signature.nests != Nests::Nothing {
        let nested = ArrayBuilder::new().items(Ref::from_schema_name(TriggerDto::name()));
        let one = (signature.nests == Nests::One).then_some(1);
        object = object.property("nested", nested.min_items(one).max_items(one));
    }
    object.description(Some(format!("{prefix}{}", signature.meaning))).build()
}

fn schema_of_value(parameter: &Parameter) -> Schema {
    let of = |kind| ObjectBuilder::new().schema_type(SchemaType::new(kind)).description(Some(parameter.meaning));
    match parameter.of {
        ParameterType::Text | ParameterType::Workflow | ParameterType::Cron | ParameterType::Zone => {
            of(Type::String).build().into()
        }
        ParameterType::Number(_) => of(Type::Integer).minimum(Some(0)).build().into(),
        ParameterType::OneOf(words) => of(Type::String).enum_values(Some(words.iter().copied())).build().into(),
        ParameterType::Millis => of(Type::Integer).minimum(Some(0)).build().into(),
        ParameterType::Seconds => of(Type::Integer).build().into(),
        ParameterType::Ends => {
            let ends = kelos_model::facts::ENDS.map(SlotState::as_str);
            let end = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some(ends));
            ArrayBuilder::new().items(end).description(Some(parameter.meaning)).build().into()
        }
    }
}
