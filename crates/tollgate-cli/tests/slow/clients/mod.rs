//! Third-party clients for GitHub's API and readers of rate limit fields, through `tollgate proxy`:
//! they understand the responses, wait for the announced time, and are then admitted.

mod fields;
mod octokit;
mod policies;
mod programs;
mod pygithub;
