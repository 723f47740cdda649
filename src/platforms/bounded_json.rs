//! Parses JSON into a value of bounded size: in memory, a list of small objects takes 80 times the size of its text.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Maximum bytes for the values of one text, not counting strings.
const BYTES: usize = 32 << 20;
/// Bytes of a value in a list, of an object's first node, and of a member with its name.
const VALUE: usize = size_of::<Value>();
const OBJECT: usize = 640;
const MEMBER: usize = 160;
/// Maximum members of the outermost object to keep beyond the bound: an event has about twenty.
const OUTER: usize = 1000;

/// Parses a text. Values beyond the bound are skipped, except for members of the outermost object.
pub fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let (left, outer) = (Cell::new(BYTES), Cell::new(OUTER));
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = Bounded { left: &left, outer: &outer, depth: 0 }.deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Bounded<'a> {
    left: &'a Cell<usize>,
    outer: &'a Cell<usize>,
    depth: usize,
}

impl Bounded<'_> {
    /// Reserves room for one more value; returns true if there was room.
    fn has_room(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Reserves room for a member of the outermost object beyond the bound; returns true if there was room.
    fn has_outer_room(&self) -> bool {
        let left = self.outer.get().checked_sub(1).filter(|_| self.depth == 0);
        self.outer.set(left.unwrap_or(self.outer.get()));
        left.is_some()
    }

    fn inside(self) -> Self {
        Bounded { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while self.has_room(VALUE) {
            let Some(value) = list.next_element_seed(self.inside())? else { return Ok(values.into()) };
            values.push(value);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        self.has_room(OBJECT);
        while let Some(name) = members.next_key::<String>()? {
            if self.has_room(MEMBER) || self.has_outer_room() {
                values.insert(name, members.next_value_seed(self.inside())?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_list_beyond_the_bound_is_cut_and_the_outer_members_stay() {
        let text = format!("{{\"list\":[{}0],\"id\":\"x\"}}", "{\"a\":0},".repeat(100_000));
        let value = parse(text.as_bytes()).unwrap();
        let kept = value["list"].as_array().unwrap().len();
        assert!(kept > 10_000 && kept < BYTES / OBJECT, "{kept}");
        assert_eq!(value["id"], "x");
    }

    #[test]
    fn what_follows_a_value_is_an_error() {
        assert!(parse(b"{} x").is_err());
    }

    proptest! {
        #[test]
        fn a_small_text_gives_what_serde_json_gives(numbers in proptest::collection::vec(any::<f64>(), 0..5), text in "\\PC*") {
            let value = json!({"numbers": numbers, "text": text, "more": [null, true, -1, u64::MAX, {"a": {}}]});
            let bytes = value.to_string().into_bytes();
            prop_assert_eq!(parse(&bytes).unwrap(), serde_json::from_slice::<Value>(&bytes).unwrap());
        }
    }
}
