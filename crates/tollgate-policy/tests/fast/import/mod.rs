//! Policies generated from files of `envoyproxy/ratelimit`. The tests check the result for each
//! construct, and that the policies make the same decisions as that server.

mod decisions;
mod drawn;
mod reference_server;
mod said;
mod served;
