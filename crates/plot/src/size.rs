//! The size of a figure on paper.

use std::str::FromStr;

/// Width, and height if it was given, in millimetres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Width, mm.
    pub width: f64,
    /// Height, mm; `None`: as the figure needs it.
    pub height: Option<f64>,
}

/// Units of length, in millimetres.
const UNITS: [(&str, f64); 5] =
    [("mm", 1.0), ("cm", 10.0), ("in", 25.4), ("pt", 25.4 / 72.0), ("px", 25.4 / 96.0)];

impl Size {
    /// Pixels of CSS in a millimetre.
    pub(super) const PIXELS: f64 = 96.0 / 25.4;

    /// Smallest and largest width, and the same of heights, in mm.
    const WIDTHS: (f64, f64) = (40.0, 1_000.0);
    const HEIGHTS: (f64, f64) = (25.0, 1_000.0);
}

/// What is said of a text that is no size.
const RIGHT: &str = "write 88mm, 88mmx60mm, 16x9cm, 3.5x2.5in, 252x180pt or 800x400px";

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no size; {RIGHT}");
        let lower = text.to_ascii_lowercase();
        // The x of px is none between two lengths.
        let (first, second) = match lower.replace("px", "p\0").split_once(['x', ',', '×']) {
            Some((first, second)) => (first.replace('\0', "x"), Some(second.replace('\0', "x"))),
            None => (lower.clone(), None),
        };
        let (width, unit) = length(&first).ok_or_else(wrong)?;
        let (height, other) = match &second {
            Some(second) => length(second).map(|(height, unit)| (Some(height), unit)).ok_or_else(wrong)?,
            None => (None, None),
        };
        let unit_of = |own: Option<f64>| own.or(unit).or(other);
        let missing = || format!("the unit of {text:?} is missing; {RIGHT}");
        // In 16x9cm the unit stands for both.
        let width = width * unit.or(other).ok_or_else(missing)?;
        let height = match height {
            Some(height) => Some(height * unit_of(other).ok_or_else(missing)?),
            None => None,
        };
        let within = |length: f64, (least, most): (f64, f64)| (least - 1e-9..=most + 1e-9).contains(&length);
        if !within(width, Self::WIDTHS) || height.is_some_and(|height| !within(height, Self::HEIGHTS)) {
            return Err(format!(
                "{text:?} is too small or too large; a figure is {} to {} mm wide and {} to {} mm high",
                Self::WIDTHS.0,
                Self::WIDTHS.1,
                Self::HEIGHTS.0,
                Self::HEIGHTS.1
            ));
        }
        Ok(Self { width, height })
    }
}

/// A number, and its unit in millimetres if it has one.
fn length(text: &str) -> Option<(f64, Option<f64>)> {
    let text = text.trim();
    let unit = UNITS.iter().find(|(name, _)| text.ends_with(name));
    let number = unit.map_or(text, |(name, _)| &text[..text.len() - name.len()]).trim();
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)?;
    Some((number, unit.map(|(_, millimetres)| *millimetres)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_units_of_printers_and_screens() {
        for (text, width, height) in [
            ("88mm", 88.0, None),
            ("88mmx60mm", 88.0, Some(60.0)),
            ("16x9cm", 160.0, Some(90.0)),
            ("16cm,9cm", 160.0, Some(90.0)),
            ("3.5inx50mm", 88.9, Some(50.0)),
            ("252 x 180 pt", 88.9, Some(63.5)),
            ("960px x 480px", 254.0, Some(127.0)),
            ("960x480px", 254.0, Some(127.0)),
        ] {
            let size: Size = text.parse().unwrap();
            assert!((size.width - width).abs() < 1e-9, "{text}: {size:?}");
            assert_eq!(size.height.is_some(), height.is_some(), "{text}");
            assert!(
                size.height.zip(height).is_none_or(|(is, right)| (is - right).abs() < 1e-9),
                "{text}: {size:?}"
            );
        }
    }

    #[test]
    fn other_texts_are_answered_with_what_is_right() {
        for (text, said) in [
            ("", "no size"),
            ("large", "no size"),
            ("16x9", "the unit of \"16x9\" is missing"),
            ("88mmx", "no size"),
            ("-88mm", "no size"),
            ("NaNmm", "no size"),
            ("1mm", "too small"),
            ("88mmx2mm", "too small"),
            ("40in", "too large"),
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
