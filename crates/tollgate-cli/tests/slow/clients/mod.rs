//! Clients that others wrote for GitHub's API, and readers of rate limit fields, through
//! `tollgate proxy`: they understand what they are told, wait as long, and get in.

mod fields;
mod octokit;
mod policies;
mod programs;
mod pygithub;
