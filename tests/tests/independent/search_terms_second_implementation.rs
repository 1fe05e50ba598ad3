//! A second implementation reads the table of search terms, and finds the terms of `vectors/search-terms` as ours does: see
//! tests/python/search_terms_vectors.py.

use std::path::Path;

#[test]
fn python_of_its_own_finds_the_same_terms_by_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (table, vectors) = (root.join("crates/search-terms/table.json"), root.join("vectors/search-terms"));
    let arguments = [table.to_str().unwrap(), vectors.to_str().unwrap()];
    let decided = black_box::run_python("search_terms_vectors.py", &arguments);
    for family in ["header", "content-type", "form", "unreadable", "bound"] {
        let files = vectors.join(family).read_dir().unwrap().count();
        assert!(files > 5, "{family}");
        assert_eq!(decided[family], files, "{family}");
    }
}
