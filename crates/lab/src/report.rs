//! The report: one HTML file that holds everything it shows.

use crate::plot::escaped;
use crate::scenario::Scenario;
use crate::summary::Summary;
use std::fmt::Write as _;

/// A group of plots under a heading.
#[derive(Clone, Debug, Default)]
pub struct Plots {
    /// The heading.
    pub heading: String,
    /// What the plots are of, in a sentence.
    pub note: String,
    /// Shown when the page is opened; else behind its heading.
    pub open: bool,
    /// The plots, as SVG elements.
    pub svgs: Vec<String>,
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2228;--dim:#5c6670;--page:#fbfbfa;--card:#fff;--line:#d9dde1;--accent:#2f6fab}\
@media(prefers-color-scheme:dark){:root{--ink:#d8dde3;--dim:#98a2ad;--page:#111417;--card:#191d21;--line:#30363c;--accent:#6fa8dc}}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:1120px;padding:2.2rem 1.4rem 4rem;background:var(--page);color:var(--ink);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif}\
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .4rem}h2{font-size:1.2rem;margin:2.4rem 0 .5rem}\
p{margin:.4rem 0;max-width:75ch}.dim{color:var(--dim);font-size:.92rem}\
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;background:var(--card)}\
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;width:100%}\
th,td{padding:.38rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th{font-weight:600;color:var(--dim);vertical-align:bottom}tr:last-child td{border-bottom:0}\
td.name,th.name{text-align:left}.ci{color:var(--dim);font-size:.82em;margin-left:.4em}\
figure{margin:1rem 0;border:1px solid var(--line);border-radius:8px;background:var(--card);padding:.5rem}\
figure svg{display:block;width:100%;height:auto}\
details{margin:.6rem 0;border:1px solid var(--line);border-radius:8px;background:var(--card);padding:.6rem 1rem}\
summary{cursor:pointer;font-weight:600}pre{overflow-x:auto;font:13px/1.5 ui-monospace,monospace;margin:.6rem 0 0}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;font-size:.88rem;margin:.6rem 0}dt{font-weight:600}dd{margin:0;color:var(--dim)}";

/// The report of a batch.
#[must_use]
pub fn html(scenario: &Scenario, summary: &Summary, groups: &[Plots]) -> String {
    let title = escaped(scenario.title());
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    if !scenario.description().is_empty() {
        let _ = writeln!(text, "<p>{}</p>", escaped(scenario.description()));
    }
    let _ = writeln!(
        text,
        "<p class=\"dim\">{}: {} points, {} runs, seeds from {}. ackline {}.</p>",
        escaped(scenario.name()),
        scenario.points(),
        scenario.runs(),
        scenario.seed(0),
        env!("CARGO_PKG_VERSION")
    );
    let _ = writeln!(text, "<h2>Results</h2>\n<p class=\"dim\">{}</p>", escaped(&summary.caption()));
    text += &table(summary);
    text += "<details><summary>What the columns mean</summary><dl>\n";
    for metric in &summary.metrics {
        let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escaped(&metric.heading()), escaped(metric.what));
    }
    text += "</dl></details>\n";
    if groups.iter().any(|group| !group.svgs.is_empty()) {
        text += "<h2>Plots</h2>\n";
    }
    for group in groups.iter().filter(|group| !group.svgs.is_empty()) {
        let open = if group.open { " open" } else { "" };
        let _ =
            writeln!(text, "<details class=\"plots\"{open}><summary>{}</summary>", escaped(&group.heading));
        if !group.note.is_empty() {
            let _ = writeln!(text, "<p class=\"dim\">{}</p>", escaped(&group.note));
        }
        for svg in &group.svgs {
            let _ = writeln!(text, "<figure>{}</figure>", svg.trim());
        }
        text += "</details>\n";
    }
    let _ = write!(
        text,
        "<h2>Scenario</h2>\n<details open><summary>{}</summary><pre>{}</pre></details>\n</body>\n</html>\n",
        escaped(scenario.name()),
        escaped(&scenario.to_toml())
    );
    text
}

fn table(summary: &Summary) -> String {
    let mut text = String::from("<div class=\"wide\"><table>\n");
    if let [point] = summary.points.as_slice() {
        text += "<tr><th class=\"name\"></th><th>value</th><th class=\"name\">unit</th></tr>\n";
        for (metric, estimate) in summary.metrics.iter().zip(&point.estimates) {
            let _ = writeln!(
                text,
                "<tr><td class=\"name\">{}</td>{}<td class=\"name\">{}</td></tr>",
                escaped(&metric.name),
                cell(estimate.as_ref()),
                metric.unit
            );
        }
    } else {
        text += "<tr>";
        for axis in &summary.axes {
            let _ = write!(text, "<th class=\"name\">{}</th>", escaped(axis));
        }
        for metric in &summary.metrics {
            let unit = if metric.unit.is_empty() { String::new() } else { format!("<br>{}", metric.unit) };
            let _ = write!(text, "<th>{}{unit}</th>", escaped(&metric.name));
        }
        text += "</tr>\n";
        for point in &summary.points {
            text += "<tr>";
            for param in &point.params {
                let _ = write!(text, "<td class=\"name\">{}</td>", escaped(&param.value));
            }
            for estimate in &point.estimates {
                text += &cell(estimate.as_ref());
            }
            text += "</tr>\n";
        }
    }
    text + "</table></div>\n"
}

fn cell(estimate: Option<&crate::stats::Estimate>) -> String {
    use crate::summary::short;
    match estimate {
        None => "<td>-</td>".to_owned(),
        Some(estimate) => {
            let interval = estimate.ci.map_or(String::new(), |(low, high)| {
                format!("<span class=\"ci\">{} to {}</span>", short(low), short(high))
            });
            format!("<td>{}{interval}</td>", short(estimate.mean))
        }
    }
}
