//! The dashboard on a phone: 390 pixels wide.

use serde_json::json;

use super::{Browser, POLICY, Page, address, charge, decide, node};
use crate::support::node::Node;

const WIDTH: u32 = 390;

/// The views, each with a text that the view shows once it is complete.
const VIEWS: [(&str, &str); 9] = [
    ("", "Busiest limits"),
    ("limits", "Refused in total"),
    ("limits/few", "charges 1 unit a request"),
    ("subject?user=mallory", "1 limit counts this subject"),
    ("top", "Units refused at this node"),
    ("overrides", "shown to administrators, never to clients"),
    ("policy", "In force since"),
    ("what-if", "Simulate"),
    ("rollout", "This node has one store."),
];

fn open(browser: &mut Browser, node: &Node) -> Page {
    let page = browser.open(&address(node, ""));
    let size = json!({ "width": WIDTH, "height": 844, "deviceScaleFactor": 2, "mobile": true });
    page.call("Emulation.setDeviceMetricsOverride", &size);
    page.shows("Busiest limits");
    page
}

/// Fails if the page is wider than the screen.
fn assert_fits(page: &Page, view: &str) {
    let widest = page.value(
        "[...document.querySelectorAll('body, main *')]
            .filter((it) => it.getClientRects().length && !it.closest('.unseen, pre, svg'))
            .map((it) => [Math.ceil(it.getBoundingClientRect().right), it.outerHTML.slice(0, 90)])
            .sort((one, other) => other[0] - one[0])[0]",
    );
    assert!(widest[0].as_u64().unwrap() <= u64::from(WIDTH), "{view}: {widest}");
    let page_width = page.value("document.documentElement.scrollWidth");
    assert_eq!(page_width, json!(WIDTH), "{view}");
}

#[test]
fn no_page_overflows_at_390_px() {
    let (_folder, node) = node("");
    charge(&node, "few", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node);
    for (view, text) in VIEWS {
        page.go(&address(&node, view));
        page.shows(text);
        assert_fits(&page, view);
        assert_eq!(page.value("document.body.innerText.includes('NaN')"), json!(false), "{view}");
    }
    page.is_clean();
}

#[test]
fn the_charts_of_what_if_fit_at_390_px() {
    let (_folder, node) = node("");
    for _ in 0..20 {
        decide(&node, r#"{"request":{"method":"GET","path":"/a","headers":{"x-user":"mallory"}}}"#);
    }
    let mut browser = Browser::start();
    let page = open(&mut browser, &node);
    page.go(&address(&node, "what-if"));
    page.shows("Simulate");
    page.write("Another policy to try (optional)", &POLICY.replace("quota: 3,", "quota: 12,"));
    page.click("button", "Simulate");
    page.shows("The sample contains all requests");
    page.until("document.querySelector('svg.chart path.wouldRefuse') !== null");
    assert_fits(&page, "what-if");
    let widest = "Math.max(...[...document.querySelectorAll('main svg, dl.bars')]\
                  .map((it) => it.getBoundingClientRect().right))";
    let right = page.value(widest).as_f64().unwrap();
    assert!(right > 0.0 && right <= f64::from(WIDTH), "a chart reaches {right} px");
    page.is_clean();
}

#[test]
fn the_menu_folds_at_390_px() {
    let (_folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node);
    let is_shown = "document.getElementById('views').getClientRects().length > 0";
    let bar = "document.querySelector('.bar').getBoundingClientRect().height";
    page.until(&format!("!({is_shown}) && {bar} < 70"));
    page.click("#menu", "Menu");
    page.until(&format!("{is_shown} && document.getElementById('menu').ariaExpanded === 'true'"));
    page.press("Escape");
    page.until(&format!("!({is_shown}) && document.activeElement.id === 'menu'"));
    page.press("Enter");
    page.until(is_shown);
    page.click("#views a", "Limits");
    page.until(&format!("!({is_shown}) && document.title.startsWith('Limits')"));
    // Wider screens have no button.
    let wide = json!({ "width": 1_280, "height": 800, "deviceScaleFactor": 1, "mobile": false });
    page.call("Emulation.setDeviceMetricsOverride", &wide);
    page.until(&format!("{is_shown} && !document.getElementById('menu').getClientRects().length"));
    page.is_clean();
}

#[test]
fn tables_show_their_numbers_at_390_px() {
    let (_folder, node) = node("");
    charge(&node, "few", ("user", "mallory"), 5);
    let mut browser = Browser::start();
    let page = open(&mut browser, &node);
    for view in ["", "limits", "top", "subject?user=mallory"] {
        page.go(&address(&node, view));
        page.until("document.querySelector('main tbody td.number')");
        page.until(&format!(
            "[...document.querySelectorAll('main .cards tbody td.number')].every((cell) => {{
                const {{ left, right }} = cell.getBoundingClientRect();
                const label = getComputedStyle(cell, '::before').content;
                return left >= 0 && right <= {WIDTH} && label === JSON.stringify(cell.dataset.label);
            }})"
        ));
    }
    // The rows are sorted by the buttons of the header.
    page.go(&address(&node, "limits"));
    page.click("button.sort", "Limit");
    page.until("document.querySelector('tbody th')?.innerText === 'few'");
    page.click("button.sort", "Limit");
    page.until("document.querySelector('tbody th')?.innerText === 'many'");
    // Screen readers still find a table.
    page.until("document.querySelector('tbody th').role === 'rowheader'");
    page.is_clean();
}
