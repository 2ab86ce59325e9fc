//! The core's modules and the runtime's are in layers, and no import points upwards. `src/lib.rs`
//! is the list of layers. The other crates have no layers, but no circles either.

mod source;

use source::{Import, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Checks the crate in `crates/NAME`, which has at least so many imports.
#[track_caller]
fn check(name: &str, least: usize) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let source = Source::read(&src, &|path| std::fs::read_to_string(path).ok());
    let imports = source.imports();
    assert!(imports.len() > least, "only {} imports found: the check is blind", imports.len());

    let wrong = [upward(&source.layers, &imports), circular(&imports)].concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_import_of_the_core_points_upwards_or_round_in_a_circle() {
    check("tcp-core", 500);
}

#[test]
fn no_import_of_the_runtime_points_upwards_or_round_in_a_circle() {
    check("runtime", 200);
}

/// Checks a crate whose `lib.rs` states no layers: no circle among its modules, nor among the files
/// of one folder.
#[track_caller]
fn check_circles(name: &str, least: usize) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let source = Source::read(&src, &|path| std::fs::read_to_string(path).ok());
    let imports = source.imports();
    assert!(imports.len() > least, "only {} imports found: the check is blind", imports.len());

    let wrong = [circular(&of_modules(&imports)), circular(&imports)].concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_modules_of_the_policies_import_each_other_in_a_circle() {
    check_circles("cc-algos", 50);
    check_circles("ack-policy", 20);
    check_circles("sched", 20);
}

#[test]
fn no_modules_of_simulator_and_laboratory_import_each_other_in_a_circle() {
    check_circles("netsim", 100);
    check_circles("lab", 150);
    check_circles("emulate", 20);
}

#[test]
fn no_modules_of_the_instruments_import_each_other_in_a_circle() {
    check_circles("observe", 30);
    check_circles("explain", 50);
    check_circles("drill", 20);
}

#[test]
fn no_modules_of_the_adapters_import_each_other_in_a_circle() {
    check_circles("netstack", 20);
}

#[test]
fn no_modules_of_the_command_import_each_other_in_a_circle() {
    check_circles("cli", 200);
}

/// The imports between modules of the crate's root, as if these were files of one folder.
fn of_modules(imports: &[Import]) -> Vec<Import> {
    let outside = imports.iter().filter(|it| it.from[0] != it.to[0]);
    let root = |module: &[String]| vec!["crate".to_owned(), module[0].clone()];
    outside.map(|it| Import { from: root(&it.from), to: root(&it.to), ..it.clone() }).collect()
}

/// The imports that do not point to a lower layer.
fn upward(layers: &[Vec<String>], imports: &[Import]) -> Vec<String> {
    let layer_of: BTreeMap<_, _> =
        layers.iter().enumerate().flat_map(|(at, layer)| layer.iter().map(move |name| (name, at))).collect();
    let layer = |module: &[String]| layer_of[&module[0]];
    let wrong = imports.iter().filter(|it| it.from[0] != it.to[0] && layer(&it.to) >= layer(&it.from));
    wrong.map(|it| format!("{it} is not below `{}` in the layers of lib.rs", it.from[0])).collect()
}

/// The imports among files of one folder by which these import one another in a circle. A folder's
/// own file does not count: it declares the type that the others give methods.
fn circular(imports: &[Import]) -> Vec<String> {
    let inside =
        |it: &&Import| it.from[0] == it.to[0] && !it.from.starts_with(&it.to) && !it.to.starts_with(&it.from);
    let mut targets: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for import in imports.iter().filter(inside) {
        targets.entry(&import.from).or_default().insert(&import.to);
    }
    let reaches = |from, goal| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(module) = todo.pop() {
            if module == goal {
                return true;
            }
            if seen.insert(module) {
                todo.extend(targets.get(module).into_iter().flatten());
            }
        }
        false
    };
    let wrong = imports.iter().filter(inside).filter(|it| reaches(&it.to, &it.from));
    wrong.map(|it| format!("{it} closes a circle: that module imports this one in turn")).collect()
}

/// What is wrong in a crate of these files.
fn judge(files: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<_, _> = files.iter().map(|(name, text)| (PathBuf::from(name), *text)).collect();
    let source = Source::read(Path::new(""), &|path| files.get(path).map(|text| (*text).to_owned()));
    let imports = source.imports();
    [upward(&source.layers, &imports), circular(&imports)].concat()
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
    let wrong = judge(&files);
    let found: Vec<_> = wrong.iter().map(|it| it.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(found, wanted, "{text}");
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
fn circle_of_modules_is_found_where_there_are_no_layers() {
    let import = |from: &[&str], to: &[&str]| {
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Import { file: "x.rs".into(), line: 1, from: path(from), to: path(to), path: to.join("::") }
    };
    let straight = [import(&["a", "deep"], &["b"]), import(&["b"], &["c"]), import(&["a"], &["c"])];
    assert_eq!(circular(&of_modules(&straight)), <[String; 0]>::default());
    let round = [&straight[..], &[import(&["c"], &["a", "other"])]].concat();
    assert_eq!(circular(&of_modules(&round)).len(), 4);
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
    assert_eq!(judge(&files), <[String; 0]>::default());
    let mut files = files;
    files[4].1 = "\n\nuse crate::top::one::One;";
    let wrong = judge(&files);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong.iter().any(|it| it.starts_with("src/top/three.rs:3: crate::top::one::One ")), "{wrong:?}");
}
