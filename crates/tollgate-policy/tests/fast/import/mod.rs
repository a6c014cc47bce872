//! Policies written from the files of `envoyproxy/ratelimit`: what becomes of each construct, and
//! that they decide as that server does.

mod decisions;
mod drawn;
mod reference_server;
mod said;
mod served;
