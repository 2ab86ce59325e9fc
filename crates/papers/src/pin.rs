//! Pins: misses that are known, from the `pins.toml` beside a study's page.
//!
//! ```toml
//! [[pin]]
//! check = "5/eifel/mean"
//! low = 20.0
//! high = 22.5
//! extent = "whole"
//! reason = "Why the paper's number does not come out."
//! evidence = "settings"
//! ```
//!
//! `low` to `high` is where the miss is expected. It lies outside of the check's own bounds, so
//! that a pinned check never passes silently. `evidence` names a job, a table, a figure or a check
//! of the study that shows the reason. `extent` says for which run the pin holds, `whole` or
//! `quick`; without it for both. Other numbers of seeds and other scales have no pins.

use super::request::Request;
use serde::{Deserialize, Serialize};

/// A check that is known to miss, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The check's id.
    pub check: String,
    /// The smallest number that is expected.
    pub low: f64,
    /// The largest number that is expected.
    pub high: f64,
    /// Why the check misses.
    pub reason: String,
    /// The job, table, figure or check that shows the reason.
    pub evidence: String,
    /// The run for which it holds; `None`: the whole and the quick one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent: Option<Extent>,
}

/// Extent of a study's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// All of it.
    Whole,
    /// `--quick`.
    Quick,
}

impl Extent {
    /// The extent of a request; `None` if its seeds or its scale are not the study's own.
    #[must_use]
    pub const fn of(request: &Request) -> Option<Self> {
        if request.seeds.is_some() || request.scale.is_some() {
            return None;
        }
        Some(if request.quick { Self::Quick } else { Self::Whole })
    }
}

impl Pin {
    /// True if the miss is where it is expected.
    #[must_use]
    pub fn expects(&self, measured: f64) -> bool {
        (self.low..=self.high).contains(&measured)
    }

    /// True if it holds for runs of this extent.
    #[must_use]
    pub fn holds_for(&self, extent: Extent) -> bool {
        self.extent.is_none_or(|own| own == extent)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    pin: Vec<Pin>,
}

/// The pins of a `pins.toml`.
///
/// # Errors
/// What is wrong with it: its TOML, bounds in the wrong order, no reason, a check pinned twice for
/// the same run.
pub fn read(text: &str) -> Result<Vec<Pin>, String> {
    let file: File = toml::from_str(text).map_err(|error| format!("pins.toml: {error}"))?;
    for (place, pin) in file.pin.iter().enumerate() {
        let fault = |message: &str| Err(format!("pins.toml: the pin of {:?} {message}", pin.check));
        if !(pin.low.is_finite() && pin.high.is_finite() && pin.low <= pin.high) {
            return fault("needs finite bounds, low not above high");
        }
        if pin.reason.trim().is_empty() || pin.evidence.trim().is_empty() {
            return fault("needs a reason and what shows it (evidence)");
        }
        let same = |other: &Pin| {
            other.check == pin.check
                && (other.extent.is_none() || pin.extent.is_none() || other.extent == pin.extent)
        };
        if file.pin[..place].iter().any(same) {
            return fault("is there twice for one run");
        }
    }
    Ok(file.pin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(more: &str) -> String {
        format!("[[pin]]\ncheck = \"a\"\nlow = 1.0\nhigh = 2.0\nreason = \"r\"\nevidence = \"e\"\n{more}")
    }

    #[test]
    fn a_check_is_pinned_once_for_each_run() {
        let text = pin("extent = \"whole\"\n") + &pin("extent = \"quick\"\n");
        let pins = read(&text).unwrap();
        assert_eq!(
            (pins.len(), pins[0].extent, pins[1].extent),
            (2, Some(Extent::Whole), Some(Extent::Quick))
        );
        assert!(pins[0].holds_for(Extent::Whole) && !pins[0].holds_for(Extent::Quick));
        assert!(pins[0].expects(2.0) && !pins[0].expects(2.1));
        assert!(read("").unwrap().is_empty());
        let error = read(&(pin("") + &pin("extent = \"quick\"\n"))).unwrap_err();
        assert!(error.contains("the pin of \"a\" is there twice"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_a_pin_is_said() {
        for (text, part) in [
            (pin("").replace("high = 2.0", "high = 0.5"), "low not above high"),
            (pin("").replace("\"r\"", "\" \""), "needs a reason"),
            (pin("seed = 1\n"), "seed"),
            (pin("extent = \"half\"\n"), "half"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with("pins.toml: ") && error.contains(part), "{error}");
        }
    }
}
