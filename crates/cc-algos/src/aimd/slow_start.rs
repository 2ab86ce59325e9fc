//! Limited slow start (RFC 3742): a window of thousands of segments must not double in its last
//! round trip.

/// The part of a segment by which the window of `segments` grows for each one acknowledged in slow
/// start (H9): one up to `max_ssthresh`; above it 1/K with K = int(w / (0.5 max_ssthresh)), so that
/// no round trip adds more than half of `max_ssthresh` (RFC 3742, section 2).
///
/// ```
/// use ackline_cc_algos::hstcp::limited_step;
///
/// assert_eq!(limited_step(100.0, 100), 1.0);
/// assert_eq!(limited_step(150.0, 100), 1.0 / 3.0);
/// ```
#[must_use]
pub fn limited_step(segments: f64, max_ssthresh: u32) -> f64 {
    let max = f64::from(max_ssthresh);
    if segments <= max {
        return 1.0;
    }
    let k = (segments / (0.5 * max)) as u64;
    1.0 / (k.max(1) as f64)
}
