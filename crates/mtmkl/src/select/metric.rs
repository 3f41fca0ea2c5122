//! How good predictions are, as one number.

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// The share of rows that are right.
    Accuracy,
    /// The mean over classes of the share of their rows that are right: chance is 1/classes however rare a class is.
    BalancedAccuracy,
    /// 2 tp / (2 tp + fp + fn) of the class +1; for several classes the mean over them.
    F1,
    /// The chance that a row of the class +1 has the larger decision value than one of the class −1, equal values counting half;
    /// for several classes the mean over them, each against all others.
    Auc,
    /// Σ_k (R_k − R_{k−1}) P_k over the decision values k from the largest down: P_k and R_k are precision and recall of the class +1
    /// where everything from there on is called +1; for several classes the mean over them, each against all others.
    AveragePrecision,
    /// −(1/n) Σ_i ln p_i, where p_i is the probability that was given to the class of row i. Less is better.
    LogLoss,
    /// (1/n) Σ_i Σ_c (p_ic − [c is the class of row i])², halved for two classes, where it is (p − y)². Less is better.
    Brier,
    /// √(mean squared error). Less is better.
    Rmse,
    /// The mean of |y − f|. Less is better.
    Mae,
    /// 1 − (squared error) / (squared error of the mean).
    R2,
}

/// The least probability that [`Metric::LogLoss`] tells from 0: one sure mistake is not worth an infinity.
const LEAST_PROBABILITY: f64 = f64::EPSILON;

impl Metric {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Accuracy,
        Self::BalancedAccuracy,
        Self::F1,
        Self::Auc,
        Self::AveragePrecision,
        Self::LogLoss,
        Self::Brier,
        Self::R2,
        Self::Rmse,
        Self::Mae,
    ];

    /// The name in tables, in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced-accuracy",
            Self::F1 => "F1",
            Self::Auc => "AUC",
            Self::AveragePrecision => "average-precision",
            Self::LogLoss => "log-loss",
            Self::Brier => "Brier",
            Self::Rmse => "RMSE",
            Self::Mae => "MAE",
            Self::R2 => "R2",
        }
    }

    /// The metric of this name, written in small or capital letters.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|metric| metric.name().eq_ignore_ascii_case(name))
    }

    /// Whether it is about numbers, not classes.
    pub fn is_for_numbers(self) -> bool {
        matches!(self, Self::Rmse | Self::Mae | Self::R2)
    }

    /// Whether it is about probabilities, which decision values are not: [`Metric::of_probabilities`].
    pub fn is_for_probabilities(self) -> bool {
        matches!(self, Self::LogLoss | Self::Brier)
    }

    /// Whether it goes by the order of decision values, not by what is predicted.
    pub fn is_of_order(self) -> bool {
        matches!(self, Self::Auc | Self::AveragePrecision)
    }

    /// Whether less is better.
    pub fn less_is_better(self) -> bool {
        matches!(self, Self::Rmse | Self::Mae | Self::LogLoss | Self::Brier)
    }

    /// Whether `a` is a better score than `b`; a score that is not a number is worse than any.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match (a.is_nan(), b.is_nan()) {
            (true, _) => false,
            (false, true) => true,
            _ if self.less_is_better() => a < b,
            _ => a > b,
        }
    }

    /// The score of decision values for labels ±1: > 0 predicts +1. Not a number where it is not defined (no rows, or not as many decisions
    /// as labels; for AUC and balanced accuracy, only one class; for average precision, no row of the class +1), or for a metric of
    /// numbers or probabilities.
    pub fn of_labels(self, labels: &[f64], decisions: &[f64]) -> f64 {
        if labels.len() != decisions.len() {
            return f64::NAN;
        }
        let truth: Vec<usize> = labels.iter().map(|&y| usize::from(y > 0.0)).collect();
        let predicted: Vec<usize> = decisions.iter().map(|&f| usize::from(f > 0.0)).collect();
        match self {
            Self::Accuracy => accuracy(&truth, &predicted),
            Self::BalancedAccuracy => mean((0..2).map(|class| recall(class, &truth, &predicted))),
            Self::F1 => f1(1, &truth, &predicted),
            Self::Auc => auc(&truth, decisions),
            Self::AveragePrecision => average_precision(&truth, decisions),
            _ => f64::NAN,
        }
    }

    /// The score of predicted classes 0..k. `values[c]` are the decision values for class c, needed where their order matters. A class without
    /// rows does not count in the means over classes. Not a number where there are not as many predictions, or values, as rows.
    pub fn of_classes(self, truth: &[usize], predicted: &[usize], values: &[Vec<f64>]) -> f64 {
        if truth.len() != predicted.len() {
            return f64::NAN;
        }
        let present: std::collections::BTreeSet<usize> = truth.iter().copied().collect();
        let present = present.into_iter();
        match self {
            Self::Accuracy => accuracy(truth, predicted),
            Self::BalancedAccuracy => mean(present.map(|class| recall(class, truth, predicted))),
            Self::F1 => mean(present.map(|class| f1(class, truth, predicted))),
            Self::Auc | Self::AveragePrecision => mean(present.map(|class| {
                let own: Vec<usize> = truth.iter().map(|&c| usize::from(c == class)).collect();
                let values = values.get(class).filter(|values| values.len() == own.len());
                match values {
                    None => f64::NAN,
                    Some(values) if self == Self::Auc => auc(&own, values),
                    Some(values) => average_precision(&own, values),
                }
            })),
            _ => f64::NAN,
        }
    }

    /// The score of probabilities of classes 0..k: `probabilities[c]` are those of class c, one for each row. Not a number where there are
    /// no rows, a class has no probabilities, or for a metric that is not about them.
    pub fn of_probabilities(self, truth: &[usize], probabilities: &[Vec<f64>]) -> f64 {
        let fits = |own: &Vec<f64>| own.len() == truth.len();
        let is_there = !probabilities.is_empty() && probabilities.iter().all(fits);
        if !self.is_for_probabilities() || !is_there {
            return f64::NAN;
        }
        let log_loss = |(row, &class): (usize, &usize)| {
            // A class that was never learned has no probability at all.
            let own = probabilities.get(class).map_or(0.0, |own| own[row]);
            // `max` would take the other one for what is not a number.
            if own.is_nan() {
                own
            } else {
                -own.max(LEAST_PROBABILITY).ln()
            }
        };
        let squares = |(row, &class): (usize, &usize)| {
            let off = probabilities.iter().enumerate().map(|(other, own)| {
                let is = f64::from(u8::from(other == class));
                (own[row] - is).powi(2)
            });
            let missed = f64::from(u8::from(class >= probabilities.len()));
            let sum = off.sum::<f64>() + missed;
            if probabilities.len() == 2 {
                0.5 * sum
            } else {
                sum
            }
        };
        let rows = truth.iter().enumerate();
        match self {
            Self::Brier => mean(rows.map(squares)),
            _ => mean(rows.map(log_loss)),
        }
    }

    /// The score of predicted numbers. Not a number where it is not defined (no rows, or not as many predictions; for R², all values equal),
    /// or for a metric of classes.
    pub fn of_numbers(self, truth: &[f64], predicted: &[f64]) -> f64 {
        if truth.len() != predicted.len() {
            return f64::NAN;
        }
        let left: f64 = truth
            .iter()
            .zip(predicted)
            .map(|(y, f)| (y - f).powi(2))
            .sum();
        match self {
            Self::Rmse => (left / truth.len() as f64).sqrt(),
            Self::Mae => mean(truth.iter().zip(predicted).map(|(y, f)| (y - f).abs())),
            Self::R2 => {
                let middle = mean(truth.iter().copied());
                let total: f64 = truth.iter().map(|y| (y - middle).powi(2)).sum();
                if total > 0.0 {
                    1.0 - left / total
                } else {
                    f64::NAN
                }
            }
            _ => f64::NAN,
        }
    }
}

/// Not a number where there is nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value, count + 1)
    });
    sum / count as f64
}

fn accuracy(truth: &[usize], predicted: &[usize]) -> f64 {
    mean(
        truth
            .iter()
            .zip(predicted)
            .map(|(a, b)| f64::from(u8::from(a == b))),
    )
}

/// The share of a class' rows that were recognised.
fn recall(class: usize, truth: &[usize], predicted: &[usize]) -> f64 {
    let own = truth.iter().zip(predicted).filter(|(a, _)| **a == class);
    mean(own.map(|(_, b)| f64::from(u8::from(*b == class))))
}

/// 0 where neither a row nor a prediction is of the class.
fn f1(class: usize, truth: &[usize], predicted: &[usize]) -> f64 {
    if truth.is_empty() {
        return f64::NAN;
    }
    let count = |wanted: &dyn Fn(usize, usize) -> bool| -> f64 {
        truth
            .iter()
            .zip(predicted)
            .filter(|(a, b)| wanted(**a, **b))
            .count() as f64
    };
    let hits = count(&|a, b| a == class && b == class);
    let faults = count(&|a, b| (a == class) != (b == class));
    if hits == 0.0 {
        0.0
    } else {
        2.0 * hits / (2.0 * hits + faults)
    }
}

/// How many of these rows, from the first on, have the value of the first, and how many of those are positive.
fn tied(rows: &[usize], positive: &[usize], values: &[f64]) -> (usize, usize) {
    let same = rows
        .iter()
        .take_while(|&&row| values[row] == values[rows[0]]);
    // A value that is none is not equal to itself.
    let ties = same.count().max(1);
    let own = rows[..ties].iter().filter(|&&row| positive[row] == 1);
    (ties, own.count())
}

/// Mann and Whitney's U: from the sum of the positive rows' ranks, ties sharing theirs.
fn auc(positive: &[usize], values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = 0.0;
    let mut start = 0;
    while start < order.len() {
        let (ties, own) = tied(&order[start..], positive, values);
        // Ranks start + 1 … start + ties, their mean to each.
        let rank = start as f64 + 0.5 * (ties + 1) as f64;
        ranks += rank * own as f64;
        start += ties;
    }
    let yes = positive.iter().filter(|&&class| class == 1).count() as f64;
    let no = positive.len() as f64 - yes;
    if yes == 0.0 || no == 0.0 {
        return f64::NAN;
    }
    (ranks - 0.5 * yes * (yes + 1.0)) / (yes * no)
}

/// The area under precision over recall, in steps: rows of one value count at once.
fn average_precision(positive: &[usize], values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let all = positive.iter().filter(|&&class| class == 1).count();
    if all == 0 {
        return f64::NAN;
    }
    let (mut hits, mut area, mut start) = (0, 0.0, 0);
    while start < order.len() {
        let (ties, own) = tied(&order[start..], positive, values);
        start += ties;
        hits += own;
        area += own as f64 * hits as f64 / start as f64;
    }
    area / all as f64
}
