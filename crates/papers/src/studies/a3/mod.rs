//! R. K. C. Chang, H. Y. Chan and A. W. Yeung, "Deadlock-Free TCP Over High-Speed Internet": the
//! data set.
//!
//! The scenarios are in `scenarios/a3/`; each cell of a table is one run of one of them. Nothing in
//! them is random.

mod conditions;
mod congestion;
mod daily;
mod equations;
mod loopback;
mod numbers;
mod regions;
mod runs;
mod sensitivity;
mod throughput;

use crate::request::Knob;
use crate::study::{Paper, Part, Study, no_jobs};

/// The study.
#[derive(Clone, Copy, Debug)]
pub(super) struct A3;

const PAPER: Paper = Paper {
    name: "a3",
    stem: "a3-csa3",
    title: "Deadlock-Free TCP Over High-Speed Internet",
    authors: "R. K. C. Chang, H. Y. Chan, A. W. Yeung",
    year: None,
};

const PARTS: &[Part] = &[
    Part {
        name: "15.1",
        what: "throughput over the loopback of SunOS, 64 pairs of buffers",
        plan: |_| loopback::plan(),
        evaluate: |_, outputs| loopback::evaluate(outputs),
    },
    Part {
        name: "15.2",
        what: "throughput under delayed ACKs, A3, and A3 with fewer samplings",
        plan: |_| throughput::plan(),
        evaluate: |_, outputs| throughput::evaluate(outputs),
    },
    Part {
        name: "equations",
        what: "when buffers lock: equations 1 and 2; nothing is simulated",
        plan: no_jobs,
        evaluate: |_, _| Ok(conditions::evaluate()),
    },
    Part {
        name: "15.3",
        what: "what becomes of A3 under congestion, by buffers",
        plan: |_| regions::plan(),
        evaluate: |_, outputs| regions::evaluate(outputs),
    },
    Part {
        name: "figures",
        what: "figures 15.4 to 15.9: A3 and CSA3 under congestion",
        plan: |_| congestion::plan(),
        evaluate: |_, outputs| congestion::evaluate(outputs),
    },
    Part {
        name: "sensitivity",
        what: "Table 15.2 with other delays, rates, timers and copy rules",
        plan: sensitivity::plan,
        evaluate: sensitivity::evaluate,
    },
    Part {
        name: "daily",
        what: "A3 beside the ACK policies of today: goodput, ACKs, spurious retransmissions, stalls",
        plan: daily::plan,
        evaluate: daily::evaluate,
    },
];

impl Study for A3 {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick]
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn pins(&self) -> &str {
        include_str!("pins.toml")
    }
}
