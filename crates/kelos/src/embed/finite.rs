//! Finds numbers that JSON does not have, NaN and infinities, which would be stored as nothing.

use std::fmt;

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Whether a value has a number that is not finite. Errors of its own serialization are told elsewhere.
pub(super) fn has_odd_number<T: Serialize + ?Sized>(value: &T) -> bool {
    matches!(value.serialize(Finite), Err(Flaw::OddNumber))
}

/// The reason for which a look at a value ended early.
#[derive(Debug)]
enum Flaw {
    OddNumber,
    Other,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::OddNumber => "a number is not finite",
            Flaw::Other => "it can't be looked at",
        })
    }
}

impl std::error::Error for Flaw {}

impl Error for Flaw {
    fn custom<T: fmt::Display>(_: T) -> Flaw {
        Flaw::Other
    }
}

/// Looks at numbers, and keeps nothing.
#[derive(Clone, Copy)]
struct Finite;

fn checked(is_finite: bool) -> Result<(), Flaw> {
    if is_finite { Ok(()) } else { Err(Flaw::OddNumber) }
}

macro_rules! passes {
    ($($method:ident: $of:ty),*) => {
        $(fn $method(self, _: $of) -> Result<(), Flaw> {
            Ok(())
        })*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = Flaw;
    type SerializeSeq = Finite;
    type SerializeTuple = Finite;
    type SerializeTupleStruct = Finite;
    type SerializeTupleVariant = Finite;
    type SerializeMap = Finite;
    type SerializeStruct = Finite;
    type SerializeStructVariant = Finite;

    passes!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str
    );

    fn serialize_f32(self, number: f32) -> Result<(), Flaw> {
        checked(number.is_finite())
    }

    fn serialize_f64(self, number: f64) -> Result<(), Flaw> {
        checked(number.is_finite())
    }

    fn serialize_none(self) -> Result<(), Flaw> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Flaw> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Flaw> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Flaw> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Flaw> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Flaw> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Finite, Flaw> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Finite, Flaw> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Finite, Flaw> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Finite, Flaw> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Finite, Flaw> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Finite, Flaw> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Finite, Flaw> {
        Ok(self)
    }
}

macro_rules! looks_at_all {
    ($($of:ident::$method:ident),*) => {
        $(impl $of for Finite {
            type Ok = ();
            type Error = Flaw;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Flaw> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), Flaw> {
                Ok(())
            }
        })*
    };
}

macro_rules! looks_at_fields {
    ($($of:ident),*) => {
        $(impl $of for Finite {
            type Ok = ();
            type Error = Flaw;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Flaw> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), Flaw> {
                Ok(())
            }
        })*
    };
}

looks_at_all!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);
looks_at_fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Finite {
    type Ok = ();
    type Error = Flaw;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Flaw> {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Flaw> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Flaw> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize)]
    enum Figure {
        One(f64),
        Pair(f32, f32),
        Named { mean: f64 },
        None,
    }

    #[test]
    fn odd_numbers_are_found_wherever_they_are() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(has_odd_number(&odd) && has_odd_number(&Some(vec![1.0, odd])));
            assert!(has_odd_number(&BTreeMap::from([("a", (1, odd))])));
            assert!(has_odd_number(&Figure::One(odd)) && has_odd_number(&Figure::Named { mean: odd }));
        }
        assert!(has_odd_number(&Figure::Pair(1.0, f32::NAN)));
        let sound = [Figure::One(0.5), Figure::Pair(1.0, f32::MAX), Figure::Named { mean: -0.0 }, Figure::None];
        assert!(!has_odd_number(&sound));
        assert!(!has_odd_number(&((), "NaN", 'x', true, [1_u64, u64::MAX], BTreeMap::from([(1, 2)]))));
        assert!(!has_odd_number(&serde_json::json!({ "a": [null, 1.5] })));
    }
}
