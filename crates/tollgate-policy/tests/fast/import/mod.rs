//! Policies generated from files of `envoyproxy/ratelimit`: the result for each construct, and that
//! the policies decide as that server does.

mod decisions;
mod drawn;
mod reference_server;
mod said;
mod served;
