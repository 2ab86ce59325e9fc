//! How many shards a stack has.

use ackline_tcp_core::steering::MAX_SHARDS;
use std::io;

/// Where a stack's shards run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shards {
    /// One for each processor that the process may use, if the device has several queues and
    /// nothing else needs a single shard; otherwise one.
    Auto,
    /// This number, 1 to 64.
    Fixed(usize),
    /// One.
    #[default]
    One,
}

impl From<usize> for Shards {
    fn from(shards: usize) -> Self {
        if shards == 1 { Self::One } else { Self::Fixed(shards) }
    }
}

/// `auto`, or a number from 1 to 64.
impl std::str::FromStr for Shards {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let shards = text.parse().ok().filter(|shards| (1..=MAX_SHARDS).contains(shards));
        shards.map(Self::from).ok_or_else(|| {
            let why = format!("not a number of shards; write auto, or 1 to {MAX_SHARDS}");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shard_is_one_however_it_is_said() {
        assert_eq!("1".parse::<Shards>().expect("a number"), Shards::One);
        assert_eq!(Shards::from(1), Shards::One);
        assert_eq!("2".parse::<Shards>().expect("a number"), Shards::Fixed(2));
        assert!("0".parse::<Shards>().is_err() && "65".parse::<Shards>().is_err());
    }

    #[test]
    fn numbers_of_shards_are_read() {
        assert_eq!("auto".parse::<Shards>().unwrap(), Shards::Auto);
        assert_eq!("4".parse::<Shards>().unwrap(), Shards::Fixed(4));
        for wrong in ["0", "65", "-1", "many", ""] {
            assert!(wrong.parse::<Shards>().unwrap_err().to_string().contains("1 to 64"), "{wrong}");
        }
    }
}
