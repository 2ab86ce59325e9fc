//! Parts of a sweep, as they are written on a command line.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Some points of a sweep: `17..33` are the sixteen from 17 to 32, `33..` those from 33 on, `..17`
/// those before, `17` is one, and `..` are all. Points count from 0, as in the names of files
/// (`p0017-r000`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointRange {
    from: usize,
    /// The one after the last; `None`: all that there are.
    until: Option<usize>,
}

impl PointRange {
    /// The points of a sweep of `count` points.
    ///
    /// # Errors
    /// If the sweep does not have all of them; the text says which there are.
    pub fn of(self, count: usize) -> Result<Range<usize>, String> {
        let until = self.until.unwrap_or(count);
        if until > count || self.from >= count {
            let have =
                if count == 1 { "one point: 0".to_owned() } else { format!("{count} points: 0..{count}") };
            return Err(format!("points {self} are not all there: the scenario has {have}"));
        }
        Ok(self.from..until)
    }
}

impl FromStr for PointRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "not a range of points; write 17..33 (17 to 32), 17.., ..33 or 17".to_owned();
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let range = match text.split_once("..") {
            None => {
                let point = number(text)?;
                Self { from: point, until: Some(point.saturating_add(1)) }
            }
            Some((from, until)) => Self {
                from: if from.is_empty() { 0 } else { number(from)? },
                until: if until.is_empty() { None } else { Some(number(until)?) },
            },
        };
        match range.until {
            Some(until) if until <= range.from => Err(format!(
                "the range is empty: its end is not part of it; write {0}..{1} for point {0}",
                range.from,
                range.from + 1
            )),
            _ => Ok(range),
        }
    }
}

impl fmt::Display for PointRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until {
            Some(until) if until == self.from + 1 => write!(f, "{}", self.from),
            Some(until) => write!(f, "{}..{until}", self.from),
            None => write!(f, "{}..", self.from),
        }
    }
}

/// Points in words: `3 to 5, 9`.
pub(crate) fn listed(points: &[usize]) -> String {
    let groups = points.chunk_by(|a, b| *b == a + 1).map(|group| match group {
        [first, .., last] => format!("{first} to {last}"),
        _ => group.first().map(ToString::to_string).unwrap_or_default(),
    });
    groups.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_meant() {
        for (text, range) in
            [("17..33", 17..33), ("..17", 0..17), ("33..", 33..50), ("17", 17..18), ("..", 0..50)]
        {
            let points: PointRange = text.parse().unwrap();
            assert_eq!(points.of(50), Ok(range), "{text}");
        }
        let error =
            |text: &str, count| text.parse::<PointRange>().and_then(|points| points.of(count)).unwrap_err();
        assert_eq!(error("17..60", 50), "points 17..60 are not all there: the scenario has 50 points: 0..50");
        assert_eq!(error("50", 50), "points 50 are not all there: the scenario has 50 points: 0..50");
        assert_eq!(error("3..", 1), "points 3.. are not all there: the scenario has one point: 0");
        assert!(error("9..9", 50).starts_with("the range is empty: its end is not part of it; write 9..10"));
        for text in ["", "a..b", "1-3", "1..2..3", "-1"] {
            assert!(error(text, 50).starts_with("not a range of points; write 17..33"), "{text}");
        }
    }

    #[test]
    fn neighbours_are_named_together() {
        assert_eq!(listed(&[3, 4, 5, 9, 11, 12]), "3 to 5, 9, 11 to 12");
    }
}
