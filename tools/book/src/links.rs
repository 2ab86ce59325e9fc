//! Links of Markdown pages: to files, folders, headings and lines of this repository. Nothing is
//! looked up in the network.

use crate::pages::{self, Page};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// What begins a link to a file or folder of this repository on the forge.
const OWN: [&str; 2] =
    ["https://github.com/ackline/ackline/blob/main/", "https://github.com/ackline/ackline/tree/main/"];

#[derive(Debug)]
pub struct Link {
    /// As written.
    pub target: String,
    /// Where the target is written.
    pub at: Range<usize>,
}

/// Every link and image of the page, in Markdown or as an attribute of HTML.
pub fn of(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let parser = Parser::new_ext(text, extensions());
    for (_, definition) in parser.reference_definitions().iter() {
        links.extend(written_in(text, definition.span.clone(), &definition.dest));
    }
    for (event, range) in parser.into_offset_iter() {
        match event {
            // A link by reference has its target in the definition.
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.extend(written_in(text, range, &dest_url));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let offset = |at: Range<usize>| range.start + at.start..range.start + at.end;
                let attributes = attributes(&html, &["href", "src", "srcset"]);
                links.extend(attributes.into_iter().map(|(target, at)| Link { target, at: offset(at) }));
            }
            _ => {}
        }
    }
    links.sort_by_key(|link| link.at.start);
    links.dedup_by_key(|link| link.at.start);
    links
}

fn extensions() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_GFM
}

/// The target is the last thing in a link, so that a label which is spelled the same does not
/// count.
fn written_in(text: &str, range: Range<usize>, target: &str) -> Option<Link> {
    let at = range.start + text[range].rfind(target)?;
    (!target.is_empty()).then(|| Link { target: target.to_owned(), at: at..at + target.len() })
}

/// Values of the attributes with these names, and where they stand.
pub fn attributes(html: &str, names: &[&str]) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    for name in names {
        let pattern = format!(" {name}=\"");
        for (at, _) in html.match_indices(&pattern) {
            let start = at + pattern.len();
            let Some(length) = html[start..].find('"') else { continue };
            found.push((html[start..start + length].to_owned(), start..start + length));
        }
    }
    found
}

/// What follows `#` in a link to each heading of the page, as GitHub and mdBook name it; and the
/// ids that the page itself sets.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, extensions()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(name.clone()).or_default();
                anchors.insert(if *count == 0 { name } else { format!("{name}-{count}") });
                *count += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                anchors.extend(attributes(&html, &["id", "name"]).into_iter().map(|(id, _)| id));
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// A link to somewhere else than this repository.
pub fn is_elsewhere(target: &str) -> bool {
    ["https:", "http:", "mailto:", "data:"].iter().any(|scheme| target.starts_with(scheme))
}

/// One line for each link whose target is not there.
pub fn check(root: &Path, pages: &[Page]) -> Vec<String> {
    let anchors: HashMap<&str, HashSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut problems = Vec::new();
    for page in pages {
        for link in of(&page.text) {
            if let Err(problem) = check_one(root, &anchors, &page.path, &link.target) {
                let line = page.text[..link.at.start].matches('\n').count() + 1;
                problems.push(format!("{}:{line}: {}: {problem}", page.path, link.target));
            }
        }
    }
    problems
}

fn check_one(
    root: &Path,
    anchors: &HashMap<&str, HashSet<String>>,
    page: &str,
    target: &str,
) -> Result<(), String> {
    let own = OWN.iter().find_map(|base| target.strip_prefix(base));
    if own.is_none() && is_elsewhere(target) {
        return Ok(());
    }
    let (file, anchor) = match own.unwrap_or(target).split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (own.unwrap_or(target), None),
    };
    let file = match file {
        file if own.is_some() => file.trim_end_matches('/').to_owned(),
        "" => page.to_owned(),
        relative => pages::resolve(page, relative).ok_or("leads out of the repository")?,
    };
    let path = root.join(&file);
    if !anchors.contains_key(file.as_str()) && !path.exists() {
        return Err(format!("there is no {file}"));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    if let Some(headings) = anchors.get(file.as_str()) {
        return if headings.contains(anchor) { Ok(()) } else { Err(format!("{file} has no such heading")) };
    }
    let lines = std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let last = anchor.rsplit('L').next().and_then(|number| number.parse::<usize>().ok());
    match last {
        Some(last) if anchor.starts_with('L') && (1..=lines).contains(&last) => Ok(()),
        _ => Err(format!("{file} has {lines} lines and no headings")),
    }
}

#[cfg(test)]
mod tests {
    use super::{anchors, check, of, slug};
    use crate::pages::Page;
    use std::path::Path;

    fn targets(text: &str) -> Vec<String> {
        of(text).into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_are_found_wherever_they_stand() {
        assert_eq!(targets("[a.md](a.md) ![x](p.svg) <https://x.org>"), ["a.md", "p.svg", "https://x.org"]);
        assert_eq!(targets("| [`a`](b.md#c) |\n|---|\n| [d](e) |"), ["b.md#c", "e"]);
        assert_eq!(targets("[by name][n]\n\n[n]: n.md 'title'\n"), ["n.md"]);
        assert_eq!(targets("<p><img width=\"3\" src=\"a.svg\"></p>"), ["a.svg"]);
        assert!(targets("`[a](b.md)`\n\n```\n[a](b.md)\n```\n").is_empty());
    }

    #[test]
    fn a_link_says_where_its_target_is_written() {
        let text = "see [a.md](a.md#x \"t\").";
        let link = &of(text)[0];
        assert_eq!((&text[link.at.clone()], link.at.start), ("a.md#x", 11));
    }

    #[test]
    fn headings_have_the_names_that_the_forge_gives_them() {
        assert_eq!(slug("`ackline sim --json`"), "ackline-sim---json");
        assert_eq!(slug("Which, and when?"), "which-and-when");
        let anchors = anchors("# A\n## A\n<a id=\"own\"></a>\n\n### *B* and [c](d)\n");
        for name in ["a", "a-1", "own", "b-and-c"] {
            assert!(anchors.contains(name), "{name} in {anchors:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = "# Here\n[1](src/main.rs) [2](src/gone.rs)\n[3](#here) [4](#there)\n[5](../..)\n[6](src/main.rs#L9999)\n\
                    [7](https://github.com/ackline/ackline/blob/main/src/lost.rs) [8](https://example.org/)\n";
        let page = Page { path: "page.md".into(), text: text.into() };
        let problems = check(root, &[page]);
        let lines: Vec<&str> = problems.iter().map(|line| line.split(':').nth(1).unwrap()).collect();
        assert_eq!(lines, ["2", "3", "4", "5", "6"], "{problems:?}");
        assert!(problems[0].contains("src/gone.rs"), "{problems:?}");
    }
}
