use super::*;
use crate::policy::NewCongestionControl;
use crate::policy::builtin::NewReno;
use crate::policy::cc::CcInit;
use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::sync::Arc;
use proptest::prelude::*;

/// Parameters, one of each kind of value.
#[derive(Clone, Debug, PartialEq)]
struct Mixed {
    beta: f64,
    hystart: bool,
    share: u32,
    most: Option<u32>,
    bytes: u32,
    rate: Option<Rate>,
    pause: WordOr<Duration>,
    goal: WordOr<f64>,
    mode: usize,
}

impl Default for Mixed {
    fn default() -> Self {
        Self {
            beta: 0.7,
            hystart: true,
            share: 277,
            most: Some(100),
            bytes: 4096,
            rate: None,
            pause: WordOr::Word(0),
            goal: WordOr::Value(0.25),
            mode: 0,
        }
    }
}

impl Keyed for Mixed {
    const KEYS: &'static [Key<Self>] = &[
        Key::number("beta", 0.1..=0.9, "", |it| &mut it.beta),
        Key::switch("hystart", "", |it| &mut it.hystart),
        Key::parts("share", 0.5..=4.0, 100, "", |it| &mut it.share),
        Key::integer_or("most", 2..=1000, "off", "", |it| &mut it.most),
        Key::size("bytes", 2..=1 << 20, "", |it| &mut it.bytes),
        Key::rate_or("rate", "off", "", |it| &mut it.rate),
        Key::time_or(
            "pause",
            &["auto", "off"],
            Duration::from_millis(1)..=Duration::from_secs(60),
            "",
            |it| it.pause,
            |it, pause| it.pause = pause,
        ),
        Key::number_or("goal", &["equal"], 0.001..=0.999, "", |it| it.goal, |it, goal| it.goal = goal),
        Key::choice("mode", &["on", "off", "linux"], "", |it| it.mode, |it, at| it.mode = at),
    ];

    fn check(&self) -> Result<(), SpecError> {
        if self.mode == 2 && !self.hystart {
            return Err(SpecError::new("mode=linux is for hystart=on"));
        }
        Ok(())
    }
}

/// `beta` and `hystart` alone.
#[derive(Clone, Debug, Default)]
struct Two(Mixed);

impl Keyed for Two {
    const KEYS: &'static [Key<Self>] = &[
        Key::number("beta", 0.1..=0.9, "", |it| &mut it.0.beta),
        Key::switch("hystart", "", |it| &mut it.0.hystart),
    ];
}

fn make<P: Keyed>(name: &str, params: &Params) -> Result<Arc<NewCongestionControl>, SpecError> {
    P::from_params(name, params)?;
    Ok(Arc::new(|init: &CcInit| Box::new(NewReno::new(init))))
}

const TABLE: &[Entry<NewCongestionControl>] = &[
    Entry {
        aliases: &["rfc9438"],
        keys: ParamRow::of::<Two>,
        ..Entry::new("cubic", |params| make::<Two>("cubic", params))
    },
    Entry::growth::<NewReno>(""),
    Entry { keys: ParamRow::of::<Mixed>, ..Entry::new("mixed", |params| make::<Mixed>("mixed", params)) },
];

fn mixed(text: &str) -> Mixed {
    Mixed::from_params("mixed", &text.parse().unwrap()).unwrap()
}

#[test]
fn a_key_prints_the_range_that_it_checks() {
    let rows: Vec<String> = ParamRow::of::<Mixed>()
        .into_iter()
        .map(|row| format!("{}={} [{}]", row.name, row.default, row.range))
        .collect();
    let expected = [
        "beta=0.7 [0.1..0.9]",
        "hystart=on [on|off]",
        "share=2.77 [0.5..4]",
        "most=100 [2..1000|off]",
        "bytes=4k [2..1M bytes]",
        "rate=off [off|8bit..1000000gbit]",
        "pause=auto [auto|off|1ms..60s]",
        "goal=0.25 [equal|0.001..0.999]",
        "mode=on [on|off|linux]",
    ];
    assert_eq!(rows, expected);
    // The ends are accepted and written as they were read; what lies beyond is refused.
    for text in [
        "beta=0.9",
        "share=0.5",
        "share=4",
        "most=2",
        "most=off",
        "bytes=1M",
        "rate=8bit",
        "rate=1000000gbit",
        "rate=off",
        "pause=off",
        "pause=1ms",
        "pause=60s",
        "goal=equal",
        "goal=0.999",
        "mode=linux",
    ] {
        let (name, value) = text.split_once('=').unwrap();
        let key = Mixed::KEYS.iter().find(|key| key.name == name).unwrap();
        assert_eq!(key.get(&mixed(text)), value, "{text}");
    }
    for text in [
        "beta=0.95",
        "share=0.49",
        "share=4.1",
        "most=1",
        "most=1001",
        "bytes=1",
        "bytes=2M",
        "rate=7bit",
        "rate=1001tbit",
        "pause=61s",
        "pause=never",
        "goal=1",
        "mode=auto",
    ] {
        let error = error_of(&format!("mixed:{text}"));
        assert!(error.starts_with(&format!("{text} is not possible: ")), "{error}");
    }
}

#[test]
fn words_and_values_are_told_in_an_error() {
    for (text, expected) in [
        ("pause=2", "a time from 1ms to 60s (units: ns, us, ms, s, m, h, d), or auto or off"),
        ("goal=2", "a number from 0.001 to 0.999, or equal"),
        ("most=1", "a whole number from 2 to 1000, or off"),
        ("rate=5", "a rate such as 100kbit, 20mbit or 1gbit (units: bit, kbit, Mbit, Gbit, Tbit), or off"),
    ] {
        let name = text.split('=').next().unwrap();
        let error = error_of(&format!("mixed:{text}"));
        assert_eq!(error, format!("{text} is not possible: {name} must be {expected}"));
    }
}

#[test]
fn the_words_of_a_switch_are_those_of_a_choice_that_has_on_and_off() {
    assert_eq!((mixed("mode=yes").mode, mixed("mode=0").mode), (0, 1));
    assert!(Param::new("mode", "yes").choice(&["off", "auto"]).is_err());
}

#[test]
fn values_that_exclude_each_other_are_refused_and_nothing_is_set() {
    let mut mixed = Mixed::default();
    let error = mixed.set("mixed", &"beta=0.2,mode=linux,hystart=off".parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "mode=linux is for hystart=on");
    assert!(mixed.set("mixed", &"beta=0.2,most=1".parse().unwrap()).is_err());
    assert_eq!(mixed, Mixed::default());
}

fn error_of(text: &str) -> String {
    match resolve(TABLE, PolicyKind::Cc, text) {
        Ok(_) => panic!("{text} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_name_or_alias_with_parameters_resolves() {
    for text in ["cubic", "rfc9438", "cubic:beta=0.5", " cubic : beta = 0.5 , hystart = off ", "reno:"] {
        assert!(resolve(TABLE, PolicyKind::Cc, text).is_ok(), "{text}");
    }
}

#[test]
fn errors_say_what_would_be_right() {
    let cases = [
        ("cubik", "unknown congestion control \"cubik\"; did you mean \"cubic\"? (ackline list cc)"),
        ("zebra", "unknown congestion control \"zebra\" (ackline list cc)"),
        ("cubic:bta=1", "cubic has no parameter \"bta\"; did you mean \"beta\"? (it takes beta, hystart)"),
        ("reno:beta=1", "reno has no parameter \"beta\" (it takes none)"),
        ("cubic:beta=2", "beta=2 is not possible: beta must be a number from 0.1 to 0.9"),
        ("cubic:beta=nan", "beta=nan is not possible: beta must be a number from 0.1 to 0.9"),
        ("cubic:hystart=maybe", "hystart=maybe is not possible: hystart must be on or off"),
        ("cubic:beta", "parameter \"beta\" has no value; write beta=VALUE"),
        ("cubic:beta=", "parameter \"beta=\" is not of the form key=value"),
        ("cubic:beta=0.5,beta=0.6", "parameter \"beta\" is given twice"),
        (":beta=1", "policy \":beta=1\" has no name; write name or name:key=value,..."),
    ];
    for (text, expected) in cases {
        assert_eq!(error_of(text), expected, "{text}");
    }
}

#[test]
fn an_error_about_a_value_has_its_key_and_what_it_takes_apart() {
    let error =
        Param::new("delay", "5").duration(Duration::from_millis(1)..=Duration::from_millis(500)).unwrap_err();
    let expected = "a time from 1ms to 500ms (units: ns, us, ms, s, m, h, d)";
    assert_eq!(error.expectation(), Some(("delay", expected)));
    assert_eq!(error.to_string(), format!("delay=5 is not possible: delay must be {expected}"));
    let error = error.or("never");
    assert!(error.to_string().ends_with("h, d), or never"), "{error}");
    assert_eq!(SpecError::new("x").or("never"), SpecError::new("x"));
    assert_eq!(SpecError::new("x").expectation(), None);
}

#[test]
fn errors_name_the_units() {
    let param = Param::new("rate", "5knots");
    assert!(
        param
            .rate(8..=1_000_000_000)
            .unwrap_err()
            .to_string()
            .ends_with("(units: bit, kbit, Mbit, Gbit, Tbit)")
    );
    let error = param.bytes(1..=4096).unwrap_err().to_string();
    assert!(error.ends_with("a number of bytes from 1 to 4096 (units: B, K, M, G, T)"), "{error}");
}

/// A shaper's two parameters.
#[derive(Clone, Debug, Default)]
struct Burst {
    rate: Option<Rate>,
    burst: u32,
}

impl Keyed for Burst {
    const KEYS: &'static [Key<Self>] = &[
        Key::size("burst", 0..=1 << 20, "", |it| &mut it.burst),
        Key::rate_or("rate", "off", "", |it| &mut it.rate),
    ];
}

#[test]
fn split_keeps_order_and_loses_nothing() {
    let params: Params = "rate=1mbit,f=0.5,burst=3k".parse().unwrap();
    let (own, rest) = params.split::<Burst>();
    let names = |params: &Params| params.iter().map(|param| param.key().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&own), ["rate", "burst"]);
    assert_eq!(names(&rest), ["f"]);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = resolve(TABLE, PolicyKind::Cc, &text);
    }

    #[test]
    fn a_spec_survives_being_written_and_read(
        name in "[a-z][a-z0-9-]{0,12}",
        values in proptest::collection::btree_map("[a-z_]{1,8}", "[a-z0-9.]{1,8}", 0..5),
    ) {
        let params: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let spec: PolicySpec = format!("{name}:{}", params.join(",")).parse().unwrap();
        prop_assert_eq!(&spec.to_string().parse::<PolicySpec>().unwrap(), &spec);
        prop_assert_eq!(spec.params.iter().count(), values.len());
    }
}
