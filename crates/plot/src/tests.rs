//! What a reader sees of a figure: axes, colours, marks, sizes.

use super::*;

fn line(label: &str, points: &[(f64, f64)]) -> Line {
    Line { label: label.to_owned(), points: points.to_vec(), ..Line::default() }
}

fn chart() -> Chart {
    Chart {
        name: "test".to_owned(),
        title: "A < B".to_owned(),
        x_label: "time (s)".to_owned(),
        y_label: "Mbit/s".to_owned(),
        from_zero: true,
        lines: vec![line("one", &[(0.0, 1.0), (1.0, 3.0)]), line("two", &[(0.0, 2.0), (1.0, 2.5)])],
        ..Chart::default()
    }
}

/// The texts of an SVG.
fn texts(svg: &str) -> Vec<&str> {
    let ends = svg.split("</text>").filter_map(|part| part.rsplit_once('>'));
    ends.map(|(_, text)| text).filter(|text| !text.is_empty()).collect()
}

/// Every number of an attribute of an SVG.
fn attribute<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    let opening = format!(" {name}=\"");
    svg.split(&opening).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn a_plot_takes_the_colour_of_its_page() {
    let svg = chart().to_svg();
    assert!(svg.starts_with("<svg ") && svg.contains("aria-label=\"A &lt; B\""), "{}", &svg[..200]);
    assert!(svg.contains("currentColor") && !svg.contains("<style"));
    assert!(texts(&svg).contains(&"A &lt; B") && texts(&svg).contains(&"time (s)"), "{:?}", texts(&svg));
    let file = String::from_utf8(chart().to_file(&PlotOptions::default())).unwrap();
    assert!(file.contains("prefers-color-scheme"));
}

#[test]
fn nothing_to_draw_is_no_error() {
    let empty = Chart { x: Kind::Log, y: Kind::Log, ..Chart::default() };
    assert!(empty.is_empty());
    let nothing = Panels::default();
    for svg in [empty.to_svg(), nothing.to_svg(), HeatMap::default().to_svg()] {
        assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn what_is_not_finite_or_has_no_logarithm_moves_no_axis() {
    let values = [(0.0, 10.0), (1.0, f64::INFINITY), (2.0, f64::NAN), (3.0, 20.0)];
    let svg = Chart { lines: vec![line("", &values)], ..chart() }.to_svg();
    assert!(texts(&svg).contains(&"20") && !svg.contains("NaN") && !svg.contains("inf"), "{:?}", texts(&svg));
    let zero =
        Chart { lines: vec![line("", &[(0.0, 0.0), (1.0, 1.0), (2.0, 100.0)])], y: Kind::Log, ..chart() };
    let svg = zero.to_svg();
    assert!(["1", "10", "100"].iter().all(|tick| texts(&svg).contains(tick)), "{:?}", texts(&svg));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_level_stretches_its_axis_only_as_far_as_lines_stay_readable() {
    let with = |at: f64| Chart { references: vec![Reference::level(at, "link rate")], ..chart() }.to_svg();
    assert!(texts(&with(5.0)).contains(&"link rate"));
    let far = with(1_000.0);
    assert!(!texts(&far).contains(&"link rate") && texts(&far).contains(&"3.0"), "{:?}", texts(&far));
}

#[test]
fn marks_spans_and_references_are_there() {
    let styles = [Style::Points, Style::Dots, Style::Crosses, Style::Triangles];
    let mut marked = chart();
    marked.lines.extend(styles.map(|style| Line { style, ..line("", &[(0.5, 2.0)]) }));
    marked.lines.push(Line { style: Style::Bars, band: vec![(0.25, 1.0, 1.5)], ..Line::default() });
    let plain = chart().to_svg();
    marked.spans.push(Span { from: 0.25, until: 1.0, label: "measured".to_owned() });
    marked.references.push(Reference::upright(0.5, "timeout"));
    let svg = marked.to_svg();
    assert_eq!(svg.matches("<path").count(), plain.matches("<path").count() + 4 + 1 + 1 + 1);
    assert!(texts(&svg).contains(&"measured") && texts(&svg).contains(&"timeout"), "{:?}", texts(&svg));
}

#[test]
fn no_two_labels_look_the_same_and_one_label_looks_the_same_everywhere() {
    let names: Vec<String> = (0..30).map(|place| format!("flow {place}")).collect();
    let lines = |names: &[String]| names.iter().map(|name| line(name, &[(0.0, 1.0), (1.0, 2.0)])).collect();
    let first = Chart { lines: lines(&names), ..chart() };
    let svg = first.to_svg();
    let drawn = svg.lines().filter(|line| line.contains("stroke=\"#"));
    let look = |line: &str| line.split(" d=").next().unwrap_or_default().to_owned();
    let mut looks: Vec<String> =
        drawn.filter(|line| line.contains("l") && !line.contains("stroke-width=\"2.0")).map(look).collect();
    looks.sort();
    let all = looks.len();
    looks.dedup();
    assert!(looks.len() >= 30, "{} of {all} are different", looks.len());
    // Another order of the same flows.
    let second = Chart { lines: lines(&names[..3].iter().rev().cloned().collect::<Vec<_>>()), ..chart() };
    let pair =
        Panels { charts: vec![Chart { lines: lines(&names[..3]), ..chart() }, second], ..Panels::default() };
    let svg = pair.to_svg();
    for colour in ["#0072b2", "#d55e00", "#009e73"] {
        assert_eq!(svg.matches(colour).count(), 3, "one in the legend, one in each plot: {svg}");
    }
}

#[test]
fn a_legend_says_how_many_it_has_no_room_for() {
    let names: Vec<String> =
        (0..60).map(|place| format!("a flow with a long name, number {place}")).collect();
    let lines = names.iter().map(|name| line(name, &[(0.0, 1.0), (1.0, 2.0)])).collect();
    let svg = Chart { lines, ..chart() }.to_svg();
    let more = texts(&svg).into_iter().find(|text| text.starts_with("and ")).unwrap().to_owned();
    let named = texts(&svg).iter().filter(|text| text.starts_with("a flow")).count();
    assert_eq!(more, format!("and {} more", 60 - named));
}

#[test]
fn panels_share_axes_and_stand_edge_to_edge() {
    let tall = Chart {
        lines: vec![line("one", &[(0.0, 0.0), (9.0, 40_000.0)])],
        title: "windows".to_owned(),
        ..chart()
    };
    let panels = Panels { charts: vec![chart(), tall], columns: 1, same_x: true, ..Panels::default() };
    let svg = panels.to_svg();
    // The numbers of the common axis stand once, and both plots begin at the same place.
    assert_eq!(texts(&svg).iter().filter(|text| **text == "8").count(), 1, "{:?}", texts(&svg));
    let plots: Vec<&str> = svg.split("<svg x=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(plots.len() == 2 && plots[0] == plots[1], "{plots:?}");
    assert!(texts(&svg).contains(&"windows"));
}

#[test]
fn a_figure_is_as_large_as_it_should_be() {
    let options = PlotOptions { size: Some("88mmx60mm".parse().unwrap()), ..PlotOptions::default() };
    let panels =
        Panels { charts: vec![chart(); 4], columns: 2, same_x: true, same_y: true, ..Panels::default() };
    for file in [chart().to_file(&options), panels.to_file(&options), HeatMap::default().to_file(&options)] {
        let svg = String::from_utf8(file).unwrap();
        assert!(svg.contains("width=\"88mm\" height=\"60mm\""), "{}", &svg[..300]);
        // 88 mm are 332.6 pixels.
        let beyond = attribute(&svg, "x").iter().any(|x| x.parse::<f64>().unwrap() > 332.7);
        assert!(!beyond && svg.contains("viewBox=\"0 0 332.6 226.77\""), "{}", &svg[..300]);
    }
    let wide = PlotOptions { size: Some("88mm".parse().unwrap()), ..options };
    assert!(String::from_utf8(chart().to_file(&wide)).unwrap().contains("width=\"88mm\" height=\""));
}

#[test]
fn a_title_can_be_left_to_the_caption() {
    let options = PlotOptions { untitled: true, ..PlotOptions::default() };
    let svg = String::from_utf8(chart().to_file(&options)).unwrap();
    assert!(!texts(&svg).contains(&"A &lt; B") && svg.contains("aria-label=\"A &lt; B\""));
    // No caption says what only this run can.
    let late = Chart { title: marked("A < B", "it was late"), ..chart() };
    let svg = String::from_utf8(late.to_file(&options)).unwrap();
    assert!(texts(&svg).contains(&"INVALID: it was late"), "{svg}");
}

#[test]
fn a_pdf_has_its_size_and_its_font() {
    let options = PlotOptions {
        format: Format::Pdf,
        size: Some("88mmx60mm".parse().unwrap()),
        ..PlotOptions::default()
    };
    let file = chart().to_file(&options);
    assert_eq!(chart().to_file(&options), file, "the same bytes each time");
    assert!(file.starts_with(b"%PDF-1.") && file.trim_ascii_end().ends_with(b"%%EOF"));
    let text = String::from_utf8_lossy(&file);
    let page = text.split("/MediaBox [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let page: Vec<f64> = page.split_whitespace().map(|number| number.parse().unwrap()).collect();
    // 88 mm and 60 mm in points.
    let right = [0.0, 0.0, 88.0 / 25.4 * 72.0, 60.0 / 25.4 * 72.0];
    assert!(page.iter().zip(right).all(|(is, right)| (is - right).abs() < 0.01), "{page:?}");
    assert!(text.contains("/FontFile2") && text.contains("/ToUnicode") && text.contains("Roboto-Regular"));
}

#[test]
fn thinning_keeps_peaks() {
    let mut points: Vec<(f64, f64)> = (0..100_000).map(|place| (f64::from(place), 1.0)).collect();
    points[54_321].1 = 99.0;
    points[77_777].1 = -99.0;
    let kept = thinned(&points);
    assert!(kept.len() < 4_100, "{}", kept.len());
    assert!(kept.contains(&points[54_321]) && kept.contains(&points[77_777]));
    assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
}
