//! The engine, with a study of its own.

use super::engine::{Options, reproduce};
use super::*;
use crate::plot::{Chart, Line};
use std::fs;
use std::path::Path;

/// Two parts: one has a job, a figure and an optional check that is missed, the other a check that fails.
struct Tiny {
    page: &'static str,
}

const PAGE: &str = "# Tiny\n\n{{count}}\n\n{{part one}}\nSquare: {{measured one/square}}.\n\n{{table squares}}\n\n\
                    {{checks one/}}\n{{end}}\n{{part two}}\n## Two\n{{end}}\n";

impl Tiny {
    const fn new(page: &'static str) -> Self {
        Self { page }
    }
}

impl Study for Tiny {
    fn paper(&self) -> &Paper {
        &Paper { name: "tiny", stem: "tiny-page", title: "On squares", authors: "N. N.", year: Some(1999) }
    }

    fn parts(&self) -> &[Part] {
        &[Part { name: "one", what: "squares" }, Part { name: "two", what: "a failure" }]
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick]
    }

    fn page(&self) -> &str {
        self.page
    }

    fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        let side: u64 = if request.quick { 2 } else { 3 };
        let job = || Job::new("square", side.to_string(), move || Ok(side * side));
        Ok(if request.wants("one") { vec![job(), job()] } else { vec![] })
    }

    fn evaluate(&self, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut found = Reproduction::default();
        if request.wants("one") {
            let square: f64 = outputs.get("square")?;
            let mut table = Table::new("squares", "Squares").columns(["side", "square"]);
            table.row("3", [Cell::beside(square, 10.0, 0).within((9.5, 10.5)).marked(true)]);
            found.tables.push(table);
            found.checks.push(Check::near("one/square", "|x * x|", square, 9.0, 0.1).paper(10.0));
            found.checks.push(Check::at_most("one/small", "it", square, 1.0).optional("Squares grow."));
            let line = Line { points: vec![(1.0, square), (2.0, 4.0)], ..Line::default() };
            found
                .figures
                .push(Chart { name: "curve".to_owned(), lines: vec![line], ..Chart::default() }.into());
            found.notes.push("A note.".to_owned());
        }
        if request.wants("two") {
            found.checks.push(Check::exactly("two/never", "nothing", f64::NAN, 0.0).because("No number."));
        }
        Ok(found)
    }
}

static TINY: Tiny = Tiny::new(PAGE);

fn options(parts: &[&str]) -> Options {
    Options { parts: parts.iter().map(|part| (*part).to_owned()).collect(), threads: 1, ..Options::default() }
}

fn one(options: &Options) -> StudyResult {
    let mut done = reproduce(&[&TINY], options).unwrap();
    assert_eq!(done.len(), 1);
    done.remove(0)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refused(study: &'static Tiny, options: &Options) -> String {
    reproduce(&[study], options).err().expect("refused").to_string()
}

#[test]
fn bounds_belong_to_what_passes_and_nothing_measured_fails() {
    assert!(Check::within("a", "", 2.0, (2.0, 3.0)).ok && Check::within("a", "", 3.0, (2.0, 3.0)).ok);
    assert!(!Check::within("a", "", 3.000_1, (2.0, 3.0)).ok);
    let near = Check::near("a", "", 109.0, 100.0, 0.1);
    assert!((near.low, near.high, near.expected, near.ok) == (Some(90.0), Some(110.0), Some(100.0), true));
    assert!(Check::at_least("a", "", 1.0, 1.0).ok && !Check::at_most("a", "", 1.1, 1.0).ok);
    let nothing = Check::at_least("a", "", f64::NAN, 0.0);
    assert!(!nothing.ok && nothing.measured.is_none() && nothing.fails());
    assert!(!nothing.optional("").fails());
}

#[test]
fn a_failed_check_counts_and_an_optional_miss_does_not() {
    let found = one(&options(&[])).reproduction;
    assert_eq!((found.passed(), found.failed(), found.missed()), (1, 1, 1));
    assert_eq!(found.unexplained(), 0, "the one that failed has a reason");
    let found = one(&options(&["one"])).reproduction;
    assert_eq!((found.passed(), found.failed(), found.missed()), (1, 0, 1));
    let found = Reproduction { checks: vec![Check::exactly("x", "", 1.0, 0.0)], ..Reproduction::default() };
    assert_eq!((found.failed(), found.unexplained()), (1, 1));
}

#[test]
fn the_document_has_each_check_with_its_numbers() {
    let json: serde_json::Value = serde_json::from_str(&to_json(&one(&options(&[])))).unwrap();
    assert_eq!(
        (json["passed"].as_u64(), json["failed"].as_u64(), json["ok"].as_bool()),
        (Some(1), Some(1), Some(false))
    );
    let check = &json["checks"][0];
    assert_eq!((check["id"].as_str(), check["ok"].as_bool()), (Some("one/square"), Some(true)));
    let number = |key: &str| check[key].as_f64();
    assert_eq!((number("paper"), number("expected"), number("measured")), (Some(10.0), Some(9.0), Some(9.0)));
    assert!((number("low").unwrap() - 8.1).abs() < 1e-9 && (number("high").unwrap() - 9.9).abs() < 1e-9);
    assert!(json["checks"][2]["measured"].is_null() && json["checks"][2]["reason"] == "No number.");
    assert_eq!(json["tables"][0]["rows"][0][1]["paper"].as_f64(), Some(10.0));
    assert_eq!(json["figures"][0], "curve");
}

#[test]
fn the_terminal_shows_deviations_and_what_failed() {
    let text = to_text(&one(&options(&[])));
    assert!(text.contains("9 (10)* -10 % !"), "{text}");
    assert!(text.contains("FAILED two/never: nothing: nothing, not 0. No number."), "{text}");
    assert!(text.contains("missed (optional) one/small: it: 9, not 1 or less. Squares grow."), "{text}");
    assert!(
        text.ends_with("tiny: 1 of 3 checks passed, 1 failed for a known reason, 1 optional missed\n"),
        "{text}"
    );
}

#[test]
fn a_page_holds_the_wanted_parts_and_what_it_has_no_place_for() {
    let page = page::to_markdown(&one(&options(&["one"]))).unwrap();
    assert!(page.contains("ackline reproduce tiny --table one --out DIR"), "{page}");
    assert!(
        page.contains("Square: 9.") && page.contains("1 of 2 checks passed, 1 optional missed"),
        "{page}"
    );
    assert!(page.contains("| `one/square` | \\|x * x\\| | 10 | 9 | 8.1 to 9.9 | ok |"), "{page}");
    assert!(page.contains("![](tiny-page/curve.svg)") && page.contains("A note."), "{page}");
    assert!(!page.contains("## Two"), "{page}");
}

#[test]
fn a_page_that_names_what_is_not_there_is_refused() {
    static PAGES: [(Tiny, &str); 5] = [
        (Tiny::new("{{table cubes}}"), "line 1 of the page: there is no table \"cubes\""),
        (Tiny::new("a\nb {{measured cube}}"), "line 2 of the page: there is no check \"cube\""),
        (Tiny::new("{{part three}}"), "line 1 of the page: the study has no part \"three\""),
        (Tiny::new("{{part one}}"), "the page does not end its part \"one\""),
        (Tiny::new("x {{colour}}"), "line 1 of the page: there is no placeholder \"colour\""),
    ];
    for (study, message) in &PAGES {
        assert_eq!(refused(study, &options(&[])), format!("tiny: {message}"));
    }
}

#[test]
fn files_are_whole_and_outputs_of_jobs_go_when_all_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { out: Some(folder.path().to_owned()), ..options(&[]) };
    let done = one(&options);
    assert_eq!(names(folder.path()), ["tiny-page", "tiny-page.json", "tiny-page.md"]);
    assert_eq!(names(&folder.path().join("tiny-page")), ["curve.svg"]);
    assert_eq!(done.files.len(), 3);
    assert!(done.files.iter().all(|file| file.exists()));
    let first = fs::read(folder.path().join("tiny-page.json")).unwrap();
    one(&options);
    assert_eq!(fs::read(folder.path().join("tiny-page.json")).unwrap(), first);
}

#[test]
fn what_was_finished_before_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Options { out: Some(folder.path().to_owned()), keep_jobs: true, ..options(&["one"]) };
    assert_eq!(one(&keep).resumed, 0);
    let jobs = folder.path().join("tiny-page.jobs");
    assert_eq!(names(&jobs).len(), 1);
    assert_eq!(one(&keep).resumed, 1);
    // Another size is another job.
    assert_eq!(one(&Options { quick: true, ..keep.clone() }).resumed, 0);
    // A file that was cut short is none.
    for name in names(&jobs) {
        fs::write(jobs.join(name), "").unwrap();
    }
    let again = one(&keep);
    assert_eq!((again.resumed, again.reproduction.passed()), (0, 1));
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    assert_eq!(
        refused(&TINY, &options(&["onw"])),
        "tiny has no table \"onw\"; did you mean \"one\"? (it has one, two)"
    );
    assert_eq!(
        refused(&TINY, &Options { seeds: Some(3), ..options(&[]) }),
        "tiny has no --seeds; it has --quick"
    );
    // If there are several papers, each takes what it understands.
    let two = reproduce(&[&TINY, &TINY], &Options { seeds: Some(3), quick: true, ..options(&[]) }).unwrap();
    assert!(two.iter().all(|done| done.request.seeds.is_none() && done.request.quick));
    let error = study("a4").err().expect("refused").to_string();
    assert!(error.starts_with("there is no paper \"a4\"; did you mean \"a3\"? (there are a3"), "{error}");
}

#[test]
fn two_checks_of_one_name_are_refused() {
    let check = || Check::exactly("same", "", 0.0, 0.0);
    let found = Reproduction { checks: vec![check(), check()], ..Reproduction::default() };
    assert_eq!(found.fault().as_deref(), Some("two checks are named \"same\""));
}

#[test]
fn names_of_studies_and_parts_are_different() {
    let mut names: Vec<&str> =
        STUDIES.iter().flat_map(|study| [study.paper().name, study.paper().stem]).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    // A name may be its own stem, and nobody else's.
    assert!(all - names.len() <= STUDIES.len());
    for study in STUDIES {
        let mut parts: Vec<&str> = study.parts().iter().map(|part| part.name).collect();
        parts.sort_unstable();
        assert!(!parts.is_empty() && parts.windows(2).all(|pair| pair[0] != pair[1]), "{parts:?}");
    }
}
