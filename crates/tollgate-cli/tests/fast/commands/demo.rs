//! `tollgate demo`.

use crate::support::world::tollgate;

#[test]
fn the_demonstration_limits_the_real_log_exactly() {
    let output = tollgate(&["demo", "--listen", "127.0.0.1:0", "--seconds", "0", "--once"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // What `tollgate simulate` says of the same log and policy.
    let last = "Replayed 10000: 9985 admitted, 15 refused, 445 refunded (304).";
    assert!(text.contains(last), "{text}");
    for response in [
        "  it may write 400 tokens: 400 are held, 89600 are left",
        "  it wrote, with the prompt, 21: settled at the end of its stream, 89979 are left",
    ] {
        assert!(text.contains(response), "{response}: {text}");
    }
    assert!(text.contains("  curl -i http://127.0.0.1:"), "{text}");
}
