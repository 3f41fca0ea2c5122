//! min over θ in Ψ of max over α in Ω of `Σ_t` ḡ(α^t, `Σ_m` `θ_m^t` `K_m^t`), by a general conic solver.
//!
//! ḡ is affine in θ and concave in α, and Ψ is convex and bounded, so the order may be turned round: the optimum is the
//! largest, over α, of (the part of ḡ without θ) − `σ_Ψ(s(α))`, where s are the sensitivities and `σ_Ψ(s)` = max over θ in Ψ
//! of ⟨s, θ⟩ is the support function. That is one concave problem in α alone. Each `s_m` is a convex quadratic of α and σ
//! never falls when an entry of s rises (θ ≥ 0), so t ≥ s(α) may stand for s: quadratics become second-order cones and
//! σ is written by its dual. No formula, step or rounding is shared with a Frank–Wolfe or Newton method on θ.

mod cutting;
mod programme;
#[cfg(test)]
mod tests;

pub use cutting::cutting;
use programme::{Affine, Answer, Programme};

/// Tolerance asked of the solver, on a problem scaled to order one.
const TOLERANCE: f64 = 1e-10;
/// Largest relative error (gap, residuals by their effect on the value) with which an answer counts as solved.
const ACCEPTED: f64 = 1e-8;
/// Pivots below this fraction of the largest diagonal entry are rounding, not rank.
const PIVOT: f64 = 1e-13;

/// A machine: ḡ(α, K) to be maximised over α in Ω, in α form.
#[derive(Clone, Debug)]
pub enum Machine {
    /// 1'α − ½ β'Kβ with β = y∘α, 0 ≤ α ≤ upper, y'α = 0; y is ±1.
    Svc {
        /// Labels ±1.
        y: Vec<f64>,
        /// Box, one bound a sample.
        upper: Vec<f64>,
    },
    /// −Σ [α ln(α/upper) + (upper − α) ln((upper − α)/upper)] − ½ β'Kβ with β = y∘α, 0 ≤ α ≤ upper, y'α = 0; y is ±1.
    Logistic {
        /// Labels ±1.
        y: Vec<f64>,
        /// C of each sample.
        upper: Vec<f64>,
    },
    /// 2α'y − α'(λI + K)α, α free.
    Krr {
        /// Targets.
        y: Vec<f64>,
        /// Ridge λ > 0.
        lambda: f64,
    },
    /// α'diag(K) − α'Kα, 0 ≤ α ≤ c, 1'α = 1.
    Svdd {
        /// Box; c·n ≥ 1.
        c: f64,
    },
    /// −α'Kα, 0 ≤ α ≤ 1/(ν n), 1'α = 1.
    OneClass {
        /// 0 < ν ≤ 1.
        nu: f64,
    },
    /// y'β − ε‖β‖₁ − ½ β'Kβ, |β| ≤ upper, 1'β = 0.
    Svr {
        /// Targets.
        y: Vec<f64>,
        /// Box, one bound a sample.
        upper: Vec<f64>,
        /// Half width ε ≥ 0 of the tube.
        epsilon: f64,
    },
}

/// One task: a machine on n samples with M Gram matrices.
#[derive(Clone, Debug)]
pub struct Task {
    /// The machine.
    pub machine: Machine,
    /// n.
    pub samples: usize,
    /// M matrices, each n·n entries by rows, positive semidefinite (rank deficient is fine).
    pub grams: Vec<Vec<f64>>,
}

/// A set of kernel weights of one task, always with θ ≥ 0.
#[derive(Clone, Debug)]
pub enum Set {
    /// ‖θ‖_p ≤ radius, 1 ≤ p ≤ ∞.
    LpBall {
        /// Exponent.
        p: f64,
        /// Radius.
        radius: f64,
    },
    /// Σθ = total.
    Simplex {
        /// Mass.
        total: f64,
    },
    /// Σθ = total, θ ≤ upper.
    BoxSimplex {
        /// Mass.
        total: f64,
        /// Largest weight; upper·M ≥ total.
        upper: f64,
    },
    /// ‖θ − centre‖₂ ≤ radius.
    PriorBall {
        /// Prior weights, ≥ 0.
        centre: Vec<f64>,
        /// Radius.
        radius: f64,
    },
    /// θ = weights.
    Fixed {
        /// Weights.
        weights: Vec<f64>,
    },
}

/// One summand of a sharing; a sharing Ψ is the Minkowski sum of its terms.
#[derive(Clone, Debug)]
pub enum Term {
    /// One ζ in the set, for all tasks.
    Common(Set),
    /// One `γ^t` in the set a task.
    Independent(Set),
    /// `γ^t` given, a row for each task.
    Given(Vec<Vec<f64>>),
    /// (`Σ_t` ‖γ^t‖_p^q)^{1/q} ≤ radius, γ ≥ 0.
    Group {
        /// Exponent inside a task.
        p: f64,
        /// Exponent across tasks.
        q: f64,
        /// Radius.
        radius: f64,
    },
    /// (`Σ_v` ‖γ^v‖_p^q)^{1/q} ≤ radius, γ ≥ 0, a row for each group v of tasks, which is added to the weights of all of them.
    Level {
        /// The tasks of each group.
        groups: Vec<Vec<usize>>,
        /// Exponent inside a group.
        p: f64,
        /// Exponent across groups.
        q: f64,
        /// Radius.
        radius: f64,
    },
}

/// J* = max over α of (θ-free part) − `σ_Ψ(s(α))`, and where it is reached.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// J*.
    pub value: f64,
    /// The maximiser, one vector a task, in the machine's own variable (α; β for [`Machine::Svr`]).
    pub alpha: Vec<Vec<f64>>,
    /// The minimising weights, T rows of M: the multipliers of t ≥ s(α). Not unique where J is flat.
    pub theta: Vec<Vec<f64>>,
    /// Whether the gap and the effect of the residuals on the value are below 1e-8, relative.
    pub solved: bool,
    /// How far the value may be off: the gap, the dual residual and the effect of the primal residuals, times the size of J.
    pub error: f64,
    /// The size of what the value is the sum of: the value itself, or the largest sensitivity.
    pub unit: f64,
}

impl Optimum {
    /// By how much J* may differ because the factors LL' that were used are not quite the kernels: Σ θ |α|'|K − LL'||α|.
    pub fn factor_error(&self, tasks: &[Task]) -> f64 {
        let mut error = 0.0;
        for ((task, alpha), theta) in tasks.iter().zip(&self.alpha).zip(&self.theta) {
            let n = task.samples;
            for (gram, weight) in task.grams.iter().zip(theta) {
                let columns = pivoted_cholesky(gram, n);
                for i in 0..n {
                    for j in 0..n {
                        let made: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
                        let rest = (gram[i * n + j] - made).abs();
                        error += weight.max(0.0) * rest * (alpha[i] * alpha[j]).abs();
                    }
                }
            }
        }
        error
    }
}

/// max over θ in Ψ of ⟨s, θ⟩, and where it is reached.
#[derive(Clone, Debug)]
pub struct Maximum {
    /// The support function.
    pub value: f64,
    /// A maximiser, T rows of M.
    pub theta: Vec<Vec<f64>>,
    /// Whether the gap and the effect of the residuals on the value are below 1e-8, relative.
    pub solved: bool,
}

/// Units in which the variables are of order one, so that the solver's tolerances mean relative errors.
struct Scale {
    /// Size of α, one a task.
    alpha: Vec<f64>,
    /// Size of `s_tm`.
    sensitivity: Vec<Vec<f64>>,
    /// Size of J.
    value: f64,
}

/// The programme of [`optimum`], with the expressions to read its answer by.
struct Model {
    programme: Programme,
    alpha: Vec<Vec<Affine>>,
    /// The variables t that stand above the quadratic part of s, T×M.
    epigraph: Vec<Vec<Affine>>,
    /// First row of the cone of `t_tm`.
    cone: Vec<Vec<usize>>,
}

/// J* = max over α in Ω of (θ-free part of `Σ_t` ḡ) − `σ_Ψ(s(α))`, the support-function form of min over Ψ of max over Ω.
///
/// Solved twice: a rough pass finds the size of α, s and J, the second is scaled by them.
pub fn optimum(tasks: &[Task], sharing: &[Term]) -> Optimum {
    let kernels = tasks.first().map_or(0, |task| task.grams.len());
    assert!(kernels > 0, "at least one task and one kernel");
    for task in tasks {
        check(task, kernels);
    }
    let factors: Vec<Vec<Vec<Vec<f64>>>> = tasks
        .iter()
        .map(|task| {
            task.grams
                .iter()
                .map(|gram| pivoted_cholesky(gram, task.samples))
                .collect()
        })
        .collect();

    let mut scale = guess(tasks);
    let mut best: Option<(f64, Optimum)> = None;
    // The first pass only looks for the sizes; a third mends them where the second fell short.
    for (tolerance, accepted) in [(1e-6, 1e-4), (TOLERANCE, ACCEPTED), (TOLERANCE, ACCEPTED)] {
        let model = assemble(tasks, sharing, &factors, &scale);
        let answer = model.programme.solve(tolerance, accepted);
        if best.as_ref().is_none_or(|(error, _)| answer.error < *error) {
            best = Some((answer.error, read(&model, &answer, &scale)));
        }
        if tolerance == TOLERANCE && answer.error < ACCEPTED || !answer.error.is_finite() {
            break;
        }
        scale = rescale(&model, &answer, &scale);
    }
    best.expect("one pass at least").1
}

/// max over θ in Ψ of ⟨s, θ⟩ as a conic programme in the summands ζ, γ themselves; s has T rows of M, of any sign.
///
/// No closed form of the support function is used.
pub fn maximum(sharing: &[Term], s: &[Vec<f64>]) -> Maximum {
    let tasks = s.len();
    let kernels = s.first().map_or(0, Vec::len);
    assert!(kernels > 0, "at least one task and one kernel");
    assert!(
        s.iter().all(|row| row.len() == kernels),
        "rows of equal length"
    );
    let largest = s
        .iter()
        .flatten()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let reach = sharing.iter().map(size).fold(0.0_f64, f64::max);
    let unit = if largest * reach > 0.0 {
        largest * reach
    } else {
        1.0
    };

    let mut programme = Programme::default();
    let theta = sum_of(
        &rows_of(&mut programme, sharing, tasks, kernels),
        tasks,
        kernels,
    );
    for (costs, row) in s.iter().zip(&theta) {
        for (cost, weight) in costs.iter().zip(row) {
            programme.minimise(-cost / unit, weight);
        }
    }
    let answer = programme.solve(TOLERANCE, ACCEPTED);
    Maximum {
        value: -answer.value * unit,
        theta: theta
            .iter()
            .map(|row| row.iter().map(|weight| weight.at(&answer.x)).collect())
            .collect(),
        solved: answer.error < ACCEPTED,
    }
}

/// A row of weights, and the tasks that it is added to.
type Row = (Vec<usize>, Vec<Affine>);

/// The rows of each term, constrained to be in it.
fn rows_of(
    programme: &mut Programme,
    sharing: &[Term],
    tasks: usize,
    kernels: usize,
) -> Vec<Vec<Row>> {
    let all = || (0..tasks).collect::<Vec<usize>>();
    let each = || {
        (0..tasks)
            .map(|task| vec![task])
            .collect::<Vec<Vec<usize>>>()
    };
    sharing
        .iter()
        .map(|term| match term {
            Term::Common(set) => vec![(all(), member(programme, set, kernels))],
            Term::Independent(set) => each()
                .into_iter()
                .map(|task| (task, member(programme, set, kernels)))
                .collect(),
            Term::Given(rows) => (each().into_iter().zip(rows))
                .map(|(task, row)| (task, row.iter().map(|&w| Affine::constant(w)).collect()))
                .collect(),
            &Term::Group { p, q, radius } => level(programme, &each(), [p, q, radius], kernels),
            Term::Level {
                groups,
                p,
                q,
                radius,
            } => level(programme, groups, [*p, *q, *radius], kernels),
        })
        .collect()
}

/// A row of weights for each group, the rows in an L_p–L_q ball together.
fn level(
    programme: &mut Programme,
    groups: &[Vec<usize>],
    [p, q, radius]: [f64; 3],
    kernels: usize,
) -> Vec<Row> {
    if radius == 0.0 {
        return Vec::new();
    }
    let mut norms = Vec::with_capacity(groups.len());
    let mut rows = Vec::with_capacity(groups.len());
    for group in groups {
        let gamma = nonnegatives(programme, kernels);
        norms.push(programme.norm(p, &gamma));
        rows.push((
            group.clone(),
            gamma.iter().map(|weight| weight.scaled(radius)).collect(),
        ));
    }
    programme.norm_at_most(q, &norms, &Affine::constant(1.0));
    rows
}

/// θ: the rows of all terms, each for its tasks.
fn sum_of(terms: &[Vec<Row>], tasks: usize, kernels: usize) -> Vec<Vec<Affine>> {
    let mut theta = vec![vec![Affine::default(); kernels]; tasks];
    for (reached, row) in terms.iter().flatten() {
        for &task in reached {
            add(&mut theta[task], row);
        }
    }
    theta
}

/// A point of Ψ next to θ: the nearest by cones, each of its rows then moved into its set exactly.
pub fn nearest(sharing: &[Term], theta: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (tasks, kernels) = (theta.len(), theta[0].len());
    let size = theta
        .iter()
        .flatten()
        .fold(f64::MIN_POSITIVE, |most, value| value.abs().max(most));
    let mut programme = Programme::default();
    let terms = rows_of(&mut programme, sharing, tasks, kernels);
    let distance = programme.variable();
    let differences = sum_of(&terms, tasks, kernels)
        .into_iter()
        .flatten()
        .zip(theta.iter().flatten());
    let mut cone = vec![distance.clone()];
    cone.extend(differences.map(|(weight, wanted)| {
        weight
            .scaled(1.0 / size)
            .plus(-1.0, &Affine::constant(wanted / size))
    }));
    programme.second_order(cone);
    programme.minimise(1.0, &distance);
    let answer = programme.solve(TOLERANCE, ACCEPTED);
    let mut found = vec![vec![0.0; kernels]; tasks];
    for (term, rows) in sharing.iter().zip(&terms) {
        let mut values: Vec<Vec<f64>> = rows
            .iter()
            .map(|(_, row)| row.iter().map(|weight| weight.at(&answer.x)).collect())
            .collect();
        crate::bracket::settle(term, &mut values);
        for ((reached, _), row) in rows.iter().zip(&values) {
            for &task in reached {
                found[task]
                    .iter_mut()
                    .zip(row)
                    .for_each(|(sum, weight)| *sum += weight);
            }
        }
    }
    found
}

fn check(task: &Task, kernels: usize) {
    let n = task.samples;
    assert!(
        task.grams.len() == kernels,
        "every task has the same number of kernels"
    );
    assert!(
        task.grams.iter().all(|gram| gram.len() == n * n),
        "a Gram matrix is n·n"
    );
    match &task.machine {
        Machine::Svc { y, upper }
        | Machine::Logistic { y, upper }
        | Machine::Svr { y, upper, .. } => {
            assert!(
                y.len() == n && upper.len() == n,
                "one label and one bound a sample"
            );
        }
        Machine::Krr { y, lambda } => {
            assert!(y.len() == n && *lambda > 0.0, "one target a sample, λ > 0");
        }
        // Less than one unit of mass in all: Ω would be empty. The slack is for ν = 1, where 1/(νn)·n may round below 1.
        Machine::Svdd { c } => assert!(c * n as f64 >= 1.0 - 1e-12, "c·n ≥ 1"),
        Machine::OneClass { nu } => assert!(*nu > 0.0 && *nu <= 1.0, "0 < ν ≤ 1"),
    }
}

/// Size of the largest weight in a term, to scale the objective by.
fn size(term: &Term) -> f64 {
    match term {
        Term::Group { radius, .. } | Term::Level { radius, .. } => *radius,
        Term::Given(rows) => rows.iter().flatten().copied().fold(0.0, f64::max),
        Term::Common(set) | Term::Independent(set) => match set {
            Set::LpBall { radius, .. } => *radius,
            Set::Simplex { total } => *total,
            Set::BoxSimplex { total, upper } => total.min(*upper),
            Set::PriorBall { centre, radius } => {
                radius + centre.iter().copied().fold(0.0, f64::max)
            }
            Set::Fixed { weights } => weights.iter().copied().fold(0.0, f64::max),
        },
    }
}

fn add(row: &mut [Affine], summand: &[Affine]) {
    for (weight, part) in row.iter_mut().zip(summand) {
        *weight = std::mem::take(weight).plus(1.0, part);
    }
}

fn nonnegatives(programme: &mut Programme, count: usize) -> Vec<Affine> {
    (0..count)
        .map(|_| {
            let variable = programme.variable();
            programme.nonnegative(variable.clone());
            variable
        })
        .collect()
}

/// Weights constrained to the set, in variables of order one.
fn member(programme: &mut Programme, set: &Set, kernels: usize) -> Vec<Affine> {
    let one = Affine::constant(1.0);
    let constants = |values: &[f64]| {
        values
            .iter()
            .map(|&value| Affine::constant(value))
            .collect::<Vec<_>>()
    };
    let scaled = |items: &[Affine], factor: f64| {
        items
            .iter()
            .map(|item| item.scaled(factor))
            .collect::<Vec<_>>()
    };
    match set {
        // A set of one point has no interior, which an interior-point method needs.
        Set::LpBall { radius: 0.0, .. }
        | Set::Simplex { total: 0.0 }
        | Set::BoxSimplex { total: 0.0, .. } => constants(&vec![0.0; kernels]),
        Set::LpBall { p, radius } => {
            let unit = nonnegatives(programme, kernels);
            programme.norm_at_most(*p, &unit, &one);
            scaled(&unit, *radius)
        }
        Set::Simplex { total } => {
            let unit = nonnegatives(programme, kernels);
            programme.zero(one.plus(-1.0, &Affine::sum(&unit)));
            scaled(&unit, *total)
        }
        Set::BoxSimplex { total, upper } => {
            if let Some(weights) = only_point(*total, *upper, kernels) {
                constants(&weights)
            } else {
                let unit = nonnegatives(programme, kernels);
                for weight in &unit {
                    programme.at_least(&Affine::constant(upper / total), weight);
                }
                programme.zero(one.plus(-1.0, &Affine::sum(&unit)));
                scaled(&unit, *total)
            }
        }
        Set::PriorBall { centre, radius } => {
            assert!(centre.len() == kernels, "one prior weight a kernel");
            if *radius == 0.0 {
                return constants(centre);
            }
            // θ = centre + radius·δ with ‖δ‖ ≤ 1.
            let step: Vec<Affine> = (0..kernels).map(|_| programme.variable()).collect();
            let weights: Vec<Affine> = centre
                .iter()
                .zip(&step)
                .map(|(&middle, part)| Affine::constant(middle).plus(*radius, part))
                .collect();
            for weight in &weights {
                programme.nonnegative(weight.scaled(1.0 / radius));
            }
            programme.second_order(std::iter::once(one).chain(step).collect());
            weights
        }
        Set::Fixed { weights } => {
            assert!(weights.len() == kernels, "one weight a kernel");
            constants(weights)
        }
    }
}

/// The weights of a box-simplex that holds one point only, upper·M = total.
fn only_point(total: f64, upper: f64, kernels: usize) -> Option<Vec<f64>> {
    let room = upper * kernels as f64 - total;
    assert!(
        room >= -1e-12 * total,
        "upper·M ≥ total, or the set is empty"
    );
    (room <= 1e-12 * total).then(|| vec![total / kernels as f64; kernels])
}

/// An expression above `σ_set(s)` that reaches it at the optimum: the dual form of the support function.
///
/// With `signed` false the entries of s are nonnegative at every feasible point, and their positive parts need no variables.
fn support(programme: &mut Programme, set: &Set, s: &[Affine], signed: bool) -> Affine {
    match set {
        // radius·‖s⁺‖_{p*}
        Set::LpBall { p, radius } => {
            if *radius == 0.0 {
                return Affine::default();
            }
            let positive = positive_parts(programme, s, signed);
            programme.norm(conjugate(*p), &positive).scaled(*radius)
        }
        // total·max s
        Set::Simplex { total } => {
            let most = programme.variable();
            for entry in s {
                programme.at_least(&most, entry);
            }
            most.scaled(*total)
        }
        // min over ν of total·ν + upper·Σ(s − ν)⁺
        Set::BoxSimplex { total, upper } => {
            if let Some(weights) = only_point(*total, *upper, s.len()) {
                return Affine::dot(&weights, s);
            }
            let level = programme.variable();
            let mut value = level.scaled(*total);
            for entry in s {
                let excess = programme.variable();
                programme.nonnegative(excess.clone());
                programme.at_least(&excess.clone().plus(1.0, &level), entry);
                value = value.plus(*upper, &excess);
            }
            value
        }
        // min over v ≥ s of centre'v + radius·‖v‖₂
        Set::PriorBall { centre, radius } => {
            assert!(centre.len() == s.len(), "one prior weight a kernel");
            if *radius == 0.0 {
                return Affine::dot(centre, s);
            }
            let above: Vec<Affine> = s
                .iter()
                .map(|entry| {
                    let value = programme.variable();
                    programme.at_least(&value, entry);
                    value
                })
                .collect();
            let length = programme.variable();
            programme.second_order(
                std::iter::once(length.clone())
                    .chain(above.iter().cloned())
                    .collect(),
            );
            Affine::dot(centre, &above).plus(*radius, &length)
        }
        Set::Fixed { weights } => {
            assert!(weights.len() == s.len(), "one weight a kernel");
            Affine::dot(weights, s)
        }
    }
}

/// `σ_Ψ` of a term: common sees the sum over tasks, independent adds over tasks, group nests ‖·‖_{q*} over ‖·‖_{p*}, and a level does so with the sums over its groups.
fn term_support(programme: &mut Programme, term: &Term, s: &[Vec<Affine>], signed: bool) -> Affine {
    match term {
        Term::Common(set) => {
            let summed: Vec<Affine> = (0..s[0].len())
                .map(|kernel| Affine::sum(s.iter().map(|row| &row[kernel])))
                .collect();
            support(programme, set, &summed, signed)
        }
        Term::Independent(set) => s
            .iter()
            .map(|row| support(programme, set, row, signed))
            .fold(Affine::default(), |sum, part| sum.plus(1.0, &part)),
        Term::Given(rows) => (rows.iter().zip(s))
            .map(|(weights, row)| Affine::dot(weights, row))
            .fold(Affine::default(), |sum, part| sum.plus(1.0, &part)),
        &Term::Group { p, q, radius } => level_support(programme, s, [p, q, radius], signed),
        Term::Level {
            groups,
            p,
            q,
            radius,
        } => {
            let sums: Vec<Vec<Affine>> = groups
                .iter()
                .map(|group| {
                    (0..s[0].len())
                        .map(|kernel| Affine::sum(group.iter().map(|&task| &s[task][kernel])))
                        .collect()
                })
                .collect();
            level_support(programme, &sums, [*p, *q, *radius], signed)
        }
    }
}

/// radius · ‖(‖s_v⁺‖_{p*})_v‖_{q*}
fn level_support(
    programme: &mut Programme,
    s: &[Vec<Affine>],
    [p, q, radius]: [f64; 3],
    signed: bool,
) -> Affine {
    if radius == 0.0 {
        return Affine::default();
    }
    let norms: Vec<Affine> = s
        .iter()
        .map(|row| {
            let positive = positive_parts(programme, row, signed);
            programme.norm(conjugate(p), &positive)
        })
        .collect();
    programme.norm(conjugate(q), &norms).scaled(radius)
}

/// p* with 1/p + 1/p* = 1.
fn conjugate(p: f64) -> f64 {
    assert!(p >= 1.0, "p = {p} gives no norm");
    if p == 1.0 {
        f64::INFINITY
    } else if p == f64::INFINITY {
        1.0
    } else {
        p / (p - 1.0)
    }
}

fn positive_parts(programme: &mut Programme, s: &[Affine], signed: bool) -> Vec<Affine> {
    if !signed {
        return s.to_vec();
    }
    let positive = nonnegatives(programme, s.len());
    for (large, entry) in positive.iter().zip(s) {
        programme.at_least(large, entry);
    }
    positive
}

/// Lower factor columns: K ≈ `Σ_k` `ℓ_k` `ℓ_k`', stopping where the largest remaining pivot is rounding.
fn pivoted_cholesky(gram: &[f64], n: usize) -> Vec<Vec<f64>> {
    let mut left: Vec<f64> = (0..n).map(|i| gram[i * n + i]).collect();
    let threshold = PIVOT * left.iter().copied().fold(0.0, f64::max);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut used = vec![false; n];
    while columns.len() < n {
        let Some(pivot) = (0..n)
            .filter(|&i| !used[i])
            .max_by(|&i, &j| left[i].total_cmp(&left[j]))
        else {
            break;
        };
        if left[pivot] <= threshold {
            break;
        }
        used[pivot] = true;
        let root = left[pivot].sqrt();
        let mut column = vec![0.0; n];
        column[pivot] = root;
        for i in (0..n).filter(|&i| !used[i]) {
            let known: f64 = columns
                .iter()
                .map(|earlier| earlier[i] * earlier[pivot])
                .sum();
            column[i] = (gram[i * n + pivot] - known) / root;
            left[i] -= column[i] * column[i];
        }
        columns.push(column);
    }
    columns
}

fn mean_diagonal(gram: &[f64], n: usize) -> f64 {
    (0..n).map(|i| gram[i * n + i]).sum::<f64>() / n as f64
}

/// First sizes, from the data alone; [`rescale`] mends them.
fn guess(tasks: &[Task]) -> Scale {
    let alpha: Vec<f64> = tasks
        .iter()
        .map(|task| {
            let n = task.samples;
            let weight = task
                .grams
                .iter()
                .map(|gram| mean_diagonal(gram, n))
                .fold(0.0, f64::max)
                .max(f64::MIN_POSITIVE);
            let most = |values: &[f64]| {
                values
                    .iter()
                    .fold(0.0_f64, |most, value| most.max(value.abs()))
            };
            let size = match &task.machine {
                Machine::Svc { upper, .. } | Machine::Logistic { upper, .. } => {
                    most(upper).min(1.0 / weight)
                }
                Machine::Krr { y, lambda } => most(y) / (lambda + weight),
                Machine::Svdd { .. } | Machine::OneClass { .. } => 1.0 / n as f64,
                Machine::Svr { y, upper, .. } => most(upper).min(most(y) / weight),
            };
            if size > 0.0 { size } else { 1.0 }
        })
        .collect();
    let sensitivity: Vec<Vec<f64>> = tasks
        .iter()
        .zip(&alpha)
        .map(|(task, size)| {
            let n = task.samples as f64;
            let rough = |gram: &Vec<f64>| n * size * size * mean_diagonal(gram, task.samples);
            task.grams
                .iter()
                .map(|gram| if rough(gram) > 0.0 { rough(gram) } else { 1.0 })
                .collect()
        })
        .collect();
    let value = sensitivity.iter().flatten().copied().fold(0.0, f64::max);
    Scale {
        alpha,
        sensitivity,
        value,
    }
}

/// The sizes that an answer shows.
fn rescale(model: &Model, answer: &Answer, old: &Scale) -> Scale {
    let at = |row: &Vec<Affine>| {
        row.iter()
            .map(|entry| entry.at(&answer.x))
            .collect::<Vec<f64>>()
    };
    let alpha = model
        .alpha
        .iter()
        .zip(&old.alpha)
        .map(|(row, &before)| {
            let most = at(row)
                .into_iter()
                .fold(0.0_f64, |most, value| most.max(value.abs()));
            if most > 0.0 { most } else { before }
        })
        .collect();
    let seen: Vec<Vec<f64>> = model.epigraph.iter().map(at).collect();
    let most = seen.iter().flatten().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { old.value };
    // A kernel that hardly matters must not blow its cone up.
    let sensitivity = seen
        .into_iter()
        .map(|row| {
            row.into_iter()
                .map(|value| value.max(1e-4 * most))
                .collect()
        })
        .collect();
    let value = (answer.value * old.value).abs().max(1e-6 * most);
    Scale {
        alpha,
        sensitivity,
        value,
    }
}

fn read(model: &Model, answer: &Answer, scale: &Scale) -> Optimum {
    Optimum {
        value: -answer.value * scale.value,
        alpha: model
            .alpha
            .iter()
            .map(|row| row.iter().map(|entry| entry.at(&answer.x)).collect())
            .collect(),
        // In the Lagrangian the first two rows (t̂ + 1, t̂ − 1) of a cone weigh t̂ = t / size by z₀ + z₁, and that
        // balances the slope θ·size/value of the scaled support function.
        theta: model
            .cone
            .iter()
            .zip(&scale.sensitivity)
            .map(|(rows, sizes)| {
                rows.iter()
                    .zip(sizes)
                    .map(|(&row, size)| (answer.z[row] + answer.z[row + 1]) * scale.value / size)
                    .collect()
            })
            .collect(),
        solved: answer.error < ACCEPTED,
        error: answer.error * scale.value.abs().max((answer.value * scale.value).abs()),
        unit: scale
            .sensitivity
            .iter()
            .flatten()
            .copied()
            .fold(scale.value.abs(), f64::max),
    }
}

/// min (1/value)·[W·`σ_Ψ`(s/W) − θ-free part], with W the largest size of s (σ is positively homogeneous).
fn assemble(
    tasks: &[Task],
    sharing: &[Term],
    factors: &[Vec<Vec<Vec<f64>>>],
    scale: &Scale,
) -> Model {
    let mut programme = Programme::default();
    let (mut alphas, mut epigraph, mut cone, mut s) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let widest = scale
        .sensitivity
        .iter()
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    for (t, task) in tasks.iter().enumerate() {
        let alpha = variables(&mut programme, task, scale.alpha[t], scale.value);
        let (half, signs) = match &task.machine {
            Machine::Svc { y, .. } | Machine::Logistic { y, .. } => (0.5, Some(y)),
            Machine::Svr { .. } => (0.5, None),
            Machine::Krr { .. } | Machine::Svdd { .. } | Machine::OneClass { .. } => (1.0, None),
        };
        let (mut tops, mut rows, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (m, columns) in factors[t].iter().enumerate() {
            let unit = scale.sensitivity[t][m];
            // t̂·1 ≥ ‖√(half/unit) L'β‖² as (t̂ + 1)² ≥ (t̂ − 1)² + ‖2·√(half/unit) L'β‖².
            let top = programme.variable();
            let factor = 2.0 * (half / unit).sqrt();
            let one = Affine::constant(1.0);
            let mut parts = vec![top.clone().plus(1.0, &one), top.clone().plus(-1.0, &one)];
            parts.extend(columns.iter().map(|column| {
                let weights: Vec<f64> = column
                    .iter()
                    .enumerate()
                    .map(|(i, value)| factor * value * signs.map_or(1.0, |y| y[i]))
                    .collect();
                Affine::dot(&weights, &alpha)
            }));
            rows.push(programme.second_order(parts));
            let mut entry = top.scaled(unit / widest);
            if matches!(task.machine, Machine::Svdd { .. }) {
                let n = task.samples;
                let diagonal: Vec<f64> = (0..n).map(|i| task.grams[m][i * n + i]).collect();
                entry = entry.plus(-1.0 / widest, &Affine::dot(&diagonal, &alpha));
            }
            entries.push(entry);
            tops.push(top.scaled(unit));
        }
        alphas.push(alpha);
        epigraph.push(tops);
        cone.push(rows);
        s.push(entries);
    }
    let signed = tasks
        .iter()
        .any(|task| matches!(task.machine, Machine::Svdd { .. }));
    for term in sharing {
        let above = term_support(&mut programme, term, &s, signed);
        programme.minimise(widest / scale.value, &above);
    }
    Model {
        programme,
        alpha: alphas,
        epigraph,
        cone,
    }
}

/// α of one task: its variables (in units of `size`), Ω, and the θ-free part of ḡ in the objective (in units of `value`).
fn variables(programme: &mut Programme, task: &Task, size: f64, value: f64) -> Vec<Affine> {
    let n = task.samples;
    let capped = |programme: &mut Programme, upper: f64| {
        // A bound of zero leaves no interior: the variable is the constant 0.
        if upper <= 0.0 {
            return Affine::default();
        }
        let unit = programme.variable();
        programme.nonnegative(unit.clone());
        programme.at_least(&Affine::constant(upper / size), &unit);
        unit.scaled(size)
    };
    match &task.machine {
        Machine::Svc { y, upper } => {
            let alpha: Vec<Affine> = upper
                .iter()
                .map(|&bound| capped(programme, bound))
                .collect();
            programme.zero(Affine::dot(y, &alpha).scaled(1.0 / size));
            programme.minimise(-1.0 / value, &Affine::sum(&alpha));
            alpha
        }
        Machine::Logistic { y, upper } => {
            let alpha: Vec<Affine> = upper
                .iter()
                .map(|&bound| {
                    let unit = programme.variable();
                    let whole = Affine::constant(bound / size);
                    let rest = whole.clone().plus(-1.0, &unit);
                    for part in [&unit, &rest] {
                        let entropy = programme.entropy(part, &whole);
                        programme.minimise(-size / value, &entropy);
                    }
                    unit.scaled(size)
                })
                .collect();
            programme.zero(Affine::dot(y, &alpha).scaled(1.0 / size));
            alpha
        }
        Machine::Krr { y, lambda } => {
            let alpha: Vec<Affine> = (0..n).map(|_| programme.variable().scaled(size)).collect();
            programme.minimise(-2.0 / value, &Affine::dot(y, &alpha));
            for entry in &alpha {
                programme.minimise_square(lambda / value, entry);
            }
            alpha
        }
        Machine::Svdd { .. } | Machine::OneClass { .. } => {
            let upper = match &task.machine {
                Machine::Svdd { c } => *c,
                Machine::OneClass { nu } => 1.0 / (nu * n as f64),
                _ => unreachable!("only the machines of unit mass come here"),
            };
            // Just enough mass: Ω is one point, and has no interior.
            if upper * n as f64 <= 1.0 + 1e-12 {
                return vec![Affine::constant(1.0 / n as f64); n];
            }
            let alpha: Vec<Affine> = (0..n).map(|_| capped(programme, upper)).collect();
            programme.zero(Affine::constant(-1.0 / size).plus(1.0 / size, &Affine::sum(&alpha)));
            alpha
        }
        Machine::Svr { y, upper, epsilon } => {
            let beta: Vec<Affine> = upper
                .iter()
                .map(|&bound| {
                    if bound <= 0.0 {
                        return Affine::default();
                    }
                    let unit = programme.variable();
                    // |β| ≤ e ≤ upper, with e paid for at ε.
                    let length = if *epsilon > 0.0 {
                        let length = programme.variable();
                        programme.at_least(&Affine::constant(bound / size), &length);
                        programme.minimise(epsilon * size / value, &length);
                        length
                    } else {
                        Affine::constant(bound / size)
                    };
                    programme.nonnegative(length.clone().plus(1.0, &unit));
                    programme.nonnegative(length.plus(-1.0, &unit));
                    unit.scaled(size)
                })
                .collect();
            programme.zero(Affine::sum(&beta).scaled(1.0 / size));
            programme.minimise(-1.0 / value, &Affine::dot(y, &beta));
            beta
        }
    }
}
