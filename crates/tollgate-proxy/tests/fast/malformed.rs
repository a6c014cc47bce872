use std::future::pending;

use crate::{
    setup::{Client, Proxy, exchange, statuses},
    upstream::{Recorder, serve},
};

/// The number of malformed requests, each on its own connection.
const REQUESTS: u64 = 1_000;

const ORIGINALS: [&str; 4] = [
    "GET /a?b=c HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
];

#[tokio::test]
async fn a_thousand_malformed_requests_leave_the_proxy_serving() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    for seed in 0..REQUESTS {
        let mut client = Client::connect(proxy.address).await;
        client.send_anyway(malformed(seed)).await;
        // Half of them disconnect at once. The others close their sending side, and wait until the
        // proxy answers or closes.
        if seed % 2 == 0 {
            client.finish().await;
            client.read_to_end().await;
        }
    }
    upstream.take();
    let request = "GET /alive HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(statuses(&exchange(proxy.address, request).await), [200]);
    assert_eq!(upstream.take_one().line, "GET /alive");
}

#[tokio::test]
async fn malformed_requests_leave_the_proxy_serving_without_an_upstream() {
    let upstream = serve(|_| pending::<http::Response<String>>()).await;
    let proxy = Proxy::start(upstream).await;
    for seed in 0..100 {
        let mut client = Client::connect(proxy.address).await;
        client.send_anyway(malformed(seed)).await;
    }
    let answer = exchange(proxy.address, "BROKEN\r\n\r\n").await;
    assert_eq!(statuses(&answer), [400]);
}

/// Returns one of the originals with up to eight bytes changed, removed, doubled or cut off. The
/// same seed has the same result.
fn malformed(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut request = ORIGINALS[random.below(ORIGINALS.len())].as_bytes().to_vec();
    for _ in 0..=random.below(8) {
        let at = random.below(request.len().max(1));
        match random.below(5) {
            _ if request.is_empty() => request.push(b'\n'),
            0 => request[at] = random.byte(),
            1 => drop(request.remove(at)),
            2 => request.insert(at, random.byte()),
            3 => request.extend_from_within(at..),
            _ => request.truncate(at),
        }
    }
    request
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a random byte, often one that is significant to a parser.
    fn byte(&mut self) -> u8 {
        const MEANINGFUL: &[u8] = b"\r\n \t:;,0x\0-fF\x0b\x7f\xff";
        match self.next() % 2 {
            0 => MEANINGFUL[self.below(MEANINGFUL.len())],
            _ => self.next() as u8,
        }
    }
}
