//! The rows: every table of a scenario and its keys, in the order of the reference.

use super::Accepts::{
    self, Anything, Bytes, Choice, Drawn, Integer, Limit, List, Name, NameOf, Number, OneOrMore, OptionOr,
    Paths, Period, Probability, Rate, Switch, Table, Tables, Text, Time, WordOr,
};
use super::{Key, Kind, MAX_COUNT, Section};
use ackline_registry::Scope;

/// Most of each thing: limits against typing errors, not of the simulator.
pub(crate) const MAX_NODES: u64 = 60_000;
/// Each flow has a port.
pub(crate) const MAX_FLOWS: u64 = 50_000;
const MAX_BYTES: u64 = 1 << 50;

/// The whole file.
static TOP: Section = Section::new(
    "Top of the file",
    "Keys that stand before the first table.",
    &[
        Key::usually("title", Text, "the file's name", "one line for tables and reports"),
        Key::maybe("description", Text, "what the scenario shows"),
        Key::need("duration", Period, "simulated time of each run"),
        Key::or(
            "seed",
            Integer(0, i64::MAX as u64, ""),
            "1",
            "seed of the first repetition; each further one adds 1",
        ),
        Key::or("repeat", Integer(1, 100_000, ""), "1", "runs of each point, with different seeds"),
        Key::or(
            "checksums",
            Choice(&[
                ("auto", "computed if a link corrupts packets or a capture is written"),
                ("computed", "always computed and verified"),
                ("omitted", "never, so that corrupted octets reach the application"),
            ]),
            "auto",
            "whether hosts compute and verify transport checksums",
        ),
        Key::maybe(
            "pricing",
            Table(&PRICING),
            "what a packet costs a link, for all hosts; without it, its IP bytes",
        ),
        Key::maybe("conn", Table(&CONN), "settings of every connection"),
        Key::maybe("host", Table(&HOST), "settings of every host"),
        Key::need("node", Tables(&NODE), "hosts and routers"),
        Key::maybe("link", Tables(&LINK), "links between them"),
        Key::need("app", Tables(&APP), "applications: who sends what to whom"),
        Key::maybe("change", Tables(&CHANGE), "changes of links during the run"),
        Key::maybe("measure", Table(&MEASURE), "what is measured, and when"),
        Key::maybe("sweep", Paths, "keys to vary, each with its values"),
        Key::maybe("case", Tables(&CASE), "sets of keys that change together, swept like one key"),
    ],
);

static CONN: Section = Section {
    options: Some(Scope::Conn),
    ..Section::new("[conn]", "Settings of every connection. An app's `conn` and `accept` override them.", &[])
};

const EGRESS: Key = Key::or(
    "egress",
    Choice(&[
        ("queued", "what TCP sends enters the link's queue at once"),
        (
            "fed",
            "the link has no queue and takes one packet when it is idle, so the host's egress scheduler decides what waits; for hosts with one outgoing link",
        ),
    ]),
    "queued",
    "where packets wait for the link",
);

const HOST_PRICING: Key = Key::usually(
    "pricing",
    OptionOr(&PRICING),
    "`pricing` at the top",
    "what a packet costs the link, for this host's packets",
);

const WORLD: Key = Key::or(
    "world",
    Choice(&[
        ("virtual", "in the simulator, which is never late"),
        ("live", "a stack of ackline with the runtime's driver, in real time"),
        ("kernel", "the kernel's TCP, in a network namespace"),
    ]),
    "virtual",
    "where `ackline emulate` runs it; `ackline sim` runs every host in the simulator",
);

const KERNEL_OF_HOST: Key =
    Key::maybe("kernel", Table(&KERNEL), "settings of the kernel's TCP, for hosts of the world `kernel`");

static HOST: Section = Section {
    options: Some(Scope::Host),
    ..Section::new(
        "[host]",
        "Settings of every host. A `[[node]]` overrides them.",
        &[EGRESS, HOST_PRICING, WORLD, KERNEL_OF_HOST],
    )
};

static KERNEL: Section = Section {
    called: "kernel",
    ..Section::new(
        "kernel = {...}",
        "Of a host of the world `kernel`: what `ackline emulate` sets in its namespace. `ackline sim` has ackline's TCP in its place. Of the settings of connections the kernel's ends take `cc` (of what they send), `mss` (88 to 32767), `nagle = \"off\"`, `send_buffer` and `recv_buffer`; others in an app's own `conn` or `accept` are refused for them, and in `[conn]` are for ackline's ends. The kernel's buffers count the memory of segments: `net.ipv4.tcp_wmem` and `tcp_rmem` give a host sizes of its own.",
        &[
            Key::usually("cc", Text, "the `cc` of what it sends", "the kernel's congestion control"),
            Key::maybe("sysctl", Paths, "other settings, as `\"net.ipv4.tcp_sack\" = 0`"),
        ],
    )
};

static PRICING: Section = Section {
    called: "pricing",
    ..Section::new(
        "pricing = {...}",
        "What a packet costs a link and a queue. Give one of the two keys.",
        &[
            Key::maybe(
                "overhead",
                Integer(0, 65_535, "bytes"),
                "the packet's IP bytes and this much more (Ethernet: 38)",
            ),
            Key::maybe(
                "ack",
                Integer(0, 65_535, "bytes"),
                "the sizes of papers that count windows and packets in one unit: a data packet costs its payload, everything else this much",
            ),
        ],
    )
};

static NODE: Section = Section {
    kinds: &[
        Kind {
            name: "host",
            summary: "Runs applications.",
            keys: &[
                Key::usually("egress", EGRESS.accepts, "`host.egress`", EGRESS.summary),
                Key::usually("pricing", HOST_PRICING.accepts, "`host.pricing`", HOST_PRICING.summary),
                Key::usually("world", WORLD.accepts, "`host.world`", WORLD.summary),
                Key::usually("kernel", KERNEL_OF_HOST.accepts, "`host.kernel`", KERNEL_OF_HOST.summary),
            ],
            options: Some(Scope::Host),
        },
        Kind { name: "router", summary: "Forwards packets along shortest paths.", keys: &[], options: None },
        Kind {
            name: "stis",
            summary: "A wireless path with stalls and route changes, as in the draft on DCLOR (draft-swami-tsvwg-tcp-dclor-00).",
            keys: STIS,
            options: None,
        },
    ],
    default_kind: Some("host"),
    ..Section::new(
        "[[node]]",
        "A host, a router or another node; with `count`, a group of them.",
        &[
            Key::need("name", Name, "its name, for links and apps"),
            Key::maybe(
                "count",
                Integer(1, MAX_NODES, "nodes"),
                "makes this many nodes, NAME-1, NAME-2 and so on; NAME stands for all of them",
            ),
        ],
    )
};

const STIS: &[Key] = &[
    Key::or("rate", Rate, "50kbit", "rate of each flow in each direction"),
    Key::or("buffer", Bytes(1, 1 << 40), "74KiB", "buffer that all flows share"),
    Key::or("delay", Time, "200ms", "delay of every packet"),
    Key::or(
        "flow",
        Choice(&[
            ("service", "packets between two hosts to and from one port of a service"),
            ("hosts", "packets between two hosts"),
            ("connection", "packets of one connection"),
        ]),
        "service",
        "what counts as a flow",
    ),
    Key::maybe("route", Table(&ROUTE), "route changes"),
    Key::usually(
        "stalls",
        Tables(&STALL),
        "0.5 % of 8 s, 5 % of 5 s",
        "kinds of stalls; their probabilities add up to at most 1",
    ),
    Key::or("stall_every", Period, "1s", "time between two draws that may begin a stall"),
    Key::or(
        "stall_stops_service",
        Switch,
        "true",
        "a stall also stops the flow's queues; otherwise it only holds back what arrives",
    ),
];

static ROUTE: Section = Section {
    called: "a route",
    ..Section::new(
        "route = {...}",
        "Of a node of kind `stis`: two routes, one longer than the other.",
        &[
            Key::or("change", Probability, "0.12", "probability that the route changes before a packet"),
            Key::or("adds", Time, "20ms", "delay that the longer route adds"),
        ],
    )
};

static STALL: Section = Section {
    called: "a stall",
    ..Section::new(
        "stalls = [{...}]",
        "Of a node of kind `stis`: one kind of stall.",
        &[
            Key::need("probability", Probability, "probability that a draw begins it"),
            Key::need("lasts", Period, "its length"),
        ],
    )
};

static LINK: Section = Section::new(
    "[[link]]",
    "Joins nodes: both directions with `between`, one with `from` and `to`. A group is joined one to one with a group of the same size, \
     or each member with a single node.",
    &[
        Key::maybe(
            "name",
            Name,
            "its name, for changes, measurements, sweeps and `--set`; the way back is called NAME.back",
        ),
        Key::maybe("between", List(&NameOf("node")), "the two nodes of a link with both directions"),
        Key::maybe("from", NameOf("node"), "where a link with one direction begins"),
        Key::maybe("to", NameOf("node"), "where it ends"),
        Key::maybe("back", Table(&BACK), "keys that differ on the way from the second node to the first"),
        Key::maybe(
            "path",
            Text,
            "a named path, with rate, delay, queue and impairments of both directions; other keys of the link override it: `dsl`, `cable`, `lte`, `5g`, `wifi`, `leo`, `geo`, `datacentre`; `lte:rate=12mbit,seed=3` has another mean rate and another walk, and with `way=up` the link leads from the user to the network",
        ),
        PATH[0],
        PATH[1],
        PATH[2],
        PATH[3],
        PATH[4],
        PATH[5],
    ],
);

/// One direction of a link.
const PATH: [Key; 6] = [
    Key::maybe("rate", Rate, "its rate; without `rate` and `trace`, packets take no time to serialise"),
    Key::maybe(
        "trace",
        Text,
        "instead of a rate: a file that lists the milliseconds at which the link can take 1,500 bytes (mahimahi's format), found from the scenario's folder",
    ),
    Key::or("delay", Time, "0s", "propagation delay"),
    Key::or("framing", Integer(0, 65_535, "bytes"), "0", "bytes that this link adds to each packet's price"),
    Key::usually("queue", Table(&QUEUE), "drop-tail, 1000 packets", "the queue before the link"),
    Key::maybe("impairments", Tables(&IMPAIRMENT), "what happens to packets on the link, in this order"),
];

static BACK: Section = Section {
    called: "the way back",
    ..Section::new(
        "back = {...}",
        "Of a link with `between`: the way back. What it leaves out is as on the way there.",
        &[
            Key::usually("rate", PATH[0].accepts, "as on the way there", "its rate"),
            Key::usually("trace", PATH[1].accepts, "as on the way there", "instead of a rate: a trace file"),
            Key::usually("delay", PATH[2].accepts, "as on the way there", PATH[2].summary),
            Key::usually("framing", PATH[3].accepts, "as on the way there", PATH[3].summary),
            Key::usually("queue", PATH[4].accepts, "as on the way there", PATH[4].summary),
            Key::usually("impairments", PATH[5].accepts, "as on the way there", PATH[5].summary),
        ],
    )
};

const ACTION: Key = Key::or(
    "action",
    Choice(&[
        ("mark", "marks an ECN-capable packet CE, drops any other"),
        ("drop", "drops it"),
        ("nodrop", "marks an ECN-capable packet CE, lets any other pass"),
    ]),
    "mark",
    "what happens to a packet that the queue picks",
);

const CODEL: [Key; 6] = [
    Key::or("target", Period, "5ms", "standing delay that is acceptable"),
    Key::or("interval", Period, "100ms", "time within which the delay must fall below `target`"),
    Key::or("mtu", Integer(0, 65_535, "bytes"), "1500", "no packet is picked while no more than this waits"),
    ACTION,
    Key::maybe(
        "ce_threshold",
        Period,
        "waits above this are marked too, whatever the interval says: for L4S",
    ),
    Key::or("ce_l4s_only", Switch, "false", "`ce_threshold` holds for packets with ECT(1) alone"),
];

/// The controller of PI2 and DualPI2.
const PI: [Key; 6] = [
    Key::or("target", Period, "15ms", "queueing delay that it aims at"),
    Key::or("update", Period, "15ms", "time between two updates of the probability"),
    Key::or("alpha", Number(0.0, 1_000.0), "0.15", "weight of the distance to `target`, per second"),
    Key::or("beta", Number(0.0, 1_000.0), "3", "weight of the delay's trend, per second"),
    Key::or(
        "coupling",
        Number(0.1, 100.0),
        "2",
        "how much more often L4S traffic is marked than the square root of classic traffic's probability",
    ),
    Key::or(
        "arithmetic",
        Choice(&[
            ("real", "real numbers, marks at even distances (RFC 9332)"),
            ("linux", "the integers of Linux's `sch_dualpi2`, marks at random"),
        ]),
        "real",
        "how the controller calculates",
    ),
];

static QUEUE: Section = Section {
    kinds: &[
        Kind { name: "drop-tail", summary: "Drops what finds the buffer full.", keys: &[], options: None },
        Kind {
            name: "step",
            summary: "Picks every packet that finds more than a threshold (DCTCP's marking, RFC 8257 section 3.1).",
            keys: &[
                Key::need("threshold", Bytes(0, 1 << 40), "bytes that may wait before packets are picked"),
                ACTION,
            ],
            options: None,
        },
        Kind {
            name: "ramp",
            summary: "Picks packets with a probability that rises with the queue from 0 at `min` to 1 at `max`.",
            keys: &[
                Key::need("min", Bytes(0, 1 << 40), "queue below which nothing is picked"),
                Key::need(
                    "max",
                    Bytes(0, 1 << 40),
                    "queue from which on everything is picked; more than `min`",
                ),
                ACTION,
            ],
            options: None,
        },
        Kind {
            name: "red",
            summary: "Random Early Detection on the averaged queue, as Linux's tc-red.",
            keys: &[
                Key::need("min", Bytes(1, 1 << 40), "average queue below which nothing is picked"),
                Key::need(
                    "max",
                    Bytes(1, 1 << 40),
                    "average queue from which on everything is picked; more than `min`",
                ),
                Key::or("max_p", Probability, "0.02", "probability just below `max`"),
                Key::or("wlog", Integer(0, 31, ""), "9", "the average's weight is 2^-wlog"),
                Key::maybe(
                    "burst",
                    Integer(1, 1_000_000, "packets"),
                    "instead of `wlog`: the weight that lets a burst of this length pass",
                ),
                Key::or(
                    "avpkt",
                    Integer(1, 65_535, "bytes"),
                    "1000",
                    "size of an average packet: how fast the average decays while the queue is empty",
                ),
                Key::or(
                    "adaptive",
                    Switch,
                    "false",
                    "`max_p` adapts towards an average queue between `min` and `max`",
                ),
                ACTION,
            ],
            options: None,
        },
        Kind { name: "codel", summary: "CoDel (RFC 8289).", keys: &CODEL, options: None },
        Kind {
            name: "fq-codel",
            summary: "FQ-CoDel (RFC 8290): a CoDel queue for each flow, in turn; new flows go first.",
            keys: &[
                CODEL[0],
                CODEL[1],
                CODEL[2],
                CODEL[3],
                CODEL[4],
                CODEL[5],
                Key::or("quantum", Integer(1, 65_535, "bytes"), "1514", "what a flow may send in its turn"),
                Key::or("flows", Integer(1, 65_536, ""), "1024", "queues over which flows are spread"),
            ],
            options: None,
        },
        Kind {
            name: "pie",
            summary: "PIE (RFC 8033).",
            keys: &[
                Key::or("target", Period, "15ms", "queueing delay that it aims at"),
                Key::or("update", Period, "15ms", "time between two updates of the probability"),
                Key::or(
                    "alpha",
                    Number(0.0, 1_000.0),
                    "0.125",
                    "weight of the distance to `target`, per second",
                ),
                Key::or("beta", Number(0.0, 1_000.0), "1.25", "weight of the delay's trend, per second"),
                Key::or("burst", Time, "150ms", "length of a burst that passes undisturbed"),
                ACTION,
            ],
            options: None,
        },
        Kind {
            name: "pi2",
            summary: "PI2: one queue; classic packets are picked with the square of the probability that marks L4S traffic.",
            keys: &PI,
            options: None,
        },
        Kind {
            name: "dualpi2",
            summary: "DualPI2 (RFC 9332): a shallow queue for L4S traffic, ECT(1) and CE, coupled with one for everything else.",
            keys: &[
                PI[0],
                PI[1],
                PI[2],
                PI[3],
                PI[4],
                PI[5],
                Key::or("mark_from", Time, "800us", "wait up to which the L4S queue itself marks nothing"),
                Key::or(
                    "mark_range",
                    Time,
                    "400us",
                    "from `mark_from`, over which its probability rises to 1",
                ),
                Key::or(
                    "mark_packets",
                    Integer(0, 1_000, "packets"),
                    "1",
                    "it marks nothing of its own while it holds no more than these",
                ),
                Key::maybe(
                    "classic_share",
                    Integer(1, 99, "%"),
                    "bytes for the classic queue if both wait; 10 without `shift`",
                ),
                Key::maybe(
                    "shift",
                    Time,
                    "instead of `classic_share`: the older packet leaves, where L4S counts as older by this",
                ),
            ],
            options: None,
        },
        Kind {
            name: "curvy-red",
            summary: "Curvy RED (RFC 9332, appendix B): DualPI2's queues, coupled by the averaged delay of the classic one.",
            keys: &[
                Key::or("min", Time, "500us", "averaged delay below which nothing is picked"),
                Key::or(
                    "classic_range",
                    Period,
                    "500ms",
                    "from `min`, over which the root of the classic probability rises to 1",
                ),
                Key::or(
                    "l4s_range",
                    Period,
                    "250ms",
                    "from `min`, over which the coupled probability of L4S traffic rises to 1",
                ),
                Key::or("wlog", Integer(0, 31, ""), "5", "the average's weight is 2^-wlog"),
                Key::or("step", Time, "1ms", "wait above which L4S packets are marked"),
                Key::or("shift", Time, "50ms", "the older packet leaves, where L4S counts as older by this"),
            ],
            options: None,
        },
    ],
    ..Section::new(
        "queue = {...}",
        "The queue before a link.",
        &[Key::or("limit", Limit, "1000p", "size of the buffer")],
    )
};

static IMPAIRMENT: Section = Section {
    kinds: &[
        Kind {
            name: "loss",
            summary: "Loses packets at random, each independently.",
            keys: &[Key::need("probability", Probability, "probability for each packet")],
            options: None,
        },
        Kind {
            name: "gilbert-elliott",
            summary: "Loses packets in bursts: a good and a bad state, each with a loss of its own.",
            keys: &[
                Key::need("to_bad", Probability, "probability to turn bad before a packet"),
                Key::need("to_good", Probability, "probability to turn good before a packet"),
                Key::or("good", Probability, "0", "loss in the good state"),
                Key::or("bad", Probability, "1", "loss in the bad state"),
            ],
            options: None,
        },
        Kind {
            name: "drop",
            summary: "Drops chosen packets: `packets`, `data`, or all from `from` until `until`.",
            keys: &[
                Key::maybe(
                    "packets",
                    List(&Integer(1, MAX_COUNT, "")),
                    "places among all packets of the link, counted from 1",
                ),
                Key::maybe(
                    "data",
                    List(&Integer(1, MAX_COUNT, "")),
                    "places among packets with data, counted from 1",
                ),
            ],
            options: None,
        },
        Kind {
            name: "duplicate",
            summary: "Delivers packets twice.",
            keys: &[Key::need("probability", Probability, "probability for each packet")],
            options: None,
        },
        Kind {
            name: "corrupt",
            summary: "Flips bits.",
            keys: &[
                Key::need("probability", Probability, "probability for each packet"),
                Key::or("bits", Integer(1, 1_000, "bits"), "1", "most bits that are flipped in one packet"),
            ],
            options: None,
        },
        Kind {
            name: "reorder",
            summary: "Delays packets, so that those behind overtake them.",
            keys: &[
                Key::need("probability", Probability, "probability for each packet"),
                Key::need("by", Period, "the delay"),
            ],
            options: None,
        },
        Kind {
            name: "batch",
            summary: "Holds packets and releases them together, as links do that send in aggregates.",
            keys: &[Key::need("every", Period, "from one release to the next")],
            options: None,
        },
        Kind {
            name: "policer",
            summary: "Drops what exceeds a rate after a burst: a token bucket without a queue.",
            keys: &[
                Key::need("rate", Rate, "rate at which the bucket fills, in IP bytes"),
                Key::need("bucket", Bytes(1_500, 1 << 40), "bytes that may come at once"),
            ],
            options: None,
        },
        Kind {
            name: "jitter",
            summary: "Delays each packet by a random time, uniform from 0 to `limit`.",
            keys: &[
                Key::need("limit", Period, "the longest delay"),
                Key::or("reorders", Switch, "false", "packets may overtake each other"),
            ],
            options: None,
        },
    ],
    ..Section::new(
        "impairments = [{...}]",
        "What happens to packets on a link.",
        &[
            Key::usually("from", Time, "the beginning", "when it begins"),
            Key::usually("until", Time, "the end", "when it ends"),
        ],
    )
};

const READER_KEY: Key =
    Key::or("reader", WordOr("instant", &READER), "instant", "how fast the receiving application reads");
const SIZE: Key = Key::maybe("size", Bytes(1, MAX_BYTES), "bytes to send; without it, until the run ends");
const PAUSE: Key = Key::or("wait", Drawn(&Time), "0s", "pause after each");

static APP: Section = Section {
    kinds: &[
        Kind {
            name: "bulk",
            summary: "Sends as fast as TCP takes it.",
            keys: &[
                SIZE,
                Key::maybe("duration", Period, "instead of a size: sends for this time"),
                Key::or(
                    "transfers",
                    Integer(1, MAX_COUNT, ""),
                    "1",
                    "transfers, one after the other, each on a connection of its own",
                ),
                PAUSE,
                READER_KEY,
            ],
            options: None,
        },
        Kind {
            name: "request",
            summary: "Sends requests; each is answered by a response, and the next one follows.",
            keys: &[
                Key::need("request", Bytes(1, 1 << 40), "size of a request"),
                Key::need("response", Bytes(1, 1 << 40), "size of a response"),
                Key::or("think", Drawn(&Time), "0s", "time from a response to the next request"),
                Key::maybe(
                    "requests",
                    Integer(1, MAX_COUNT, ""),
                    "number of requests; without it, until the run ends",
                ),
                Key::or("reconnect", Switch, "false", "a new connection for each request"),
            ],
            options: None,
        },
        Kind {
            name: "download",
            summary: "Fetches files, each on a connection of its own. Data flows from `to` to `from`.",
            keys: &[
                Key::need("size", Drawn(&Bytes(1, MAX_BYTES)), "size of a file"),
                PAUSE,
                Key::maybe(
                    "files",
                    Integer(1, MAX_COUNT, ""),
                    "number of files; without it, until the run ends",
                ),
            ],
            options: None,
        },
        Kind {
            name: "writes",
            summary: "Writes at intervals, on one connection.",
            keys: &[
                Key::need("size", Drawn(&Bytes(1, MAX_BYTES)), "size of a write"),
                Key::need("interval", Drawn(&Period), "time between two writes"),
                Key::maybe(
                    "writes",
                    Integer(1, MAX_COUNT, ""),
                    "number of writes; without it, until the run ends",
                ),
                READER_KEY,
            ],
            options: None,
        },
        Kind {
            name: "on-off",
            summary: "Sends as fast as TCP takes it, then pauses, again and again, on one connection.",
            keys: &[
                Key::need("on", Drawn(&Period), "time of sending"),
                Key::need("off", Drawn(&Period), "time of pausing"),
                Key::maybe(
                    "rounds",
                    Integer(1, MAX_COUNT, ""),
                    "number of rounds; without it, until the run ends",
                ),
                READER_KEY,
            ],
            options: None,
        },
        Kind {
            name: "bsd-writer",
            summary: "Writes as a process on a BSD host does: the kernel copies in chunks and wakes a blocked writer.",
            keys: &[
                SIZE,
                Key::or(
                    "copy",
                    Choice(&[
                        ("whole", "when a whole chunk of `unit` bytes fits into the send buffer"),
                        ("partial", "when `unit` bytes are free or the buffer is empty"),
                    ]),
                    "whole",
                    "when a blocked writer may copy again",
                ),
                Key::usually("unit", Bytes(1, 1 << 30), "4096 (`whole`), 512 (`partial`)", "see `copy`"),
                COSTS[0],
                COSTS[1],
                READER_KEY,
            ],
            options: None,
        },
    ],
    ..Section::new(
        "[[app]]",
        "An application: one connection from `from` to `to` and what both ends do, or several of the same.",
        &[
            Key::usually("name", Name, "app-1, app-2, ...", "its name, for results, sweeps and `--set`"),
            Key::need(
                "from",
                NameOf("node"),
                "the host that opens the connection; a group: one flow for each member",
            ),
            Key::need("to", NameOf("node"), "the host that accepts it; a group: one flow for each member"),
            Key::or("start", Time, "0s", "when it begins"),
            Key::or("count", Integer(1, MAX_FLOWS, "flows"), "1", "this many flows for each pair of hosts"),
            Key::or("stagger", Time, "0s", "each flow begins this much later than the one before"),
            Key::or("jitter", Time, "0s", "a random time up to this is added to each start"),
            Key::maybe("conn", Table(&CONN), "settings of the connection, over those of `[conn]`"),
            Key::maybe("accept", Table(&CONN), "settings of the accepting end, over those of `conn`"),
        ],
    )
};

/// What a host's work costs in time.
const COSTS: [Key; 2] = [
    Key::or("wake_up", Time, "0s", "time to wake a process that waits"),
    Key::or("copy_kb", Time, "0s", "time to copy 1,024 bytes"),
];

static READER: Section = Section {
    called: "a reader",
    ..Section::new(
        "reader = {...}",
        "A receiving application that does not read at once: a slow one (`bytes` and `interval`), or one whose host needs time (`wake_up`, \
         `copy_kb`).",
        &[
            Key::maybe("bytes", Bytes(1, 1 << 30), "bytes of one read"),
            Key::maybe("interval", Period, "time between two reads"),
            COSTS[0],
            COSTS[1],
        ],
    )
};

pub(crate) static DRAW: Section = Section {
    called: "a random value",
    ..Section::new(
        "Random values",
        "A random value, from the run's seed. Give one of the first three keys.",
        &[
            Key::maybe("uniform", List(&Anything), "[smallest, largest], uniform between them"),
            Key::maybe("exponential", Anything, "mean of an exponential distribution"),
            Key::maybe("pareto", Anything, "smallest value of a Pareto distribution"),
            Key::maybe(
                "shape",
                Number(0.05, 100.0),
                "its shape, needed with `pareto`: the smaller, the heavier the tail; the mean is infinite up to 1",
            ),
        ],
    )
};

static CHANGE: Section = Section::new(
    "[[change]]",
    "Changes links at a time: their rate, their delay, their state, or several of these.",
    &[
        Key::need("at", Time, "when"),
        Key::need(
            "link",
            OneOrMore(&NameOf("link")),
            "which links; NAME is the way there, NAME.back the way back",
        ),
        Key::maybe("rate", Rate, "the new rate"),
        Key::maybe("delay", Time, "the new delay"),
        Key::maybe(
            "state",
            Choice(&[
                ("stall", "the link sends nothing and its queue fills; routes stay"),
                ("resume", "ends a stall"),
                ("down", "as `stall`, and routes avoid the link"),
                ("up", "ends `down`"),
            ]),
            "the new state",
        ),
        Key::maybe("for", Period, "ends `stall` or `down` after this time"),
    ],
);

static MEASURE: Section = Section::new(
    "[measure]",
    "What is measured, and when.",
    &[
        Key::or("from", Time, "0s", "when the window begins that all results are about"),
        Key::usually("until", Time, "`duration`", "when it ends"),
        Key::usually(
            "interval",
            Period,
            "`duration` / 1000, in whole ms",
            "time between two samples of windows, round-trip times and queues; at most 100,000 of them",
        ),
        Key::maybe(
            "bins",
            Period,
            "also counts each flow's received bytes in bins of this length; at most 10,000 of them",
        ),
        Key::usually(
            "queues",
            OneOrMore(&NameOf("link")),
            "links with a name, or else with a rate",
            "links whose queues are measured",
        ),
        Key::or("flows", Integer(0, MAX_FLOWS, "flows"), "200", "the first flows, whose senders are sampled"),
        Key::or("series", Switch, "false", "keeps time series, for plots"),
        Key::or("cwnd", Switch, "false", "the summary shows the congestion window with which each flow ends"),
        Key::or("transfers", Switch, "false", "reports each transfer or download by itself"),
        Key::maybe(
            "trace",
            Integer(1, 10_000_000, "rows"),
            "keeps a record of the first packets on the measured links",
        ),
        Key::maybe(
            "drops",
            Integer(1, 10_000_000, "rows"),
            "keeps a record of the first packets dropped there",
        ),
    ],
);

/// A range of a sweep.
static RANGE: Section = Section {
    called: "a range",
    ..Section::new(
        "Ranges",
        "Values of a sweep from one to another. Both ends have the same unit.",
        &[
            Key::need("from", Anything, "the first value"),
            Key::need("to", Anything, "the last value"),
            Key::need("steps", Integer(2, 10_000, "values"), "number of values, both ends included"),
            Key::or(
                "scale",
                Choice(&[("linear", "equal differences"), ("log", "equal ratios")]),
                "linear",
                "how the values are spaced",
            ),
        ],
    )
};

static CASE: Section = Section::new(
    "[[case]]",
    "One point of an axis called `case`.",
    &[
        Key::need("name", Text, "what it is called in results"),
        Key::maybe(
            "set",
            Paths,
            "the keys it sets, as in `[sweep]`, each with one value; behind a path in quotes a table replaces what was there",
        ),
    ],
);

/// What is swept or set: any keys.
pub(crate) static FREE: Section = Section::new("", "", &[]);

/// Every table, in the order in which the reference has them.
pub static SECTIONS: &[&Section] = &[
    &TOP,
    &CONN,
    &HOST,
    &PRICING,
    &KERNEL,
    &NODE,
    &ROUTE,
    &STALL,
    &LINK,
    &BACK,
    &QUEUE,
    &IMPAIRMENT,
    &APP,
    &READER,
    &DRAW,
    &CHANGE,
    &MEASURE,
    &RANGE,
    &CASE,
];

/// What may stand in places without a key of their own: the whole file, and a range.
pub(crate) static ROOT: Accepts = Table(&TOP);
pub(crate) static RANGES: Accepts = Table(&RANGE);
