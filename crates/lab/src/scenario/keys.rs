//! Every key of a scenario, in one table for each table of the file. The reader refuses what is not
//! here, the ranges in its errors are these, and the reference (`docs/scenario-format.md`,
//! `ackline list scenario`) is printed from it.

mod rows;

pub use rows::SECTIONS;
pub(crate) use rows::{DRAW, FREE, MAX_FLOWS, MAX_NODES, RANGES, ROOT};

use ackline_registry::{Registry, Scope};

/// A table of the file, or one inside a value.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// What is written for it: `[[link]]`, `queue = {...}`; or else where it stands: `Ranges`.
    pub heading: &'static str,
    /// What it describes, in one sentence.
    pub summary: &'static str,
    /// Its keys, whatever its kind.
    pub keys: &'static [Key],
    /// The settings it also takes, those of `ackline list conn` or `ackline list host`.
    pub options: Option<Scope>,
    /// What its key `kind` may be. Empty if it has no such key.
    pub kinds: &'static [Kind],
    /// The kind if none is given.
    pub default_kind: Option<&'static str>,
    /// What it is called in errors, if its heading does not say it.
    pub(crate) called: &'static str,
}

/// One kind of a section, and the keys it adds.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The value of `kind`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its own keys.
    pub keys: &'static [Key],
    /// The settings it also takes.
    pub options: Option<Scope>,
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    pub(crate) accepts: Accepts,
    pub(crate) default: Default,
}

/// What holds if a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// The key is needed.
    Needed,
    /// The summary says what.
    Nothing,
    /// This value.
    Value(&'static str),
    /// What these words say.
    Words(&'static str),
}

/// What may be written behind a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Accepts {
    Text,
    /// A new name.
    Name,
    /// The name of something defined elsewhere.
    NameOf(&'static str),
    Switch,
    /// From, to, and what is counted.
    Integer(u64, u64, &'static str),
    Number(f64, f64),
    /// A number from 0 to 1, or a percentage.
    Probability,
    Time,
    /// A time longer than zero.
    Period,
    Rate,
    Bytes(u64, u64),
    /// A buffer's size.
    Limit,
    /// One of these names, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    List(&'static Self),
    /// One, or a list.
    OneOrMore(&'static Self),
    Table(&'static Section),
    /// A list of tables.
    Tables(&'static Section),
    /// This word, or a table.
    WordOr(&'static str, &'static Section),
    /// The text that the setting of the same name takes, or a table.
    OptionOr(&'static Section),
    /// A fixed value, or how one is drawn.
    Drawn(&'static Self),
    /// Whatever the key takes that is swept or set.
    Anything,
    /// A table of any keys, as paths.
    Paths,
}

use Accepts::{
    Anything, Bytes, Choice, Drawn, Integer, Limit, List, Name, NameOf, Number, OneOrMore, OptionOr, Paths,
    Period, Probability, Rate, Switch, Table, Tables, Text, Time, WordOr,
};

/// No limit but the type's.
const MAX_COUNT: u64 = u64::MAX >> 1;

/// The keys of `scope` that a scenario can set, short ones included.
pub(crate) fn options(registry: &Registry, scope: Scope) -> impl Iterator<Item = &'static str> {
    let infos = registry.option_infos(scope).into_iter();
    let keys = infos.flat_map(|info| std::iter::once(info.name).chain(info.aliases.iter().copied()));
    // The network gives addresses.
    keys.filter(|key| !["addresses", "any_address"].contains(key))
}

impl Section {
    const fn new(heading: &'static str, summary: &'static str, keys: &'static [Key]) -> Self {
        Self { heading, summary, keys, options: None, kinds: &[], default_kind: None, called: "" }
    }

    /// The kind called `name`.
    pub(crate) fn kind(&self, name: &str) -> Option<&'static Kind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }
}

impl Key {
    const fn need(name: &'static str, accepts: Accepts, summary: &'static str) -> Self {
        Self { name, summary, accepts, default: Default::Needed }
    }

    const fn maybe(name: &'static str, accepts: Accepts, summary: &'static str) -> Self {
        Self { name, summary, accepts, default: Default::Nothing }
    }

    const fn or(name: &'static str, accepts: Accepts, default: &'static str, summary: &'static str) -> Self {
        Self { name, summary, accepts, default: Default::Value(default) }
    }

    /// If the default is not a value, but follows from other keys.
    const fn usually(
        name: &'static str,
        accepts: Accepts,
        default: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { name, summary, accepts, default: Default::Words(default) }
    }

    /// True if a scenario without it is refused.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.default == Default::Needed
    }

    /// The default, as it would be written or in words; `None` if there is none.
    #[must_use]
    pub const fn default(&self) -> Option<&'static str> {
        match self.default {
            Default::Needed | Default::Nothing => None,
            Default::Value(text) | Default::Words(text) => Some(text),
        }
    }

    /// True if the default can be written as a value.
    #[must_use]
    pub const fn default_is_value(&self) -> bool {
        matches!(self.default, Default::Value(_))
    }

    /// The type of the value, in one or two words: `time`, `list of integer`.
    #[must_use]
    pub fn type_name(&self) -> String {
        self.accepts.type_name()
    }

    /// What is possible within the type, such as `0 to 65535`; empty if everything is.
    #[must_use]
    pub fn range(&self) -> String {
        self.accepts.range()
    }

    /// What an integer counts; empty if the text has its unit, or needs none.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        self.accepts.unit()
    }

    /// The values to choose from, each with its meaning.
    #[must_use]
    pub const fn choices(&self) -> &'static [(&'static str, &'static str)] {
        match self.accepts {
            Choice(names) => names,
            _ => &[],
        }
    }
}

impl Accepts {
    fn type_name(self) -> String {
        match self {
            Text => "text".into(),
            Name => "name".into(),
            NameOf(what) => format!("{what} name"),
            Switch => "`true` or `false`".into(),
            Integer(..) => "integer".into(),
            Number(..) => "number".into(),
            Probability => "probability".into(),
            Time | Period => "time".into(),
            Rate => "rate".into(),
            Bytes(..) => "bytes".into(),
            Limit => "buffer size".into(),
            Choice(_) => "choice".into(),
            Tables(section) => format!("tables `{}`", section.heading),
            List(of) => format!("list of {}s", of.type_name()),
            OneOrMore(of) => format!("{0}, or list of {0}s", of.type_name()),
            Table(section) => format!("table `{}`", section.heading),
            WordOr(word, section) => format!("`\"{word}\"`, or a table `{}`", section.heading),
            OptionOr(section) => format!("text, or a table `{}`", section.heading),
            Drawn(of) => format!("{}, fixed or drawn", of.type_name()),
            Anything => "value".into(),
            Paths => "table of keys".into(),
        }
    }

    fn range(self) -> String {
        match self {
            Integer(1, MAX_COUNT, _) => "from 1".into(),
            Integer(low, high, _) => format!("{low} to {high}"),
            Bytes(low, high) => format!("{low} to {}", power(high)),
            Number(low, high) => format!("{low} to {high}"),
            Period => "longer than 0".into(),
            Choice(names) => {
                names.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ")
            }
            List(of) | OneOrMore(of) | Drawn(of) => of.range(),
            _ => String::new(),
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Integer(_, _, unit) => unit,
            List(of) | OneOrMore(of) | Drawn(of) => of.unit(),
            _ => "",
        }
    }
}

/// Large powers of two are easier to read as such.
fn power(number: u64) -> String {
    if number.is_power_of_two() && number >= 1 << 20 {
        format!("2^{}", number.trailing_zeros())
    } else {
        number.to_string()
    }
}
