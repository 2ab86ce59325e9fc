//! Parts of reports that several commands share, as lines for people and as JSON for programs.

pub(crate) mod egress;
pub(crate) mod error;
pub(crate) mod json_stream;
pub(crate) mod policies;
pub(crate) mod timing;
