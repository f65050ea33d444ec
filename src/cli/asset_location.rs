//! Reads where assets are.

use std::ffi::OsStr;

use cairn_content::AssetLocation;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// Unlike clap's own parsers it does not repeat what was given, in which somebody may have put a secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct AssetLocationParser;

impl TypedValueParser for AssetLocationParser {
    type Value = AssetLocation;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<AssetLocation, Error> {
        let read = value.to_str().map(AssetLocation::from_url);
        let reason = match read {
            Some(Ok(location)) => return Ok(location),
            Some(Err(refusal)) => refusal.to_string(),
            None => "it must be UTF-8".to_owned(),
        };
        let option = argument.map(ToString::to_string).unwrap_or_default();
        Err(Error::raw(ErrorKind::ValueValidation, format!("{option}: {reason}\n")).with_cmd(command))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::super::content::ContentOptions;
    use super::*;

    fn read(location: &str) -> Result<Option<AssetLocation>, Error> {
        let command = ContentOptions::augment_args(Command::new("cairn"));
        let matches = command.try_get_matches_from(["cairn", "--assets", location])?;
        Ok(ContentOptions::from_arg_matches(&matches)?.assets)
    }

    #[test]
    fn a_location_is_read_and_never_repeated() {
        assert_eq!(read("./assets").unwrap(), Some(AssetLocation::Folder("./assets".into())));
        assert!(matches!(read("s3://assets/cairn").unwrap(), Some(AssetLocation::Bucket(_))));
        let refusal = read("s3://key:s3cret@assets").unwrap_err().to_string();
        assert!(refusal.contains("--assets") && refusal.contains("AWS_SECRET_ACCESS_KEY"), "{refusal}");
        assert!(!refusal.contains("s3cret"), "{refusal}");
    }
}
