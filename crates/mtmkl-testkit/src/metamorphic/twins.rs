//! What is done to a statement: changes of which is known what they do to J*.

use mtmkl::sharing::{SetSpec, SharingSpec, TermSpec};

use crate::generate::Random;
use crate::statement::{Set, StatedTask, Statement};

/// 0..n in some order.
pub(super) fn order(random: &mut Random, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

fn chosen<T: Clone>(all: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|&i| all[i].clone()).collect()
}

impl StatedTask {
    /// These of its samples, in this order.
    pub(super) fn part(&self, order: &[usize]) -> Self {
        Self {
            set: self.set,
            rows: chosen(&self.rows, order),
            targets: chosen(&self.targets, order),
            weights: self.weights.as_ref().map(|weights| chosen(weights, order)),
        }
    }
}

impl Set {
    /// These of its samples, which may be there more than once.
    pub(super) fn part(&self, order: &[usize], columns: usize) -> Self {
        let n = self.count;
        let rows = order
            .iter()
            .flat_map(|&i| self.rows[i * columns..(i + 1) * columns].to_vec());
        let gram = |(name, values): &(String, Vec<f64>)| {
            let cells = order
                .iter()
                .flat_map(|&i| order.iter().map(move |&j| i * n + j));
            (name.clone(), cells.map(|at| values[at]).collect())
        };
        Self {
            count: order.len(),
            rows: rows.collect(),
            grams: self.grams.iter().map(gram).collect(),
        }
    }
}

impl Statement {
    /// With the terms of the sharing changed; a name is kept where nothing changed. `None` where one of them cannot be.
    pub(super) fn with_terms(
        mut self,
        change: impl Fn(TermSpec) -> Option<TermSpec>,
    ) -> Option<Self> {
        // Of the shape that it was made for: the caller changes the shape after this.
        let terms = self.sharing.terms(self.shape()).ok()?;
        let changed: Vec<TermSpec> = terms.iter().cloned().map(change).collect::<Option<_>>()?;
        if changed != terms {
            self.sharing = SharingSpec::sum(changed);
        }
        Some(self)
    }

    /// With the sets of weights of the sharing changed, and the radii of balls over tasks times a factor.
    pub(super) fn with_sets(
        self,
        set: impl Fn(SetSpec) -> Option<SetSpec>,
        factor: impl Fn(f64, f64) -> f64,
    ) -> Option<Self> {
        self.with_terms(|term| {
            Some(match term {
                TermSpec::Common(own) => TermSpec::Common(set(own)?),
                TermSpec::Independent(own) => TermSpec::Independent(set(own)?),
                TermSpec::Group { p, q, radius } => TermSpec::Group {
                    p,
                    q,
                    radius: radius * factor(p, q),
                },
                TermSpec::Level {
                    level,
                    p,
                    q,
                    radius,
                } => TermSpec::Level {
                    level,
                    p,
                    q,
                    radius: radius * factor(p, q),
                },
                _ => return None,
            })
        })
    }

    /// The terms of the sharing as a sum, whatever its name.
    pub(super) fn into_sum(mut self) -> Option<Self> {
        let terms = self.sharing.terms(self.shape()).ok()?;
        self.sharing = SharingSpec::sum(terms);
        Some(self)
    }

    /// Each task on a set of its own, in its own order.
    pub(super) fn own_sets(mut self) -> Self {
        let sets = self
            .tasks
            .iter()
            .map(|task| self.sets[task.set].part(&task.rows, self.columns))
            .collect();
        self.sets = sets;
        for (number, task) in self.tasks.iter_mut().enumerate() {
            task.set = number;
            task.rows = (0..task.rows.len()).collect();
        }
        self
    }

    /// Rows and samples in another order.
    pub(super) fn other_rows(mut self, random: &mut Random) -> Self {
        for number in 0..self.sets.len() {
            let new = order(random, self.sets[number].count);
            self.sets[number] = self.sets[number].part(&new, self.columns);
            let mut places = vec![0; new.len()];
            new.iter()
                .enumerate()
                .for_each(|(place, &row)| places[row] = place);
            for task in self.tasks.iter_mut().filter(|task| task.set == number) {
                for row in &mut task.rows {
                    *row = places[*row];
                }
            }
        }
        for task in &mut self.tasks {
            let new = order(random, task.rows.len());
            *task = task.part(&new);
        }
        self
    }

    /// Tasks in another order.
    pub(super) fn other_tasks(self, random: &mut Random) -> Option<Self> {
        let new = order(random, self.tasks.len());
        let mut places = vec![0; new.len()];
        new.iter()
            .enumerate()
            .for_each(|(place, &task)| places[task] = place);
        let mut twin = self.with_terms(|term| {
            Some(match term {
                TermSpec::Level {
                    mut level,
                    p,
                    q,
                    radius,
                } => {
                    for (_, group) in &mut level.groups {
                        for task in group.iter_mut() {
                            *task = places[*task];
                        }
                    }
                    TermSpec::Level {
                        level,
                        p,
                        q,
                        radius,
                    }
                }
                other => other,
            })
        })?;
        twin.tasks = chosen(&twin.tasks, &new);
        Some(twin)
    }

    /// Kernels in another order.
    pub(super) fn other_kernels(self, random: &mut Random) -> Option<Self> {
        let new = order(random, self.kernels.len());
        let mut twin = self.with_sets(
            |set| {
                Some(match set {
                    SetSpec::PriorBall { prior, radius } => SetSpec::PriorBall {
                        prior: chosen(&prior, &new),
                        radius,
                    },
                    SetSpec::Fixed { weights } => SetSpec::Fixed {
                        weights: chosen(&weights, &new),
                    },
                    other => other,
                })
            },
            |_, _| 1.0,
        )?;
        twin.kernels = chosen(&twin.kernels, &new);
        Some(twin)
    }

    /// Each kernel twice, with sets in which two halves are worth the whole: ‖(θ/2, θ/2)‖_p = 2^{1/p − 1} ‖θ‖_p.
    pub(super) fn kernels_twice(self) -> Option<Self> {
        let twice = |values: Vec<f64>| -> Vec<f64> {
            let half: Vec<f64> = values.iter().map(|value| 0.5 * value).collect();
            [half.clone(), half].concat()
        };
        let factor = |p: f64| 2.0_f64.powf(1.0 / p - 1.0);
        let mut twin = self.with_sets(
            |set| {
                Some(match set {
                    SetSpec::LpBall { p, radius } => SetSpec::LpBall {
                        p,
                        radius: radius * factor(p),
                    },
                    SetSpec::Simplex { total } => SetSpec::Simplex { total },
                    SetSpec::BoxSimplex { total, upper } => SetSpec::BoxSimplex {
                        total,
                        upper: 0.5 * upper,
                    },
                    SetSpec::PriorBall { prior, radius } => SetSpec::PriorBall {
                        prior: twice(prior),
                        radius: radius / 2.0_f64.sqrt(),
                    },
                    SetSpec::Fixed { weights } => SetSpec::Fixed {
                        weights: twice(weights),
                    },
                    _ => return None,
                })
            },
            |p, _| factor(p),
        )?;
        twin.kernels = [twin.kernels.clone(), twin.kernels].concat();
        Some(twin)
    }

    /// One kernel more, whose values are all zero: of no use where all sensitivities are ≥ 0.
    pub(super) fn with_zero_kernel(self) -> Option<Self> {
        if self.machine.name() == "svdd" {
            return None;
        }
        let zero = |mut values: Vec<f64>| {
            values.push(0.0);
            values
        };
        let mut twin = self.with_sets(
            |set| {
                Some(match set {
                    SetSpec::LpBall { .. } | SetSpec::Simplex { .. } => set,
                    SetSpec::PriorBall { prior, radius } => SetSpec::PriorBall {
                        prior: zero(prior),
                        radius,
                    },
                    SetSpec::Fixed { weights } => SetSpec::Fixed {
                        weights: zero(weights),
                    },
                    _ => return None,
                })
            },
            |_, _| 1.0,
        )?;
        twin.kernels.push("precomputed:name=zero".to_string());
        for set in &mut twin.sets {
            set.grams
                .push(("zero".to_string(), vec![0.0; set.count * set.count]));
        }
        Some(twin)
    }

    /// Each kernel times a factor; `None` where one is normalised by itself or has a factor already.
    pub(super) fn with_factor(mut self, factor: f64) -> Option<Self> {
        for kernel in &mut self.kernels {
            let is_normalised = kernel.starts_with("cosine") || kernel.starts_with("constant");
            if is_normalised || kernel.starts_with("precomputed") || kernel.contains("factor") {
                return None;
            }
            let (head, columns) = kernel
                .split_once('@')
                .map_or((kernel.as_str(), ""), |(head, rest)| (head, rest));
            let sign = if head.contains(':') { ',' } else { ':' };
            let at = if columns.is_empty() { "" } else { "@" };
            *kernel = format!("{head}{sign}factor={factor}{at}{columns}");
        }
        Some(self)
    }

    /// All weights times a factor.
    pub(super) fn with_weights_times(self, factor: f64) -> Option<Self> {
        let times = |values: Vec<f64>| values.iter().map(|value| factor * value).collect();
        self.with_sets(
            |set| {
                Some(match set {
                    SetSpec::LpBall { p, radius } => SetSpec::LpBall {
                        p,
                        radius: factor * radius,
                    },
                    SetSpec::Simplex { total } => SetSpec::Simplex {
                        total: factor * total,
                    },
                    SetSpec::BoxSimplex { total, upper } => SetSpec::BoxSimplex {
                        total: factor * total,
                        upper: factor * upper,
                    },
                    SetSpec::PriorBall { prior, radius } => SetSpec::PriorBall {
                        prior: times(prior),
                        radius: factor * radius,
                    },
                    SetSpec::Fixed { weights } => SetSpec::Fixed {
                        weights: times(weights),
                    },
                    _ => return None,
                })
            },
            |_, _| factor,
        )
    }

    /// Whether all of Ψ are balls around 0, so that a larger factor is a larger set.
    pub(super) fn is_of_balls(&self) -> bool {
        let is_ball = |term: &TermSpec| match term {
            TermSpec::Common(set) | TermSpec::Independent(set) => {
                matches!(set, SetSpec::LpBall { .. })
            }
            TermSpec::Group { .. } | TermSpec::Level { .. } => true,
            _ => false,
        };
        self.sharing
            .terms(self.shape())
            .is_ok_and(|terms| terms.iter().all(is_ball))
    }

    /// Each task twice, with sets in which that costs twice as much.
    pub(super) fn tasks_twice(self) -> Option<Self> {
        let tasks = self.tasks.len();
        let mut twin = self.with_terms(|term| {
            Some(match term {
                TermSpec::Group { p, q, radius } => TermSpec::Group {
                    p,
                    q,
                    radius: radius * 2.0_f64.powf(1.0 / q),
                },
                TermSpec::Level {
                    mut level,
                    p,
                    q,
                    radius,
                } => {
                    for (_, group) in &mut level.groups {
                        let copies: Vec<usize> = group.iter().map(|task| task + tasks).collect();
                        group.extend(copies);
                    }
                    TermSpec::Level {
                        level,
                        p,
                        q,
                        radius,
                    }
                }
                other => other,
            })
        })?;
        // By its name it would be of as many tasks as there are: Tang's share of a task, and `lp`.
        if matches!(twin.sharing.name(), "tang" | "lp") {
            twin = twin.into_sum()?;
        }
        twin.tasks = [twin.tasks.clone(), twin.tasks].concat();
        Some(twin)
    }

    /// Whole weights, and the same as copies of rows; both on sets of their own.
    pub(super) fn weights_and_copies(self, random: &mut Random) -> (Self, Self) {
        let mut weighted = self.own_sets();
        let mut copied = weighted.clone();
        for (number, task) in weighted.tasks.iter_mut().enumerate() {
            let n = task.rows.len();
            let counts: Vec<usize> = (0..n).map(|_| 1 + random.below(3)).collect();
            task.weights = Some(counts.iter().map(|&count| count as f64).collect());
            let places: Vec<usize> = (0..n).flat_map(|row| vec![row; counts[row]]).collect();
            copied.sets[number] = copied.sets[number].part(&places, copied.columns);
            let own = &mut copied.tasks[number];
            own.weights = None;
            *own = own.part(&places);
            own.rows = (0..places.len()).collect();
        }
        (weighted, copied)
    }

    /// The kernels as matrices by the textbook; `None` for kernels without a formula there.
    pub(super) fn into_given(mut self) -> Option<Self> {
        let grams = self.grams(false)?;
        for (set, grams) in self.sets.iter_mut().zip(grams) {
            set.grams = grams
                .into_iter()
                .enumerate()
                .map(|(number, gram)| (format!("g{number}"), gram))
                .collect();
        }
        self.kernels = (0..self.kernels.len())
            .map(|number| format!("precomputed:name=g{number}"))
            .collect();
        Some(self)
    }

    /// Some statement of the same Ψ in other words.
    pub(super) fn in_other_words(mut self, random: &mut Random) -> Option<Self> {
        let tasks = self.tasks.len();
        let grows = self.machine.name() != "svdd";
        let (p, q, radius) = (
            self.sharing.number("p"),
            self.sharing.number("q"),
            self.sharing.number("radius"),
        );
        let other = if random.below(2) == 0 { 1.0 } else { 2.5 };
        self.sharing = match (self.sharing.name(), tasks) {
            ("lp", _) => SharingSpec::group(p, other, radius),
            ("common" | "independent", 1) => SharingSpec::lp(p, radius),
            ("group", 1) => SharingSpec::common(p, radius),
            ("pscs", 1) => SharingSpec::independent(p, 2.0 * radius),
            // All sensitivities are ≥ 0, so that all of the mass is used.
            ("common", _) if p == 1.0 && grows => {
                SharingSpec::sum(vec![TermSpec::Common(SetSpec::Simplex { total: radius })])
            }
            ("tang", _) if self.sharing.number("beta") == 0.0 => SharingSpec::simplex(),
            ("tang", _) if self.sharing.number("beta") >= tasks as f64 => {
                SharingSpec::sum(vec![TermSpec::Independent(SetSpec::Simplex { total: 1.0 })])
            }
            ("simplex", _) if random.below(2) == 0 => SharingSpec::tang(0.0),
            ("simplex", _) => SharingSpec::box_simplex(1.0),
            ("box-simplex", _) if self.sharing.number("upper") >= 1.0 => SharingSpec::simplex(),
            ("uniform", _) => {
                SharingSpec::fixed(vec![1.0 / self.kernels.len() as f64; self.kernels.len()])
            }
            ("group", _) => {
                let level = mtmkl::NamedLevel {
                    label: "alone".to_string(),
                    groups: (0..tasks)
                        .map(|task| (format!("g{task}"), vec![task]))
                        .collect(),
                };
                SharingSpec::sum(vec![TermSpec::Level {
                    level,
                    p,
                    q,
                    radius,
                }])
            }
            _ => return self.into_sum(),
        };
        Some(self)
    }

    /// With numbers of the machine changed; whether it has them all.
    pub(super) fn with_numbers(mut self, numbers: &[(&str, f64)]) -> Option<Self> {
        for (name, value) in numbers {
            self.machine.set(name, *value).then_some(())?;
        }
        Some(self)
    }

    /// With other targets.
    pub(super) fn with_targets(mut self, change: impl Fn(f64) -> f64) -> Self {
        for task in &mut self.tasks {
            for value in &mut task.targets {
                *value = change(*value);
            }
        }
        self
    }
}
