//! Keys: settings with a name, a range, and a place where the value is kept.
//!
//! Range and default in text follow from these, so what is printed is what is checked. The settings
//! of connections and endpoints are tables of keys, and so are the parameters of a policy.

use super::{Param, Params, SpecError};
use crate::quantity::Amount;
use crate::time::Duration;
use crate::units::Rate;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

/// One setting of `C`, as text.
pub struct Key<C> {
    /// The key: the field's name.
    pub name: &'static str,
    /// Aliases of the key.
    pub aliases: &'static [&'static str],
    /// What the setting does, in one line.
    pub summary: &'static str,
    /// Its source: RFC and section, or the socket option or sysctl that Linux users know. May be
    /// empty.
    pub source: &'static str,
    pub(crate) value: Value<C>,
}

impl<C> fmt::Debug for Key<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Clone> Key<C> {
    /// Whether `name` is the key or one of its aliases.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The accepted values: `on|off`, `0..63`, `1ns..500ms`.
    #[must_use]
    pub fn range(&self) -> String {
        self.value.range()
    }

    /// The value in `config`, as text.
    #[must_use]
    pub fn get(&self, config: &C) -> String {
        self.value.get(config)
    }

    /// Sets the value in `config`; leaves it unchanged on an error.
    ///
    /// # Errors
    /// What `text` must be.
    pub fn set(&self, config: &mut C, text: &str) -> Result<(), SpecError> {
        self.value.set(config, Param::new(self.name, text))
    }
}

/// The longest time that any setting accepts.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 86_400);
/// The shortest time that is not zero.
pub(crate) const SHORTEST: Duration = Duration::from_nanos(1);

/// A setting's type, and its place in the settings.
pub(crate) enum Value<C> {
    Switch(fn(&mut C) -> &mut bool),
    /// A whole number.
    Integer(Number<C>),
    /// A number of bytes, optionally with a unit.
    Bytes(Number<C>),
    /// A number with a fraction.
    Real {
        slot: fn(&mut C) -> &mut f64,
        range: RangeInclusive<f64>,
    },
    Duration {
        slot: fn(&mut C) -> &mut Duration,
        range: RangeInclusive<Duration>,
    },
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
    /// A number with a fraction, kept as a whole number of parts.
    Parts {
        slot: fn(&mut C) -> &mut u32,
        parts: u32,
        range: RangeInclusive<f64>,
    },
    Rate(fn(&mut C) -> &mut Rate),
    RateOr {
        slot: fn(&mut C) -> &mut Option<Rate>,
        /// The word for "no value".
        none: &'static str,
    },
    Amount {
        get: fn(&C) -> Amount,
        set: fn(&mut C, Amount),
        most: (u64, Duration),
    },
    TimeOr(Worded<C, Duration>),
    RealOr(Worded<C, f64>),
    /// Anything else.
    Text {
        range: &'static str,
        get: fn(&C) -> String,
        set: fn(&mut C, Param<'_>) -> Result<(), SpecError>,
    },
}

/// A number among the settings of type `C`.
pub(crate) struct Number<C> {
    pub(crate) slot: NumberField<C>,
    pub(crate) range: RangeInclusive<u64>,
    /// The word for "no value".
    pub(crate) none: Option<&'static str>,
}

/// Values of type `T` within `range`, and words that may stand in place of one.
pub(crate) struct Worded<C, T> {
    words: &'static [&'static str],
    range: RangeInclusive<T>,
    get: fn(&C) -> WordOr<T>,
    set: fn(&mut C, WordOr<T>),
}

/// What a key that accepts words or values has: a word, by its number, or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOr<T> {
    /// The number of the word among the key's.
    Word(usize),
    /// A value within the key's range.
    Value(T),
}

impl<C, T> Worded<C, T> {
    fn range(&self, written: impl Fn(&T) -> String) -> String {
        let (words, range) = (self.words.join("|"), &self.range);
        format!("{words}|{}..{}", written(range.start()), written(range.end()))
    }

    fn get(&self, config: &C, written: impl Fn(&T) -> String) -> String {
        match (self.get)(config) {
            WordOr::Word(at) => self.words.get(at).copied().unwrap_or_default().into(),
            WordOr::Value(value) => written(&value),
        }
    }

    fn set(
        &self,
        config: &mut C,
        param: Param<'_>,
        read: impl FnOnce(RangeInclusive<T>) -> Result<T, SpecError>,
    ) -> Result<(), SpecError>
    where
        T: Clone,
    {
        let value = match self.words.iter().position(|word| *word == param.text()) {
            Some(at) => WordOr::Word(at),
            None => {
                WordOr::Value(read(self.range.clone()).map_err(|error| error.or(&self.words.join(" or ")))?)
            }
        };
        (self.set)(config, value);
        Ok(())
    }
}

/// The field of a configuration that holds a number.
pub(crate) enum NumberField<C> {
    U32(fn(&mut C) -> &mut u32),
    MaybeU32(fn(&mut C) -> &mut Option<u32>),
    U64(fn(&mut C) -> &mut u64),
    Any(fn(&mut C) -> Slot<'_>),
}

impl<C> NumberField<C> {
    fn of<'a>(&self, config: &'a mut C) -> Slot<'a> {
        match self {
            Self::U32(slot) => Slot::U32(slot(config)),
            Self::MaybeU32(slot) => Slot::MaybeU32(slot(config)),
            Self::U64(slot) => Slot::U64(slot(config)),
            Self::Any(slot) => slot(config),
        }
    }
}

/// A place for a number.
pub(crate) enum Slot<'a> {
    U8(&'a mut u8),
    U16(&'a mut u16),
    U32(&'a mut u32),
    U64(&'a mut u64),
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
            Self::U64(value) => Some(**value),
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
            Self::U64(slot) => store(slot, number),
            Self::Usize(slot) => store(slot, number),
            Self::MaybeU8(slot) => store_maybe(slot, number),
            Self::MaybeU16(slot) => store_maybe(slot, number),
            Self::MaybeU32(slot) => store_maybe(slot, number),
            Self::MaybeU64(slot) => store_maybe(slot, number),
        }
    }
}

/// A place for a time.
pub(crate) enum Span<'a> {
    Always(&'a mut Duration),
    Maybe(&'a mut Option<Duration>),
}

impl<C: Clone> Value<C> {
    pub(crate) fn range(&self) -> String {
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
            Self::Real { range, .. } => format!("{}..{}", range.start(), range.end()),
            Self::Duration { range, .. } => format!("{}..{}", written(*range.start()), written(*range.end())),
            Self::Choice { names, .. } => names.join("|"),
            Self::Parts { range, .. } => format!("{}..{}", range.start(), range.end()),
            Self::Rate(_) => format!("{}..{}", bits(*RATES.start()), bits(*RATES.end())),
            Self::RateOr { none, .. } => {
                format!("{none}|{}..{}", bits(*RATES.start()), bits(*RATES.end()))
            }
            Self::Amount { most: (size, time), .. } => format!("0..{}|0ms..{}", bytes(*size), written(*time)),
            Self::TimeOr(worded) => worded.range(|time| written(*time)),
            Self::RealOr(worded) => worded.range(ToString::to_string),
            Self::Text { range, .. } => (*range).into(),
        }
    }

    pub(crate) fn get(&self, config: &C) -> String {
        // The places are those for writing; a copy is read through them.
        let mut copy = config.clone();
        let or_none =
            |value: Option<String>, none: &Option<&str>| value.or(none.map(String::from)).unwrap_or_default();
        match self {
            Self::Switch(slot) => if *slot(&mut copy) { "on" } else { "off" }.into(),
            Self::Integer(number) => {
                or_none(number.slot.of(&mut copy).get().map(|value| value.to_string()), &number.none)
            }
            Self::Bytes(number) => or_none(number.slot.of(&mut copy).get().map(bytes), &number.none),
            Self::Time { slot, none, .. } => match slot(&mut copy) {
                Span::Always(time) => written(*time),
                Span::Maybe(time) => or_none(time.map(written), none),
            },
            Self::Real { slot, .. } => slot(&mut copy).to_string(),
            Self::Duration { slot, .. } => written(*slot(&mut copy)),
            Self::Choice { names, get, .. } => names.get(get(config)).copied().unwrap_or_default().into(),
            Self::Parts { slot, parts, .. } => (f64::from(*slot(&mut copy)) / f64::from(*parts)).to_string(),
            Self::Rate(slot) => bits(slot(&mut copy).bits_per_second()),
            Self::RateOr { slot, none } => {
                slot(&mut copy).map_or_else(|| (*none).into(), |rate| bits(rate.bits_per_second()))
            }
            Self::Amount { get, .. } => match get(config) {
                Amount::Size(size) => bytes(size),
                Amount::Time(time) => written(time),
            },
            Self::TimeOr(worded) => worded.get(config, |time| written(*time)),
            Self::RealOr(worded) => worded.get(config, ToString::to_string),
            Self::Text { get, .. } => get(config),
        }
    }

    pub(crate) fn set(&self, config: &mut C, param: Param<'_>) -> Result<(), SpecError> {
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
            Self::Real { slot, range } => *slot(config) = param.number(range.clone())?,
            Self::Duration { slot, range } => *slot(config) = param.duration(range.clone())?,
            Self::Choice { names, set, .. } => set(config, param.choice(names)?),
            // The ranges are small and positive.
            Self::Parts { slot, parts, range } => {
                *slot(config) = (param.number(range.clone())? * f64::from(*parts) + 0.5) as u32;
            }
            Self::Rate(slot) => *slot(config) = param.rate(RATES)?,
            Self::RateOr { slot, none } if *none == param.text() => *slot(config) = None,
            Self::RateOr { slot, none } => {
                *slot(config) = Some(param.rate(RATES).map_err(|error| error.or(none))?);
            }
            Self::Amount { set, most, .. } => set(config, param.amount(*most)?),
            Self::TimeOr(worded) => worded.set(config, param, |range| param.duration(range))?,
            Self::RealOr(worded) => worded.set(config, param, |range| param.number(range))?,
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
        if self.slot.of(config).set(number) { Ok(()) } else { Err(param.expected("smaller")) }
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
pub(crate) fn written(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    match units.into_iter().find(|(size, _)| nanos.is_multiple_of(*size)) {
        Some((size, name)) if nanos > 0 => format!("{}{name}", nanos / size),
        _ => "0ms".into(),
    }
}

/// A number of bytes in its largest binary unit without a remainder.
pub(super) fn bytes(number: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    match units.into_iter().find(|(size, _)| number > 0 && number.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", number / size),
        None => number.to_string(),
    }
}

/// The rates that a parameter accepts, in bits per second.
const RATES: RangeInclusive<u64> = 8..=1_000_000_000_000_000;

/// A rate in its largest unit up to Gbit without a remainder.
fn bits(rate: u64) -> String {
    let units = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")];
    match units.into_iter().find(|(size, _)| rate > 0 && rate.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", rate / size),
        None => format!("{rate}bit"),
    }
}

/// The parameters of policies.
impl<C> Key<C> {
    /// A whole number.
    #[must_use]
    pub const fn integer(
        name: &'static str,
        range: RangeInclusive<u32>,
        summary: &'static str,
        slot: fn(&mut C) -> &mut u32,
    ) -> Self {
        let range = *range.start() as u64..=*range.end() as u64;
        let number = Number { slot: NumberField::U32(slot), range, none: None };
        Self { summary, ..Self::new(name, Value::Integer(number)) }
    }

    /// A whole number, or `none` for no value.
    #[must_use]
    pub const fn integer_or(
        name: &'static str,
        range: RangeInclusive<u32>,
        none: &'static str,
        summary: &'static str,
        slot: fn(&mut C) -> &mut Option<u32>,
    ) -> Self {
        let range = *range.start() as u64..=*range.end() as u64;
        let number = Number { slot: NumberField::MaybeU32(slot), range, none: Some(none) };
        Self { summary, ..Self::new(name, Value::Integer(number)) }
    }

    /// A number of bytes, in the units of [`SIZE`](crate::quantity::SIZE).
    #[must_use]
    pub const fn size(
        name: &'static str,
        range: RangeInclusive<u32>,
        summary: &'static str,
        slot: fn(&mut C) -> &mut u32,
    ) -> Self {
        let range = *range.start() as u64..=*range.end() as u64;
        let number = Number { slot: NumberField::U32(slot), range, none: None };
        Self { summary, ..Self::new(name, Value::Bytes(number)) }
    }

    /// The same, if it may be large.
    #[must_use]
    pub const fn size_u64(
        name: &'static str,
        range: RangeInclusive<u64>,
        summary: &'static str,
        slot: fn(&mut C) -> &mut u64,
    ) -> Self {
        let number = Number { slot: NumberField::U64(slot), range, none: None };
        Self { summary, ..Self::new(name, Value::Bytes(number)) }
    }

    /// A number that is kept as a whole number of `parts`: with 100, 0.25 is kept as 25.
    #[must_use]
    pub const fn parts(
        name: &'static str,
        range: RangeInclusive<f64>,
        parts: u32,
        summary: &'static str,
        slot: fn(&mut C) -> &mut u32,
    ) -> Self {
        Self { summary, ..Self::new(name, Value::Parts { slot, parts, range }) }
    }

    /// A rate, in the units of [`RATE`](crate::quantity::RATE).
    #[must_use]
    pub const fn rate(name: &'static str, summary: &'static str, slot: fn(&mut C) -> &mut Rate) -> Self {
        Self { summary, ..Self::new(name, Value::Rate(slot)) }
    }

    /// A rate, in the units of [`RATE`](crate::quantity::RATE), or `none` for no value.
    #[must_use]
    pub const fn rate_or(
        name: &'static str,
        none: &'static str,
        summary: &'static str,
        slot: fn(&mut C) -> &mut Option<Rate>,
    ) -> Self {
        Self { summary, ..Self::new(name, Value::RateOr { slot, none }) }
    }

    /// An amount of data, at most `most`: in bytes, or as a time at some rate.
    #[must_use]
    pub const fn amount(
        name: &'static str,
        most: (u64, Duration),
        summary: &'static str,
        get: fn(&C) -> Amount,
        set: fn(&mut C, Amount),
    ) -> Self {
        Self { summary, ..Self::new(name, Value::Amount { get, set, most }) }
    }

    /// A time, or one of `words`.
    #[must_use]
    pub const fn time_or(
        name: &'static str,
        words: &'static [&'static str],
        range: RangeInclusive<Duration>,
        summary: &'static str,
        get: fn(&C) -> WordOr<Duration>,
        set: fn(&mut C, WordOr<Duration>),
    ) -> Self {
        Self { summary, ..Self::new(name, Value::TimeOr(Worded { words, range, get, set })) }
    }

    /// A number, or one of `words`.
    #[must_use]
    pub const fn number_or(
        name: &'static str,
        words: &'static [&'static str],
        range: RangeInclusive<f64>,
        summary: &'static str,
        get: fn(&C) -> WordOr<f64>,
        set: fn(&mut C, WordOr<f64>),
    ) -> Self {
        Self { summary, ..Self::new(name, Value::RealOr(Worded { words, range, get, set })) }
    }

    /// A value with a notation of its own. `range` describes in words what `set` accepts.
    #[must_use]
    pub const fn text(
        name: &'static str,
        range: &'static str,
        summary: &'static str,
        get: fn(&C) -> String,
        set: fn(&mut C, Param<'_>) -> Result<(), SpecError>,
    ) -> Self {
        Self { summary, ..Self::new(name, Value::Text { range, get, set }) }
    }

    /// A whole number that may be large.
    #[must_use]
    pub const fn count(
        name: &'static str,
        range: RangeInclusive<u64>,
        summary: &'static str,
        slot: fn(&mut C) -> &mut u64,
    ) -> Self {
        let number = Number { slot: NumberField::U64(slot), range, none: None };
        Self { summary, ..Self::new(name, Value::Integer(number)) }
    }

    /// A number.
    #[must_use]
    pub const fn number(
        name: &'static str,
        range: RangeInclusive<f64>,
        summary: &'static str,
        slot: fn(&mut C) -> &mut f64,
    ) -> Self {
        Self { summary, ..Self::new(name, Value::Real { slot, range }) }
    }

    /// A time, in the units of [`TIME`](crate::quantity::TIME).
    #[must_use]
    pub const fn time(
        name: &'static str,
        range: RangeInclusive<Duration>,
        summary: &'static str,
        slot: fn(&mut C) -> &mut Duration,
    ) -> Self {
        Self { summary, ..Self::new(name, Value::Duration { slot, range }) }
    }

    /// `on` or `off`.
    #[must_use]
    pub const fn switch(name: &'static str, summary: &'static str, slot: fn(&mut C) -> &mut bool) -> Self {
        Self { summary, ..Self::new(name, Value::Switch(slot)) }
    }

    /// One of `names`, by its number.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        names: &'static [&'static str],
        summary: &'static str,
        get: fn(&C) -> usize,
        set: fn(&mut C, usize),
    ) -> Self {
        Self { summary, ..Self::new(name, Value::Choice { names, get, set }) }
    }
}

/// Sets `params`, which are among `keys`, in `value`; some may be set if it fails. Keys are set in
/// the order of `keys`, whatever the order of `params`. `policy` is the name for errors.
///
/// # Errors
/// Names the parameter that is unknown or out of range.
pub fn set_keys<C: Clone>(
    policy: &str,
    keys: &[Key<C>],
    value: &mut C,
    params: &Params,
) -> Result<(), SpecError> {
    let names = keys.iter().map(|key| key.name);
    if let Some(param) = params.iter().find(|param| !names.clone().any(|name| name == param.key())) {
        return Err(param.unknown(policy, names));
    }
    for key in keys {
        if let Some(param) = params.get(key.name) {
            key.value.set(value, param)?;
        }
    }
    Ok(())
}

/// A policy, or the parameters of one, that is set by keys: what is not given has the value of the
/// default.
pub trait Keyed: Clone + Default + 'static {
    /// Its parameters, in listing order. Those that set others, such as a profile, come first.
    const KEYS: &'static [Key<Self>] = &[];

    /// Checks what the keys alone do not: values that exclude each other.
    ///
    /// # Errors
    /// Names the parameters that do not go together.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }

    /// The default with `params`. `policy` is the name for errors.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    fn from_params(policy: &str, params: &Params) -> Result<Self, SpecError> {
        let mut new = Self::default();
        new.set(policy, params)?;
        Ok(new)
    }

    /// Sets `params`: all of them or none. `policy` is the name for errors.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range or in conflict with another.
    fn set(&mut self, policy: &str, params: &Params) -> Result<(), SpecError> {
        let mut new = self.clone();
        set_keys(policy, Self::KEYS, &mut new, params)?;
        new.check()?;
        *self = new;
        Ok(())
    }
}

/// No parameters.
impl Keyed for () {}

/// A parameter in a table of policies, in text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParamRow {
    /// The key.
    pub name: &'static str,
    /// The default value.
    pub default: String,
    /// The accepted values: `1..65535`, `on|off`, `1ms..500ms`.
    pub range: String,
    /// What it does, in one line.
    pub summary: &'static str,
}

impl ParamRow {
    /// A parameter in text.
    #[must_use]
    pub const fn new(name: &'static str, default: String, range: String, summary: &'static str) -> Self {
        Self { name, default, range, summary }
    }

    /// The parameters of `P`.
    #[must_use]
    pub fn of<P: Keyed>() -> Vec<Self> {
        Self::all(P::KEYS, &P::default())
    }

    /// `keys` with their values in `default`.
    pub(crate) fn all<C: Clone>(keys: &[Key<C>], default: &C) -> Vec<Self> {
        let row = |key: &Key<C>| Self::new(key.name, key.get(default), key.range(), key.summary);
        keys.iter().map(row).collect()
    }
}

/// The settings of connections and endpoints.
impl<C> Key<C> {
    pub(crate) const fn new(name: &'static str, value: Value<C>) -> Self {
        Self { name, aliases: &[], summary: "", source: "", value }
    }

    pub(crate) const fn flag(name: &'static str, slot: fn(&mut C) -> &mut bool) -> Self {
        Self::new(name, Value::Switch(slot))
    }

    pub(crate) const fn whole(
        name: &'static str,
        range: RangeInclusive<u64>,
        slot: fn(&mut C) -> Slot<'_>,
    ) -> Self {
        Self::new(name, Value::Integer(Number { slot: NumberField::Any(slot), range, none: None }))
    }

    pub(crate) const fn bytes(
        name: &'static str,
        range: RangeInclusive<u64>,
        slot: fn(&mut C) -> Slot<'_>,
    ) -> Self {
        Self::new(name, Value::Bytes(Number { slot: NumberField::Any(slot), range, none: None }))
    }

    pub(crate) const fn span(
        name: &'static str,
        range: RangeInclusive<Duration>,
        slot: fn(&mut C) -> Span<'_>,
    ) -> Self {
        Self::new(name, Value::Time { slot, range, none: None })
    }
}
