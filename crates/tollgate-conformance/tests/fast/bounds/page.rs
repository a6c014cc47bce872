//! A test that the tables of the page of bounds are up to date. The tables are generated from
//! [`TABLES`] and from the constants in the code.

use std::{env, fs};

use super::root;
use super::tables::{TABLES, Table};
use super::values::Constants;

/// The beginning of the mark before a table. The name of the table and ` -->` follow.
const BEGIN: &str = "<!-- made of the list in the code: ";

/// The mark after a table.
const END: &str = "<!-- to here -->";

#[test]
fn the_page_has_the_tables_of_the_list() {
    let path = root().join("docs/bounds.md");
    let page = fs::read_to_string(&path).expect("the page of bounds");
    let generated = generated(&page, &Constants::read());
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &generated).expect("the page can be written");
        return;
    }
    assert!(
        page == generated,
        "docs/bounds.md differs from the list and the constants; \
         UPDATE=1 cargo test -p tollgate-conformance bounds writes it"
    );
}

#[test]
fn rows_have_a_cell_for_each_column() {
    for table in TABLES {
        for row in table.rows {
            assert_eq!(row.len(), table.columns.len(), "{}: {row:?}", table.name);
            assert!(
                row.iter().all(|cell| !cell.is_empty() && !cell.contains(['|', '\n'])),
                "{row:?}"
            );
        }
    }
}

/// Returns the page with every table between its marks replaced.
fn generated(page: &str, constants: &Constants) -> String {
    let mut parts = page.split(BEGIN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut names = Vec::new();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").expect("a mark has a name");
        let (_, after) = rest.split_once(END).expect("a table has an end");
        let table = TABLES.iter().find(|table| table.name == name);
        let table = table.unwrap_or_else(|| panic!("no table {name}"));
        names.push(name);
        text += &format!("{BEGIN}{name} -->\n{}{END}{after}", markdown(table, constants));
    }
    let expected: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(names, expected, "the page has each table once, in their order");
    text
}

fn markdown(table: &Table, constants: &Constants) -> String {
    let mut text =
        format!("| {} |\n|{}\n", table.columns.join(" | "), " --- |".repeat(table.columns.len()));
    for row in table.rows {
        let fill =
            |cell: &&str| constants.fill(cell).unwrap_or_else(|error| panic!("{cell}: {error}"));
        let cells: Vec<_> = row.iter().map(fill).collect();
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}
