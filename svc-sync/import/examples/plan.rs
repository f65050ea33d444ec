//! Shows what becomes of an archive: `cargo run -p cairn-import --example plan -- obsidian PATH [ITEM]`.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;

use cairn_import::{Archive, Limits, notion, obsidian};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(provider), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("say a provider and the path of an archive".into());
    };
    let mut archive = Archive::open(File::open(&path)?)?;
    let limits = Limits { folders: 99, asset_bytes: u64::MAX };
    let mut plan = match provider.as_str() {
        "obsidian" => obsidian(&mut archive, &path, &limits)?,
        "notion" => {
            let parts = archive.parts();
            for part in &parts {
                let bytes = archive.read(*part, u64::MAX)?;
                let place = std::env::temp_dir().join(format!("plan-{}-{part}.zip", std::process::id()));
                std::fs::write(&place, bytes)?;
                let file = File::open(&place)?;
                std::fs::remove_file(place)?;
                archive.add_part(file)?;
            }
            notion(&mut archive, &parts, &path, &limits)?
        }
        _ => return Err("the providers are obsidian and notion".into()),
    };
    let mut out = std::io::stdout().lock();
    if let Some(wanted) = arguments.next() {
        for item in 0..plan.items.len() {
            if plan.path(item) == wanted
                && let Some(content) = plan.content(&mut archive, item)?
            {
                let filled = content.fill(|item| plan.address(item, &item.to_string()));
                writeln!(out, "{:?}\n{filled}", content.tags)?;
            }
        }
        for item in 0..plan.items.len() {
            let mut shown = Vec::new();
            if plan.path(item) == wanted {
                plan.records(&mut archive, item, &mut |record, values| shown.push((record, values)))?;
            }
            for (record, values) in shown {
                writeln!(out, "{record} {values:?}")?;
            }
        }
        return Ok(());
    }
    writeln!(out, "{}\n{:#?}", plan.root, plan.counts)?;
    for (place, item) in plan.items.iter().enumerate() {
        writeln!(out, "{} {:?}", plan.path(place), item.kind)?;
    }
    for warning in &plan.warnings {
        writeln!(out, "warning {} {}", warning.path, warning.code.as_str())?;
    }
    for listed in &plan.unresolved {
        writeln!(
            out,
            "{} {}:{} {}",
            listed.reason.as_str(),
            plan.path(listed.item),
            listed.line,
            listed.target
        )?;
    }
    Ok(())
}
