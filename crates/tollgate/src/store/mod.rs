//! Where limits are kept.
