//! Machines by name, as they stand in configuration files and model files. New ones are registered here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Krr, Machine, OneClass, Svc, Svdd, Svr, krr, one_class, svc, svdd, svr};

fn one() -> f64 {
    1.0
}

/// A machine by name, with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum MachineSpec {
    /// [`Svc`]
    Svc {
        /// C > 0.
        #[serde(rename = "C")]
        c: f64,
        /// Factor of C for the class +1.
        #[serde(default = "one")]
        positive_weight: f64,
        /// Factor of C for the class −1.
        #[serde(default = "one")]
        negative_weight: f64,
    },
    /// [`Svr`]
    Svr {
        /// C > 0.
        #[serde(rename = "C")]
        c: f64,
        /// ε ≥ 0.
        epsilon: f64,
    },
    /// [`Krr`]
    Krr {
        /// λ > 0.
        lambda: f64,
    },
    /// [`Svdd`]
    Svdd {
        /// C ≥ 1/n.
        #[serde(rename = "C")]
        c: f64,
    },
    /// [`OneClass`]
    #[serde(rename = "ocsvm")]
    OneClass {
        /// ν in (0, 1].
        nu: f64,
    },
    /// A machine of the user's own. It has no name in files: a model of it cannot be saved.
    #[serde(skip)]
    Own(OwnMachine),
}

/// A machine of the user's own. Equal to itself alone.
#[derive(Debug, Clone)]
pub struct OwnMachine(Arc<dyn Machine>);

impl PartialEq for OwnMachine {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl MachineSpec {
    /// Support vector classification with equal class weights.
    pub fn svc(c: f64) -> Self {
        Self::Svc {
            c,
            positive_weight: 1.0,
            negative_weight: 1.0,
        }
    }

    /// A machine of the user's own.
    pub fn own(machine: impl Machine + 'static) -> Self {
        Self::Own(OwnMachine(Arc::new(machine)))
    }

    /// The machine itself.
    pub fn build(&self) -> Arc<dyn Machine> {
        match *self {
            Self::Svc {
                c,
                positive_weight,
                negative_weight,
            } => Arc::new(Svc {
                c,
                positive_weight,
                negative_weight,
            }),
            Self::Svr { c, epsilon } => Arc::new(Svr { c, epsilon }),
            Self::Krr { lambda } => Arc::new(Krr { lambda }),
            Self::Svdd { c } => Arc::new(Svdd { c }),
            Self::OneClass { nu } => Arc::new(OneClass { nu }),
            Self::Own(ref own) => Arc::clone(&own.0),
        }
    }
}

/// What a machine's targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// ±1.
    Labels,
    /// Real values.
    Values,
    /// None.
    Unlabelled,
}

/// A registered machine: for help texts, and for the conformance suite, which runs over all of them.
#[derive(Debug, Clone)]
pub struct MachineInfo {
    /// The name on the command line and in files.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// The parameters it takes.
    pub parameters: &'static [&'static str],
    /// What it learns from.
    pub targets: TargetKind,
    /// Examples that together touch every special case.
    pub examples: fn() -> Vec<MachineSpec>,
}

/// Every machine that has a name. One entry each: registering is all that the conformance suite needs to test it.
pub fn registered_machines() -> Vec<MachineInfo> {
    vec![
        svc::ENTRY,
        svr::ENTRY,
        krr::ENTRY,
        svdd::ENTRY,
        one_class::ENTRY,
    ]
}
