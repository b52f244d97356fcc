//! The directives of the suite that this engine refuses.

/// Directives that must fail: what they test is no part of this engine.
pub(crate) const REFUSED: &[(&str, &[usize], &str)] = &[
    (
        "wasm-v2/elem.wast",
        &[598, 599, 611, 612, 613, 668, 682, 692],
        "a table is one instance's own: others' elements are not seen through it",
    ),
    (
        "wasm-v2/linking.wast",
        &[207, 209, 210, 212, 215, 216, 218, 275, 288],
        "a table is one instance's own: others' elements are not seen through it",
    ),
    (
        "wasm-v2/linking.wast",
        &[406, 419, 453],
        "an instance that cannot be made leaves no traces in others",
    ),
    (
        "extended-const/elem.wast",
        &[607, 608, 620, 621, 622, 677, 691, 701],
        "a table is one instance's own: others' elements are not seen through it",
    ),
    (
        "custom-page-sizes/custom-page-sizes.wast",
        &[60, 84, 85, 86, 88, 89, 90, 91, 96, 102, 106],
        "several memories",
    ),
    ("custom-page-sizes/custom-page-sizes-invalid.wast", &[97], "several memories"),
];

pub(crate) fn is_refused(file: &str, line: usize) -> bool {
    REFUSED.iter().any(|(listed, lines, _)| *listed == file && lines.contains(&line))
}
