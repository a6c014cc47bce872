use super::*;

fn parsed(text: &str) -> Endpoint {
    text.parse().unwrap()
}

#[test]
fn a_url_names_a_server_and_who_connects() {
    let plain = parsed("redis://10.0.0.1");
    assert_eq!(plain.address, Address::Tcp { host: "10.0.0.1".into(), port: 6379, tls: None });
    assert_eq!((plain.database, plain.protocol), (0, Protocol::Resp2));
    assert_eq!(plain.credentials, Credentials::default());

    let full = parsed("rediss://toll%40gate:p%23ss@[2001:db8::1]:7000/3?protocol=3");
    assert_eq!(
        full.address,
        Address::Tcp { host: "2001:db8::1".into(), port: 7000, tls: Some(Tls::default()) }
    );
    assert_eq!((full.database, full.protocol), (3, Protocol::Resp3));
    assert_eq!(full.credentials.user.as_deref(), Some("toll@gate"));
    assert_eq!(full.credentials.password, Some(given("p#ss")));

    let socket = parsed("unix:///run/redis.sock?db=2&user=tollgate");
    assert_eq!(socket.address, Address::Unix("/run/redis.sock".into()));
    assert_eq!(socket.database, 2);
    assert_eq!(socket.credentials.user.as_deref(), Some("tollgate"));
}

#[test]
fn its_text_shows_no_secret() {
    for (url, text) in [
        ("redis://user:canary@host:1/2", "redis://host:1"),
        ("rediss://:canary@[::1]/", "rediss://[::1]:6379"),
        ("unix:///run/redis.sock?pass=canary", "unix:///run/redis.sock"),
    ] {
        let endpoint = parsed(url);
        assert_eq!(endpoint.to_string(), text);
        assert!(!format!("{endpoint:?}").contains("canary"));
    }
}

#[test]
fn a_mistake_is_reported_without_the_secret() {
    for (url, said) in [
        ("redis:canary", "no host"),
        ("http://:canary@host", "scheme"),
        ("redis://:canary@host/zero", "\"zero\""),
        ("redis://:canary@host/-1", "\"-1\""),
        ("redis://:canary@host:99999", "write it as a URL"),
        ("redis://:canary@host?protocol=4", "should be 2 or 3"),
        ("redis://:canary@host?db=1", "unknown parameter \"db\""),
        ("rediss://:canary@host#insecure", "always verified"),
        ("redis://:%ff@host", "not UTF-8"),
        ("host:canary", "scheme"),
        ("canary", "write it as a URL"),
    ] {
        let error = url.parse::<Endpoint>().unwrap_err().to_string();
        assert!(error.contains(said), "{url}: {error}");
        assert!(!error.contains("canary") || !url.contains(":canary@"), "{error}");
    }
}

#[test]
fn certificates_need_a_url_that_asks_for_tls() {
    assert!(parsed("rediss://host").with_tls(Tls::default()).is_ok());
    let error = parsed("redis://host").with_tls(Tls::default()).unwrap_err().to_string();
    assert!(error.contains("rediss://"), "{error}");
}
