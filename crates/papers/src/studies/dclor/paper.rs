//! What the draft prints: Tables 2 to 6.

/// The responses that the draft measured, in the order of its columns.
pub(super) const COLUMNS: [&str; 4] = ["dclor", "eifel-full", "go-back-n", "frto-halve"];

/// Their names at the head of a table.
pub(super) const HEADS: [&str; 4] = ["DCLOR", "Eifel", "standard TCP", "F-RTO"];

/// A row of Table 2: files of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The name of the application in the scenario.
    pub(super) app: &'static str,
    /// KB.
    pub(super) size: u64,
    /// Files that each connection fetches.
    pub(super) files: u64,
    /// Connections at a time.
    pub(super) connections: u64,
    /// Tables 3 to 5, and this row of Table 6; `None` if the draft prints nothing.
    pub(super) printed: Option<PrintedNumbers>,
}

/// Numbers of the four columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrintedNumbers {
    /// Its table.
    pub(super) table: &'static str,
    /// Mean download time, s.
    pub(super) mean: [f64; 4],
    /// Its variance, s^2.
    pub(super) variance: [f64; 4],
    /// Spectral efficiency.
    pub(super) efficiency: [f64; 4],
    /// The share by which a mean may deviate.
    pub(super) mean_tolerance: f64,
    /// The factors between which a variance must lie. Initial window, delayed ACK, request, waits
    /// and the faults of a kernel under development are not given.
    pub(super) variance_factors: (f64, f64),
}

/// Table 2.
pub(super) const ROWS: [Row; 5] = [
    Row {
        app: "5K",
        size: 5,
        files: 2_000,
        connections: 6,
        printed: Some(PrintedNumbers {
            table: "3",
            mean: [2.3869, 2.4162, 2.3962, 2.4049],
            variance: [3.2473, 10.2579, 3.2164, 4.0466],
            efficiency: [0.004_042, 0.004_454, 0.092_714, 0.071_336],
            mean_tolerance: 0.1,
            variance_factors: (0.6, 1.4),
        }),
    },
    Row {
        app: "10K",
        size: 10,
        files: 1_000,
        connections: 5,
        printed: Some(PrintedNumbers {
            table: "4",
            mean: [3.4547, 4.0560, 3.7314, 3.7317],
            variance: [4.7452, 19.7828, 7.6378, 8.4576],
            efficiency: [0.005_249, 0.012_293, 0.078_977, 0.052_581],
            mean_tolerance: 0.1,
            variance_factors: (0.6, 1.4),
        }),
    },
    Row {
        app: "100K",
        size: 100,
        files: 100,
        connections: 5,
        printed: Some(PrintedNumbers {
            table: "5",
            mean: [24.6297, 26.1017, 26.7425, 25.5325],
            variance: [66.0804, 98.4933, 98.9363, 78.1667],
            efficiency: [0.017_124, 0.036_748, 0.624_361, 0.079_285],
            mean_tolerance: 0.2,
            variance_factors: (0.4, 2.5),
        }),
    },
    Row { app: "1000K", size: 1_000, files: 10, connections: 3, printed: None },
    Row { app: "10000K", size: 10_000, files: 1, connections: 1, printed: None },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_2_has_17_531_transfers() {
        let transfers: u64 = ROWS.iter().map(|row| row.files * row.connections).sum();
        assert_eq!(transfers, 17_531);
    }
}
