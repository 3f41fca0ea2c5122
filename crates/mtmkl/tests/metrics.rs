//! Metrics, against counting by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::select::Metric;
use proptest::prelude::*;

proptest! {
    #[test]
    fn metrics_by_counting(rows in prop::collection::vec((0_usize..3, 0_usize..3, -3_i32..4), 1..40)) {
        let truth: Vec<usize> = rows.iter().map(|row| row.0).collect();
        let guess: Vec<usize> = rows.iter().map(|row| row.1).collect();
        let of = |metric: Metric| metric.of_classes(&truth, &guess, &[]);
        let right = rows.iter().filter(|row| row.0 == row.1).count() as f64;
        prop_assert!((of(Metric::Accuracy) - right / rows.len() as f64).abs() < 1e-12);
        let (mut recalls, mut f1s) = (Vec::new(), Vec::new());
        for class in (0..3).filter(|class| truth.contains(class)) {
            let hits = rows.iter().filter(|row| row.0 == class && row.1 == class).count() as f64;
            let own = rows.iter().filter(|row| row.0 == class).count() as f64;
            let said = rows.iter().filter(|row| row.1 == class).count() as f64;
            recalls.push(hits / own);
            let (precision, recall) = (hits / said, hits / own);
            f1s.push(if hits > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 });
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        prop_assert!((of(Metric::BalancedAccuracy) - mean(&recalls)).abs() < 1e-12);
        prop_assert!((of(Metric::F1) - mean(&f1s)).abs() < 1e-12);
        // AUC by its definition, over all pairs.
        let labels: Vec<f64> = truth.iter().map(|&class| if class == 0 { 1.0 } else { -1.0 }).collect();
        let values: Vec<f64> = rows.iter().map(|row| f64::from(row.2)).collect();
        let (mut wins, mut pairs) = (0.0, 0.0);
        for a in (0..rows.len()).filter(|&a| labels[a] > 0.0) {
            for b in (0..rows.len()).filter(|&b| labels[b] < 0.0) {
                pairs += 1.0;
                wins += if values[a] > values[b] { 1.0 } else if values[a] == values[b] { 0.5 } else { 0.0 };
            }
        }
        let auc = Metric::Auc.of_labels(&labels, &values);
        let same = (pairs == 0.0 && auc.is_nan()) || (auc - wins / pairs).abs() < 1e-12;
        prop_assert!(same, "{} {}", auc, wins / pairs);
        // Average precision by its definition, over all thresholds.
        let all = labels.iter().filter(|&&label| label > 0.0).count() as f64;
        let (mut area, mut before) = (0.0, 0.0);
        for threshold in (-3..4).rev().map(f64::from) {
            let said = (0..rows.len()).filter(|&row| values[row] >= threshold);
            let (hits, said) = said.fold((0.0, 0.0), |(hits, said), row| {
                (hits + f64::from(u8::from(labels[row] > 0.0)), said + 1.0)
            });
            if said > 0.0 {
                area += (hits / all - before) * hits / said;
                before = hits / all;
            }
        }
        let found = Metric::AveragePrecision.of_labels(&labels, &values);
        let same = (all == 0.0 && found.is_nan()) || (found - area).abs() < 1e-12;
        prop_assert!(same, "{} {}", found, area);
        // Log-loss, with probabilities that are votes.
        let given: Vec<Vec<f64>> = (0..3)
            .map(|class| guess.iter().map(|&said| if said == class { 0.5 } else { 0.25 }).collect())
            .collect();
        let loss: f64 = rows.iter().map(|row| -if row.0 == row.1 { 0.5_f64 } else { 0.25 }.ln()).sum();
        let found = Metric::LogLoss.of_probabilities(&truth, &given);
        prop_assert!((found - loss / rows.len() as f64).abs() < 1e-12);
    }
}

#[test]
fn metrics_of_numbers() {
    let (truth, predicted) = ([1.0, 2.0, 3.0, 6.0], [1.0, 2.0, 4.0, 4.0]);
    assert_eq!(Metric::Rmse.of_numbers(&truth, &predicted), 1.25_f64.sqrt());
    assert_eq!(Metric::Mae.of_numbers(&truth, &predicted), 0.75);
    assert!((Metric::R2.of_numbers(&truth, &predicted) - (1.0 - 5.0 / 14.0)).abs() < 1e-12);
    assert!(Metric::R2.of_numbers(&[2.0, 2.0], &[1.0, 3.0]).is_nan());
    assert!(Metric::Rmse.is_better(1.0, 2.0) && Metric::R2.is_better(2.0, 1.0));
    assert!(Metric::R2.is_better(0.0, f64::NAN) && !Metric::R2.is_better(f64::NAN, f64::NAN));
    assert!(Metric::Mae.is_better(1.0, 2.0) && Metric::LogLoss.is_better(0.1, 0.7));
    // A sure mistake is dear, not infinitely so; a probability that is none is no score.
    let sure =
        |value: f64| Metric::LogLoss.of_probabilities(&[0, 1], &[vec![1.0; 2], vec![value; 2]]);
    assert!(sure(0.0) > 18.0 && sure(0.0) < 19.0);
    assert!(sure(f64::NAN).is_nan());
    assert!(Metric::LogLoss.of_probabilities(&[], &[]).is_nan());
    for metric in Metric::ALL {
        assert_eq!(Metric::named(metric.name()), Some(metric));
    }
}
