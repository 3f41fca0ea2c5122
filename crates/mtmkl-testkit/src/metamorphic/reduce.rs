//! The smallest statement of a failure: tasks, kernels, samples and digits are left out as long as it fails.

use crate::statement::Statement;

/// The smallest statement found on which `fails` holds, by greedy steps of at most `most` tries.
pub fn reduced(
    mut statement: Statement,
    most: usize,
    fails: impl Fn(&Statement) -> bool,
) -> Statement {
    let mut tries = 0;
    loop {
        let mut smaller = candidates(&statement).into_iter();
        let found = smaller.find(|candidate| {
            tries += 1;
            tries <= most && fails(candidate)
        });
        match found {
            Some(found) => statement = found,
            None => return statement,
        }
    }
}

/// Everything one step smaller, the largest steps first.
fn candidates(statement: &Statement) -> Vec<Statement> {
    let mut all = Vec::new();
    if statement.tasks.len() > 1 {
        for task in 0..statement.tasks.len() {
            let mut smaller = statement.clone();
            smaller.tasks.remove(task);
            all.push(smaller);
        }
    }
    if statement.kernels.len() > 1 {
        for kernel in 0..statement.kernels.len() {
            let mut smaller = statement.clone();
            smaller.kernels.remove(kernel);
            all.push(smaller);
        }
    }
    for (number, task) in statement.tasks.iter().enumerate() {
        let n = task.rows.len();
        for size in [n / 2, 1].into_iter().filter(|&size| size > 0 && size < n) {
            for first in (0..=n - size).step_by(size) {
                let kept: Vec<usize> = (0..n)
                    .filter(|row| !(first..first + size).contains(row))
                    .collect();
                let mut smaller = statement.clone();
                smaller.tasks[number] = task.part(&kept);
                all.push(smaller);
            }
        }
        if task.weights.is_some() {
            let mut smaller = statement.clone();
            smaller.tasks[number].weights = None;
            all.push(smaller);
        }
    }
    // Samples that nobody has, and sets with them.
    let tidy = statement.clone().own_sets();
    let samples = |statement: &Statement| statement.sets.iter().map(|set| set.count).sum::<usize>();
    if samples(&tidy) < samples(statement) {
        all.push(tidy);
    }
    for digits in [0, 1, 3] {
        let scale = 10.0_f64.powi(digits);
        let mut smaller = statement.clone();
        for value in smaller.sets.iter_mut().flat_map(|set| &mut set.rows) {
            *value = (*value * scale).round() / scale;
        }
        if length(&smaller) < length(statement) {
            all.push(smaller);
        }
    }
    all
}

/// How long the values are to write.
fn length(statement: &Statement) -> usize {
    let values = statement.sets.iter().flat_map(|set| &set.rows);
    values.map(|value| value.to_string().len()).sum()
}

/// A test to paste.
pub fn as_test(relation: &str, seed: u64, statement: &Statement) -> String {
    let name: String = relation
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    format!(
        "#[test]\nfn {name}_{seed}() {{\n    metamorphic::assert_holds(\n        {relation:?},\n        {seed},\n        r#\"{}\"#,\n    );\n}}\n",
        statement.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metamorphic::statement;

    #[test]
    fn what_is_not_needed_leaves() {
        // "Fails" where there is a row whose first value is below −1.
        let fails = |statement: &Statement| {
            let tasks = statement.tasks.iter();
            let mut rows = tasks.flat_map(|task| task.rows.iter().map(move |row| (task.set, row)));
            rows.any(|(set, row)| statement.sets[set].rows[row * statement.columns] < -1.0)
        };
        let seed = (0..10_000).find(|&seed| fails(&statement(seed))).unwrap();
        let small = reduced(statement(seed), 10_000, fails);
        assert_eq!(
            (
                small.tasks.len(),
                small.tasks[0].rows.len(),
                small.kernels.len()
            ),
            (1, 1, 1)
        );
        assert_eq!((small.sets.len(), small.sets[0].count), (1, 1));
        let text = as_test("the order of rows", 7, &small);
        assert!(text.contains("fn the_order_of_rows_7()"), "{text}");
        let again = Statement::read(
            text.split("r#\"")
                .nth(1)
                .unwrap()
                .split("\"#")
                .next()
                .unwrap(),
        );
        assert_eq!(again.text(), small.text());
    }
}
