//! The scripts of this folder: RFCs as dialogues. `ackline drill tests/drill` runs them, too.

mod linux;

use ackline_drill::{IpVersion, Options, Outcome, Profile, judge, run};
use ackline_runtime::testing::has_programs;
use std::fs;
use std::path::{Path, PathBuf};

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path);
        }
    }
}

fn scripts() -> Vec<(PathBuf, String)> {
    let mut files = vec![];
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drill"), &mut files);
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(&file).unwrap())).collect()
}

/// What is to be said of all scripts that did not pass. Without Python, those with Python in them
/// are left out, and the test `name` says so.
fn complaints(name: &str, options: &Options) -> Vec<String> {
    let has_python = has_programs(name, &["python3"]);
    let scripts: Vec<_> =
        scripts().into_iter().filter(|(_, text)| has_python || !text.contains("%{")).collect();
    let mut reports: Vec<_> = scripts.iter().map(|(_, text)| run(text, options)).collect();
    let texts: Vec<&str> = scripts.iter().map(|(_, text)| text.as_str()).collect();
    judge(&mut reports, &texts);
    let complaint = |((file, _), report): (&(PathBuf, String), &ackline_drill::Report)| match &report.outcome
    {
        Outcome::Passed => None,
        Outcome::Failed(failure) => Some(format!("{}:{}: {failure}", file.display(), failure.line)),
        other => Some(format!("{}: {other:?}", file.display())),
    };
    scripts.iter().zip(&reports).filter_map(complaint).collect()
}

#[test]
fn the_stack_answers_as_each_script_says() {
    let complaints = complaints("the_stack_answers_as_each_script_says", &Options::default());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_same_over_ipv6() {
    let options = Options { ip_version: Some(IpVersion::Ipv6), ..Options::default() };
    // Scripts with ICMP say --ip_version, because its types differ.
    let complaints = complaints("the_same_over_ipv6", &options);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn each_script_names_what_it_is_from_in_its_first_line() {
    for (file, text) in scripts() {
        let first = text.lines().next().unwrap_or_default();
        let named = ["RFC ", "draft-", "Paper: ", "Linux"].iter().any(|source| first.contains(source));
        assert!(first.starts_with("// ") && named, "{}: {first}", file.display());
    }
}

#[test]
fn the_page_shows_a_failure_as_it_is() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let [script, shown] = ["drill-failure.pkt", "drill-failure.txt"].map(|name| docs.join(name));
    let report = run(&fs::read_to_string(script).unwrap(), &Options::default());
    let Outcome::Failed(failure) = report.outcome else { panic!("{:?}", report.outcome) };
    let text = format!("docs/drill-failure.pkt:{}: {failure}", failure.line);
    assert_eq!(text, fs::read_to_string(shown).unwrap());
}

/// A test that cannot fail is none: with the answer of one script to another's question, each fails.
#[test]
fn a_script_fails_if_the_stack_does_something_else() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drill/states/listen/ack.pkt"))
            .unwrap();
    let wrong = text.replace("> R 77:77(0)", "> R 78:78(0)");
    let report = run(&wrong, &Options { profile: Some(Profile::Rfc), ..Options::default() });
    let Outcome::Failed(failure) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(failure.got.as_deref(), Some("> R 77:77(0)"));
    assert_eq!(failure.expected.as_deref(), Some("> R 78:78(0)"));
}
