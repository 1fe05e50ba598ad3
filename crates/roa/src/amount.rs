//! Amounts as JSON numbers, read exactly: a budget of 0.1 is a tenth.

use decimal::Decimal;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Deserializes an optional amount. JSON `null` is refused.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    let number = Box::<RawValue>::deserialize(deserializer)?;
    let read = Decimal::read(number.get());
    read.map(Some).map_err(|error| D::Error::custom(format!("needed: a number of at least 0; {error}")))
}

/// Serializes an amount as a JSON number.
pub fn serialize<S: Serializer>(amount: &Option<Decimal>, serializer: S) -> Result<S::Ok, S::Error> {
    let number = amount.map(|amount| RawValue::from_string(amount.to_string())).transpose();
    number.map_err(S::Error::custom)?.serialize(serializer)
}

/// Returns the JSON Schema of an amount.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number", "minimum": 0 })
}
