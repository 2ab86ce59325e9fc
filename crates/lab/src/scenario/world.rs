//! What a host is: in the simulation, a stack, or the kernel's TCP.

/// The world that a host belongs to: what a scenario's `world` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum World {
    /// The simulator, which is never late.
    #[default]
    Virtual,
    /// A stack of ackline with the runtime's driver.
    Live,
    /// The kernel's TCP, in a network namespace.
    Kernel,
}

impl World {
    /// Its name in a scenario.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Live => "live",
            Self::Kernel => "kernel",
        }
    }
}

/// Settings of the kernel's TCP on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// The congestion control; `None`: that of the flow.
    pub cc: Option<KernelSetting>,
    /// Those of sysctl(8), by its names.
    pub sysctls: Vec<KernelSetting>,
}

/// A setting of the kernel, and where the scenario has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// File, line, column and key, for errors.
    pub place: String,
}
