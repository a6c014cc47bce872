//! The files of the dashboard, from the folder `assets/`.

use super::Asset;

macro_rules! assets {
    ($($path:literal as $media_type:literal,)*) => {
        /// The files with their paths below `/dashboard/`. The page itself has an empty path.
        pub(super) static ASSETS: &[Asset] = &[
            Asset {
                path: "",
                media_type: "text/html; charset=utf-8",
                bytes: include_bytes!("assets/index.html"),
            },
            $(Asset {
                path: $path,
                media_type: $media_type,
                bytes: include_bytes!(concat!("assets/", $path)),
            },)*
        ];
    };
}

assets! {
    "icon.svg" as "image/svg+xml",
    "style.css" as "text/css; charset=utf-8",
    "js/alerts.js" as "text/javascript; charset=utf-8",
    "js/api.js" as "text/javascript; charset=utf-8",
    "js/chart.js" as "text/javascript; charset=utf-8",
    "js/dom.js" as "text/javascript; charset=utf-8",
    "js/feed.js" as "text/javascript; charset=utf-8",
    "js/format.js" as "text/javascript; charset=utf-8",
    "js/main.js" as "text/javascript; charset=utf-8",
    "js/match.js" as "text/javascript; charset=utf-8",
    "js/metrics.js" as "text/javascript; charset=utf-8",
    "js/override.js" as "text/javascript; charset=utf-8",
    "js/past.js" as "text/javascript; charset=utf-8",
    "js/series.js" as "text/javascript; charset=utf-8",
    "js/simulated.js" as "text/javascript; charset=utf-8",
    "js/switches.js" as "text/javascript; charset=utf-8",
    "js/table.js" as "text/javascript; charset=utf-8",
    "js/views/limit.js" as "text/javascript; charset=utf-8",
    "js/views/limits.js" as "text/javascript; charset=utf-8",
    "js/views/listing.js" as "text/javascript; charset=utf-8",
    "js/views/overrides.js" as "text/javascript; charset=utf-8",
    "js/views/overview.js" as "text/javascript; charset=utf-8",
    "js/views/policy.js" as "text/javascript; charset=utf-8",
    "js/views/rollout.js" as "text/javascript; charset=utf-8",
    "js/views/sign-in.js" as "text/javascript; charset=utf-8",
    "js/views/subject.js" as "text/javascript; charset=utf-8",
    "js/views/tenants.js" as "text/javascript; charset=utf-8",
    "js/views/top.js" as "text/javascript; charset=utf-8",
    "js/views/what-if.js" as "text/javascript; charset=utf-8",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Collects the paths of the files below `folder`, relative to `folder`.
    fn files(folder: &Path, before: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{before}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                files(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_is_served_and_short() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dashboard/assets");
        let mut found = BTreeSet::new();
        files(&folder, "", &mut found);
        let named = ASSETS.iter().map(|asset| asset.path);
        let named: BTreeSet<_> = named
            .map(|path| if path.is_empty() { "index.html" } else { path }.to_owned())
            .collect();
        assert_eq!(named, found);
        for asset in ASSETS {
            let lines = asset.bytes.split(|byte| *byte == b'\n').count();
            assert!(lines < 500, "{}: {lines} lines", asset.path);
        }
    }

    #[test]
    fn nothing_makes_markup_of_text_or_asks_elsewhere() {
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for word in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("] {
                assert!(!text.contains(word), "{word} in {}", asset.path);
            }
            // Links to other hosts are not allowed. The XML namespace of SVG is removed first,
            // because this URL is never fetched.
            let own = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!own.contains("http:") && !own.contains("https:"), "{}", asset.path);
        }
        let page = std::str::from_utf8(ASSETS[0].bytes).unwrap();
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" on"));
    }
}
