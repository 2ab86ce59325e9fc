//! The engine, with a study of its own.

use super::data::archive;
use super::engine::reproduce;
use super::*;
use ackline_lab::stage::{EndReport, OutsideEnd, OutsideHost, Stage, StageError, Stages, Validity, World};
use ackline_netsim::Sim;
use ackline_netsim::record::ConnRecord;
use ackline_plot::{Chart, Format, Line, PlotOptions};
use ackline_tcp_core::{Duration, Instant};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

/// Two parts: one has jobs, a figure, a finding and a check that misses, the other a check that
/// fails, and both share a check.
struct TinyStudy {
    page: &'static str,
    pins: &'static str,
}

const PAGE: &str = "# Tiny\n\n{{findings}}\n\n{{count}}\n\n{{part one}}\nSquare: {{measured one/square}}.\n\n{{table squares}}\n\n\
                    {{fold More}}\n{{checks one/}}\n{{end}}\n{{end}}\n{{part two}}\n## Two\n{{end}}\n";

const PIN: &str = "[[pin]]\ncheck = \"one/small\"\nlow = 8\nhigh = 9.5\nreason = \"Squares grow.\"\nevidence = \"squares\"\nextent = \"whole\"\n";

impl TinyStudy {
    const fn new(page: &'static str) -> Self {
        Self { page, pins: "" }
    }

    const fn pinned(pins: &'static str) -> Self {
        Self { page: PAGE, pins }
    }
}

const PARTS: &[Part] = &[
    Part {
        name: "one",
        what: "squares",
        plan: |request| {
            let side: u64 = if request.quick { 2 } else { 3 };
            let job = || Job::new("square", side.to_string(), move || Ok(side * side));
            Ok(vec![job(), job()])
        },
        evaluate: |_, outputs| {
            let square: f64 = outputs.get("square")?;
            let mut found = shared();
            let mut table = Table::new("squares", "Squares").columns(["side", "square"]);
            table.row("3", [Cell::beside(square, 10.0, 0).within((9.5, 10.5)).marked(true)]);
            found.tables.push(table);
            found.checks.push(Check::near("one/square", "|x * x|", square, 9.0, 0.1).paper(10.0));
            found.checks.push(Check::at_most("one/small", "it", square, 1.0));
            found.findings.push(Finding::new("Table 1", "10", square.to_string(), "one/"));
            let line = Line { points: vec![(1.0, square), (2.0, 4.0)], ..Line::default() };
            found
                .figures
                .push(Chart { name: "curve".to_owned(), lines: vec![line], ..Chart::default() }.into());
            Ok(found)
        },
    },
    Part {
        name: "two",
        what: "a failure",
        plan: no_jobs,
        evaluate: |_, _| {
            let mut found = shared();
            found.checks.push(Check::exactly("two/never", "nothing", f64::NAN, 0.0));
            Ok(found)
        },
    },
];

/// What both parts have.
fn shared() -> Reproduction {
    let check = Check::at_most("shared", "both", 1.0, 2.0).widened("the model's");
    Reproduction { checks: vec![check], notes: vec!["A note.".to_owned()], ..Reproduction::default() }
}

impl Study for TinyStudy {
    fn paper(&self) -> &Paper {
        &Paper { name: "tiny", stem: "tiny-page", title: "On squares", authors: "N. N.", year: Some(1999) }
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick]
    }

    fn page(&self) -> &str {
        self.page
    }

    fn pins(&self) -> &str {
        self.pins
    }
}

static TINY: TinyStudy = TinyStudy::new(PAGE);

fn options(parts: &[&str]) -> Options {
    Options { parts: parts.iter().map(|part| (*part).to_owned()).collect(), threads: 1, ..Options::default() }
}

fn one(options: &Options) -> StudyResult {
    of(&TINY, options)
}

fn of(study: &'static TinyStudy, options: &Options) -> StudyResult {
    let mut done = reproduce(&[study], options).unwrap();
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

fn refused(study: &'static TinyStudy, options: &Options) -> String {
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
    assert!(!nothing.ok && nothing.measured.is_none());
}

#[test]
fn what_parts_share_is_there_once_and_widened_passes_are_counted_apart() {
    let done = one(&options(&[]));
    let Counts { checks, passed, widened, pinned, failed, stale } = done.counts();
    assert_eq!((checks, passed, widened, pinned, failed, stale), (4, 2, 1, 0, 2, 0));
    assert_eq!(done.reproduction.notes, ["A note."]);
    assert_eq!(done.failures(false), ["tiny one/small failed", "tiny two/never failed"]);
}

#[test]
fn a_pinned_miss_fails_nothing_unless_asked_to() {
    static PINNED: TinyStudy = TinyStudy::pinned(PIN);
    let done = of(&PINNED, &options(&["one"]));
    assert_eq!((done.counts().pinned, done.counts().failed), (1, 0));
    assert_eq!(done.failures(false), [""; 0]);
    assert_eq!(done.failures(true), ["tiny one/small missed (pinned)"]);
    assert_eq!(
        done.reproduction.findings[0].verdict(&done.reproduction, &done.judgement),
        "repeated but for 1 of 2 (pinned)"
    );
    // It is of whole runs.
    let quick = of(&PINNED, &Options { quick: true, ..options(&["one"]) });
    assert_eq!(quick.failures(false), ["tiny one/square failed", "tiny one/small failed"]);
    // A part without the check does not judge its pin.
    assert_eq!(of(&PINNED, &options(&["two"])).failures(false), ["tiny two/never failed"]);
}

#[test]
fn a_miss_outside_of_its_pin_fails() {
    static LOW: LazyLock<String> = LazyLock::new(|| PIN.replace("high = 9.5", "high = 8.5"));
    static PINNED: LazyLock<TinyStudy> = LazyLock::new(|| TinyStudy::pinned(&LOW));
    let done = of(&PINNED, &options(&["one"]));
    assert_eq!(done.failures(false), ["tiny one/small left the bounds of its pin"]);
    assert!(to_text(&done).contains("FAILED one/small: it: 9, not 1 or less; its pin expects 8 to 8.5"));
}

#[test]
fn a_pinned_check_that_passes_fails_the_command() {
    static PASSING: LazyLock<String> = LazyLock::new(|| {
        PIN.replace("one/small", "one/square")
            .replace("low = 8", "low = 20")
            .replace("high = 9.5", "high = 30")
    });
    static PINNED: LazyLock<TinyStudy> = LazyLock::new(|| TinyStudy::pinned(&PASSING));
    let done = of(&PINNED, &options(&["one"]));
    assert_eq!(done.failures(false), ["tiny one/square passes now: remove its pin", "tiny one/small failed"]);
}

#[test]
fn a_pin_that_cannot_be_right_fails_the_command() {
    for (from, to, fault) in [
        ("one/small", "one/smal", "the pin of \"one/smal\" has no check"),
        ("\"squares\"", "\"cubes\"", "names \"cubes\", which is no job, table, figure or check"),
        ("low = 8", "low = 0.5", "the pin of \"one/small\" expects numbers that pass: 0.5 to 9.5"),
    ] {
        let study = TinyStudy::pinned(Box::leak(PIN.replace(from, to).into_boxed_str()));
        let done = of(Box::leak(Box::new(study)), &options(&[]));
        assert!(
            done.judgement.faults.iter().any(|found| found.contains(fault)),
            "{:?}",
            done.judgement.faults
        );
        assert!(done.failures(false).iter().any(|found| found.contains(fault)));
    }
}

#[test]
fn a_finding_that_rests_on_nothing_is_refused() {
    let found =
        Reproduction { findings: vec![Finding::new("Table 1", "", "", "one/")], ..Reproduction::default() };
    assert_eq!(found.fault().as_deref(), Some("no check decides about the finding \"Table 1\""));
}

#[test]
fn the_document_has_each_check_with_its_numbers() {
    let json: serde_json::Value = serde_json::from_str(&to_json(&one(&options(&[])))).unwrap();
    assert_eq!(
        (json["passed"].as_u64(), json["failed"].as_u64(), json["ok"].as_bool()),
        (Some(2), Some(2), Some(false))
    );
    assert_eq!(json["checks"][0]["verdict"], "widened");
    assert_eq!(
        (&json["findings"][0]["of"], &json["findings"][0]["verdict"]),
        (&"Table 1".into(), &"not repeated: 1 of 2 failed".into())
    );
    let check = &json["checks"][1];
    assert_eq!((check["id"].as_str(), check["ok"].as_bool()), (Some("one/square"), Some(true)));
    let number = |key: &str| check[key].as_f64();
    assert_eq!((number("paper"), number("expected"), number("measured")), (Some(10.0), Some(9.0), Some(9.0)));
    assert!((number("low").unwrap() - 8.1).abs() < 1e-9 && (number("high").unwrap() - 9.9).abs() < 1e-9);
    assert!(json["checks"][3]["measured"].is_null() && json["checks"][3]["verdict"] == "failed");
    assert_eq!(json["tables"][0]["rows"][0][1]["paper"].as_f64(), Some(10.0));
    assert_eq!(json["figures"][0], "curve");
}

#[test]
fn the_terminal_shows_deviations_and_what_failed() {
    let text = to_text(&one(&options(&[])));
    assert!(text.contains("9 (10)* -10 % !"), "{text}");
    assert!(text.contains("FAILED two/never: nothing: nothing, not 0\n"), "{text}");
    assert!(text.contains("FAILED one/small: it: 9, not 1 or less\n"), "{text}");
    assert!(text.find("not repeated: 1 of 2 failed") < text.find("9 (10)*"), "{text}");
    assert!(
        text.ends_with("tiny: 2 of 4 checks passed, 1 of them within a widened bound, 2 failed\n"),
        "{text}"
    );
}

#[test]
fn a_page_holds_the_wanted_parts_and_what_it_has_no_place_for() {
    let page = page::to_markdown(&one(&options(&["one"]))).unwrap();
    assert!(page.contains("ackline reproduce tiny --table one --out DIR"), "{page}");
    assert!(
        page.contains("Square: 9.")
            && page.contains("2 of 3 checks passed, 1 of them within a widened bound, 1 failed"),
        "{page}"
    );
    assert!(
        page.contains("<details><summary>More</summary>\n\n1 of 2 checks passed, 1 failed:\n\n| check"),
        "{page}"
    );
    assert!(page.contains("| Table 1 | 10 | 9 | not repeated: 1 of 2 failed |"), "{page}");
    assert!(page.contains("## Misses\n\n| **failed** | measured | passes | |\n|---|--:|--:|---|\n| `one/small`: it | 9 | 1 or less |  |\n"), "{page}");
    assert!(page.contains("| `one/square` | \\|x * x\\| | 10 | 9 | 8.1 to 9.9 | ok |"), "{page}");
    assert!(page.contains("![](tiny-page/curve.svg)") && page.contains("A note."), "{page}");
    assert!(!page.contains("## Two"), "{page}");
}

#[test]
fn a_page_that_names_what_is_not_there_is_refused() {
    static PAGES: [(TinyStudy, &str); 7] = [
        (TinyStudy::new("{{table cubes}}"), "line 1 of the page: there is no table \"cubes\""),
        (TinyStudy::new("a\nb {{measured cube}}"), "line 2 of the page: there is no check \"cube\""),
        (TinyStudy::new("{{part three}}"), "line 1 of the page: the study has no part \"three\""),
        (TinyStudy::new("{{part one}}"), "the page does not end its part \"one\""),
        (TinyStudy::new("{{fold More}}"), "the page does not end a fold"),
        (TinyStudy::new("{{fold}}"), "line 1 of the page: a fold without a title"),
        (TinyStudy::new("x {{colour}}"), "line 1 of the page: there is no placeholder \"colour\""),
    ];
    for (study, message) in &PAGES {
        assert_eq!(refused(study, &options(&[])), format!("tiny: {message}"));
    }
}

#[test]
fn what_was_not_run_leaves_a_gap_on_the_page() {
    static GAPS: TinyStudy = TinyStudy::new(
        "{{table squares}}\n{{figure curve}}\n{{checks one/}}\nSquare: {{measured one/square}}.\n",
    );
    let page = page::to_markdown(&of(&GAPS, &options(&["two"]))).unwrap();
    assert!(page.contains("Square: -."), "{page}");
    assert!(page::to_markdown(&of(&GAPS, &options(&[]))).unwrap().contains("Square: 9."));
}

#[test]
fn a_pinned_miss_stands_on_the_page_with_its_reason_and_evidence() {
    static PINNED: TinyStudy = TinyStudy::pinned(PIN);
    let page = page::to_markdown(&of(&PINNED, &options(&["one"]))).unwrap();
    assert!(page.contains("| [pinned](#miss-one-small) |"), "{page}");
    assert!(
        page.contains(
            "| <a id=\"miss-one-small\"></a>`one/small`: it | 9 | 1 or less | 8 to 9.5 | Squares grow. | [`squares`](#at-squares) |"
        ),
        "{page}"
    );
    assert!(page.contains("<a id=\"at-squares\"></a>\n\n**Squares**"), "{page}");
    static BY_JOB: LazyLock<String> = LazyLock::new(|| PIN.replace("\"squares\"", "\"square\""));
    static JOB: LazyLock<TinyStudy> = LazyLock::new(|| TinyStudy::pinned(&BY_JOB));
    let page = page::to_markdown(&of(&JOB, &options(&["one"]))).unwrap();
    assert!(
        page.contains(
            "| `square` in [the data](data/tiny-page.json.gz), run by `ackline reproduce tiny --table one` |"
        ),
        "{page}"
    );
}

#[test]
fn files_are_whole_and_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { out: Some(folder.path().to_owned()), ..options(&[]) };
    let done = one(&options);
    assert_eq!(names(folder.path()), ["data", "tiny-page", "tiny-page.json", "tiny-page.md"]);
    assert_eq!(names(&folder.path().join("tiny-page")), ["curve.svg"]);
    assert_eq!(names(&folder.path().join("data")), ["tiny-page.json.gz"]);
    assert_eq!(done.files.len(), 4);
    assert!(done.files.iter().all(|file| file.exists()));
    let first = fs::read(folder.path().join("tiny-page.json")).unwrap();
    one(&options);
    assert_eq!(fs::read(folder.path().join("tiny-page.json")).unwrap(), first);
}

#[test]
fn figures_come_in_the_format_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let plot = PlotOptions { format: Format::Pdf, ..PlotOptions::default() };
    one(&Options { out: Some(folder.path().to_owned()), plot, ..options(&[]) });
    assert_eq!(names(&folder.path().join("tiny-page")), ["curve.pdf"]);
    let page = fs::read_to_string(folder.path().join("tiny-page.md")).unwrap();
    assert!(page.contains("(tiny-page/curve.pdf)"), "{page}");
}

#[test]
fn what_was_run_before_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let cached = Options { cache: Some(folder.path().to_owned()), ..options(&["one"]) };
    assert_eq!(one(&cached).origin.cached, 0);
    let entries = folder.path().join("papers");
    assert_eq!(names(&entries).len(), 1);
    let again = one(&cached);
    assert_eq!((again.origin.cached, again.unreadable), (1, 0));
    assert!(to_text(&again).ends_with("; 1 jobs from the cache\n"));
    // Another size is another job.
    assert_eq!(one(&Options { quick: true, ..cached.clone() }).origin.cached, 0);
    assert_eq!(names(&entries).len(), 2);
}

#[test]
fn a_damaged_file_of_the_cache_is_run_again_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let cached = Options { cache: Some(folder.path().to_owned()), ..options(&["one"]) };
    one(&cached);
    let entries = folder.path().join("papers");
    let path = entries.join(&names(&entries)[0]);
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&whole[..whole.len() - 9], &flipped, b""] {
        fs::write(&path, damaged).unwrap();
        let again = one(&cached);
        assert_eq!((again.origin.cached, again.unreadable, again.counts().passed), (0, 1, 2));
        assert_eq!(one(&cached).origin.cached, 1, "it is whole again");
    }
}

#[test]
fn data_of_a_run_give_the_same_page_without_running_anything() {
    let (run, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    one(&Options { out: Some(run.path().to_owned()), ..options(&[]) });
    let data = run.path().join("data");
    let again = Options { out: Some(from.path().to_owned()), from: Some(data.clone()), ..options(&[]) };
    assert!(one(&again).origin.is_current());
    for name in ["tiny-page.md", "tiny-page.json", "tiny-page/curve.svg"] {
        assert_eq!(
            fs::read(run.path().join(name)).unwrap(),
            fs::read(from.path().join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!from.path().join("data").exists(), "nothing was run");
    let part = Options { parts: vec!["two".to_owned()], ..again };
    assert_eq!(one(&part).request.parts, ["two"]);
}

/// Data of a whole run, changed; and what `--sample` says of them.
fn sampled(change: impl FnOnce(&mut serde_json::Value)) -> Result<StudyResult, ReproduceError> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    one(&Options { out: Some(folder.path().to_owned()), ..options(&[]) });
    let path = data.join("tiny-page.json.gz");
    let mut document: serde_json::Value = archive::load(&path).unwrap();
    assert_eq!(document["sample"], serde_json::json!({ "square": null }));
    change(&mut document);
    archive::save(&path, &document).unwrap();
    Ok(reproduce(&[&TINY], &Options { from: Some(data), sample: true, ..options(&[]) })?.remove(0))
}

#[test]
fn data_of_other_sources_are_what_this_program_gives_or_fail_the_command() {
    let done = sampled(|data| data["jobs"]["square"]["output"] = 10.into()).unwrap();
    assert_eq!(done.sampled, None, "of these sources: nothing is run");

    let done = sampled(|data| data["origin"]["code"] = "another".into()).unwrap();
    let sampled_jobs = done.sampled.as_ref().unwrap();
    assert_eq!((sampled_jobs.jobs, sampled_jobs.differing.len()), (1, 0));
    assert!(to_text(&done).contains("data of another engine, of which 1 of 1 sampled jobs give the same"));
    assert_eq!(done.failures(false), ["tiny one/small failed", "tiny two/never failed"]);

    let changed = |data: &mut serde_json::Value| {
        data["origin"]["code"] = "another".into();
        data["jobs"]["square"]["output"] = 10.into();
    };
    let failures = sampled(changed).unwrap().failures(false);
    let job = "tiny: the job \"square\" gives something else than its data; make them again with ackline reproduce tiny --refresh";
    assert!(failures.contains(&job.to_owned()), "{failures:?}");
}

/// Data from before there were samples get one, if the jobs that it names give the same as a whole.
#[test]
fn a_sample_that_is_not_there_is_run_as_a_whole_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    one(&Options { out: Some(folder.path().to_owned()), ..options(&[]) });
    let path = data.join("tiny-page.json.gz");
    let change = |output: i64| {
        let mut document: serde_json::Value = archive::load(&path).unwrap();
        document["origin"]["code"] = "another".into();
        document["sample"] = serde_json::json!({});
        document["jobs"]["square"]["output"] = output.into();
        archive::save(&path, &document).unwrap();
    };
    let sampled = || {
        let options = Options {
            from: Some(data.clone()),
            out: Some(folder.path().to_owned()),
            sample: true,
            ..options(&[])
        };
        reproduce(&[&TINY], &options).unwrap().remove(0).sampled.unwrap()
    };
    let names = || archive::load::<serde_json::Value>(&path).unwrap()["sample"].clone();
    change(10);
    assert_eq!((sampled().differing, names()), (vec!["square".to_owned()], serde_json::json!({})));
    change(9);
    assert_eq!((sampled().unnamed, names()), (1, serde_json::json!({ "square": null })));
    assert_eq!(sampled().unnamed, 0);
}

#[test]
fn a_study_that_fails_keeps_its_data_and_the_others_their_pages() {
    static WRONG: TinyStudy = TinyStudy::new("{{colour}}");
    let folder = tempfile::tempdir().unwrap();
    let options = Options { out: Some(folder.path().to_owned()), ..options(&[]) };
    assert!(refused(&WRONG, &options).contains("no placeholder \"colour\""));
    assert_eq!(names(folder.path()), ["data"]);
    assert!(reproduce(&[&WRONG, &TINY], &options).is_err());
    assert!(folder.path().join("tiny-page.md").exists());
}

/// A study one of whose jobs fails, and one panics.
struct FailingStudy;

impl Study for FailingStudy {
    fn paper(&self) -> &Paper {
        &Paper { name: "failing", stem: "failing", title: "", authors: "", year: None }
    }

    fn parts(&self) -> &[Part] {
        &[Part {
            name: "one",
            what: "",
            plan: |_| {
                let fails = Job::new("fails", "", || Err::<u8, _>("no luck".to_owned()));
                let panics = Job::new("panics", "", || -> Result<u8, String> { panic!("on purpose") });
                Ok(vec![fails, panics, Job::new("works", "", || Ok(1))])
            },
            evaluate: |_, _| Ok(Reproduction::default()),
        }]
    }

    fn page(&self) -> &str {
        ""
    }

    fn pins(&self) -> &str {
        ""
    }
}

#[test]
fn a_job_that_fails_or_panics_is_named_and_the_others_are_run() {
    let (cache, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options =
        Options { cache: Some(cache.path().to_owned()), out: Some(out.path().to_owned()), ..options(&[]) };
    let error = reproduce(&[&FailingStudy, &TINY], &options).err().expect("refused").to_string();
    assert_eq!(error, "failing, fails: no luck");
    assert_eq!(names(&cache.path().join("papers")).len(), 2, "what works, and the other study's");
    assert!(out.path().join("tiny-page.md").exists());
}

#[test]
fn data_without_what_is_needed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    one(&Options { out: Some(folder.path().to_owned()), ..options(&["two"]) });
    let from = Options { from: Some(data.clone()), ..options(&["one"]) };
    assert_eq!(
        refused(&TINY, &from),
        "the data of tiny have no outputs of \"one\" (they have two); make them again with ackline reproduce tiny --out DIR"
    );
    one(&Options { out: Some(folder.path().to_owned()), ..options(&["one"]) });
    let path = data.join("tiny-page.json.gz");
    let mut document: serde_json::Value = archive::load(&path).unwrap();
    document["jobs"]["square"]["identity"] = "another".into();
    archive::save(&path, &document).unwrap();
    assert!(
        refused(&TINY, &from)
            .starts_with("in the data of tiny the job \"square\" is another one than in this program; make")
    );
    document["jobs"] = serde_json::json!({});
    archive::save(&path, &document).unwrap();
    assert!(refused(&TINY, &from).starts_with("the data of tiny have no output of the job \"square\"; make"));
    fs::write(&path, "no archive").unwrap();
    assert!(refused(&TINY, &from).contains("cannot read"));
}

#[test]
fn files_that_make_outputs_are_known_to_the_build() {
    for study in STUDIES {
        for file in study.reading() {
            assert!(sources::of_file(file).is_some(), "{file}");
        }
        let parts = study.parts().iter().map(|part| part.name).collect();
        let all = Request { parts, quick: true, ..Request::default() };
        for part in study.parts() {
            for job in (part.plan)(&all).unwrap() {
                assert!(job.is_recognised(), "{job:?}");
            }
        }
    }
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
        pin::read(study.pins()).unwrap();
        assert!(!parts.is_empty() && parts.windows(2).all(|pair| pair[0] != pair[1]), "{parts:?}");
    }
}

/// A stage of real time that is late in its first `late` runs.
#[derive(Debug)]
struct LateStages {
    late: u32,
    runs: AtomicU32,
}

impl Stages for LateStages {
    fn name(&self) -> &'static str {
        "late "
    }

    fn stage(&self) -> Result<Box<dyn Stage>, StageError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(LateStage { is_late: run < self.late }))
    }

    fn is_parallel(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct LateStage {
    is_late: bool,
}

impl Stage for LateStage {
    fn is_outside(&self, _: World) -> bool {
        false
    }

    fn begin(
        &mut self,
        _: &mut Sim,
        _: Vec<OutsideHost>,
        _: Vec<OutsideEnd>,
        _: Duration,
    ) -> Result<(), StageError> {
        Ok(())
    }

    fn run_until(&mut self, sim: &mut Sim, until: Instant) -> Result<(), StageError> {
        sim.run_until(until);
        Ok(())
    }

    fn report(&self, _: usize) -> EndReport {
        EndReport::default()
    }

    fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>) {
        let reasons = if self.is_late { vec!["late".to_owned()] } else { vec![] };
        let conditions = vec!["hosts are slow".to_owned()];
        (vec![], Some(Validity { reasons, conditions, ..Validity::default() }))
    }
}

fn live(stages: Arc<dyn Stages>, quick: bool, cache: Option<&Path>) -> Result<StudyResult, ReproduceError> {
    let options =
        Options { quick, live: Some(stages), cache: cache.map(Path::to_owned), ..options(&["100k"]) };
    Ok(reproduce(&[live_study("kalampoukas")?], &options)?.remove(0))
}

#[test]
fn a_run_that_was_late_is_run_again_and_said() {
    let late = Arc::new(LateStages { late: 2, runs: AtomicU32::new(0) });
    let done = live(late.clone(), true, None).unwrap();
    assert_eq!(late.runs.load(Ordering::Relaxed), 3);
    // The same runs as the simulated ones, so all agree.
    assert_eq!(done.failures(true), [""; 0]);
    let notes = &done.reproduction.notes;
    assert_eq!(notes.len(), 2);
    assert_eq!(notes[0], "100k: in live runs hosts are slow.");
    assert!(notes[1].contains("INVALID and run again: 2;"), "{notes:?}");
}

#[test]
fn a_run_that_is_always_late_counts_for_nothing() {
    let late = Arc::new(LateStages { late: u32::MAX, runs: AtomicU32::new(0) });
    let done = live(late.clone(), false, None).unwrap();
    let checks = &done.reproduction.checks;
    assert!(checks.len() > 1 && checks.iter().all(|check| !check.ok), "{checks:?}");
    let (agree, compared) = checks.split_last().unwrap();
    assert_eq!((agree.id.as_str(), agree.measured), ("100k/agree", Some(0.0)));
    assert!(compared.iter().all(|check| check.measured.is_none()));
    let text = to_text(&done);
    assert!(text.contains("INVALID: 100k f=1/2, run 0: late."), "{text}");
}

#[test]
fn a_quick_run_that_is_always_late_is_said_and_not_judged() {
    let late = Arc::new(LateStages { late: u32::MAX, runs: AtomicU32::new(0) });
    let done = live(late.clone(), true, None).unwrap();
    assert_eq!((late.runs.load(Ordering::Relaxed), done.counts().checks), (3, 0));
    let text = to_text(&done);
    assert!(text.contains("INVALID: 100k f=1/2, run 0: late."), "{text}");
}

#[test]
fn live_runs_are_never_taken_from_the_cache_and_need_a_stage() {
    let late = Arc::new(LateStages { late: 0, runs: AtomicU32::new(0) });
    let folder = tempfile::tempdir().unwrap();
    for runs in 1..=2 {
        let done = live(late.clone(), true, Some(folder.path())).unwrap();
        assert_eq!((late.runs.load(Ordering::Relaxed), done.origin.cached), (runs, runs as usize - 1));
    }
    let options = Options { quick: true, ..options(&["100k"]) };
    let error = reproduce(&[live_study("kalampoukas").unwrap()], &options).err().unwrap().to_string();
    assert!(error.contains("there is no stage for it"), "{error}");
}

#[test]
fn live_parts_agree_with_themselves() {
    let late = Arc::new(LateStages { late: 0, runs: AtomicU32::new(0) });
    let options = Options { quick: true, live: Some(late), ..Options::default() };
    for done in reproduce(LIVE, &options).unwrap() {
        let name = done.study.paper().name;
        assert_eq!(done.failures(true), [""; 0], "{name}");
        assert!(done.counts().checks > 0, "{name}");
    }
}
