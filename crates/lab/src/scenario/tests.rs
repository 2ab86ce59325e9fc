//! What is refused, and how it is said.

pub(crate) mod keys;

use super::*;

const NETWORK: &str = r#"
duration = "2s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "wire"
between = ["a", "b"]
rate = "10mbit"
delay = "5ms"
[[app]]
name = "flow"
kind = "bulk"
from = "a"
to = "b"
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "net.toml").map_err(|error| error.to_string())
}

/// The error of the network with `from` replaced by `to`.
fn error(from: &str, to: &str) -> String {
    assert!(NETWORK.contains(from));
    parse(&NETWORK.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn a_mistyped_key_is_refused_with_its_place_and_what_was_meant() {
    assert_eq!(
        error("rate = ", "rte = "),
        "net.toml:10:1: link.wire.rte: unknown key; did you mean `rate`? (allowed: name, between, from, to, back, path, \
         rate, trace, delay, framing, queue, impairments)"
    );
    assert_eq!(
        error("kind = \"bulk\"", "kind = \"bulk\"\nsise = \"10k\""),
        "net.toml:15:1: app.flow.sise: unknown key for bulk; did you mean `size`? (allowed: kind, name, from, to, start, \
         count, stagger, jitter, conn, accept, size, duration, transfers, wait, reader)"
    );
    assert!(
        error("duration", "durration")
            .starts_with("net.toml:2:1: durration: unknown key; did you mean `duration`?")
    );
}

#[test]
fn a_wrong_value_is_refused_with_its_place_and_what_is_allowed() {
    for (from, to, expected) in [
        ("\"10mbit\"", "10", "net.toml:10:8: link.wire.rate: 10 is not possible: it must be a rate such as"),
        (
            "\"5ms\"",
            "\"5\"",
            "net.toml:11:9: link.wire.delay: \"5\" is not possible: it must be a time with its unit",
        ),
        ("to = \"b\"", "to = \"c\"", "net.toml:16:6: app.flow.to: there is no node named \"c\""),
        ("to = \"b\"", "to = \"a\"", "net.toml:16:6: app.flow.to: a would talk to itself"),
        (
            "\"bulk\"",
            "\"bulc\"",
            "net.toml:14:8: app.flow.kind: \"bulc\" is not possible; did you mean \"bulk\"? (allowed: bulk, ",
        ),
        ("[\"a\", \"b\"]", "[\"a\"]", "net.toml:9:11: link.wire.between: a link is between two nodes"),
        ("name = \"b\"", "name = \"a\"", "net.toml:5:1: node.a: two nodes are named \"a\""),
        (
            "duration = \"2s\"",
            "duration = \"0s\"",
            "net.toml:2:12: duration: \"0s\" is not possible: it must be longer than zero",
        ),
        ("rate =", "rate", "net.toml:10:"),
        (
            "duration",
            "conn = { nagle = \"sunos:half=lt\" }\nduration",
            "net.toml:2:18: conn.nagle: half=lt is not possible: half must be one of gt, ge, off",
        ),
        (
            "duration",
            "conn = { ack_hold_limit = \"501ms\" }\nduration",
            "net.toml:2:27: conn.ack_hold_limit: \"501ms\" is not possible: it must be a time from 1ns to 500ms",
        ),
        (
            "duration",
            "conn = { path_mtu_expiry = \"299s\" }\nduration",
            "net.toml:2:28: conn.path_mtu_expiry: \"299s\" is not possible: it must be a time from 300s",
        ),
    ] {
        let error = error(from, to);
        assert!(error.starts_with(expected), "{to}: {error}");
    }
}

#[test]
fn policies_are_resolved_where_they_stand() {
    let error = parse(&format!("{NETWORK}conn = {{ cc = \"cubik\" }}")).unwrap_err();
    assert_eq!(
        error,
        "net.toml:17:15: app.flow.conn.cc: unknown congestion control \"cubik\"; did you mean \"cubic\"? (ackline list cc)"
    );
}

#[test]
fn a_missing_key_is_named() {
    assert_eq!(error("duration = \"2s\"", ""), "net.toml:1:1: `duration` is missing");
    assert_eq!(error("from = \"a\"", ""), "net.toml:12:1: app.flow: `from` is missing");
}

#[test]
fn values_are_set_by_path() {
    let scenario = parse(NETWORK).unwrap();
    let set = |values: &[&str]| scenario.with_set(values).map_err(|error| error.to_string());
    let rate = |scenario: Scenario| scenario.setup(0).unwrap().links[0].path.service.rate();
    assert_eq!(rate(scenario.clone()), 10_000_000);
    assert_eq!(rate(set(&["link.wire.rate=20mbit"]).unwrap()), 20_000_000);
    assert_eq!(rate(set(&["link.0.rate = 30mbit"]).unwrap()), 30_000_000);
    assert_eq!(rate(set(&["link.*.rate=40mbit", "seed=7"]).unwrap()), 40_000_000);
    let queue = set(&["link.wire.queue={ kind = \"codel\", target = \"2ms\" }"]).unwrap();
    assert!(matches!(queue.setup(0).unwrap().links[1].path.queue, super::link::QueueSetup::CoDel(_)));
    assert_eq!(
        set(&["link.wier.rate=20mbit"]).unwrap_err(),
        "net.toml: --set link.wier.rate=20mbit: link.wier.rate: nothing is named `wier` here; did you mean `wire`? (there are wire)"
    );
    assert_eq!(
        set(&["link.wire.rate=20"]).unwrap_err(),
        "net.toml: --set link.wire.rate=20: link.wire.rate: 20 is not possible: it must be a rate such as \"100kbit\", \"20mbit\" or \"1gbit\" (units: bit, kbit, Mbit, Gbit, Tbit)"
    );
    assert!(set(&["link.wire.rte=20mbit"]).unwrap_err().contains("did you mean `rate`?"));
    assert!(set(&["duration"]).unwrap_err().contains("write path=value"));
}

#[test]
fn sweeps_are_cartesian_and_the_last_axis_is_the_fastest() {
    let text = format!(
        "{NETWORK}\n[sweep]\nconn.cc = [\"reno\", \"cubic\"]\nlink.wire.delay = {{ from = \"1ms\", to = \"100ms\", steps = 3, scale = \"log\" }}\n"
    );
    let scenario = parse(&text).unwrap();
    assert_eq!(scenario.swept().collect::<Vec<_>>(), ["conn.cc", "link.wire.delay"]);
    let points: Vec<String> = (0..scenario.points())
        .map(|point| {
            scenario.params(point).iter().map(|param| param.value.clone()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(points, ["reno 1ms", "reno 10ms", "reno 100ms", "cubic 1ms", "cubic 10ms", "cubic 100ms"]);
    assert_eq!(scenario.setup(2).unwrap().links[0].path.delay.as_millis(), 100);
    let fixed = scenario.with_set(["conn.cc=reno"]).unwrap();
    assert_eq!((fixed.points(), fixed.swept().count()), (3, 1));
}

#[test]
fn cases_change_several_keys_at_once() {
    let text = format!(
        "{NETWORK}\n[[case]]\nname = \"plain\"\n[[case]]\nname = \"aqm\"\nset.conn.cc = \"reno\"\nset.\"link.wire.queue\" = {{ kind = \"codel\" }}\n"
    );
    let scenario = parse(&text).unwrap();
    assert_eq!(scenario.points(), 2);
    assert_eq!(scenario.params(1)[0], Param { path: "case".to_owned(), value: "aqm".to_owned() });
    assert!(matches!(scenario.setup(0).unwrap().links[0].path.queue, super::link::QueueSetup::DropTail(_)));
    assert!(matches!(scenario.setup(1).unwrap().links[0].path.queue, super::link::QueueSetup::CoDel(_)));
}

#[test]
fn a_wrong_value_of_a_sweep_is_refused_before_anything_runs() {
    let error = parse(&format!("{NETWORK}\n[sweep]\nlink.wire.rate = [\"1mbit\", \"2mbot\"]\n")).unwrap_err();
    assert!(error.starts_with("net.toml:19:28: link.wire.rate: \"2mbot\" is not possible"), "{error}");
    assert!(error.ends_with("[at link.wire.rate=2mbot]"), "{error}");
    let error = parse(&format!("{NETWORK}\n[sweep]\nlink.wyre.rate = [\"1mbit\"]\n")).unwrap_err();
    assert!(error.contains("did you mean `wire`?"), "{error}");
}

#[test]
fn groups_are_paired() {
    let text = NETWORK.replacen("name = \"a\"", "name = \"a\"\ncount = 3", 1);
    let setup = parse(&text).unwrap().setup(0).unwrap();
    assert_eq!(setup.nodes.len(), 4);
    assert_eq!(setup.links.len(), 6);
    let flows: Vec<_> = setup.flows.iter().map(|flow| (flow.name.as_str(), flow.from, flow.to)).collect();
    assert_eq!(flows, [("flow-1", 0, 3), ("flow-2", 1, 3), ("flow-3", 2, 3)]);
    assert_eq!(setup.links[3].name, "wire-2.back");
}

#[test]
fn every_example_is_right() {
    for example in crate::EXAMPLES {
        let scenario = Scenario::parse(example.text, example.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.title(), example.title(), "{}", example.name);
        assert!(example.text.contains("# What it shows:"), "{}", example.name);
    }
}

/// What would pass without a word and do nothing, or the same thing twice.
#[test]
fn a_degenerate_value_is_refused_with_its_place_and_what_would_be_right() {
    let queue =
        |limit: &str| format!("rate = \"10mbit\"\nqueue = {{ kind = \"drop-tail\", limit = {limit} }}");
    for limit in ["\"0p\"", "\"0\"", "\"0k\"", "\"0ms\""] {
        let text = error("rate = \"10mbit\"", &queue(limit));
        assert!(text.starts_with("net.toml:11:39: link.wire.queue.limit: \"0"), "{text}");
        assert!(text.contains("must be larger than zero, or no packet would pass: \"1p\""), "{text}");
    }
    let link = |more: &str| error("delay = \"5ms\"", &format!("delay = \"5ms\"\n{more}"));
    let app = |more: &str| error("kind = \"bulk\"", &format!("kind = \"bulk\"\n{more}"));
    let end = |more: &str| error("to = \"b\"\n", &format!("to = \"b\"\n{more}"));
    for (text, key, expected) in [
        (
            end("[sweep]\nlink.wire.rate = { from = \"1mbit\", to = \"1mbit\", steps = 3 }"),
            "sweep.link.wire.rate",
            "from and to are the same",
        ),
        (
            end("[sweep]\nlink.wire.rate = { from = \"1000kbit\", to = \"1mbit\", steps = 3 }"),
            "sweep.link.wire.rate",
            "from and to are the same",
        ),
        (
            end("[sweep]\nlink.wire.queue.limit = { from = \"1p\", to = \"3p\", steps = 9 }"),
            "sweep.link.wire.queue.limit",
            "the steps are so small that 1p comes twice; write fewer steps",
        ),
        (end("[sweep]\nseed = [1, 2, 1]"), "sweep.seed", "1 is there twice, and would be run twice"),
        (
            end("[sweep]\nlink.wire.delay = [\"10ms\", \"0.01s\"]"),
            "sweep.link.wire.delay",
            "0.01s is there twice",
        ),
        (end("[sweep]\nseed = []"), "sweep.seed", "there is no value"),
        (link("impairments = [{ kind = \"drop\", packets = [] }]"), "packets", "the list is empty"),
        (link("impairments = [{ kind = \"drop\", data = [3, 3] }]"), "data.1", "3 is there twice"),
        (link("impairments = [{ kind = \"loss\", probability = \"101%\" }]"), "probability", "from 0 to 1"),
        (
            link("impairments = [{ kind = \"loss\", probability = 0.1, from = \"1s\", until = \"1s\" }]"),
            "impairments.0",
            "until must be later than from",
        ),
        (error("\"10mbit\"", "\"0mbit\""), "link.wire.rate", "must be a rate such as"),
        (app("size = 0"), "app.flow.size", "a number of bytes from 1"),
        (app("duration = \"0s\""), "app.flow.duration", "longer than zero"),
        (app("count = 0"), "app.flow.count", "a whole number from 1"),
        (app("wait = { uniform = [\"1s\", \"1000ms\"] }"), "app.flow.wait.uniform", "both ends are the same"),
        (app("wait = { exponential = 0 }"), "app.flow.wait.exponential", "it must be larger than zero"),
        (end("[[change]]\nat = \"1s\"\nlink = []\nstate = \"down\""), "link", "nothing would change"),
        (end("[measure]\nqueues = [\"wire\", \"wire\"]"), "measure.queues.1", "\"wire\" is there twice"),
        (end("[measure]\nbins = \"3s\""), "measure.bins", "this is longer than the run"),
        (end("[measure]\nfrom = \"1s\"\nuntil = \"1s\""), "measure", "from must be earlier than until"),
        (
            end("[conn]\ninitial_rto = \"3s\"\nmax_rto = \"2s\""),
            "conn",
            "initial_rto=3s is longer than max_rto=2s",
        ),
        (
            error(
                "[[app]]\nname = \"flow\"",
                "[[app]]\nname = \"a\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n[[app]]\nname = \"a\"",
            ),
            "app.a",
            "two apps are named \"a\"",
        ),
    ] {
        assert!(text.starts_with("net.toml:") && text.contains(expected), "{key}: {text}");
        assert!(text.contains(&format!("{key}: ")), "{key}: {text}");
    }
}

#[test]
fn what_host_says_holds_for_all_hosts_and_a_node_says_otherwise() {
    let host = "[host]\nmtu = 1400\ndefault_ttl = 9\nsched = \"drr\"\negress = \"fed\"\npricing = { overhead = 18 }\n";
    let node = "name = \"b\"\nmtu = 9000\nsched = \"fifo\"\negress = \"queued\"\npricing = \"wire\"";
    let router = "[[node]]\nname = \"c\"\nkind = \"router\"\n[[link]]";
    let text = format!("{host}{}", NETWORK.replacen("name = \"b\"", node, 1).replacen("[[link]]", router, 1));
    // `duration` is no key of `[host]`.
    let text = format!("duration = \"2s\"\n{}", text.replacen("duration = \"2s\"\n", "", 1));
    let hosts = |scenario: &Scenario| -> Vec<(u32, u8, &'static str, bool, u32)> {
        let nodes = scenario.setup(0).unwrap().nodes;
        let hosts = nodes.into_iter().filter_map(|node| node.host);
        let facts = hosts.map(|host| {
            let fed = host.egress == ackline_netsim::Egress::Fed;
            let octets = host.config.pricing.price(0, 0, 1);
            (host.config.mtu, host.config.default_ttl, (host.scheduler)().name(), fed, octets)
        });
        facts.collect()
    };
    let scenario = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(hosts(&scenario), [(1400, 9, "drr", true, 18), (9000, 9, "fifo", false, 0)]);
    let scenario = scenario.with_set(["host.default_ttl=5", "node.b.default_ttl=6"]).unwrap();
    assert_eq!(hosts(&scenario), [(1400, 5, "drr", true, 18), (9000, 6, "fifo", false, 0)]);
    assert_eq!(hosts(&parse(NETWORK).unwrap())[0], (1500, 64, "flow-queue", false, 0), "without `[host]`");
}

#[test]
fn a_mistyped_option_is_refused_with_what_was_meant() {
    for (text, expected) in [
        (
            error("duration", "host = { mttu = 1400 }\nduration"),
            "net.toml:2:10: host.mttu: unknown key; did you mean `mtu`?",
        ),
        (
            error("name = \"b\"", "name = \"b\"\ndefault_tll = 3"),
            "net.toml:7:1: node.b.default_tll: unknown key for host; did you mean `default_ttl`?",
        ),
        (
            error("duration", "conn = { sakc = true }\nduration"),
            "net.toml:2:10: conn.sakc: unknown key; did you mean `sack`?",
        ),
        (
            error("duration", "host = { mtu = 67 }\nduration"),
            "net.toml:2:16: host.mtu: 67 is not possible: it must be a whole number from 68 to 65535",
        ),
        (
            error("duration", "host = { addresses = \"10.0.0.1\" }\nduration"),
            "net.toml:2:10: host.addresses: unknown key",
        ),
        (
            error("name = \"b\"", "name = \"b\"\nkind = \"router\"\nmtu = 1400"),
            "net.toml:8:1: node.b.mtu: unknown key for router",
        ),
    ] {
        assert!(text.starts_with(expected), "{text}");
    }
}

/// As `-o iw=4` does.
#[test]
fn options_have_their_short_keys() {
    let window = |scenario: Scenario| scenario.setup(0).unwrap().flows[0].conn.initial_window;
    let iw = NETWORK.replacen("duration", "conn = { iw = 4 }\nduration", 1);
    assert_eq!(window(parse(NETWORK).unwrap()), 10);
    assert_eq!(window(parse(&iw).unwrap()), 4);
    assert_eq!(window(parse(&iw).unwrap().with_set(["app.flow.conn.initial_window=5"]).unwrap()), 5);
    assert_eq!(
        error("duration", "conn = { iw = 4, initial_window = 4 }\nduration"),
        "net.toml:2:35: conn.initial_window: option \"initial_window\" is given twice"
    );
    assert_eq!(
        error("duration", "conn = { iw = 0 }\nduration"),
        "net.toml:2:15: conn.iw: initial_window=0 is not possible: initial_window must be a whole number from 1 to 65535"
    );
}
