//! Colours and dashes: how the series of a figure are told apart.

use serde::{Deserialize, Serialize};

/// What something is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// That of the page's text.
    Ink,
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// Six colours of Okabe and Ito ("Color Universal Design", 2008), which people see as different who
/// lack one kind of cone, on white and on black; and a brown.
const COLOURS: [Colour; 7] = [
    Colour::Rgb(0x00, 0x72, 0xb2),
    Colour::Rgb(0xd5, 0x5e, 0x00),
    Colour::Rgb(0x00, 0x9e, 0x73),
    Colour::Rgb(0xcc, 0x79, 0xa7),
    Colour::Rgb(0xe6, 0x9f, 0x00),
    Colour::Rgb(0x56, 0xb4, 0xe9),
    Colour::Rgb(0xa0, 0x5a, 0x2c),
];

/// Series before dashes have to tell them apart.
pub const HUES: usize = COLOURS.len();

/// In widths of the line: drawn, left out, and so on.
const DASHES: [&[f64]; 5] = [&[], &[5.0, 2.5], &[1.0, 2.0], &[7.0, 2.0, 1.0, 2.0], &[2.5, 2.0]];

/// Series that have a look of their own.
pub(super) const SERIES: usize = COLOURS.len() * DASHES.len();

/// How a series looks, the same in all charts in which it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// The first that is free in the figure; lines with the same label share one.
    #[default]
    Auto,
    /// The n-th: first all colours, then the same with dashes.
    Series(usize),
    /// The colour of the n-th, dashed: something that belongs to it, such as a threshold.
    Beside(usize),
    /// As text: for what belongs to no series.
    Ink,
}

/// The colour of the n-th series; past the last one, that of the text.
pub(super) fn colour(series: usize) -> Colour {
    if series < SERIES { COLOURS[series % COLOURS.len()] } else { Colour::Ink }
}

/// The dashes of the n-th series.
pub(super) fn dash(series: usize) -> &'static [f64] {
    if series < SERIES { DASHES[series / COLOURS.len()] } else { &[] }
}

/// The dashes of what stands beside a series.
pub(super) const BESIDE: &[f64] = DASHES[1];

#[cfg(test)]
mod tests {
    use super::*;

    /// What somebody sees who lacks a kind of cone, in linear light: Machado, Oliveira and
    /// Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
    /// severity 1.
    const SIGHTS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    fn linear(colour: Colour) -> [f64; 3] {
        let Colour::Rgb(red, green, blue) = colour else { panic!("{colour:?} has no numbers") };
        [red, green, blue].map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { libm::pow((part + 0.055) / 1.055, 2.4) }
        })
    }

    /// L*, a*, b* of CIE 1976, for light of D65.
    fn lab([red, green, blue]: [f64; 3]) -> [f64; 3] {
        let x = 0.412_4 * red + 0.357_6 * green + 0.180_5 * blue;
        let y = 0.212_6 * red + 0.715_2 * green + 0.072_2 * blue;
        let z = 0.019_3 * red + 0.119_2 * green + 0.950_5 * blue;
        let [x, y, z] = [x / 0.950_47, y, z / 1.088_83].map(|part| {
            if part > 0.008_856 { libm::cbrt(part) } else { 7.787 * part.max(0.0) + 16.0 / 116.0 }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn colours_are_told_apart_by_everybody() {
        for (sight, matrix) in SIGHTS.iter().enumerate() {
            let seen = COLOURS.map(|colour| {
                let [red, green, blue] = linear(colour);
                lab(matrix.map(|[r, g, b]| (r * red + g * green + b * blue).clamp(0.0, 1.0)))
            });
            for (one, a) in seen.iter().enumerate() {
                for (other, b) in seen.iter().enumerate().skip(one + 1) {
                    let distance = libm::sqrt(a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum());
                    assert!(distance > 15.0, "sight {sight}: {one} and {other} are {distance:.1} apart");
                }
            }
        }
    }

    #[test]
    fn no_look_stands_for_two_series() {
        let looks: Vec<_> = (0..SERIES).map(|series| (colour(series), dash(series))).collect();
        for (place, look) in looks.iter().enumerate() {
            assert!(!looks[place + 1..].contains(look), "{place}");
        }
        assert_eq!(colour(SERIES), Colour::Ink);
    }
}
