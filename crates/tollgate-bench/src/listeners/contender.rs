//! The contenders: the servers that are measured. Each has a command that starts it, and its
//! requests.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::upstream::Upstream;
use super::wire::{BURST, COUNT, Envoy, GrpcCall, HttpCall, JsonCall, Throttle, Wire, encoded};

/// A server with one listener that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Tollgate over HTTP with JSON.
    TollgateHttp,
    /// Tollgate over HTTP with minimal responses. Like the responses of throttlecrab-server, they
    /// have no receipts and no rate limit header fields.
    TollgateHttpMinimal,
    /// Tollgate over HTTP/2 with JSON.
    TollgateHttp2,
    /// Tollgate as Envoy's rate limit service.
    TollgateGrpc,
    /// Tollgate over the Redis protocol.
    TollgateResp,
    /// Tollgate's proxy with limits.
    TollgateProxy,
    /// throttlecrab-server over HTTP with JSON.
    ThrottlecrabHttp,
    /// throttlecrab-server over HTTP/2 with JSON.
    ThrottlecrabHttp2,
    /// throttlecrab-server over its own gRPC service.
    ThrottlecrabGrpc,
    /// throttlecrab-server over the Redis protocol.
    ThrottlecrabResp,
    /// A server that makes no decisions, with the same libraries as Tollgate's HTTP listener.
    BareAnswer,
    /// A proxy that only forwards, with the same libraries as Tollgate's proxy.
    BareProxy,
    /// nginx with `proxy_pass` and `limit_req`.
    Nginx,
    /// HAProxy with a stick table.
    Haproxy,
}

/// The programs that are measured, and the files and addresses that they need.
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
    /// The policy file, with the text that [`policy`] returns.
    pub policy: PathBuf,
    /// The address of the upstream to which the proxies forward.
    pub upstream: SocketAddr,
    /// The folder for the configuration files of nginx and HAProxy.
    pub directory: PathBuf,
}

/// Returns Tollgate's policy, which has the same token bucket for every listener.
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
    /// Returns the command that starts the contender on `port` of 127.0.0.1.
    #[must_use]
    pub fn command(self, programs: &Programs, port: u16) -> Command {
        let address = format!("127.0.0.1:{port}");
        match self {
            Self::TollgateHttp | Self::TollgateHttpMinimal | Self::TollgateHttp2 => {
                serve(programs, "--http", &address)
            }
            Self::TollgateGrpc => serve(programs, "--grpc", &address),
            Self::TollgateResp => serve(programs, "--resp", &address),
            Self::TollgateProxy => {
                let mut command = Command::new(&programs.tollgate);
                command.args(["proxy", "--listen", &address, "--policy"]).arg(&programs.policy);
                command.arg("--upstream").arg(format!("http://{}", programs.upstream));
                command
            }
            Self::ThrottlecrabHttp | Self::ThrottlecrabHttp2 => {
                throttlecrab(&programs.throttlecrab, "http", port)
            }
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
            Self::Nginx => {
                let mut command = Command::new("nginx");
                let text = nginx(&address, programs.upstream, &programs.directory);
                command.arg("-c").arg(configuration(programs, "nginx", port, &text));
                command
            }
            Self::Haproxy => {
                let mut command = Command::new("haproxy");
                let text = haproxy(&address, programs.upstream);
                command.args(["-db", "-f"]).arg(configuration(programs, "haproxy", port, &text));
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
                request: |subject| post("/throttle", JSON, &throttle(subject)),
                admitted: "\"allowed\":true",
            }),
            Self::TollgateHttp2 => Wire::Http2(JsonCall {
                path: "/v1/check",
                body: check,
                admitted: "\"admitted\":true",
            }),
            Self::ThrottlecrabHttp2 => Wire::Http2(JsonCall {
                path: "/throttle",
                body: throttle,
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
            Self::TollgateProxy | Self::BareProxy | Self::Nginx | Self::Haproxy => {
                Wire::Http(HttpCall {
                    request: |subject| {
                        let fields = "host: 127.0.0.1\r\nuser-agent: bench\r\naccept: */*";
                        format!("GET /things/1 HTTP/1.1\r\n{fields}\r\nx-user: {subject}\r\n\r\n")
                    },
                    admitted: Upstream::BODY,
                })
            }
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TollgateHttp
            | Self::TollgateHttpMinimal
            | Self::TollgateHttp2
            | Self::TollgateGrpc
            | Self::TollgateResp => "tollgate serve",
            Self::TollgateProxy => "tollgate proxy",
            Self::ThrottlecrabHttp
            | Self::ThrottlecrabHttp2
            | Self::ThrottlecrabGrpc
            | Self::ThrottlecrabResp => "throttlecrab-server",
            Self::BareAnswer => "bare hyper server",
            Self::BareProxy => "bare hyper proxy",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
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

/// Writes a configuration file and returns its path. An error of the write is not returned: without
/// its file, the program does not start, and its output contains the reason.
fn configuration(programs: &Programs, name: &str, port: u16, text: &str) -> PathBuf {
    let path = programs.directory.join(format!("{name}-{port}.conf"));
    let _ = fs::write(&path, text);
    path
}

/// Returns nginx's configuration: one process, persistent connections to the upstream, the usual
/// forwarding fields, and a limit for each value of `x-user` that is never reached.
fn nginx(address: &str, upstream: SocketAddr, directory: &Path) -> String {
    let directory = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("  {what}_temp_path {directory}/nginx-{what};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {directory}/nginx.pid;\nerror_log stderr error;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}  access_log off;\n  keepalive_requests 1000000000;\n\
         \x20 limit_req_zone $http_x_user zone=user:32m rate=1000000r/s;\n\
         \x20 upstream servers {{ server {upstream}; keepalive 128; keepalive_requests 1000000000; }}\n\
         \x20 server {{\n    listen {address};\n\
         \x20   location / {{\n      limit_req zone=user burst=1000 nodelay;\n\
         \x20     proxy_pass http://servers;\n      proxy_http_version 1.1;\n\
         \x20     proxy_set_header Connection \"\";\n      proxy_set_header Host $http_host;\n\
         \x20     proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
         \x20     proxy_set_header X-Forwarded-Proto $scheme;\n    }}\n  }}\n}}\n"
    )
}

/// Returns HAProxy's configuration: persistent connections to the upstream, the client's address as
/// a forwarding field, and a limit for each value of `x-user` that is never reached.
fn haproxy(address: &str, upstream: SocketAddr) -> String {
    format!(
        "defaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 5s\n\
         \x20 http-reuse always\n  option forwardfor\n\
         frontend clients\n  bind {address}\n\
         \x20 stick-table type string len 32 size 200k expire 1h store http_req_rate(1h)\n\
         \x20 http-request track-sc0 req.hdr(x-user)\n\
         \x20 http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {BURST} }}\n\
         \x20 default_backend servers\n\
         backend servers\n  server upstream {upstream}\n"
    )
}

const JSON: &str = "content-type: application/json";

fn check(subject: &str) -> String {
    format!(r#"{{"limits":[{{"name":"user","subject":{{"user":"{subject}"}}}}]}}"#)
}

fn throttle(subject: &str) -> String {
    let bucket = format!(r#""max_burst":{BURST},"count_per_period":{COUNT},"period":3600"#);
    format!(r#"{{"key":"{subject}",{bucket}}}"#)
}

fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    let fields = format!("host: 127.0.0.1\r\n{fields}\r\ncontent-length: {length}");
    format!("POST {path} HTTP/1.1\r\n{fields}\r\n\r\n{body}")
}
