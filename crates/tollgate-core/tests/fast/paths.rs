//! Ways to write a path: those that a service treats alike are one, the others are not.
#![allow(missing_docs)]

use tollgate_core::policy::PathPattern;
use tollgate_core::policy::path::{MAX_SEGMENTS, NormalPath};

fn fits(pattern: &str, path: &str) -> bool {
    PathPattern::parse(pattern).unwrap().matches(&NormalPath::new(path))
}

#[test]
fn one_path_however_written() {
    let root = ["", "/", "//", "/.", "/./", "/..", "/../..", "/a/..", "/a/../", "/%2e", "/%2E%2e"];
    for path in root {
        assert_eq!(NormalPath::new(path), NormalPath::new("/"), "{path:?}");
    }
    for path in [
        "/login",
        "login",
        "//login",
        "///login",
        "/login/",
        "/login//",
        "/login///",
        "/./login",
        "/././login",
        "/login/.",
        "/login/./",
        "/../login",
        "/../../login",
        "/a/../login",
        "/a/b/../../login",
        "/a/../../login",
        "/login/a/..",
        "/login/a/../",
        "/login/../login",
        "/%6cogin",
        "/%6Cogin",
        "/l%6fgin",
        "/%6c%6f%67%69%6e",
        "/%6C%6F%67%69%6E",
        "/login/%2e",
        "/login/%2E",
        "/%2e/login",
        "/%2e%2e/login",
        "/%2E%2E/login",
        "/.%2e/login",
        "/%2e./login",
        "/a/%2e%2e/login",
        "/a/.%2E/login",
        "/a/%2e./login",
        "/.//login",
        "/a//../login",
        "/login/a/%2e%2e",
        "//./login/./",
        "/login/a/b/../..",
    ] {
        assert_eq!(NormalPath::new(path), NormalPath::new("/login"), "{path:?}");
        assert!(fits("/login", path), "{path:?}");
    }
    for path in [
        "/a/b",
        "//a//b",
        "/a//b/",
        "/a/./b",
        "/a/c/../b",
        "/a/b/c/..",
        "/%61/b",
        "/a/%62",
        "/%61/%62/",
        "/c/../a/b",
        "/a/%2e/b",
        "/a/c/%2e%2e/b",
        "/./a/./b/.",
        "/a/b/c/d/../..",
    ] {
        assert_eq!(NormalPath::new(path), NormalPath::new("/a/b"), "{path:?}");
    }
}

#[test]
fn other_paths_stay_other_paths() {
    for path in [
        "/Login",
        "/LOGIN",
        "/login2",
        "/logi",
        "/login/x",
        "/x/login",
        "/login%20",
        "/%20login",
        "/login%00",
        "/%00login",
        "/login%2f",
        "/%2flogin",
        "/login%2F",
        "/%252flogin",
        "/%256cogin",
        "/login;a=1",
        "/login;",
        "/login?",
        "/login%3fa",
        "/login%23",
        "/login%",
        "/login%6",
        "/%6",
        "/%zzlogin",
        "/login.",
        "/login..",
        "/.login",
        "/..login",
        "/...",
        "/login/...",
        "/log/in",
        "/log%2fin",
        "/login\\",
        "/\\login",
        "/login%5c",
        "/%c0%aelogin",
        "/%c0%af/login",
        "/%u006cogin",
        "/login\u{200b}",
        "/l\u{f6}gin",
        "/login%0a",
        "/login%0d%0a",
        "/login\t",
        "/*",
        "/**",
        "/{login}",
        "/",
        "",
    ] {
        assert_ne!(NormalPath::new(path), NormalPath::new("/login"), "{path:?}");
        assert!(!fits("/login", path), "{path:?}");
    }
}

#[test]
fn patterns() {
    for (pattern, path, expected) in [
        ("/a/*", "/a/b", true),
        ("/a/*", "/a/b/", true),
        ("/a/*", "/a//b", true),
        ("/a/*", "/a", false),
        ("/a/*", "/a/", false),
        ("/a/*", "/a/b/c", false),
        ("/a/*", "/a/%2f", true),
        ("/a/*", "/a/b%2fc", true),
        ("/a/*", "/a/..", false),
        ("/a/**", "/a", true),
        ("/a/**", "/a/", true),
        ("/a/**", "/a/b/c", true),
        ("/a/**", "/ab", false),
        ("/a/**", "/a/../b", false),
        ("/a/**", "/b/../a/x", true),
        ("/**", "/", true),
        ("/**", "", true),
        ("/**", "/a/b", true),
        ("/*", "/", false),
        ("/*", "/a", true),
        ("/*/b", "/a/b", true),
        ("/*/b", "/b", false),
        ("/u/{id}", "/u/7", true),
        ("/u/{id}", "/u/", false),
        ("/u/{id}", "/u/7/8", false),
        ("/u/{id}/**", "/u/7", true),
        ("/u/{id}/**", "/u/7/8/9", true),
        ("/u/{id}/**", "/u", false),
        ("/{a}/{b}", "/x/y", true),
        ("/{a}/{b}", "/x", false),
        ("//a//b", "/a/b", true),
        ("/a/", "/a", true),
    ] {
        assert_eq!(fits(pattern, path), expected, "{pattern:?} on {path:?}");
    }
}

#[test]
fn parameters_are_decoded_once() {
    let pattern = PathPattern::parse("/u/{id}").unwrap();
    for (path, expected) in [
        ("/u/7", &b"7"[..]),
        ("/u/%37", b"7"),
        ("/u/%2537", b"%37"),
        ("/u/a%2fb", b"a/b"),
        ("/u/%00", b"\0"),
        ("/u/%ff", b"\xff"),
        ("/u/%f", b"%f"),
        ("/u/x/../7/", b"7"),
    ] {
        let path = NormalPath::new(path);
        assert!(pattern.matches(&path));
        assert_eq!(pattern.parameter("id", &path), Some(expected));
    }
}

#[test]
fn what_is_too_long_fits_only_what_is_open() {
    let long = "/a".repeat(MAX_SEGMENTS + 1);
    let same_without_the_rest = "/a".repeat(MAX_SEGMENTS);
    assert!(!fits(&same_without_the_rest, &long));
    assert!(fits(&same_without_the_rest, &same_without_the_rest));
    assert!(fits("/a/**", &long) && !fits("/b/**", &long));
    // What comes after the cut cannot bring a path back under another pattern.
    let back = format!("{long}{}/login", "/..".repeat(MAX_SEGMENTS + 1));
    assert!(!fits("/login", &back));
}
