//! What is used where nothing is said: the kernels, and what tasks share.

use crate::machine::MachineSpec;

/// Linear, quadratic, and Gaussian kernels from narrow to wide.
pub fn usual_kernels() -> Vec<String> {
    ["linear", "poly:degree=2", "rbf:sigma=1|2|4|8|16|32|64|128"]
        .map(String::from)
        .to_vec()
}

/// The name of the sharing that suits a machine and a number of tasks: nothing is shared by one task, and a machine that shrinks kernels
/// needs weights of a fixed mass.
pub fn usual_sharing(machine: &MachineSpec, tasks: usize) -> &'static str {
    match tasks {
        _ if machine.build().shrinks_kernels() => "simplex",
        1 => "lp",
        _ => "pscs",
    }
}
