//! The league: the matrix is one of scenarios, results are the same however they came about, and a
//! control that misbehaves ends its own cells alone.

use ackline_lab::league::{
    Contestant, Evaluation, LeagueResult, Matrix, Options, evaluate, merge, write_pages,
};
use ackline_registry::Registry;
use ackline_tcp_core::policy::NewCongestionControl;
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Reaction, Restart, SendDecision, Undo,
};
use ackline_tcp_core::policy::spec::Entry;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A cell of a few thousand packets.
const SMALL: &str = "I-iot";

fn small(registry: &Registry, options: &Options) -> Evaluation {
    let matrix = Matrix::whole().only(&[SMALL.to_owned()]).unwrap();
    evaluate(matrix, Contestant::named(&[], registry).unwrap(), registry, options).unwrap()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = [folder.to_owned(), folder.join("league")];
    let entries = entries.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

#[test]
fn every_cell_is_a_scenario_for_every_control() {
    let registry = Registry::default();
    let contestants = Contestant::all(&registry).unwrap();
    assert!(contestants.len() >= 14 && contestants.iter().any(|it| it.scope == "scavenger"));
    let paces: Vec<&str> = contestants.iter().filter(|it| it.paces).map(|it| it.spec.as_str()).collect();
    assert_eq!(paces, ["cubic:pacing=on", "bbr", "copa", "acwap", "prague"]);
    for matrix in [Matrix::whole(), Matrix::quick()] {
        for cell in &matrix.cells {
            for contestant in contestants.iter().filter(|contestant| cell.is_for(contestant)) {
                let scenario = cell.scenario(contestant, &registry);
                assert_eq!(scenario.unwrap_or_else(|error| panic!("{error}")).runs(), 1, "{}", cell.id);
            }
        }
    }
    let costs: f64 = Matrix::whole().cells.iter().map(|cell| cell.packets * f64::from(cell.seeds)).sum();
    assert!((100.0..200.0).contains(&costs), "{costs} million packets a control");
    assert_ne!(Matrix::whole().hash(), Matrix::quick().hash());
    let error = Matrix::whole().only(&["S-20-40-2".to_owned()]).unwrap_err();
    assert!(error.contains("did you mean \"S-20-40-1\"?"), "{error}");
}

#[test]
fn the_same_bytes_come_of_threads_of_parts_and_of_the_data() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let one = small(&registry, &Options { threads: 1, out: Some(at("one")), ..Options::default() });
    write_pages(&one, &at("one-pages")).unwrap();
    let expected = files(&at("one-pages"));
    assert!(expected.contains_key("league.md") && expected.contains_key("cubic.md"), "{:?}", expected.keys());

    let two = small(&registry, &Options { threads: 2, ..Options::default() });
    write_pages(&two, &at("two")).unwrap();
    assert_eq!(files(&at("two")), expected);

    let again = small(&registry, &Options { out: Some(at("one")), ..Options::default() });
    assert_eq!((again.resumed, again.missing), (9, 0));
    assert_eq!(again.to_json(), one.to_json());

    for (name, points) in [("left", "..4"), ("right", "4..")] {
        let points = Some(points.parse().unwrap());
        small(&registry, &Options { out: Some(at(name)), points, ..Options::default() });
    }
    assert_eq!(merge(&[at("left"), at("right")], &at("whole")).unwrap(), 9);
    let whole = small(&registry, &Options { out: Some(at("whole")), ..Options::default() });
    assert_eq!((whole.resumed, whole.to_json()), (9, one.to_json()));

    let matrix = Matrix::whole().only(&[SMALL.to_owned()]).unwrap();
    let data = LeagueResult::read(&at("one-pages").join("league/league.json"), &matrix).unwrap();
    write_pages(&Evaluation::of_result(matrix, &data), &at("data")).unwrap();
    assert_eq!(files(&at("data")), expected);

    let other = LeagueResult::read(&at("one-pages").join("league/league.json"), &Matrix::quick());
    assert!(other.unwrap_err().to_string().contains("do not belong in one table"));
}

/// Sources and seeds decide what counts as finished.
#[test]
fn runs_of_other_sources_are_run_again() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { out: Some(folder.path().to_owned()), seeds: Some(1), ..Options::default() };
    assert_eq!(small(&registry, &options).resumed, 0);
    assert_eq!(small(&registry, &options).resumed, 3);
    let other = Options { engine: "other".to_owned(), ..options };
    assert_eq!(small(&registry, &other).resumed, 0);
}

/// Panics at its first ACK.
#[derive(Debug)]
struct Broken(SendDecision);

impl CongestionControl for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn decision(&self) -> SendDecision {
        self.0
    }

    fn on_ack(&mut self, _: &FlowView, _: &AckSample) -> Reaction {
        panic!("no plan for ACKs")
    }

    fn on_congestion(&mut self, _: &FlowView, _: &CongestionEvent) {}

    fn on_restart(&mut self, _: &FlowView, _: &Restart) {}

    fn checkpoint(&mut self, _: &FlowView) {}

    fn undo(&mut self, _: &FlowView, _: &Undo) {}
}

#[test]
fn a_control_that_panics_fails_its_cells_and_the_others_go_on() {
    let broken: Entry<NewCongestionControl> = Entry::new("broken", |_| {
        Ok(Arc::new(|init: &CcInit| {
            Box::new(Broken(SendDecision::window(init.initial_window, init.ssthresh)))
        }))
    });
    let registry = Registry::default().with_cc(broken);
    let matrix = Matrix::whole().only(&[SMALL.to_owned()]).unwrap();
    let contestants = Contestant::named(&["broken".to_owned()], &registry).unwrap();
    assert!(!contestants[3].is_built_in);
    let options = Options { seeds: Some(1), ..Options::default() };
    let evaluation = evaluate(matrix, contestants, &registry, &options).unwrap();
    let failures = evaluation.failures(false);
    assert_eq!(failures, ["broken I-iot seed 1: panicked: no plan for ACKs"]);
    assert!(evaluation.to_text().contains("did not end"), "{}", evaluation.to_text());
}

/// The table of docs/paths.md is that of the code.
#[test]
fn the_page_on_paths_lists_them_all() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/paths.md");
    let page = fs::read_to_string(page).unwrap();
    let rows: Vec<String> = ackline_lab::scenario::paths::PATHS
        .iter()
        .map(|path| format!("| `{}` | {} | {} |", path.name, path.summary, path.source))
        .collect();
    assert!(page.contains(&rows.join("\n")), "docs/paths.md lacks:\n{}", rows.join("\n"));
}

/// docs/league.md and what lies beside it are what docs/league/league.json gives.
#[test]
fn the_page_is_what_its_data_give() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let matrix = Matrix::whole();
    let data = LeagueResult::read(&docs.join("league/league.json"), &matrix).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The page has a link to the one in real time, if that is there.
    let live = docs.join("league/live.md");
    if live.is_file() {
        fs::create_dir(folder.path().join("league")).unwrap();
        fs::copy(live, folder.path().join("league/live.md")).unwrap();
    }
    let written = write_pages(&Evaluation::of_result(matrix, &data), folder.path()).unwrap();
    assert!(written.len() > 14, "{written:?}");
    for file in written {
        let name = file.strip_prefix(folder.path()).unwrap();
        let same = fs::read(docs.join(name)).is_ok_and(|content| content == fs::read(&file).unwrap());
        assert!(same, "docs/{0} is not what docs/league/league.json gives", name.display());
    }
}
