//! `tollgate demo`.

use crate::support::world::tollgate;

#[test]
fn the_demonstration_limits_the_real_log_exactly() {
    let output = tollgate(&["demo", "--listen", "127.0.0.1:0", "--seconds", "0", "--once"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // The result of `tollgate simulate` for the same log and policy.
    let last = "Replayed 10000: 9985 admitted, 15 refused, 445 refunded (304).";
    assert!(text.contains(last), "{text}");
    for response in [
        "  max_tokens is 400: 400 reserved, 89600 remaining",
        "  prompt and response had 21: settled at the end of the stream, 89979 remaining",
    ] {
        assert!(text.contains(response), "{response}: {text}");
    }
    assert!(text.contains("  curl -i http://127.0.0.1:"), "{text}");
}
