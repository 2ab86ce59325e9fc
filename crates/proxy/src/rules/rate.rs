//! The rate of what a rule allows, as it is written.

use ackline_tcp_core::Rate;
use ackline_tcp_core::quantity::{RATE, parse_rate};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Below this a single segment takes more than a second.
const LEAST: Rate = Rate::from_bits_per_second(8_000);
const MOST: Rate = Rate::from_bits_per_second(1_000_000_000_000);

/// Most bytes per second that all connections and flows of one rule carry together, in each
/// direction: of payload, without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RateLimit {
    /// From clients.
    #[serde(serialize_with = "as_bits")]
    pub up: Option<Rate>,
    /// To clients.
    #[serde(serialize_with = "as_bits")]
    pub down: Option<Rate>,
}

impl RateLimit {
    /// The same rate in both directions.
    #[must_use]
    pub const fn both(rate: Rate) -> Self {
        Self { up: Some(rate), down: Some(rate) }
    }
}

#[expect(clippy::ref_option, reason = "serde asks for it")]
fn as_bits<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
    rate.map(Rate::bits_per_second).serialize(to)
}

/// A rate in quotes, or a table of `up` and `down`.
impl<'de> Deserialize<'de> for RateLimit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl<'de> Visitor<'de> for RateVisitor {
    type Value = RateLimit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate in quotes, such as \"10mbit\", or { up = \"2mbit\", down = \"10mbit\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RateLimit, E> {
        read(text).map(RateLimit::both)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<RateLimit, A::Error> {
        let mut limit = RateLimit { up: None, down: None };
        while let Some((key, rate)) = table.next_entry::<Direction, String>()? {
            let rate = Some(read(&rate)?);
            match key {
                Direction::Up => limit.up = rate,
                Direction::Down => limit.down = rate,
            }
        }
        if limit == (RateLimit { up: None, down: None }) {
            return Err(de::Error::custom("an empty table; write up, down, or both"));
        }
        Ok(limit)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Up,
    Down,
}

fn read<E: de::Error>(text: &str) -> Result<Rate, E> {
    let rate = parse_rate(text).filter(|rate| (LEAST..=MOST).contains(rate));
    rate.ok_or_else(|| {
        let units = RATE.unit_names();
        E::custom(format_args!("{text:?} is not possible; write a rate from 8kbit to 1tbit (units: {units})"))
    })
}
