//! Where live runs took place.

use serde::{Deserialize, Serialize};

/// What live runs depend on, beside their scenario and the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release, as `uname -r` has it.
    pub kernel: String,
    /// The kernel's congestion controls.
    pub controls: Vec<String>,
    /// How super-packets pass: `off`, if hosts have no segmentation offload.
    pub offload: String,
    /// How the emulator waits for departures: `timer` or `spin`.
    pub pacing: String,
    /// The priority of the emulator's thread; `None`: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}
