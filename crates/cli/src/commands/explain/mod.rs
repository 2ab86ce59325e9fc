//! `ackline explain`: the stories of the connections in a capture or a trace.

mod html;

use crate::args::ExplainArgs;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::output::result_file::ResultFile;
use crate::watchers::filter::{Filter, Subject};
use ackline::core::State;
use ackline_explain::story::Connection;
use ackline_explain::{Explainer, Limits, ReadError, Reader, Story, text};
use ackline_observe::trace::{self, RECORD_SEPARATOR};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What is read at once.
const BUFFER: usize = 256 << 10;

/// What plots bring along takes up to a megabyte per connection: how many are followed at once, and
/// how many are kept.
const OPEN_WITH_PLOTS: usize = 500;
const STORIES_WITH_PLOTS: usize = 100;
/// Entries of each series that is drawn.
const DRAWN: usize = 1_500;

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let filter = args.filter.as_deref().map(Filter::parse_expression).transpose().map_err(Failure::usage)?;
    let mut limits = Limits::default();
    if args.html.is_some() {
        (limits.open, limits.stories, limits.drawn) = (OPEN_WITH_PLOTS, STORIES_WITH_PLOTS, DRAWN);
    }
    let mut explainer = Explainer::new(limits);
    let outcome = args.files.iter().try_for_each(|file| read(&mut explainer, file));
    let mut story = explainer.finish();
    // Whatever is wrong with a file, what stands before that is worth telling.
    if story.packets == 0 && story.traces.events == 0 {
        outcome?;
        return Err(Failure::new(Exit::File, "there are no packets, and no events of connections"));
    }
    let seen = story.connections.len();
    story.connections.retain(|connection| {
        args.conn.is_none_or(|number| number == connection.number)
            && filter.as_ref().is_none_or(|filter| filter.selects(&subject(connection)))
    });
    if seen > 0 && story.connections.is_empty() {
        let what =
            args.conn.map_or_else(|| "that the filter selects".to_owned(), |number| format!("{number}"));
        return Err(Failure::usage(format!(
            "there is no connection {what}; there are {seen} (ackline explain FILE lists them)"
        )));
    }
    if let Some(file) = &args.html {
        let page = ResultFile::open_private("--html", file)?;
        page.write(&html::page(&story, &chosen(args, &story)))?;
        page.finish()?;
    }
    let text = if args.json { output::json(&story) } else { shown(args, &story) };
    output::print(&text)?;
    outcome
}

/// The connections that have pages, the worst first.
fn chosen<'a>(args: &ExplainArgs, story: &'a Story) -> Vec<&'a Connection> {
    let mut connections: Vec<&Connection> = story.connections.iter().collect();
    connections.sort_by_key(|connection| std::cmp::Reverse(connection.badness()));
    if connections.len() > 1 {
        connections.truncate(args.pages);
    }
    connections
}

/// The table, if there are several, and the pages.
fn shown(args: &ExplainArgs, story: &Story) -> String {
    let connections = chosen(args, story);
    let mut all = String::new();
    if story.connections.len() > 1 {
        all += &text::summary(story);
        all.push('\n');
        if story.connections.len() > connections.len() {
            all += &format!(
                "Pages of {} of them follow; --pages N shows more, --conn N one.\n\n",
                connections.len()
            );
        }
    }
    let pages: Vec<String> = connections.into_iter().map(text::page).collect();
    all += &pages.join("\n");
    if story.connections.is_empty() {
        all += "No packet of TCP was found.\n";
    }
    let left_out = text::left_out(story);
    if !left_out.is_empty() {
        all += &format!("\n{left_out}");
    }
    all
}

const fn subject(connection: &Connection) -> Subject {
    Subject { state: State::Established, local: connection.client, remote: Some(connection.server) }
}

fn read(explainer: &mut Explainer, file: &Path) -> Result<(), Failure> {
    if file == Path::new("-") {
        return take(explainer, io::stdin().lock(), file);
    }
    let file = &capture_in(file)?;
    let opened = File::open(file).map_err(|error| Failure::file("read", file.display(), &error))?;
    take(explainer, opened, file)
}

/// A trace or a capture: the first byte tells.
fn take(explainer: &mut Explainer, source: impl Read, file: &Path) -> Result<(), Failure> {
    let mut source = BufReader::with_capacity(BUFFER, source);
    let unreadable = |error: &io::Error| Failure::file("read", file.display(), error);
    if source.fill_buf().map_err(|error| unreadable(&error))?.first() == Some(&RECORD_SEPARATOR) {
        let mut reader = trace::Reader::new(source)
            .map_err(|error| Failure::new(Exit::File, format!("{}: {error}", file.display())))?;
        return explainer.read_trace(&mut reader).map_err(|error| unreadable(&error));
    }
    Reader::new(source).and_then(|mut reader| explainer.read(&mut reader)).map_err(|error| match error {
        ReadError::Io(error) => unreadable(&error),
        other => Failure::new(Exit::File, format!("{}: {other}", file.display())),
    })
}

/// The capture that is meant: a file, or the only one in a folder of `sim --pcap`.
fn capture_in(path: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let folder = if path.join("pcap").is_dir() { path.join("pcap") } else { path.to_owned() };
    let entries =
        std::fs::read_dir(&folder).map_err(|error| Failure::file("read", folder.display(), &error))?;
    let mut captures: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "pcap" || ending == "pcapng"))
        .collect();
    captures.sort();
    match captures.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::new(Exit::File, format!("{}: a folder without captures", path.display()))),
        [first, ..] => Err(Failure::usage(format!(
            "{}: a folder with {} captures, which are of different runs; choose one, such as {}",
            path.display(),
            captures.len(),
            first.display()
        ))),
    }
}
