//! Which network namespace an option means.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A network namespace, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NetnsAt {
    /// That of a process.
    Process(u32),
    /// One of `ip netns`.
    Name(String),
    /// One that is kept at a path.
    Path(PathBuf),
}

impl NetnsAt {
    /// The file that stands for it.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Process(pid) => format!("/proc/{pid}/ns/net").into(),
            Self::Name(name) => Path::new("/run/netns").join(name),
            Self::Path(path) => path.clone(),
        }
    }
}

impl FromStr for NetnsAt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(pid) if pid > 0 => Ok(Self::Process(pid)),
            _ if text.contains('/') => Ok(Self::Path(text.into())),
            Err(_) if !matches!(text, "" | "." | "..") => Ok(Self::Name(text.to_owned())),
            _ => Err("not a namespace; write the number of a process, a name of ip netns, or a path"),
        }
    }
}

impl fmt::Display for NetnsAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_process_a_name_or_a_path() {
        let path = |text: &str| text.parse::<NetnsAt>().map(|at| at.path());
        assert_eq!(path("42"), Ok("/proc/42/ns/net".into()));
        assert_eq!(path("web"), Ok("/run/netns/web".into()));
        assert_eq!(path("./42"), Ok("./42".into()));
        for wrong in ["", "0", "..", "."] {
            assert!(path(wrong).is_err(), "{wrong:?}");
        }
    }
}
