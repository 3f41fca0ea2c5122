//! The kernels, machines and sharings that can be named: ours, and those that somebody adds.
//!
//! Names are looked up here wherever text becomes a part: specifications of kernels, settings of the program, model files.

use crate::entry::{Parameter, Part, find};
use crate::error::{Error, Result};
use crate::kernel::{self, KERNELS, KernelEntry, KernelView};
use crate::machine::{MACHINES, MachineEntry};
use crate::sharing::{SHARINGS, SharingEntry};

/// What can be named. The default has all of ours.
///
/// An entry added takes the place of one of the same name.
#[derive(Debug, Clone)]
pub struct Registry {
    kernels: Vec<&'static KernelEntry>,
    machines: Vec<&'static MachineEntry>,
    sharings: Vec<&'static SharingEntry>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            kernels: KERNELS.to_vec(),
            machines: MACHINES.to_vec(),
            sharings: SHARINGS.to_vec(),
        }
    }
}

impl Registry {
    /// With this kernel.
    #[must_use]
    pub fn with_kernel(mut self, entry: &'static KernelEntry) -> Self {
        self.kernels.retain(|known| known.name != entry.name);
        self.kernels.push(entry);
        self
    }

    /// With this machine.
    #[must_use]
    pub fn with_machine(mut self, entry: &'static MachineEntry) -> Self {
        self.machines
            .retain(|known| known.part.name != entry.part.name);
        self.machines.push(entry);
        self
    }

    /// With this sharing.
    #[must_use]
    pub fn with_sharing(mut self, entry: &'static SharingEntry) -> Self {
        self.sharings
            .retain(|known| known.part.name != entry.part.name);
        self.sharings.push(entry);
        self
    }

    /// The kernels.
    pub fn kernels(&self) -> &[&'static KernelEntry] {
        &self.kernels
    }

    /// The machines.
    pub fn machines(&self) -> &[&'static MachineEntry] {
        &self.machines
    }

    /// The sharings.
    pub fn sharings(&self) -> &[&'static SharingEntry] {
        &self.sharings
    }

    /// Every parameter of a machine or of a sharing, with what it is a parameter of: machines first.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static Part, &'static Parameter)> + '_ {
        let machines = self.machines.iter().map(|entry| &entry.part);
        let sharings = self.sharings.iter().map(|entry| &entry.part);
        machines.chain(sharings).flat_map(|part| {
            part.parameters
                .iter()
                .map(move |parameter| (part, parameter))
        })
    }

    /// The machine of this name.
    ///
    /// # Errors
    /// [`Error::Unknown`]
    pub fn machine(&self, name: &str) -> Result<&'static MachineEntry> {
        find(&self.machines, name)
    }

    /// The sharing of this name.
    ///
    /// # Errors
    /// [`Error::Unknown`]
    pub fn sharing(&self, name: &str) -> Result<&'static SharingEntry> {
        find(&self.sharings, name)
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::Unknown`]
    pub fn kernel(&self, name: &str) -> Result<&'static KernelEntry> {
        let entry = self.kernels.iter().find(|entry| entry.is_called(name));
        entry.copied().ok_or_else(|| {
            let names: Vec<&str> = self.kernels.iter().map(|entry| entry.name).collect();
            Error::Unknown {
                what: "kernel",
                name: name.to_string(),
                known: names.join(", "),
            }
        })
    }

    /// As [`parse_kernel`](kernel::parse_kernel), with the kernels here.
    ///
    /// # Errors
    /// When the text is not a specification of one kernel.
    pub fn parse_kernel(&self, text: &str) -> Result<KernelView> {
        kernel::parse_one(&self.kernels, text)
    }

    /// As [`parse_kernels`](kernel::parse_kernels), with the kernels here.
    ///
    /// # Errors
    /// When the text is not a specification.
    pub fn parse_kernels(&self, text: &str) -> Result<Vec<KernelView>> {
        kernel::parse_set(&self.kernels, text)
    }
}
