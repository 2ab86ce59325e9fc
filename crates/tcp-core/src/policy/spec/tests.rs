use super::*;
use crate::policy::NewCongestionControl;
use crate::policy::builtin::NewReno;
use crate::policy::cc::CcInit;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use proptest::prelude::*;

fn make_any(params: &Params) -> Result<Arc<NewCongestionControl>, SpecError> {
    for param in params.iter() {
        match param.key() {
            "beta" => drop(param.number(0.1..=0.9)?),
            _ => drop(param.switch()?),
        }
    }
    Ok(Arc::new(|init: &CcInit| Box::new(NewReno::new(init))))
}

const TABLE: &[Entry<NewCongestionControl>] = &[
    Entry {
        aliases: &["rfc9438"],
        params: &[
            ParamInfo { name: "beta", default: "0.7", range: "0.1..0.9", summary: "" },
            ParamInfo { name: "hystart", default: "on", range: "on|off", summary: "" },
        ],
        ..Entry::new("cubic", make_any)
    },
    Entry::new("reno", make_any),
];

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
    assert!(param.rate().unwrap_err().to_string().ends_with("(units: bit, kbit, Mbit, Gbit, Tbit)"));
    let error = param.bytes(1..=4096).unwrap_err().to_string();
    assert!(error.ends_with("a number of bytes from 1 to 4096 (units: B, K, M, G, T)"), "{error}");
}

#[test]
fn split_keeps_order_and_loses_nothing() {
    let params: Params = "rate=1mbit,f=0.5,burst=3k".parse().unwrap();
    let keys = [
        ParamInfo { name: "burst", default: "", range: "", summary: "" },
        ParamInfo { name: "rate", default: "", range: "", summary: "" },
    ];
    let (own, rest) = params.split(&keys);
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
