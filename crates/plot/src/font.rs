//! The font of the plots: the widths of texts, and the glyphs that a PDF embeds.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId};

/// The font's file, a subset of Roboto: `font/README.md` says which.
pub(super) static FILE: &[u8] = include_bytes!("font/roboto.ttf");

static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(FILE, 0).ok());

/// Width of a character of which nothing is known, in ems.
const USUAL: f64 = 0.55;

/// The font, read; `None` only if its file is damaged.
pub(super) fn face() -> Option<&'static Face<'static>> {
    FACE.as_ref()
}

/// The glyph of a character; that of `?` if the font has none.
pub(super) fn glyph(of: char) -> GlyphId {
    let find = |of| face().and_then(|face| face.glyph_index(of));
    find(of).or_else(|| find('?')).unwrap_or(GlyphId(0))
}

/// The width of a text at a font size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// In ems.
fn advance(of: char) -> f64 {
    let Some(face) = face() else { return USUAL };
    let units = face.glyph_index(of).and_then(|glyph| face.glyph_hor_advance(glyph));
    units.map_or(USUAL, |units| f64::from(units) / f64::from(face.units_per_em()))
}

/// As much of a text as fits `room`, with an ellipsis if that is not all.
pub(super) fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut left = room - width("…", size);
    let fits = |of: &char| {
        left -= advance(*of) * size;
        left >= 0.0
    };
    let begin: String = text.chars().take_while(fits).collect();
    format!("{}…", begin.trim_end())
}

/// The text in lines that fit `room`, broken between words.
pub(super) fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                *line = format!("{line} {word}");
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        assert!(face().is_some());
        // Digits are as wide as each other, so that columns of ticks stand still.
        assert_eq!(width("1111", 10.0), width("8888", 10.0));
        assert!(width("iii", 10.0) < width("mmm", 10.0));
        assert_ne!(glyph('µ'), glyph('?'));
        assert_eq!(glyph('漢'), glyph('?'));
    }

    #[test]
    fn long_texts_are_cut_or_broken_at_the_room() {
        let text = "Smoothed round-trip time over time";
        assert_eq!(shortened(text, 10.0, 1_000.0), text);
        let cut = shortened(text, 10.0, 80.0);
        assert!(cut.ends_with('…') && width(&cut, 10.0) <= 80.0, "{cut}");
        let lines = wrapped(text, 10.0, 80.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 10.0) <= 80.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
    }
}
