//! Reading a CSV file through the program's reader; throughput in bytes of the file.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mtmkl_cli::input::{TableOptions, read_table};

fn csv(criterion: &mut Criterion) {
    const ROWS: usize = 10_000;
    const COLUMNS: usize = 50;
    let mut group = criterion.benchmark_group("reading");
    group.sample_size(10);
    let values = mtmkl_bench::table(ROWS, COLUMNS, 4);
    for (name, decimals) in [("all digits", None), ("four decimals", Some(4))] {
        let names: Vec<String> = (0..COLUMNS).map(|column| format!("f{column}")).collect();
        let mut text = names.join(",");
        for row in values.chunks_exact(COLUMNS) {
            for (column, value) in row.iter().enumerate() {
                text.push(if column == 0 { '\n' } else { ',' });
                match decimals {
                    None => write!(text, "{value}").unwrap(),
                    Some(places) => write!(text, "{value:.places$}").unwrap(),
                }
            }
        }
        text.push('\n');
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reading.csv");
        std::fs::write(&path, &text).unwrap();
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(read_table(&path, None, &TableOptions::default()).unwrap()));
        });
        std::fs::remove_file(&path).unwrap();
    }
    group.finish();
}

criterion_group!(benches, csv);
criterion_main!(benches);
