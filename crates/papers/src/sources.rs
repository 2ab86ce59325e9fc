//! The sources of this program, as the build script saw them.

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The hash of a file of the studies, such as `a3/runs.rs`.
pub(super) fn of_file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, hash)| *hash)
}

/// The name within the studies of a file that the compiler names; `None` if it is none of theirs.
pub(super) fn name_of(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    path.rsplit_once("src/studies/").map(|(_, name)| name.to_owned())
}
