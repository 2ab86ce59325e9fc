//! The option of a benchmark that draws nothing, in place of those of `compare`.

use crate::results::Results;
use clap::Args;
use std::path::Path;

/// Draws none.
#[derive(Debug, Args)]
pub(crate) struct Pictures {}

impl Pictures {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in benches/compare")]
    pub(crate) fn draw(&self, _: &Results) -> Result<Vec<(&Path, String)>, String> {
        Ok(Vec::new())
    }
}
