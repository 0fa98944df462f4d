//! Serde's conversions that put a twin in the place of a type of the model, also within lists, maps and options.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The stored form of a type: it writes values of it and reads them back.
pub(crate) trait Form<T> {
    /// Writes a value.
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads a value.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>;
}

/// The form of a field: `#[serde(with = "As::<Option<StoredActor>>")]`.
pub(crate) struct As<F>(PhantomData<F>);

impl<F> As<F> {
    pub(super) fn serialize<T, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        F: Form<T>,
    {
        F::write(value, serializer)
    }

    pub(super) fn deserialize<'de, T, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
    where
        F: Form<T>,
    {
        F::read(deserializer)
    }
}

/// A value that is written in a form.
pub(crate) struct WriteForm<'a, T, F>(&'a T, PhantomData<F>);

impl<'a, T, F> WriteForm<'a, T, F> {
    pub(super) fn new(value: &'a T) -> Self {
        WriteForm(value, PhantomData)
    }
}

impl<T, F: Form<T>> Serialize for WriteForm<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        F::write(self.0, serializer)
    }
}

/// A value that was read in a form.
pub(crate) struct ReadForm<T, F>(T, PhantomData<F>);

impl<T, F> ReadForm<T, F> {
    pub(super) fn into_value(self) -> T {
        self.0
    }
}

impl<'de, T, F: Form<T>> Deserialize<'de> for ReadForm<T, F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        F::read(deserializer).map(|value| ReadForm(value, PhantomData))
    }
}

/// The form of types that are not of the model: numbers, texts, moments, JSON.
pub(crate) struct Plain;

impl<T: Serialize + for<'de> Deserialize<'de>> Form<T> for Plain {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

/// The form of types with a stable text that people write and read.
pub(crate) struct Text;

impl<T: Display + FromStr<Err: Display>> Form<T> for Text {
    fn write<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<T, F: Form<T>> Form<Option<T>> for Option<F> {
    fn write<S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_some(&WriteForm::<T, F>::new(value)),
            None => serializer.serialize_none(),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<ReadForm<T, F>>::deserialize(deserializer)?.map(|read| read.0))
    }
}

impl<T, F: Form<T>> Form<Box<T>> for Box<F> {
    fn write<S: Serializer>(value: &Box<T>, serializer: S) -> Result<S::Ok, S::Error> {
        F::write(value, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<T>, D::Error> {
        F::read(deserializer).map(Box::new)
    }
}

impl<T, F: Form<T>> Form<Arc<T>> for Arc<F> {
    fn write<S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
        F::write(value, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<T>, D::Error> {
        F::read(deserializer).map(Arc::new)
    }
}

impl<T, F: Form<T>> Form<Vec<T>> for Vec<F> {
    fn write<S: Serializer>(values: &Vec<T>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(WriteForm::<T, F>::new))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        let values = Vec::<ReadForm<T, F>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|read| read.0).collect())
    }
}

impl<T: Ord, F: Form<T>> Form<BTreeSet<T>> for BTreeSet<F> {
    fn write<S: Serializer>(values: &BTreeSet<T>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(WriteForm::<T, F>::new))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<T>, D::Error> {
        let values = Vec::<ReadForm<T, F>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|read| read.0).collect())
    }
}

impl<K, V, FK, FV> Form<BTreeMap<K, V>> for BTreeMap<FK, FV>
where
    K: Ord,
    FK: Form<K>,
    FV: Form<V>,
{
    fn write<S: Serializer>(values: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = values.iter().map(|(key, value)| (WriteForm::<K, FK>::new(key), WriteForm::<V, FV>::new(value)));
        serializer.collect_map(pairs)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error> {
        let pairs = BTreeMap::<KeyForm<K, FK>, ReadForm<V, FV>>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(key, value)| (key.0, value.0)).collect())
    }
}

/// A key of a map that was read in a form.
struct KeyForm<K, F>(K, PhantomData<F>);

impl<'de, K, F: Form<K>> Deserialize<'de> for KeyForm<K, F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        F::read(deserializer).map(|key| KeyForm(key, PhantomData))
    }
}

impl<K: PartialEq, F> PartialEq for KeyForm<K, F> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: Eq, F> Eq for KeyForm<K, F> {}

impl<K: Ord, F> PartialOrd for KeyForm<K, F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, F> Ord for KeyForm<K, F> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// Makes twins the forms of their types.
macro_rules! forms {
    ($($twin:ident of $model:ty,)*) => {
        $(
            impl crate::stored::form::Form<$model> for $twin {
                fn write<S: serde::Serializer>(value: &$model, serializer: S) -> Result<S::Ok, S::Error> {
                    $twin::serialize(value, serializer)
                }

                fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<$model, D::Error> {
                    $twin::deserialize(deserializer)
                }
            }
        )*
    };
}

pub(super) use forms;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(super) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// Reads a field that exists as a value, even if it is null.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some)
}
