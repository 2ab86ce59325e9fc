//! A canvas as a page of PDF. The font is embedded, as publishers ask for, and text stays text.

use super::canvas::{Anchor, Canvas, Item, Paint, Point, Shape, Text};
use super::font;
use super::palette::Colour;
use pdf_writer::types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};
use std::collections::{BTreeMap, BTreeSet};

/// Points of a pixel: 72 to the inch, and 96.
const POINTS: f64 = 72.0 / 96.0;

const FONT: Name<'static> = Name(b"Roboto-Regular");
const IDENTITY: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// The file. The same canvas gives the same bytes.
pub(super) fn file(canvas: &Canvas, title: &str) -> Vec<u8> {
    let mut ids = (1..).map(Ref::new);
    let mut next = || ids.next().unwrap_or(Ref::new(1));
    let [catalog, pages, page, content, font, info] = [(); 6].map(|()| next());
    let (width, height) = ((canvas.width * POINTS) as f32, (canvas.height * POINTS) as f32);

    let mut writer = Writer { content: Content::new(), alphas: BTreeSet::new(), glyphs: BTreeMap::new() };
    let points = POINTS as f32;
    writer.content.transform([points, 0.0, 0.0, -points, 0.0, height]);
    writer.content.set_line_join(LineJoinStyle::RoundJoin);
    for item in &canvas.items {
        writer.item(item);
    }

    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.document_info(info).title(TextStr(title)).producer(TextStr("ackline"));
    pdf.pages(pages).kids([page]).count(1);
    let mut leaf = pdf.page(page);
    leaf.parent(pages).media_box(Rect::new(0.0, 0.0, width, height)).contents(content);
    let mut resources = leaf.resources();
    resources.fonts().pair(Name(b"F"), font);
    let mut states = resources.ext_g_states();
    for alpha in &writer.alphas {
        let share = f32::from(*alpha) / 100.0;
        states
            .insert(Name(state(*alpha).as_bytes()))
            .start::<pdf_writer::writers::ExtGraphicsState<'_>>()
            .stroking_alpha(share)
            .non_stroking_alpha(share);
    }
    states.finish();
    resources.finish();
    leaf.finish();
    let drawn = packed(&writer.content.finish());
    pdf.stream(content, &drawn).filter(Filter::FlateDecode);
    embed(&mut pdf, font, &mut next, &writer.glyphs);
    pdf.finish()
}

fn packed(data: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(data, 8)
}

/// The name of a state of graphics with so many hundredths of opacity.
fn state(alpha: u8) -> String {
    format!("A{alpha}")
}

/// The font with its widths and the characters of its glyphs, so that text can be searched and
/// copied.
fn embed(pdf: &mut Pdf, id: Ref, next: &mut dyn FnMut() -> Ref, glyphs: &BTreeMap<u16, char>) {
    let Some(face) = font::face() else { return };
    let [cid, descriptor, cmap, data] = [(); 4].map(|()| next());
    let em = |units: i16| f32::from(units) * 1_000.0 / f32::from(face.units_per_em());
    pdf.type0_font(id)
        .base_font(FONT)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(cmap);
    let mut described = pdf.cid_font(cid);
    described
        .subtype(CidFontType::Type2)
        .base_font(FONT)
        .system_info(IDENTITY)
        .font_descriptor(descriptor)
        .default_width(0.0)
        .cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = described.widths();
    for glyph in glyphs.keys() {
        let advance = face.glyph_hor_advance(ttf_parser::GlyphId(*glyph)).unwrap_or(0);
        widths.consecutive(*glyph, [em(advance.cast_signed())]);
    }
    widths.finish();
    described.finish();
    let bounds = face.global_bounding_box();
    pdf.font_descriptor(descriptor)
        .name(FONT)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(em(bounds.x_min), em(bounds.y_min), em(bounds.x_max), em(bounds.y_max)))
        .italic_angle(0.0)
        .ascent(em(face.ascender()))
        .descent(em(face.descender()))
        .cap_height(em(face.capital_height().unwrap_or(1_456)))
        .stem_v(80.0)
        .font_file2(data);
    let mut unicode = UnicodeCmap::new(Name(b"Characters"), IDENTITY);
    for (glyph, character) in glyphs {
        unicode.pair(*glyph, *character);
    }
    let unicode = packed(&unicode.finish());
    pdf.cmap(cmap, &unicode).filter(Filter::FlateDecode);
    let file = packed(font::FILE);
    pdf.stream(data, &file).filter(Filter::FlateDecode).pair(Name(b"Length1"), font::FILE.len() as i32);
}

struct Writer {
    content: Content,
    /// Opacities in use, in hundredths.
    alphas: BTreeSet<u8>,
    /// Glyphs in use, and what they stand for.
    glyphs: BTreeMap<u16, char>,
}

impl Writer {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Stroke { paths, paint, width, dash, .. } => {
                self.stroke_with(*paint, *width);
                let lengths: Vec<f32> = dash.iter().map(|length| (length * width) as f32).collect();
                self.content.set_dash_pattern(lengths, 0.0);
                for path in paths {
                    self.path(path);
                }
                self.content.stroke();
                self.content.set_dash_pattern([], 0.0);
            }
            Item::Fill { outline, paint } => {
                self.fill_with(*paint);
                self.path(outline);
                self.content.close_path().fill_nonzero();
            }
            Item::Marks { shape, size, places, paint } => self.marks(*shape, *size, places, *paint),
            Item::Bars { bars, paint, width } => {
                self.stroke_with(*paint, *width);
                self.content.set_line_cap(LineCapStyle::RoundCap);
                for (x, low, high) in bars {
                    self.path(&[(*x, *low), (*x, *high)]);
                }
                self.content.stroke().set_line_cap(LineCapStyle::ButtCap);
            }
            Item::Text(text) => self.text(text),
            Item::Begin(plot) => {
                let (width, height) = (plot.right - plot.left, plot.bottom - plot.top);
                self.content.save_state();
                self.content.rect(plot.left as f32, plot.top as f32, width as f32, height as f32);
                self.content.clip_nonzero().end_path();
            }
            Item::End => {
                self.content.restore_state();
            }
        }
    }

    fn path(&mut self, points: &[Point]) {
        for (place, (x, y)) in points.iter().enumerate() {
            let (x, y) = (rounded(*x), rounded(*y));
            if place == 0 {
                self.content.move_to(x, y);
            } else {
                self.content.line_to(x, y);
            }
        }
    }

    fn marks(&mut self, shape: Shape, size: f64, places: &[Point], paint: Paint) {
        let r = size / 2.0;
        match shape {
            Shape::Dot => {
                self.stroke_with(paint, size);
                self.content.set_line_cap(LineCapStyle::RoundCap);
                places.iter().for_each(|place| self.path(&[*place, *place]));
                self.content.stroke().set_line_cap(LineCapStyle::ButtCap);
            }
            Shape::Cross => {
                self.stroke_with(paint, Shape::CROSS_WIDTH);
                for (x, y) in places {
                    self.path(&[(x - r, y - r), (x + r, y + r)]);
                    self.path(&[(x + r, y - r), (x - r, y + r)]);
                }
                self.content.stroke();
            }
            Shape::Triangle => {
                self.fill_with(paint);
                for (x, y) in places {
                    self.path(&[(x - r, y - size), (x + r, y - size), (*x, *y)]);
                    self.content.close_path();
                }
                self.content.fill_nonzero();
            }
        }
    }

    fn text(&mut self, text: &Text) {
        self.fill_with(text.paint);
        let width = font::width(&text.text, text.size);
        let before = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let turned = text.turned.to_radians();
        let (sin, cos) = (libm::sin(turned), libm::cos(turned));
        let (x, y) = (text.at.0 - before * cos, text.at.1 - before * sin);
        let mut shown = vec![];
        for character in text.text.chars() {
            let glyph = font::glyph(character);
            self.glyphs.entry(glyph.0).or_insert(character);
            shown.extend(glyph.0.to_be_bytes());
        }
        self.content.begin_text().set_font(Name(b"F"), rounded(text.size));
        // The page grows downwards; letters do not.
        self.content.set_text_matrix([
            cos as f32,
            sin as f32,
            sin as f32,
            -cos as f32,
            rounded(x),
            rounded(y),
        ]);
        self.content.show(Str(&shown)).end_text();
    }

    fn stroke_with(&mut self, paint: Paint, width: f64) {
        let [red, green, blue] = self.colour(paint);
        self.content.set_stroke_rgb(red, green, blue).set_line_width(rounded(width));
    }

    fn fill_with(&mut self, paint: Paint) {
        let [red, green, blue] = self.colour(paint);
        self.content.set_fill_rgb(red, green, blue);
    }

    fn colour(&mut self, paint: Paint) -> [f32; 3] {
        let alpha = libm::round(paint.alpha * 100.0) as u8;
        self.alphas.insert(alpha);
        self.content.set_parameters(Name(state(alpha).as_bytes()));
        match paint.colour {
            Colour::Ink => [0.0; 3],
            Colour::Rgb(red, green, blue) => [red, green, blue].map(|part| f32::from(part) / 255.0),
        }
    }
}

/// To a hundredth.
fn rounded(value: f64) -> f32 {
    (libm::round(value * 100.0) / 100.0) as f32
}
