//! Kernels as text, and back: `name[:key=value,…][*tasks][@columns]`.

use std::borrow::Cow;
use std::sync::Arc;

use super::columns::{MOST_POSITIONS, read_columns, write_name};
use super::{
    Columns, Kernel, KernelView, chi_square, constant, cosine, gaussian, intersection, laplacian,
    linear, matern, nearest, polynomial, precomputed, scaled, sigmoid, units,
};
use crate::error::{Error, Result};
use crate::task_kernel::ALL;

/// Every kernel that a specification can name, in the order of help texts. A new kernel is one line here.
pub(crate) const KERNELS: &[&KernelEntry] = &[
    &linear::ENTRY,
    &polynomial::ENTRY,
    &gaussian::ENTRY,
    &laplacian::ENTRY,
    &matern::ENTRY_32,
    &matern::ENTRY_52,
    &cosine::ENTRY,
    &chi_square::ENTRY,
    &intersection::ENTRY,
    &sigmoid::ENTRY,
    &constant::ENTRY,
    &precomputed::ENTRY,
];

/// Sets multiply, so a short text could otherwise ask for more kernels than fit into memory.
const MOST_KERNELS: usize = 10_000;

/// How a kernel is known: its names, its keys, and how it is made from them. Registering it is all that specifications need.
#[derive(Debug)]
pub struct KernelEntry {
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
    /// The kernel with these values of its keys.
    pub build: fn(&Options<'_>) -> Result<Arc<dyn Kernel>>,
}

/// One key of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key.
    pub key: &'static str,
    /// What its value is, the range and the default.
    pub meaning: &'static str,
}

/// The value of each key of one kernel.
#[derive(Debug)]
pub struct Options<'a> {
    spec: &'a str,
    name: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl Options<'_> {
    /// An error about this specification.
    pub fn problem(&self, problem: impl Into<String>) -> Error {
        Error::Kernel {
            spec: self.spec.into(),
            problem: problem.into(),
        }
    }

    /// The value of a key as it is written, where it is there.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }

    /// The specification without its columns and without a factor.
    pub(super) fn without_columns(&self) -> String {
        let mut text = self.name.to_string();
        let own = self.pairs.iter().filter(|(key, _)| *key != scaled::FACTOR);
        for (position, (key, value)) in own.enumerate() {
            text.push(if position == 0 { ':' } else { ',' });
            text.push_str(key);
            text.push('=');
            text.push_str(value);
        }
        text
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.text(key).is_some()
    }

    /// The value of a key that is a number.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, key: &str, default: f64) -> Result<f64> {
        self.text(key).map_or(Ok(default), |text| {
            text.parse().map_err(|_| {
                self.problem(format!(
                    "`{key}` is `{text}`, expected a number such as 0.5"
                ))
            })
        })
    }

    /// The value of a key that is a whole number.
    ///
    /// # Errors
    /// When it is something else.
    pub fn whole(&self, key: &str, default: u32) -> Result<u32> {
        self.text(key).map_or(Ok(default), |text| {
            text.parse().map_err(|_| {
                self.problem(format!(
                    "`{key}` is `{text}`, expected a whole number such as 2"
                ))
            })
        })
    }

    /// Two keys that say the same thing.
    ///
    /// # Errors
    /// When both are there.
    pub fn at_most_one(&self, one: &str, other: &str) -> Result<()> {
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

/// `name[:key=value,…][*tasks][@columns]` → one kernel on a view.
///
/// `*all`, `*own`, `*group` or the name of another task kernel say which tasks share what is learned, see [`crate::task_kernel`].
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
    parse_one(KERNELS, text)
}

/// As [`parse_kernel`], with these kernels.
pub(crate) fn parse_one(known: &[&'static KernelEntry], text: &str) -> Result<KernelView> {
    let failed = |problem| Error::Kernel {
        spec: text.into(),
        problem,
    };
    let parsed = Specification::read(known, text).map_err(failed)?;
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
    parse_set(KERNELS, text)
}

/// As [`parse_kernels`], with these kernels.
pub(crate) fn parse_set(known: &[&'static KernelEntry], text: &str) -> Result<Vec<KernelView>> {
    let failed = |problem| Error::Kernel {
        spec: text.into(),
        problem,
    };
    let parsed = Specification::read(known, text).map_err(failed)?;
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

/// A key with the members of its set.
type Key<'a> = (&'a str, Vec<Cow<'a, str>>);

/// A specification taken apart.
struct Specification<'a> {
    text: &'a str,
    name: &'a str,
    entry: &'static KernelEntry,
    keys: Vec<Key<'a>>,
    /// The task kernel, where it is written.
    between: Option<&'a str>,
    /// The columns as written and as understood.
    columns: Option<(&'a str, Columns)>,
}

impl<'a> Specification<'a> {
    /// Errors are problems without the specification, which the caller adds.
    fn read(known: &[&'static KernelEntry], text: &'a str) -> std::result::Result<Self, String> {
        let (head, columns) = match text.split_once('@') {
            Some((head, columns)) => (head, Some(columns.trim())),
            None => (text, None),
        };
        let (head, between) = match head.rsplit_once('*') {
            Some((head, word)) if !is_number(word) => (head, Some(word.trim())),
            _ => (head, None),
        };
        if between.is_some_and(str::is_empty) {
            return Err("nothing follows `*`; write `*all`, `*group` or `*own`, or drop it".into());
        }
        let (name, options) = match head.split_once(':') {
            Some((name, options)) => (name.trim(), Some(options.trim())),
            None => (head.trim(), None),
        };
        let entry = find(known, name)?;
        let columns = columns
            .map(|text| Ok::<_, String>((text, read_columns(text)?)))
            .transpose()?;
        let keys = options.map_or(Ok(Vec::new()), |options| read_options(options, entry))?;
        Ok(Self {
            text,
            name,
            entry,
            keys,
            between,
            columns,
        })
    }

    /// The member with these positions in the sets.
    fn build(&self, choice: &[usize]) -> Result<KernelView> {
        let pairs = self
            .keys
            .iter()
            .zip(choice)
            .map(|((key, values), &chosen)| (*key, values[chosen].as_ref()))
            .collect();
        let options = Options {
            spec: self.text,
            name: self.name,
            pairs,
        };
        let made = (self.entry.build)(&options).and_then(|kernel| {
            Ok(match options.number(scaled::FACTOR, 1.0)? {
                1.0 => kernel,
                factor => Arc::new(super::Scaled::new(factor, kernel)?),
            })
        });
        let kernel = made.map_err(|error| match error {
            Error::Param {
                name,
                value,
                expected,
            } => options.problem(format!("`{name}` is {value}, expected {expected}")),
            other => other,
        })?;
        let mut name = options.without_columns();
        if let Some(factor) = options.text(scaled::FACTOR) {
            name.push(if name.contains(':') { ',' } else { ':' });
            name.push_str(&format!("{}={factor}", scaled::FACTOR));
        }
        if let Some(word) = self.between {
            name.push('*');
            name.push_str(word);
        }
        let between = self.between.filter(|word| *word != ALL);
        let between = between.map(ToString::to_string);
        let Some((text, columns)) = &self.columns else {
            return Ok(KernelView {
                name,
                columns: Columns::All,
                kernel,
                between,
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
            between,
        })
    }
}

impl KernelEntry {
    /// Whether this is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// Whether what stands behind `*` is a number: then it belongs to a width in units of the data, `sigma=median*0.5|1`.
fn is_number(text: &str) -> bool {
    let first = text.split(['|', ',']).next().unwrap_or_default();
    first.trim().parse::<f64>().is_ok()
}

fn find(
    known: &[&'static KernelEntry],
    name: &str,
) -> std::result::Result<&'static KernelEntry, String> {
    let is_it = |entry: &&&KernelEntry| entry.is_called(name);
    known.iter().find(is_it).copied().ok_or_else(|| {
        let list = known
            .iter()
            .map(|entry| entry.name)
            .collect::<Vec<_>>()
            .join(", ");
        if name.is_empty() {
            return format!("the kernel's name is missing; the kernels are {list}");
        }
        let names: Vec<String> = known
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(entry.aliases))
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
    info: &KernelEntry,
) -> std::result::Result<Vec<Key<'a>>, String> {
    if text.is_empty() {
        return Err(format!(
            "nothing follows `:`; drop it or write for example `{}`",
            info.example
        ));
    }
    let mut keys: Vec<Key<'_>> = Vec::new();
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
        if key != scaled::FACTOR && !info.keys.iter().any(|known| known.key == key) {
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
        keys.push((key, units::of_all(values)));
    }
    Ok(keys)
}

/// What to write instead of an unknown key.
fn allowed(info: &KernelEntry) -> String {
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

impl KernelView {
    /// `name:key=value,…@columns` that [`parse_kernel`] reads back to the same kernel on the same columns; `None` for a
    /// user's own kernel and for an empty list of columns.
    pub fn spec(&self) -> Option<String> {
        let mut kernel = self.kernel.spec()?;
        if let Some(word) = &self.between {
            kernel = format!("{kernel}*{word}");
        }
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
mod tests;
