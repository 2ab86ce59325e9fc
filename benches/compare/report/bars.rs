//! The picture of throughput: a panel of bars for each kind of packets, as SVG that is dark if the
//! reader's screen is.

use super::tables::{RECEIVE, SEND};
use super::text::number;
use crate::case::{Case, Contestant, GVISOR_PACKET, GVISOR_PLAIN, KERNEL, PACKET, PLAIN, SMOLTCP, TUN};
use crate::results::{Metric, Results, Setting, Summary};
use std::fmt::Write as _;

/// What is side by side: with the same size of packets on its device.
const PANELS: [(&str, &[Contestant]); 2] = [
    ("Super-packets of up to 64 KiB", &[KERNEL, TUN, PACKET, GVISOR_PACKET]),
    ("Single packets of 1500 bytes (another scale)", &[PLAIN, SMOLTCP, GVISOR_PLAIN]),
];

const WIDTH: f64 = 760.0;
/// Where bars begin, and how long the scale is; behind it there is room for a number.
const LEFT: f64 = 176.0;
const SCALE: f64 = 440.0;
const BAR: f64 = 15.0;
/// From one contestant to the next, beside its bars.
const GAP: f64 = 11.0;
/// Above a panel: its heading. Below: the numbers of its scale.
const HEADING: f64 = 34.0;
const TICKS: f64 = 34.0;

const STYLE: &str = "<style>\
    svg{font:13px system-ui,sans-serif;background:#fff;fill:#1d2228;stroke:#1d2228}\
    text{stroke:none}.h{font-weight:600}.s{font-size:12px;opacity:.75}.g{opacity:.15}\
    .a{fill:#3b82c4;stroke:none}.b{fill:#e07b39;stroke:none}\
    @media(prefers-color-scheme:dark){svg{background:#0d1117;fill:#d8dde3;stroke:#d8dde3}}\
    </style>";

/// One flow, sending and receiving, medians with the range of the rounds. `None` without results.
pub(crate) fn throughput(results: &Results) -> Option<String> {
    let (mut body, mut y) = (String::new(), 40.0);
    for (heading, contestants) in PANELS {
        let rows = contestants.iter().filter_map(|contestant| Row::of(results, contestant));
        y = panel(&mut body, y, heading, &rows.collect::<Vec<_>>());
    }
    if body.is_empty() {
        return None;
    }
    let height = y + 22.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Throughput of one flow in Gbit/s\">{STYLE}\n"
    );
    text(&mut svg, 8.0, 22.0, "h", "Throughput of one flow to or from the kernel's TCP, Gbit/s");
    for (x, class, word) in [(LEFT + SCALE - 20.0, "a", "sends"), (LEFT + SCALE + 56.0, "b", "receives")] {
        let _ = writeln!(svg, "<rect class=\"{class}\" x=\"{x}\" y=\"12\" width=\"12\" height=\"12\"/>");
        text(&mut svg, x + 17.0, 22.0, "", word);
    }
    svg += &body;
    text(&mut svg, 8.0, y + 8.0, "s", &footnote(&results.setting));
    Some(svg + "</svg>\n")
}

fn footnote(setting: &Setting) -> String {
    let (rounds, seconds, place) = (setting.rounds, setting.seconds, setting.place());
    format!("Bars: medians of {rounds} rounds of {seconds} s. Thin lines: the range. {place}.")
}

/// A contestant's bars.
struct Row {
    label: &'static str,
    /// By the class of its colour.
    bars: Vec<(&'static str, Summary)>,
}

impl Row {
    fn of(results: &Results, contestant: &Contestant) -> Option<Self> {
        let bar = |class, act| {
            let case = Case { contestant: *contestant, act };
            Some((class, results.summary(&case, Metric::GbitPerSecond)?))
        };
        let bars: Vec<_> = [bar("a", SEND), bar("b", RECEIVE)].into_iter().flatten().collect();
        (!bars.is_empty()).then_some(Self { label: contestant.label, bars })
    }
}

/// Draws below `top`; where it ends.
fn panel(out: &mut String, top: f64, heading: &str, rows: &[Row]) -> f64 {
    let most = rows.iter().flat_map(|row| &row.bars).map(|(_, value)| value.max).fold(0.0, f64::max);
    if most <= 0.0 {
        return top;
    }
    let step = step(most);
    let end = (most / step).ceil() * step;
    let x = |value: f64| LEFT + SCALE * value / end;

    text(out, 8.0, top + 20.0, "h", heading);
    let first = top + HEADING;
    let heights = rows.iter().map(|row| row.bars.len() as f64 * BAR + GAP);
    let bottom = first + heights.sum::<f64>();
    for tick in 0..=(end / step).round() as u32 {
        let value = f64::from(tick) * step;
        let at = x(value);
        let _ = writeln!(
            out,
            "<path class=\"g\" d=\"M{at:.1} {first:.1}V{bottom:.1}\"/>\
             <text class=\"s\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 15.0,
            // Steps are 1, 2 or 5 times a power of ten.
            if step < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") },
        );
    }
    let mut y = first + GAP / 2.0;
    for Row { label, bars } in rows {
        let middle = y + bars.len() as f64 * BAR / 2.0 + 4.5;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0
        );
        for (class, Summary { median, min, max }) in bars {
            let (length, low, high, centre) = (x(*median) - LEFT, x(*min), x(*max), y + BAR / 2.0);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\"/>\
                 <path d=\"M{low:.1} {centre:.1}H{high:.1}\"/>",
                y + 1.0,
                BAR - 2.0,
            );
            text(out, high.max(x(*median)) + 6.0, centre + 4.5, "", &number(*median));
            y += BAR;
        }
        y += GAP;
    }
    bottom + TICKS
}

/// Between the numbers of a scale that goes to `most`: 1, 2 or 5 times a power of ten, at most five
/// of them.
fn step(most: f64) -> f64 {
    let mut power = 0.01;
    loop {
        for digit in [1.0, 2.0, 5.0] {
            if digit * power * 5.0 >= most {
                return digit * power;
            }
        }
        power *= 10.0;
    }
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}
