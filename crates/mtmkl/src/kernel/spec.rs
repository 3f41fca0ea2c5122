//! Kernels as text, and back: `name[:key=value,…][@columns]`.

use std::sync::Arc;

use super::{
    ColumnRange, Columns, Kernel, KernelView, chi_square, cosine, gaussian, intersection,
    laplacian, linear, matern, nearest, polynomial, precomputed, sigmoid,
};
use crate::error::{Error, Result};

/// Every kernel that a specification can name, in the order of help texts. A new kernel is one line here.
const REGISTRY: &[Entry] = &[
    linear::ENTRY,
    polynomial::ENTRY,
    gaussian::ENTRY,
    laplacian::ENTRY,
    matern::ENTRY_32,
    matern::ENTRY_52,
    cosine::ENTRY,
    chi_square::ENTRY,
    intersection::ENTRY,
    sigmoid::ENTRY,
    precomputed::ENTRY,
];

/// Sets multiply, so a short text could otherwise ask for more kernels than fit into memory.
const MOST_KERNELS: usize = 10_000;

/// As [`MOST_KERNELS`], for ranges of positions.
pub(super) const MOST_POSITIONS: usize = 1_000_000;

/// A kernel's names, its keys, and how it is made from them.
pub(super) struct Entry {
    pub(super) info: KernelInfo,
    pub(super) build: fn(&Options<'_>) -> Result<Arc<dyn Kernel>>,
}

/// What a specification can say about one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelInfo {
    /// The name.
    pub name: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// k(x, z) in plain text.
    pub formula: &'static str,
    /// The keys, none of them required but `name` of `precomputed`.
    pub keys: &'static [KeyInfo],
    /// A specification that works.
    pub example: &'static str,
}

/// One key of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key.
    pub key: &'static str,
    /// What its value is, the range and the default.
    pub meaning: &'static str,
}

/// All kernels that [`parse_kernel`] knows, for help texts.
pub fn registered_kernels() -> Vec<KernelInfo> {
    REGISTRY.iter().map(|entry| entry.info).collect()
}

/// The value of each key of one kernel.
pub(super) struct Options<'a> {
    spec: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl Options<'_> {
    /// An error about this specification.
    pub(super) fn problem(&self, problem: impl Into<String>) -> Error {
        Error::Kernel {
            spec: self.spec.into(),
            problem: problem.into(),
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.text(key).is_some()
    }

    pub(super) fn number(&self, key: &str, default: f64) -> Result<f64> {
        self.text(key).map_or(Ok(default), |text| {
            text.parse().map_err(|_| {
                self.problem(format!(
                    "`{key}` is `{text}`, expected a number such as 0.5"
                ))
            })
        })
    }

    pub(super) fn whole(&self, key: &str, default: u32) -> Result<u32> {
        self.text(key).map_or(Ok(default), |text| {
            text.parse().map_err(|_| {
                self.problem(format!(
                    "`{key}` is `{text}`, expected a whole number such as 2"
                ))
            })
        })
    }

    /// Two keys that say the same thing.
    pub(super) fn at_most_one(&self, one: &str, other: &str) -> Result<()> {
        if self.has(one) && self.has(other) {
            return Err(self.problem(format!(
                "`{one}` and `{other}` say the same thing; give one of them"
            )));
        }
        Ok(())
    }
}

/// The check that most kernels need.
pub(super) fn positive(name: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(Error::param(name, value, "a finite number > 0"))
    }
}

/// `name[:key=value,…][@columns]` → one kernel on a view.
///
/// Columns are a list of names and of ranges of names, `@age,f1..f10`, or of positions from 0, `@#0,#3..#5`. A name that
/// contains a comma or two dots, or starts with `#`, stands in double quotes, `@"a,b"`, and a double quote within them
/// is doubled.
///
/// ```
/// let view = mtmkl::kernel::parse_kernel("rbf:sigma=2@f1..f4")?;
/// assert_eq!(view.name, "rbf:sigma=2@f1..f4");
/// assert_eq!(view.spec().as_deref(), Some("rbf:gamma=0.125@f1..f4"));
/// # Ok::<(), mtmkl::error::Error>(())
/// ```
///
/// # Errors
/// When the text is not such a specification or stands for several kernels; the message says what would be right.
pub fn parse_kernel(text: &str) -> Result<KernelView> {
    let failed = |problem| Error::Kernel {
        spec: text.into(),
        problem,
    };
    let parsed = Specification::read(text).map_err(failed)?;
    match parsed.keys.iter().find(|(_, values)| values.len() > 1) {
        Some((key, values)) => Err(failed(format!(
            "`{key}` is a set of {} values where one kernel is expected; choose one, as in `{key}={}`",
            values.len(),
            values[0]
        ))),
        None => parsed.build(&vec![0; parsed.keys.len()]),
    }
}

/// `name[:key=value|value…,…][@columns]` → one kernel per member of the sets, the last set varying fastest.
///
/// ```
/// let views = mtmkl::kernel::parse_kernels("rbf:sigma=1|2|4@f1..f4")?;
/// assert_eq!(views.len(), 3);
/// assert_eq!(views[1].name, "rbf:sigma=2@f1..f4");
/// # Ok::<(), mtmkl::error::Error>(())
/// ```
///
/// # Errors
/// When the text is not such a specification; the message says what would be right.
pub fn parse_kernels(text: &str) -> Result<Vec<KernelView>> {
    let failed = |problem| Error::Kernel {
        spec: text.into(),
        problem,
    };
    let parsed = Specification::read(text).map_err(failed)?;
    let count = parsed.keys.iter().fold(1_usize, |count, (_, values)| {
        count.saturating_mul(values.len())
    });
    if count > MOST_KERNELS {
        return Err(failed(format!(
            "the sets make more than {MOST_KERNELS} kernels; take fewer values"
        )));
    }
    // Each kernel has a list of its own.
    if let Some((_, Columns::Indices(positions))) = &parsed.columns
        && count.saturating_mul(positions.len()) > MOST_POSITIONS
    {
        return Err(failed(format!(
            "the sets make {count} kernels of {} columns each, more than {MOST_POSITIONS} together; take fewer values",
            positions.len()
        )));
    }
    let mut choice = vec![0; parsed.keys.len()];
    (0..count)
        .map(|member| {
            let mut rest = member;
            for (position, (_, values)) in parsed.keys.iter().enumerate().rev() {
                choice[position] = rest % values.len();
                rest /= values.len();
            }
            parsed.build(&choice)
        })
        .collect()
}

/// A specification taken apart: each key with the members of its set.
struct Specification<'a> {
    text: &'a str,
    name: &'a str,
    entry: &'static Entry,
    keys: Vec<(&'a str, Vec<&'a str>)>,
    /// The columns as written and as understood.
    columns: Option<(&'a str, Columns)>,
}

impl<'a> Specification<'a> {
    /// Errors are problems without the specification, which the caller adds.
    fn read(text: &'a str) -> std::result::Result<Self, String> {
        let (head, columns) = match text.split_once('@') {
            Some((head, columns)) => (head, Some(columns.trim())),
            None => (text, None),
        };
        let (name, options) = match head.split_once(':') {
            Some((name, options)) => (name.trim(), Some(options.trim())),
            None => (head.trim(), None),
        };
        let entry = find(name)?;
        let columns = columns
            .map(|text| Ok::<_, String>((text, read_columns(text)?)))
            .transpose()?;
        let keys = options.map_or(Ok(Vec::new()), |options| read_options(options, &entry.info))?;
        Ok(Self {
            text,
            name,
            entry,
            keys,
            columns,
        })
    }

    /// The member with these positions in the sets.
    fn build(&self, choice: &[usize]) -> Result<KernelView> {
        let pairs = self
            .keys
            .iter()
            .zip(choice)
            .map(|((key, values), &chosen)| (*key, values[chosen]))
            .collect();
        let options = Options {
            spec: self.text,
            pairs,
        };
        let kernel = (self.entry.build)(&options).map_err(|error| match error {
            Error::Param {
                name,
                value,
                expected,
            } => options.problem(format!("`{name}` is {value}, expected {expected}")),
            other => other,
        })?;
        let mut name = self.name.to_string();
        for (position, (key, value)) in options.pairs.iter().enumerate() {
            name.push(if position == 0 { ':' } else { ',' });
            name.push_str(key);
            name.push('=');
            name.push_str(value);
        }
        let Some((text, columns)) = &self.columns else {
            return Ok(KernelView {
                name,
                columns: Columns::All,
                kernel,
            });
        };
        if kernel.base().is_given() {
            return Err(options.problem(format!(
                "a precomputed kernel sees no columns; drop `@{text}`, and if the name contains `@`, rename the Gram matrix"
            )));
        }
        name.push('@');
        name.push_str(text);
        Ok(KernelView {
            name,
            columns: columns.clone(),
            kernel,
        })
    }
}

fn find(name: &str) -> std::result::Result<&'static Entry, String> {
    let known = |entry: &&Entry| entry.info.name == name || entry.info.aliases.contains(&name);
    REGISTRY.iter().find(known).ok_or_else(|| {
        let list = REGISTRY
            .iter()
            .map(|entry| entry.info.name)
            .collect::<Vec<_>>()
            .join(", ");
        if name.is_empty() {
            return format!("the kernel's name is missing; the kernels are {list}");
        }
        let names: Vec<String> = REGISTRY
            .iter()
            .flat_map(|entry| std::iter::once(&entry.info.name).chain(entry.info.aliases))
            .map(ToString::to_string)
            .collect();
        match nearest(&name.to_lowercase(), &names) {
            Some(near) => format!(
                "there is no kernel `{name}`, did you mean `{near}`? The kernels are {list}"
            ),
            None => format!("there is no kernel `{name}`; the kernels are {list}"),
        }
    })
}

/// `key=value|value,…` → each key with its values.
fn read_options<'a>(
    text: &'a str,
    info: &KernelInfo,
) -> std::result::Result<Vec<(&'a str, Vec<&'a str>)>, String> {
    if text.is_empty() {
        return Err(format!(
            "nothing follows `:`; drop it or write for example `{}`",
            info.example
        ));
    }
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for option in text.split(',').map(str::trim) {
        let Some((key, values)) = option.split_once('=') else {
            return Err(match keys.last() {
                _ if option.is_empty() => {
                    "there is nothing before or after a `,`; remove it".to_string()
                }
                _ if info.keys.iter().any(|known| known.key == option) => {
                    format!("the key `{option}` has no value; write `{option}=…`")
                }
                Some((key, values)) => format!(
                    "`{option}` is not of the form `key=value`; several values of `{key}` are written `{key}={}|{option}`",
                    values[0]
                ),
                None => format!(
                    "`{option}` is not of the form `key=value`; {}",
                    allowed(info)
                ),
            });
        };
        let (key, values) = (key.trim(), values.trim());
        if !info.keys.iter().any(|known| known.key == key) {
            return Err(format!("unknown key `{key}`; {}", allowed(info)));
        }
        if keys.iter().any(|(known, _)| *known == key) {
            return Err(format!(
                "the key `{key}` is given twice; several values are written `{key}=1|2`"
            ));
        }
        if values.is_empty() {
            return Err(format!("the key `{key}` has no value; write `{key}=…`"));
        }
        let values: Vec<&str> = values.split('|').map(str::trim).collect();
        if values.iter().any(|value| value.is_empty()) {
            return Err(format!(
                "the set of `{key}` has an empty member; put one `|` between two values, as in `1|2`"
            ));
        }
        keys.push((key, values));
    }
    Ok(keys)
}

/// What to write instead of an unknown key.
fn allowed(info: &KernelInfo) -> String {
    if info.keys.is_empty() {
        return format!("`{}` has no keys", info.name);
    }
    let keys: Vec<String> = info
        .keys
        .iter()
        .map(|known| format!("`{}` ({})", known.key, known.meaning))
        .collect();
    format!("the keys of `{}` are {}", info.name, keys.join(", "))
}

/// One end of a range as written.
enum End {
    Name(String),
    Position(usize),
}

/// `a,b..c` or `#0,#3..#5`.
fn read_columns(text: &str) -> std::result::Result<Columns, String> {
    if text.is_empty() {
        return Err(
            "no columns follow `@`; drop it for all columns, or write for example `@f1,f3..f5`"
                .into(),
        );
    }
    let (mut ranges, mut positions) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let (first, after) = read_end(rest)?;
        let (last, after) = match after.strip_prefix("..") {
            Some(after) => {
                let (last, after) = read_end(after)?;
                (Some(last), after)
            }
            None => (None, after),
        };
        match (first, last) {
            (End::Name(first), None) => ranges.push(ColumnRange { first, last: None }),
            (End::Name(first), Some(End::Name(last))) => ranges.push(ColumnRange {
                first,
                last: Some(last),
            }),
            (End::Position(only), None) => positions.push(only),
            (End::Position(first), Some(End::Position(last))) => {
                if last < first {
                    return Err(format!(
                        "the range `#{first}..#{last}` is empty; write `#{last}..#{first}`"
                    ));
                }
                if last - first >= MOST_POSITIONS - positions.len().min(MOST_POSITIONS) {
                    return Err(format!(
                        "with `#{first}..#{last}` it has more than {MOST_POSITIONS} columns"
                    ));
                }
                positions.extend(first..=last);
            }
            _ => {
                return Err(
                    "a range goes from name to name or from position to position, as in `#0..#3`"
                        .into(),
                );
            }
        }
        if after.is_empty() {
            break;
        }
        let Some(after) = after.strip_prefix(',') else {
            return Err(format!(
                "`{after}` follows a column; columns are separated by `,`, ranges are `first..last`"
            ));
        };
        rest = after;
    }
    match (ranges.is_empty(), positions.is_empty()) {
        (false, false) => Err(
            "names and positions (`#`) are mixed; give all columns by name or all by position"
                .into(),
        ),
        (false, true) => Ok(Columns::Named(ranges)),
        (true, _) => Ok(Columns::Indices(positions)),
    }
}

/// One name or position, and what follows it.
fn read_end(text: &str) -> std::result::Result<(End, &str), String> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let mut name = String::new();
        let mut rest = quoted;
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                return Err(format!(
                    "the quotation mark before `{quoted}` is not closed; add `\"` after the name"
                ));
            };
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(after) => {
                    name.push('"');
                    rest = after;
                }
                None => return Ok((End::Name(name), after.trim_start())),
            }
        }
    }
    let end = [text.find(','), text.find("..")]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(text.len());
    let (name, rest) = (text[..end].trim(), &text[end..]);
    if name.is_empty() {
        return Err(
            "a column is missing; write names between the commas and at both ends of `..`, as in `@f1,f3..f5`".into()
        );
    }
    let Some(position) = name.strip_prefix('#') else {
        return Ok((End::Name(name.into()), rest));
    };
    match position.parse() {
        Ok(position) => Ok((End::Position(position), rest)),
        Err(_) => Err(format!(
            "`{name}` is no position, expected `#` and a whole number from 0; a name that starts with `#` stands in quotes, `\"{name}\"`"
        )),
    }
}

/// A name as [`read_end`] reads it back, in quotes where it needs them.
fn write_name(name: &str) -> String {
    let plain = !name.is_empty()
        && name.trim() == name
        && !name.starts_with(['#', '"', '.'])
        && !name.ends_with('.')
        && !name.contains(',')
        && !name.contains("..");
    if plain {
        name.into()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

impl KernelView {
    /// `name:key=value,…@columns` that [`parse_kernel`] reads back to the same kernel on the same columns; `None` for a
    /// user's own kernel and for an empty list of columns.
    pub fn spec(&self) -> Option<String> {
        let kernel = self.kernel.spec()?;
        let columns: Vec<String> = match &self.columns {
            Columns::All => return Some(kernel),
            // Columns mean nothing to a given Gram matrix.
            _ if self.kernel.base().is_given() => return Some(kernel),
            Columns::Named(ranges) => ranges
                .iter()
                .map(|range| match &range.last {
                    None => write_name(&range.first),
                    Some(last) => format!("{}..{}", write_name(&range.first), write_name(last)),
                })
                .collect(),
            Columns::Indices(positions) => positions
                .iter()
                .map(|position| format!("#{position}"))
                .collect(),
        };
        if columns.is_empty() {
            None
        } else {
            Some(format!("{kernel}@{}", columns.join(",")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Base;

    fn named(first: &str, last: Option<&str>) -> ColumnRange {
        ColumnRange {
            first: first.into(),
            last: last.map(Into::into),
        }
    }

    fn names(text: &str) -> Vec<String> {
        parse_kernels(text)
            .unwrap()
            .into_iter()
            .map(|view| view.name)
            .collect()
    }

    /// Numbers in [0, 1) from a linear congruential generator.
    fn random(count: usize) -> Vec<f64> {
        let mut state = 7_u64;
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1_u64 << 53) as f64
            })
            .collect()
    }

    /// k(x, z) as the Gram builder computes it.
    fn evaluate(kernel: &dyn Kernel, x: &[f64], z: &[f64]) -> f64 {
        let plain = |x: &[f64], z: &[f64]| {
            assert!(!kernel.base().is_given());
            kernel.value(x, z)
        };
        if kernel.is_always_normalised() {
            plain(x, z) / (plain(x, x) * plain(z, z)).sqrt()
        } else {
            plain(x, z)
        }
    }

    /// The examples and the defaults of all kernels that compute something.
    fn computing() -> Vec<KernelView> {
        registered_kernels()
            .iter()
            .filter(|info| info.name != "precomputed")
            .flat_map(|info| [info.example, info.name])
            .map(|text| parse_kernel(text).unwrap())
            .collect()
    }

    fn points() -> Vec<Vec<f64>> {
        // Some zeros: where kernels for histograms divide 0 by 0.
        let values: Vec<f64> = random(24 * 5)
            .into_iter()
            .map(|value| (3.0 * value - 0.6).max(0.0))
            .collect();
        values.chunks(5).map(<[f64]>::to_vec).collect()
    }

    /// Whether K + jitter·I has a Cholesky factor.
    fn is_positive_semi_definite(mut k: Vec<Vec<f64>>) -> bool {
        let n = k.len();
        let jitter = 1e-12 * (0..n).map(|i| k[i][i]).sum::<f64>();
        for j in 0..n {
            let pivot = k[j][j] + jitter - (0..j).map(|p| k[j][p] * k[j][p]).sum::<f64>();
            if pivot.is_nan() || pivot <= 0.0 {
                return false;
            }
            k[j][j] = pivot.sqrt();
            for i in j + 1..n {
                let inner: f64 = (0..j).map(|p| k[i][p] * k[j][p]).sum();
                k[i][j] = (k[i][j] - inner) / k[j][j];
            }
        }
        true
    }

    #[test]
    fn all_kernels_are_symmetric_and_definite_where_they_say_so() {
        let points = points();
        for view in computing() {
            let kernel = view.kernel.as_ref();
            let gram: Vec<Vec<f64>> = points
                .iter()
                .map(|x| points.iter().map(|z| evaluate(kernel, x, z)).collect())
                .collect();
            for i in 0..points.len() {
                for j in 0..points.len() {
                    assert!(gram[i][j].is_finite(), "{}", view.name);
                    assert_eq!(gram[i][j], gram[j][i], "{}", view.name);
                }
            }
            if kernel.is_positive_definite() {
                assert!(is_positive_semi_definite(gram), "{}", view.name);
            }
        }
    }

    #[test]
    fn the_definiteness_test_finds_indefinite_kernels() {
        let gram = |text: &str| {
            let kernel = parse_kernel(text).unwrap().kernel;
            let points = points();
            points
                .iter()
                .map(|x| {
                    points
                        .iter()
                        .map(|z| evaluate(kernel.as_ref(), x, z))
                        .collect()
                })
                .collect()
        };
        assert!(!is_positive_semi_definite(gram("sigmoid")));
        assert!(!is_positive_semi_definite(gram("poly:coef0=-4")));
    }

    #[test]
    fn all_kernels_round_trip_through_their_specification() {
        let points = points();
        for view in computing() {
            let again = parse_kernel(&view.spec().unwrap()).unwrap();
            assert_eq!(view.spec(), again.spec());
            assert_eq!(view.kernel.base(), again.kernel.base());
            assert_eq!(
                view.kernel.is_positive_definite(),
                again.kernel.is_positive_definite()
            );
            for x in &points {
                for z in &points {
                    let (one, other) = (
                        evaluate(view.kernel.as_ref(), x, z),
                        evaluate(again.kernel.as_ref(), x, z),
                    );
                    assert_eq!(one.to_bits(), other.to_bits(), "{}", view.name);
                }
            }
        }
    }

    #[test]
    fn all_kernels_equal_their_formula() {
        type Formula = fn(f64, f64, f64) -> f64;
        let points = points();
        // Of x'z, ‖x − z‖² and ‖x − z‖₁.
        let of_base = |name: &str| -> Option<Formula> {
            Some(match name {
                "linear" => |product, _, _| product,
                "poly" => |product, _, _| (product + 1.0) * (product + 1.0),
                "poly:degree=3,coef0=1,gamma=0.5" => {
                    |product, _, _| (0.5 * product + 1.0).powf(3.0)
                }
                "rbf" => |_, squared, _| (-squared).exp(),
                "rbf:gamma=0.5" => |_, squared, _| 1.0 / (squared / 2.0).exp(),
                "laplacian" => |_, _, manhattan| (-manhattan).exp(),
                "laplacian:gamma=0.5" => |_, _, manhattan| 1.0 / (manhattan / 2.0).exp(),
                "matern32" => |_, squared, _| {
                    let s = (3.0 * squared).sqrt();
                    (1.0 + s) / s.exp()
                },
                "matern32:length=2" => |_, squared, _| {
                    let s = (3.0 * squared).sqrt() / 2.0;
                    (1.0 + s) / s.exp()
                },
                "matern52" => |_, squared, _| {
                    let s = (5.0 * squared).sqrt();
                    (1.0 + s + 5.0 * squared / 3.0) / s.exp()
                },
                "matern52:length=2" => |_, squared, _| {
                    let s = (5.0 * squared).sqrt() / 2.0;
                    (1.0 + s + 5.0 * squared / 12.0) / s.exp()
                },
                "sigmoid" => |product, _, _| (product + 1.0).sinh() / (product + 1.0).cosh(),
                "sigmoid:gamma=0.1,coef0=0.5" => |product, _, _| {
                    let grown = (2.0 * (0.1 * product + 0.5)).exp();
                    (grown - 1.0) / (grown + 1.0)
                },
                _ => return None,
            })
        };
        let chi_square = |x: &[f64], z: &[f64]| -> f64 {
            x.iter()
                .zip(z)
                .filter(|(a, b)| **a + **b > 0.0)
                .map(|(a, b)| (a - b).powi(2) / (a + b))
                .sum()
        };
        for view in computing() {
            for x in &points {
                for z in &points {
                    let product: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
                    let length = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
                    let squared: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
                    let manhattan: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
                    let expected = match (view.name.as_str(), of_base(&view.name)) {
                        (_, Some(formula)) => formula(product, squared, manhattan),
                        ("cosine", _) => product / (length(x) * length(z)),
                        ("chi2", _) => (-chi_square(x, z)).exp(),
                        ("chi2:gamma=0.5", _) => (-0.5 * chi_square(x, z)).exp(),
                        ("intersection", _) => x
                            .iter()
                            .zip(z)
                            .map(|(a, b)| if a < b { a } else { b })
                            .sum(),
                        (name, None) => panic!("add the formula of `{name}` to this test"),
                    };
                    let found = evaluate(view.kernel.as_ref(), x, z);
                    let error = (found - expected).abs();
                    assert!(
                        error <= 1e-13 * expected.abs().max(1.0),
                        "{}: {found}, expected {expected}",
                        view.name
                    );
                }
            }
        }
    }

    /// Made by `tests/scripts/sklearn_kernels.py` with scikit-learn 1.9.1: k(a, b), k(a, c), k(b, c), k(b, b).
    #[test]
    #[expect(clippy::unreadable_literal, reason = "as the script prints them")]
    fn equals_scikit_learn() {
        let stored = [
            ("linear", [5.0, 2.625, 1.75, 11.3125]),
            ("poly", [36.0, 13.140625, 7.5625, 151.59765625]),
            (
                "poly:degree=3,coef0=0.5,gamma=0.2",
                [
                    3.375,
                    1.0768906249999997,
                    0.6141250000000001,
                    21.081759765625005,
                ],
            ),
            (
                "rbf",
                [
                    0.0008047330101246132,
                    0.09301448921066349,
                    6.605650802868481e-05,
                    1.0,
                ],
            ),
            (
                "rbf:gamma=0.3",
                [
                    0.11794934810730252,
                    0.49041662207590614,
                    0.055715326963496424,
                    1.0,
                ],
            ),
            (
                "rbf:sigma=2",
                [
                    0.41039917309637,
                    0.7431368986687583,
                    0.30025444914408245,
                    1.0,
                ],
            ),
            (
                "laplacian:gamma=0.3",
                [
                    0.25924026064589156,
                    0.40656965974059917,
                    0.19204990862075413,
                    1.0,
                ],
            ),
            (
                "sigmoid:gamma=0.1,coef0=-0.2",
                [
                    0.2913126124515909,
                    0.062418746747512514,
                    -0.024994792968420682,
                    0.7311761547481468,
                ],
            ),
            (
                "cosine",
                [
                    0.616608099707363,
                    0.8087398016301801,
                    0.38647352198669366,
                    1.0,
                ],
            ),
            (
                "chi2:gamma=0.3",
                [
                    0.46092967154653697,
                    0.5647181220077592,
                    0.2603536745170363,
                    1.0,
                ],
            ),
            (
                "matern32:length=2",
                [
                    0.3281753824675337,
                    0.6146026527290149,
                    0.2510704843539989,
                    1.0,
                ],
            ),
            (
                "matern52:length=0.7",
                [
                    0.006688592514966263,
                    0.10190255772117679,
                    0.002167577064538186,
                    1.0,
                ],
            ),
        ];
        let (a, b, c) = (
            [0.5, 0.0, 2.0, 1.25],
            [1.5, 0.0, 0.25, 3.0],
            [0.0, 0.75, 1.0, 0.5],
        );
        for (text, expected) in stored {
            let kernel = parse_kernel(text).unwrap().kernel;
            for ((x, z), expected) in [(&a, &b), (&a, &c), (&b, &c), (&b, &b)]
                .into_iter()
                .zip(expected)
            {
                let found = evaluate(kernel.as_ref(), x, z);
                assert!(
                    (found - expected).abs() <= 1e-14 * expected.abs(),
                    "{text}: {found}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn the_registry_is_consistent() {
        let mut seen: Vec<&str> = Vec::new();
        for info in registered_kernels() {
            for name in std::iter::once(&info.name).chain(info.aliases) {
                assert!(!seen.contains(name), "{name} is registered twice");
                seen.push(name);
            }
            let view = parse_kernel(info.example).unwrap();
            let spec = view.spec().unwrap();
            assert_eq!(spec, info.example, "the example is what the kernel writes");
            assert_eq!(spec.split(':').next(), Some(info.name));
            for alias in info.aliases {
                let renamed = parse_kernel(&info.example.replacen(info.name, alias, 1)).unwrap();
                assert_eq!(renamed.spec(), view.spec());
            }
            if let Some(name) = view.kernel.needs_non_negative() {
                assert_eq!(name, info.name);
            }
        }
    }

    #[test]
    fn a_name_is_what_the_user_wrote() {
        let view = parse_kernel(" gaussian : sigma = 2 @ f1..f4 , age ").unwrap();
        assert_eq!(view.name, "gaussian:sigma=2@f1..f4 , age");
        assert_eq!(
            view.columns,
            Columns::Named(vec![named("f1", Some("f4")), named("age", None)])
        );
        assert_eq!(view.spec().unwrap(), "rbf:gamma=0.125@f1..f4,age");
    }

    #[test]
    fn sets_expand_in_order() {
        assert_eq!(
            names("rbf:sigma=1|2|4"),
            ["rbf:sigma=1", "rbf:sigma=2", "rbf:sigma=4"]
        );
        assert_eq!(
            names("poly:degree=2|3,coef0=0|1@a"),
            [
                "poly:degree=2,coef0=0@a",
                "poly:degree=2,coef0=1@a",
                "poly:degree=3,coef0=0@a",
                "poly:degree=3,coef0=1@a"
            ]
        );
        assert_eq!(
            names("precomputed:name=K1|K2"),
            ["precomputed:name=K1", "precomputed:name=K2"]
        );
        assert_eq!(names("linear@a|b"), ["linear@a|b"]);
    }

    #[test]
    fn columns_round_trip() {
        for columns in [
            Columns::All,
            Columns::Indices(vec![0, 3, 3, 1]),
            Columns::Indices(vec![usize::MAX]),
            Columns::Named(vec![named("a", None), named("b", Some("c"))]),
            Columns::Named(vec![named("mean radius", Some("od280/od315 @ 5 cm|x:y=z"))]),
            Columns::Named(vec![
                named("a,b", Some("c..d")),
                named("..", None),
                named("#0", Some("#1")),
            ]),
            Columns::Named(vec![
                named("a.", Some(".b")),
                named(" c ", None),
                named("", None),
            ]),
            Columns::Named(vec![
                named("\"", Some("5\" disk")),
                named("\"a\",\"b\"", Some("\"\"")),
            ]),
            Columns::Named(vec![named("größe", Some("长度"))]),
        ] {
            let view = KernelView::new("mine", crate::kernel::Linear).on(columns);
            let text = view.spec().unwrap();
            assert_eq!(parse_kernel(&text).unwrap().columns, view.columns, "{text}");
        }
    }

    #[test]
    fn positions_have_ranges() {
        let view = parse_kernel("linear@#0,#3..#5,#1").unwrap();
        assert_eq!(view.columns, Columns::Indices(vec![0, 3, 4, 5, 1]));
        assert_eq!(view.spec().unwrap(), "linear@#0,#3,#4,#5,#1");
    }

    #[test]
    fn quotes_may_be_followed_by_blanks() {
        let view = parse_kernel("linear@ \"a,b\" .. \"c\" , d").unwrap();
        assert_eq!(
            view.columns,
            Columns::Named(vec![named("a,b", Some("c")), named("d", None)])
        );
    }

    #[test]
    fn what_cannot_be_parsed_again_has_no_specification() {
        #[derive(Debug)]
        struct Mine;
        impl Kernel for Mine {
            fn base(&self) -> Base {
                Base::product()
            }
            fn spec(&self) -> Option<String> {
                None
            }
        }
        assert_eq!(KernelView::new("mine", Mine).spec(), None);
        let empty = Columns::Named(Vec::new());
        assert_eq!(
            KernelView::new("none", crate::kernel::Linear)
                .on(empty)
                .spec(),
            None
        );
        let given = KernelView::new("K", crate::kernel::Precomputed::new("K").unwrap());
        assert_eq!(
            given.on(Columns::Indices(vec![1])).spec().unwrap(),
            "precomputed:name=K"
        );
    }

    #[test]
    fn messages_say_what_would_be_right() {
        for (text, wanted) in [
            (
                "",
                "the kernel's name is missing; the kernels are linear, poly",
            ),
            (":gamma=1", "the kernel's name is missing"),
            ("rbff", "did you mean `rbf`?"),
            ("RBF", "did you mean `rbf`?"),
            ("guassian:sigma=1", "did you mean `gaussian`?"),
            (
                "wavelet9000",
                "there is no kernel `wavelet9000`; the kernels are",
            ),
            ("rbf:", "write for example `rbf:gamma=0.5`"),
            (
                "rbf:width=1",
                "unknown key `width`; the keys of `rbf` are `gamma` (",
            ),
            (
                "linear:gamma=1",
                "unknown key `gamma`; `linear` has no keys",
            ),
            ("rbf:gamma", "the key `gamma` has no value; write `gamma=…`"),
            (
                "rbf:gamma=",
                "the key `gamma` has no value; write `gamma=…`",
            ),
            (
                "rbf:0.5",
                "`0.5` is not of the form `key=value`; the keys of `rbf` are",
            ),
            (
                "rbf:sigma=1,2",
                "several values of `sigma` are written `sigma=1|2`",
            ),
            ("rbf:gamma=1,", "nothing before or after a `,`"),
            ("rbf:gamma=1,gamma=2", "given twice"),
            (
                "rbf:gamma=1,sigma=2",
                "`gamma` and `sigma` say the same thing; give one of them",
            ),
            (
                "rbf:gamma=wide",
                "`gamma` is `wide`, expected a number such as 0.5",
            ),
            (
                "poly:degree=2.5",
                "`degree` is `2.5`, expected a whole number such as 2",
            ),
            (
                "poly:degree=0",
                "`degree` is 0, expected a whole number from 1",
            ),
            (
                "rbf:gamma=-1",
                "`gamma` is -1, expected a finite number > 0",
            ),
            (
                "rbf:gamma=nan",
                "`gamma` is NaN, expected a finite number > 0",
            ),
            (
                "rbf:sigma=1||2",
                "has an empty member; put one `|` between two values",
            ),
            ("rbf:sigma=1|2|", "has an empty member"),
            (
                "rbf:sigma=1|-2",
                "`sigma` is -2, expected a finite number > 0",
            ),
            ("rbf@", "no columns follow `@`"),
            ("rbf@ ", "no columns follow `@`"),
            ("rbf@a,,b", "a column is missing"),
            ("rbf@a,", "a column is missing"),
            ("rbf@a..", "a column is missing"),
            ("rbf@..b", "a column is missing"),
            ("rbf@a..b..c", "columns are separated by `,`"),
            ("rbf@\"a\"b", "columns are separated by `,`"),
            ("rbf@\"a", "not closed"),
            ("rbf@#0,a", "mixed"),
            (
                "rbf@#0..a",
                "from name to name or from position to position",
            ),
            ("rbf@#x", "stands in quotes, `\"#x\"`"),
            ("rbf@#3..#1", "write `#1..#3`"),
            ("rbf@#0..#99999999999", "more than 1000000 columns"),
            ("precomputed", "write `precomputed:name=K1`"),
            ("precomputed:name=a,path=b", "give one of them"),
            ("precomputed:path=me@home.npy", "drop `@home.npy`"),
        ] {
            let error = parse_kernels(text).unwrap_err();
            assert!(
                matches!(&error, Error::Kernel { spec, .. } if spec == text),
                "{error}"
            );
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn one_kernel_is_no_set_and_a_set_has_its_limit() {
        let message = parse_kernel("rbf:sigma=1|2|4").unwrap_err().to_string();
        assert!(
            message.contains("a set of 3 values where one kernel is expected"),
            "{message}"
        );
        let many = vec!["1"; 200].join("|");
        let message = parse_kernels(&format!("poly:coef0={many},gamma={many}"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("more than 10000 kernels"), "{message}");
    }
}
