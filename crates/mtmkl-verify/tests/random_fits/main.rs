//! Random fits of every machine with every sharing and every kind of kernel, a third of them stopped early: `verify` agrees with all of them.
//! Then their files are changed, θ, β, offsets, witnesses, rows, objective and bound, each by more than 1e-3 of itself: every change is caught, or
//! leaves a model whose stated gap is still true, which an independent conic solver says.
//!
//! 40 fits, or as many as `MTMKL_VERIFY_FITS` says:
//!
//! ```sh
//! MTMKL_VERIFY_FITS=1000 cargo test -p mtmkl-verify --test random_fits -- --nocapture
//! ```
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the figures of a long run")]

mod changes;
mod oracle;
mod problems;

use std::collections::BTreeMap;

use mtmkl::Model;
use mtmkl_testkit::generate::Random;
use mtmkl_verify::verify;

use crate::changes::{Changed, changes};
use crate::oracle::Oracle;
use crate::problems::{Case, Drawn};

/// What became of a kind of change.
#[derive(Debug, Default)]
struct Tally {
    caught: usize,
    /// Not caught, and the stated gap is true: by the conic solver.
    true_by_conic: usize,
    /// The same by the bounds of the model before it was changed, where machine or sharing is not stated for the conic solver.
    true_by_bounds: usize,
    /// Neither.
    false_and_missed: usize,
}

fn wanted() -> usize {
    let said = std::env::var_os("MTMKL_VERIFY_FITS");
    said.map_or(40, |text| text.to_str().unwrap().parse().unwrap())
}

#[test]
fn true_certificates_hold_and_changed_ones_are_caught() {
    let wanted = wanted();
    let (mut seed, mut fits, mut early) = (0, 0, 0);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let mut faults: Vec<String> = Vec::new();
    let mut loosest = 0.0_f64;
    let mut pairs = std::collections::BTreeSet::new();
    while fits < wanted {
        seed += 1;
        let mut random = Random::new(seed);
        let Some(Drawn { case, model }) = Drawn::new(seed, &mut random) else {
            // A pair that is refused, a kernel without variance: nothing was fitted.
            assert!(
                seed < 20 * wanted as u64 + 100,
                "only {fits} of {seed} problems could be fitted"
            );
            continue;
        };
        fits += 1;
        early += usize::from(!model.outcome().status.is_converged());
        pairs.insert((case.spec.machine.name(), case.spec.sharing.name()));
        for kind in case.kinds(&model) {
            *kinds.entry(kind).or_default() += 1;
        }
        let bytes = model.to_bytes().unwrap();
        let read = Model::from_bytes(&bytes).unwrap();
        let verdict = verify(&read, &case.samples, &case.tasks).unwrap();
        if !verdict.holds {
            faults.push(format!(
                "seed {seed}, {case}: a true certificate fails: {:?}",
                verdict.failures
            ));
            continue;
        }
        if fits % 8 == 1 {
            let threads = rayon::ThreadPoolBuilder::new()
                .num_threads(1 + fits % 5)
                .build()
                .unwrap();
            let again = threads
                .install(|| verify(&read, &case.samples, &case.tasks))
                .unwrap();
            assert_eq!(again, verdict, "seed {seed}: figures depend on threads");
        }
        // What is all but zero has been added up from larger numbers.
        let parts: f64 = verdict
            .tasks
            .iter()
            .map(|task| task.primal.abs() + task.constant.abs())
            .sum();
        let allowance = verdict.objective.allowance + verdict.bound.allowance;
        if parts > 1e-9 {
            loosest = loosest.max(allowance / parts);
        }
        let oracle = Oracle::new(&case, &model);
        for Changed { what, how, bytes } in changes(&bytes, &read, &mut random) {
            judge(&case, &oracle, what, &bytes, &mut tallies).unwrap_or_else(|fault| {
                faults.push(format!(
                    "seed {seed}, {case}: {what} changed, {how}: {fault}"
                ));
            });
        }
    }
    println!(
        "{fits} fits of {seed} problems, {early} stopped early; allowances at most {loosest:.1e} of the primal values"
    );
    println!("{} pairs of machine and sharing; {kinds:?}", pairs.len());
    let mut totals = Tally::default();
    for (what, tally) in &tallies {
        println!("{what}: {tally:?}");
        totals.caught += tally.caught;
        totals.true_by_conic += tally.true_by_conic;
        totals.true_by_bounds += tally.true_by_bounds;
        totals.false_and_missed += tally.false_and_missed;
    }
    println!("all: {totals:?}");
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(3 * early >= fits, "{early} of {fits} were stopped early");
    assert!(totals.caught > 6 * fits, "{totals:?}");
}

/// Whether a changed model is caught, or its stated gap still true.
fn judge(
    case: &Case,
    oracle: &Oracle,
    what: &'static str,
    bytes: &[u8],
    tallies: &mut BTreeMap<&'static str, Tally>,
) -> Result<(), String> {
    let tally = tallies.entry(what).or_default();
    let Ok(changed) = Model::from_bytes(bytes) else {
        tally.caught += 1;
        return Ok(());
    };
    let is_caught =
        verify(&changed, &case.samples, &case.tasks).map_or(true, |verdict| !verdict.holds);
    if is_caught {
        tally.caught += 1;
        return Ok(());
    }
    let by_conic = oracle.is_true(&changed);
    match by_conic {
        Ok(true) => tally.true_by_conic += 1,
        Ok(false) => tally.true_by_bounds += 1,
        Err(problem) => {
            tally.false_and_missed += 1;
            return Err(problem);
        }
    }
    Ok(())
}
