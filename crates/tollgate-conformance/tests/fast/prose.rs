//! A test of the style of comments and pages: it counts constructions that plain technical English
//! rarely needs.
//!
//! `CONTRIBUTING.md` states the style. The number shows which texts to rewrite. It is not a measure
//! of their quality.

use std::fs;
use std::path::{Path, PathBuf};

/// The most hard constructions per 1,000 words, over the whole repository.
const MAX_OF_ALL: f64 = 2.0;

/// The most hard constructions per 1,000 words in one file of more than [`SHORT`] words.
const MAX_OF_A_FILE: f64 = 12.0;

/// The number of words below which a file is not checked.
const SHORT: usize = 150;

/// The number of files that the failing test lists.
const WORST: usize = 15;

/// The names of folders with files that are built or downloaded, not written here.
const NOT_OURS: [&str; 2] = ["target", "node_modules"];

/// Words that hide the actor, and verbs for actions that machines do not perform.
const WORDS: [&str; 24] = [
    "who",
    "whom",
    "whoever",
    "whose",
    "told",
    "tell",
    "tells",
    "telling",
    "hear",
    "hears",
    "heard",
    "nobody",
    "everybody",
    "somebody",
    "stands",
    "stood",
    "lies",
    "lived",
    "lives",
    "anew",
    "beside",
    "meanwhile",
    "thereof",
    "whereby",
];

/// Words that follow "what" at the start of a clause that replaces a noun.
const AFTER_WHAT: [&str; 18] = [
    "is", "was", "are", "were", "it", "its", "they", "a", "an", "the", "has", "have", "became",
    "becomes", "comes", "lies", "stands", "others",
];

/// Phrases of several words.
const PHRASES: [&[&str]; 4] =
    [&["so", "that"], &["such", "that"], &["all", "the", "same"], &["in", "the", "end"]];

/// The prose of one file.
struct Prose {
    path: PathBuf,
    words: usize,
    hard: Vec<String>,
}

impl Prose {
    fn per_thousand(&self) -> f64 {
        self.hard.len() as f64 * 1_000.0 / self.words.max(1) as f64
    }
}

#[test]
fn comments_and_pages_are_in_plain_english() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a folder");
    let mut files: Vec<Prose> = files(&root).into_iter().map(read).collect();
    let words: usize = files.iter().map(|file| file.words).sum();
    let hard: usize = files.iter().map(|file| file.hard.len()).sum();
    assert!(words > 50_000, "only {words} words found: is this the repository?");
    let figure = hard as f64 * 1_000.0 / words as f64;
    println!("{figure:.1} hard constructions per 1,000 words, of {words} words");
    files.retain(|file| file.words > SHORT);
    files.sort_by(|one, other| other.per_thousand().total_cmp(&one.per_thousand()));
    let lines = files.iter().take(WORST).map(|file| {
        let path = file.path.strip_prefix(&root).unwrap_or(&file.path).display();
        let first = file.hard.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        format!("{:5.1}  {path}: {first}\n", file.per_thousand())
    });
    let worst: String = lines.collect();
    assert!(
        figure <= MAX_OF_ALL && files.iter().all(|file| file.per_thousand() <= MAX_OF_A_FILE),
        "{figure:.1} hard constructions per 1,000 words; rewrite the sentences of these files:\n{worst}"
    );
}

#[test]
fn hard_constructions_are_found_in_prose_only() {
    let page = "It tells who waits. `who` [x](who.md)\n```\nwho\n```\nWhere nothing waits, it ends. \
                What it counts stays so that it fits.";
    assert_eq!(hard_in(&page_text(page)), ["tells", "who", "Where", "what it", "so that"]);
    let code = "let who = 1; // who waits\n/// Returns the limit.\nfn told() {}\n";
    assert_eq!(hard_in(&comments(code)), Vec::<String>::new(), "a comment after code is not read");
    assert_eq!(hard_in(&comments("// who waits\n")), ["who"]);
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            // A symbolic link points to a file that is also found under its own path.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !name.starts_with('.') && !NOT_OURS.contains(&&*name) {
                folders.push(path);
            } else if kind.is_file() && (name.ends_with(".md") || name.ends_with(".rs")) {
                found.push(path);
            }
        }
    }
    found
}

fn read(path: PathBuf) -> Prose {
    let text = fs::read_to_string(&path).expect("a file is readable UTF-8");
    let prose = match path.extension().is_some_and(|kind| kind == "md") {
        true => page_text(&text),
        false => comments(&text),
    };
    Prose { words: words(&prose).len(), hard: hard_in(&prose), path }
}

/// Returns the comments that have their own lines, without code.
fn comments(text: &str) -> String {
    let lines = text.lines().filter_map(|line| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some(comment.strip_prefix(['/', '!']).unwrap_or(comment).trim_start())
    });
    page_text(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the prose of a page: its text without blocks of code, inline code and the targets of
/// links.
fn page_text(text: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            for (index, part) in line.split('`').enumerate() {
                prose += if index % 2 == 0 { part } else { " " };
            }
            prose.push('\n');
        }
    }
    let mut parts = prose.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + " " + part.split_once(')').map_or(part, |(_, rest)| rest))
}

fn words(prose: &str) -> Vec<&str> {
    prose
        .split(|letter: char| !letter.is_ascii_alphabetic() && letter != '\'')
        .filter(|word| !word.is_empty())
        .collect()
}

fn hard_in(prose: &str) -> Vec<String> {
    let found = words(prose);
    let lower: Vec<String> = found.iter().map(|word| word.to_lowercase()).collect();
    let mut hard = Vec::new();
    for (index, word) in lower.iter().enumerate() {
        let next = lower.get(index + 1).map_or("", String::as_str);
        if WORDS.contains(&word.as_str()) {
            hard.push(word.clone());
        } else if found[index] == "Where" {
            // An opener: a question word is in a heading, and ends with a question mark there.
            hard.push("Where".to_owned());
        } else if word == "what" && AFTER_WHAT.contains(&next) {
            hard.push(format!("what {next}"));
        }
        let is_here = |phrase: &&&[&str]| {
            lower[index..].iter().take(phrase.len()).map(String::as_str).eq(phrase.iter().copied())
        };
        hard.extend(PHRASES.iter().find(is_here).map(|phrase| phrase.join(" ")));
    }
    hard
}
