//! Policy files.

/// Every mistake has a place in the file, and a policy that loads can be explained.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.split('\n').count();
    match tollgate_policy::parse("policy.yaml", text) {
        Ok(loaded) => {
            let _ = tollgate_policy::explain(&loaded).to_string();
        }
        Err(errors) => {
            let shown = errors.to_string();
            assert!(!shown.is_empty());
            for finding in errors.findings() {
                assert!((1..=lines + 1).contains(&finding.line()), "{shown}");
            }
        }
    }
}
