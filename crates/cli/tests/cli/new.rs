//! `ackline new`. That what it writes compiles and passes its tests is checked by `tests/plugin`.

use crate::common::{BackgroundCommand, ackline};
use std::fs;
use std::path::Path;

fn new(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let ended = BackgroundCommand::start(ackline(&[&["new"], args].concat()).current_dir(folder)).end();
    (ended.status, ended.stderr)
}

#[test]
fn a_crate_is_written_for_each_kind() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for kind in ["cc", "ack", "rto", "sched"] {
        let name = format!("my-{kind}");
        let (status, said) = new(folder.path(), &[kind, &name]);
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains(&format!("cargo run -- list {kind}")), "{said}");
        let read = |file: &str| fs::read_to_string(folder.path().join(&name).join(file)).expect(file);
        let manifest = read("Cargo.toml");
        // There is no checkout around it, and no registry has the crates.
        let repository = env!("CARGO_PKG_REPOSITORY");
        for dependency in ["ackline", "ackline-cli"] {
            assert!(manifest.contains(&format!("{dependency} = {{ git = {repository:?} }}")), "{manifest}");
        }
        assert!(manifest.contains(&format!("name = {name:?}")), "{manifest}");
        assert!(said.contains(repository) && said.contains("--path"), "{said}");
        let demo = format!("cargo run --release -- demo --{kind} {name}");
        assert!(said.contains(&demo) && read("README.md").contains(&demo), "{said}");
        assert!(read("src/main.rs").contains(&format!(".with_{kind}(policy::ENTRY)")));
        let policy = read("src/policy.rs");
        assert!(policy.contains(&format!("{name:?},")) && !policy.contains("{{"), "{policy}");
    }
}

#[test]
fn a_checkout_is_depended_on_by_its_path() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (status, said) = new(folder.path(), &["cc", "mine", "--path", root.to_str().expect("a path")]);
    assert_eq!(status, Some(0), "{said}");
    let manifest = fs::read_to_string(folder.path().join("mine/Cargo.toml")).expect("written");
    assert!(
        manifest.contains(&format!("ackline-cli = {{ path = {:?} }}", root.join("crates/cli"))),
        "{manifest}"
    );
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(folder.path().join("there")).expect("a folder");
    fs::write(folder.path().join("there/mine.rs"), "mine").expect("a file");
    for (args, status, right) in [
        (&["cc", "cubic"][..], 2, "\"cubic\" is taken: congestion control (cubic: "),
        (&["ack", "linux"], 2, "(linux-like: "),
        (&["cc", "My_CC"], 2, "use lower-case letters, digits and -, beginning with a letter"),
        (
            &["cc", "fn"],
            2,
            "\"fn\" is a keyword of Rust and cannot be the name of a crate; choose another one, such as my-fn",
        ),
        (&["cc", "async"], 2, "is a keyword of Rust"),
        (&["cc", "test"], 2, "is the name of another crate or of a folder of Cargo's"),
        (&["cc", "../up"], 2, "is no name for a policy and its crate"),
        (&["cc", "there"], 5, "there exists already"),
        (
            &["cc", "mine", "--path", "there"],
            2,
            "no checkout of ackline; name the folder that has crates/cli",
        ),
        (&["cc", "mine", "--path", "nowhere"], 5, "cannot read nowhere"),
    ] {
        let (code, said) = new(folder.path(), args);
        assert_eq!(code, Some(status), "{said}");
        assert!(said.starts_with("ackline: ") && said.lines().count() == 1 && said.contains(right), "{said}");
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(left, ["there"]);
    assert_eq!(fs::read_dir(folder.path().join("there")).expect("a folder").count(), 1);
}
