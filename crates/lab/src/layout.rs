//! Which axis of a sweep is what in its plots.

use serde::Serialize;

/// Which axis of a sweep is what in its plots. What is left open is chosen: along the bottom the
/// axis of numbers with the most values, as lines the axis of names with the fewest, as panels the
/// others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// The axis along the bottom.
    pub x: Option<String>,
    /// The axis whose values are lines.
    pub series: Option<String>,
    /// The axis whose values are panels.
    pub facet: Option<String>,
}

impl Layout {
    /// Finds what is given among `axes`: a whole key, or an end of it that only one axis has
    /// (`delay` for `link.wire.delay`).
    ///
    /// # Errors
    /// If there is no such axis, or one has two roles; the text says what would be right.
    pub fn find<'a>(&self, axes: impl Iterator<Item = &'a str> + Clone) -> Result<Self, String> {
        let find = |flag: &str, key: &Option<String>| -> Result<Option<String>, String> {
            let Some(key) = key else { return Ok(None) };
            let ends = |axis: &&str| axis.strip_suffix(key.as_str()).is_some_and(|rest| rest.ends_with('.'));
            let whole = axes.clone().find(|axis| axis == key);
            let found: Vec<&str> =
                whole.map_or_else(|| axes.clone().filter(ends).collect(), |axis| vec![axis]);
            let all = || axes.clone().collect::<Vec<_>>().join(", ");
            match found.as_slice() {
                [axis] => Ok(Some((*axis).to_owned())),
                [] if axes.clone().next().is_none() => Err(format!("{flag} {key}: nothing is swept")),
                [] => Err(format!("{flag} {key}: this is not swept; the axes are {}", all())),
                several => Err(format!("{flag} {key}: this may be {}", several.join(" or "))),
            }
        };
        let found = Self {
            x: find("--x", &self.x)?,
            series: find("--series", &self.series)?,
            facet: find("--facet", &self.facet)?,
        };
        let roles = [&found.x, &found.series, &found.facet];
        let twice = |place: usize| roles[place].is_some() && roles[..place].contains(&roles[place]);
        match (1..3).find(|place| twice(*place)) {
            Some(place) => {
                Err(format!("{} has two roles in the plots", roles[place].as_deref().unwrap_or_default()))
            }
            None => Ok(found),
        }
    }
}
