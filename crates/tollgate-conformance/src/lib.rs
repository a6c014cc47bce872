//! What every Tollgate store must pass: the reference model and the suite.
