//! Dates.

/// The date in UTC that is `unix_ns` nanoseconds after 1970, as RFC 3339 writes it.
pub(super) fn rfc3339(unix_ns: u64) -> String {
    let (seconds, nanos) = (unix_ns / 1_000_000_000, unix_ns % 1_000_000_000);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// Year, month and day of the Gregorian calendar. Years are counted from March, so that a leap day
/// is a year's last; 400 of them have 146,097 days.
const fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    // Days from 1 March of the year 0 to 1970.
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    /// As `date -u -d @SECONDS` prints them.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_700_000_000, "2023-11-14T22:13:20"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000 + 7), format!("{date}.000000007Z"));
        }
    }
}
