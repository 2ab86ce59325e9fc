//! Y. Swami, K. Le, "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts":
//! the data set.
//!
//! | file | holds |
//! |---|---|
//! | `paper.rs` | what the draft prints |
//! | `responses.rs` | who is compared, and what each one's hosts are |
//! | `mix.rs` | the traffic of Table 2: jobs, and what is kept of a run |
//! | `ideal.rs`, `floor.rs` | what the path alone costs, by a model and by the stack |
//! | `runs.rs` | the runs, each row of Table 2 alone and all at once, and what they measured |
//! | `times.rs`, `efficiency.rs` | Tables 3 to 5, and Table 6, each row alone |
//! | `orders.rs` | the orders that must come out |
//! | `together.rs` | all rows at once |
//! | `settings.rs` | DCLOR's own settings |
//! | `assumptions.rs` | the same orders with the draft's gaps filled in other ways |
//! | `further/` | experiments that the draft does not have |

mod assumptions;
mod efficiency;
mod floor;
mod further;
mod ideal;
mod mix;
mod orders;
mod paper;
mod responses;
mod runs;
mod settings;
mod times;
mod together;

use crate::request::Knob;
use crate::study::{Paper, Part, Study};
use further::{all_lost, competing, disorder, exits, subnet};

/// The study.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dclor;

const PAPER: Paper = Paper {
    name: "dclor",
    stem: "dclor",
    title: "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts (draft-swami-tsvwg-tcp-dclor-00)",
    authors: "Y. Swami, K. Le",
    year: Some(2002),
};

const PARTS: &[Part] = &[
    Part {
        name: "floor",
        what: "calibration: downloads that never time out and lose nothing",
        plan: floor::plan,
        evaluate: |_, outputs| floor::evaluate(outputs),
    },
    Part {
        name: "3",
        what: "Table 3: download time of 5 KB files",
        plan: |request| times::plan(request, 0),
        evaluate: |request, outputs| times::evaluate(request, outputs, 0),
    },
    Part {
        name: "4",
        what: "Table 4: download time of 10 KB files",
        plan: |request| times::plan(request, 1),
        evaluate: |request, outputs| times::evaluate(request, outputs, 1),
    },
    Part {
        name: "5",
        what: "Table 5: download time of 100 KB files",
        plan: |request| times::plan(request, 2),
        evaluate: |request, outputs| times::evaluate(request, outputs, 2),
    },
    Part {
        name: "6",
        what: "Table 6: spectral efficiency",
        plan: efficiency::plan,
        evaluate: efficiency::evaluate,
    },
    Part {
        name: "exits",
        what: "section 4, steps 8 to 10: windows after a stall and after a loss",
        plan: exits::plan,
        evaluate: exits::evaluate,
    },
    Part {
        name: "together",
        what: "Tables 3 to 6 with all rows of Table 2 on the path at once",
        plan: together::plan,
        evaluate: together::evaluate,
    },
    Part {
        name: "settings",
        what: "DCLOR's own settings, with the four combinations that decide",
        plan: settings::plan,
        evaluate: settings::evaluate,
    },
    Part {
        name: "assumptions",
        what: "the orders of Tables 3 to 6 where the draft's gaps are filled otherwise",
        plan: assumptions::plan,
        evaluate: assumptions::evaluate,
    },
    Part {
        name: "competing",
        what: "competing flows at a drop-tail router while one stalls",
        plan: competing::plan,
        evaluate: competing::evaluate,
    },
    Part {
        name: "subnet",
        what: "a path whose capacity changes by ten, up and down, while it stalls",
        plan: subnet::plan,
        evaluate: subnet::evaluate,
    },
    Part {
        name: "all-lost",
        what: "a flight of which everything is lost",
        plan: all_lost::plan,
        evaluate: all_lost::evaluate,
    },
    Part {
        name: "disorder",
        what: "loss and reordering in what a stall held back",
        plan: disorder::plan,
        evaluate: disorder::evaluate,
    },
];

impl Study for Dclor {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick, Knob::Seeds, Knob::Scale]
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn reading(&self) -> &[&str] {
        &["dclor/ideal.rs", "dclor/further/mod.rs"]
    }

    fn pins(&self) -> &str {
        include_str!("pins.toml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::reproduce;
    use crate::options::Options;

    /// A thousandth of the traffic tells nothing about responses, but all of it must end, on a page
    /// without mistakes.
    #[test]
    fn a_thousandth_of_the_traffic_ends() {
        let options = Options {
            parts: vec!["4".to_owned(), "5".to_owned()],
            seeds: Some(1),
            scale: Some(0.001),
            ..Options::default()
        };
        let done = reproduce(&[&Dclor], &options).unwrap();
        let found = &done[0].reproduction;
        let ended: Vec<&str> =
            found.checks.iter().filter(|check| check.ok).map(|check| check.id.as_str()).collect();
        assert_eq!(
            ended,
            ["unfinished/10K", "unfinished/100K"],
            "nothing else can be judged by a few downloads"
        );
        assert_eq!(found.checks.len(), 2);
        let ids: Vec<&str> = found.tables.iter().map(|table| table.id.as_str()).collect();
        assert_eq!(ids, ["4", "all-10K", "tail-10K", "5", "all-100K"]);
        assert_eq!(found.figures.len(), 2);
    }
}
