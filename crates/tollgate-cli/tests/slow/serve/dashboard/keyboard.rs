//! Navigation without a mouse.

use serde_json::json;

use super::{Browser, charge, node, open};

/// Presses Tab until `condition` is true. In `condition`, `it` is the focused element.
#[track_caller]
pub(super) fn tab_to(page: &super::Page, condition: &str) {
    let mut passed = Vec::new();
    for _ in 0..40 {
        page.press("Tab");
        let observed = page.value(&format!(
            "((it) => [Boolean({condition}), it.outerHTML.slice(0, 90)])(document.activeElement)"
        ));
        if observed[0] == json!(true) {
            return;
        }
        passed.push(observed[1].clone());
    }
    panic!("Tab never came to {condition}, but to {passed:#?}");
}

#[test]
fn everything_is_reached_by_keys_and_the_focus_stays() {
    let (_folder, node) = node("");
    charge(&node, "few", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    page.shows("Busiest limits");
    tab_to(&page, "it.className === 'skip'");
    tab_to(&page, "it.textContent === 'Limits' && it.closest('#views')");
    page.press("Enter");
    page.until("document.activeElement.tagName === 'H1' && document.title.startsWith('Limits')");
    tab_to(&page, "it.type === 'search'");
    page.call("Input.insertText", &json!({ "text": "few" }));
    page.shows("1 row");
    tab_to(&page, "it.textContent === 'Refused in total'");
    page.press("Enter");
    page.until("document.activeElement.closest('th').ariaSort === 'descending'");
    assert_eq!(
        page.value("document.getElementById('announcer').textContent"),
        json!("Sorted by Refused in total, descending")
    );
    tab_to(&page, "it.tagName === 'A' && it.textContent === 'few'");
    // The numbers change, but the focus does not.
    charge(&node, "few", ("user", "mallory"), 2);
    page.until("document.querySelector('tbody tr').innerText.trim().endsWith('4')");
    assert_eq!(page.value("document.activeElement.textContent"), json!("few"));
    page.press("Enter");
    page.until(
        "document.activeElement.tagName === 'H1' && document.activeElement.innerText === 'few'",
    );
    page.go(&super::address(&node, "subject"));
    page.until("document.querySelector('main input')");
    tab_to(&page, "it.labels?.[0]?.textContent === 'user'");
    page.call("Input.insertText", &json!({ "text": "mallory" }));
    page.press("Enter");
    page.shows("1 limit counts this subject");
    tab_to(&page, "it.textContent === 'Reset usage'");
    page.press("Enter");
    page.until("document.querySelector('dialog').open");
    page.press("Escape");
    page.until("!document.querySelector('dialog').open");
    assert_eq!(page.value("document.activeElement.textContent"), json!("Reset usage"));
    page.press("Enter");
    page.until("document.activeElement.textContent === 'Reset'");
    page.press("Enter");
    page.shows("The usage was reset.");
    page.is_clean();
}

#[test]
fn the_page_reports_what_its_parts_are() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    for view in
        ["", "limits", "limits/few", "subject", "top", "overrides", "policy", "what-if", "rollout"]
    {
        page.go(&super::address(&node, view));
        page.until("document.querySelector('h1') && document.querySelector('.state').innerText");
        let unnamed = page.value(
            "[...document.querySelectorAll('input, select, textarea, button, a, meter, svg[role], table, nav, [role=region]')]
                .filter((it) => !(it.labels?.length || it.ariaLabel || it.textContent.trim() || it.caption?.textContent))
                .map((it) => it.outerHTML.slice(0, 120))",
        );
        assert_eq!(unnamed, json!([]), "{view}");
        let parts = page.value(
            "[document.documentElement.lang, document.querySelectorAll('h1').length,
              document.querySelectorAll('main').length, document.querySelectorAll('nav').length,
              document.querySelectorAll('[aria-current=page]').length]",
        );
        assert_eq!(parts, json!(["en", 1, 1, 1, 1]), "{view}");
    }
    page.is_clean();
}
