//! The contenders: how each is started, and its requests.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::upstream::Upstream;
use super::wire::{BURST, COUNT, Envoy, GrpcCall, HttpCall, Throttle, Wire, encoded};

/// One server with one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Tollgate over HTTP with JSON.
    TollgateHttp,
    /// The HTTP listener with minimal responses: without receipts and header fields, as in the
    /// peer's responses.
    TollgateHttpMinimal,
    /// Tollgate as Envoy's rate limit service.
    TollgateGrpc,
    /// Tollgate over the Redis protocol.
    TollgateResp,
    /// Tollgate's proxy with limits.
    TollgateProxy,
    /// throttlecrab-server over HTTP with JSON.
    ThrottlecrabHttp,
    /// throttlecrab-server over its own gRPC service.
    ThrottlecrabGrpc,
    /// throttlecrab-server over the Redis protocol.
    ThrottlecrabResp,
    /// A server without decisions, with the same libraries as Tollgate's HTTP listener.
    BareAnswer,
    /// A proxy that only forwards, with the same libraries.
    BareProxy,
}

/// The paths of the programs and of their input.
#[derive(Debug)]
pub struct Programs {
    /// The `tollgate` binary.
    pub tollgate: PathBuf,
    /// The `throttlecrab-server` binary.
    pub throttlecrab: PathBuf,
    /// The `bare_answer` binary of this crate.
    pub bare_answer: PathBuf,
    /// The `bare_proxy` binary of this crate.
    pub bare_proxy: PathBuf,
    /// The file with [`policy`].
    pub policy: PathBuf,
    /// The upstream of the proxies.
    pub upstream: SocketAddr,
}

/// Returns Tollgate's policy: the same bucket for every listener.
#[must_use]
pub fn policy() -> String {
    let bucket = format!("algorithm: token_bucket, quota: {COUNT}, burst: {BURST}, window: 1h");
    format!(
        "subjects:\n  user: {{ header: x-user }}\n\
         limits:\n  user: {{ {bucket}, per: [user] }}\n  node: {{ {bucket} }}\n\
         rules:\n  - limits: [user]\n\
         descriptors:\n  - {{ domain: bench, tree: [{{ key: user, limit: node }}] }}\n"
    )
}

impl Contender {
    /// Returns the command that serves on `port` of 127.0.0.1.
    #[must_use]
    pub fn command(self, programs: &Programs, port: u16) -> Command {
        let address = format!("127.0.0.1:{port}");
        match self {
            Self::TollgateHttp | Self::TollgateHttpMinimal => serve(programs, "--http", &address),
            Self::TollgateGrpc => serve(programs, "--grpc", &address),
            Self::TollgateResp => serve(programs, "--resp", &address),
            Self::TollgateProxy => {
                let mut command = Command::new(&programs.tollgate);
                command.args(["proxy", "--listen", &address, "--policy"]).arg(&programs.policy);
                command.arg("--upstream").arg(format!("http://{}", programs.upstream));
                command
            }
            Self::ThrottlecrabHttp => throttlecrab(&programs.throttlecrab, "http", port),
            Self::ThrottlecrabGrpc => throttlecrab(&programs.throttlecrab, "grpc", port),
            Self::ThrottlecrabResp => throttlecrab(&programs.throttlecrab, "redis", port),
            Self::BareAnswer => {
                let mut command = Command::new(&programs.bare_answer);
                command.arg(address);
                command
            }
            Self::BareProxy => {
                let mut command = Command::new(&programs.bare_proxy);
                command.arg(address).arg(programs.upstream.to_string());
                command
            }
        }
    }

    /// Returns the protocol and the requests of the contender.
    #[must_use]
    pub fn wire(self) -> Wire {
        match self {
            Self::TollgateHttp | Self::BareAnswer => Wire::Http(HttpCall {
                request: |subject| post("/v1/check", JSON, &check(subject)),
                admitted: "\"admitted\":true",
            }),
            Self::TollgateHttpMinimal => Wire::Http(HttpCall {
                request: |subject| {
                    let fields = format!("{JSON}\r\nprefer: return=minimal");
                    post("/v1/check", &fields, &check(subject))
                },
                admitted: "\"admitted\":true",
            }),
            Self::ThrottlecrabHttp => Wire::Http(HttpCall {
                request: |subject| {
                    let bucket =
                        format!(r#""max_burst":{BURST},"count_per_period":{COUNT},"period":3600"#);
                    post("/throttle", JSON, &format!(r#"{{"key":"{subject}",{bucket}}}"#))
                },
                admitted: "\"allowed\":true",
            }),
            Self::TollgateGrpc => Wire::Grpc(GrpcCall {
                path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
                message: |subject| encoded(&Envoy::one("bench", "user", subject)),
            }),
            Self::ThrottlecrabGrpc => Wire::Grpc(GrpcCall {
                path: "/throttlecrab.RateLimiter/Throttle",
                message: |subject| encoded(&Throttle::one(subject)),
            }),
            Self::TollgateResp | Self::ThrottlecrabResp => Wire::Resp,
            Self::TollgateProxy | Self::BareProxy => Wire::Http(HttpCall {
                request: |subject| {
                    let fields = "host: 127.0.0.1\r\nuser-agent: bench\r\naccept: */*";
                    format!("GET /things/1 HTTP/1.1\r\n{fields}\r\nx-user: {subject}\r\n\r\n")
                },
                admitted: Upstream::BODY,
            }),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TollgateHttp
            | Self::TollgateHttpMinimal
            | Self::TollgateGrpc
            | Self::TollgateResp => "tollgate serve",
            Self::TollgateProxy => "tollgate proxy",
            Self::ThrottlecrabHttp | Self::ThrottlecrabGrpc | Self::ThrottlecrabResp => {
                "throttlecrab-server"
            }
            Self::BareAnswer => "bare hyper server",
            Self::BareProxy => "bare hyper proxy",
        })
    }
}

fn serve(programs: &Programs, listener: &str, address: &str) -> Command {
    let mut command = Command::new(&programs.tollgate);
    command.args(["serve", listener, address, "--policy"]).arg(&programs.policy);
    command
}

fn throttlecrab(program: &Path, listener: &str, port: u16) -> Command {
    let mut command = Command::new(program);
    command.arg(format!("--{listener}"));
    command.args([&format!("--{listener}-host"), "127.0.0.1"]);
    command.args([&format!("--{listener}-port"), &*port.to_string()]);
    command.args(["--store", "periodic", "--log-level", "error"]);
    command
}

const JSON: &str = "content-type: application/json";

fn check(subject: &str) -> String {
    format!(r#"{{"limits":[{{"name":"user","subject":{{"user":"{subject}"}}}}]}}"#)
}

fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    let fields = format!("host: 127.0.0.1\r\n{fields}\r\ncontent-length: {length}");
    format!("POST {path} HTTP/1.1\r\n{fields}\r\n\r\n{body}")
}
