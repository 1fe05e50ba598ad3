//! The extension module `tabellion._core`: the function of `sdk-core` for Python.
//!
//! Not here: HTTP, files and everything that is written in Python (`sdk/python/tabellion`).

use pyo3::prelude::*;

/// Answers a request of the SDK core, both in JSON. Other Python threads run meanwhile.
#[pyfunction]
fn answer(py: Python<'_>, request: &[u8]) -> Vec<u8> {
    py.detach(|| sdk_core::answer(request))
}

/// The module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(answer, module)?)
}
