//! Parsing, formatting and bounds of settings.

use super::ConfigKey;
use crate::policy::SpecError;
use crate::policy::spec::Param;
use crate::time::Duration;
use alloc::format;
use alloc::string::{String, ToString};
use core::ops::RangeInclusive;

/// The longest time that any setting accepts.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 86_400);
/// The shortest time that is not zero.
pub(super) const SHORTEST: Duration = Duration::from_nanos(1);

/// A setting's type, and its place in the settings.
pub(super) enum Value<C> {
    Switch(fn(&mut C) -> &mut bool),
    /// A whole number.
    Integer(Number<C>),
    /// A number of bytes, optionally with a unit.
    Bytes(Number<C>),
    Time {
        slot: fn(&mut C) -> Span<'_>,
        range: RangeInclusive<Duration>,
        /// The word for "no value".
        none: Option<&'static str>,
    },
    Choice {
        names: &'static [&'static str],
        get: fn(&C) -> usize,
        set: fn(&mut C, usize),
    },
    /// Anything else.
    Text {
        range: &'static str,
        get: fn(&C) -> String,
        set: fn(&mut C, Param<'_>) -> Result<(), SpecError>,
    },
}

/// A number among the settings of type `C`.
pub(super) struct Number<C> {
    pub(super) slot: fn(&mut C) -> Slot<'_>,
    pub(super) range: RangeInclusive<u64>,
    /// The word for "no value".
    pub(super) none: Option<&'static str>,
}

/// A place for a number.
pub(super) enum Slot<'a> {
    U8(&'a mut u8),
    U16(&'a mut u16),
    U32(&'a mut u32),
    Usize(&'a mut usize),
    MaybeU8(&'a mut Option<u8>),
    MaybeU16(&'a mut Option<u16>),
    MaybeU32(&'a mut Option<u32>),
    MaybeU64(&'a mut Option<u64>),
}

impl Slot<'_> {
    fn get(&self) -> Option<u64> {
        match self {
            Self::U8(value) => Some(u64::from(**value)),
            Self::U16(value) => Some(u64::from(**value)),
            Self::U32(value) => Some(u64::from(**value)),
            Self::Usize(value) => Some(**value as u64),
            Self::MaybeU8(value) => value.map(u64::from),
            Self::MaybeU16(value) => value.map(u64::from),
            Self::MaybeU32(value) => value.map(u64::from),
            Self::MaybeU64(value) => **value,
        }
    }

    /// Stores `number`; `false` if the type cannot hold it.
    fn set(self, number: Option<u64>) -> bool {
        fn store<T: TryFrom<u64>>(slot: &mut T, number: Option<u64>) -> bool {
            match number.and_then(|number| T::try_from(number).ok()) {
                Some(number) => {
                    *slot = number;
                    true
                }
                None => false,
            }
        }
        fn store_maybe<T: TryFrom<u64>>(slot: &mut Option<T>, number: Option<u64>) -> bool {
            let converted = number.and_then(|number| T::try_from(number).ok());
            let fits = converted.is_some() == number.is_some();
            if fits {
                *slot = converted;
            }
            fits
        }
        match self {
            Self::U8(slot) => store(slot, number),
            Self::U16(slot) => store(slot, number),
            Self::U32(slot) => store(slot, number),
            Self::Usize(slot) => store(slot, number),
            Self::MaybeU8(slot) => store_maybe(slot, number),
            Self::MaybeU16(slot) => store_maybe(slot, number),
            Self::MaybeU32(slot) => store_maybe(slot, number),
            Self::MaybeU64(slot) => store_maybe(slot, number),
        }
    }
}

/// A place for a time.
pub(super) enum Span<'a> {
    Always(&'a mut Duration),
    Maybe(&'a mut Option<Duration>),
}

impl<C: Clone> Value<C> {
    pub(super) fn range(&self) -> String {
        let or_none = |range: String, none: &Option<&str>| match none {
            Some(word) => format!("{range}|{word}"),
            None => range,
        };
        match self {
            Self::Switch(_) => "on|off".into(),
            Self::Integer(number) => {
                or_none(format!("{}..{}", number.range.start(), number.range.end()), &number.none)
            }
            Self::Bytes(number) => or_none(
                format!("{}..{} bytes", bytes(*number.range.start()), bytes(*number.range.end())),
                &number.none,
            ),
            Self::Time { range, none, .. } => {
                or_none(format!("{}..{}", written(*range.start()), written(*range.end())), none)
            }
            Self::Choice { names, .. } => names.join("|"),
            Self::Text { range, .. } => (*range).into(),
        }
    }

    pub(super) fn get(&self, config: &C) -> String {
        // The places are those for writing; a copy is read through them.
        let mut copy = config.clone();
        let or_none =
            |value: Option<String>, none: &Option<&str>| value.or(none.map(String::from)).unwrap_or_default();
        match self {
            Self::Switch(slot) => if *slot(&mut copy) { "on" } else { "off" }.into(),
            Self::Integer(number) => {
                or_none((number.slot)(&mut copy).get().map(|value| value.to_string()), &number.none)
            }
            Self::Bytes(number) => or_none((number.slot)(&mut copy).get().map(bytes), &number.none),
            Self::Time { slot, none, .. } => match slot(&mut copy) {
                Span::Always(time) => written(*time),
                Span::Maybe(time) => or_none(time.map(written), none),
            },
            Self::Choice { names, get, .. } => names.get(get(config)).copied().unwrap_or_default().into(),
            Self::Text { get, .. } => get(config),
        }
    }

    pub(super) fn set(&self, config: &mut C, param: Param<'_>) -> Result<(), SpecError> {
        match self {
            Self::Switch(slot) => *slot(config) = param.switch()?,
            Self::Integer(number) => number.set(config, param, |range| param.integer(range))?,
            Self::Bytes(number) => number.set(config, param, |range| param.bytes(range))?,
            Self::Time { slot, range, none } => {
                let time = if *none == Some(param.text()) {
                    None
                } else {
                    Some(param.duration(range.clone()).map_err(|error| or_none(error, *none))?)
                };
                match (slot(config), time) {
                    (Span::Always(slot), Some(time)) => *slot = time,
                    (Span::Maybe(slot), time) => *slot = time,
                    (Span::Always(_), None) => return Err(param.expected("a time")),
                }
            }
            Self::Choice { names, set, .. } => set(config, param.choice(names)?),
            Self::Text { set, .. } => set(config, param)?,
        }
        Ok(())
    }
}

impl<C> Number<C> {
    fn set(
        &self,
        config: &mut C,
        param: Param<'_>,
        read: impl FnOnce(RangeInclusive<u64>) -> Result<u64, SpecError>,
    ) -> Result<(), SpecError> {
        let number = match self.none {
            Some(word) if word == param.text() => None,
            _ => Some(read(self.range.clone()).map_err(|error| or_none(error, self.none))?),
        };
        // Every range fits its type; the tables' test checks that.
        if (self.slot)(config).set(number) { Ok(()) } else { Err(param.expected("smaller")) }
    }
}

/// The error for a value that may also be the word for "no value".
fn or_none(error: SpecError, none: Option<&str>) -> SpecError {
    match none {
        Some(word) => error.or(word),
        None => error,
    }
}

/// A time in its largest unit without a remainder.
pub(super) fn written(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    match units.into_iter().find(|(size, _)| nanos.is_multiple_of(*size)) {
        Some((size, name)) if nanos > 0 => format!("{}{name}", nanos / size),
        _ => "0ms".into(),
    }
}

/// A number of bytes in its largest binary unit without a remainder.
fn bytes(number: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    match units.into_iter().find(|(size, _)| number > 0 && number.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", number / size),
        None => number.to_string(),
    }
}

/// Constructors, to keep the tables readable.
impl<C> ConfigKey<C> {
    pub(super) const fn new(name: &'static str, value: Value<C>) -> Self {
        Self { name, aliases: &[], summary: "", source: "", value }
    }

    pub(super) const fn switch(name: &'static str, slot: fn(&mut C) -> &mut bool) -> Self {
        Self::new(name, Value::Switch(slot))
    }

    pub(super) const fn integer(
        name: &'static str,
        range: RangeInclusive<u64>,
        slot: fn(&mut C) -> Slot<'_>,
    ) -> Self {
        Self::new(name, Value::Integer(Number { slot, range, none: None }))
    }

    pub(super) const fn bytes(
        name: &'static str,
        range: RangeInclusive<u64>,
        slot: fn(&mut C) -> Slot<'_>,
    ) -> Self {
        Self::new(name, Value::Bytes(Number { slot, range, none: None }))
    }

    pub(super) const fn time(
        name: &'static str,
        range: RangeInclusive<Duration>,
        slot: fn(&mut C) -> Span<'_>,
    ) -> Self {
        Self::new(name, Value::Time { slot, range, none: None })
    }
}
