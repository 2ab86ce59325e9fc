//! One event in the file.

use super::event::Event;
use super::time::millis;
use ackline_tcp_core::{ConnId, Duration};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// An event, its time and its connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Since the time 0 of the trace.
    #[serde(rename = "time", serialize_with = "to_millis", deserialize_with = "from_millis")]
    pub at: Duration,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// To which connection; `None` if to the trace.
    #[serde(rename = "group_id", default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
}

impl Record {
    pub(super) const fn new(at: Duration, event: Event, group: Option<Group>) -> Self {
        Self { at, event, group }
    }
}

fn to_millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(millis(*time))
}

fn from_millis<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let time = f64::deserialize(from)?;
    // What is negative or not a number becomes 0, what is too large the longest time.
    Ok(Duration::from_nanos((time * 1e6).round() as u64))
}

/// A connection of the trace: `conn 3.1` is the second one with index 3. The comments of captures
/// have the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// Used again after the connection has ended.
    pub index: u32,
    /// How many had the index before.
    pub generation: u32,
}

impl From<ConnId> for Group {
    fn from(conn: ConnId) -> Self {
        // An index has 32 bits.
        Self { index: conn.index() as u32, generation: conn.generation() }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conn {}.{}", self.index, self.generation)
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let parse = || {
            let (index, generation) = text.strip_prefix("conn ")?.split_once('.')?;
            Some(Self { index: index.parse().ok()?, generation: generation.parse().ok()? })
        };
        parse().ok_or_else(|| D::Error::custom("not a connection, as in \"conn 3.1\""))
    }
}
