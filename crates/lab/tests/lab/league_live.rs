//! The league in real time, on stages that need no network: what it makes of runs, valid and void.

use ackline_lab::RunError;
use ackline_lab::league::{
    LiveEvaluation, LiveOptions, LiveResult, Machine, Matrix, Options, Sender, evaluate_live, live_matrix,
    write_live_page,
};
use ackline_lab::stage::{
    EndReport, OutsideEnd, OutsideHost, Stage, StageError, Stages, Validity, Virtual, World,
};
use ackline_netsim::Sim;
use ackline_netsim::record::ConnRecord;
use ackline_registry::Registry;
use ackline_tcp_core::{Duration, Instant};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// In virtual time, with the lateness of a machine: of its first runs, and of the others.
#[derive(Debug, Default)]
struct Late {
    runs: AtomicU32,
    first: (u32, f64),
    rest: f64,
}

#[derive(Debug)]
struct LateRun(f64);

impl Stages for Late {
    fn name(&self) -> &'static str {
        "late "
    }

    fn stage(&self) -> Result<Box<dyn Stage>, StageError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(LateRun(if run < self.first.0 { self.first.1 } else { self.rest })))
    }

    fn is_parallel(&self) -> bool {
        false
    }
}

impl Stage for LateRun {
    fn is_outside(&self, _: World) -> bool {
        false
    }

    fn begin(
        &mut self,
        sim: &mut Sim,
        hosts: Vec<OutsideHost>,
        ends: Vec<OutsideEnd>,
        interval: Duration,
    ) -> Result<(), StageError> {
        Virtual.begin(sim, hosts, ends, interval)
    }

    fn run_until(&mut self, sim: &mut Sim, until: Instant) -> Result<(), StageError> {
        Virtual.run_until(sim, until)
    }

    fn report(&self, end: usize) -> EndReport {
        Virtual.report(end)
    }

    fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>) {
        (vec![], Some(Validity { late_p99_us: self.0, ..Validity::default() }))
    }
}

fn cells(names: &[&str]) -> Matrix {
    live_matrix(true).only(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn evaluated(stages: &Late, matrix: Matrix, names: &[&str], out: &Path) -> Result<LiveEvaluation, RunError> {
    let controls = ["reno", "cubic", "bbr", "lp"].map(str::to_owned).to_vec();
    let machine = Machine { kernel: "6.1".to_owned(), controls, ..Machine::default() };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let senders = Sender::all(&names, &machine, &Registry::default()).unwrap();
    let options = Options { out: Some(out.to_owned()), ..Options::default() };
    let live = LiveOptions { runs: &options, stages, machine: &machine, tell: |_| {} };
    evaluate_live(matrix, senders, &Registry::default(), &live)
}

#[test]
fn what_runs_as_simulated_agrees_and_its_page_comes_of_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["cubic", "linux:bbr", "linux:lp"];
    let stages = Late::default();
    let run = || evaluated(&stages, cells(&["S-20-40-1", "H-cubic-1"]), &names, folder.path()).unwrap();
    let live = run();
    assert_eq!((live.counts(), live.resumed, live.failures()), ((7, 0), 0, vec![]));
    let result = live.result();
    let agreements: Vec<_> =
        result.senders.iter().flat_map(|sender| &sender.cells).flat_map(|cell| &cell.agreements).collect();
    // Three numbers in two cells of two senders; the third control has no twin.
    assert_eq!(agreements.len(), 12);
    assert!(agreements.iter().all(|agreement| agreement.agrees && agreement.live == agreement.twin));
    assert!(
        live.to_text().contains("no twin") && live.to_text().lines().all(|line| line.chars().count() <= 100)
    );

    write_live_page(&live, folder.path()).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join("league").join(name)).unwrap();
    let page = read("live.md");
    assert!(page.contains("In 4 of 4 places") && page.contains("0 of 7 runs are void"), "{page}");
    assert!(page.contains("Linux's `bbr` is version 1"), "{page}");

    // A second evaluation runs nothing, and the data alone give the same.
    let again = run();
    assert_eq!((again.resumed, again.to_json()), (7, live.to_json()));
    let matrix = live_matrix(true);
    let data = LiveResult::read(&folder.path().join("league/live.json"), &matrix).unwrap();
    write_live_page(&LiveEvaluation::of_result(matrix, &data), &folder.path().join("again")).unwrap();
    let again = |name: &str| fs::read_to_string(folder.path().join("again/league").join(name)).unwrap();
    assert_eq!((again("live.md"), again("live.json")), (page, read("live.json")));

    let other = LiveResult::read(&folder.path().join("league/live.json"), &live_matrix(false));
    assert!(other.unwrap_err().to_string().contains("do not belong in one table"));
}

#[test]
fn a_void_run_is_tried_three_times_shown_as_void_and_run_again_by_the_next_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Late { rest: 501.0, ..Late::default() };
    let run = |stages: &Late| evaluated(stages, cells(&["S-20-40-1"]), &["reno"], folder.path()).unwrap();
    let void = run(&slow);
    assert_eq!((void.counts(), slow.runs.load(Ordering::Relaxed)), ((1, 1), 3));
    assert_eq!(void.failures(), ["1 of 1 runs are void: the machine did not keep up"]);
    assert!(void.result().senders[0].cells[0].agreements.is_empty());
    assert!(void.to_text().contains("void: reno in S-20-40-1, seed 1"), "{}", void.to_text());

    let quicker = Late { first: (2, 600.0), rest: 500.0, ..Late::default() };
    let valid = run(&quicker);
    assert_eq!((valid.counts(), valid.resumed, quicker.runs.load(Ordering::Relaxed)), ((1, 0), 0, 3));
    assert_eq!(valid.result().senders[0].cells[0].live[&1].before, 2);
}

/// docs/league/live.md is what docs/league/live.json gives.
#[test]
fn the_page_is_what_its_data_give() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let file = docs.join("league/live.json");
    if !file.is_file() {
        return;
    }
    let read = |quick| LiveResult::read(&file, &live_matrix(quick)).map(|data| (quick, data));
    let (quick, data) = read(true).or_else(|_| read(false)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let written =
        write_live_page(&LiveEvaluation::of_result(live_matrix(quick), &data), folder.path()).unwrap();
    for file in written {
        let name = file.strip_prefix(folder.path()).unwrap();
        let same = fs::read(docs.join(name)).unwrap() == fs::read(&file).unwrap();
        assert!(same, "docs/{} is not what docs/league/live.json gives", name.display());
    }
}
