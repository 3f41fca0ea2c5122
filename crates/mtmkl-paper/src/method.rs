//! The ways to share kernel weights that the experiments compare, and what each chooses among.

use mtmkl::select::Cell;
use mtmkl::sharing::SharingSpec;
use serde::{Deserialize, Serialize};

/// The paper's p.
pub const P: f64 = 1.1;
/// Tang's β as shares of the number of tasks: 0 is one space for all tasks, 1 one for each.
pub const TANG: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// q of the paper: 1.0, 1.1, …, 2.0.
pub fn q() -> Vec<f64> {
    (10..=20).map(|tenths| f64::from(tenths) / 10.0).collect()
}

/// A way to share kernel weights, under the paper's name where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Partially shared common space: a common part and a part of each task's own.
    Pscs,
    /// One common space.
    Cs,
    /// A space for each task.
    Is,
    /// Tang's model.
    Tang,
    /// The L_p–L_q group.
    Group,
    /// All kernels with one weight.
    Uniform,
    /// One kernel alone.
    Single,
}

impl Method {
    /// All methods, the paper's three first.
    pub const ALL: [Self; 7] = [
        Self::Pscs,
        Self::Cs,
        Self::Is,
        Self::Tang,
        Self::Group,
        Self::Uniform,
        Self::Single,
    ];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pscs => "pscs",
            Self::Cs => "cs",
            Self::Is => "is",
            Self::Tang => "tang",
            Self::Group => "group",
            Self::Uniform => "uniform",
            Self::Single => "single",
        }
    }

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pscs => "PSCS",
            Self::Cs => "CS",
            Self::Is => "IS",
            Self::Tang => "Tang",
            Self::Group => "L_p–L_q group",
            Self::Uniform => "uniform average",
            Self::Single => "best single kernel",
        }
    }

    /// The method of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The sharings it chooses among, for so many tasks and kernels.
    pub fn sharings(self, tasks: usize, kernels: usize) -> Vec<SharingSpec> {
        let (p, radius) = (P, 1.0);
        match self {
            Self::Pscs => q()
                .into_iter()
                .map(|q| SharingSpec::pscs(p, q, radius))
                .collect(),
            Self::Cs => vec![SharingSpec::common(p, radius)],
            Self::Is => vec![SharingSpec::independent(p, radius)],
            Self::Tang => TANG
                .iter()
                .map(|share| SharingSpec::tang(share * tasks as f64))
                .collect(),
            Self::Group => q()
                .into_iter()
                .map(|q| SharingSpec::group(p, q, radius))
                .collect(),
            Self::Uniform => vec![SharingSpec::uniform()],
            Self::Single => (0..kernels)
                .map(|kernel| {
                    SharingSpec::fixed(
                        (0..kernels)
                            .map(|other| f64::from(u8::from(other == kernel)))
                            .collect(),
                    )
                })
                .collect(),
        }
    }

    /// The method whose cell this is.
    pub fn of(cell: &Cell) -> Self {
        match cell.sharing.name() {
            "common" => Self::Cs,
            "independent" => Self::Is,
            "tang" => Self::Tang,
            "group" => Self::Group,
            "uniform" => Self::Uniform,
            "fixed" => Self::Single,
            // No method has a cell of another sharing.
            _ => Self::Pscs,
        }
    }
}

#[cfg(test)]
mod tests {
    use mtmkl::machine::MachineSpec;

    use super::*;

    #[test]
    fn names_are_those_of_files_and_lead_back() {
        for method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
            assert_eq!(serde_json::json!(method), method.name());
        }
        assert_eq!(Method::named("PSCS"), None);
    }

    #[test]
    fn cells_know_their_method() {
        for method in Method::ALL {
            for sharing in method.sharings(3, 4) {
                let cell = Cell {
                    kernels: 0,
                    sharing,
                    machine: MachineSpec::svc(1.0),
                };
                assert_eq!(Method::of(&cell), method);
            }
        }
    }
}
