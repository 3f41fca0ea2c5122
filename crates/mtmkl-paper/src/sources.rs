//! The files of the paper's data sets: tables with a header (`f1…fd`, `label`, `task`), or the files as their authors publish them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mtmkl_cli::input::{self, TableOptions};
use mtmkl_table::Values;

use crate::mat::Value;
use crate::{idx, mat};

/// The rows of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Where they were read from.
    pub file: String,
    /// n × d values.
    pub values: Vec<f64>,
    /// d.
    pub columns: usize,
    /// The class of each row.
    pub labels: Vec<String>,
    /// The task of each row, where there are tasks.
    pub tasks: Option<Vec<String>>,
}

/// How a file is read.
type Reader = fn(&[PathBuf]) -> Result<Source>;

/// A way to have a data set: the files it takes, all of them, and how they are read.
struct Form {
    files: &'static [&'static str],
    read: Reader,
}

/// The letter pairs of the OCR tasks, first letter the class `1`.
const PAIRS: [(&str, &str); 8] = [
    ("c", "e"),
    ("g", "y"),
    ("m", "n"),
    ("a", "g"),
    ("i", "j"),
    ("a", "o"),
    ("f", "t"),
    ("h", "n"),
];

/// The forms of each set, the one to prefer first.
const FORMS: [(&str, &[Form]); 8] = [
    (
        "robot",
        &[
            Form {
                files: &["robot4.csv"],
                read: table,
            },
            Form {
                files: &["sensor_readings_4.data"],
                read: label_last,
            },
        ],
    ),
    (
        "vehicle",
        &[
            Form {
                files: &["vehicle.csv"],
                read: table,
            },
            Form {
                files: &[
                    "xaa.dat", "xab.dat", "xac.dat", "xad.dat", "xae.dat", "xaf.dat", "xag.dat",
                    "xah.dat", "xai.dat",
                ],
                read: label_last,
            },
        ],
    ),
    (
        "usps",
        &[
            Form {
                files: &["usps.csv"],
                read: table,
            },
            Form {
                files: &["zip.train", "zip.test"],
                read: label_first,
            },
        ],
    ),
    (
        "shuttle",
        &[
            Form {
                files: &["shuttle.csv"],
                read: table,
            },
            Form {
                files: &["shuttle.trn", "shuttle.tst"],
                read: label_last,
            },
        ],
    ),
    (
        "letter",
        &[
            Form {
                files: &["letter.csv"],
                read: table,
            },
            Form {
                files: &["letter-recognition.data"],
                read: label_first,
            },
        ],
    ),
    (
        "mnist",
        &[
            Form {
                files: &["mnist_t10k.csv"],
                read: table,
            },
            Form {
                files: &["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"],
                read: digits,
            },
            Form {
                files: &["t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"],
                read: digits,
            },
        ],
    ),
    (
        "ocr",
        &[
            Form {
                files: &["ocr_pairs.csv"],
                read: table,
            },
            Form {
                files: &["letter.data"],
                read: words,
            },
        ],
    ),
    (
        "landmine",
        &[
            Form {
                files: &["landmine.csv"],
                read: table,
            },
            Form {
                files: &["LandmineData.mat"],
                read: mines,
            },
        ],
    ),
];

/// The forms of a set.
fn forms(set: &str) -> &'static [Form] {
    let known = FORMS.iter().find(|(name, _)| *name == set);
    known.map_or(&[], |(_, forms)| *forms)
}

/// Which files of `folder` hold a set, and how they are read. Only looks whether they are there.
fn find(set: &str, folder: &Path) -> Result<(Vec<PathBuf>, Reader)> {
    for form in forms(set) {
        let found: Option<Vec<PathBuf>> = form
            .files
            .iter()
            .map(|name| {
                [folder.join(format!("{name}.gz")), folder.join(name)]
                    .into_iter()
                    .find(|path| path.is_file())
            })
            .collect();
        if let Some(files) = found {
            return Ok((files, form.read));
        }
    }
    let wanted: Vec<String> = forms(set)
        .iter()
        .map(|form| form.files.join(" + "))
        .collect();
    bail!(
        "{} has no files of the set `{set}`; expected {} (each also with .gz), or leave the set out with --sets",
        folder.display(),
        wanted.join(", or ")
    )
}

/// Whether the files of a set are there.
///
/// # Errors
/// Names the files that would do.
pub fn check(set: &str, folder: &Path) -> Result<()> {
    find(set, folder).map(|_| ())
}

/// Reads a set.
///
/// # Errors
/// When its files are not there or not what their names promise.
pub fn read(set: &str, folder: &Path) -> Result<Source> {
    let (files, read) = find(set, folder)?;
    read(&files)
}

fn limit() -> u64 {
    TableOptions::default().limit
}

/// A table with a header: features `f1…fd`, `label`, `task` where there are tasks.
fn table(files: &[PathBuf]) -> Result<Source> {
    let options = TableOptions {
        text: vec!["label".to_string(), "task".to_string()],
        ..TableOptions::default()
    };
    let table = input::read_table(&files[0], None, &options)?;
    let is_feature = |name: &str| {
        name.strip_prefix('f')
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let features: Vec<std::borrow::Cow<'_, [f64]>> = table
        .columns()
        .iter()
        .filter(|column| is_feature(&column.name))
        .map(|column| table.numeric(&column.name))
        .collect::<std::result::Result<_, _>>()?;
    if features.is_empty() {
        bail!("{} has no feature columns f1, f2, …", table.source);
    }
    let texts = |name: &str| -> Result<Vec<String>> {
        Ok(table
            .names(name)?
            .into_iter()
            .map(std::borrow::Cow::into_owned)
            .collect())
    };
    let tasks = match table.column("task") {
        Ok(column) if matches!(column.values, Values::Text(_)) => Some(texts("task")?),
        _ => None,
    };
    Ok(Source {
        values: (0..table.rows)
            .flat_map(|row| features.iter().map(move |column| column[row]))
            .collect(),
        columns: features.len(),
        labels: texts("label")?,
        tasks,
        file: table.source.clone(),
    })
}

/// Lines of as many cells, split at commas and blanks, of all files one after the other.
fn lines(files: &[PathBuf], mut each: impl FnMut(&[&str]) -> Result<()>) -> Result<()> {
    for path in files {
        let (name, bytes) = input::read_bytes(path, limit())?;
        let text = std::str::from_utf8(&bytes).with_context(|| format!("{name} is not text"))?;
        for (number, line) in text.lines().enumerate() {
            let cells: Vec<&str> = line
                .split(|c: char| c == ',' || c.is_whitespace())
                .filter(|cell| !cell.is_empty())
                .collect();
            if !cells.is_empty() {
                each(&cells).with_context(|| format!("{name}, line {}", number + 1))?;
            }
        }
    }
    Ok(())
}

fn number(cell: &str) -> Result<f64> {
    let value = cell.parse::<f64>().ok().filter(|value| value.is_finite());
    value.with_context(|| format!("`{cell}` is not a number"))
}

/// Numbers, and the class in the first or the last cell of each line.
fn labelled(files: &[PathBuf], first: bool) -> Result<Source> {
    let mut source = Source {
        file: listed(files),
        values: Vec::new(),
        columns: 0,
        labels: Vec::new(),
        tasks: None,
    };
    lines(files, |cells| {
        let (label, numbers) = if first {
            cells.split_first().context("the line is empty")?
        } else {
            cells.split_last().context("the line is empty")?
        };
        if source.labels.is_empty() {
            source.columns = numbers.len();
        }
        if numbers.len() != source.columns || numbers.is_empty() {
            bail!(
                "{} features, expected {}",
                numbers.len(),
                source.columns.max(1)
            );
        }
        for cell in numbers {
            source.values.push(number(cell)?);
        }
        // USPS writes the digit 6 as 6.0000.
        let label = label
            .parse::<f64>()
            .map_or((*label).to_string(), |value| (value + 0.0).to_string());
        source.labels.push(label);
        Ok(())
    })?;
    if source.labels.is_empty() {
        bail!("{} has no rows", source.file);
    }
    Ok(source)
}

fn label_last(files: &[PathBuf]) -> Result<Source> {
    labelled(files, false)
}

fn label_first(files: &[PathBuf]) -> Result<Source> {
    labelled(files, true)
}

/// Images and labels as IDX files.
fn digits(files: &[PathBuf]) -> Result<Source> {
    let array = |path: &Path| -> Result<idx::Array> {
        let (name, bytes) = input::read_bytes(path, limit())?;
        Ok(idx::from_bytes(&name, &bytes, limit())?)
    };
    let (images, labels) = (array(&files[0])?, array(&files[1])?);
    let rows = images.shape.first().copied().unwrap_or(0);
    if rows == 0 || labels.values.len() != rows {
        bail!(
            "{} has {rows} images and {} has {} labels; they do not belong together",
            files[0].display(),
            files[1].display(),
            labels.values.len()
        );
    }
    Ok(Source {
        file: listed(files),
        columns: images.values.len() / rows,
        values: images.values,
        labels: labels.values.iter().map(ToString::to_string).collect(),
        tasks: None,
    })
}

/// Kassel's letters: id, letter, next id, word, position, fold, 128 pixels. Each pair of letters becomes a task.
fn words(files: &[PathBuf]) -> Result<Source> {
    const BEFORE: usize = 6;
    const PIXELS: usize = 128;
    let mut letters: Vec<(String, Vec<f64>)> = Vec::new();
    lines(files, |cells| {
        if cells.len() != BEFORE + PIXELS {
            bail!("{} cells, expected {}", cells.len(), BEFORE + PIXELS);
        }
        let pixels = cells[BEFORE..]
            .iter()
            .map(|cell| number(cell))
            .collect::<Result<_>>()?;
        letters.push((cells[1].to_string(), pixels));
        Ok(())
    })?;
    let mut source = Source {
        file: listed(files),
        values: Vec::new(),
        columns: PIXELS,
        labels: Vec::new(),
        tasks: Some(Vec::new()),
    };
    for (first, second) in PAIRS {
        for (letter, pixels) in letters
            .iter()
            .filter(|(letter, _)| letter == first || letter == second)
        {
            source.values.extend(pixels);
            source
                .labels
                .push(if letter == first { "1" } else { "-1" }.to_string());
            let name = format!("{}-{}", first.to_uppercase(), second.to_uppercase());
            source.tasks.get_or_insert_default().push(name);
        }
    }
    Ok(source)
}

/// Duke's landmines: cells `feature` and `label`, one of each per task.
fn mines(files: &[PathBuf]) -> Result<Source> {
    let (name, bytes) = input::read_bytes(&files[0], limit())?;
    let mut variables = mat::from_bytes(&name, &bytes, limit())?;
    let mut cells = |wanted: &str| -> Result<Vec<Value>> {
        let at = variables.iter().position(|(name, _)| name == wanted);
        match at.map(|at| variables.swap_remove(at).1) {
            Some(Value::Cells(cells)) => Ok(cells),
            _ => bail!("{name} has no cells called `{wanted}`"),
        }
    };
    let (features, labels) = (cells("feature")?, cells("label")?);
    if features.len() != labels.len() {
        bail!(
            "{name} has {} tasks with features and {} with labels",
            features.len(),
            labels.len()
        );
    }
    let mut source = Source {
        file: name.clone(),
        values: Vec::new(),
        columns: 0,
        labels: Vec::new(),
        tasks: Some(Vec::new()),
    };
    for (task, pair) in features.iter().zip(&labels).enumerate() {
        let (
            Value::Matrix {
                rows,
                columns,
                values,
            },
            Value::Matrix { values: own, .. },
        ) = pair
        else {
            bail!("{name}: task {} is not a matrix with its labels", task + 1);
        };
        if own.len() != *rows || (task > 0 && *columns != source.columns) {
            bail!(
                "{name}: task {} has {rows} × {columns} features and {} labels",
                task + 1,
                own.len()
            );
        }
        source.columns = *columns;
        source.values.extend(
            (0..*rows).flat_map(|row| (0..*columns).map(move |column| values[column * rows + row])),
        );
        source.labels.extend(
            own.iter()
                .map(|&label| if label > 0.0 { "1" } else { "-1" }.to_string()),
        );
        source
            .tasks
            .get_or_insert_default()
            .extend(std::iter::repeat_n((task + 1).to_string(), *rows));
    }
    Ok(source)
}

fn listed(files: &[PathBuf]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        folder
    }

    /// Both forms of a set hold the same rows.
    fn same(set: &str, table: &str, original: &[(&str, &[u8])]) {
        let name = forms(set)[0].files[0];
        let ours = folder(&[(name, table.as_bytes())]);
        let theirs = folder(original);
        let (ours, theirs) = (
            read(set, ours.path()).unwrap(),
            read(set, theirs.path()).unwrap(),
        );
        assert_eq!(
            Source {
                file: String::new(),
                ..ours
            },
            Source {
                file: String::new(),
                ..theirs
            }
        );
    }

    #[test]
    fn tables_and_original_files() {
        same(
            "robot",
            "f1,f2,label\n1.5,2,Move\n-3,4,Turn\n",
            &[("sensor_readings_4.data", b"1.5,2,Move\r\n-3,4,Turn\r\n")],
        );
        same(
            "letter",
            "f1,f2,label\n2,8,T\n5,12,I\n",
            &[("letter-recognition.data", b"T,2,8\nI,5,12\n\n")],
        );
        same(
            "shuttle",
            "f1,f2,label,split\n50,21,2,train\n55,0,4,test\n",
            &[("shuttle.trn", b"50 21 2\n"), ("shuttle.tst", b"55 0 4\n")],
        );
        same(
            "usps",
            "f1,f2,label,split\n-1,0.5,6,train\n1,0,3,test\n",
            &[
                ("zip.train", b"6.0000 -1.0000 0.500 \n"),
                ("zip.test", b"3 1 0\n"),
            ],
        );
        let parts: Vec<(&str, &[u8])> = forms("vehicle")[1]
            .files
            .iter()
            .map(|name| (*name, &b"95 48 van \n"[..]))
            .collect();
        same(
            "vehicle",
            &format!("f1,f2,label\n{}", "95,48,van\n".repeat(9)),
            &parts,
        );
        same(
            "mnist",
            "f1,f2,label\n0,255,7\n3,4,0\n",
            &[
                (
                    "t10k-images-idx3-ubyte",
                    &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 3, 4],
                ),
                ("t10k-labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 2, 7, 0]),
            ],
        );
    }

    #[test]
    fn pairs_of_letters() {
        let line = |letter: &str, pixel: u8| {
            format!(
                "1\t{letter}\t2\t3\t1\t0\t{}\t\n",
                vec![pixel.to_string(); 128].join("\t")
            )
        };
        let text = line("e", 1) + &line("a", 0) + &line("z", 1);
        let folder = folder(&[("letter.data", text.as_bytes())]);
        let source = read("ocr", folder.path()).unwrap();
        assert_eq!(source.tasks.unwrap(), ["C-E", "A-G", "A-O"]);
        assert_eq!(source.labels, ["-1", "1", "1"]);
        assert_eq!(source.values.iter().sum::<f64>(), 128.0);
    }

    #[test]
    fn what_is_not_what_its_name_promises() {
        let message = |set: &str, files: &[(&str, &[u8])]| {
            format!("{:#}", read(set, folder(files).path()).unwrap_err())
        };
        assert!(message("robot", &[]).contains("sensor_readings_4.data"));
        assert!(
            message("robot", &[("sensor_readings_4.data", b"1,2,a\n1,b\n")])
                .contains("line 2: 1 features, expected 2")
        );
        assert!(
            message("robot", &[("sensor_readings_4.data", b"1,x,a\n")])
                .contains("`x` is not a number")
        );
        assert!(message("robot", &[("sensor_readings_4.data", b"\n")]).contains("no rows"));
        assert!(
            message("robot", &[("robot4.csv", b"a,label\n1,x\n")]).contains("no feature columns")
        );
        assert!(message("ocr", &[("letter.data", b"1 a 2\n")]).contains("3 cells, expected 134"));
        assert!(message("landmine", &[("LandmineData.mat", b"MATLAB")]).contains("header"));
        let images: &[u8] = &[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 9];
        let labels: &[u8] = &[0, 0, 8, 1, 0, 0, 0, 2, 7, 0];
        let wrong = [
            ("t10k-images-idx3-ubyte", images),
            ("t10k-labels-idx1-ubyte", labels),
        ];
        assert!(message("mnist", &wrong).contains("1 images"));
    }
}
