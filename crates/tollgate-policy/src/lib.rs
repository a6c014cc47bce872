//! The policy file of Tollgate: YAML in, a checked policy or every mistake with its place out.
