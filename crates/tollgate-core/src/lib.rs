//! The pure heart of Tollgate: what every limit means, without a clock, IO or dependencies.
