//! The priority of a thread that has to be in time: sched(7).

use crate::error::{Error, Result};
use crate::sys::priority as sys;
use rustix::io::Errno;
use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::Duration;

/// A priority, as text `nice:-10` or `fifo:50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Priority {
    /// A nice value, -20 (most of the processor) to 19.
    Nice(i8),
    /// `SCHED_FIFO`, 1 to 99: before every thread without a real-time priority.
    Fifo(u8),
}

impl Priority {
    /// Gives it to the calling thread. Threads and processes that this one starts from then on have
    /// the usual priority, or the same if that is lower.
    ///
    /// # Errors
    /// [`Error::PriorityForbidden`] without the right to it.
    pub fn set_for_thread(self) -> Result<()> {
        let set = match self {
            Self::Fifo(priority) => sys::set_scheduler(priority),
            Self::Nice(value) => {
                sys::set_scheduler(0).and_then(|()| rustix::process::setpriority_process(None, value.into()))
            }
        };
        set.map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => Error::PriorityForbidden { priority: self.to_string() },
            other => Error::System { action: "set the thread's priority", source: other.into() },
        })
    }

    /// For how long of each second the kernel may stop a thread of this priority that never sleeps,
    /// so that others run: a real-time thread by sched_rt_runtime_us of sched(7). `None`: it does
    /// not.
    #[must_use]
    pub fn throttled(self) -> Option<Duration> {
        let Self::Fifo(_) = self else { return None };
        let read =
            |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok();
        let (runtime, period): (i64, i64) = (read("sched_rt_runtime_us")?, read("sched_rt_period_us")?);
        let stopped = u64::try_from(period.checked_sub(runtime)?).ok().filter(|_| runtime >= 0)?;
        let share = stopped as f64 / period.max(1) as f64;
        (stopped > 0).then(|| Duration::from_secs_f64(share))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nice(value) => write!(f, "nice:{value}"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
        }
    }
}

impl FromStr for Priority {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let wrong = "write nice:-20 to nice:19, or fifo:1 to fifo:99";
        let number = |number: &str, range: std::ops::RangeInclusive<i8>| {
            number.parse().ok().filter(|number| range.contains(number)).ok_or(wrong)
        };
        match text.split_once(':') {
            Some(("nice", value)) => Ok(Self::Nice(number(value, -20..=19)?)),
            Some(("fifo", priority)) => Ok(Self::Fifo(number(priority, 1..=99)?.unsigned_abs())),
            _ => Err(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_priority_are_the_same() {
        for text in ["nice:-20", "nice:0", "nice:19", "fifo:1", "fifo:99"] {
            assert_eq!(text.parse::<Priority>().map(|priority| priority.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "nice", "nice:-21", "nice:20", "fifo:0", "fifo:100", "fifo:-1", "rr:1", "10"] {
            assert!(text.parse::<Priority>().is_err(), "{text}");
        }
        assert_eq!(Priority::Nice(-20).throttled(), None);
    }

    /// `policy`, `priority` and `nice` of the calling thread, by proc(5): fields 41, 40 (RT) and 19
    /// of `stat`.
    fn of_this_thread() -> [String; 3] {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("proc is there");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
        // The first one behind the name is the third.
        [41, 40, 19].map(|number| fields[number - 3].to_owned())
    }

    #[test]
    fn a_thread_has_it_and_those_that_it_starts_do_not() {
        // The one that the process has anyway, which a real-time priority leaves as it is.
        let [.., nice] = of_this_thread();
        for (priority, expected) in
            [(Priority::Nice(5), ["0", "0", "5"]), (Priority::Fifo(7), ["1", "7", &nice])]
        {
            let outcome = std::thread::spawn(move || {
                priority.set_for_thread()?;
                let child = std::thread::spawn(of_this_thread).join().expect("it ends");
                Ok((of_this_thread(), child))
            });
            let (own, child): ([String; 3], [String; 3]) = match outcome.join().expect("it ends") {
                Ok(both) => both,
                Err(error @ Error::PriorityForbidden { .. }) => {
                    assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
                    assert!(error.is_lack_of_rights());
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            assert_eq!(own, expected);
            assert_eq!(child[..2], ["0", "0"], "{child:?}");
        }
    }
}
