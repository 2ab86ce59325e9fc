//! `ackline reproduce`: papers repeated.

use crate::args::ReproduceArgs;
use crate::failure::{Exit, Failure};
use crate::network::program;
use crate::output::{print, say};
use ackline_emulate::Offload;
use ackline_emulate::stage::RealTime;
use ackline_lab::RunError;
use ackline_lab::stage::Stages;
use ackline_papers::{
    Comparisons, LIVE, Options, ReproduceError, STUDIES, Study, StudyResult, agreement, listing, live_study,
    reproduce, study, to_json, to_text, total,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    let Some(name) = args.paper.as_deref() else { return show(&(listing(STUDIES) + "\n" + &listing(LIVE))) };
    let studies: Vec<&'static dyn Study> = match (name, args.live) {
        ("all", false) => STUDIES.to_vec(),
        ("all", true) => LIVE.to_vec(),
        (name, false) => vec![study(name)?],
        (name, true) => vec![live_study(name)?],
    };
    if studies.len() > 1 && !args.tables.is_empty() {
        return Err(Failure::usage("--table: tables are those of one paper; name it instead of all"));
    }
    let stage = RealTime { pacing: args.pacing.into(), offload: Offload::Off, priority: args.priority };
    let options = Options {
        parts: args.tables.clone(),
        quick: args.quick,
        seeds: args.seeds,
        scale: args.scale,
        threads: usize::from(args.jobs.unwrap_or(0)),
        out: args.out.clone(),
        cache: if args.no_cache { None } else { args.cache.clone().or_else(default_cache) },
        from: args.from.clone(),
        sample: args.sample,
        plot: args.figures.options(),
        live: args.live.then(|| Arc::new(stage) as Arc<dyn Stages>),
        progress: !args.output.quiet,
    };
    if args.live && args.from.is_none() {
        // While the process has one thread.
        program::prepare()?;
        RealTime::probe().map_err(RunError::from)?;
    }
    let all = if args.refresh { refresh(&studies, options)? } else { reproduce(&studies, &options)? };
    show(&text(&all, args))?;
    if !args.output.quiet {
        for done in all.iter().filter(|done| !done.origin.is_current()) {
            let name = done.study.paper().name;
            say(&format!(
                "note: the data of {name} are of other sources than this program; a run may differ"
            ));
        }
    }
    if args.report_only { Ok(()) } else { verdict(&all, args.strict) }
}

/// Where pages and data of a checkout are.
const PAPERS: &str = "docs/papers";

/// Runs each study anew, and writes it before the next one begins. What is finished of a study is
/// kept beside its data meanwhile.
fn refresh(studies: &[&'static dyn Study], mut options: Options) -> Result<Vec<StudyResult>, Failure> {
    let out = match options.out.take() {
        Some(out) => out,
        None if Path::new(PAPERS).join("data").is_dir() => PAPERS.into(),
        None => {
            return Err(Failure::usage(
                "--refresh: there is no folder docs/papers/data here; run it in a checkout of ackline, or name --out DIR",
            ));
        }
    };
    let mut all = vec![];
    for study in studies {
        let unfinished = out.join("refresh").join(study.paper().stem);
        let options = Options { out: Some(out.clone()), cache: Some(unfinished.clone()), ..options.clone() };
        all.extend(reproduce(&[*study], &options)?);
        fs::remove_dir_all(&unfinished)
            .map_err(|error| Failure::file("delete", unfinished.display(), &error))?;
    }
    // Of several that run at a time the last one deletes it.
    let _ = fs::remove_dir(out.join("refresh"));
    Ok(all)
}

/// Where outputs are kept if nobody says; `None` if the environment has no home.
fn default_cache() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("ackline"))
}

/// An error if a check is not as it should be: by name as far as a line can hold it.
fn verdict(all: &[StudyResult], strict: bool) -> Result<(), Failure> {
    const NAMED: usize = 8;
    let mut failures: Vec<String> = all.iter().flat_map(|done| done.failures(strict)).collect();
    // A study's own share is a check, and may be pinned; that of several is not.
    if all.len() > 1 && total(all).share() < Comparisons::WANTED {
        failures.push("live and simulated agree in too few comparisons".to_owned());
    }
    if failures.is_empty() {
        return Ok(());
    }
    let mut named = failures.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if failures.len() > NAMED {
        named += &format!(", and {} more", failures.len() - NAMED);
    }
    let checks: usize = all.iter().map(|done| done.counts().checks).sum();
    let failed =
        if failures.len() == 1 { "1 failure".to_owned() } else { format!("{} failures", failures.len()) };
    let message = format!("{failed} in {checks} checks: {named}");
    Err(Failure::new(Exit::Incomplete, message))
}

fn text(all: &[StudyResult], args: &ReproduceArgs) -> String {
    if args.output.json {
        return all.iter().map(|done| to_json(done) + "\n").collect();
    }
    if args.output.quiet {
        return String::new();
    }
    let mut texts: Vec<String> = all.iter().map(to_text).collect();
    texts.extend(Some(agreement(all)).filter(|text| !text.is_empty()));
    let files: Vec<String> =
        all.iter().flat_map(|done| &done.files).map(|file| file.display().to_string() + "\n").collect();
    if !files.is_empty() {
        texts.push(files.concat());
    }
    texts.join("\n")
}

fn show(text: &str) -> Result<(), Failure> {
    print(text)
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Run(error) => error.into(),
            ReproduceError::Request(_) => Self::usage(error.to_string()),
            _ => Self::new(Exit::Incomplete, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_papers::{Check, Paper, Part, Reproduction, no_jobs};

    /// A study whose one check measures 9 where 1 passes, and its pins.
    struct Missed(&'static str);

    /// A study that compared ten numbers, of which so many agree.
    struct Compared(usize);

    impl Study for Compared {
        fn paper(&self) -> &Paper {
            &Paper { name: "compared", stem: "compared", title: "", authors: "", year: None }
        }

        fn parts(&self) -> &[Part] {
            const EIGHT: Part =
                Part { name: "eight", what: "", plan: no_jobs, evaluate: |_, _| Ok(agreeing(8)) };
            const TEN: Part =
                Part { name: "ten", what: "", plan: no_jobs, evaluate: |_, _| Ok(agreeing(10)) };
            if self.0 == 8 { &[EIGHT] } else { &[TEN] }
        }

        fn page(&self) -> &str {
            ""
        }

        fn pins(&self) -> &str {
            ""
        }
    }

    fn agreeing(agree: usize) -> Reproduction {
        Reproduction { comparisons: Comparisons { all: 10, agree }, ..Reproduction::default() }
    }

    impl Study for Missed {
        fn paper(&self) -> &Paper {
            &Paper { name: "missed", stem: "missed", title: "", authors: "", year: None }
        }

        fn parts(&self) -> &[Part] {
            &[Part {
                name: "one",
                what: "",
                plan: no_jobs,
                evaluate: |_, _| {
                    let checks =
                        vec![Check::at_most("low", "", 9.0, 1.0), Check::at_most("high", "", 9.0, 10.0)];
                    Ok(Reproduction { checks, ..Reproduction::default() })
                },
            }]
        }

        fn page(&self) -> &str {
            ""
        }

        fn pins(&self) -> &str {
            self.0
        }
    }

    macro_rules! pin {
        ($check:literal, $low:literal, $high:literal) => {
            concat!(
                "[[pin]]\ncheck = '",
                $check,
                "'\nlow = ",
                $low,
                "\nhigh = ",
                $high,
                "\nreason = 'r'\nevidence = 'low'\n"
            )
        };
    }

    fn of(study: &'static Missed, strict: bool) -> Result<(), String> {
        let all = reproduce(&[study], &Options::default()).unwrap();
        verdict(&all, strict).map_err(|failure| {
            assert_eq!(failure.exit, Exit::Incomplete);
            failure.to_string()
        })
    }

    #[test]
    fn a_pinned_miss_is_status_0_and_1_if_strict() {
        static PINNED: Missed = Missed(pin!("low", 8, 10));
        assert_eq!(of(&PINNED, false), Ok(()));
        assert_eq!(of(&PINNED, true), Err("1 failure in 2 checks: missed low missed (pinned)".to_owned()));
    }

    #[test]
    fn a_miss_without_its_pin_or_outside_of_it_is_status_1_and_so_is_a_pin_that_passes() {
        static PLAIN: Missed = Missed("");
        static OUTSIDE: Missed = Missed(pin!("low", 8, 8.5));
        static STALE: Missed = Missed(concat!(pin!("low", 8, 10), pin!("high", 11, 12)));
        for (study, end) in [
            (&PLAIN, "missed low failed"),
            (&OUTSIDE, "missed low left the bounds of its pin"),
            (&STALE, "missed high passes now: remove its pin"),
        ] {
            let message = of(study, false).unwrap_err();
            assert_eq!(message, format!("1 failure in 2 checks: {end}"));
        }
    }

    #[test]
    fn nine_comparisons_of_ten_are_to_agree_over_all_studies() {
        static EIGHT: Compared = Compared(8);
        static TEN: Compared = Compared(10);
        let all = reproduce(&[&EIGHT, &TEN], &Options::default()).unwrap();
        assert!(
            agreement(&all).starts_with("live and simulated agree in 18 of 20 comparisons, a share of 0.900")
        );
        assert!(agreement(&all).contains("compared  8 of 10\n"));
        assert!(verdict(&all, false).is_ok());
        let all = reproduce(&[&EIGHT, &EIGHT, &TEN], &Options::default()).unwrap();
        let message = verdict(&all, false).unwrap_err().to_string();
        assert_eq!(message, "1 failure in 0 checks: live and simulated agree in too few comparisons");
    }
}
