//! Access control, and the responses without a token.

use axum::body::Body;
use axum::http::Request;
use tollgate::store::Memory;
use tollgate_server::http::{HttpOptions, Readiness};
use tollgate_server::{Access, Tokens};

use crate::http::world::{Answered, World};

const TOKEN: &str = "0123456789abcdef";
const ADMIN: &str = "fedcba9876543210";

fn world() -> World {
    let tokens = |token: &str| Access::Tokens(Tokens::parse(token).unwrap());
    let options =
        HttpOptions { access: tokens(TOKEN), admin: Some(tokens(ADMIN)), ..HttpOptions::default() };
    World::over(Memory::default(), options)
}

async fn send(world: &World, method: &str, path: &str, token: &[&str]) -> Answered {
    let request = Request::builder().method(method).uri(path);
    let request =
        token.iter().fold(request, |request, line| request.header("authorization", *line));
    world.call(request.body(Body::empty()).unwrap()).await
}

const GUARDED: [(&str, &str); 7] = [
    ("POST", "/v1/check"),
    ("POST", "/v1/check/batch"),
    ("POST", "/v1/peek"),
    ("POST", "/v1/refund"),
    ("POST", "/v1/release"),
    ("GET", "/v1/standing"),
    ("POST", "/json"),
];

const FOR_ADMINISTRATORS: [(&str, &str); 6] = [
    ("DELETE", "/v1/standing"),
    ("GET", "/v1/status"),
    ("POST", "/v1/policy/reload"),
    ("PUT", "/v1/rollout"),
    ("GET", "/v1/policy"),
    ("POST", "/v1/simulate"),
];

#[tokio::test]
async fn decisions_need_a_token() {
    let world = world();
    let wrong: [&[&str]; 9] = [
        &[],
        &[""],
        &["Bearer"],
        &["Bearer "],
        &["Bearer 0123456789abcdee"],
        &["Basic 0123456789abcdef"],
        &["0123456789abcdef"],
        &["Bearer 0123456789abcdef0"],
        &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
    ];
    for (method, path) in GUARDED {
        for token in wrong {
            let answered = send(&world, method, path, token).await;
            assert_eq!(answered.problem(401), "unauthorized", "{method} {path} {token:?}");
            assert_eq!(answered.headers["www-authenticate"], "Bearer realm=\"tollgate\"");
            assert!(!String::from_utf8_lossy(&answered.bytes).contains("0123456789"));
        }
        for token in [TOKEN, ADMIN] {
            for scheme in ["Bearer", "bearer"] {
                let answered = send(&world, method, path, &[&format!("{scheme} {token}")]).await;
                assert_ne!(answered.status, 401, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn administrators_show_a_token_of_their_own() {
    let world = world();
    for (method, path) in FOR_ADMINISTRATORS {
        for token in [None, Some("Bearer 0123456789abcdee")] {
            let answered = send(&world, method, path, token.as_slice()).await;
            assert_eq!(answered.problem(401), "unauthorized", "{method} {path} {token:?}");
        }
        let callers = send(&world, method, path, &[&format!("Bearer {TOKEN}")]).await;
        assert_eq!(callers.problem(403), "forbidden", "{method} {path}");
        let admins = send(&world, method, path, &[&format!("Bearer {ADMIN}")]).await;
        assert!(!matches!(admins.status.as_u16(), 401 | 403), "{method} {path}");
    }
    let open = World::new();
    for (method, path) in FOR_ADMINISTRATORS {
        assert_eq!(send(&open, method, path, &[]).await.problem(403), "forbidden", "{path}");
    }
}

#[tokio::test]
async fn proxies_show_theirs_in_a_field_of_its_own() {
    let world = world();
    let send = async |name: &str, token: &str| {
        let request = Request::get("/v1/authorize").header(name, token);
        world.call(request.body(Body::empty()).unwrap()).await
    };
    for (name, token) in [
        ("authorization", format!("Bearer {TOKEN}")),
        ("authorization", format!("Bearer {ADMIN}")),
        ("x-tollgate-token", "0123456789abcdee".to_owned()),
        ("x-tollgate-token", format!("Bearer {TOKEN}")),
    ] {
        assert_eq!(send(name, &token).await.problem(403), "untrusted-proxy", "{name}: {token}");
    }
    // The proxy is trusted, but has not sent the request that it holds.
    assert_eq!(send("x-tollgate-token", TOKEN).await.problem(400), "invalid-request");
}

#[tokio::test]
async fn health_and_the_document_need_none() {
    let world = world();
    for path in ["/healthz", "/readyz", "/healthcheck", "/openapi.json"] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_node_that_lacks_something_is_not_ready_and_alive() {
    let missing = || Err("the store cannot be reached".to_owned());
    let options = HttpOptions { readiness: Readiness::new(missing), ..HttpOptions::default() };
    let world = World::over(Memory::default(), options);
    let answered = world.get("/readyz").await;
    assert_eq!(answered.problem(503), "not-ready");
    assert_eq!(answered.json()["detail"], "the store cannot be reached");
    assert_eq!(world.get("/healthz").await.status, 200);
}
