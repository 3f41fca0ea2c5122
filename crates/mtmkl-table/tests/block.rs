//! Rows that lie together make the sample sets and tasks that a table of the same rows makes, to the bit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::random::Random;
use mtmkl::{SparseRows, Targets, Task};
use mtmkl_table::*;
use proptest::prelude::*;

const ROWS: usize = 40;

/// Rows of few values, so that some are equal; tasks in no order, classes, weights with zeros.
struct Drawn {
    values: Vec<f64>,
    names: Vec<String>,
    tasks: Vec<i32>,
    classes: Vec<usize>,
    weights: Vec<f64>,
}

fn draw(seed: u64) -> Drawn {
    let mut random = Random::new(seed);
    Drawn {
        values: (0..2 * ROWS).map(|_| random.below(3) as f64).collect(),
        // One of them has no rows.
        names: ["10", "b", "2", "none"].map(String::from).to_vec(),
        tasks: (0..ROWS).map(|row| [0, 1, 2][row % 3]).collect(),
        classes: (0..ROWS).map(|_| random.below(3)).collect(),
        weights: (0..ROWS)
            .map(|_| [0.0, 1.0, 1.0, 2.5][random.below(4)])
            .collect(),
    }
}

fn numbers(name: &str, values: impl Iterator<Item = f64>) -> Column {
    Column::of_numbers(name.to_string(), values.collect()).unwrap()
}

/// The same as a table, with its frame and records.
fn table(drawn: &Drawn, aim: Aim) -> (Table, Frame, Records) {
    let cells = |of: &dyn Fn(usize) -> String| (0..ROWS).map(of).collect::<Vec<_>>();
    let task = cells(&|row| drawn.names[usize::try_from(drawn.tasks[row]).unwrap()].clone());
    let class = cells(&|row| format!("c{}", drawn.classes[row]));
    let columns = vec![
        numbers("a", drawn.values.iter().copied().step_by(2)),
        numbers("b", drawn.values.iter().copied().skip(1).step_by(2)),
        match aim {
            Aim::Classes(_) => Column::of_cells("y".to_string(), class, true).unwrap(),
            _ => numbers("y", drawn.classes.iter().map(|&class| class as f64)),
        },
        Column::of_cells("t".to_string(), task, true).unwrap(),
        numbers("w", drawn.weights.iter().copied()),
    ];
    let table = Table::new("t", ROWS, columns, Lines::Rows(0));
    let plan = Plan {
        target: (aim != Aim::Inside).then_some("y"),
        task: Some("t"),
        weight: Some("w"),
        id: None,
        groups: &[],
        ignore: if aim == Aim::Inside {
            &["y".to_string()][..]
        } else {
            &[]
        },
        features: None,
        one_hot: &[],
        missing: Missing::Error,
        aim,
        is_sure: true,
        computed: true,
    };
    let mut frame = Frame::new(&table, &plan).unwrap();
    for (feature, (offset, factor)) in frame.features.iter_mut().zip([(0.7, 1.3), (0.0, 0.1)]) {
        (feature.offset, feature.factor) = (offset, factor);
    }
    let records = frame
        .records(&table, aim != Aim::Inside, Some("w"), &[])
        .unwrap();
    let all: Vec<usize> = (0..ROWS).collect();
    frame.learn_classes(&records, &all);
    (table, frame, records)
}

fn assert_same(ours: &Dataset, theirs: &Dataset) {
    assert_eq!(ours.rows, theirs.rows);
    assert_eq!(ours.counts, theirs.counts);
    for (own, other) in ours.samples.iter().zip(&theirs.samples) {
        let bits = |set: &mtmkl::Samples| -> Vec<u64> {
            let rows = (0..set.count()).flat_map(|row| set.rows().get(row).unwrap().into_owned());
            rows.map(f64::to_bits).collect()
        };
        assert_eq!(bits(own), bits(other));
        assert_eq!(own.columns(), other.columns());
    }
    assert_eq!(ours.tasks.len(), theirs.tasks.len());
    for (own, other) in ours.tasks.iter().zip(&theirs.tasks) {
        assert_eq!((&own.name, own.samples), (&other.name, other.samples));
        assert_eq!(own.rows, other.rows);
        assert_eq!(own.targets, other.targets);
        assert_eq!(weights(own, ours), weights(other, theirs));
    }
}

/// The weights written out: all 1 is the same as none.
fn weights(task: &Task, of: &Dataset) -> Vec<f64> {
    let count = task.rows.count(of.samples[task.samples].count());
    task.weights.clone().unwrap_or_else(|| vec![1.0; count])
}

proptest! {
    #[test]
    fn a_block_is_a_table_of_the_same_rows(seed in any::<u64>(), how in 0..4_usize, prices in 0..3_usize) {
        let drawn = draw(seed);
        let aim = [Aim::Classes(Multiclass::Ovo), Aim::Classes(Multiclass::Ova), Aim::Numbers, Aim::Inside][how];
        let (table, frame, records) = table(&drawn, aim);
        let given = ["c0", "c1", "c2"].map(String::from).into_iter().zip([1.0, 0.5, 3.0]);
        let class_weight = [None, Some(ClassWeight::Balanced), Some(ClassWeight::Given(given.collect()))][prices].clone();
        let all: Vec<usize> = (0..ROWS).collect();
        let theirs = Dataset::new(&frame, &table, &records, &all, &Grams::new(), Equals::Merged, u64::MAX);
        // A task with rows of one class only is refused there before anything is made.
        prop_assume!(theirs.is_ok());
        let mut theirs = theirs.unwrap();
        if let (Some(prices), Aim::Classes(_)) = (&class_weight, aim) {
            let weights = theirs.class_weights(&frame, &records, prices, None).unwrap();
            theirs.weigh(&weights);
        }
        let targets: Vec<f64> = drawn.classes.iter().map(|&class| class as f64).collect();
        let bytes: Vec<[u8; 8]> = drawn.values.iter().map(|value| value.to_ne_bytes()).collect();
        let block = Block {
            rows: BlockRows::Dense(&bytes),
            tasks: Some((&drawn.names, &drawn.tasks)),
            only: "y",
            targets: (aim != Aim::Inside).then_some(&targets),
            weights: &drawn.weights,
            class_weight: class_weight.as_ref(),
        };
        let (ours, names) = Dataset::of_block(&frame, &block).unwrap();
        prop_assert_eq!(names, ["2", "10", "b"]);
        assert_same(&ours, &theirs);
    }
}

#[test]
fn sparse_rows_are_dense_ones() {
    let drawn = draw(3);
    let (_, mut frame, _) = table(&drawn, Aim::Numbers);
    frame
        .features
        .iter_mut()
        .for_each(|feature| feature.offset = 0.0);
    let bytes: Vec<[u8; 8]> = drawn
        .values
        .iter()
        .map(|value| value.to_ne_bytes())
        .collect();
    let offsets = (0..=ROWS).map(|row| 2 * row).collect();
    let sparse = SparseRows::new(offsets, [0, 1].repeat(ROWS), drawn.values.clone(), 2).unwrap();
    let targets: Vec<f64> = drawn.classes.iter().map(|&class| class as f64).collect();
    let made = |rows| {
        let block = Block {
            rows,
            tasks: None,
            only: "y",
            targets: Some(&targets),
            weights: &drawn.weights,
            class_weight: None,
        };
        Dataset::of_block(&frame, &block).unwrap().0
    };
    let dense = made(BlockRows::Dense(&bytes));
    assert_same(&made(BlockRows::Sparse(&sparse)), &dense);
    assert!(matches!(dense.tasks[0].targets, Targets::Values(_)) && dense.tasks.len() == 1);
}

#[test]
fn a_task_without_a_row_that_counts_is_named() {
    let mut drawn = draw(4);
    for (weight, task) in drawn.weights.iter_mut().zip(&drawn.tasks) {
        *weight = if *task == 1 { 0.0 } else { 1.0 };
    }
    let (_, frame, _) = table(&drawn, Aim::Numbers);
    let bytes: Vec<[u8; 8]> = drawn
        .values
        .iter()
        .map(|value| value.to_ne_bytes())
        .collect();
    let block = Block {
        rows: BlockRows::Dense(&bytes),
        tasks: Some((&drawn.names, &drawn.tasks)),
        only: "y",
        targets: None,
        weights: &drawn.weights,
        class_weight: None,
    };
    let error = Dataset::of_block(&frame, &block).unwrap_err();
    assert!(matches!(error, TableError::NoWeight { task } if task == "b"));
}
