//! Responses that a client may have caused by not sending the rest of its body. They are not
//! refunded.

use std::{convert::Infallible, time::Duration};

use http::{HeaderValue, Request, Response};
use tokio::{io::AsyncWriteExt, time::sleep};
use tollgate::tower::RequestIncomplete;
use tollgate_proxy::{Forward, RequestBody, ResponseBody};
use tower::{ServiceExt, util::service_fn};
use tower_layer::layer_fn;

use crate::{
    setup::{Client, Proxy, header, settings, statuses},
    upstream::{read_head, serve_raw},
};

/// Longer than the time after which a client may have caused a response.
const LATE: Duration = Duration::from_millis(1_200);

/// The length that the client announces.
const LENGTH: usize = 100;

/// Returns the status of the response, and whether the response is never refunded. The upstream
/// answers with `status` late. The client sends `body`, and then one byte at a time, but not the
/// whole body.
async fn answered(body: &str, status: u16) -> (u16, bool) {
    let upstream = serve_raw(move |mut stream| async move {
        read_head(&mut stream).await;
        sleep(LATE).await;
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
        // A close with unread bytes would reset the connection.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    })
    .await;
    let layer = layer_fn(|forward: Forward| {
        service_fn(move |request: Request<RequestBody>| {
            let forward = forward.clone();
            async move {
                let mut answer: Response<ResponseBody> = forward.oneshot(request).await?;
                if answer.extensions().get::<RequestIncomplete>().is_some() {
                    answer.headers_mut().insert("x-incomplete", HeaderValue::from_static("1"));
                }
                Ok::<_, Infallible>(answer)
            }
        })
    });
    let proxy = Proxy::layered(settings(upstream), layer).await;
    let mut client = Client::connect(proxy.address).await;
    client
        .send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n{body}"))
        .await;
    for _ in body.len()..7 {
        sleep(LATE / 10).await;
        client.send_anyway("x").await;
    }
    let answer = client.read_until("\r\n\r\n").await;
    (statuses(&answer)[0], header(&answer, "x-incomplete").is_some())
}

/// The bug: a service that waited in vain for a body answered with an error, such as its own 408. If
/// the policy refunded this status, a client that never ended its bodies had no limit.
#[tokio::test]
async fn a_client_that_withheld_its_body_was_refunded() {
    let whole = "x".repeat(LENGTH);
    let (timeout, error, success, complete) = tokio::join!(
        answered("ab", 408),
        answered("ab", 500),
        answered("ab", 200),
        answered(&whole, 408),
    );
    assert_eq!((timeout, error), ((408, true), (500, true)));
    // A limit may count only errors, and would refund a success.
    assert_eq!((success, complete), ((200, true), (408, false)));
}
