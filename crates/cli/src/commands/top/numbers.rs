//! Numbers of at most five characters.

/// A number with a unit of powers of 1000: `1.23G`, as rates have them.
pub(super) fn decimal(value: f64) -> String {
    short(value, 1000.0)
}

/// A number with a unit of powers of 1024: `64.0K`, as sizes have them.
pub(super) fn binary(value: u64) -> String {
    short(value as f64, 1024.0)
}

fn short(value: f64, base: f64) -> String {
    let (mut value, mut unit) = (value, 0);
    const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];
    // What would be rounded up to the base has the next unit.
    while value >= base - 0.5 && unit + 1 < UNITS.len() {
        value /= base;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", UNITS[unit])
}

/// Nanoseconds as milliseconds: `0.085`, `1.35`, `204`.
pub(super) fn millis(nanos: u64) -> String {
    let value = nanos as f64 / 1e6;
    let digits = match value {
        small if small < 0.9995 => 3,
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// Values as bars, the newest to the right, in `width` characters.
pub(super) fn sparkline(values: impl DoubleEndedIterator<Item = u64> + Clone, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = values.rev().take(width);
    let largest = shown.clone().max().unwrap_or(0);
    let mut bars: Vec<char> = shown
        .map(|value| match value {
            0 => ' ',
            value => {
                let height = (value as f64 / largest as f64 * BARS.len() as f64).ceil() as usize;
                BARS[height.clamp(1, BARS.len()) - 1]
            }
        })
        .collect();
    bars.resize(width, ' ');
    bars.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_characters_are_enough() {
        let shown =
            [0.0, 7.0, 999.0, 999.6, 1_234.0, 12_345.0, 123_456.0, 999_900.0, 1.5e9, 2.0e12].map(decimal);
        assert_eq!(
            shown,
            ["0", "7", "999", "1.00K", "1.23K", "12.3K", "123K", "1.00M", "1.50G", "2.00T"]
                .map(str::to_owned)
        );
        assert_eq!([1023, 1024, 65_536, 1_047_552].map(binary), ["1023", "1.00K", "64.0K", "1023K"]);
        assert_eq!(
            [85_000, 1_350_000, 12_340_000, 204_000_000].map(millis),
            ["0.085", "1.35", "12.3", "204"]
        );
        let mut value = 1.0;
        while value < 1e17 {
            assert!(decimal(value).len() <= 5 && binary(value as u64).len() <= 5, "{value}");
            value *= 1.07;
        }
    }

    #[test]
    fn bars_are_scaled_to_the_largest() {
        let bars = |values: &[u64], width| sparkline(values.iter().copied(), width);
        assert_eq!(bars(&[0, 1, 4, 8], 6), "   ▁▄█");
        assert_eq!(bars(&[800, 1, 2], 2), "▄█", "the newest");
        assert_eq!(bars(&[], 3), "   ");
    }
}
