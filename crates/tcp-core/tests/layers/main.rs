//! No modules of a crate import each other in a circle. Those of the core and of the runtime are in
//! layers as well, and no import points upwards: `src/lib.rs` is the list of layers. And no folder
//! has too many files to be read as a list.

mod source;

use source::{Import, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates whose `lib.rs` lists its modules in layers.
const LAYERED: [&str; 2] = ["tcp-core", "runtime"];

/// Files of a folder at most, without those in its folders.
const MOST_FILES: usize = 20;

/// Each crate, with imports that it has at least: fewer, and the test is blind.
const CRATES: [(&str, usize); 18] = [
    ("ack-policy", 20),
    ("capi", 10),
    ("cc-algos", 50),
    ("cli", 200),
    ("drill", 20),
    ("emulate", 20),
    ("explain", 50),
    ("lab", 150),
    ("netsim", 100),
    ("netstack", 20),
    ("observe", 30),
    ("papers", 100),
    ("plot", 20),
    ("proxy", 20),
    ("registry", 1),
    ("runtime", 200),
    ("sched", 20),
    ("tcp-core", 500),
];

#[test]
fn no_import_points_upwards_or_round_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = vec![];
    for (name, least) in CRATES {
        let source = Source::read(&crates.join(name).join("src"), &|path| std::fs::read_to_string(path).ok());
        let imports = source.imports();
        let found = imports.len();
        assert!(found >= least, "only {found} imports found in {name}: the check is blind");
        if LAYERED.contains(&name) {
            wrong.extend(upward(&source.layers, &imports).into_iter().map(|it| format!("{name}: {it}")));
        }
        wrong.extend(files_in_circles(&imports).into_iter().map(|it| format!("{name}: {it}")));
        let circles = circles(&imports).into_iter().flat_map(|(_, edges)| edges);
        wrong.extend(circles.map(|(.., it)| format!("{name}: {}", closes(it))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_is_checked() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = std::fs::read_dir(crates).expect("the crates").map(|it| it.expect("a folder").file_name());
    let folders: BTreeSet<_> = folders.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(CRATES.map(|(name, _)| name.to_owned()), *folders.into_iter().collect::<Vec<_>>());
}

#[test]
fn folders_are_small() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<_> = CRATES.iter().map(|(name, _)| crates.join(name).join("src")).collect();
    let mut large = vec![];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("a folder of sources");
        let paths = entries.map(|it| it.expect("an entry").path());
        let (inner, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
        if files.len() > MOST_FILES {
            large.push(format!(
                "{} has {} files: group them by what they are about",
                folder.display(),
                files.len()
            ));
        }
        folders.extend(inner);
    }
    assert!(large.is_empty(), "{}", large.join("\n"));
}

/// The imports that do not point to a lower layer.
fn upward(layers: &[Vec<String>], imports: &[Import]) -> Vec<String> {
    let layer_of: BTreeMap<_, _> =
        layers.iter().enumerate().flat_map(|(at, layer)| layer.iter().map(move |name| (name, at))).collect();
    let layer = |module: &[String]| layer_of[&module[0]];
    let wrong = imports.iter().filter(|it| it.from[0] != it.to[0] && layer(&it.to) >= layer(&it.from));
    wrong.map(|it| format!("{it} is not below `{}` in the layers of lib.rs", it.from[0])).collect()
}

/// The imports by which modules of one folder import one another in a circle, each with all that is
/// below it. A folder's own file does not count: it declares the type that the others give methods.
fn circles(imports: &[Import]) -> Vec<(&[String], Vec<Edge<'_>>)> {
    // An import belongs to the folder that has both modules, and joins the two entries there.
    let mut folders: BTreeMap<&[String], Vec<Edge<'_>>> = BTreeMap::new();
    for import in imports {
        let (from, to) = (&import.from, &import.to);
        let depth = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(here), Some(there)) = (from.get(depth), to.get(depth)) {
            folders.entry(&from[..depth]).or_default().push((here, there, import));
        }
    }
    folders.into_iter().map(|(folder, edges)| (folder, in_circles(&edges))).collect()
}

/// Two entries of a folder, and the import by which the first one needs the second.
type Edge<'a> = (&'a String, &'a String, &'a Import);

fn closes(import: &Import) -> String {
    format!("{import} closes a circle: that module imports this one in turn")
}

/// Those of `edges` from whose end a way leads back to their beginning.
fn in_circles<'a>(edges: &[Edge<'a>]) -> Vec<Edge<'a>> {
    let mut targets: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (from, to, _) in edges {
        targets.entry(from).or_default().insert(to);
    }
    let reached = |from| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(module) = todo.pop() {
            if seen.insert(module) {
                todo.extend(targets.get(module).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = edges.iter().map(|(_, to, _)| (*to, reached(*to))).collect();
    edges.iter().filter(|(from, to, _)| reached[to].contains(from)).copied().collect()
}

/// [`circles`] among single files of one module of the crate, wherever they are in it.
fn files_in_circles(imports: &[Import]) -> Vec<String> {
    let inside =
        |it: &&Import| it.from[0] == it.to[0] && !it.from.starts_with(&it.to) && !it.to.starts_with(&it.from);
    let paths: Vec<_> =
        imports.iter().filter(inside).map(|it| (it.from.join("::"), it.to.join("::"), it)).collect();
    let edges: Vec<Edge<'_>> = paths.iter().map(|(from, to, it)| (from, to, *it)).collect();
    in_circles(&edges).iter().map(|(.., it)| closes(it)).collect()
}

/// All imports that are in circles.
fn circular(imports: &[Import]) -> Vec<String> {
    circles(imports).iter().flat_map(|(_, edges)| edges.iter().map(|(.., it)| closes(it))).collect()
}

/// The layers and imports of a crate of these files.
fn read(files: &[(&str, &str)]) -> (Vec<Vec<String>>, Vec<Import>) {
    let files: BTreeMap<_, _> = files.iter().map(|(name, text)| (PathBuf::from(name), *text)).collect();
    let source = Source::read(Path::new(""), &|path| files.get(path).map(|text| (*text).to_owned()));
    let imports = source.imports();
    (source.layers, imports)
}

/// Three layers: `low`, then `a` and `b` side by side, then the folder `top`. `high` is exported
/// from `top`.
const LIB: &str = "
    pub mod low;

    mod a;
    mod b;

    mod top;

    pub use top::{Thing, deep::Other};
";
const TOP: &str = "mod deep; use crate::a::f; use deep::Other; pub struct Thing;";

#[track_caller]
fn refused(name: &str, text: &str, wanted: &[&str]) {
    let mut files =
        vec![("lib.rs", LIB), ("top/mod.rs", TOP), ("top/deep.rs", "use super::Thing; pub struct Other;")];
    files.extend(
        [("low.rs", ""), ("a.rs", "use crate::low::Low;"), ("b.rs", "")].iter().filter(|it| it.0 != name),
    );
    files.retain(|it| it.0 != name);
    files.push((name, text));
    let (layers, imports) = read(&files);
    let wrong = upward(&layers, &imports);
    let found: Vec<_> = wrong.iter().map(|it| it.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(found, wanted, "{text}");
    if wanted.is_empty() {
        assert_eq!(circular(&imports), <[String; 0]>::default(), "{text}");
    }
}

#[test]
fn imports_from_below_and_inside_a_folder_pass() {
    refused("low.rs", "", &[]);
    refused("b.rs", "use crate::low::{self, Low as L}; fn f() -> crate::low::Low { self::g() }", &[]);
    refused("top/deep.rs", "use super::Thing; use crate::b; fn f() { super::super::low::g() }", &[]);
}

#[test]
fn upward_import_is_found_in_every_form() {
    refused("low.rs", "\nuse crate::a::f;", &["src/low.rs:2: crate::a::f"]);
    refused(
        "low.rs",
        "use crate::{a::{self, f}, b};",
        &["src/low.rs:1: crate::a", "src/low.rs:1: crate::a::f", "src/low.rs:1: crate::b"],
    );
    refused("low.rs", "use crate::a::*;", &["src/low.rs:1: crate::a"]);
    refused("low.rs", "use super::top::Thing as T;", &["src/low.rs:1: crate::top::Thing"]);
    refused("low.rs", "fn f() {\n crate::a::f();\n}", &["src/low.rs:2: crate::a::f"]);
    refused("low.rs", "fn f(x: u8) -> Vec<crate::b::B> { vec![] }", &["src/low.rs:1: crate::b::B"]);
    refused("low.rs", "fn f(x: u8) -> bool { matches!(x, crate::a::ONE) }", &["src/low.rs:1: crate::a::ONE"]);
    refused("low.rs", "mod inner { use super::super::a::f; }", &["src/low.rs:1: crate::a::f"]);
}

#[test]
fn name_that_the_crate_exports_is_looked_up() {
    refused("low.rs", "use crate::Thing;", &["src/low.rs:1: crate::Thing"]);
    refused("low.rs", "use crate::Other;", &["src/low.rs:1: crate::Other"]);
}

#[test]
fn modules_side_by_side_do_not_import_each_other() {
    refused("b.rs", "use crate::a::f;", &["src/b.rs:1: crate::a::f"]);
    refused("a.rs", "use crate::b;", &["src/a.rs:1: crate::b"]);
}

#[test]
fn what_only_tests_compile_does_not_count() {
    refused("low.rs", "#[cfg(test)] mod tests { use crate::a::f; }", &[]);
    refused("low.rs", "#[cfg(test)] use crate::a::f;", &[]);
    refused("low.rs", "struct L; impl L { #[cfg(test)] fn f() { crate::a::f() } }", &[]);
    refused("low.rs", "/// See [`f`](crate::a::f).\nstruct L;", &[]);
}

#[test]
fn circle_of_folders_is_found_though_no_files_import_each_other() {
    let import = |from: &[&str], to: &[&str]| {
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Import { file: "x.rs".into(), line: 1, from: path(from), to: path(to), path: to.join("::") }
    };
    for folder in [&[][..], &["top"], &["top", "deep"]] {
        let import = |from: &[&str], to: &[&str]| import(&[folder, from].concat(), &[folder, to].concat());
        let straight = [import(&["a", "deep"], &["b"]), import(&["b"], &["c"]), import(&["a"], &["c"])];
        assert_eq!(circular(&straight), <[String; 0]>::default());
        let round = [&straight[..], &[import(&["c"], &["a", "other"])]].concat();
        assert_eq!(circular(&round).len(), 4);
    }
}

#[test]
fn circle_inside_a_folder_is_found() {
    let files = [
        ("lib.rs", "mod top;"),
        ("top/mod.rs", "mod one; mod two; mod three;"),
        ("top/one.rs", "use super::two::Two;"),
        ("top/two.rs", "use super::three::Three;"),
        ("top/three.rs", ""),
    ];
    assert_eq!(circular(&read(&files).1), <[String; 0]>::default());
    let mut files = files;
    files[4].1 = "\n\nuse crate::top::one::One;";
    let wrong = circular(&read(&files).1);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong.iter().any(|it| it.starts_with("src/top/three.rs:3: crate::top::one::One ")), "{wrong:?}");
}
