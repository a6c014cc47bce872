//! `tollgate demo`.

use crate::world::tollgate;

#[test]
fn the_demonstration_limits_the_real_log_exactly() {
    let output = tollgate(&["demo", "--listen", "127.0.0.1:0", "--seconds", "0", "--once"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // What `tollgate simulate` says of the same log and policy.
    let last = "Replayed 10000: 9985 admitted, 15 refused, 445 refunded (304).";
    assert!(text.contains(last), "{text}");
    assert!(text.contains("  curl -i http://127.0.0.1:"), "{text}");
}
