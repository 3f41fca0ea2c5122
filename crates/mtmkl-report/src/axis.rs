//! The axes of charts and pictures: a range, and round numbers in it.

/// One axis: its range and where its ticks are.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end; above `low`.
    pub(crate) high: f64,
    /// Place and label of each tick.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Decimals that a step of this size needs.
fn decimals(step: f64) -> usize {
    let mut needed = 0;
    let mut scaled = step;
    // A step is 1, 2 or 5 times a power of ten, up to rounding.
    while needed < 15 && (scaled - scaled.round()).abs() > 1e-6 * scaled.abs() {
        scaled *= 10.0;
        needed += 1;
    }
    needed
}

/// The step 1, 2 or 5 times a power of ten that cuts `range` into at most `most` parts.
fn nice_step(range: f64, most: f64) -> f64 {
    let rough = range / most;
    let unit = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|step| *step >= rough * (1.0 - 1e-9))
        .unwrap_or(10.0 * unit)
}

impl Axis {
    /// An axis over `low` to `high`, as they are, with round ticks inside.
    pub(crate) fn over(low: f64, high: f64, most: f64) -> Self {
        let (low, high) = if high - low > 1e-12 * low.abs().max(high.abs()).max(1e-300) {
            (low, high)
        } else {
            // One value only: some room around it.
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.05 };
            (low - room, high + room)
        };
        let step = nice_step(high - low, most);
        let places = decimals(step);
        let first = (low / step - 1e-9).ceil();
        let plain = (1e-3..1e6).contains(&low.abs().max(high.abs()));
        let ticks = (0..=32)
            .map(|i| (first + f64::from(i)) * step)
            .take_while(|v| *v <= high + 1e-9 * step)
            .map(|v| {
                // −0 would print its sign.
                let v = if v.abs() < 1e-9 * step { 0.0 } else { v };
                let text = if plain {
                    format!("{v:.places$}")
                } else {
                    // As short as the number is, without the dust of the multiplication.
                    let short = format!("{v:.6e}").parse().unwrap_or(v);
                    format!("{short:e}")
                };
                (v, text.replace('-', "\u{2212}"))
            })
            .collect();
        Self { low, high, ticks }
    }

    /// An axis that counts from `first` to `last`.
    pub(crate) fn counting(first: f64, last: f64) -> Self {
        if last <= first {
            return Self {
                low: first - 1.0,
                high: first + 1.0,
                ticks: vec![(first, format!("{first:.0}"))],
            };
        }
        let mut axis = Self::over(first, last, 8.0);
        axis.ticks.retain(|(v, _)| v.fract() == 0.0);
        for (v, label) in &mut axis.ticks {
            *label = format!("{v:.0}");
        }
        axis
    }

    /// Where a value lies, 0 to 1.
    pub(crate) fn place(&self, v: f64) -> f64 {
        (v - self.low) / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let labels = |a: &Axis| -> Vec<String> { a.ticks.iter().map(|t| t.1.clone()).collect() };
        assert_eq!(labels(&Axis::over(0.42, 0.98, 4.0)), ["0.6", "0.8"]);
        assert_eq!(
            labels(&Axis::over(-0.1, 0.1, 4.0)),
            ["−0.10", "−0.05", "0.00", "0.05", "0.10"]
        );
        assert_eq!(labels(&Axis::counting(1.0, 1.0)), ["1"]);
        assert_eq!(labels(&Axis::counting(1.0, 4.0)), ["1", "2", "3", "4"]);
        let one = Axis::over(5.0, 5.0, 4.0);
        assert!(one.low < 5.0 && one.high > 5.0 && !one.ticks.is_empty());
        assert!(
            Axis::over(1e9, 3e9, 4.0)
                .ticks
                .iter()
                .all(|t| t.1.len() <= 5)
        );
    }
    #[test]
    fn ranges_of_any_size_have_ticks() {
        let labels = |low, high| -> Vec<String> {
            let axis = Axis::over(low, high, 6.0);
            axis.ticks.into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(
            labels(-0.05, 1.05),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(labels(0.0, 2e-7)[1], "5e−8");
        assert_eq!(labels(0.0, 3e9)[1], "5e8");
        for (low, high) in [(1e15, 1e15 + 2.0), (-1e300, 1e300), (1e-300, 3e-300)] {
            let count = labels(low, high).len();
            assert!((1..=12).contains(&count), "{low} {high} {count}");
        }
    }
}
