use super::*;
use ackline_tcp_core::config::EndpointConfig;
use ackline_tcp_core::policy::ack::AckInit;
use ackline_tcp_core::policy::builtin::{DelayedAck, NewReno};
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::policy::spec::{Key, Keyed, ParamRow};
use ackline_tcp_core::{Instant, Window};
use std::string::{String, ToString};
use std::{format, vec};

const KINDS: [PolicyKind; 4] = [PolicyKind::Cc, PolicyKind::Ack, PolicyKind::Rto, PolicyKind::Sched];

/// What a connection of these settings runs, by name.
fn names(config: &ConnConfig) -> [String; 3] {
    let cc = (config.policies.cc)(&CcInit::new(Instant::ZERO, 1460, Window::from_bytes(14_600)));
    let ack = (config.policies.ack)(&AckInit::new(Instant::ZERO, 1460, None));
    [cc.name().into(), ack.name().into(), (config.policies.rto)().name().into()]
}

#[test]
fn the_defaults_are_those_of_a_linux_like_host() {
    let registry = Registry::default();
    assert_eq!(names(&registry.conn_config()), ["cubic", "linux-like", "linux"]);
    assert_eq!(registry.scheduler()().name(), "flow-queue");
    for kind in KINDS {
        let defaults: Vec<_> = registry.list(kind).into_iter().filter(|policy| policy.is_default).collect();
        assert_eq!(defaults.len(), 1, "{kind}");
        assert_eq!(defaults[0].name, registry.default_of(kind));
    }
}

#[test]
fn the_named_defaults_are_the_defaults() {
    let registry = Registry::default();
    let (cc, ack) = (
        CcInit::new(Instant::ZERO, 1460, Window::from_bytes(14_600)),
        AckInit::new(Instant::ZERO, 1460, None),
    );
    let given = registry.policies();
    let named = |kind| registry.default_of(kind);
    assert_eq!(
        format!("{:?}", registry.cc(named(PolicyKind::Cc)).unwrap()(&cc)),
        format!("{:?}", (given.cc)(&cc))
    );
    assert_eq!(
        format!("{:?}", registry.ack(named(PolicyKind::Ack)).unwrap()(&ack)),
        format!("{:?}", (given.ack)(&ack))
    );
    assert_eq!(
        format!("{:?}", registry.rto(named(PolicyKind::Rto)).unwrap()()),
        format!("{:?}", (given.rto)())
    );
    assert_eq!(
        format!("{:?}", registry.sched(named(PolicyKind::Sched)).unwrap()()),
        format!("{:?}", registry.scheduler()())
    );
}

/// All of ackline's own policies would be accepted if they came from outside.
#[test]
fn the_tables_are_sound() {
    fn check<T: ?Sized>(kind: PolicyKind, table: &Table<T>) {
        let mut anew = Table::new(kind, &[], table.default(), table.default_maker().clone());
        for entry in table.entries() {
            anew.add(*entry).unwrap_or_else(|error| panic!("{error}"));
            assert!(!entry.summary.is_empty(), "{} has no summary", entry.name);
            let defaults: Vec<String> =
                entry.rows().iter().map(|info| format!("{}={}", info.name, info.default)).collect();
            let spec = format!("{}:{}", entry.name, defaults.join(","));
            assert!(anew.resolve(&spec).is_ok(), "{spec}");
        }
    }
    let registry = Registry::default();
    check(PolicyKind::Cc, registry.cc_table());
    check(PolicyKind::Ack, registry.ack_table());
    check(PolicyKind::Rto, registry.rto_table());
    check(PolicyKind::Sched, registry.sched_table());
}

#[test]
fn a_control_says_which_ecn_it_wants() {
    let registry = Registry::default();
    for (spec, ecn) in [
        ("dctcp:g=0.125", Ecn::Dctcp),
        ("ls-aimd-dctcp", Ecn::Dctcp),
        ("ls-aimd-reno", Ecn::Classic),
        ("cubic", Ecn::Off),
    ] {
        assert_eq!(registry.ecn(spec).unwrap(), ecn, "{spec}");
        let options = registry.option("cc", spec).unwrap();
        assert_eq!(options.conn(&registry.conn_config()).unwrap().ecn, ecn, "{spec}");
    }
    let base = registry.conn_config();
    assert_eq!(registry.options("cc=dctcp,ecn=off").unwrap().conn(&base).unwrap().ecn, Ecn::Off);
    let registry = registry.with_default(PolicyKind::Cc, "dctcp");
    assert_eq!(registry.conn_config().ecn, Ecn::Dctcp);
    let cubic = registry.options("cc=cubic").unwrap().conn(&registry.conn_config()).unwrap();
    assert_eq!(cubic.ecn, Ecn::Off, "a control that does not ask for it");
}

/// Reno with parameters that have no effect. The first one is `DEFAULT` to begin with.
#[derive(Clone, Debug)]
struct Mine<const DEFAULT: u32> {
    speed: u32,
    mss: u32,
}

impl<const DEFAULT: u32> Default for Mine<DEFAULT> {
    fn default() -> Self {
        Self { speed: DEFAULT, mss: 1 }
    }
}

impl<const DEFAULT: u32> Keyed for Mine<DEFAULT> {
    const KEYS: &'static [Key<Self>] = &[
        Key::integer("speed", 1..=9, "", |it| &mut it.speed),
        Key::integer("mss", 1..=9, "", |it| &mut it.mss),
    ];
}

const fn mine<const DEFAULT: u32>() -> Entry<NewCongestionControl> {
    Entry {
        keys: ParamRow::of::<Mine<DEFAULT>>,
        ..Entry::new("mine", |params| {
            Mine::<DEFAULT>::from_params("mine", params)?;
            Ok(Arc::new(|init| alloc::boxed::Box::new(NewReno::new(init))))
        })
    }
}

const MINE: Entry<NewCongestionControl> = mine::<3>();

#[test]
fn a_policy_from_outside_can_be_named_and_be_the_default() {
    let registry = Registry::default().with_cc(MINE).with_default(PolicyKind::Cc, "mine:speed=4");
    assert_eq!(registry.default_of(PolicyKind::Cc), "mine:speed=4");
    assert!(registry.list(PolicyKind::Cc).iter().any(|policy| policy.name == "mine" && policy.is_default));
    assert_eq!(names(&registry.conn_config())[0], "reno", "the control that `mine` makes");
}

#[test]
fn what_is_wrong_with_a_policy_is_told_and_nothing_can_be_used() {
    let entry = Entry { name: "Mine!", ..MINE };
    let twice = || [ParamRow::of::<Mine<3>>(), ParamRow::of::<Mine<3>>()].concat();
    for (registry, wrong) in [
        (
            Registry::default().with_cc(Entry { name: "cubic", ..MINE }),
            "the congestion control \"cubic\" was not added: the name \"cubic\" is taken by \"cubic\" (",
        ),
        (
            Registry::default().with_cc(Entry { aliases: &["newreno"], ..MINE }),
            "the congestion control \"mine\" was not added: the name \"newreno\" is taken by \"reno\" (",
        ),
        (Registry::default().with_cc(Entry { aliases: &["mine"], ..MINE }), "it has the name \"mine\" twice"),
        (Registry::default().with_cc(entry), "\"Mine!\" is not a name"),
        (
            Registry::default().with_cc(mine::<12>()),
            "it refuses its own default speed=12 (range 1..9): speed=12 is not possible: speed must be a whole number from 1 to 9",
        ),
        (Registry::default().with_cc(Entry { keys: twice, ..MINE }), "it has the parameter \"speed\" twice"),
        (
            Registry::default().with_default(PolicyKind::Ack, "delay"),
            "\"delay\" cannot be the default: unknown ACK policy",
        ),
        (
            Registry::default().with_ack(Entry::new("mine", |params| {
                params.get("must").ok_or_else(|| SpecError::new("must= is missing"))?;
                Ok(Arc::new(|_| alloc::boxed::Box::new(DelayedAck::default())))
            })),
            "the ACK policy \"mine\" was not added: it cannot be made without parameters: must= is missing",
        ),
    ] {
        let error = registry.check().unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
        for outcome in [
            registry.cc("cubic").err(),
            registry.ack("delayed").err(),
            registry.rto("linux").err(),
            registry.sched("fifo").err(),
            registry.options("sack=off").err(),
            registry.with_cc(MINE).check().err(),
        ] {
            assert_eq!(outcome.expect("refused").to_string(), error, "the first error stays");
        }
    }
}

#[test]
fn options_are_read_from_one_text() {
    let registry = Registry::default().with_cc(MINE);
    let pairs = |text: &str| -> Vec<(String, String)> {
        let options = registry.options(text).unwrap_or_else(|error| panic!("{error}"));
        options.iter().map(|(key, value)| (key.into(), value.into())).collect()
    };
    let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    };
    assert_eq!(pairs("sack=off,iw=4"), of(&[("sack", "off"), ("initial_window", "4")]));
    assert_eq!(
        pairs("cc=cubic:beta=0.8,hystart=off, sack=off, sched=fifo:rate=1mbit,burst=5ms"),
        of(&[("cc", "cubic:beta=0.8,hystart=off"), ("sack", "off"), ("sched", "fifo:rate=1mbit,burst=5ms")])
    );
    assert_eq!(
        pairs("keep_alive=2m:interval=10s,count=3,mtu=1400"),
        of(&[("keep_alive", "2m:interval=10s,count=3"), ("mtu", "1400")])
    );
    assert_eq!(pairs("cc=mine:speed=2,mss=3;"), of(&[("cc", "mine:speed=2,mss=3")]));
    assert_eq!(pairs(""), vec![]);

    let options =
        registry.options("cc=reno,ack=immediate,rto=dclor,dscp=46,sched=drr,default_ttl=9").unwrap();
    let conn = options.conn(&registry.conn_config()).unwrap();
    assert_eq!((names(&conn), conn.dscp), (["reno".into(), "immediate".into(), "dclor".into()], 46));
    assert_eq!(options.host(&EndpointConfig::default()).unwrap().default_ttl, 9);
    assert_eq!(options.sched().unwrap()().name(), "drr");
}

#[test]
fn options_go_over_others_and_ecn_follows_the_control_that_is_left() {
    let registry = Registry::default();
    let read = |text: &str| registry.options(text).unwrap();
    let ecn = |options: &Options| options.conn(&registry.conn_config()).unwrap().ecn;

    let over = read("cc=cubic,iw=4").over(&read("cc=dctcp,iw=2,sack=off"));
    let pairs: Vec<_> = over.iter().collect();
    assert_eq!(pairs, [("sack", "off"), ("cc", "cubic"), ("initial_window", "4")]);
    assert_eq!(ecn(&over), Ecn::Off, "nothing is left of what dctcp asked for");
    assert_eq!(ecn(&read("cc=cubic").over(&read("cc=dctcp,ecn=dctcp"))), Ecn::Dctcp, "it was given");
    assert_eq!(ecn(&read("").over(&read("cc=dctcp"))), Ecn::Dctcp);
    assert_eq!(ecn(&read("iw=4").over(&read("cc=dctcp"))), Ecn::Dctcp);
}

#[test]
fn wrong_options_name_what_would_be_right() {
    let registry = Registry::default().with_cc(MINE);
    for (text, error) in [
        ("sakc=on", "unknown option \"sakc\"; did you mean \"sack\"? (ackline list conn, ackline list host)"),
        (
            "mttu=1400",
            "unknown option \"mttu\"; did you mean \"mtu\"? (ackline list conn, ackline list host)",
        ),
        ("sack", "option \"sack\" is not of the form key=value"),
        ("sack=on,sack=off", "option \"sack\" is given twice"),
        ("iw=3,initial_window=4", "option \"initial_window\" is given twice"),
        ("cc=cubik", "unknown congestion control \"cubik\"; did you mean \"cubic\"? (ackline list cc)"),
        ("default_ttl=0", "default_ttl=0 is not possible: default_ttl must be a whole number from 1 to 255"),
        ("ttl=0", "ttl=0 is not possible: ttl must be a whole number from 1 to 255, or default"),
        (
            "cc=mine:speed=2,mss=3",
            "mss= is an option, and a parameter of cc=mine:speed=2; separate options by semicolons",
        ),
    ] {
        assert_eq!(registry.options(text).unwrap_err().to_string(), error);
    }
    let options = registry.options("max_rto=100ms").unwrap();
    let error = options.conn(&ConnConfig::default()).unwrap_err().to_string();
    assert_eq!(error, "min_rto=200ms is longer than max_rto=100ms");
}

/// A text with commas is ambiguous for these alone, and then says so.
#[test]
fn few_parameters_are_called_like_an_option() {
    let registry = Registry::default();
    let keys: Vec<&str> = [Scope::Conn, Scope::Host]
        .into_iter()
        .flat_map(|scope| registry.option_infos(scope))
        .flat_map(|info| [&[info.name], info.aliases].concat())
        .collect();
    let mut ambiguous = vec![];
    for policy in KINDS.into_iter().flat_map(|kind| registry.list(kind)) {
        let params = policy.params.iter().filter(|param| keys.contains(&param.name));
        ambiguous.extend(params.map(|param| format!("{}:{}", policy.name, param.name)));
    }
    assert_eq!(
        ambiguous,
        ["hstcp:rto", "scalable:rto", "acwap:rto", "a3:mss", "csa3:mss", "sunos-delayed:mss", "linux:undo"]
    );
    assert!(registry.options("cc=hstcp:rto=b;sack=off").is_ok());
    assert!(registry.options("cc=hstcp:low_window=38,rto=b").unwrap_err().to_string().contains("semicolons"));
}
