//! Results as a table or as JSON lines.

/// One number.
pub(crate) struct Row {
    /// What was run: `vm/fib`.
    pub bench: String,
    /// Where: `host`, `riscv32`, …
    pub target: String,
    /// Who did it.
    pub subject: String,
    /// What was counted.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The number.
    pub value: f64,
}

/// To the standard output.
pub(crate) fn print(rows: &[Row], json: bool) {
    let mut bench = "";
    for row in rows {
        let Row { target, subject, metric, unit, value, .. } = row;
        if json {
            println!(
                "{{\"bench\":\"{}\",\"target\":\"{target}\",\"subject\":\"{subject}\",\
                 \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.4}}}",
                row.bench
            );
            continue;
        }
        if row.bench != bench {
            bench = &row.bench;
            println!("\n{bench} on {target}");
        }
        println!("  {subject:<24} {value:>10.3} {unit:<12} {metric}");
    }
}
