//! The JSON of a model file: everything that is not a number of the fit.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::file::format_error;
use crate::error::{Error, Result};
use crate::machine::MachineSpec;
use crate::problem::Normalization;
use crate::registry::Registry;
use crate::run::Status;
use crate::sharing::SharingSpec;
use crate::solver::{Fallback, SolverSpec};

/// The version this library writes. Files of a later version are refused with its number; earlier ones are read.
pub(super) const VERSION: u32 = 4;
/// The version of files without sparse rows, which earlier versions of the library read too.
pub(super) const DENSE_VERSION: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header<M, S> {
    pub(super) version: u32,
    pub(super) kernels: Vec<KernelHeader>,
    pub(super) machine: M,
    pub(super) sharing: S,
    pub(super) normalize: Normalization,
    pub(super) status: Status,
    /// Since version 2.
    #[serde(default)]
    pub(super) run: RunHeader,
    pub(super) tasks: Vec<TaskHeader>,
    pub(super) sets: Vec<SetHeader>,
    #[serde(default)]
    pub(super) notes: BTreeMap<String, String>,
}

/// How the fit was run.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunHeader {
    pub(super) tolerance: Option<f64>,
    pub(super) solver: Option<SolverSpec>,
    pub(super) fallback: Option<Fallback>,
    pub(super) rounded: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelHeader {
    pub(super) name: String,
    pub(super) spec: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskHeader {
    pub(super) name: String,
    pub(super) samples: usize,
    pub(super) set: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetHeader {
    pub(super) columns: Vec<String>,
    pub(super) samples: usize,
    pub(super) given: Vec<String>,
    /// Since version 2.
    #[serde(default)]
    pub(super) unit: Option<BTreeSet<String>>,
}

/// The header as it is read, before its machine and its sharing are looked up.
pub(super) type Plain = Header<Map<String, Json>, Map<String, Json>>;

/// The header, the machine and the sharing of a file, with what the registry has.
///
/// # Errors
/// When it is no header that this version reads, or the registry does not have the machine or the sharing.
pub(super) fn read_header(
    text: &str,
    registry: &Registry,
) -> Result<(Plain, MachineSpec, SharingSpec)> {
    check_version(text)?;
    let bad = |error: &dyn std::fmt::Display| format_error(format!("bad header: {error}"));
    let mut plain: Plain = serde_json::from_str(text).map_err(|error| bad(&error))?;
    let readable = |error| match error {
        Error::Unknown { .. } => error,
        other => bad(&other),
    };
    let machine =
        MachineSpec::read(registry.machines(), take(&mut plain.machine)).map_err(readable)?;
    let sharing =
        SharingSpec::read(registry.sharings(), take(&mut plain.sharing)).map_err(readable)?;
    machine.check().map_err(readable)?;
    sharing.check().map_err(readable)?;
    Ok((plain, machine, sharing))
}

/// Only the version, so that a newer header with unknown fields is told from a broken one.
pub(super) fn check_version(header: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Only {
        version: u32,
    }
    let found: Only = serde_json::from_str(header)
        .map_err(|error| format_error(format!("bad header: {error}")))?;
    if found.version > VERSION {
        return Err(format_error(format!(
            "it has format version {}, this mtmkl reads up to {VERSION}; use a newer mtmkl",
            found.version
        )));
    }
    Ok(())
}
