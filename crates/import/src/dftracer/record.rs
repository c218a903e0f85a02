//! A line of a log: a JSON object.
//!
//! Versions before 1 wrote numbers as texts; since version 2 the phase is a number.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Later than this, in any unit, nothing can have happened: 2116, in nanoseconds.
const LATEST: i128 = 1 << 62;

/// Arguments of a call that are kept: DFTracer writes a dozen, a program adds its own behind.
const MOST_ARGUMENTS: usize = 64;

/// The object that a line holds; none if it holds none. The first line of a log may be the bracket that opens a list, the last
/// the one that closes it; lines may end with a comma.
pub(super) fn object(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['[', ' ', '\t']).trim_end();
    let line = line.trim_end_matches([',', ']']).trim_end();
    (!line.is_empty()).then_some(line)
}

/// What kind of record a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// One call, or one event of the program.
    Complete,
    /// What a hash stands for, or something about a process.
    Metadata,
    /// Several calls in one.
    Aggregated,
    /// Anything else.
    Other,
}

/// A line of a log.
#[derive(Clone, Debug)]
pub(super) struct Record<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) category: Cow<'a, str>,
    pub(super) phase: Phase,
    pub(super) pid: u32,
    pub(super) tid: u64,
    /// In the unit of the log.
    pub(super) start: Option<u64>,
    pub(super) elapsed: u64,
    pub(super) arguments: Arguments<'a>,
}

impl<'a> Record<'a> {
    /// None if it is not one.
    pub(super) fn of(object: &'a str) -> Option<Record<'a>> {
        let fields: Fields = serde_json::from_str(object).ok()?;
        let count = |value: Option<Value>| match value.as_ref().and_then(Value::number) {
            None => Some(None),
            Some(number) => (0..LATEST).contains(&number).then_some(u64::try_from(number).ok()),
        };
        let aggregates = fields.arguments.number("dft_cnt").is_some();
        let phase = fields.phase?;
        Some(Record {
            name: fields.name?.text()?,
            category: fields.category.and_then(Value::text).unwrap_or_default(),
            phase: match (phase.number(), phase.text().as_deref()) {
                (Some(3), _) | (_, Some("A")) => Phase::Aggregated,
                // Aggregated records were counters once.
                (Some(2), _) | (_, Some("C")) if aggregates => Phase::Aggregated,
                (Some(1), _) | (_, Some("X")) => Phase::Complete,
                (Some(4), _) | (_, Some("M")) => Phase::Metadata,
                _ => Phase::Other,
            },
            pid: u32::try_from(fields.pid?.number()?).ok()?,
            tid: count(fields.tid)?.unwrap_or(0),
            start: count(fields.start)?,
            elapsed: count(fields.elapsed)?.unwrap_or(0),
            arguments: fields.arguments,
        })
    }

    /// Whether it is one that nobody but DFTracer writes: other tools have the same fields, Chrome's.
    pub(super) fn is_by_dftracer(&self) -> bool {
        ["dftracer", "POSIX", "STDIO"].contains(&&*self.category)
            || ["hhash", "hostname"].iter().any(|name| self.arguments.text(name).is_some())
    }
}

/// What a call was given, and what it returned.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl Arguments<'_> {
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        i64::try_from(self.get(name)?.number()?).ok()
    }

    pub(super) fn size(&self, name: &str) -> Option<u64> {
        u64::try_from(self.get(name)?.number()?).ok()
    }

    /// A text, or a number in digits.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.get(name)? {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            Value::Other => None,
        }
    }

    fn get(&self, name: &str) -> Option<&Value<'_>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// A value that may be either: see above.
#[derive(Clone, Debug)]
enum Value<'a> {
    Number(i128),
    Text(Cow<'a, str>),
    /// A list, an object or nothing.
    Other,
}

impl<'a> Value<'a> {
    fn number(&self) -> Option<i128> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            Value::Other => None,
        }
    }

    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Value::Text(text) => Some(text),
            Value::Number(_) | Value::Other => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value<'a>, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(value as i128))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

/// Of an object, in any order.
#[derive(Default)]
struct Fields<'a> {
    name: Option<Value<'a>>,
    category: Option<Value<'a>>,
    phase: Option<Value<'a>>,
    pid: Option<Value<'a>>,
    tid: Option<Value<'a>>,
    start: Option<Value<'a>>,
    elapsed: Option<Value<'a>>,
    arguments: Arguments<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        deserializer.deserialize_map(AnyFields)
    }
}

struct AnyFields;

impl<'de> Visitor<'de> for AnyFields {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = key_of(&mut map)? {
            let field = match &*key {
                "name" => &mut fields.name,
                "cat" => &mut fields.category,
                "ph" => &mut fields.phase,
                "pid" => &mut fields.pid,
                "tid" => &mut fields.tid,
                "ts" => &mut fields.start,
                "dur" => &mut fields.elapsed,
                "args" => {
                    fields.arguments = map.next_value()?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *field = Some(map.next_value()?);
        }
        Ok(fields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arguments<'a>, D::Error> {
        deserializer.deserialize_map(AnyArguments)
    }
}

struct AnyArguments;

impl<'de> Visitor<'de> for AnyArguments {
    type Value = Arguments<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments<'de>, A::Error> {
        let mut arguments = Vec::new();
        while let Some(key) = key_of(&mut map)? {
            let value = map.next_value()?;
            if arguments.len() < MOST_ARGUMENTS {
                arguments.push((key, value));
            }
        }
        Ok(Arguments(arguments))
    }
}

fn key_of<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    match map.next_key::<Value>()? {
        None => Ok(None),
        Some(key) => key.text().map(Some).ok_or_else(|| A::Error::custom("a name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_write_the_same_in_other_ways() {
        let texts = r#"{"id":"5","name":"write","cat":"POSIX","pid":"7","tid":"8","ts":"1698080323825066","dur":"106","ph":"X","args":{"hostname":"a","ret":"3276800","fname":"/d","fd":18}}"#;
        let numbers = r#"{"id":5,"name":"write","cat":"POSIX","type":3,"pid":7,"tid":8,"ts":1698080323825066,"dur":106,"ph":1,"args":{"hhash":"6882804a826580cd","ret":3276800,"fhash":9509357668201227806,"affinity":[1,2],"more":{"x":null}}}"#;
        for text in [texts, numbers] {
            let record = Record::of(text).expect("a record");
            assert_eq!((&*record.name, &*record.category, record.phase), ("write", "POSIX", Phase::Complete));
            assert_eq!((record.pid, record.tid), (7, 8));
            assert_eq!((record.start, record.elapsed), (Some(1_698_080_323_825_066), 106));
            assert_eq!(record.arguments.number("ret"), Some(3_276_800));
            assert!(record.is_by_dftracer());
        }
        let hashed = Record::of(numbers).expect("a record");
        assert_eq!(hashed.arguments.text("fhash").as_deref(), Some("9509357668201227806"));
        assert_eq!(hashed.arguments.text("affinity"), None);
    }

    #[test]
    fn what_is_no_record_is_none() {
        for text in ["", "{", "[]", "7", "{}", r#"{"name":"a","ph":"X"}"#, r#"{"name":1,"ph":1,"pid":2}"#] {
            assert!(Record::of(text).is_none(), "{text}");
        }
        let before = r#"{"name":"a","ph":1,"pid":2,"ts":-5}"#;
        assert!(Record::of(before).is_none(), "before all time");
    }

    #[test]
    fn brackets_and_commas_are_no_part_of_an_object() {
        for line in ["{}", "[{}", " {},", "{}]", "[ {} ,\r"] {
            assert_eq!(object(line), Some("{}"), "{line}");
        }
        for line in ["", "[", "]", " ,"] {
            assert_eq!(object(line), None, "{line}");
        }
    }
}
