//! Spellings of paths. Spellings that a service treats as the same path are equal, and others are
//! different.
#![allow(missing_docs)]

use tollgate_core::policy::path::{NormalPath, PathCase, PathOptions, PathParameters};
use tollgate_core::policy::{Ambiguity, PathPattern};

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
fn all_segments_are_resolved_however_many() {
    for count in [255, 256, 257, 258, 1_000, 4_000] {
        let path = format!("/{}{}login", "a/".repeat(count), "../".repeat(count));
        assert_eq!(NormalPath::new(&path), NormalPath::new("/login"), "{count}");
        assert!(fits("/login", &path), "{count}");
        let longer = format!("{}/a", "/a".repeat(count));
        assert!(fits("/a/**", &longer) && !fits("/b/**", &longer));
        assert!(fits(&longer, &longer) && !fits(&"/a".repeat(count), &longer));
    }
}

#[test]
fn spellings_that_services_read_differently_are_named() {
    let ambiguity = |path: &str| NormalPath::new(path).ambiguity();
    for (path, expected) in [
        ("/x%2f..%2flogin", Ambiguity::EncodedSlash),
        ("/login%2F", Ambiguity::EncodedSlash),
        ("/a\\..\\login", Ambiguity::Backslash),
        ("/login%5c", Ambiguity::Backslash),
        ("/login%5C..", Ambiguity::Backslash),
        ("/login%00", Ambiguity::Nul),
        ("/login%00.json", Ambiguity::Nul),
        ("/%2e%2e/login", Ambiguity::DotSegment),
        ("/.%2E/login", Ambiguity::DotSegment),
        ("/%2e/login", Ambiguity::DotSegment),
        ("/x/../login", Ambiguity::DotSegment),
        ("/./login", Ambiguity::DotSegment),
        ("/login/..", Ambiguity::DotSegment),
        ("/x/..;/login", Ambiguity::DotSegment),
        ("/x/..;y=1/login", Ambiguity::DotSegment),
        ("/x/..%3b/login", Ambiguity::DotSegment),
        ("/%u006cogin", Ambiguity::Escape),
        ("/login%", Ambiguity::Escape),
        ("/login%2", Ambiguity::Escape),
        ("/%%6cogin", Ambiguity::Escape),
    ] {
        assert_eq!(ambiguity(path), Some(expected), "{path:?}");
    }
    for path in [
        "",
        "/",
        "*",
        "//login//",
        "/login;x",
        "/LOGIN",
        "/%6cogin",
        "/100%25",
        "/%252flogin",
        "/a.b/..c/.well-known/d..",
        "/...",
        "/l\u{f6}gin",
    ] {
        assert_eq!(ambiguity(path), None, "{path:?}");
    }
}

#[test]
fn case_and_parameters_count_as_the_service_says() {
    let sign_in = PathOptions {
        case: PathCase::Ignore,
        parameters: PathParameters::Drop,
        ..PathOptions::default()
    };
    let pattern = PathPattern::parse("/Login/{id}").unwrap().ignoring_case();
    for path in
        ["/login/x", "/LOGIN/X", "/login;a=1/x;b", "/lOgIn;/;/x", "/%4cogin/%58", "/login/%58;y"]
    {
        let path = NormalPath::with_options(path, sign_in);
        assert!(pattern.matches(&path), "{path}");
        assert_eq!(pattern.parameter("id", &path), Some(&b"x"[..]), "{path}");
    }
    let resolved = NormalPath::with_options("/x/..;/login/x", sign_in);
    assert!(pattern.matches(&resolved) && resolved.ambiguity() == Some(Ambiguity::DotSegment));
    // An encoded `;` does not begin parameters.
    assert!(!pattern.matches(&NormalPath::with_options("/login%3ba/x", sign_in)));
}
