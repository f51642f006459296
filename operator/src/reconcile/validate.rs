//! From a spec to what runs: the frozen plan, or a refusal with a stable code.
